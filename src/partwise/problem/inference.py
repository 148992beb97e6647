"""Answers for batches and weights: best labellings, sums over labellings, values and scores.

`NamedChain` of the core gives those of chains over named attributes in one call each, with the same bits.
"""

import numpy as np

from partwise import _core
from partwise._core import FeatureMap, LinearMap, SlotSegment, Structure, all_scores, decode, infer, labelling_values
from partwise._core import ItemRows as ItemRows
from partwise._core import NamedChain as NamedChain
from partwise._core import PackedItems as PackedItems
from partwise.problem.batch import Batch, Gold
from partwise.support.arrays import Floats, Ints


def best_labellings(batch: Batch, weights: Floats, n_jobs: int = 1, which: Ints | None = None) -> Gold:
    """Return the best labelling of every example, or of these examples: (indptr, slots, counts)."""
    check_weights(batch, weights)
    return decode(batch.structure, batch.features, weights, n_jobs, which)[:3]


def expectations(batch: Batch, weights: Floats, temperature: float, n_jobs: int = 1) -> tuple[Floats, Floats]:
    """Return expected counts under p ~ exp(scores / temperature), slots end to end, and smax of every example."""
    check_weights(batch, weights)
    counts, values, _ = infer(batch.structure, batch.features, weights, temperature, n_jobs, entropies=False)
    return counts, values


def entropies_of(batch: Batch, weights: Floats, temperature: float, n_jobs: int = 1) -> Floats:
    """Return the entropy of p ~ exp(scores / temperature) of every example, in nats."""
    check_weights(batch, weights)
    return infer(batch.structure, batch.features, weights, temperature, n_jobs)[2]


def check_weights(batch: Batch, weights: Floats) -> None:
    """Raise ValueError unless the batch's features have as many weights."""
    if len(weights) != batch.n_weights:
        raise ValueError(f"the features of X have {batch.n_weights} weights, the model has {len(weights)}")


def values_of(batch: Batch, weights: Floats, labellings: Gold, n_jobs: int = 1) -> Floats:
    """Return the value of one labelling per example, as `best_labellings` compares them; masks are ignored."""
    return labelling_values(batch.structure, batch.features, weights, *labellings, n_jobs)


def slot_scores(batch: Batch, weights: Floats, n_jobs: int = 1) -> Floats:
    """Return the scores of all slots, examples end to end."""
    return all_scores(batch.structure, batch.features, weights, n_jobs)


def slot_norms(batch: Batch, n_jobs: int = 1) -> Floats:
    """Return |A_i' e_r| of every slot r, examples end to end."""
    return _core.slot_norms(batch.structure, batch.features, n_jobs)


class SlotScores:
    """Answers of a structure for given slot scores, examples end to end."""

    def __init__(self, structure: Structure, n_jobs: int = 1) -> None:
        offsets = structure.slot_offsets()
        each = np.arange(int(offsets[-1]) + 1)
        # With the identity as feature map, the weights are the scores.
        self._identity: FeatureMap = LinearMap([SlotSegment(int(offsets[-1]), offsets, each, each[:-1])])
        self._structure, self._n_jobs = structure, n_jobs

    def best(self, scores: Floats, which: Ints | None = None) -> tuple[Ints, Ints, Floats]:
        return decode(self._structure, self._identity, scores, self._n_jobs, which)[:3]

    def expectations(self, scores: Floats) -> Floats:
        return infer(self._structure, self._identity, scores, 1.0, self._n_jobs, entropies=False)[0]
