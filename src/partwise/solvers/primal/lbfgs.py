"""Problem. min P(w), temperature > 0 (l2 = 0 is allowed).

Update. d = -H grad P(w), H as in `base`. Then w += alpha d, alpha from a line search on phi(alpha) = P(w + alpha d):

    strong Wolfe       phi(alpha) <= phi(0) + c1 alpha phi'(0)  and  |phi'(alpha)| <= c2 |phi'(0)|
    near the optimum   phi(alpha) <= phi(0) + 1e-10 |phi(0)|  and  c2 phi'(0) <= phi'(alpha) <= (2 c1 - 1) phi'(0)

where the second form replaces the first once differences of P are lost in rounding. P is convex, so phi' is increasing:
the search for its root uses secants, kept inside the bracket.

Stopping rule. gap <= tol |P|, at most |grad P|^2 / (2 l2), and that of `base`.

Source. Liu and Nocedal 1989; the second line-search test is the approximate Wolfe condition of Hager and Zhang 2005.
Collins et al. 2008 and Huang et al. 2010 compare their methods with L-BFGS.

Departures. Our own code in place of a library's, so that a run can be saved and resumed bit for bit; the compact form
of H; a failed line search drops the pairs and tries the gradient once before it gives up.
"""

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np

from partwise._core import dot
from partwise.problem import Problem
from partwise.problem.capabilities import SMOOTH_LOSS, Capability
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.options import at_least, option
from partwise.solvers.primal.base import PrimalSolver, PrimalState, QuasiNewtonState, no_pairs
from partwise.support.arrays import Floats

ARMIJO, CURVATURE = 1e-4, 0.9


@dataclass(kw_only=True)
class LBFGSState(QuasiNewtonState, PrimalState):
    """An iterate and the pairs of the last steps."""


@dataclass(frozen=True)
class LBFGS(PrimalSolver[LBFGSState]):
    """Limited-memory BFGS for smooth losses."""

    name = "lbfgs"
    requires = SMOOTH_LOSS | {Capability.SMOOTH_PENALTY}
    rate = "linear"
    proof = "Liu and Nocedal 1989: O(log 1/eps)"

    memory: int = option(10, "pairs of steps and changes of the gradient to keep", at_least(1))
    max_trials: int = option(25, "trial steps of one line search", at_least(1))

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> LBFGSState:
        return LBFGSState(**vars(self.start(problem, warm_start)), **no_pairs(self.memory, problem.n_weights))

    def step(self, problem: Problem, state: LBFGSState) -> None:
        direction, slope, first = state.descent(problem, state.gradient)
        if slope == 0:
            return
        search = LineSearch(state.primal, slope, first, self.max_trials)
        while not search.ended:
            weights = search.alpha * direction
            weights += state.weights
            primal, gradient = problem.value_and_gradient(weights)
            search.add(Trial(search.alpha, primal, dot(gradient, direction, problem.n_jobs), weights, gradient))
        state.visits += search.trials * len(problem.active)
        if search.best is None:
            state.give_up()
            return
        _, primal, _, weights, gradient = search.best
        state.remember(weights, gradient, problem.n_jobs)
        self.move(problem, state, weights, primal, gradient)


class Trial(NamedTuple):
    """A point of a line search: the step, P and its slope along the line there, w, and the gradient."""

    alpha: float
    primal: float
    slope: float
    weights: Floats
    gradient: Floats


class LineSearch:
    """The line search of the module's docstring: `alpha` is the step to try next, `add` takes what was found there.

    best: at the end, a trial that passed one of the two tests; else the best one that lowered the objective, or None.
    """

    def __init__(self, primal: float, slope: float, first: float, max_trials: int) -> None:
        self.primal, self.slope, self.alpha, self.max_trials = primal, slope, first, max_trials
        self.trials, self.ended = 0, False
        self.best: Trial | None = None
        self.low, self.low_slope = 0.0, slope  # lower end: phi' < 0 and phi is low enough
        self.high, self.high_slope, self.high_ok = 0.0, 0.0, False  # high 0: not found yet

    def add(self, trial: Trial) -> None:
        self.trials += 1
        alpha, primal, slope = self.alpha, self.primal, self.slope
        ok = isfinite(trial.primal) and isfinite(trial.slope)
        enough = ok and trial.primal <= primal + ARMIJO * alpha * slope
        near = ok and trial.primal <= primal + 1e-10 * abs(primal) and trial.slope <= (2 * ARMIJO - 1) * slope
        if (enough or near) and abs(trial.slope) <= -CURVATURE * slope:
            self.best, self.ended = trial, True
            return
        if ok and trial.primal < primal and (self.best is None or trial.primal < self.best.primal):
            self.best = trial
        if (enough or near) and trial.slope < 0:
            self.low, self.low_slope = alpha, trial.slope
        else:
            self.high, self.high_slope, self.high_ok = alpha, trial.slope if ok else 0.0, enough or near
        self.alpha = _next_alpha(self.low, self.low_slope, self.high, self.high_slope, self.high_ok, slope)
        room = self.low < self.alpha and (not self.high or self.alpha < self.high)
        self.ended = not room or self.trials == self.max_trials


def _next_alpha(low: float, low_slope: float, high: float, high_slope: float, high_ok: bool, slope: float) -> float:
    """Return the secant's root of phi', well inside the bracket, or 2 to 10 times as far without an upper end."""
    if not high:
        rise = low_slope - slope
        root = low * -slope / rise if rise > 0 else float("inf")
        return min(max(root, 2.0 * low), 10.0 * low)
    width = high - low
    root = low + width * low_slope / (low_slope - high_slope) if high_slope > 0 else low + 0.5 * width
    # An end that was rejected for its value tells little about the root: at least halve the bracket.
    furthest = 0.9 if high_ok else 0.5
    return min(max(root, low + 0.1 * width), low + furthest * width)
