"""Sums over the examples of all batches that methods need which change weights one by one (capability "column access").

Each is a sum or a maximum of what the batches have, so that a batch may lie anywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from partwise import _core
from partwise.problem.reductions import added_up
from partwise.problem.sums import Sums
from partwise.problem.tasks import BatchSums, task
from partwise.support.arrays import Floats, Ints
from partwise.support.lazy import cached_property


@dataclass(frozen=True)
class ColumnConstants:
    """What is known of the features before any step; see core/solvers/scaling.h.

    empirical, mass: a number per weight. weights: those that have a feature, in an order that is good to visit them in.
    labels: slots that are labellings of some example. gold: slots that are gold where the example's weight is not 0.
    """

    empirical: Floats
    mass: Floats
    weights: Ints
    labels: Ints
    gold: Ints
    n_cells: int

    def joined(self, other: "ColumnConstants") -> "ColumnConstants":
        """Those of two batches together; the order of the weights is that of the first one."""
        return ColumnConstants(
            empirical=self.empirical + other.empirical,
            mass=self.mass + other.mass,
            weights=np.concatenate([self.weights, np.setdiff1d(other.weights, self.weights)]),
            labels=np.union1d(self.labels, other.labels),
            gold=np.union1d(self.gold, other.gold),
            n_cells=self.n_cells + other.n_cells,
        )


@task
def column_constants(sums: BatchSums, n_jobs: int) -> ColumnConstants:
    """Those of one batch."""
    indptr, slots, _ = sums.gold
    gold = np.unique(slots[indptr[:-1][sums.sample_weight > 0]])
    empirical, mass, weights, labels, n_cells = _core.scaling_constants(sums.objective)
    return ColumnConstants(empirical, mass, weights, labels, gold, n_cells)


@task
def column_extremes(sums: BatchSums, n_jobs: int) -> tuple[Floats, Floats]:
    """The least and the largest value that each feature's expectation can have."""
    return _core.scaling_extremes(sums.objective)


@task
def largest_feature_sum(sums: BatchSums, n_jobs: int) -> float:
    """f# = max over examples and labels of the sum of their features."""
    return _core.scaling_largest_sum(sums.objective)


@task
def expectations(sums: BatchSums, n_jobs: int, weights: Floats) -> Floats:
    """sum omega E[f_t] of every feature."""
    return _core.scaling_expectations(sums.objective, weights, n_jobs)


@task
def separates(sums: BatchSums, n_jobs: int, weights: Floats) -> bool:
    """Whether every gold labelling is likelier than all others."""
    return _core.scaling_separates(sums.objective, weights, n_jobs)


@task
def describe_weight(sums: BatchSums, n_jobs: int, weight: int) -> str:
    """A weight's name in messages."""
    return sums.features.describe(weight)


class ColumnSums(Sums):
    """Sums over batches, those of single features too."""

    @cached_property
    def column_constants(self) -> ColumnConstants:
        """What is known of the features."""
        found: Iterator[ColumnConstants] = self._run("column_constants")
        return reduce(ColumnConstants.joined, found)

    def column_extremes(self) -> tuple[Floats, Floats]:
        """The least and the largest value that each feature's expectation can have."""
        lowest, highest = added_up(self._run("column_extremes"))
        return lowest, highest

    def largest_feature_sum(self) -> float:
        """f# = max over examples and labels of the sum of their features."""
        return float(max(self._run("largest_feature_sum")))

    def expectations(self, weights: Floats) -> Floats:
        """sum omega E[f_t] of every feature at these weights."""
        return self._sum("expectations", weights)

    def separates(self, weights: Floats) -> bool:
        """Whether every gold labelling is likelier than all others."""
        return all(list(self._run("separates", weights)))

    def describe_weight(self, weight: int) -> str:
        """A weight's name in messages."""
        return str(next(self._run("describe_weight", weight)))
