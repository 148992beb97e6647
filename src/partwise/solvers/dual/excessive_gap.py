"""Problem. min P(w) and max D(alpha) at temperature 0 with the identity link (hinge); l2 > 0. With
d(alpha) = sum_i omega_i (log |Y_i| - H_i), the divergence from the uniform distributions, P is smoothed to

    J_mu(w) = l2/2 |w|^2 + sum_i omega_i (smax_mu(theta_i + kappa c_i) - <theta_i, g_i>) - mu sum_i omega_i log |Y_i|,

the maximum over alpha of P's Lagrangian - mu d(alpha). Its maximiser is q_mu(w): p_i ~ exp((theta_i + kappa c_i) / mu),
and P - mu sum_i omega_i log |Y_i| <= J_mu <= P.

Update. Pairs (w, alpha) are kept with an excessive gap, J_mu(w) <= D(alpha) (Zhang et al. 2011, equation 11), while mu
falls; then P(w) - D(alpha) <= mu sum_i omega_i log |Y_i|. From the uniform alpha_0, w = w(alpha_0), alpha = q_mu(w), a
step is

    w     <- (1 - tau) w + tau w((1 - tau) alpha + tau q_mu(w))            w(alpha) = u(alpha) / l2
    mu    <- (1 - tau) mu
    alpha <- (1 - tau) alpha + tau q_mu(w)                                 with the new mu and w

on expected counts: one inference per step. Smoothing:

    theorem    mu = L = (sum omega) max_i Psi_i / l2 at first (Psi_i as in the derivation), then tau = 2 / (k + 3)
    adaptive   tau solves tau^2 L = (1 - tau) mu for an estimate of L, which is doubled until
               tau^2 / (2 l2) |u(q') - u(q)|^2 <= mu sum_i omega_i KL(q'_i || q_i),   q, q' before and after the step,
               (all that the proof of eq. 11 takes L for) and shrunk a little after each step. L = sum_i omega_i Psi_i
               / l2 always passes. The first mu is the smallest of L / 4^j, j = 0, 1, ..., that passes with tau = 1 and
               the uniform alpha_0 for q

Stopping rule. gap = P(w) - D(alpha) <= tol |P|, P at w, D from the expected counts. The gap is guessed to fall like mu.

Source. Zhang et al. 2011: Algorithm 2 with its (40), which for this d is q_mu at the new mu and w: the exponents of
(40) are (theta + kappa c) / mu + tau / ((1 - tau) mu) (theta' + kappa c), theta' of w(alpha hat), and that is
((1 - tau) theta + tau theta' + kappa c) / ((1 - tau) mu). So the second inference of a step is the first of the next,
and is done once. Weights are only mixed (section 4.3), so kernels need nothing else. Algorithm 1 for other functions is
`methods.ExcessiveGapMethod`.

Departures. Sample weights (the prox-function's modulus is 1 / sum omega; by Cauchy's inequality sum_i omega_i Psi_i
serves for (sum omega) max Psi); adaptive smoothing, because the theorem's constant, a worst case over all labellings,
costs hundreds of steps without progress; warm starts, at the least smoothing for which equation 11 holds at them; mu
stops falling where it is lost in rounding.
"""

import sys
from dataclasses import dataclass
from math import ceil, isfinite, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from partwise._core import dot
from partwise.problem import DivergenceError, DualPoint, Problem, Result
from partwise.problem.capabilities import HINGE, Capability
from partwise.problem.rounding import EPSILON
from partwise.solvers.dual.base import psi2_bounds
from partwise.solvers.engine.base import Certified, ScheduledSolver, WarmStart, start_point, start_weights
from partwise.solvers.engine.options import one_of, option
from partwise.solvers.engine.point_conversions import expected_counts
from partwise.solvers.engine.state import State
from partwise.support.arrays import Floats

Smoothing = Literal["adaptive", "theorem"]

#: Factors of the estimate of L: after a step that was too long, after one that was not.
GROW, SHRINK = 2.0, 0.9
#: Ratio of successive trials of the first mu.
RATIO = 4.0


@dataclass(kw_only=True)
class ExcessiveGapState(State):
    """weights: w, (d,). u, b: of alpha; q_u: u of q_mu(w), (d,). marginals: alpha's expected counts, (all slots,).

    smoothed_losses: sum omega (smax_mu(theta + kappa c) - <theta, g>) at w. mu: the smoothing; curvature: the estimate
    of L, at most `bound`; spread: sum omega log |Y|. k: the paper's, for the theorem's tau. cold: whether a warm start
    was given and could not be used.
    """

    positive: ClassVar[frozenset[str]] = frozenset({"mu", "k"})

    weights: Floats
    u: Floats
    q_u: Floats
    marginals: Floats
    b: float
    smoothed_losses: float = 0.0
    mu: float
    curvature: float
    bound: float
    spread: float
    k: int = 1
    cold: bool = False


class _Point(NamedTuple):
    """q_mu(w): the smoothed losses at w, q's plane, sum omega H(q), expected counts."""

    value: float
    u: Floats
    b: float
    entropy: float
    marginals: Floats


@dataclass(frozen=True)
class ExcessiveGap(ScheduledSolver[ExcessiveGapState]):
    """Excessive gap: accelerated primal-dual training of max-margin losses."""

    name = "excessive-gap"
    requires = HINGE | {Capability.EXPECTATION_ORACLE}
    rate = "sublinear"
    rate_at_zero = "accelerated"
    proof = "Zhang et al. 2011, Theorem 4: O(1/sqrt(eps))"
    advice = "Raise max_passes or tol (the gap falls like 1 / passes^2), or take a larger l2 (a smaller C)"
    default_max_passes = 2000
    slot_vectors = 2

    smoothing: Smoothing = option(
        "adaptive", "how fast the smoothing falls: adaptive, or as in the theorem", one_of(Smoothing)
    )

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> ExcessiveGapState:
        uniform, entropies = problem.sums.marginals_of_scores(np.zeros(problem.n_slots))
        omega, psi2 = problem.sample_weight, psi2_bounds(problem)
        theorem = float(omega.sum() * psi2[problem.active].max())
        bound = (theorem if self.smoothing == "theorem" else dot(omega, psi2)) / problem.l2  # L
        u, b = problem.sums.dual_terms_slots(uniform)
        state = ExcessiveGapState(
            weights=problem.weights_of_plane(u),
            u=u,
            q_u=u,
            marginals=uniform,
            b=b,
            mu=bound,
            curvature=bound,
            bound=bound,
            spread=dot(omega, entropies),
        )
        if bound == 0.0:  # no features: w = 0 whatever alpha is
            state.mu = state.curvature = state.bound = 1.0
        if warm_start is None or not self._start_warm(problem, state, warm_start):
            state.cold = warm_start is not None
            self._start_cold(problem, state)
        state.gain = state.mu * state.spread
        return state

    def step(self, problem: Problem, state: ExcessiveGapState) -> None:
        while True:
            tau = 2.0 / (state.k + 3)
            if self.smoothing == "adaptive":  # the root of tau^2 L = (1 - tau) mu
                tau = 2.0 * state.mu / (state.mu + sqrt(state.mu * state.mu + 4.0 * state.curvature * state.mu))
            target = problem.weights_of_plane((1.0 - tau) * state.u + tau * state.q_u)  # w(alpha hat)
            weights = (1.0 - tau) * state.weights + tau * target
            mu = max((1.0 - tau) * state.mu, min(_negligible(state), state.mu))
            q = self._respond(problem, state, weights, mu)
            # sum omega KL(q' || q): q' has the expected score b' - <u', w> with the old weights, q the smax.
            expected = q.b - problem.dot(q.u, state.weights)
            divergence = (state.smoothed_losses - expected) / state.mu - q.entropy
            curved = tau * tau * problem.half_square(q.u - state.q_u)
            if not isfinite(curved + mu * divergence):
                raise DivergenceError(f"excessive-gap: numbers beyond double precision at mu = {mu:.3g}")
            if curved <= mu * divergence + self._noise(problem, state, q, tau):
                break
            if self.smoothing == "theorem" or state.curvature >= state.bound:
                raise DivergenceError(
                    f"excessive-gap: a step of tau = {tau:.3g} at mu = {mu:.3g} breaks the excessive gap, although L "
                    "is the theorem's: the feature map's psi2_bound is not a bound, or an oracle is wrong"
                )
            state.curvature = min(GROW * state.curvature, state.bound)
        state.u, state.b = (1.0 - tau) * state.u + tau * q.u, (1.0 - tau) * state.b + tau * q.b
        state.marginals *= 1.0 - tau
        state.marginals += tau * q.marginals
        state.weights, state.mu, state.q_u, state.smoothed_losses = weights, mu, q.u, q.value
        if self.smoothing == "adaptive":
            state.curvature = max(SHRINK * state.curvature, mu)
        state.k += 1
        state.epoch += 1
        state.gain = mu * state.spread

    def certificate(self, problem: Problem, state: ExcessiveGapState) -> Certified:
        point = DualPoint.of_counts(state.marginals.copy())
        return Certified(problem.certificate(state.weights, point), state.weights.copy(), point)

    def remark(self, problem: Problem, state: ExcessiveGapState) -> str:
        return "the warm start has no excessive gap at any smoothing: started cold" if state.cold else ""

    @staticmethod
    def _noise(problem: Problem, state: ExcessiveGapState, q: _Point, tau: float) -> float:
        """Return how far rounding may move the sides of a step's test, two differences of much larger scores, apart."""
        rounding = problem.sums.rounding
        size_u, change = rounding.size(q.u), rounding.size(q.u - state.q_u)
        losses = rounding.of_plane_at(q.b, size_u, rounding.size(state.weights))
        # Even if all entropies are 0, they are differences of logarithms that are rounded like those of sums near 1.
        entropies = EPSILON * state.mu * (rounding.examples * state.spread + rounding.counts)
        of_u = 2.0 * rounding.of_plane(0.0, 1.0, 0)[1] + EPSILON * rounding.weights * change
        return losses + entropies + tau * tau * of_u * (change + 0.5 * of_u) / problem.l2

    def _respond(self, problem: Problem, state: ExcessiveGapState, weights: Floats, mu: float) -> _Point:
        """Return q_mu(w), in one pass."""
        marginals = state.marginals.copy()  # examples of weight zero keep theirs
        value, u, b, entropy = problem.sums.plane_at(weights, mu, marginals)
        state.visits += len(problem.active)
        return _Point(value, u, b, entropy, marginals)

    def _start_cold(self, problem: Problem, state: ExcessiveGapState) -> None:
        """Start at w(alpha_0) and its q_mu, at the theorem's mu or the smallest of some that keep an excessive gap."""
        mu, found = state.bound, self._respond(problem, state, state.weights, state.bound)
        while self.smoothing == "adaptive" and mu > RATIO * _negligible(state):
            q = self._respond(problem, state, state.weights, mu / RATIO)
            divergence = state.spread - q.entropy  # from the uniform distributions
            if problem.half_square(q.u - state.u) > mu / RATIO * divergence:
                break
            mu, found = mu / RATIO, q
        state.mu = state.curvature = mu
        _settle(state, found, found.u, found.b, found.marginals)

    def _start_warm(self, problem: Problem, state: ExcessiveGapState, warm_start: WarmStart) -> bool:
        """Start at the given pair and the smallest mu (of powers of RATIO) with an excessive gap; False if none has."""
        point = start_point(problem, warm_start, ("slots", "gibbs", "active", "cliques", "linear"))
        counts = None if point is None else expected_counts(problem, point)[0]
        if counts is None or isinstance(warm_start, Result):
            weights = start_weights(problem, warm_start)
        else:
            weights = problem.weights_from_dual(DualPoint.of_counts(counts))
        penalty = problem.penalty_value(weights)
        if counts is None:  # weights alone: alpha is q_mu(w) at every mu tried
            mu = state.bound / RATIO**15
        else:
            u, b = problem.sums.dual_terms_slots(counts)
            primal = problem.value(weights)
            gap = max(primal - problem.dual_of_plane(u, b), 1e-12 * (1.0 + abs(primal)))
            mu = min(gap / state.spread, state.bound) if state.spread > 0 else state.bound  # eq. 12: less is not enough
        mu = max(mu, sys.float_info.min)  # 0 times RATIO would stay 0
        while mu <= state.bound:
            q = self._respond(problem, state, weights, mu)
            if counts is None:
                u, b = q.u, q.b
            if penalty + q.value - mu * state.spread <= problem.dual_of_plane(u, b):  # eq. 11
                state.weights, state.mu, state.curvature = weights, mu, sqrt(mu * state.bound)
                state.k = max(state.k, steps_to(mu, state.bound))
                _settle(state, q, u, b, q.marginals if counts is None else counts)
                return True
            mu *= RATIO
        return False


def _settle(state: ExcessiveGapState, q: _Point, u: Floats, b: float, counts: Floats) -> None:
    """Set alpha to the point with these (u, b, counts), and q_mu(w) to q."""
    state.smoothed_losses, state.q_u = q.value, q.u
    state.u, state.b, state.marginals = u, b, counts


def steps_to(mu: float, bound: float) -> int:
    """Return the first k at which the theorem's mu, 6 bound / ((k + 1) (k + 2)), is at most this one."""
    return max(0, ceil(sqrt(0.25 + 6.0 * bound / mu) - 1.5))


def _negligible(state: ExcessiveGapState) -> float:
    """Return a smoothing so small that it cannot be told from none."""
    return 1e-15 * (1.0 + abs(state.b)) / max(state.spread, 1e-15)
