"""A sequence of penalties, each problem solved from the solution of the one before.

Problem. min P(w) of `problem` for l2 = l2_max, factor l2_max, factor^2 l2_max, ..., l2_min, each to gap <= tol |P|.

Update. The dual point of a solution does not depend on l2: it is a dual point of the next problem too, and only
w = u / l2 changes. Dual methods continue from it, primal ones from the weights. At temperature 0 the scores of a Gibbs
point are first multiplied by the ratio of the new l2 to the old one: labellings that have all but vanished would be
slow to come back (hinge, small chains: 2194 passes without, 260 with, 1145 from cold starts).

With an l1 penalty the sequence is l1_max, factor l1_max, ..., l1_min at the problem's own l2, or with both strengths in
one proportion. It begins where all weights are zero, |u_t| <= l1 for every weight, u of the plane at w = 0. A larger l1
leaves fewer nonzero weights, so that the first problems are small.

Source. Collins et al. 2008, section 7.1.2 (Tables 2 and 3: l2_max = 1000, factor 0.7, tol 0.001; their C is l2 here).
Departures: any solver; the last step may be shorter, so that the path ends at l2_min; the softer scores.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, takewhile
from typing import Any

import numpy as np

from partwise.problem import L2, DualPoint, ElasticNet, Problem, Result
from partwise.problem.penalties import Penalty, penalised
from partwise.solvers.engine.auto import solve
from partwise.solvers.engine.base import Solver, WarmStart, generator
from partwise.support.arrays import Floats


def penalties(l2_max: float, factor: float, l2_min: float, name: str = "l2") -> list[float]:
    """Return l2_max, factor l2_max, ... above l2_min, then l2_min. name: the strength's name in messages."""
    if not 0 < factor < 1:
        raise ValueError(f"factor must be between 0 and 1, got {factor}")
    if not (math.isfinite(l2_max) and l2_max > 0):
        raise ValueError(f"{name}_max must be a number > 0, got {l2_max}")
    if not (math.isfinite(l2_min) and 0 < l2_min <= l2_max):
        raise ValueError(f"{name}_min must be a number > 0 and at most {name}_max = {l2_max:g}, got {l2_min}")
    falling = (l2_max * factor**k for k in count())
    # A last step that only rounding makes is not worth a point.
    return [*takewhile(lambda l2: l2 > l2_min * (1.0 + 1e-9), falling), l2_min]


def largest_l1(problem: Problem) -> float:
    """Return the smallest l1 at which all penalised weights are zero: max |u_t|, u of the plane at 0 (smooth losses).

    Free weights are at the optimum for the others at zero.
    """
    return start_of_l1_path(problem)[0]


def start_of_l1_path(problem: Problem) -> tuple[float, Floats]:
    """Return `largest_l1` and the weights there: zeros, except for free weights."""
    loss, weights = problem.loss, np.zeros(problem.n_weights)
    if not loss.smooth:
        raise ValueError(f"loss {loss.name!r} has a kink at zero: an l1 penalty is for losses with a temperature")
    _, u, _ = problem.plane(weights)
    if problem.penalty.free is not None:
        # Under an l1 that no entry of u can reach, the others stay zero.
        most = 2.0 * problem.penalty.free.largest * float(problem.sample_weight.sum())
        alone = problem.with_penalty(ElasticNet(max(most, 1.0), problem.l2, problem.penalty.free))
        weights = solve(alone, "owlqn", tol=1e-14).weights
        _, u, _ = problem.plane(weights)
        u = (1.0 + 1e-6) * penalised(problem.penalty, u)  # as far as these weights may be off
    return float(np.abs(u).max(initial=0.0)), weights


def _l1_sequence(
    problem: Problem, factor: float, l1_max: float | None, l1_min: float | None, l1_ratio: float | None
) -> list[Penalty]:
    if l1_ratio is not None and not 0 < l1_ratio <= 1:
        raise ValueError(f"l1_ratio must be above 0 and at most 1, got {l1_ratio}")
    most = largest_l1(problem) if l1_max is None else l1_max
    least = problem.l1 if l1_min is None else l1_min
    if l1_max is None and 0 < most < least < math.inf:
        most = least  # all weights are zero there already
    return [
        ElasticNet(l1, problem.l2 if l1_ratio is None else l1 * (1.0 - l1_ratio) / l1_ratio, problem.penalty.free)
        for l1 in penalties(most, factor, least, "l1")
    ]


def regularization_path(
    problem: Problem,
    l2_max: float | None = None,
    factor: float = 0.7,
    tol: float = 1e-3,
    *,
    l2_min: float | None = None,
    l1_max: float | None = None,
    l1_min: float | None = None,
    l1_ratio: float | None = None,
    solver: str | Solver[Any] = "auto",
    max_passes: float | None = None,
    max_seconds: float | None = None,
    callback: Callable[[Result], Any] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    warm_start: WarmStart | None = None,
    keep_duals: bool = False,
    verbose: int = 0,
) -> list[Result]:
    """Solve the problem for a falling sequence of penalties, each from the solution of the one before.

    problem: data and loss; its own penalty ends the path unless `l2_min` (`l1_min`) says otherwise. With an l1 term the
    path is over l1. l2_max, l2_min: the first and the last strength (default of the last: the problem's); not for paths
    over l1. factor: the ratio of each strength to the one before. l1_max, l1_min: the same for a path over l1 (default:
    the smallest l1 at which all weights are zero, and the problem's). l1_ratio: let both strengths fall, l1 : l2 =
    l1_ratio : 1 - l1_ratio, instead of l1 alone at the problem's l2.

    tol, max_passes, max_seconds: every point ends at gap <= tol * |primal|, or at these limits. solver, n_jobs,
    random_state, verbose: as for `solve`; "auto" chooses again at each point. callback: called with the result of each
    point; returning a true value ends the path there. warm_start: a Result, DualPoint or weights for the first point.
    keep_duals: keep the dual point of every result, not only of the last; each is as large as the data.

    The results are in the order they were solved. A ConvergenceWarning names each point whose tolerance was not
    reached; the path continues from there. ValueError if the sequence is invalid, or the solver does not fit the
    problem or cannot start from its own results.
    """
    if problem.l1:
        if l2_max is not None or l2_min is not None:
            raise ValueError("l2_max and l2_min are for problems without an l1 penalty: this path is over l1")
        sequence = _l1_sequence(problem, factor, l1_max, l1_min, l1_ratio)
    else:
        if l2_max is None or not (l1_max is l1_min is l1_ratio is None):
            raise ValueError("a path over l2 needs l2_max; l1_max, l1_min and l1_ratio are for an l1 penalty")
        strengths = penalties(l2_max, factor, problem.l2 if l2_min is None else l2_min)
        sequence = [L2(each, problem.penalty.free) for each in strengths]
    return solve_path(
        problem,
        sequence,
        tol=tol,
        solver=solver,
        max_passes=max_passes,
        max_seconds=max_seconds,
        callback=callback,
        n_jobs=n_jobs,
        random_state=random_state,
        warm_start=warm_start,
        keep_duals=keep_duals,
        verbose=verbose,
    )


def solve_path(
    problem: Problem,
    sequence: Sequence[Penalty],
    *,
    callback: Callable[[Result], Any] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    warm_start: WarmStart | None = None,
    keep_duals: bool = False,
    **options: Any,
) -> list[Result]:
    """Solve the problem under these penalties in turn (see `regularization_path`); `options`: those of `solve`."""
    found: list[Result] = []
    problem = problem.with_n_jobs(n_jobs)
    rng = generator(random_state)
    for penalty in sequence:
        start = next_start(problem, found[-1], penalty.strength) if found else warm_start
        result = solve(problem.with_penalty(penalty), random_state=rng, warm_start=start, **options)
        if found and not keep_duals:
            found[-1] = replace(found[-1], dual_point=None)
        found.append(result)
        if callback is not None and callback(result):
            break
    return found


def next_start(problem: Problem, result: Result, l2: float) -> WarmStart:
    """Return what the problem with this l2 starts from, given the result under another l2."""
    if problem.loss.smooth or result.dual_point is None:
        return result
    point, ratio = result.dual_point.with_blocks(), l2 / result.l2
    if point.scores is not None:
        return DualPoint.of_scores(ratio * point.scores)
    if point.z is not None:
        z, cost_scale = point.linear()
        return DualPoint.of_linear(ratio * z, ratio * cost_scale)
    return result
