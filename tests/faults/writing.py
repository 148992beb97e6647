"""Writes that fail: at every size that a file may grow to, and at every call of the system's."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from checkpointcases import saved_run
from partitioncases import CASES

from partwise import partitions
from partwise.io import atomic_write
from partwise.solvers import checkpoint

from .killed import two_models
from .rows import Row, apart

KINDS = ("model", "checkpoint", "text", "gzip", "partition")
CALLS = ("open", "fsync", "replace")
#: Steps of the size at which a write fails.
STEPS = 40


def prepared(kind: str, folder: Path) -> tuple[Path, Callable[[], Any]]:
    """A file that is there already, and what writes another one in its place."""
    path = folder / "target"
    if kind == "model":
        old, new = two_models()
        old.save(path)
        return path, partial(new.save, path)
    if kind == "checkpoint":
        _, kept = saved_run("lbfgs", folder)
        return kept, partial(checkpoint.write, kept, checkpoint.read(kept))
    if kind == "partition":
        case = CASES["names"]
        return path, lambda: partitions.write(path, case.make(), case.blocks(), batch_size=2000) and None
    path = folder / ("target.gz" if kind == "gzip" else "target")
    path.write_text("old")

    def write() -> None:
        with atomic_write(path, "w") as file:
            for k in range(2000):
                file.write(f"line {k} {k * 7919 % 1000}\n")

    return path, write


def failing_write(number: int, folder: Path) -> tuple[str, str]:
    kind, step = KINDS[number % len(KINDS)], number // len(KINDS)
    _, write = prepared(kind, folder)
    before = {each.name: each.read_bytes() for each in folder.rglob("*") if each.is_file()}

    def limited() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if step < len(CALLS):
            original = getattr(os, CALLS[step])

            def fail(*args: Any, **options: Any) -> Any:
                reading = CALLS[step] == "open" and not args[1] & os.O_WRONLY
                if reading:
                    return original(*args, **options)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            setattr(os, CALLS[step], fail)
        else:
            size = 150 * (step - len(CALLS)) ** 2  # up to 200 kB
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            write()
        except OSError as error:
            return f"OSError {error.errno}"
        return "written"

    ended = apart(limited, 60)
    if ended.how != "answer" or not isinstance(ended.answer, str):
        return "another error", f"{kind}, step {step}: {ended}"
    after = {each.name: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    if ended.answer == "written":
        left = [name for name in after if name.startswith(".") or name.endswith(".tmp")]
        return ("temporary file left", str(left)) if left else ("small enough, written", kind)
    if after != before:
        return "not as before", f"{kind}, step {step}: {sorted(after)}"
    return "OSError, all as before", kind


ROWS = [
    Row(
        "disk-full",
        "disk full: writes fail at 40 sizes and in `open`, `fsync`, `replace` (models, checkpoints, text, gzip, "
        "partitions)",
        "OSError, old file intact, no temporary file left",
        (STEPS + len(CALLS)) * len(KINDS),
        30,
        failing_write,
        ("OSError, all as before", "small enough, written"),
    ),
]
