"""Trees in normal form as rows (symbol, begin, end) in pre-order, the form that `partwise.structures.Grammar` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.models.constituents.treebank.nodes import Tree, is_leaf


def rows_of_tree(tree: Tree, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    """The 2 n - 1 nodes of a tree over n words; symbols without a number are -1."""
    rows: list[list[int]] = []
    waiting: list[Any] = [tree]
    at = 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):  # both subtrees have been seen
            node[2] = at
            continue
        row = [numbers.get(node[0], -1), at, at + 1]
        rows.append(row)
        if is_leaf(node):
            at += 1
        else:
            waiting += [row, node[2], node[1]]
    return np.array(rows, dtype=np.int64)


def tree_of_rows(rows: NDArray[np.int64], symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """The tree in normal form that such rows stand for."""
    ready: list[Tree] = []
    for symbol, begin, end in rows[::-1].tolist():
        name = symbols[symbol]
        ready.append((name, words[begin]) if end == begin + 1 else (name, ready.pop(), ready.pop()))
    (tree,) = ready
    return tree
