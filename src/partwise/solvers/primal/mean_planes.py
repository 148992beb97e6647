"""Means of two planes below the losses, which are planes below them too: the best one for the dual (see `problem`)."""

from partwise.problem import Problem
from partwise.problem.free_weights import balanced, penalised
from partwise.problem.tasks import Plane
from partwise.support.arrays import Floats

#: Trial mixtures of a new plane with the best one.
MIXTURES = 12


def balanced_plane(problem: Problem, plane: Plane, weights: Floats, primal: float, dual: float) -> Plane | None:
    """A plane without entries for weights that are not penalised, if it may halve the distance from P to D (one pass).

    plane: that of the oracle's answer at the weights. dual: the best so far.
    """
    if problem.penalty.free is None:
        return None
    ideal = problem.dual_of_plane(penalised(problem.penalty, plane[0]), plane[1])
    enough = primal - problem.dual_of_plane(*plane) <= 1.5 * (primal - ideal)
    if enough or primal - ideal > 0.5 * (primal - dual):
        return None
    tau = problem.loss.temperature
    at, cost_scale = weights / tau, problem.loss.cost_scale / tau
    return balanced(problem, *plane, lambda moved: problem.sums.dual_terms_linear(at, cost_scale, moved))


def best_mean(problem: Problem, old: Plane, new: Plane) -> Plane:
    """Of the means of two planes that with the largest dual.

    With l1 or free weights about, by a search that tries the new one too; without them, D((1 - t) old + t new) is a
    parabola in t.
    """
    change = new[0] - old[0]

    def mixed(t: float) -> Plane:
        return old[0] + t * change, (1.0 - t) * old[1] + t * new[1]

    if not problem.l1 and problem.penalty.free is None:
        bend = problem.norm2(change)
        rise = problem.l2 * (new[1] - old[1]) - problem.dot(old[0], change)
        if not bend > 0:
            return max(old, new, key=lambda plane: plane[1])
        t = min(max(rise / bend, 0.0), 1.0)
        change *= t  # in place: this is done after every step of solvers whose steps may be short
        change += old[0]
        return change, (1.0 - t) * old[1] + t * new[1]

    dual = problem.dual_as_it_is if problem.l2 > 0 else problem.dual_of_plane

    def value(t: float) -> float:
        return dual(*mixed(t))

    low, high = 0.0, 1.0
    golden = 0.5 * (5**0.5 - 1.0)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(MIXTURES):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = value(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = value(left)
    best = max((at_left, left), (at_right, right), (value(1.0), 1.0), (value(0.0), 0.0))[1]
    return mixed(best)
