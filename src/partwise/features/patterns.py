r"""Patterns of Wapiti: from the columns of a sentence to the attributes of its tokens, with Wapiti's syntax.

    u:x=%x[-1,0]            an attribute: the cell one token to the left, first column
    b                       weights for pairs of neighbouring labels
    *:%x[0,1]               both, for each value of the macro
    u:%t[0,0,"^\u"]         "true" or "false": whether a regular expression matches the cell
    u:%m[0,0,".?.?$"]       the part of the cell that it matches, maybe nothing
    u:%X[@1,0]              the first token's cell (@-1: the last one's), in lower case, as are %T and %M

The attribute is the line with its macros replaced. Past the sentence's ends a cell is _x-1, ..., _x-4, then _x-#, and
_x+1, ..., _x+#. As in Wapiti, patterns work on bytes: a character that a match cuts leaves single bytes, which are
written as characters of a private area (U+F780 to U+F7FF).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from partwise._core import CodedColumn, Sentences
from partwise.features.template import Piece, Template
from partwise.io.errors import FormatError
from partwise.support.arrays import pointers

_PLACE = re.compile(r"\[(@?)[ \t]*([+-]?(?:0|[1-9][0-9]{0,3})),[ \t]*(0|[1-9][0-9]{0,3})")
_OUTSIDE = [f"_x-{k}" for k in "1234#"] + [f"_x+{k}" for k in "1234#"]
#: Most characters and classes of a regular expression, which limit the depth of recursion in a match.
MOST_ITEMS = 200


def text_of(data: bytes) -> str:
    """Decode UTF-8; invalid bytes become characters of a private area."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        escaped = data.decode("utf-8", "surrogateescape")
        return "".join(chr(ord(c) - 0xDC00 + 0xF700) if "\udc80" <= c <= "\udcff" else c for c in escaped)


@dataclass(frozen=True)
class Patterns(Template):
    """Patterns of Wapiti; `text` has one per line."""

    dialect: ClassVar[str] = "wapiti"
    edge_prefixes: ClassVar[tuple[str, ...]] = ("b", "*")
    edge_only_prefixes: ClassVar[tuple[str, ...]] = ("b",)

    def __post_init__(self) -> None:
        lines: list[tuple[bool, list[Piece]]] = []
        places: dict[Any, int] = {}
        transitions = False
        for number, line in enumerate(self.text.split("\n"), 1):
            if not line:
                continue
            if line[0] not in "ub*":
                raise FormatError("a pattern starts with u, b or *", self.path, number)
            try:
                pieces = _pieces(line, places)
            except ValueError as error:
                raise FormatError(str(error), self.path, number) from None
            if line[0] == "b" and not transitions and all(isinstance(piece, str) for piece in pieces):
                transitions = True
                continue
            lines.append((line[0] == "b", pieces))
        for name, value in (("_lines", lines), ("_sources", list(places)), ("transitions", transitions)):
            object.__setattr__(self, name, value)

    @property
    def edges(self) -> bool:
        return any(edge or str(pieces[0]).startswith("*") for edge, pieces in self._lines)

    def _columns(self, sentences: Sentences) -> list[CodedColumn]:
        lengths = sentences.lengths
        start = np.repeat(pointers(lengths)[:-1], lengths)
        stop, here = start + np.repeat(lengths, lengths), np.arange(len(start))
        plain: dict[int, tuple[list[str], Any]] = {}
        found = []
        for column, macro, (offset, absolute, expression, lower) in self._sources:
            if column not in plain:
                coded = CodedColumn.of(sentences, column)
                plain[column] = coded.names(), coded.codes
            names, codes = plain[column]
            values = [_value(name, macro, expression, lower) for name in (*names, *_OUTSIDE)]
            place = here + offset
            if absolute:
                place = start + offset - 1 if offset >= 0 else stop + offset
            inside = codes[np.clip(place, 0, len(codes) - 1)]
            chosen = np.where(place < stop, inside, len(names) + 5 + np.minimum(place - stop, 4))
            chosen = np.where(place < start, len(names) + np.minimum(start - place - 1, 4), chosen)
            found.append(CodedColumn.from_list(np.array(values, dtype=object)[chosen].tolist()))
        return found


def _pieces(line: str, places: dict[Any, int]) -> list[Piece]:
    """Return the texts and cells of a line; ValueError if a macro is malformed."""
    pieces: list[Piece] = []
    at = 0
    while at < len(line):
        end = line.find("%", at)
        if end != at:
            end = len(line) if end < 0 else end
            pieces.append(line[at:end])
            at = end
            continue
        macro = line[at + 1 : at + 2]
        place = _PLACE.match(line, at + 2)
        if macro not in ("x", "t", "m", "X", "T", "M") or place is None:
            raise ValueError(f"after % comes x, t or m with [row,column]: {line[at : at + 20]!r}")
        at, expression = place.end(), None
        if macro.lower() != "x":
            argument = re.compile(r',"((?:[^"\\]|\\.)*)"').match(line, at)
            if argument is None:
                raise ValueError(f"%{macro} has a regular expression in quotes as its third argument")
            at, expression = argument.end(), argument[1]
            Expression(expression.encode())  # refuses a wrong one
        if line[at : at + 1] != "]":
            raise ValueError(f"the arguments of %{macro} do not end with ]")
        at += 1
        what = int(place[2]), bool(place[1]), expression, macro.isupper()
        pieces.append(("cell", places.setdefault((int(place[3]), macro.lower(), what), len(places)), 0, None))
    return pieces


def _value(cell: str, macro: str, expression: str | None, lower: bool) -> str:
    """Return the text that a macro gives for a cell."""
    data = cell.encode() if expression is None else _found(expression, cell, macro == "t")
    return text_of(data.lower() if lower else data)  # `bytes.lower` changes ASCII letters alone


@lru_cache(1 << 16)
def _found(expression: str, cell: str, test: bool) -> bytes:
    data = cell.encode()
    match = _expression(expression).search(data)
    if test:
        return b"false" if match is None else b"true"
    return b"" if match is None else data[match[0] : match[0] + match[1]]


@lru_cache(256)
def _expression(text: str) -> "Expression":
    return Expression(text.encode())


_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset(b"0123456789")
_ALL = frozenset(range(256))
_CLASSES = {
    "a": _LETTERS, "d": _DIGITS, "w": _LETTERS | _DIGITS, "s": frozenset(b" \t\n\v\f\r"),
    "l": frozenset(b"abcdefghijklmnopqrstuvwxyz"), "u": frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "p": frozenset(k for k in range(33, 127) if k not in _LETTERS | _DIGITS),
}  # fmt: skip
_CLASSES |= {name.upper(): _ALL - chosen for name, chosen in _CLASSES.items()}


class Expression:
    """A regular expression of Wapiti's own syntax; ValueError if it is invalid.

    It has characters, ``.``, classes, ``*`` (as few as possible), ``?``, ``^`` at the beginning and ``$`` at the end.

    The length of a match is Wapiti's too: it counts optional characters that were tried in vain.
    """

    def __init__(self, text: bytes) -> None:
        self.first = text.startswith(b"^")
        at = int(self.first)
        self.last = False
        self.items: list[tuple[frozenset[int], str]] = []
        while at < len(text):
            if text[at:] == b"$":
                self.last = True
                break
            char = chr(text[at])
            if char in "*?":
                raise ValueError(f"* or ? without a character before it in {text.decode()!r}")
            if char == "\\":
                at += 1
                if at == len(text):
                    raise ValueError(f"\\ without a character after it in {text.decode()!r}")
                chosen = _CLASSES.get(chr(text[at]), frozenset(text[at : at + 1]))
            else:
                chosen = _ALL if char == "." else frozenset(text[at : at + 1])
            at += 1
            times = text[at : at + 1].decode("latin-1")
            times = times if times in ("*", "?") else ""
            at += len(times)
            self.items.append((chosen, times))
        if len(self.items) > MOST_ITEMS:
            raise ValueError(f"a regular expression of more than {MOST_ITEMS} characters")

    def search(self, data: bytes) -> tuple[int, int] | None:
        """Return where the first match begins, and its length; None without a match."""
        failed: dict[tuple[int, int], int] = {}
        for place in range(1 if self.first else len(data) + 1):
            found, length = self._match(data, 0, place, failed)
            if found:
                return place, length
        return None

    # Return whether items from `item` on match at `place`, and by how much this changes the length (also without a
    # match). Failures are remembered: the time is at most that of all pairs of items and places.
    def _match(self, data: bytes, item: int, place: int, failed: dict[tuple[int, int], int]) -> tuple[bool, int]:
        if item == len(self.items):
            return not self.last or place == len(data), 0
        if (item, place) in failed:
            return False, failed[item, place]
        chosen, times = self.items[item]
        fits = place < len(data) and data[place] in chosen
        if times == "*":
            here = place
            while True:
                found, more = self._match(data, item + 1, here, failed)
                if found:
                    return True, here - place + more
                if here == len(data) or data[here] not in chosen:
                    break
                here += 1
            for other in range(place, here + 1):
                failed[item, other] = here - other + 1
            return False, here - place + 1
        if times == "?":
            length = 0
            if fits:
                found, more = self._match(data, item + 1, place + 1, failed)
                if found:
                    return True, 1 + more
                length = more
            found, more = self._match(data, item + 1, place, failed)
            length += more
        else:
            found, length = self._match(data, item + 1, place + 1, failed) if fits else (False, 0)
            length += 1
        if not found:
            failed[item, place] = length
        return found, length
