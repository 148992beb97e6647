"""A child process that runs trials as ordered, and what can be seen of it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sanitizers import environment

from . import digest
from .rows import LOGS, REPORT, TESTS, WAIT, Row, reported

Record = dict[str, Any]
#: Seconds within which a process must have imported what it needs.
START = 600.0


def scratch() -> Path:
    """Make a folder, in memory where the system allows this and TMPDIR is not set."""
    memory = Path("/dev/shm")
    here = None if os.environ.get("TMPDIR") or not os.access(memory, os.W_OK) else memory
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=here))
    folder.chmod(0o755)  # trials that give up root's rights use this folder too
    return folder


class NotBegun(RuntimeError):
    """A process that ended before its first trial."""


class Process:
    """A child process for the rows of one module, with one build of the core.

    Attributes
    ----------
    order : the row's name, and the numbers of the trials without a result; the first of these trials is running
    """

    def __init__(self, module: str, core: str) -> None:
        self.module, self.core, self.folder = module, core, scratch()
        (self.folder / LOGS).mkdir()
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.child", module, str(self.folder)],
            cwd=TESTS.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment(core, self.folder / LOGS / "report")
            | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            # A session of its own, so that the process can be ended together with all that it has started
            start_new_session=True,
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.orders, self.answers = self.child.stdin, self.child.stdout
        self.held, self.ready, self.since = b"", False, time.monotonic()
        self.order: tuple[str, list[int]] = ("", [])

    def fits(self, row: Row) -> bool:
        """Say whether the process can run trials of this row."""
        return (self.module, self.core) == (row.module, row.core)

    def give(self, name: str, numbers: list[int]) -> None:
        """Send an order to a process that has none."""
        self.order = (name, list(numbers))
        self.since = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # a process that has died is noticed by `read`
            self.orders.write(json.dumps(self.order).encode() + b"\n")

    def left(self, row: Row, slack: float) -> float:
        """Return the seconds until the current trial counts as hanging."""
        limit = WAIT * row.seconds + slack if self.ready else START
        return self.since + limit - time.monotonic()

    def hangs(self) -> Record:
        """Return the record of a trial that hangs."""
        if not self.ready:
            raise NotBegun(f"the process of the trials of {self.module} does not begin")
        return self._result("hang", f"no answer after {time.monotonic() - self.since:.0f} s")

    def read(self) -> Iterator[Record] | None:
        """Return the results that have arrived; None if the process has ended."""
        piece = os.read(self.answers.fileno(), 1 << 16)
        if not piece:
            return None
        self.held += piece
        *lines, self.held = self.held.split(b"\n")
        return self._records(lines)

    def _records(self, lines: list[bytes]) -> Iterator[Record]:
        for line in lines:
            record = json.loads(line)
            self.since = time.monotonic()
            if "ready" in record:
                if record["ready"] != digest.of_package():
                    raise NotBegun(f"the package of the {self.core or 'usual'} build is another one: make faults")
                self.ready = True
                continue
            self.order[1].pop(0)
            yield record

    def ended(self) -> Record | None:
        """Return the record of a trial whose process ended unexpectedly."""
        os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOWAIT)  # the pipe closes before the process has ended
        status = self.end()
        if not self.ready:
            raise NotBegun(f"the process of the trials of {self.module} failed before it began (status {status})")
        text = reported(self.folder)
        if self.order[1]:
            return self._result(REPORT if text else "crash", text or f"the process ended with {status}")
        return None

    def _result(self, outcome: str, detail: str) -> Record:
        name, numbers = self.order
        record = {"row": name, "trial": numbers.pop(0), "outcome": outcome, "detail": detail, "cpu": None}
        return record | {"seconds": round(time.monotonic() - self.since, 4)}

    def end(self) -> int:
        """End the process and all that it has started. Return its exit status."""
        if self.child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
        return self.child.wait()

    def forget(self) -> None:
        """End the process and remove its files."""
        self.end()
        self.orders.close()
        self.answers.close()
        shutil.rmtree(self.folder, ignore_errors=True)
