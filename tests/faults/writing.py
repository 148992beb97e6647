"""Writes that fail: at each system call in turn, and at each of several limits on the size of a file."""

from __future__ import annotations

import builtins
import errno
import gc
import io
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from partwise.io import files

from .rows import Row, apart, contents
from .writers import Writer, writers

KINDS = tuple(writers(Path()))
MODES = ("ENOSPC", "EIO", "sizes")
#: The only call that may fail without an error: syncing the folder, when the new file is already in its place.
AFTER = "fsync after replace"
#: Number of size limits that are tried, in equal steps up to the size of the file.
STEPS = 25


class Calls:
    """Counts the calls that change a file or folder, and makes one of them fail."""

    def __init__(self, failing: int, number: int) -> None:
        self.failing, self.number, self.seen, self.name = failing, number, 0, ""
        self.renamed = False  # whether the last call was a rename that succeeded

    def count(self, name: str) -> None:
        self.seen += 1
        if self.seen == self.failing:
            self.name = AFTER if name == "fsync" and self.renamed else name
            raise OSError(self.number, os.strerror(self.number))
        self.renamed = name == "replace"

    def patch(self) -> None:
        """Replace the system's functions for good: this process was forked for one trial."""
        calls, system_open = self, os.open

        class File(io.FileIO):
            def write(self, data: Any, /) -> int | None:
                calls.count("write")
                return super().write(data)

            def truncate(self, size: int | None = None, /) -> int:
                calls.count("truncate")
                return super().truncate(size)

            def close(self) -> None:
                closed = self.closed
                super().close()
                if not closed:
                    calls.count("close")

        def open_file(path: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
            if mode != "wb":
                return builtins.open(path, mode, *more, **options)
            calls.count("open a file")
            return io.BufferedWriter(File(path, "w"))

        def open_(path: Any, flags: int, *more: Any, **options: Any) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR):
                calls.count("open")
            return system_open(path, flags, *more, **options)

        def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> Any:
                calls.count(name)
                return function(*args, **options)

            return call

        files.open = open_file  # type: ignore[attr-defined]
        os.open = open_
        for name in ("fsync", "replace", "mkdir"):
            setattr(os, name, counted(name, getattr(os, name)))


def everything(folder: Path) -> dict[str, bytes]:
    """Return files and folders by relative path."""
    return {str(each.relative_to(folder)): b"" for each in folder.rglob("*")} | contents(folder)


def failing_write(number: int, folder: Path) -> tuple[str, str]:
    kind, mode = KINDS[number // len(MODES)], MODES[number % len(MODES)]
    writer = writers(folder)[kind]
    if kind != "partition":
        prepare(kind, writer)
    before = everything(folder)
    return sizes(kind, writer, folder, before) if mode == "sizes" else every_call(writer, folder, before, mode)


def prepare(kind: str, writer: Writer) -> None:
    """Write the old file, and prepare what the new file is made from."""
    if kind == "dual blocks":
        writers(writer.path.parent)["partition"].write(0)
        os.replace(writer.path.parent / "parts", writer.path)
        return
    writer.write(1)
    writer.write(0)


def every_call(writer: Writer, folder: Path, before: dict[str, bytes], name: str) -> tuple[str, str]:
    """Make the first call fail, then the second, and so on until every call has failed once."""
    failed, k = 0, 0
    while True:
        k += 1
        calls = Calls(k, getattr(errno, name))

        def write(calls: Calls = calls) -> list[str]:
            calls.patch()
            told = ["written", "", ""]
            try:
                writer.write(1)
            except OSError as error:
                told = ["OSError", str(error.errno), ""]
            gc.collect()  # as at the end of a process, so that the run's temporary files are removed
            return [*told[:2], calls.name]

        ended = apart(write, 60)
        if ended.how != "answer" or not isinstance(ended.answer, list):
            return "another error", f"call {k}: {ended}"
        told, number, call = ended.answer
        detail = f"{writer.path.name}, call {k} ({call}): {told} {number}"
        after = everything(folder)
        left = [each for each in after if Path(each).name.startswith((".", "duals-")) or each.endswith(".tmp")]
        if left:
            return "temporary file left", f"{detail}: {left}"
        if told == "OSError":
            if number != str(getattr(errno, name)):
                return "another error", detail
            if after != before:
                return "not as before", detail
            failed += 1
            continue
        if call and call != AFTER:
            return "written in spite of an error", detail
        writer.read(writer.path)
        if not call and not failed:
            return "no call failed", detail
        if not call:
            return "OSError, all as before", f"{writer.path.name}: {failed} calls"
        if writer.path.name not in before:  # the writer of partitions does not overwrite
            shutil.rmtree(writer.path)
        before = everything(folder)


def sizes(kind: str, writer: Writer, folder: Path, before: dict[str, bytes]) -> tuple[str, str]:
    """Limit the size to which files may grow, as on a disk that becomes full."""
    full = whole_size(kind)

    def limited(size: int) -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        told = "written"
        try:
            writer.write(1)
        except OSError as error:
            told = f"OSError {error.errno}"
        gc.collect()
        return told

    for step in range(STEPS):
        size = full * step // STEPS
        ended = apart(partial(limited, size), 60)
        if ended.how != "answer" or ended.answer != f"OSError {errno.EFBIG}":
            return "another error", f"{kind}, {size} of {full} bytes: {ended}"
        if everything(folder) != before:
            return "not as before", f"{kind}, {size} of {full} bytes: {sorted(everything(folder))}"
    return "OSError, all as before", f"{kind}: {STEPS} sizes"


def whole_size(kind: str) -> int:
    """Return the bytes of the largest file that is written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = writers(folder)[kind]
        if kind != "partition":
            prepare(kind, writer)
        before = everything(folder)
        writer.write(1)
        return max(len(data) for name, data in everything(folder).items() if before.get(name) != data)


ROWS = [
    Row(
        "disk-full",
        "disk full or broken: each call that opens, writes, closes, flushes or renames fails in turn, and files end at "
        f"{STEPS} sizes ({', '.join(KINDS)})",
        "OSError, old file intact, no temporary file left; the folder's flush after the rename is an exception: the "
        "new file is whole",
        len(KINDS) * len(MODES),
        8,
        failing_write,
        ("OSError, all as before",),
        200,
    ),
]
