"""Gold trees that a structure does not have: what is wrong with them, and projective trees from others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partwise.io.conllu import find_cycle
from partwise.models.dependencies.words import Words
from partwise.structures import Tree
from partwise.support.arrays import Ints


def check_tree(heads: Ints, single_root: bool, name: Callable[[], str]) -> None:
    """Refuse heads that make no tree, projective or not."""
    n = len(heads)
    for word, head in enumerate(heads.tolist(), start=1):
        if not 0 <= head <= n:
            raise ValueError(f"{name()}: head {head} of word {word} is out of range: there are {n} words")
    word = find_cycle(heads.tolist())
    if word:
        raise ValueError(f"{name()}: the heads make a cycle through word {word}")
    roots = np.flatnonzero(heads == 0) + 1
    if single_root and len(roots) != 1:
        raise ValueError(
            f"{name()} has {len(roots)} roots (words {', '.join(map(str, roots[:5]))}): single_root=False allows that"
        )


def not_in_structure(structure: Tree, words: Words, heads: Ints) -> Ints:
    """The sentences whose trees the structure does not have because arcs cross; other faults raise."""
    offsets, found = words.offsets, []
    for i in range(len(words.lengths)):
        own = heads[offsets[i] : offsets[i + 1]]
        try:
            structure.check_heads(i, own)
        except ValueError:
            check_tree(own, structure.single_root, lambda i=i: words.name(i))  # type: ignore[misc]
            found.append(i)
    return np.array(found, dtype=np.int64)


def lift(heads: Ints) -> Ints:
    """A projective tree: while arcs cross, the shortest arc that jumps over a stranger goes one head up.

    An arc jumps over a stranger if a word between its ends does not descend from its head (Nivre and Nilsson 2005).
    """
    lifted = heads.copy()
    while True:
        worst = _shortest_jump(lifted)
        if worst == 0:
            return lifted
        lifted[worst - 1] = lifted[lifted[worst - 1] - 1]


def _shortest_jump(heads: Ints) -> int:
    parent = [0, *heads.tolist()]
    best, shortest = 0, len(parent) + 1
    for m in range(1, len(parent)):
        h = parent[m]
        low, high = min(h, m), max(h, m)
        if high - low >= shortest or h == 0:
            continue
        for word in range(low + 1, high):
            up = word
            while up not in (h, 0):
                up = parent[up]
            if up != h:
                best, shortest = m, high - low
                break
    return best
