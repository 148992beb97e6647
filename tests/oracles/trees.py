"""Every dependency tree of a short sentence, by trying all heads of all words."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .enumerate import Enumeration, _allowed, enumerator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ancestors(heads: tuple[int, ...], word: int) -> list[int]:
    """The heads above a word (1-based) up to the root 0; shorter than that if they go round in a circle."""
    found: list[int] = []
    while word != 0 and len(found) <= len(heads):
        word = heads[word - 1]
        found.append(word)
    return found


def is_tree(heads: tuple[int, ...]) -> bool:
    """Whether every word hangs from the root."""
    return all(ancestors(heads, m)[-1] == 0 for m in range(1, len(heads) + 1))


def is_projective(heads: tuple[int, ...]) -> bool:
    """Whether everything between a head and its modifier is below that head."""
    return all(
        h in ancestors(heads, between)
        for m, h in enumerate(heads, start=1)
        for between in range(min(h, m) + 1, max(h, m))
    )


@lru_cache
def all_heads(n: int, projective: bool, single_root: bool) -> Ints:
    """The heads of every tree over n words, in lexicographic order."""
    every = [heads for heads in itertools.product(range(n + 1), repeat=n) if is_tree(heads)]
    if single_root:
        every = [heads for heads in every if heads.count(0) == 1]
    if projective:
        every = [heads for heads in every if is_projective(heads)]
    return np.array(every, dtype=np.int64)


def enumerate_trees(n: int, projective: bool, single_root: bool, mask: NDArray[np.uint8] | None = None) -> Enumeration:
    """All trees of a sentence of n words: slot (m - 1) * (n + 1) + h is the arc from h to m. No cliques."""
    heads = all_heads(n, projective, single_root)
    counts = np.zeros((len(heads), n * (n + 1)))
    for m in range(n):
        counts[np.arange(len(heads)), m * (n + 1) + heads[:, m]] = 1.0
    keep = _allowed(counts, mask)
    none = np.zeros((int(keep.sum()), 0), dtype=np.int64)
    return Enumeration(heads[keep], counts[keep], none, np.zeros(1, dtype=np.int64))


def wrong_heads(gold: Floats, n: int) -> Floats:
    """1 on every arc between two nodes that the gold tree does not use."""
    cost = 1.0 - gold
    cost[np.arange(n) * (n + 2) + 1] = 0.0  # from a word to itself
    return cost


@enumerator("ProjectiveTree")
def _projective_of(structure: Any, i: int) -> Enumeration:
    return enumerate_trees(int(structure.lengths[i]), True, structure.single_root, structure.mask(i))


@enumerator("SpanningTree")
def _spanning_of(structure: Any, i: int) -> Enumeration:
    return enumerate_trees(int(structure.lengths[i]), False, structure.single_root, structure.mask(i))
