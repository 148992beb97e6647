"""Problem. min P(w) = l1 |w|_1 + f(w), f the losses and l2/2 |w|^2; l1 > 0, any l2 >= 0, temperature > 0. Free weights
have l1 = 0: a gradient, and no orthant.

Update. In the orthant of w, P is smooth. With g the pseudo-gradient, which is 0 in a weight that is 0 and stays so,

    g_j = f'_j + l1 sign(w_j)          where w_j is not 0
    g_j = soft(f'_j, l1)               where w_j = 0

the direction is d = -H g, H from the changes of f' as in `base`, set to 0 in weights where d_j has not the sign of
-g_j. The orthant is xi_j = sign(w_j), or sign(-g_j) where w_j = 0, and

    w <- pi(w + alpha d),    pi sets weights to 0 whose sign is not xi's,

with the first alpha in 1, 1/2, 1/4, ... (1 / |g| without pairs) for which P(new) <= P + `ARMIJO` <g, new - w>.

Stopping rule. gap <= tol |P|, D that of the best mean of planes; or no step lowers P any more.

Source. Andrew and Gao 2007, Algorithm 1.

Departures. The compact form of H; a failed search drops the pairs and tries the pseudo-gradient once before the run
gives up; the certificate.
"""

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, Self

import numpy as np

from partwise._core import dot
from partwise.problem import DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import SMOOTH_LOSS, Capability
from partwise.problem.tasks import Plane
from partwise.solvers.engine.base import Certified, WarmStart, start_weights
from partwise.solvers.engine.options import at_least, option
from partwise.solvers.primal.base import DescentSolver, QuasiNewtonState, balanced_plane, best_mean, no_pairs
from partwise.support.arrays import Floats

ARMIJO = 1e-4


@dataclass(kw_only=True)
class OWLQNState(QuasiNewtonState):
    """gradient: that of f. idle: steps since P or the gap went down."""

    def complaint(self, fresh: Self) -> str:
        finite = all(map(isfinite, (self.primal, self.best_b, self.best_dual, self.best_primal)))
        return super().complaint(fresh) or ("" if finite else "its plane is not finite")


@dataclass(frozen=True)
class OWLQN(DescentSolver[OWLQNState]):
    """Orthant-wise limited-memory quasi-Newton for smooth losses with an l1 term."""

    name = "owlqn"
    requires = SMOOTH_LOSS | {Capability.IDENTITY_LINK, Capability.L1}
    rate = "linear"
    advice = "Raise max_passes or tol, or take a larger l1 or l2"

    memory: int = option(10, "pairs of steps and changes of the gradient to keep", at_least(1))
    max_trials: int = option(30, "trial steps of one line search", at_least(1))

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> OWLQNState:
        first = _evaluate(problem, start_weights(problem, warm_start))
        if not isfinite(first.primal):
            raise DivergenceError(f"{self.name}: the objective is {first.primal} at the start")
        return OWLQNState(
            weights=first.weights,
            gradient=first.gradient,
            primal=first.primal,
            best_u=first.u,
            best_b=first.b,
            best_dual=problem.dual_of_plane(first.u, first.b),
            best_primal=first.primal,
            visits=len(problem.active),
            **no_pairs(self.memory, problem.n_weights),
        )

    def step(self, problem: Problem, state: OWLQNState) -> None:
        pseudo = pseudo_gradient(state.weights, state.gradient, problem.l1_of_weights)
        kinked = np.asarray(problem.l1_of_weights) != 0  # weights under the l1 term have a kink at 0
        direction, slope, first = state.descent(problem, pseudo, kinked)
        if slope == 0:
            return
        orthant, alpha = np.where(state.weights != 0, state.weights, -pseudo), first
        for _ in range(self.max_trials):
            weights = alpha * direction
            weights += state.weights
            weights[(weights * orthant <= 0) & kinked] = 0.0
            trial = _evaluate(problem, weights)
            state.visits += len(problem.active)
            change = dot(pseudo, weights - state.weights, problem.n_jobs)
            if change < 0 and trial.primal <= state.primal + ARMIJO * change:
                break
            alpha *= 0.5
        else:
            state.give_up()
            return
        state.remember(trial.weights, trial.gradient, problem.n_jobs)
        state.weights, state.gradient, state.primal = trial.weights, trial.gradient, trial.primal
        self._keep_plane(problem, state, (trial.u, trial.b))

    def certificate(self, problem: Problem, state: OWLQNState) -> Certified:
        certificate = problem.certificate_of(state.primal, state.best_u, state.best_b, state.weights)
        return Certified(certificate, state.weights.copy(), DualPoint.of_plane(state.best_u.copy(), state.best_b))

    def _keep_plane(self, problem: Problem, state: OWLQNState, plane: Plane) -> None:
        u, b = best_mean(problem, (state.best_u, state.best_b), balanced_plane(problem, state, plane))
        dual = problem.dual_of_plane(u, b)
        better = dual > state.best_dual
        if better:
            state.best_u, state.best_b, state.best_dual = u, b, dual
        state.note_progress(better)


def pseudo_gradient(weights: Floats, gradient: Floats, l1: float | Floats) -> Floats:
    """Return g of the module's docstring. gradient: that of f; l1: one for all weights, or one of each."""
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
