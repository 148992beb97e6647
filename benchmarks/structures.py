"""How does the work per example grow with its length? Instructions counted by Valgrind, and the fitted exponent.

All structures of the core (the table in structures_driver.cpp) run with all services that they offer. Counts, unlike
times, are the same on every run and on a busy machine. The kernels are compiled for x86-64-v3, as Valgrind does not
support AVX-512. Needs a C++ compiler, Valgrind and the sources.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.questions import choose
from benchmarks.report import machine, print_table, save

ROOT = Path(__file__).resolve().parents[1]
#: Service: (its description, whether its exponent is checked against the structure's).
SERVICES = {
    "max": ("maximum", True),
    "sums": ("log partition, marginals, entropy", True),
    "logs": ("the same, scores far apart", True),
    "covariance": ("covariance product", True),
    "k_best": ("5 best", False),
    "sample": ("5 samples", False),
}
FLAGS = ["-std=c++20", "-O3", "-march=x86-64-v3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-pthread"]
#: Lengths of examples: for structures with work linear in the length, and for others.
LINEAR, OTHERS = [200, 400, 800, 1600], [25, 50, 100, 200]
LACKING = 3  # exit status of the driver if a structure does not offer a service


def exponent(lengths: Sequence[int], counts: Sequence[int]) -> float:
    """Return the slope of log counts over log lengths."""
    return float(np.polyfit(np.log(lengths), np.log(counts), 1)[0])


def missing_tools() -> list[str]:
    """Return the required tools that are not installed."""
    return [tool for tool in (_compiler(), "valgrind") if shutil.which(tool) is None]


def _compiler() -> str:
    return os.environ.get("CXX", "c++")


def build(folder: Path) -> Path:
    """Compile the driver with all structures."""
    sources = [ROOT / "benchmarks" / "structures_driver.cpp"]
    sources += sorted((ROOT / "core" / "structures").glob("*.cpp")) + sorted((ROOT / "core" / "support").glob("*.cpp"))

    def compiled(source: Path) -> str:
        out = str(folder / f"{source.parent.name}-{source.stem}.o")
        subprocess.run([_compiler(), *FLAGS, f"-I{ROOT / 'core'}", "-c", str(source), "-o", out], check=True)
        return out

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(compiled, sources))
    driver = folder / "structures_driver"
    subprocess.run([_compiler(), "-pthread", *objects, "-o", str(driver)], check=True)
    return driver


def specimens(driver: Path) -> dict[str, float]:
    """Return the driver's structures, and the highest power of n that the work of each may grow with."""
    lines = subprocess.run([str(driver)], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: float(power) for name, power in (line.split("\t") for line in lines)}


def instructions(driver: Path, kind: str, what: str, n: int, repeats: int) -> int | None:
    """Count the instructions of a whole run of the driver; None if the structure does not offer the service."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*command, str(driver), kind, what, str(n), str(repeats)], capture_output=True, text=True)
    if done.returncode == LACKING:
        return None
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or found is None:
        raise click.ClickException(f"valgrind failed: {done.stderr.strip()[-500:]}")
    return int(found[1].replace(",", ""))


def grown(driver: Path, kind: str, what: str, lengths: Sequence[int]) -> list[int] | None:
    """Count the instructions of the second call for each length; the first call allocates memory too."""
    found = []
    for n in lengths:
        more, less = (instructions(driver, kind, what, n, repeats) for repeats in (2, 1))
        if more is None or less is None:
            return None
        found.append(more - less)
    return found


@click.command(help=__doc__)
@click.option("--lengths", help="Lengths of an example, with commas [default: by the structure].")
@click.option("--structures", default="", help="Only these structures, with commas.")
@click.option("--services", default="", help=f"Only these services, with commas: {', '.join(SERVICES)}.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--slack", default=0.1, show_default=True, help="How far an exponent may be above the structure's own.")
def command(lengths: str | None, structures: str, services: str, json_file: str | None, slack: float) -> None:
    """Count and fit; exit with status 1 if the work of a structure grows faster than it may."""
    if missing := missing_tools():
        raise click.ClickException(f"not found: {', '.join(missing)}")
    given = None if lengths is None else [int(n) for n in lengths.split(",")]
    if given is not None and (len(given) < 2 or sorted(set(given)) != given or given[0] < 1):
        raise click.BadParameter("two or more rising lengths are needed", param_hint="--lengths")
    asked = choose(services, list(SERVICES), "--services")
    records = []
    with tempfile.TemporaryDirectory() as folder:
        driver = build(Path(folder))
        powers = specimens(driver)
        for kind in choose(structures, list(powers), "--structures"):
            sizes = given or (LINEAR if powers[kind] <= 1 else OTHERS)
            for what in asked:
                title, held = SERVICES[what]
                counts = grown(driver, kind, what, sizes)
                if counts is None:
                    continue
                fitted, last = exponent(sizes, counts), exponent(sizes[-2:], counts[-2:])
                record = {"structure": kind, "what": title, "lengths": sizes, "instructions": counts, **machine()}
                record |= {"exponent": fitted, "last_exponent": last, "power": powers[kind]}
                if held and max(fitted, last) > powers[kind] + slack:
                    record["error"] = f"grows as n^{max(fitted, last):.2f}, not n^{powers[kind]:g}"
                records.append(record)
    note = (
        f"exponent: fitted to all lengths; power: the largest that the first four services may have, within {slack:g}"
    )
    for sizes in dict.fromkeys(tuple(r["lengths"]) for r in records):
        rows = [_row(r) for r in records if tuple(r["lengths"]) == sizes]
        headings = ["structure", "what", *(f"n = {n}" for n in sizes), "exponent", "last two", "power"]
        print_table("Instructions per example", headings, rows, note)
    save(json_file, records)


def _row(record: dict[str, Any]) -> list[str]:
    counts = (f"{count:,}" for count in record["instructions"])
    exponents = (f"{record[name]:.2f}" for name in ("exponent", "last_exponent"))
    return [record["structure"], record["what"], *counts, *exponents, f"{record['power']:g}"]
