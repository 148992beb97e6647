"""Build the drivers, run each on its corpus for a while, and report failures: ``make fuzz FUZZ_SECONDS=60``.

With Clang the drivers use libFuzzer; with another compiler, or ``--seconds 0``, the kept corpora are replayed. Inputs
found on the way go to build/fuzz/found; ``--keep`` reduces them, with the corpus, to few short files of the same
coverage.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CORPUS = HERE / "corpus"
OPTIONS = ["-max_len=400", "-len_control=0", "-timeout=20", "-rss_limit_mb=2500", "-print_final_stats=1"]


def build(folder: Path, compiler: str, jobs: int) -> list[Path]:
    """Build the drivers; return their programs, sorted by name."""
    settings = ["-DPARTWISE_FUZZ=ON", "-DPARTWISE_WERROR=OFF", f"-DCMAKE_CXX_COMPILER={compiler}"]
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", *settings], check=True)
    subprocess.run(["cmake", "--build", str(folder), "--parallel", str(jobs)], check=True)
    return sorted(path for path in (folder / "fuzz").glob("fuzz_*") if os.access(path, os.X_OK) and path.is_file())


def run(program: Path, seconds: int, found: Path, keep: bool) -> bool:
    """Run one driver; return whether it succeeded."""
    name = program.name.removeprefix("fuzz_")
    corpus, own = CORPUS / name, found / name
    own.mkdir(parents=True, exist_ok=True)
    if seconds == 0:
        command = [str(program), "-runs=0", *OPTIONS, str(corpus)]
    else:
        limits = [f"-max_total_time={seconds}", f"-artifact_prefix={found}/{name}-"]
        command = [str(program), *limits, *OPTIONS, str(own), str(corpus)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    lines = done.stderr.splitlines()
    counts = [line.split()[-1] for line in lines if "number_of_executed_units" in line]
    print(
        f"{name}: {'ok' if done.returncode == 0 else 'BROKEN'} ({counts[0] if counts else len(lines)} runs)", flush=True
    )
    if done.returncode != 0:
        print("\n".join(lines[-60:]))
    elif keep:
        merged = found / f"{name}-merged"
        shutil.rmtree(merged, ignore_errors=True)
        merged.mkdir()
        subprocess.run([str(program), "-merge=1", *OPTIONS, str(merged), str(corpus), str(own)], check=True)
        if not any(merged.iterdir()):
            raise RuntimeError(f"{name}: nothing was merged; the corpus stays as it is")
        shutil.rmtree(corpus)
        shutil.copytree(merged, corpus)
    return done.returncode == 0


def is_clang(compiler: str) -> bool:
    """Return whether the compiler is Clang, by the macros that it predefines."""
    command = [*shlex.split(compiler), "-dM", "-E", "-x", "c++", os.devnull]
    try:
        return "__clang__" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False


def main() -> int:
    """Return exit status 0 if all drivers succeeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="per driver; 0: replay the corpora")
    parser.add_argument("--compiler", default=shutil.which("clang++") or os.environ.get("CXX", "c++"))
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", action="store_true", help="add what covers more to the corpora")
    parser.add_argument("--driver", action="append", help="only these")
    given = parser.parse_args()
    if given.keep and not is_clang(given.compiler):
        parser.error(f"--keep needs Clang, whose libFuzzer merges corpora: {given.compiler} is another compiler")
    programs = build(given.build, given.compiler, given.jobs)
    chosen = [path for path in programs if not given.driver or path.name.removeprefix("fuzz_") in given.driver]
    results = [run(path, given.seconds, given.build / "found", given.keep) for path in chosen]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
