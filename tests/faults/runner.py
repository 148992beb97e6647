"""Runs rows in child processes: one that dies or hangs is a result, and the next trial goes on in another."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .rows import MODULES, TESTS, WAIT, Row

Record = dict[str, Any]


def run(
    rows: Mapping[str, Row],
    orders: Iterable[tuple[str, list[int]]],
    modules: Iterable[str] = MODULES,
    deadline: float = float("inf"),
    slack: float = 30.0,
) -> Iterator[Record]:
    """Results of trials, (row's name, numbers) by order, until the clock (`time.monotonic`) says `deadline`.

    A trial hangs if it has not ended after WAIT times the row's seconds, and `slack`.
    """
    left = [(name, list(numbers)) for name, numbers in orders if numbers]
    while left and time.monotonic() < deadline:
        for record in _one_process(rows, left, ",".join(modules), deadline, slack):
            yield record
            numbers = next(numbers for name, numbers in left if name == record["row"])
            numbers.remove(record["trial"])
        left = [(name, numbers) for name, numbers in left if numbers]


def _one_process(
    rows: Mapping[str, Row], left: list[tuple[str, list[int]]], modules: str, deadline: float, slack: float
) -> Iterator[Record]:
    orders = [f"{name}:{','.join(map(str, numbers[:2000]))}" for name, numbers in left]
    command = [sys.executable, "-m", "tests.faults.child", modules, *orders]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.Popen(command, cwd=TESTS.parent, stdout=subprocess.PIPE, env=environment)
    assert child.stdout is not None
    descriptor, held, running = child.stdout.fileno(), b"", None
    try:
        while True:
            limit = WAIT * rows[running["row"]].seconds + slack if running else 1800.0
            ready, _, _ = select.select([descriptor], [], [], min(limit, max(0.0, deadline - time.monotonic())))
            if not ready:
                if time.monotonic() < deadline:
                    if running is None:
                        raise RuntimeError("the process of the trials does not begin")
                    yield _result(running, "hang", f"no answer after {limit:.0f} s")
                return
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                child.wait(timeout=60)  # the pipe is closed before the process has ended
                break
            held += piece
            *lines, held = held.split(b"\n")
            for line in lines:
                record = json.loads(line)
                running = record if record.pop("begin", False) else None
                if running is None:
                    yield record
    finally:
        if child.poll() is None:
            child.kill()
        status = child.wait()
        child.stdout.close()
    if running:
        yield _result(running, "crash", f"the process ended with {status}")
    elif status:
        raise RuntimeError(f"the process of the trials failed before it began one (status {status})")


def _result(running: Record, outcome: str, detail: str) -> Record:
    return {"row": running["row"], "trial": running["trial"], "outcome": outcome, "detail": detail, "cpu": None}


def read(path: Path) -> list[Record]:
    """Results that were kept; a last line that was cut off is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
