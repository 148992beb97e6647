"""The first step size of adaptive online EG, found on a tenth of the data (Collins et al. 2008, section 7).

The paper takes a step with which the dual improves monotonically for at least 95% of the examples in a tenth of the
data, and leaves open how it is found. Here the tenth, drawn at random, is a separate problem (its weights are those
of its own examples); one pass of EG over it with the same eta for all examples tells for how many of them the dual did
not fall at the first trial. From eta = 1 (at most 1 / tau; more if theory allows it) the step is halved until they are
95%. Larger steps are not tried: far from the optimum nearly every example takes them, to the harm of the others.
"""

import numpy as np

from partwise import _core
from partwise.problem import Problem
from partwise.problem.dual_points import DualPoint
from partwise.solvers.dual.eg_start import max_step
from partwise.support.arrays import Floats, Ints

#: Share of the data that is used, fewest examples of it, and share of them that must improve.
SHARE, FEWEST, MONOTONE = 0.1, 20, 0.95


def calibrate(
    problem: Problem, scores: Floats, marginals: Floats, entropies: Floats, least: float, rng: np.random.Generator
) -> tuple[float, int]:
    """(the first step size, examples visited to find it); the arrays, a dual point to start from, are left alone.

    least: a step that every example is known to take, where halving may end.
    """
    sample = draw_sample(problem, rng)
    plane = _plane_of(problem, marginals, sample)
    step, visits = min(max(1.0, least), max_step(problem)), 0
    while step > least:
        share, visited = improving_share(problem, sample, step, plane, scores, marginals, entropies)
        visits += visited
        if share >= MONOTONE:
            break
        step = max(0.5 * step, least)
    return step, visits


def draw_sample(problem: Problem, rng: np.random.Generator) -> Ints:
    """A tenth of the examples, in random order; all of them if there are few."""
    active = rng.permutation(problem.active)
    return active[: max(FEWEST, int(np.ceil(SHARE * len(active))))]


def improving_share(
    problem: Problem, sample: Ints, step: float, plane: Floats, scores: Floats, marginals: Floats, entropies: Floats
) -> tuple[float, int]:
    """(share of the sample for which the first trial did not let the dual fall, examples visited)."""
    steps = np.full(problem.n_examples, step)
    weights, visits = problem.weights_of_plane(plane), 0
    u = plane.copy() if problem.l1 else None
    # growth 1, so that a step size that has changed was refused
    options = _core.EgOptions(l2=problem.l2, l1=problem.l1, adaptive=True, growth=1.0)
    for part, order in problem.visits(sample):
        state = _core.EgState(
            part.native,
            weights=weights,
            scores=scores[part.slots].copy(),
            marginals=marginals[part.slots].copy(),
            entropies=entropies[part.examples].copy(),
            step_sizes=steps[part.examples],
            plane=u,
        )
        visits += _core.eg_epoch(state, order, options).visits
    return float(np.mean(steps[sample] == step)), visits


def _plane_of(problem: Problem, marginals: Floats, sample: Ints) -> Floats:
    """u = sum over the sample of omega_i A_i'(g_i - mu_i): outside of it mu_i = g_i."""
    counts = np.zeros_like(marginals)
    indptr, slots, gold = problem.gold
    offsets = problem.slot_offsets
    owner = np.repeat(np.arange(problem.n_examples), np.diff(indptr))
    np.add.at(counts, offsets[owner] + slots, gold)
    for i in sample:
        counts[offsets[i] : offsets[i + 1]] = marginals[offsets[i] : offsets[i + 1]]
    return problem.dual_terms(DualPoint.of_counts(counts))[0]
