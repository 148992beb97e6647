"""Every labelling of an example in a table, and all that follows from loops over the table.

A structure is added by a function that returns an `Enumeration` of one example, registered under the class name:

    @enumerator("Chain")
    def chain_of(structure, i): return enumerate_chain(...)

Values, sums, k best, samples, covariances and cliques follow from the table of counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Enumeration:
    """All labellings of one example.

    labellings: (N, n_parts) labels, in lexicographic order.
    counts: (N, num_slots) how often each labelling uses each slot.
    cliques: (N, n_cliques) which entry of the clique vector each labelling takes in each clique.
    clique_offsets: (n_cliques + 1) the cliques' blocks in the clique vector.
    """

    labellings: Ints
    counts: Floats
    cliques: Ints
    clique_offsets: Ints

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Slots that some labelling uses (padding and masked slots are not among them)."""
        return np.any(self.counts > 0, axis=0)

    def values(self, scores: Floats) -> Floats:
        """The score <counts(y), scores> of every labelling. Scores of unused slots are never read."""
        return self.counts[:, self.used] @ np.asarray(scores)[self.used]

    def probabilities(self, scores: Floats, temperature: float = 1.0) -> Floats:
        """The Gibbs distribution: p(y) proportional to exp(<counts(y), scores> / temperature)."""
        return softmax(self.values(scores) / temperature)

    def maximum(self, scores: Floats) -> tuple[float, int]:
        """The best value and the first labelling that has it."""
        values = self.values(scores)
        return float(values.max()), int(values.argmax())

    def smax(self, scores: Floats, temperature: float) -> tuple[float, Floats, float]:
        """max over p of <E_p counts, scores> + temperature * H(p); the expected counts and entropy of the best p."""
        if temperature == 0:
            value, best = self.maximum(scores)
            return value, self.counts[best], 0.0
        values = self.values(scores)
        p = self.probabilities(scores, temperature)
        return temperature * log_sum_exp(values / temperature), self.expected(p), entropy(p)

    def expected(self, p: Floats) -> Floats:
        """The expected counts E_p[counts]."""
        return p @ self.counts

    def covariance(self, p: Floats) -> Floats:
        """The covariance of the counts, Cov_p(counts), a matrix (num_slots, num_slots)."""
        centred = self.counts - self.expected(p)
        return (centred * p[:, None]).T @ centred

    def k_best(self, scores: Floats, k: int) -> Ints:
        """The k best labellings, best first."""
        return np.argsort(-self.values(scores), kind="stable")[:k]

    def index_of(self, slots: Ints, counts: Floats) -> int:
        """The number of the labelling with these slots and counts; -1 if there is none."""
        dense = np.zeros(self.counts.shape[1])
        np.add.at(dense, slots, counts)
        hits = np.flatnonzero(np.all(self.counts == dense, axis=1))
        return int(hits[0]) if len(hits) else -1

    def clique_marginals(self, p: Floats) -> Floats:
        """Marginals of the cliques, concatenated."""
        out = np.zeros(self.clique_offsets[-1])
        for column in self.cliques.T:
            np.add.at(out, column, p)
        return out

    def gibbs_of_cliques(self, potentials: Floats) -> Floats:
        """The Gibbs distribution of cliques: p(y) proportional to exp(sum of the potentials of y's entries)."""
        return softmax(potentials[self.cliques].sum(axis=1))


def softmax(values: Floats) -> Floats:
    """exp(values), normalised to the sum 1."""
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def log_sum_exp(values: Floats) -> float:
    """log sum exp(values), without overflow."""
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))


def entropy(p: Floats) -> float:
    """The entropy -sum p log p, with 0 log 0 = 0."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def _allowed(counts: Floats, mask: NDArray[np.uint8] | None) -> NDArray[np.bool_]:
    if mask is None:
        return np.ones(len(counts), dtype=bool)
    return ~np.any(counts[:, np.asarray(mask) == 0] > 0, axis=1)


def enumerate_multiclass(n_labels: int, width: int, mask: NDArray[np.uint8] | None = None) -> Enumeration:
    """All labels that the mask allows: slot a is label a. The only clique is the whole example."""
    labels = np.arange(n_labels)
    counts = np.eye(n_labels, width)
    keep = _allowed(counts, mask)
    return Enumeration(labels[keep, None], counts[keep], labels[keep, None], np.array([0, width]))


def chain_slots(labels: Sequence[int], n_labels: int, width: int, tied: bool, ends: bool) -> list[int]:
    """The slots of a labelling of a chain. A slot that is used k times is listed k times."""
    length = len(labels)
    slots = [t * width + a for t, a in enumerate(labels)]
    block = n_labels * width
    for t in range(length - 1):
        start = length * width + (0 if tied else t * block)
        slots.append(start + labels[t] * width + labels[t + 1])
    if ends:
        start = length * width + (block if tied else (length - 1) * block)
        slots += [start + labels[0], start + width + labels[-1]]
    return slots


def chain_num_slots(length: int, n_labels: int, width: int, tied: bool, ends: bool) -> int:
    """The number of slots: rows of labels, transitions (one table, or one per edge), rows for begin and end."""
    tables = 1 if tied else length - 1
    return length * width + tables * n_labels * width + (2 * width if ends else 0)


def enumerate_chain(
    length: int, n_labels: int, width: int, tied: bool = True, ends: bool = False, mask: NDArray[np.uint8] | None = None
) -> Enumeration:
    """All label sequences that the mask allows. Their cliques are pairs of neighbours, or the only position."""
    labellings = np.array(list(itertools.product(range(n_labels), repeat=length)), dtype=np.int64)
    counts = np.zeros((len(labellings), chain_num_slots(length, n_labels, width, tied, ends)))
    for row, labels in zip(counts, labellings, strict=True):
        np.add.at(row, chain_slots(labels.tolist(), n_labels, width, tied, ends), 1.0)
    keep = _allowed(counts, mask)
    labellings, counts = labellings[keep], counts[keep]
    if length == 1:
        return Enumeration(labellings, counts, labellings, np.array([0, width]))
    block = n_labels * width
    entries = [t * block + labellings[:, t] * width + labellings[:, t + 1] for t in range(length - 1)]
    return Enumeration(labellings, counts, np.stack(entries, axis=1), np.arange(length) * block)


Enumerator = Callable[[Any, int], Enumeration]
ENUMERATORS: dict[str, Enumerator] = {}


def enumerator(class_name: str) -> Callable[[Enumerator], Enumerator]:
    """Register the enumerator of a structure class."""

    def register(function: Enumerator) -> Enumerator:
        ENUMERATORS[class_name] = function
        return function

    return register


def enumeration_of(structure: Any, i: int) -> Enumeration:
    """All labellings of example i that the structure's mask allows."""
    for cls in type(structure).__mro__:
        if cls.__name__ in ENUMERATORS:
            return ENUMERATORS[cls.__name__](structure, i)
    raise TypeError(f"no enumerator for {type(structure).__name__}")


@enumerator("Multiclass")
def _multiclass_of(structure: Any, i: int) -> Enumeration:
    return enumerate_multiclass(structure.n_labels, structure.width, structure.mask(i))


@enumerator("Chain")
def _chain_of(structure: Any, i: int) -> Enumeration:
    return enumerate_chain(
        int(structure.lengths[i]),
        structure.n_labels,
        structure.width,
        structure.tied,
        structure.ends,
        structure.mask(i),
    )
