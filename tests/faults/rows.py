"""The class of the rows of the table, the list of all rows, and what trials have in common."""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]

#: A process hangs when it has used its seconds of CPU time, or when WAIT times as many seconds have gone by.
WAIT = 10
#: Bytes of memory that a forked process may take beyond what it has.
MOST = 4 << 30
#: Outcome of a trial in which a sanitizer wrote a report.
REPORT = "sanitizer's report"
#: Where sanitizers write their reports, in the folder of a process.
LOGS = "logs"
MODULES = ("models", "checkpoints", "formats", "killed", "commands", "writing")
MODULES += ("certificates", "numbers", "sizes", "limits", "shared", "clusters", "rivals")


@dataclass(frozen=True)
class Row:
    """One kind of fault: a row of the table.

    Parameters
    ----------
    name : name of the row on the command line
    fault : description of the fault, as printed in the table
    required : the required outcome, as printed in the table
    trials : number of trials in the full table
    sample : number of trials that `make test` runs
    trial : number, empty folder -> (outcome, detail); the same number always gives the same trial
    good : the outcomes that meet the requirement; None: a comparison without a requirement
    seconds : CPU time after which a trial counts as hanging; so does WAIT times this on the clock
    core : build of the core: "" as installed, "asan" (AddressSanitizer and UndefinedBehaviorSanitizer) or
        "tsan" (ThreadSanitizer); a sanitizer's report gives the outcome REPORT
    alone : run nothing else at the same time, because the trials start processes that need the whole machine
    missing : name of a missing package that the trials need; "" if none is missing
    module : the module that defines the row (set by `all_rows`)
    """

    name: str
    fault: str
    required: str
    trials: int
    sample: int
    trial: Callable[[int, Path], tuple[str, str]]
    good: tuple[str, ...] | None
    seconds: float = 60.0
    core: str = ""
    alone: bool = False
    missing: str = ""
    module: str = ""


def all_rows(modules: tuple[str, ...] = MODULES) -> dict[str, Row]:
    """Return all rows by name. `modules` names modules of this package, or others by their full names."""
    found: dict[str, Row] = {}
    for name in modules:
        module = importlib.import_module(name if "." in name else f"tests.faults.{name}")
        found |= {row.name: replace(row, module=name) for row in module.ROWS}
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files in a folder, by relative path."""
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def reported(folder: Path) -> str:
    """Return the sanitizers' reports in a process's folder, and remove them."""
    paths = sorted((folder / LOGS).iterdir())
    text = "\n".join(path.read_text(errors="replace") for path in paths)
    for path in paths:
        path.unlink()
    return text[:3000]


@dataclass(frozen=True)
class Ended:
    """How a forked process ended: "answer", "signal 9", "status 3" or "hang"."""

    how: str
    answer: Any = None


def apart(function: Callable[[], Any], seconds: float, during: Callable[[int], None] | None = None) -> Ended:
    """Call `function` in a forked process and return its result, sent as JSON. `during` gets the process's id.

    The process may take MOST bytes more than it has at the fork; a larger request gets a MemoryError.
    """
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + MOST, resource.RLIM_INFINITY))
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            os.write(write, json.dumps(function()).encode())
            status = 0
        except SystemExit as done:
            status = done.code if isinstance(done.code, int) else 1
        except BaseException as error:
            os.write(write, json.dumps({"raised": type(error).__name__, "message": str(error)[:200]}).encode())
        finally:
            os._exit(status)
    os.close(write)
    try:
        if during is not None:
            during(child)
        data, deadline = b"", time.monotonic() + WAIT * seconds
        while True:
            ready, _, _ = select.select([read], [], [], 1.0)
            if not ready:
                if time.monotonic() < deadline and cpu_seconds(child) < seconds:
                    continue
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return Ended("hang")
            piece = os.read(read, 1 << 16)
            if not piece:
                break
            data += piece
    finally:
        os.close(read)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        return Ended(f"signal {-status}")
    if data:
        return Ended("answer", json.loads(data))
    return Ended(f"status {status}")


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(reset: bool = False) -> int:
    """Return the peak memory of this process in bytes. `reset` starts a new measurement (Linux)."""
    if reset:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
