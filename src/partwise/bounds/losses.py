"""Losses between 0 and 1 of labellings of labelled examples."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from partwise.problem import LabelledBatch
from partwise.problem.batch import structure_costs
from partwise.problem.inference import SlotScores, best_labellings
from partwise.support.arrays import Floats, Ints

Loss = Literal["cost", "zero-one"]


class Found(NamedTuple):
    """A labelling of each example: the k-th uses slots[indptr[k]:indptr[k + 1]], each `counts` times."""

    indptr: Ints
    slots: Ints
    counts: Floats

    def sums(self, offsets: Ints, vector: Floats) -> Floats:
        """<vector, counts> of each example."""
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(self.indptr))
        values = vector[offsets[owner] + self.slots] * self.counts
        found: Floats = np.bincount(owner, weights=values, minlength=len(offsets) - 1).astype(np.float64)
        return found

    def spread(self, offsets: Ints) -> Floats:
        """Counts of all slots; the examples' blocks are concatenated."""
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(self.indptr))
        dense = np.zeros(int(offsets[-1]))
        np.add.at(dense, offsets[owner] + self.slots, self.counts)
        return dense


class Losses:
    """L of labellings: the cost over the largest cost of the example, or 1 for every labelling but the gold one.

    costs: of all slots; the examples' blocks are concatenated. largest: the largest cost of each example; 1 where no
    labelling costs anything.
    """

    def __init__(self, examples: LabelledBatch, loss: Loss, n_jobs: int = 1) -> None:
        if loss not in get_args(Loss):
            raise ValueError(f"loss must be one of {', '.join(get_args(Loss))}, got {loss!r}")
        self.loss, self.offsets, self.gold = loss, examples.batch.slot_offsets, Found(*examples.gold)
        structure: Any = examples.batch.structure
        self.costs = structure_costs(structure, examples.gold) if examples.cost is None else examples.cost
        if structure.linear:
            largest = Found(*SlotScores(structure, n_jobs).best(self.costs)).sums(self.offsets, self.costs)
        else:  # rows of labels, of which a labelling uses one slot each
            rows = self.costs.reshape(-1, structure.width).max(axis=1)
            largest = np.add.reduceat(rows, self.offsets[:-1] // structure.width)
        self.largest = np.where(largest > 0, largest, 1.0)

    def of(self, found: Found) -> Floats:
        """L of these labellings."""
        if self.loss == "zero-one":
            return np.where(self.are_gold(found), 0.0, 1.0)
        return found.sums(self.offsets, self.costs) / self.largest

    def are_gold(self, found: Found) -> Any:
        """Which of these labellings are the gold ones."""
        wrong = np.abs(found.spread(self.offsets) - self.gold.spread(self.offsets))
        owner = np.repeat(np.arange(len(self.largest)), np.diff(self.offsets))
        return np.bincount(owner, weights=wrong, minlength=len(self.largest)) == 0


def held_out_losses(examples: LabelledBatch, weights: Floats, *, loss: Loss = "cost", n_jobs: int = 1) -> Floats:
    """Return the loss of a model's own answer to each example, between 0 and 1, for `held_out_bound`.

    Every model has them: nothing is assumed of how answers follow from weights.

    Parameters
    ----------
    examples : LabelledBatch
        Examples that training has not seen; `estimator.labelled(X, y)` gives them.
    weights : array
        The model's, `estimator.weights_`.
    loss : {"cost", "zero-one"}
        The cost over the largest cost of the example (for rows of labels the share of wrong ones), or 1 for every
        labelling but the gold one.
    """
    return Losses(examples, loss, n_jobs).of(Found(*best_labellings(examples.batch, weights, n_jobs)))
