"""Output of commands: JSON, tables, and checks, before hours of work, that files can be written."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from partwise.cli.errors import UserError

#: Characters of the widest column of a table.
WIDEST = 100


def print_json(value: object) -> None:
    """Write one JSON object to standard output."""
    click.echo(json_line(value), nl=False)


def json_line(value: object) -> str:
    """Return one JSON object on one line; numbers that JSON does not know become null."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False) + "\n"
    # A file's name may have bytes that are not UTF-8; Python's escape for such a byte is valid in JSON, too.
    return text.encode("utf-8", "backslashreplace").decode()


def plain(value: object) -> object:
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def table(rows: Sequence[Sequence[str]], left: int = 1, indent: str = "") -> str:
    """Return columns, the first `left` of them aligned to the left, the others to the right."""
    # Longer cells stick out: if every line were as long as the longest label, many labels could fill the memory.
    widths = [min(max(map(len, column)), WIDEST) for column in zip(*rows, strict=True)]
    lines = ([*map(str.ljust, row[:left], widths), *map(str.rjust, row[left:], widths[left:])] for row in rows)
    return "\n".join((indent + "  ".join(cells)).rstrip() for cells in lines)


def check_outputs(*paths: str | None, inputs: Iterable[str | None] = ()) -> None:
    """Raise UserError for outputs that cannot be written, are the same file, an input, or a file in an input folder."""
    seen: set[str] = set()
    named = list(inputs)
    if named.count("-") > 1:
        raise UserError("standard input (-) can be read only once, but is given for two inputs")
    sources = {os.path.realpath(path) for path in named if path not in (None, "-")}
    for path in paths:
        if path is None:
            continue
        real = "-" if path == "-" else os.path.realpath(path)
        if real in seen:
            raise UserError(f"{path}: two outputs to the same file")
        seen.add(real)
        if path == "-":
            continue
        if real in sources or (os.path.exists(real) and os.path.dirname(real) in sources):
            raise UserError(f"{path}: is an input, which would be overwritten")
        if os.path.isdir(path):
            raise UserError(f"{path}: is a folder")
        if os.path.exists(path) and not os.path.isfile(path):
            continue  # a device or a pipe: writing will tell
        folder = Path(real).parent
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({(error.strerror or str(error)).lower()})") from None


@contextmanager
def removed_on_failure(path: str | None) -> Iterator[None]:
    """Remove a file that the block wrote if the block fails; a file that was there before is left."""
    there = path is not None and os.path.exists(path)
    try:
        yield
    except BaseException:
        if path is not None and not there:
            with suppress(OSError):
                os.unlink(path)
        raise


def warn_blank(columns: Collection[str], where: str | None) -> None:
    """Warn that an input lacks columns that the model was trained with."""
    if columns:
        named = f"column {next(iter(columns))} is" if len(columns) == 1 else f"columns {', '.join(sorted(columns))} are"
        click.echo(f"warning: {where}: {named} blank (_), unlike in training: expect poor answers", err=True)


def resources(begin: float) -> dict[str, float]:
    """Return the fields of what a command took since `begin`."""
    return {"total_seconds": time.perf_counter() - begin, "peak_memory": peak_memory()}


def peak_memory() -> int:
    """Return the most memory that this process has used, in bytes."""
    status = Path("/proc/self/status")
    # in a child process Linux's getrusage counts the parent's peak, too
    if status.exists() and (found := re.search(r"^VmHWM:\s*(\d+)", status.read_text(), re.MULTILINE)):
        return int(found[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
