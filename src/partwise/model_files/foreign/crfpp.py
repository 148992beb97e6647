"""Text models of CRF++ (``crf_learn -t``): chains with templates.

    version: 100
    cost-factor: 1
    maxid: number of weights
    xsize: number of columns
                                      a blank line after each part
    labels                            one per line
    templates                         U lines, then B lines
    number name                       of a U line: one weight per label from this number on; of a B line one per pair
    weights                           one per line

Scores are cost-factor times sums of weights. Numbers lie below `maxid`, and no two names share a weight.
"""

import math
import re
from itertools import islice, takewhile

import numpy as np

from partwise.features.template import Template
from partwise.model_files.container import Json
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.foreign.linear_chain import LinearChain, Tool, text_limit
from partwise.support.arrays import Floats, Ints

_VERSION = "100"
_MACRO = re.compile(r"%x\[(-?[0-9]{1,3}),([0-9]{1,4})\]")
_MAXID = re.compile(rb"^maxid: ([0-9]{1,15})\r?$", re.MULTILINE)
_FARTHEST = 8


def parse(data: bytes) -> LinearChain:
    """Return the chain of a file's bytes; ModelFormatError with the line if anything is wrong with it."""
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error("is not UTF-8: convert the file first (iconv)", line) from None
    return _Reader(lines).chain()


def _error(message: str, line: int) -> ModelFormatError:
    return ModelFormatError(f"line {line}: {message}")


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines, self.at = lines, 0

    def chain(self) -> LinearChain:
        header = self._header()
        labels, label_line = self._part("labels")
        if len(labels) < 2 or len(set(labels)) != len(labels):
            raise _error("has fewer than two labels, or one of them twice", label_line)
        template = self._template(header["xsize"])
        names, starts, name_line = self._names()
        weights = self._weights(header["maxid"]) * header["cost-factor"]
        n = len(labels)
        edge = np.array([name[0] == "B" for name in names], dtype=bool)
        sizes = np.where(edge, n * n, n)
        order = np.argsort(starts, kind="stable")
        ends = (starts + sizes)[order]
        wrong = ends > len(weights)
        wrong[:-1] |= ends[:-1] > starts[order][1:]
        if wrong.any():
            k = int(order[np.flatnonzero(wrong)[0]])
            raise _error(f"{names[k][:60]!r} has weights that are others' or none", name_line + k)
        # Weights that are 0, or do not belong to a name, are left out.
        used = np.flatnonzero(weights) if names else np.empty(0, dtype=np.int64)
        owner = order[np.searchsorted(starts[order], used, side="right") - 1]
        within = used - starts[owner]
        some = (within >= 0) & (within < sizes[owner])
        used, owner, within = used[some], owner[some], within[some]
        # The first B line without macros is on every edge.
        plain = next((line for line in template.text.split("\n") if line[:1] == "B" and "%" not in line), None)
        return LinearChain.of_names(labels, names, ~edge[owner], owner, within, weights[used], template, plain)

    def _part(self, what: str) -> tuple[list[str], int]:
        """Return the lines up to the next blank one, and the number of the first one."""
        begin = self.at
        found = list(takewhile(bool, (line.removesuffix("\r") for line in islice(self.lines, begin, None))))
        self.at = begin + len(found) + 1
        if self.at > len(self.lines):
            raise _error(f"the file ends in its {what}", len(self.lines))
        return found, begin + 1

    def _header(self) -> dict[str, Json]:
        found: dict[str, Json] = {}
        lines, first = self._part("header")
        for number, line in enumerate(lines, first):
            name, colon, text = line.partition(": ")
            if not colon or name in found:
                raise _error("is not a line of a header", number)
            try:
                found[name] = text if name == "version" else float(text) if name == "cost-factor" else int(text)
            except ValueError:
                raise _error(f"{name} is not a number: {text[:40]!r}", number) from None
        if found.get("version") != _VERSION:
            raise _error(f"is a model of CRF++ of version {found.get('version')!r:.40}: {_VERSION} is known", 1)
        if set(found) != {"version", "cost-factor", "maxid", "xsize"}:
            raise _error("the header must say version, cost-factor, maxid and xsize", 1)
        if not np.isfinite(found["cost-factor"]) or found["maxid"] < 1 or not 1 <= found["xsize"] < 10_000:
            raise _error("the header has numbers that make no sense", 1)
        return found

    def _template(self, n_columns: int) -> Template:
        lines, first = self._part("templates")
        for number, line in enumerate(lines, first):
            if line[0] not in "UB":
                raise _error("a template starts with U or B", number)
            if "%" in _MACRO.sub("", line):
                raise _error("has a macro that CRF++ does not have", number)
            for row, column in _MACRO.findall(line):
                if abs(int(row)) > _FARTHEST or int(column) >= n_columns:
                    raise _error(f"looks at row {row}, column {column} of {n_columns}", number)
        if not lines:
            raise _error("has no templates", first)
        return Template("\n".join(lines) + "\n")

    def _names(self) -> tuple[list[str], Ints, int]:
        lines, first = self._part("names")
        names, starts = [], np.zeros(len(lines), dtype=np.int64)
        for k, line in enumerate(lines):
            start, _, name = line.partition(" ")
            if not start.isascii() or not start.isdigit() or len(start) > 15 or name[:1] not in ("U", "B"):
                raise _error("a feature is a number and a name that starts with U or B", first + k)
            starts[k] = int(start)
            names.append(name)
        if len(set(names)) != len(names):
            raise _error("a name occurs twice", first)
        return names, starts, first

    def _weights(self, expected: int) -> Floats:
        lines = self.lines[self.at :]
        while lines and not lines[-1].strip():
            lines.pop()
        if len(lines) != expected:
            raise _error(f"has {len(lines)} weights, its header says {expected}", self.at + len(lines))
        found: list[float] = []
        for number, line in enumerate(lines, self.at + 1):
            try:
                found.append(float(line))
            except ValueError:
                raise _error(f"is not a weight: {line[:40]!r}", number) from None
            if not math.isfinite(found[-1]):
                raise _error("has a weight that is not finite", number)
        return np.array(found)


TOOL = Tool("CRF++", b"version: ", "=", text_limit(_MAXID), parse)
