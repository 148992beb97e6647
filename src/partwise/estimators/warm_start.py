"""The start of a fit from the result of another fit.

Weights start from those of the same features; new features start at 0. The dual point is used if the new data begin
with the old ones, answers included; further examples start at their answers. Smooth losses start best from both: the
dual point of weights near the optimum may be far from the best one, because u = l2 w holds only at the optimum. At
temperature 0 weights give no dual point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from partwise.estimators.parameters import SolverChoice
from partwise.models.base import Ability, Model
from partwise.problem import Problem
from partwise.problem.losses import Loss
from partwise.problem.penalties import Penalty
from partwise.problem.result import Result
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.point_conversions import extended
from partwise.support.arrays import Floats, Ints

AnyModel = Model[Any]


@dataclass(frozen=True, eq=False)
class FitKey:
    """The properties of a fit that its dual point depends on; `slots` and `answers` are None for a partition."""

    model: type[AnyModel]
    loss: Loss
    solver: SolverChoice
    penalty: Penalty
    shape: tuple[Any, ...]  # what labellings depend on (`Learnt.shape`); it also identifies a partition
    slots: Ints | None = None  # where each example's slots begin
    answers: NDArray[np.uint64] | None = None  # a hash of each example's answer

    def known_in(self, other: FitKey) -> int | None:
        """Return this fit's number of examples if the other begins with them, -1 for the same partition, else None."""
        if (self.model, self.loss, len(self.shape)) != (other.model, other.loss, len(other.shape)):
            return None
        if self.slots is None or self.answers is None or other.slots is None or other.answers is None:
            return -1 if self.slots is other.slots and self.shape == other.shape else None
        n, more = len(self.answers), len(other.answers)
        if n > more or not np.array_equal(self.slots, other.slots[: n + 1]):
            return None
        for mine, theirs in zip(self.shape, other.shape, strict=True):
            if np.shape(mine) == (n,) and np.shape(theirs) == (more,):
                theirs = theirs[:n]  # of each example
            if not np.array_equal(mine, theirs):
                return None
        return n if np.array_equal(self.answers, other.answers[:n]) else None


def answer_numbers(problem: Problem) -> NDArray[np.uint64]:
    """Return a hash of the gold labelling of each example."""
    indptr, slots, counts = problem.gold
    mixed = (slots.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * counts.astype(np.uint64)
    sums = np.append(np.uint64(0), np.cumsum(mixed, dtype=np.uint64))  # modulo 2^64
    return np.asarray(sums[indptr[1:]] - sums[indptr[:-1]], dtype=np.uint64)


def start_of(
    last: AnyModel, key: FitKey | None, result: Result, model: AnyModel, new: FitKey, problem: Problem
) -> WarmStart | None:
    """Return the part of the last fit's result that the new fit can start from."""
    smooth = new.loss.smooth
    by_weights = smooth or getattr(new.solver, "incremental", False)
    weights = _carried_weights(model, last, problem) if by_weights else None
    if by_weights and (weights is None or not smooth or key is None or key.penalty != new.penalty):
        return weights  # with another penalty, weights are a better start than a dual point
    known = None if key is None else key.known_in(new)
    if key is None or known is None or not (smooth or key.solver == new.solver):
        return weights
    point = extended(problem, result.dual_point, known)
    if point is None:
        return weights
    if weights is None:
        return result if point is result.dual_point and len(result.weights) == problem.n_weights else point
    return replace(result, dual_point=point, weights=weights)


def _carried_weights(model: AnyModel, last: AnyModel, problem: Problem) -> Floats | None:
    """Return the last model's weights for the features of this one; None if the models cannot share features."""
    if type(last) is not type(model) or Ability.WARM_START not in model.abilities():
        return None
    found = model.carried(last)
    if found is not None and np.shape(found) != (problem.n_weights,):
        raise ValueError(
            f"{type(model).__name__}.carried gave weights of shape {np.shape(found)} for {problem.n_weights} "
            "features: it must return None where features differ"
        )
    return found


def model_of(fitted: Any) -> AnyModel:
    """Return the model that a fitted estimator has, for those who compare its features with another one's."""
    return cast(AnyModel, fitted._model)


def n_shared(old: AnyModel, new: AnyModel) -> int:
    """Return how many features of the old model the new one has; all of them if both are the same."""
    found = new.carried(old.with_weights(np.random.default_rng(0).uniform(1.0, 2.0, len(old.weights))))
    return 0 if found is None else int(np.count_nonzero(found))
