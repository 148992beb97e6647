"""Models of Wapiti: chains with patterns. Text with lengths in bytes, so that names may hold anything.

    #mdl#TYPE#N                  2: CRF, 1: MEMM, 0: maximum entropy; N: number of weights that are not zero
    #rdr#PATTERNS/COLUMNS/AUTO
    length:pattern,              one per line
    #qrk#LABELS
    length:label,
    #qrk#NAMES
    length:name,                 of attributes: u... has one weight per label, b... one per pair of labels, *... both
    number=weight                by the order of names; hexadecimal floats

Older files have no TYPE and no AUTO. Without patterns the words of a line are the names themselves.
"""

import math
import re

import numpy as np

from partwise.features.patterns import Patterns, text_of
from partwise.io.errors import FormatError
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.foreign.linear_chain import LinearChain, Tool, text_limit
from partwise.support.arrays import Floats, Ints

_HEAD = re.compile(rb"#mdl#(?:([0-9]{1,3})#)?([0-9]{1,15})\n")
_READER = re.compile(rb"#rdr#([0-9]{1,9})/([0-9]{1,9})(?:/([0-9]{1,3}))?\n")
_TABLE = re.compile(rb"#qrk#([0-9]{1,15})\n")
_LENGTH = re.compile(rb"([0-9]{1,9}):")
_WEIGHT = re.compile(rb"([0-9]{1,18})=([^\n]{1,60})\n?")


def parse(data: bytes) -> LinearChain:
    """Return the chain of a file's bytes; ModelFormatError with the line if anything is wrong with it."""
    return _Reader(data).chain()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def chain(self) -> LinearChain:
        kind, n_weights = self._head(_HEAD, "a header #mdl#TYPE#N")
        if kind is not None and int(kind) == 1:
            raise self._error("is a MEMM, whose labels are normalised one after another: train a CRF (-T crf)")
        n_patterns, _, automatic = self._head(_READER, "a reader #rdr#...")
        if automatic is not None and int(automatic):
            raise self._error("is a maximum entropy model of single lines (wapiti train --me): not available")
        patterns = [text_of(pattern) for pattern in self._strings(int(n_patterns))]
        if any("\n" in pattern or not pattern for pattern in patterns):
            raise self._error("has a pattern of several lines, or of none")
        try:
            template = Patterns("\n".join(patterns) + "\n", path="<patterns>") if patterns else None
        except FormatError as error:
            raise self._error(f"has a wrong pattern: {error.message}") from None
        labels = self._table("labels")
        if len(labels) < 2:
            raise self._error("has fewer than two labels")
        names = self._table("names")
        return self._chain(labels, names, template, int(n_weights))

    def _error(self, message: str) -> ModelFormatError:
        return ModelFormatError(f"line {self.data.count(10, 0, self.at) + 1}: {message}")

    def _head(self, expected: re.Pattern[bytes], what: str) -> tuple[bytes, ...]:
        found = expected.match(self.data, self.at)
        if found is None:
            raise self._error(f"expected {what}")
        self.at = found.end()
        return found.groups()

    def _strings(self, count: int) -> list[bytes]:
        found = []
        for _ in range(count):
            match = _LENGTH.match(self.data, self.at)
            if match is None:
                raise self._error("expected a string as length:string,")
            begin = match.end()
            end = begin + int(match[1])
            if self.data[end : end + 2] != b",\n":
                raise self._error("a string is cut off or of another length")
            found.append(self.data[begin:end])
            self.at = end + 2
        return found

    def _table(self, what: str) -> list[str]:
        (count,) = self._head(_TABLE, f"a table of {what} #qrk#N")
        found = [text_of(string) for string in self._strings(int(count))]
        if len(set(found)) != len(found):
            raise self._error(f"has one of its {what} twice")
        return found

    def _chain(self, labels: list[str], names: list[str], template: Patterns | None, n_weights: int) -> LinearChain:
        n, known = len(labels), {"u": 1, "b": 2, "*": 3}
        kinds = np.array([known.get(name[:1], 0) for name in names], dtype=np.int64)
        if not kinds.all():
            raise self._error(f"the name {names[int(np.argmin(kinds))][:40]!r} starts with none of u, b, *")
        on_nodes, on_edges = kinds & 1, kinds >> 1
        starts = np.concatenate([[0], np.cumsum(on_nodes * n + on_edges * n * n)])
        numbers, weights = self._weights(n_weights, int(starts[-1]))
        owner = np.searchsorted(starts, numbers, side="right") - 1
        within = numbers - starts[owner]
        node = (on_nodes[owner] > 0) & (within < n)
        cells = within - np.where(on_nodes[owner] > 0, n, 0)
        plain = None
        if template is not None and template.transitions:  # the first pattern b... without macros is on every edge
            plain = next(line for line in template.text.split("\n") if line[:1] == "b" and "%" not in line)
        return LinearChain.of_names(labels, names, node, owner, np.where(node, within, cells), weights, template, plain)

    def _weights(self, count: int, size: int) -> tuple[Ints, Floats]:
        found: dict[int, float] = {}
        for _ in range(count):
            match = _WEIGHT.match(self.data, self.at)
            if match is None:
                raise self._error("expected a weight as number=value")
            try:
                text = match[2].decode("ascii").strip()
                value = float.fromhex(text) if "0x" in text else float(text)
            except (ValueError, OverflowError):
                raise self._error("has a weight that is not a number") from None
            if int(match[1]) >= size or not math.isfinite(value):
                raise self._error(f"has a weight that is not finite, or of no feature ({size} there are)")
            found[int(match[1])] = value
            self.at = match.end()
        if self.data[self.at :].strip():
            raise self._error(f"has more than {count} weights, or something else after them")
        if len(found) != count:
            raise self._error("has a weight twice")
        return np.fromiter(found, np.int64, count), np.fromiter(found.values(), np.float64, count)


TOOL = Tool("Wapiti", b"#mdl#", "=", text_limit(_HEAD), parse)
