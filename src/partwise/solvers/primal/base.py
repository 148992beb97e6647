"""What methods that go down the primal of a smooth loss share: start, certificate, when to stop.

Their certificate is free: the oracle's answer at w is a plane below the losses that touches them there, and
gap = |grad P|^2 / (2 l2) (see `problem`). The dual value reported is that of the best mean of the planes met, itself a
plane below the losses: each new one is mixed with the best as is best for the dual (`mean_planes`). A run ends as well
when no step brings P or the gap down any more (the rounding floor). With l2 = 0 there is no certificate, and the run
ends at |grad P(w)| <= tol |grad P(0)|.
"""

from abc import ABC
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any, TypeVar

import numpy as np

from partwise.problem import Problem
from partwise.problem.dual_points import DualPoint
from partwise.problem.result import Certificate, DivergenceError, Status
from partwise.solvers.engine.base import Certified, Solver, WarmStart, start_weights
from partwise.solvers.engine.state import State
from partwise.solvers.primal.mean_planes import balanced_plane, best_mean
from partwise.support.arrays import Floats

#: Steps without progress before a run counts as stalled.
PATIENCE = 20


@dataclass(kw_only=True)
class PrimalState(State):
    """weights, gradient: (d,). best_u, best_b: the best mean of planes; best_off: what its dual may be off by.

    reference: |grad P(0)|, for l2 = 0. idle: steps since there was progress.
    """

    weights: Floats
    gradient: Floats
    primal: float
    best_u: Floats
    best_b: float
    best_dual: float
    best_off: float
    reference: float
    best_primal: float
    best_norm2: float
    idle: int = 0
    stalled: bool = False


P = TypeVar("P", bound=PrimalState)


@dataclass(frozen=True)
class PrimalSolver(Solver[P], ABC):
    """A solver whose iterate is w, with P and its gradient known there."""

    def start(self, problem: Problem, warm_start: WarmStart | None) -> dict[str, Any]:
        """The fields of a `PrimalState` before the first step."""
        d = problem.n_weights
        weights = np.zeros(d) if warm_start is None else start_weights(problem, warm_start)
        primal, gradient = problem.value_and_gradient(weights)
        if not isfinite(primal):
            raise DivergenceError(f"{self.name}: the objective is {primal} at the start")
        u, b = problem.touching_plane(weights, primal, gradient)
        first = problem.certificate_at(primal, gradient, weights)
        reference = 0.0
        if problem.l2 == 0:
            at_zero = gradient if warm_start is None else problem.value_and_gradient(np.zeros(d))[1]
            reference = sqrt(problem.norm2(at_zero))
        return {
            "weights": weights,
            "gradient": gradient,
            "primal": primal,
            "best_u": u,
            "best_b": b,
            "best_dual": first.dual,
            "best_off": first.rounding,
            "reference": reference,
            "best_primal": primal,
            "best_norm2": problem.norm2(gradient),
            "visits": len(problem.active),
        }

    def move(self, problem: Problem, state: P, weights: Floats, primal: float, gradient: Floats) -> None:
        """Make these the iterate.

        Keeps the best mean of planes; counts the steps since P went down by more than rounding or the gap by a tenth.
        """
        state.weights, state.primal, state.gradient = weights, primal, gradient
        norm2 = problem.norm2(gradient)
        if problem.l2 > 0:
            self._keep_plane(problem, state)
        down = primal < state.best_primal - 4e-16 * abs(state.best_primal)
        state.idle = 0 if down or norm2 < 0.9 * state.best_norm2 else state.idle + 1
        state.best_primal = min(state.best_primal, primal)
        state.best_norm2 = min(state.best_norm2, norm2)
        state.stalled = state.idle >= PATIENCE

    def _keep_plane(self, problem: Problem, state: P) -> None:
        """The best of the kept plane, the newest and their means."""
        newest = problem.certificate_at(state.primal, state.gradient, state.weights)
        plane = problem.touching_plane(state.weights, state.primal, state.gradient)
        other = balanced_plane(problem, plane, state.weights, state.primal, state.best_dual)
        if other is not None:
            plane = other
            state.visits += len(problem.active)
            newest = problem.certificate_of(state.primal, *plane, state.weights)
        mean = best_mean(problem, (state.best_u, state.best_b), plane)
        # A plane is as good as the scores at its weights, which may be larger than those at later ones.
        off = max(state.best_off, newest.rounding)
        found = (newest.dual, newest.rounding, plane), (problem.dual_of_plane(*mean), off, mean)
        dual, off, plane = max(found, key=lambda each: each[0] - each[1])
        if dual - off > state.best_dual - state.best_off:
            state.best_dual, state.best_off = dual, off
            state.best_u, state.best_b = plane

    def certificate(self, problem: Problem, state: P) -> Certified:
        newest = problem.certificate_at(state.primal, state.gradient, state.weights)
        best_plane = state.best_u, state.best_b
        best = problem.certificate_of(state.primal, *best_plane, state.weights, off=state.best_off)
        # Differences of P and D end at rounding; the newest plane's |grad P|^2 does not.
        if best.gap < newest.gap - 1e-12 * abs(state.primal) and not best.hidden(0.0):
            return Certified(best, state.weights.copy(), DualPoint.of_plane(state.best_u.copy(), state.best_b))
        plane = problem.touching_plane(state.weights, state.primal, state.gradient)
        return Certified(newest, state.weights.copy(), DualPoint.of_plane(*plane))

    def weights(self, problem: Problem, state: P) -> Floats:
        return state.weights.copy()

    def finished(self, problem: Problem, state: P, certificate: Certificate, tol: float) -> Status | None:
        if problem.l2 == 0:
            small = tol > 0 and sqrt(problem.norm2(state.gradient)) <= tol * state.reference
            return "no certificate" if small else ("stalled" if state.stalled else None)
        status = super().finished(problem, state, certificate, tol)
        if status is None and state.stalled:
            return self.at_the_end(certificate)
        return status

    def remark(self, problem: Problem, state: P) -> str:
        norm = sqrt(problem.norm2(state.gradient))
        if problem.l2 == 0:
            return f"gradient norm {norm:.3g} ({norm / state.reference if state.reference else 0:.3g} of that at w = 0)"
        return "no step improves the objective in double precision" if state.stalled else ""
