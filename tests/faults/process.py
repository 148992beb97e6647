"""A process that runs trials, by orders, and what is seen of it from outside."""

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
#: Seconds within which a process has imported what it needs.
START = 600.0


def scratch() -> Path:
    """A new folder, in memory if there is such a file system and TMPDIR does not say otherwise."""
    memory = Path("/dev/shm")
    here = None if os.environ.get("TMPDIR") or not os.access(memory, os.W_OK) else memory
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=here))
    folder.chmod(0o755)  # trials that give up root's rights come here too
    return folder


class NotBegun(RuntimeError):
    """A process did not come to its first trial."""


class Process:
    """One that runs the trials of a module's rows with one build of the core.

    Attributes
    ----------
    order : the row's name, and numbers of trials that have no result yet: the first of them is running
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
            start_new_session=True,  # to end it with all that it has started
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.orders, self.answers = self.child.stdin, self.child.stdout
        self.held, self.ready, self.since = b"", False, time.monotonic()
        self.order: tuple[str, list[int]] = ("", [])

    def fits(self, row: Row) -> bool:
        """Whether the row's trials could be run here."""
        return (self.module, self.core) == (row.module, row.core)

    def give(self, name: str, numbers: list[int]) -> None:
        """An order, while it has none."""
        self.order = (name, list(numbers))
        self.since = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it has died, which is seen when it is read
            self.orders.write(json.dumps(self.order).encode() + b"\n")

    def left(self, row: Row, slack: float) -> float:
        """Seconds until it hangs."""
        limit = WAIT * row.seconds + slack if self.ready else START
        return self.since + limit - time.monotonic()

    def hangs(self) -> Record:
        """What to write of it when no seconds are left."""
        if not self.ready:
            raise NotBegun(f"the process of the trials of {self.module} does not begin")
        return self._result("hang", f"no answer after {time.monotonic() - self.since:.0f} s")

    def read(self) -> Iterator[Record] | None:
        """Results that have come; None: it has ended."""
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
        """How a process ended that should not have."""
        os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOWAIT)  # the pipe is closed before it has ended
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
        """With all that it has started; its status."""
        if self.child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
        return self.child.wait()

    def forget(self) -> None:
        """Its files, after it was ended."""
        self.end()
        self.orders.close()
        self.answers.close()
        shutil.rmtree(self.folder, ignore_errors=True)
