"""Limited-memory BFGS for smooth losses.

Problem. min P(w) of `problem`, temperature > 0 (l2 = 0 is allowed).

Update. d = -H grad P(w), H as in `pairs`. Then w += alpha d, with alpha from a line search on
phi(alpha) = P(w + alpha d):

    strong Wolfe       phi(alpha) <= phi(0) + c1 alpha phi'(0)  and  |phi'(alpha)| <= c2 |phi'(0)|
    near the optimum   phi(alpha) <= phi(0) + 1e-10 |phi(0)|  and  c2 phi'(0) <= phi'(alpha) <= (2 c1 - 1) phi'(0)

where the second form replaces the first once differences of P drown in rounding. P is convex, so phi' is increasing and
the search is for its root: secants, kept inside the bracket.

Stopping rule. gap <= tol |P|, at most |grad P|^2 / (2 l2): the oracle's own answers are planes, for nothing. Ends as
well when no step brings P or the gap down any more (the rounding floor). With l2 = 0: |grad P(w)| <= tol |grad P(0)|.

Source. Liu and Nocedal 1989; the second line-search test is the approximate Wolfe condition of Hager and Zhang 2005.
Collins et al. 2008 and Huang et al. 2010 have L-BFGS as a rival. Departures: our own code in place of a library's, so
that a run can be saved and resumed bit for bit; the compact form of H; a failed line search drops the pairs and tries
the gradient once before it gives up; the dual value reported is that of the best mean of planes, not the newest one's
(`primal`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from partwise._core import dot
from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.options import at_least, option
from partwise.solvers.engine.registry import register
from partwise.solvers.primal.base import PrimalSolver, PrimalState
from partwise.solvers.primal.pairs import PairsState, direction_along, forget, no_pairs, remember
from partwise.support.arrays import Floats

ARMIJO, CURVATURE = 1e-4, 0.9


@dataclass(kw_only=True)
class LBFGSState(PairsState, PrimalState):
    """An iterate and the pairs of the last steps."""


@register(place=1)
@dataclass(frozen=True)
class LBFGS(PrimalSolver[LBFGSState]):
    """Limited-memory BFGS (see the module's docstring)."""

    name: ClassVar[str] = "lbfgs"
    requires: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.SMOOTH, Capability.SMOOTH_PENALTY, Capability.EXPECTATION_ORACLE, Capability.EXPLICIT_WEIGHTS}
    )
    rate: ClassVar[str] = "linear"
    proof: ClassVar[str] = "Liu and Nocedal 1989: O(log 1/eps)"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 2000

    memory: int = option(10, "pairs of steps and changes of the gradient to keep", at_least(1))
    max_trials: int = option(25, "trial steps of one line search", at_least(1))

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> LBFGSState:
        return LBFGSState(**self.start(problem, warm_start), **no_pairs(self.memory, problem.n_weights))

    def step(self, problem: Problem, state: LBFGSState) -> None:
        direction = direction_along(state, state.gradient, problem.n_jobs)
        slope = dot(state.gradient, direction, problem.n_jobs)
        if not slope < 0:  # the pairs have degenerated (or the gradient is zero)
            forget(state)
            direction = -state.gradient
            slope = dot(state.gradient, direction, problem.n_jobs)
        if slope == 0:
            state.stalled = True
            state.epoch += 1
            return
        # Without pairs: as far along the gradient as the last pair's curvature says, or 1 if there never was one.
        first = 1.0 if state.stored else state.gamma or 1.0 / sqrt(-slope)
        found, trials = self._line_search(problem, state, direction, slope, first)
        state.visits += trials * len(problem.active)
        state.epoch += 1
        if found is None:
            # With the pairs the direction may be poor; along the gradient itself nothing is left to gain.
            state.stalled = state.stored == 0
            forget(state)
            return
        remember(state, found.weights - state.weights, found.gradient - state.gradient, problem.n_jobs)
        self.move(problem, state, found.weights, found.primal, found.gradient)

    def _line_search(
        self, problem: Problem, state: LBFGSState, direction: Floats, slope: float, first: float
    ) -> tuple["_Trial | None", int]:
        def evaluate(alpha: float) -> _Trial:
            weights = alpha * direction
            weights += state.weights
            primal, gradient = problem.value_and_gradient(weights)
            return _Trial(alpha, primal, dot(gradient, direction, problem.n_jobs), weights, gradient)

        return search(evaluate, state.primal, slope, first, self.max_trials)


class _Trial(NamedTuple):
    alpha: float
    primal: float
    slope: float
    weights: Floats
    gradient: Floats


def search(
    evaluate: Callable[[float], _Trial], primal: float, slope: float, first: float, max_trials: int
) -> tuple[_Trial | None, int]:
    """A step that passes one of the two tests of the module's docstring, and the number of trials made.

    If none does within max_trials, the best trial that brought the objective down, or None.
    """
    low, low_slope = 0.0, slope  # here phi' < 0 and phi is low enough
    high, high_slope, high_ok = 0.0, 0.0, False  # high 0: not found yet
    alpha, best = first, None
    for trials in range(1, max_trials + 1):
        trial = evaluate(alpha)
        ok = isfinite(trial.primal) and isfinite(trial.slope)
        enough = ok and trial.primal <= primal + ARMIJO * alpha * slope
        near = ok and trial.primal <= primal + 1e-10 * abs(primal) and trial.slope <= (2 * ARMIJO - 1) * slope
        if (enough or near) and abs(trial.slope) <= -CURVATURE * slope:
            return trial, trials
        if ok and trial.primal < primal and (best is None or trial.primal < best.primal):
            best = trial
        if (enough or near) and trial.slope < 0:
            low, low_slope = alpha, trial.slope
        else:
            high, high_slope, high_ok = alpha, trial.slope if ok else 0.0, enough or near
        alpha = _next_alpha(low, low_slope, high, high_slope, high_ok, slope)
        if not low < alpha or (high and not alpha < high):  # the bracket has no number left inside
            break
    return best, trials


def _next_alpha(low: float, low_slope: float, high: float, high_slope: float, high_ok: bool, slope: float) -> float:
    """The secant's root of phi', well inside the bracket, or 2 to 10 times as far if there is no upper end yet."""
    if not high:
        rise = low_slope - slope
        root = low * -slope / rise if rise > 0 else float("inf")
        return min(max(root, 2.0 * low), 10.0 * low)
    width = high - low
    root = low + width * low_slope / (low_slope - high_slope) if high_slope > 0 else low + 0.5 * width
    # An end that was rejected for its value says little about where the root is: at least halve.
    furthest = 0.9 if high_ok else 0.5
    return min(max(root, low + 0.1 * width), low + furthest * width)
