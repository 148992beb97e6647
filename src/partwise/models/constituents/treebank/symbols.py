r"""Symbols of a binarised grammar: what a node was before, written as a string.

    chain      labels of a chain of nodes with one child each, from the top: S+VP
    ancestors  then, with a vertical order above 1, the labels above it: S+VP^SBAR^NP
    siblings   then, for a node that binarisation made, the children that are already there: VP^S|VBD~NP

A backslash stands before each of these characters, and before itself, where it belongs to a label. A word among other
children has no node of its own and no label; it gets the symbol ``\_``. Strings are therefore different whenever
what they stand for is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

CHAIN, ABOVE, MADE, NEXT, ESCAPE = "+", "^", "|", "~", "\\"
#: A word without a node of its own.
NO_LABEL = ESCAPE + "_"

_SPECIAL = re.compile(r"[+^|~\\]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CHAIN = re.compile(r"(?:[^+^|\\]|\\.)*", re.DOTALL)


def escaped(label: str | None) -> str:
    """A label inside a symbol; None for a word without a node."""
    return NO_LABEL if label is None else _SPECIAL.sub(r"\\\g<0>", label)


def phrase_symbol(chain: Sequence[str | None], above: Sequence[str]) -> str:
    """The symbol of a chain of nodes under its nearest ancestors, the parent first."""
    return CHAIN.join(map(escaped, chain)) + "".join(ABOVE + escaped(label) for label in above)


def made_symbol(label: str, above: Sequence[str], siblings: Sequence[str | None]) -> str:
    """The symbol of a node made by binarisation below `label`."""
    return phrase_symbol([label], above) + MADE + NEXT.join(map(escaped, siblings))


def read_symbol(symbol: str) -> tuple[list[str | None], bool]:
    """The chain of labels of a symbol, and whether binarisation made the node."""
    chain: list[str | None] = []
    at = 0
    while True:
        match = _CHAIN.match(symbol, at)
        assert match is not None
        part = match[0]
        chain.append(None if part == NO_LABEL else _ESCAPED.sub(r"\1", part))
        at = match.end()
        if at == len(symbol) or symbol[at] != CHAIN:
            break
        at += 1
    while at < len(symbol) and symbol[at] != MADE:
        at += 2 if symbol[at] == ESCAPE else 1
    return chain, at < len(symbol)


def tag_of(symbol: str) -> str:
    """The last label of a lexical symbol's chain, as a symbol: the tag of its word."""
    return escaped(read_symbol(symbol)[0][-1])
