r"""CRFsuite's item format: one item per line, a blank line after each sequence.

A line is the label and the attributes, separated by tabs. An attribute may have a value after a colon (``height:1.5``;
1 if it has none); a colon or a backslash in a name is written ``\:`` and ``\\``. The same goes for labels, which have
no value. Repeated attributes count as often as they occur.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import cast

from partwise.io.errors import FormatError
from partwise.io.files import Path, atomic_write, decode_text, read_bytes

Item = list[str] | dict[str, float]

_NAME = re.compile(r"(?:[^:\\]|\\[:\\])*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_items(path: Path) -> tuple[list[list[Item]], list[list[str]]]:
    """Return the items and the labels of each sequence; FormatError with the place of what is not in the format.

    An item is a list of attribute names, or a dict of names and values if a value is not 1.
    """
    return parse_items(read_bytes(path), path)


def parse_items(data: bytes, path: Path = "<input>", *, line: int = 1) -> tuple[list[list[Item]], list[list[str]]]:
    """Do what `read_items` does with bytes in memory; `path` and the number of their first line are for messages."""
    X: list[list[Item]] = []
    y: list[list[str]] = []
    begins = True  # whether a line with an item begins a sequence
    for number, raw in enumerate(decode_text(data, path, line).split("\n"), line):
        text = raw.removesuffix("\r")
        if text and begins:
            X.append([])
            y.append([])
        begins = not text
        if not text:
            continue
        fields = text.split("\t")
        if ":" not in text and "\\" not in text and all(fields):
            label, item = fields[0], cast(Item, fields[1:])
        else:
            label, item = _parse_fields(fields, path, number)
        y[-1].append(label)
        X[-1].append(item)
    return X, y


def _parse_fields(fields: list[str], path: Path, number: int) -> tuple[str, Item]:
    """Return the label and the item of a line with escapes and values."""
    found: list[tuple[str, float]] = []
    column = 1
    for k, text in enumerate(fields):

        def error(message: str, offset: int, column: int = column) -> FormatError:
            return FormatError(message, path, number, column + offset)

        quoted = _NAME.match(text)[0]  # type: ignore[index]  # it matches every text
        end = len(quoted)
        if text[end : end + 1] == "\\":
            raise error(r"a backslash is written \\, a colon \:", end)
        if not quoted:
            raise error("empty attribute" if k else "empty label", 0)
        shown = text[end + 1 :]
        if end < len(text) and not k:
            raise error(r"a label has no value; a colon in its name is written \:", end)
        if end < len(text) and not (_NUMBER.fullmatch(shown) and math.isfinite(float(shown))):
            raise error(f"{shown!r} is not a number", end + 1)
        found.append((re.sub(r"\\(.)", r"\1", quoted), float(shown) if end < len(text) else 1.0))
        column += len(text) + 1
    (label, _), *attributes = found
    if all(value == 1.0 for _, value in attributes):
        return label, [name for name, _ in attributes]
    item: dict[str, float] = {}
    for name, value in attributes:
        item[name] = item.get(name, 0.0) + value
    return label, item


def write_items(
    path: Path, X: Iterable[Iterable[Iterable[str] | Mapping[str, float | str]]], y: Iterable[Iterable[str]]
) -> None:
    """Write the items `X` and the labels `y` of each sequence.

    path: "-" is standard output, ".gz" is compressed. An item is a list of attribute names, or a dict of names and
    values (numbers, or strings, which are written ``name=value``). ValueError if the format cannot hold a name (it is
    empty, or has a tab, a line end, or a carriage return at the end of a line), or a sequence has no items.
    """
    parts = []
    for i, (items, labels) in enumerate(zip(X, y, strict=True)):
        lines = [_line(item, label, i) for item, label in zip(items, labels, strict=True)]
        if not lines:
            raise ValueError(f"sequence {i} has no items: the format cannot hold it")
        parts.append("\n".join(lines) + "\n\n")
    text = "".join(parts)
    with atomic_write(path) as file:
        file.write(("\ufeff" + text if text.startswith("\ufeff") else text).encode("utf-8"))


def _line(item: Iterable[str] | Mapping[str, float | str], label: str, number: int) -> str:
    fields = [_escape(label, number)]
    for name in item:
        value = item[name] if isinstance(item, dict) else 1
        if isinstance(value, str):
            fields.append(_escape(f"{name}={value}", number))
        elif not math.isfinite(value):
            raise ValueError(f"sequence {number}: attribute {name!r} has the value {value!r}")
        else:
            fields.append(_escape(name, number) + ("" if value == 1 else f":{float(value)!r}"))
    line = "\t".join(fields)
    if line.endswith("\r"):
        raise ValueError(f"sequence {number}: a line cannot end with a carriage return")
    return line


def _escape(name: str, number: int) -> str:
    if not isinstance(name, str) or not name or "\t" in name or "\n" in name:
        raise ValueError(f"sequence {number}: the name {name!r} cannot be written")
    return name.replace("\\", "\\\\").replace(":", "\\:")
