"""Dual points for more examples: the blocks of those that were there before, and a start for the others.

The others start at, or for distributions that are never quite certain near, the gold labelling: there
A_i'(g_i - mu_i) = 0, and the weights of the point are those of the examples that were there before.
"""

import numpy as np

from partwise.problem import DualPoint, Problem
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import ActiveSet
from partwise.support.arrays import Floats, pointers

#: How far the scores of wrong parts lie below those of gold parts for examples that are new, as where `eg` starts.
SHARPNESS = 11.0


def extended(problem: Problem, point: DualPoint | None, n_known: int) -> DualPoint | None:
    """A point of the problem, whose first `n_known` examples (-1: all) are those of `point`.

    The structures of these examples must be the same ones. None if there are more and the point's parts are not known.
    """
    if point is None or n_known in (-1, problem.n_examples):
        return point
    point = point.with_blocks()
    if point.scores is not None:
        return DualPoint.of_scores(_over(problem.sums.near_gold_scores(SHARPNESS), point.scores))
    if point.marginals is not None:
        gold = problem.sums.cliques_of_scores(problem.sums.near_gold_scores(SHARPNESS))
        return DualPoint.of_cliques(_over(gold, point.marginals))
    if point.active is not None:
        return DualPoint.of_active_set(_with_gold(problem, point.active, n_known))
    if point.counts is None:
        return None
    indptr, slots, counts = problem.gold
    new = slice(indptr[n_known], None)
    index = np.repeat(problem.slot_offsets[n_known:-1], np.diff(indptr[n_known:])) + slots[new]
    whole = np.zeros(problem.n_slots)
    np.add.at(whole, index, counts[new])
    ones = np.ones(problem.n_examples)
    mass = None if point.mass is None else _over(ones, point.mass)
    entropies = None if point.entropies is None else _over(np.zeros(problem.n_examples), point.entropies)
    return DualPoint.of_counts(_over(whole, point.counts), mass, entropies)


def _over(values: Floats, known: Floats) -> Floats:
    values[: len(known)] = known
    return values


def _with_gold(problem: Problem, active: ActiveSet, n_known: int) -> ActiveSet:
    """With the gold labelling of each new example, or with the squared link none, which is mass 0."""
    n_new = problem.n_examples - n_known
    if Capability.IDENTITY_LINK not in problem.capabilities():
        ends = np.concatenate([active.example_ptr, np.full(n_new, active.example_ptr[-1])])
        return ActiveSet(ends, active.labelling_ptr, active.slots, active.counts, active.coefficients)
    indptr, slots, counts = problem.gold
    new = slice(indptr[n_known], None)
    return ActiveSet(
        np.concatenate([active.example_ptr, active.example_ptr[-1] + np.arange(1, n_new + 1)]),
        pointers(np.concatenate([np.diff(active.labelling_ptr), np.diff(indptr[n_known:])])),
        np.concatenate([active.slots, slots[new]]),
        np.concatenate([active.counts, counts[new]]),
        np.concatenate([active.coefficients, np.ones(n_new)]),
    )
