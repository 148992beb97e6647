"""Writes that fail: at every call of the system's, one after the other, and at every size that a file may grow to."""

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
#: The one call whose failure is no error: the folder's flush, after the file has its name and is on the disk.
AFTER = "fsync after replace"
#: Sizes at which a file can grow no more, in equal steps up to its own.
STEPS = 25


class Calls:
    """Counts calls that change a file or folder, and lets one of them fail."""

    def __init__(self, failing: int, number: int) -> None:
        self.failing, self.number, self.seen, self.name = failing, number, 0, ""
        self.renamed = False  # the last call before was a rename that was done

    def count(self, name: str) -> None:
        self.seen += 1
        if self.seen == self.failing:
            self.name = AFTER if name == "fsync" and self.renamed else name
            raise OSError(self.number, os.strerror(self.number))
        self.renamed = name == "replace"

    def patch(self) -> None:
        """For good: the process is one that was forked for it."""
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
    """Files and folders by their paths."""
    return {str(each.relative_to(folder)): b"" for each in folder.rglob("*")} | contents(folder)


def failing_write(number: int, folder: Path) -> tuple[str, str]:
    kind, mode = KINDS[number // len(MODES)], MODES[number % len(MODES)]
    writer = writers(folder)[kind]
    if kind != "partition":
        prepare(kind, writer)
    before = everything(folder)
    return sizes(kind, writer, folder, before) if mode == "sizes" else every_call(writer, folder, before, mode)


def prepare(kind: str, writer: Writer) -> None:
    """The old file, and what the new one is made from."""
    if kind == "dual blocks":
        writers(writer.path.parent)["partition"].write(0)
        os.replace(writer.path.parent / "parts", writer.path)
        return
    writer.write(1)
    writer.write(0)


def every_call(writer: Writer, folder: Path, before: dict[str, bytes], name: str) -> tuple[str, str]:
    """The first call fails, then the second, ... until all that there are have failed."""
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
            gc.collect()  # as at the end of a process: files of a run go with it
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
        if writer.path.name not in before:  # a partition is written once
            shutil.rmtree(writer.path)
        before = everything(folder)


def sizes(kind: str, writer: Writer, folder: Path, before: dict[str, bytes]) -> tuple[str, str]:
    """Files may grow to a size and no more, as on a disk that becomes full."""
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
    """Bytes of the largest file that is written."""
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
