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


def ancestors(heads: Ints) -> Ints:
    """(N, n, n): the chain of heads above each word of N sentences; a chain that has reached the root 0 stays there."""
    chain = [heads]
    for _ in range(heads.shape[1] - 1):
        chain.append(np.where(chain[-1] == 0, 0, np.take_along_axis(heads, np.maximum(chain[-1], 1) - 1, axis=1)))
    return np.stack(chain, axis=2)


def is_projective(heads: Ints) -> NDArray[np.bool_]:
    """For each of N sentences: whether every word between a head and its modifier is a descendant of that head."""
    above = ancestors(heads)
    good = np.ones(len(heads), dtype=bool)
    for m, word in itertools.product(range(1, heads.shape[1] + 1), repeat=2):
        h = heads[:, m - 1]
        between = (np.minimum(h, m) < word) & (word < np.maximum(h, m))
        good &= ~between | (above[:, word - 1] == h[:, None]).any(axis=1)
    return good


@lru_cache
def all_heads(n: int, projective: bool, single_root: bool) -> Ints:
    """The heads of every tree over n words, in lexicographic order."""
    heads = np.array(list(itertools.product(range(n + 1), repeat=n)), dtype=np.int64)
    heads = heads[(ancestors(heads)[:, :, -1] == 0).all(axis=1)]
    if single_root:
        heads = heads[(heads == 0).sum(axis=1) == 1]
    return heads[is_projective(heads)] if projective else heads


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
    cost[np.arange(n) * (n + 2) + 1] = 0.0  # a word cannot be its own head
    return cost


@enumerator("ProjectiveTree")
def _projective_of(structure: Any, i: int) -> Enumeration:
    return enumerate_trees(int(structure.lengths[i]), True, structure.single_root, structure.mask(i))


@enumerator("SpanningTree")
def _spanning_of(structure: Any, i: int) -> Enumeration:
    return enumerate_trees(int(structure.lengths[i]), False, structure.single_root, structure.mask(i))
