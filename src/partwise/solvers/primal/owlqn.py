"""Orthant-wise limited-memory quasi-Newton for smooth losses with an l1 term.

Problem. min P(w) = l1 |w|_1 + f(w) of `problem`, f the losses and l2/2 |w|^2; l1 > 0, any l2 >= 0, temperature > 0.
Weights that are not penalised have l1 = 0: they have a gradient, and no orthant.

Update. In the orthant of w, P is smooth. With g the pseudo-gradient, which is 0 in a weight that is 0 and stays so,

    g_j = f'_j + l1 sign(w_j)          where w_j is not 0
    g_j = soft(f'_j, l1)               where w_j = 0

the direction is d = -H g, H from the changes of f' as in `pairs`, set to 0 in weights where d_j has not the sign of
-g_j. The orthant is xi_j = sign(w_j), or sign(-g_j) where w_j = 0, and

    w <- pi(w + alpha d),    pi sets weights to 0 whose sign is not xi's,

with the first alpha in 1, 1/2, 1/4, ... (1 / |g| without pairs) for which P(new) <= P + `ARMIJO` <g, new - w>.

Stopping rule. gap <= tol |P|. A plane touches the losses at every w, and means of planes are planes below them (see
`problem`): the run keeps the best plane it has, and mixes each new one with it as is best for the dual. Ends as well
when no step brings P down any more.

Source. Andrew and Gao 2007, Algorithm 1. Departures: the compact form of H; a failed search drops the pairs and tries
the pseudo-gradient once before the run gives up; the certificate.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise._core import dot
from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import DualPoint
from partwise.problem.result import Certificate, DivergenceError, Status
from partwise.solvers.engine.base import Certified, Solver, WarmStart, start_weights
from partwise.solvers.engine.options import at_least, option
from partwise.solvers.engine.registry import register
from partwise.solvers.primal.mean_planes import balanced_plane, best_mean
from partwise.solvers.primal.pairs import PairsState, direction_along, forget, no_pairs, remember
from partwise.support.arrays import Floats

ARMIJO = 1e-4
#: Steps without progress before a run counts as stalled.
PATIENCE = 20


@dataclass(kw_only=True)
class OWLQNState(PairsState):
    """weights: (d,). gradient: (d,), that of f. best_u, best_b: the best plane, best_dual: its dual.

    idle: steps since P or the gap went down.
    """

    weights: Floats
    gradient: Floats
    primal: float
    best_u: Floats
    best_b: float
    best_dual: float
    best_primal: float
    idle: int = 0
    stalled: bool = False

    def complaint(self, fresh: Any) -> str:
        finite = all(map(isfinite, (self.primal, self.best_b, self.best_dual, self.best_primal)))
        return super().complaint(fresh) or ("" if finite else "its plane is not finite")


@register(place=13)
@dataclass(frozen=True)
class OWLQN(Solver[OWLQNState]):
    """Orthant-wise limited-memory quasi-Newton (see the module's docstring)."""

    name: ClassVar[str] = "owlqn"
    requires: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SMOOTH,
            Capability.IDENTITY_LINK,
            Capability.L1,
            Capability.EXPECTATION_ORACLE,
            Capability.EXPLICIT_WEIGHTS,
        }
    )
    rate: ClassVar[str] = "linear"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l1 or l2"
    default_max_passes: ClassVar[int] = 2000

    memory: int = option(10, "pairs of steps and changes of the gradient to keep", at_least(1))
    max_trials: int = option(30, "trial steps of one line search", at_least(1))

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> OWLQNState:
        d = problem.n_weights
        weights = np.zeros(d) if warm_start is None else start_weights(problem, warm_start)
        first = _evaluate(problem, weights)
        if not isfinite(first.primal):
            raise DivergenceError(f"{self.name}: the objective is {first.primal} at the start")
        return OWLQNState(
            weights=weights,
            gradient=first.gradient,
            primal=first.primal,
            best_u=first.u,
            best_b=first.b,
            best_dual=problem.dual_of_plane(first.u, first.b),
            best_primal=first.primal,
            visits=len(problem.active),
            **no_pairs(self.memory, d),
        )

    def step(self, problem: Problem, state: OWLQNState) -> None:
        pseudo = pseudo_gradient(state.weights, state.gradient, problem.l1_of_weights)
        direction = direction_along(state, pseudo, problem.n_jobs)
        direction[(direction * pseudo >= 0) & self._kinked(problem)] = 0.0
        slope = dot(pseudo, direction, problem.n_jobs)
        if not slope < 0:  # the pairs have degenerated (or the pseudo-gradient is zero)
            forget(state)
            direction = -pseudo
            slope = dot(pseudo, direction, problem.n_jobs)
        state.epoch += 1
        if slope == 0:
            state.stalled = True
            return
        # Without pairs: as far as the last pair's curvature says, or a step of length 1 if there never was one.
        first = 1.0 if state.stored else state.gamma or 1.0 / float(np.sqrt(-slope))
        found, trials = self._search(problem, state, pseudo, direction, first)
        state.visits += trials * len(problem.active)
        if found is None:
            # With the pairs the direction may be poor; along the pseudo-gradient itself nothing is left to gain.
            state.stalled = state.stored == 0
            forget(state)
            return
        remember(state, found.weights - state.weights, found.gradient - state.gradient, problem.n_jobs)
        state.weights, state.gradient, state.primal = found.weights, found.gradient, found.primal
        self._keep_plane(problem, state, found)

    def certificate(self, problem: Problem, state: OWLQNState) -> Certified:
        certificate = problem.certificate_of(state.primal, state.best_u, state.best_b, state.weights)
        return Certified(certificate, state.weights.copy(), DualPoint.of_plane(state.best_u.copy(), state.best_b))

    def weights(self, problem: Problem, state: OWLQNState) -> Floats:
        return state.weights.copy()

    def finished(self, problem: Problem, state: OWLQNState, certificate: Certificate, tol: float) -> Status | None:
        status = super().finished(problem, state, certificate, tol)
        return self.at_the_end(certificate) if status is None and state.stalled else status

    def remark(self, problem: Problem, state: OWLQNState) -> str:
        return "no step improves the objective in double precision" if state.stalled else ""

    def _search(
        self, problem: Problem, state: OWLQNState, pseudo: Floats, direction: Floats, first: float
    ) -> tuple["_Trial | None", int]:
        """The first step that brings P down enough, if there is one, and the number of trials made."""
        orthant = np.where(state.weights != 0, state.weights, -pseudo)
        kinked, alpha = self._kinked(problem), first
        for trials in range(1, self.max_trials + 1):
            weights = alpha * direction
            weights += state.weights
            weights[(weights * orthant <= 0) & kinked] = 0.0
            trial = _evaluate(problem, weights)
            change = dot(pseudo, weights - state.weights, problem.n_jobs)
            if change < 0 and trial.primal <= state.primal + ARMIJO * change:
                return trial, trials
            alpha *= 0.5
        return None, trials

    @staticmethod
    def _kinked(problem: Problem) -> Any:
        """Which weights have a kink at 0: those under the l1 term."""
        return problem.l1_of_weights != 0

    def _keep_plane(self, problem: Problem, state: OWLQNState, found: "_Trial") -> None:
        """The best mixture of the best plane and the newest; whether there is progress."""
        plane = found.u, found.b
        other = balanced_plane(problem, plane, found.weights, state.primal, state.best_dual)
        if other is not None:
            plane = other
            state.visits += len(problem.active)
        u, b = best_mean(problem, (state.best_u, state.best_b), plane)
        dual = problem.dual_of_plane(u, b)
        better = dual > state.best_dual
        down = state.primal < state.best_primal - 4e-16 * abs(state.best_primal)
        if better:
            state.best_u, state.best_b, state.best_dual = u, b, dual
        state.idle = 0 if better or down else state.idle + 1
        state.best_primal = min(state.best_primal, state.primal)
        state.stalled = state.idle >= PATIENCE


def pseudo_gradient(weights: Floats, gradient: Floats, l1: float | Floats) -> Floats:
    """g of the module's docstring; gradient: that of f; l1: one for all weights, or one of each."""
    outside = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    found: Floats = np.where(weights != 0, gradient + l1 * np.sign(weights), outside)
    return found


class _Trial(NamedTuple):
    weights: Floats
    primal: float
    gradient: Floats
    u: Floats
    b: float


def _evaluate(problem: Problem, weights: Floats) -> _Trial:
    losses, u, b = problem.plane(weights)
    return _Trial(weights, losses + problem.penalty_value(weights), problem.gradient(weights, u), u, b)
