r"""CRFsuite's item format: one item per line, a blank line after each sequence.

A line is the label and the attributes, separated by tabs. An attribute may have a value after a colon (``height:1.5``;
1 if it has none); a colon or a backslash in a name is written ``\:`` and ``\\``. The same goes for labels, which have
no value. Repeated attributes count as often as they occur.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from partwise.io.errors import FormatError
from partwise.io.files import Path, atomic_write, decode_text, read_bytes

Item = list[str] | dict[str, float]

_NAME = re.compile(r"(?:[^:\\]|\\[:\\])*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_items(path: Path) -> tuple[list[list[Item]], list[list[str]]]:
    """Read sequences of items.

    Returns
    -------
    X : for each sequence its items: a list of attribute names, or a dict of names and values where a value is not 1
    y : for each sequence its labels

    Raises
    ------
    FormatError
        With the place of what is not in the format.
    """
    return parse_items(read_bytes(path), path)


def parse_items(data: bytes, path: Path = "<input>", *, line: int = 1) -> tuple[list[list[Item]], list[list[str]]]:
    """Do what `read_items` does with bytes in memory; `path` and the number of their first line are for messages."""
    X: list[list[Item]] = []
    y: list[list[str]] = []
    items: list[Item] = []
    labels: list[str] = []
    for number, raw in enumerate(decode_text(data, path, line).split("\n"), line):
        text = raw.removesuffix("\r")
        if not text:
            if items:
                X.append(items)
                y.append(labels)
                items, labels = [], []
            continue
        fields = text.split("\t")
        if ":" not in text and "\\" not in text and all(fields):
            labels.append(fields[0])
            items.append(fields[1:])
            continue
        parser = _Fields(path, number, fields)
        labels.append(parser.label())
        items.append(parser.attributes())
    if items:
        X.append(items)
        y.append(labels)
    return X, y


class _Fields:
    """The fields of one line, which have escapes and values."""

    def __init__(self, path: Path, number: int, fields: list[str]) -> None:
        self.path, self.number, self.fields = path, number, fields

    def _error(self, message: str, field: int, offset: int = 0) -> FormatError:
        column = sum(len(text) + 1 for text in self.fields[:field]) + offset + 1
        return FormatError(message, self.path, self.number, column)

    def label(self) -> str:
        name, colon = self._name(0)
        if colon is not None:
            raise self._error(r"a label has no value; a colon in its name is written \:", 0, colon)
        return name

    def attributes(self) -> Item:
        found = [self._attribute(field) for field in range(1, len(self.fields))]
        if all(value == 1.0 for _, value in found):
            return [name for name, _ in found]
        values: dict[str, float] = {}
        for name, value in found:
            values[name] = values.get(name, 0.0) + value
        return values

    def _attribute(self, field: int) -> tuple[str, float]:
        name, colon = self._name(field)
        if colon is None:
            return name, 1.0
        text = self.fields[field][colon + 1 :]
        if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
            raise self._error(f"{text!r} is not a number", field, colon + 1)
        return name, float(text)

    def _name(self, field: int) -> tuple[str, int | None]:
        """Return the name without escapes, and the place of the colon after it, if there is one."""
        text = self.fields[field]
        quoted = _NAME.match(text)[0]  # type: ignore[index]  # it matches every text
        end = len(quoted)
        if text[end : end + 1] == "\\":
            raise self._error(r"a backslash is written \\, a colon \:", field, end)
        if not quoted:
            raise self._error("empty label" if field == 0 else "empty attribute", field)
        return re.sub(r"\\(.)", r"\1", quoted), end if end < len(text) else None


def write_items(
    path: Path, X: Iterable[Iterable[Iterable[str] | Mapping[str, float | str]]], y: Iterable[Iterable[str]]
) -> None:
    """Write sequences of items.

    Parameters
    ----------
    path : the file; "-" is standard output, ".gz" is compressed
    X : for each sequence its items: lists of attribute names, or dicts of names and values (numbers, or strings,
        which are written ``name=value``)
    y : for each sequence its labels

    Raises
    ------
    ValueError
        If the format cannot hold a name (it is empty, or has a tab, a line end, or a carriage return at the end of a
        line), or a sequence has no items.
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
    if isinstance(item, dict):
        for name, value in item.items():
            if isinstance(value, str):
                fields.append(_escape(f"{name}={value}", number))
            elif not math.isfinite(value):
                raise ValueError(f"sequence {number}: attribute {name!r} has the value {value!r}")
            else:
                suffix = "" if value == 1 else f":{float(value)!r}"
                fields.append(_escape(name, number) + suffix)
    else:
        fields += [_escape(name, number) for name in item]
    line = "\t".join(fields)
    if line.endswith("\r"):
        raise ValueError(f"sequence {number}: a line cannot end with a carriage return")
    return line


def _escape(name: str, number: int) -> str:
    if not isinstance(name, str) or not name or "\t" in name or "\n" in name:
        raise ValueError(f"sequence {number}: the name {name!r} cannot be written")
    return name.replace("\\", "\\\\").replace(":", "\\:")
