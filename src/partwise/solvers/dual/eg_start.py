"""What the forms of exponentiated gradient share: where they start, and how large a step may be."""

from math import isfinite
from typing import Literal, get_args

import numpy as np

from partwise.problem import Problem
from partwise.problem.result import DivergenceError
from partwise.solvers.engine.base import WarmStart, start_point, start_weights
from partwise.solvers.engine.options import NOT_NEGATIVE, POSITIVE, Values, at_least, one_of, option
from partwise.solvers.engine.point_conversions import gibbs_scores
from partwise.support.arrays import Floats

Start = Literal["gold", "uniform"]


def step_size_option(default: str, theorem: str) -> str | float:
    """Return the option of a rule for steps, or of one step for all."""
    values = Values("positive", POSITIVE.contains, words=(default, theorem))
    return option(default, f"{default}, {theorem}, or a number", values)


def start_option() -> Start:
    """Return the option of where to start."""
    return option("gold", "where to start: gold (near the gold labelling) or uniform", one_of(*get_args(Start)))


def sharpness_option(values: Values = NOT_NEGATIVE) -> float:
    """Return the option of how sure the start near the gold labelling is."""
    return option(11.0, "start gold: how far the scores of wrong parts lie below those of gold parts", values)


def growth_option(help: str) -> float:
    """Return the option of how fast step sizes grow."""
    return option(1.05, help, Values(">= 1", lambda growth: isfinite(growth) and growth >= 1))


def round_size_option() -> int:
    """Return the option of how long the lanes of threads work alone."""
    help = "several threads: examples of one thread between two exchanges (0: chosen by the work there is)"
    return option(0, help, at_least(0))


def start_cost_scale(start: Start, sharpness: float) -> float:
    """The start's slot scores over the costs: -sharpness near the gold labelling, 0 at the uniform distribution."""
    return -sharpness if start == "gold" else 0.0


def start_scores(problem: Problem, warm_start: WarmStart | None, cost_scale: float, solver: str) -> Floats:
    """Slot scores to start from: cost_scale * c, or those of the warm start."""
    if warm_start is None:
        return problem.near_gold_scores(-cost_scale)
    point = start_point(problem, warm_start, ("gibbs", "linear"))
    if point is None:
        # At temperature 0 weights say nothing of the distributions; above it they give better ones than counts do.
        kinds = ("cliques",) if problem.loss.smooth else ("cliques", "slots", "active")
        other = start_point(problem, warm_start, kinds)
        if other is not None:
            return gibbs_scores(problem, other).scores
        if not problem.loss.smooth:
            raise ValueError(
                f"{solver} at temperature 0 starts from a dual point whose distributions are known (of kind 'gibbs', "
                "'linear', 'cliques', 'slots' or 'active', as in an earlier result); weights alone, or the plane of an "
                "aggregate, do not give them"
            )
        point = problem.oracle_point(start_weights(problem, warm_start))
    if point.kind == "linear":
        return problem.linear_scores(*point.linear())
    scores = np.array(point.scores, dtype=np.float64)
    if scores.shape != (problem.n_slots,):
        raise ValueError(f"warm start: {scores.shape[0]} slot scores, the problem has {problem.n_slots} slots")
    return scores


def max_step(problem: Problem) -> float:
    """A step of 1 / tau forgets the old scores altogether; at temperature 0 the cap only keeps scores finite."""
    tau = problem.loss.temperature
    return 1.0 / tau if tau > 0 else 1e3


def psi2_bounds(problem: Problem) -> Floats:
    """Upper bounds of max_y |A_i'(g_i - counts(y))|^2, one per example (0 for those of weight zero).

    DivergenceError if safe steps, which are made of them, are beyond double precision.
    """
    bounds = np.zeros(problem.n_examples)
    bounds[problem.active] = problem.psi2_bounds(problem.active)
    with np.errstate(over="ignore"):
        curvature = problem.sample_weight.sum() * bounds.max() / problem.l2
    if not isfinite(curvature):
        worst = int(np.argmax(bounds))  # NaN, if there is one
        raise DivergenceError(
            f"no step size in double precision: squared features up to {bounds[worst]:.3g} (example {worst}), sample "
            f"weights that sum to {problem.sample_weight.sum():.3g}, l2 = {problem.l2:.3g}"
        )
    return bounds
