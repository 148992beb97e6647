"""Estimates from a few evenly spaced examples' features: the cost of a pass, the penalty, the columns' scales."""

from dataclasses import dataclass

import numpy as np

from partwise.problem import BatchSums, Problem
from partwise.support.arrays import Floats, Ints
from partwise.support.lazy import cached_property

#: Limits of the sample: examples, entries of feature vectors (about), and batches, which may have to be opened.
SAMPLE, ENTRIES, BATCHES = 200, 50_000, 4
#: Ratio of mean squares from which columns count as being of different scales (a factor of 100 between values).
DIFFERENT = 1e4
#: Cost of inference per entry of a clique, in entries of feature vectors (mostly that of an exponential).
EXPONENTIAL = 10


@dataclass(frozen=True)
class Look:
    """What can be estimated of a problem from some of its examples."""

    problem: Problem

    @cached_property
    def curvature(self) -> float:
        """The mean of omega_i |psi_i|^2 / (parts_i l2): one part's share of the dual in units of the entropy's."""
        problem, some = self.problem, self._spaced(SAMPLE)
        parts = np.array(problem.sums.of_examples(BatchSums.gold_sizes, some))
        bounds = problem.sums.psi2_bounds(some)
        return float(np.mean(problem.sample_weight[some] * bounds / np.maximum(parts, 1.0)) / problem.l2)

    @cached_property
    def work(self) -> float:
        """About what a pass costs: entries of all examples' feature vectors, weights, and inference in the same units.

        Infinite for structures in Python: sizes do not tell their cost, and measured times would not repeat the bits.
        """
        each = self._sizes + EXPONENTIAL * np.array([inference for _, inference in self._example_sizes])
        return len(self.problem.active) * float(np.mean(each)) + self.problem.n_weights

    @cached_property
    def row_length(self) -> float:
        """The mean number of features of a slot."""
        slots = sum(slots for slots, _ in self._example_sizes)
        return float(self._sizes.sum()) / max(slots, 1)

    @cached_property
    def scale_ratio(self) -> float:
        """The scale of the large values over that of the small columns: 1 for 0/1 features.

        A column's scale is the root mean square of its nonzero values. Small is the column that 10 % do not exceed;
        large is the column that 90 % do not exceed, or the median example's root mean square, whichever is larger.
        """
        indices, values = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        kept = values != 0
        if not kept.any():
            return 1.0
        squares = np.square(values[kept])
        columns, at, counts = np.unique(indices[kept], return_inverse=True, return_counts=True)
        means = np.bincount(at, weights=squares, minlength=len(columns)) / counts
        owner = np.repeat(np.arange(len(self._sizes)), self._sizes)[kept]
        used, owner = np.unique(owner, return_inverse=True)
        rows = np.bincount(owner, weights=squares) / np.bincount(owner, minlength=len(used))
        low, high = np.quantile(means, (0.1, 0.9), method="nearest")
        with np.errstate(over="ignore", divide="ignore"):
            return float(np.sqrt(max(high, float(np.median(rows))) / low))

    @property
    def different_scales(self) -> bool:
        """Whether columns differ so much in scale that steps of one length for all weights are hopeless."""
        return self.scale_ratio**2 > DIFFERENT

    def _spaced(self, most: int) -> Ints:
        active = self.problem.active
        if self.problem.n_batches > BATCHES:
            owner = np.repeat(np.arange(self.problem.n_batches), self.problem.sums.batch_sizes)[active]
            active = active[np.isin(owner, _spaced(np.unique(owner), BATCHES))]
        return _spaced(active, most)

    @cached_property
    def _read(self) -> Ints:
        """The examples whose features are read: fewer where one has very many."""
        size = len(self.problem.sums.of_examples(BatchSums.feature_sums, self._spaced(SAMPLE)[:1])[0][0])
        return self._spaced(min(SAMPLE, max(5, ENTRIES // max(size, 1))))

    @cached_property
    def _entries(self) -> list[tuple[Ints, Floats]]:
        return self.problem.sums.of_examples(BatchSums.feature_sums, self._read)

    @cached_property
    def _sizes(self) -> Ints:
        return np.array([len(indices) for indices, _ in self._entries], dtype=np.int64)

    @cached_property
    def _example_sizes(self) -> list[tuple[int, float]]:
        return self.problem.sums.of_examples(BatchSums.example_sizes, self._read)


def _spaced(values: Ints, most: int) -> Ints:
    return values[np.linspace(0, len(values) - 1, min(most, len(values))).astype(np.int64)]
