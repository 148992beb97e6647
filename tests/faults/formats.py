"""Readers of files, tried on mutated files: real files from PARTWISE_DATA, or small ones where it has none.

An error must name the file that is refused, and the line where the format has lines. A file that is accepted must be
usable: `Format.use` writes it and reads it again, trains on it or predicts with it, and raises AssertionError where a
result shows that the object is wrong.
"""

from __future__ import annotations

import gzip
import os
import random
import re
from functools import cache, partial
from pathlib import Path

from .formatcases import FORMATS
from .mutations import mutated
from .rows import TESTS, Row

#: Words of errors about a file as a whole, in any format, which name no line.
WHOLE = ("damaged gzip file", "bytes of gzip unpack to more")
DATA = Path(os.environ.get("PARTWISE_DATA") or TESTS.parents[1] / "shared" / "data")
LINE = re.compile(r"\bline \d")


def real_place(name: str) -> Path | None:
    """Return the real file whose beginning is mutated, or None if there is none."""
    return next((path for path in (DATA / place for place in FORMATS[name].places) if path.is_file()), None)


@cache
def text_of(name: str) -> bytes:
    """Return the beginning of the real file, or the small example file."""
    format, path = FORMATS[name], real_place(name)
    if path is None:
        return format.make()
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data: bytes = file.read(3000)
    return data[: data.rfind(format.end) + len(format.end.rstrip(b"("))]


def source_of(name: str) -> str:
    """Name the mutated file, for the table."""
    path = real_place(name)
    return f"beginning of {path.relative_to(DATA)}" if path is not None else "a small file"


def good_outcomes(lines: bool) -> tuple[str, ...]:
    """Return the correct outcomes of a format whose errors name lines (or do not)."""
    return GOOD if not lines else tuple(outcome for outcome in GOOD if outcome != "error with its file")


#: Correct outcomes of any format.
GOOD = ("error with file:line", "error about the whole file", "error with its file", "read")


def mutated_file(name: str, number: int, folder: Path) -> tuple[str, str]:
    format, rng = FORMATS[name], random.Random(f"{name} {number}")
    path = folder / f"file{format.suffix}"
    fsync, os.fsync = os.fsync, lambda _: None
    try:
        if number % 100 == 0:
            path.write_bytes(text_of(name))
            outcome, detail = judged(name, path, 1)
            if outcome != "read":
                return f"as it was: {outcome}", detail
        data = mutated(rng, text_of(name), binary=format.binary) if format.forge is None else format.forge(rng)
        path.write_bytes(gzip.compress(data, 1, mtime=0) if format.packed and number % 20 == 0 else data)
        return judged(name, path, number)
    finally:
        os.fsync = fsync


def judged(name: str, path: Path, number: int) -> tuple[str, str]:
    """Return the outcome of reading a file and using what was read."""
    format = FORMATS[name]
    try:
        format.use(format.read(path), path, number)
    except format.errors as error:
        return refusal(error, path, format.lines, format.whole)
    except AssertionError as error:
        return "read, and wrong", f"{name} {number}: {error}"
    return "read", ""


def refusal(error: ValueError, path: Path, lines: bool, whole: tuple[str, ...]) -> tuple[str, str]:
    """Return the outcome of a refusal: whether the message names the file, and the line where there is one."""
    if getattr(error, "path", None) != str(path) and not str(error).startswith(f"{path}: "):
        return "error without its file", str(error)
    if not lines:
        return "error with its file", ""
    if getattr(error, "line", None) is not None or LINE.search(str(error)):
        return "error with file:line", ""
    expected = any(words in str(error) for words in (*WHOLE, *whole))
    return ("error about the whole file" if expected else "error without its line"), str(error)


ROWS = [
    Row(
        f"format-{name}",
        f"mutated files: {format.title or name} ({source_of(name)})",
        f"{'error with file:line' if format.lines else 'error that names the file'} or a valid read; 0 crashes",
        20_000,
        15,
        partial(mutated_file, name),
        good_outcomes(format.lines),
    )
    for name, format in FORMATS.items()
]
