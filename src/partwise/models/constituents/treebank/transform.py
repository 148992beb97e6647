r"""Trees to trees in Chomsky normal form and back, without loss.

A chain of nodes with one child each becomes one node. The children c_1 .. c_n of a node A, n > 2, become

    A -> c_1 A|c_1,  A|c_1 -> c_2 A|c_1~c_2,  ...,  A|c_1~..~c_{n-2} -> c_{n-1} c_n      binarise="right"
    A -> A|c_n c_n,  A|c_n -> A|c_n~c_{n-1} c_{n-1},  ...                                binarise="left"

where the symbol of a made node keeps the last `horizontal` of these children, and phrases keep the labels of their
`vertical` - 1 lowest ancestors. Tags keep no ancestors, as the lexicon is sparse enough without. A symbol says what its
node was:

    chain      labels of a chain of nodes with one child each, from the top: S+VP
    ancestors  then, with a vertical order above 1, the labels above it: S+VP^SBAR^NP
    siblings   then, for a node that binarisation made, the children that are already there: VP^S|VBD~NP

A backslash stands before each of these characters, and before itself, where it belongs to a label. A word among other
children has no node of its own and no label; it gets the symbol ``\_``. Strings are therefore different whenever
what they stand for is, and `restore` needs no orders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from partwise.io.trees import Tree, check_tree, clean_tree, is_leaf, postorder

CHAIN, ABOVE, MADE, NEXT, ESCAPE = "+", "^", "|", "~", "\\"
#: The symbol of a word that has no node of its own; no label is written like this.
NO_LABEL = ESCAPE + "_"

_SPECIAL = re.compile(r"[+^|~\\]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PART = re.compile(r"((?:[^+^|\\]|\\.)*)([+^|]?)", re.DOTALL)


def escaped(label: str | None) -> str:
    """Return a label as it is written inside a symbol; label None: a word without a node."""
    return NO_LABEL if label is None else _SPECIAL.sub(r"\\\g<0>", label)


def phrase_symbol(chain: Sequence[str | None], above: Sequence[str]) -> str:
    """Return the symbol of a chain of nodes under its nearest ancestors, the parent first."""
    return CHAIN.join(map(escaped, chain)) + "".join(ABOVE + escaped(label) for label in above)


def made_symbol(label: str, above: Sequence[str], siblings: Sequence[str | None]) -> str:
    """Return the symbol of a node made by binarisation below `label`."""
    return phrase_symbol([label], above) + MADE + NEXT.join(map(escaped, siblings))


def read_symbol(symbol: str) -> tuple[list[str | None], bool]:
    """Return the chain of labels of a symbol, and whether binarisation made the node."""
    parts = _PART.findall(symbol)
    chain: list[str | None] = []
    for text, mark in parts:
        chain.append(None if text == NO_LABEL else _ESCAPED.sub(r"\1", text))
        if mark != CHAIN:
            break
    return chain, any(mark == MADE for _, mark in parts)


def tag_of(symbol: str) -> str:
    """Return the last label of a lexical symbol's chain, as a symbol: the tag of its word."""
    return escaped(read_symbol(symbol)[0][-1])


@dataclass(frozen=True)
class TreeTransform:
    """Turns trees into binary trees whose nodes are symbols, and back.

    Parameters
    ----------
    horizontal : number of siblings named in the symbol of a node that binarisation makes, 0 or more; ``math.inf``: all
    vertical : number of labels in a phrase's symbol: 1 for its own alone, 2 for its own and its parent's, ...
    binarise : "right" (the last children stay together) or "left" (the first children do)
    traces, functions : whether `binary` first removes empty elements and function tags; `restore` cannot add them
    root : label of an uninformative node (TOP) that every tree has on top, with one child; `binary` removes this node
        and `restore` puts it back. None if trees have no such node
    """

    horizontal: float = 2
    vertical: int = 1
    binarise: str = "right"
    traces: bool = True
    functions: bool = True
    root: str | None = None

    def __post_init__(self) -> None:
        across: object = self.horizontal
        up: object = self.vertical
        if not isinstance(across, Real) or not (across == math.inf or (float(across) >= 0 and float(across) % 1 == 0)):
            raise ValueError(f"horizontal={self.horizontal!r} must be a whole number, 0 or more, or infinite")
        if not isinstance(up, Integral) or int(up) < 1:
            raise ValueError(f"vertical={self.vertical!r} must be a whole number, 1 or more")
        if self.binarise not in ("right", "left"):
            raise ValueError(f"binarise={self.binarise!r} is unknown; known are 'right' and 'left'")

    @property
    def without_cleaning(self) -> TreeTransform:
        """The same transform, for trees that are clean already."""
        return replace(self, traces=False, functions=False)

    def cleaned(self, tree: Tree, what: str = "the tree") -> Tree:
        """Return the tree without empty elements and function tags, as `restore` returns it."""
        if self.traces or self.functions:
            return clean_tree(tree, traces=self.traces, functions=self.functions, what=what)
        check_tree(tree, what)
        return tree

    def binary(self, tree: Tree, what: str = "the tree") -> Tree:
        """Return the tree in normal form: nodes are (symbol, left, right) or (symbol, word).

        ValueError if `tree` is not a tree, all of its words are empty elements, or its root is not the transform's.
        """
        tree = self.cleaned(tree, what)
        if self.root is not None:
            if tree[0] != self.root or len(tree) != 2 or isinstance(tree[1], str):
                raise ValueError(f"{what}: its root should be {self.root!r} above one phrase")
            tree = tree[1]
        # (node, labels above it, False), and again when its children are done: (node, symbols to join them with, True).
        done: list[Any] = []
        waiting: list[tuple[Any, tuple[str, ...], bool]] = [(tree, (), False)]
        while waiting:
            node, above, seen = waiting.pop()
            if seen:
                n = len(node) - 1
                done[-n:] = [self._joined(done[-n:], above)]
                continue
            chain: list[str | None] = []
            at = above
            while isinstance(node, tuple):
                chain.append(node[0])
                if len(node) != 2:
                    break
                at = (node[0], *at)[: self.vertical - 1]
                node = node[1]
            if isinstance(node, str):  # the last label of the chain is the tag; a word among other children has none
                done.append((phrase_symbol(chain or [None], above if len(chain) > 1 else ()), node))
                continue
            waiting.append((node, self._symbols(phrase_symbol(chain, above), node, at), True))
            inside = (node[0], *at)[: self.vertical - 1]
            waiting.extend((child, inside, False) for child in reversed(node[1:]))
        (result,) = done
        return tuple(result)

    def _symbols(self, symbol: str, node: Tree, above: tuple[str, ...]) -> tuple[str, ...]:
        """Return the symbols of a node and of those made below it, from the top."""
        labels = [child[0] if isinstance(child, tuple) else None for child in node[1:]]
        if self.binarise == "left":
            labels.reverse()
        firsts = (0 if self.horizontal >= k else k - int(self.horizontal) for k in range(1, len(labels) - 1))
        return (symbol, *(made_symbol(node[0], above, labels[first:k]) for k, first in enumerate(firsts, 1)))

    def _joined(self, children: list[Tree], symbols: tuple[str, ...]) -> Tree:
        right = self.binarise == "right"
        inner = children[-1] if right else children[0]
        for k, symbol in enumerate(reversed(symbols), 2):
            inner = (symbol, children[-k], inner) if right else (symbol, inner, children[k - 1])
        return inner

    def restore(self, tree: Tree) -> Tree:
        """Return the tree whose normal form this is, without what cleaning removed.

        ValueError if the tree's root is a symbol that binarisation made.
        """
        # Each entry of `done` is the list of children that a binary node stands for.
        done: list[list[Tree | str]] = []
        for node in postorder(tree):
            chain, made = read_symbol(node[0])
            below: list[Tree | str] = [node[1]] if is_leaf(node) else [*done.pop(-2), *done.pop()]
            if not made:
                for label in reversed(chain):
                    below = below if label is None else [(label, *below)]
            done.append(below)
        (top,) = done
        if len(top) != 1 or isinstance(top[0], str):
            raise ValueError(f"{tree[0]!r} cannot be the root of a tree: binarisation made it")
        return top[0] if self.root is None else (self.root, top[0])
