"""How the work per sentence grows with its length: instructions counted by Valgrind, and the exponent that fits them.

Counts, unlike times, are the same on every run and on a busy machine. The kernels are compiled for x86-64-v3, as
Valgrind knows no AVX-512. Needs a C++ compiler, Valgrind and the sources.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from benchmarks.report import machine, print_table, save

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("ProjectiveTree", "SpanningTree")
WHAT = {"max": "maximum", "sums": "log partition, marginals and entropy, in doubles", "logs": "the same in logs"}


def exponent(lengths: Sequence[int], counts: Sequence[int]) -> float:
    """The slope of log counts over log lengths."""
    return float(np.polyfit(np.log(lengths), np.log(counts), 1)[0])


def missing_tools() -> list[str]:
    """What this needs and does not find."""
    return [tool for tool in (_compiler(), "valgrind") if shutil.which(tool) is None]


def _compiler() -> str:
    return os.environ.get("CXX", "c++")


def build(folder: Path) -> Path:
    """The driver, compiled with the structures it runs."""
    driver = folder / "growth_driver"
    sources = [ROOT / "benchmarks" / "growth_driver.cpp"]
    names = ("structure", "tree", "projective_tree", "spanning_tree", "arborescence")
    sources += [ROOT / "core" / "structures" / f"{name}.cpp" for name in names]
    flags = ["-std=c++20", "-O3", "-march=x86-64-v3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]
    subprocess.run([_compiler(), *flags, f"-I{ROOT / 'core'}", *map(str, sources), "-o", str(driver)], check=True)
    return driver


def instructions(driver: Path, kind: str, what: str, n: int, repeats: int) -> int:
    """Instructions of a whole run of the driver."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*command, str(driver), kind, what, str(n), str(repeats)], capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or found is None:
        raise click.ClickException(f"valgrind failed: {done.stderr.strip()[-500:]}")
    return int(found[1].replace(",", ""))


@click.command(help=__doc__)
@click.option("--lengths", default="25,50,100,200", show_default=True, help="Words of a sentence, with commas.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--limit", default=3.1, show_default=True, help="Largest exponent that does not count as a failure.")
def command(lengths: str, json_file: str | None, limit: float) -> None:
    """Count, fit, show; status 1 if something grows faster than the limit."""
    if missing := missing_tools():
        raise click.ClickException(f"not found: {', '.join(missing)}")
    sizes = [int(n) for n in lengths.split(",")]
    if len(sizes) < 2 or sorted(set(sizes)) != sizes or sizes[0] < 1:
        raise click.BadParameter("two or more rising lengths are needed", param_hint="--lengths")
    records = []
    with tempfile.TemporaryDirectory() as folder:
        driver = build(Path(folder))
        for kind in KINDS:
            for what, title in WHAT.items():
                counts = [
                    instructions(driver, kind, what, n, 1) - instructions(driver, kind, what, n, 0) for n in sizes
                ]
                fitted = exponent(sizes, counts)
                record = {"structure": kind, "what": title, "lengths": sizes, "instructions": counts, **machine()}
                last = exponent(sizes[-2:], counts[-2:])
                records.append(record | {"exponent": fitted, "last_exponent": last})
                if max(fitted, last) > limit:
                    records[-1]["error"] = f"grows as n^{max(fitted, last):.2f}"
    rows = [
        [
            r["structure"],
            r["what"],
            *(f"{count:,}" for count in r["instructions"]),
            f"{r['exponent']:.2f}",
            f"{r['last_exponent']:.2f}",
        ]
        for r in records
    ]
    headings = ["structure", "what", *(f"n = {n}" for n in sizes), "exponent", "last two"]
    print_table("Instructions per sentence", headings, rows, f"exponent: fitted to all lengths; limit {limit:g}")
    save(json_file, records)
