"""Batches: examples that are ready for the core, and with labels, weights and costs, for training."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partwise._core import FeatureMap, Structure
from partwise.support.arrays import Floats, Ints
from partwise.support.lazy import cached_property

#: Gold labellings as `structure.encode` gives them: (indptr, slots, counts).
Gold = tuple[Ints, Ints, Floats]


@dataclass(frozen=True, eq=False)
class Batch:
    """Structure and features of some examples; ValueError if they have different numbers of examples."""

    structure: Structure
    features: FeatureMap

    def __post_init__(self) -> None:
        if self.features.num_examples != self.n_examples:
            raise ValueError(f"features of {self.features.num_examples} examples, a structure of {self.n_examples}")

    @property
    def n_examples(self) -> int:
        return self.structure.num_examples

    @property
    def n_weights(self) -> int:
        return self.features.num_weights

    @cached_property
    def slot_offsets(self) -> Ints:
        """Slots of example i are slot_offsets[i]:slot_offsets[i + 1], all examples end to end."""
        return self.structure.slot_offsets()

    @property
    def n_slots(self) -> int:
        return int(self.slot_offsets[-1])


class LabelledBatch:
    """A batch with its gold labellings, the weights of its examples and their costs; arguments as of `Problem`."""

    def __init__(
        self, batch: Batch, gold: Gold, sample_weight: ArrayLike | None = None, cost: ArrayLike | None = None
    ) -> None:
        if len(gold[0]) != batch.n_examples + 1:
            raise ValueError(f"gold labellings of {len(gold[0]) - 1} examples, a batch of {batch.n_examples}")
        self.batch, self.n_examples, self.n_weights = batch, batch.n_examples, batch.n_weights
        self.gold = gold
        self.sample_weight = _check_weights(sample_weight, batch.n_examples)
        self.cost = None if cost is None else np.ascontiguousarray(cost, dtype=np.float64)

    @property
    def n_slots(self) -> int:
        return self.batch.n_slots

    def open(self) -> "LabelledBatch":
        """Return the batch itself: a batch in memory is its own reference."""
        return self


def structure_costs(structure: Structure, gold: Gold) -> Floats:
    """Return the structure's own costs of all slots, given these gold labellings, one example after the other."""
    indptr, slots, counts = gold
    parts = enumerate(map(slice, indptr[:-1], indptr[1:]))
    return np.concatenate([np.zeros(0), *(structure.cost(i, slots[part], counts[part]) for i, part in parts)])


def _check_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    if sample_weight is None:
        return np.ones(n)
    # A copy: later changes of the caller's array must not change the objective.
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}, there are {n} examples")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight of example {bad[0]} is {weights[bad[0]]}: weights must be finite and >= 0")
    return weights
