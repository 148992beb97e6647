"""Conversions of dual points: from the form that one solver ended with to the form that another solver starts from.

    any kind -> expected counts     sums over an active set's labellings or a clique's entries
    any kind -> Gibbs scores        the distribution p_i ~ exp(<counts, v_i>) with the same expected counts mu_i
    any kind -> clique marginals    of a mixture of labellings the masses of those that use an entry

At temperature 0 the dual value depends on the expected counts alone, so that the second form has the same value as the
first. Above it the second form's value is at least as large: no distribution with these counts has more entropy.

Clique marginals become scores by conditionals (Bartlett et al. 2004, section 6): log p(variable | separator), summed
over a labelling's cliques, is its log probability. Tied slots (a chain's transitions, one score for all positions)
cannot hold a conditional per position. There v_i is found by minimising log Z(v) - <mu_i, v> from the scores that node
marginals give (`_core.match_counts`), to `TOLERANCE` of the counts' sum, by at most `MOST` inferences per example,
which do not count as passes. Scores are finite, so no probability may be 0: a share `FLOOR` of the uniform distribution
is mixed in.
"""

from math import isinf
from typing import NamedTuple

import numpy as np

from partwise._core import Structure
from partwise.problem import Capability, DualPoint, Problem
from partwise.problem.dual_points import ActiveSet
from partwise.problem.rounding import EPSILON
from partwise.solvers.working_sets.kept_labellings import arrays_of, split
from partwise.support.arrays import Floats, pointers

#: The uniform distribution's share of a converted point.
FLOOR = 1e-5
#: Sum of the differences in expected counts, over the sum of counts, and inferences per example to get there.
TOLERANCE, MOST = 1e-4, 200
#: How far the scores of wrong parts lie below those of gold parts for examples that are new, as where `eg` starts.
SHARPNESS = 11.0
#: How far the masses of a dual point may be from 1 where they must be 1.
OFF = 1e-10


class ForeignPoint(ValueError):
    """A dual point whose distributions are not over the labellings of the problem that it is used for."""


class Converted(NamedTuple):
    """Slot scores, the inferences that found them, and the number of examples whose counts are not matched."""

    scores: Floats
    inferences: int
    unmatched: int


def check_clique_memory(problem: Problem, memory_mb: float, solver: str) -> None:
    """Raise ValueError if clique marginals of all examples would take more memory than the limit."""
    needed = 8 * int(problem.sums.clique_starts[-1]) / 2**20
    if needed > memory_mb:
        raise ValueError(
            f"{solver} would keep {needed:.4g} MB of clique marginals, more than memory_mb={memory_mb:g}; raise it, or "
            "take a solver that keeps none (lbfgs, eg, bcfw)"
        )


def check_point(problem: Problem, point: DualPoint) -> None:
    """Check a warm start's or a checkpoint's dual point; ValueError if its sizes, signs or masses are invalid.

    ForeignPoint if labellings do not belong to the structure or its masks, clique marginals are not those of
    distributions, or counts lie outside the labellings' convex hull, as far as masks and maxima tell. Slot scores are
    always a distribution; planes cannot be checked.
    """
    if point.marginals is not None:
        check_marginals(problem, _marginals_of(problem, point.marginals))
        return
    active, n = point.active, problem.n_examples
    if active is not None:
        if len(active.example_ptr) != n + 1:
            raise ValueError(f"warm start: an active set of {len(active.example_ptr) - 1} examples, not {n}")
        mass = active.used_slots(n)[3]
    elif point.counts is not None:
        counts, mass = expected_counts(problem, point)
        _check_probabilities(counts)
        active = mixtures(problem, counts, mass)
    else:
        return
    if Capability.IDENTITY_LINK in problem.capabilities():
        _check_masses(mass[problem.active], OFF)
    if complaint := problem.sums.labelling_complaint(split(arrays_of(active), problem.sums.batch_sizes)):
        raise ForeignPoint(complaint)


def mixtures(problem: Problem, counts: Floats, mass: Floats) -> ActiveSet:
    """Return one mixture of labellings per example with mass, from expected counts and masses."""
    n, offsets = problem.n_examples, problem.slot_offsets
    there = mass > 0
    used = np.flatnonzero(counts)
    owner = np.searchsorted(offsets, used, side="right") - 1  # example of each slot
    used, owner = used[there[owner]], owner[there[owner]]
    sizes = np.bincount(owner, minlength=n)[there]
    return ActiveSet(pointers(there), pointers(sizes), used - offsets[owner], counts[used] / mass[owner], mass[there])


def expected_counts(problem: Problem, point: DualPoint) -> tuple[Floats, Floats]:
    """Return (s mu, s) of a point whose parts are known, for all slots and examples; ValueError for other points."""
    n, ones = problem.n_examples, np.ones(problem.n_examples)
    if point.active is not None:
        return point.active.expected_counts(problem.slot_offsets)
    if point.marginals is not None:
        return problem.sums.read_cliques(clique_marginals(problem, point))[0], ones
    if point.scores is not None or point.kind == "linear":
        scores = problem.sums.linear_scores(*point.linear()) if point.scores is None else point.scores
        if scores.shape != (problem.n_slots,):
            raise ValueError(f"warm start: {scores.size} slot scores, the problem has {problem.n_slots} slots")
        return problem.sums.marginals_of_scores(scores)[0], ones
    if point.counts is None:
        raise ValueError("the distributions of an aggregate dual point are not known")
    counts = np.array(point.counts, dtype=np.float64)
    mass = ones if point.mass is None else np.asarray(point.mass, dtype=np.float64)
    if counts.shape != (problem.n_slots,) or mass.shape != (n,):
        raise ValueError(f"warm start: {counts.size} slots of {mass.size} examples, not {problem.n_slots} of {n}")
    return counts, mass


def gibbs_scores(
    problem: Problem, point: DualPoint, *, floor: float = FLOOR, tolerance: float = TOLERANCE, most: int = MOST
) -> Converted:
    """Return slot scores of Gibbs distributions with the point's expected counts; ValueError unless masses are 1."""
    if point.scores is not None or point.kind == "linear":
        return Converted(problem.sums.linear_scores(*point.linear()) if point.scores is None else point.scores, 0, 0)
    if point.marginals is not None:
        _check_cliques(problem)
        marginals = np.asarray(point.marginals, dtype=np.float64)
        _check_probabilities(marginals)
        return Converted(*problem.sums.scores_of_cliques(marginals, floor, tolerance, most))
    counts, mass = expected_counts(problem, point)
    _check_probabilities(counts)
    _check_masses(mass[problem.active], 1e-6)
    return Converted(*problem.sums.scores_of_counts(counts, floor, tolerance, most))


def clique_marginals(problem: Problem, point: DualPoint | None) -> Floats:
    """Return the clique marginals of a point of this problem with mass 1 (None: the gold labellings'), or ValueError.

    Where slots are tied, expected counts do not determine them: those of the Gibbs distributions are taken.
    """
    _check_cliques(problem)
    if point is None:
        n = problem.n_examples
        return _mixture(problem, ActiveSet(np.arange(n + 1), *problem.gold, np.ones(n)))
    if point.marginals is not None:
        marginals = _marginals_of(problem, point.marginals)
        if not isinf(check_marginals(problem, marginals)):  # inf: whether neighbouring cliques agree is not known
            return np.maximum(marginals, 0.0)
    elif point.active is not None and (point.active.counts == np.round(point.active.counts)).all():
        _check_masses(point.active.expected_counts(problem.slot_offsets)[1], 1e-6)
        return _mixture(problem, point.active)
    return problem.sums.cliques_of_scores(gibbs_scores(problem, point).scores)


def check_marginals(problem: Problem, marginals: Floats) -> float:
    """Return how inconsistent clique marginals may be (inf: the structure cannot tell); ForeignPoint if too much."""
    off, complaint = problem.sums.check_clique_marginals(marginals)
    if complaint:
        raise ForeignPoint(complaint)
    return off


def updates_of(problem: Problem, marginals: Floats) -> int:
    """Return the number of updates whose rounding explains these marginals' errors (`Problem.certificate_of`)."""
    off = check_marginals(problem, marginals)
    return 0 if isinf(off) else int((off / EPSILON) ** 2)


def _mixture(problem: Problem, active: ActiveSet) -> Floats:
    """Return the sum over labellings of their mass times the entries that they use."""
    marginals = np.zeros(int(problem.sums.clique_starts[-1]))
    for part in problem.sums.in_memory():
        structure = part.structure
        for i in range(structure.num_examples):
            example = part.examples.start + i
            for k in range(active.example_ptr[example], active.example_ptr[example + 1]):
                used = slice(active.labelling_ptr[k], active.labelling_ptr[k + 1])
                # The core's own method checks the answers of a structure in Python.
                entries = Structure.clique_entries(structure, i, active.slots[used], active.counts[used])
                marginals[problem.sums.clique_starts[example] + entries] += active.coefficients[k]
    return marginals


def _check_cliques(problem: Problem) -> None:
    if Capability.CLIQUES not in problem.capabilities():
        raise ValueError(f"warm start: {problem.sums.facts.structure} has no clique view")


def _marginals_of(problem: Problem, given: Floats) -> Floats:
    """Return clique marginals that were given; ValueError unless there is one for each entry of a clique."""
    _check_cliques(problem)
    marginals, size = np.asarray(given, dtype=np.float64), problem.sums.clique_starts[-1]
    if len(marginals) != size:
        raise ValueError(f"{len(marginals)} clique marginals given, the structure has {size}")
    return marginals


def _check_masses(mass: Floats, off: float) -> None:
    if not np.allclose(mass, 1.0, rtol=0.0, atol=off):
        raise ValueError("warm start: masses other than 1 belong to another loss")


def _check_probabilities(values: Floats) -> None:
    if not (np.isfinite(values).all() and values.min(initial=0.0) >= -1e-9):
        raise ValueError("warm start: expected counts that are negative or not finite")


def extended(problem: Problem, point: DualPoint | None, n_known: int) -> DualPoint | None:
    """Return a point of the problem whose first `n_known` examples (-1: all) are those of `point`.

    The structures of these examples must be the same. The other examples start at the gold labelling, or near it for
    distributions that are never quite certain: there A_i'(g_i - mu_i) = 0, and the weights are those of the known
    examples. None if there are others and the point's parts are not known.
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
    mass = None if point.mass is None else _over(np.ones(problem.n_examples), point.mass)
    entropies = None if point.entropies is None else _over(np.zeros(problem.n_examples), point.entropies)
    return DualPoint.of_counts(_over(whole, point.counts), mass, entropies)


def _over(values: Floats, known: Floats) -> Floats:
    values[: len(known)] = known
    return values


def _with_gold(problem: Problem, active: ActiveSet, n_known: int) -> ActiveSet:
    """Add the gold labelling of each new example; with the squared link none, which is mass 0."""
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
