"""Losses between 0 and 1 of labelled examples, and the bound that follows from examples that training has not seen."""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from partwise.problem import LabelledBatch
from partwise.problem.batch import structure_costs
from partwise.problem.inference import SlotScores, best_labellings
from partwise.structures import HistoryChain
from partwise.support.arrays import Booleans, Floats, Ints

Loss = Literal["cost", "zero-one"]


def kl(q: float, p: float) -> float:
    """KL(q || p) = q ln(q / p) + (1 - q) ln((1 - q) / (1 - p)) of coins that fall heads with probability q and p."""
    _check_probability("q", q)
    _check_probability("p", p)
    return _term(q, p) + _term(1.0 - q, 1.0 - p)


def kl_inverse(q: float, epsilon: float) -> float:
    """Return the largest p with KL(q || p) <= epsilon: a bound of the mean, from an observed mean q.

    It is rounded up by at most 1e-12, and at most q + sqrt(2 q epsilon) + 2 epsilon (Bartlett et al. 2004, eq. 6).
    """
    _check_probability("q", q)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon}")
    low, high = q, 1.0  # KL rises with p above q
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if kl(q, middle) <= epsilon else (low, middle)
    return high


def _term(a: float, b: float) -> float:
    if a == 0.0:
        return 0.0
    return a * math.log1p((a - b) / b) if b > 0.0 else math.inf  # log(a / b) would lose digits where a is near b


def _check_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def check_delta(delta: float) -> None:
    """Raise ValueError unless delta can be the probability that a bound fails."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be above 0 and below 1, got {delta}")


def held_out_bound(losses: ArrayLike, delta: float = 0.05) -> float:
    """Return a bound of the expected loss, with probability at least 1 - delta, from losses of held-out examples.

    Losses that are all 0 or 1: the exact binomial (Clopper-Pearson) bound. Others in [0, 1]: Chernoff's,
    KL(mean || p) <= ln(1 / delta) / n.
    """
    check_delta(delta)
    values: Floats = np.asarray(losses, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"a bound needs at least 2 losses, got an array of shape {values.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("losses must be between 0 and 1")
    n, total = len(values), float(values.sum())
    if ((values == 0) | (values == 1)).all():
        return 1.0 if total == n else float(beta.ppf(1.0 - delta, total + 1.0, n - total))
    return kl_inverse(float(values.mean()), math.log(1.0 / delta) / n)


class Labellings(NamedTuple):
    """A labelling of each example: the k-th uses slots[indptr[k]:indptr[k + 1]], each `counts` times."""

    indptr: Ints
    slots: Ints
    counts: Floats

    def sums(self, offsets: Ints, vector: Floats) -> Floats:
        """Return <vector, counts> of each example."""
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(self.indptr))
        return sums_by(owner, vector[offsets[owner] + self.slots] * self.counts, len(offsets) - 1)

    def spread(self, offsets: Ints) -> Floats:
        """Return the counts of all slots; the examples' blocks are concatenated."""
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(self.indptr))
        dense = np.zeros(int(offsets[-1]))
        np.add.at(dense, offsets[owner] + self.slots, self.counts)
        return dense


class Losses:
    """L of labellings: the cost over the largest cost of the example, or 1 for every labelling but the gold one.

    costs: of all slots, concatenated. largest: the largest cost of each example, or 1 if no labelling has a cost.
    """

    def __init__(self, examples: LabelledBatch, loss: Loss, n_jobs: int = 1) -> None:
        if loss not in get_args(Loss):
            raise ValueError(f"loss must be one of {', '.join(get_args(Loss))}, got {loss!r}")
        self.loss, self.offsets, self.gold = loss, examples.batch.slot_offsets, Labellings(*examples.gold)
        structure = examples.batch.structure
        self.costs = structure_costs(structure, examples.gold) if examples.cost is None else examples.cost
        if structure.linear:
            largest = Labellings(*SlotScores(structure, n_jobs).best(self.costs)).sums(self.offsets, self.costs)
        else:  # rows of labels, of which a labelling uses one slot each
            assert isinstance(structure, HistoryChain)
            rows = self.costs.reshape(-1, structure.width).max(axis=1)
            largest = np.add.reduceat(rows, self.offsets[:-1] // structure.width)
        self.largest = np.where(largest > 0, largest, 1.0)

    def of(self, labellings: Labellings) -> Floats:
        if self.loss == "zero-one":
            return np.where(self.are_gold(labellings), 0.0, 1.0)
        return labellings.sums(self.offsets, self.costs) / self.largest

    def are_gold(self, labellings: Labellings) -> Booleans:
        wrong = np.abs(labellings.spread(self.offsets) - self.gold.spread(self.offsets))
        owner = np.repeat(np.arange(len(self.largest)), np.diff(self.offsets))
        gold: Booleans = sums_by(owner, wrong, len(self.largest)) == 0
        return gold


def sums_by(owner: Ints, values: Floats, n_examples: int) -> Floats:
    """Return the sum of the values that belong to each example."""
    return np.bincount(owner, weights=values, minlength=n_examples).astype(np.float64)


def held_out_losses(examples: LabelledBatch, weights: Floats, *, loss: Loss = "cost", n_jobs: int = 1) -> Floats:
    """Return the loss of a model's own answer to each example, between 0 and 1, for `held_out_bound`.

    It works for every model. examples: some that training has not seen, from `estimator.labelled(X, y)`. weights:
    `estimator.weights_`. loss: the "cost" over the largest cost of the example (for rows of labels the share of wrong
    ones), or "zero-one", 1 for every labelling but the gold one.
    """
    return Losses(examples, loss, n_jobs).of(Labellings(*best_labellings(examples.batch, weights, n_jobs)))
