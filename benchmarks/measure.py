"""Run one system in a separate process, so that measured time and memory are those of this system only."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class SystemFailed(RuntimeError):
    """Raised if a system's process ended before it returned an answer."""


def run_apart(function: str, threads: int, timeout: float | None = None, **options: Any) -> dict[str, Any]:
    """Call ``module:function`` with JSON-able options in a new interpreter, and return its dict.

    timeout: seconds after which the process is killed.
    """
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads)) | {"PYTHONPATH": path}
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "benchmarks.measure", function, json.dumps(options), str(answer)]
        try:
            done = subprocess.run(command, env=environment, check=False, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise SystemFailed(f"{function} was ended after {timeout:.0f} s") from None
        if done.returncode:
            how = f"status {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
            raise SystemFailed(f"{function} ended with {how}")
        return dict(json.loads(answer.read_text()))


@dataclass
class Clock:
    """Wall and CPU seconds of a block of code."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def clock() -> Iterator[Clock]:
    """Measure the time of a `with` block; CPU seconds are those of all threads."""
    times = Clock()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield times
    finally:
        times.wall, times.cpu = time.perf_counter() - wall, time.process_time() - cpu


def peak_mb() -> float:
    """Return the most memory that this process has used, in MB."""
    from partwise.cli.output import peak_memory

    return peak_memory() / 1e6


def first_within(values: list[float], bound: float) -> int | None:
    """Return the index of the first value that is at most `bound`."""
    return next((k for k, value in enumerate(values) if value <= bound), None)


def _main(function: str, options: str, answer: str) -> None:
    module, _, name = function.partition(":")
    record = getattr(importlib.import_module(module), name)(**json.loads(options))
    Path(answer).write_text(json.dumps(record))


if __name__ == "__main__":
    _main(*sys.argv[1:])
