"""Problem. min over w, max over distributions alpha of l2/2 |w|^2 + b(alpha) - <u(alpha), w>, the saddle point of P and
D at temperature 0 with the identity link (hinge); l2 > 0; (u, b)(alpha) is the plane of alpha. The operator is
F(w, alpha) = (l2 w - u(alpha), -(theta_i + kappa c_i)), its second part per slot of example i and divided by omega_i.

Update. Distances are those of the prox-function a/2 |w|^2 + sum_i omega_i KL(alpha_i || uniform), under which a step
adds to w and to the slot scores of alpha. From w and the alpha with slot scores A_i y + k c_i, a step of length eta is

    w_v = w - eta/a (l2 w - u(alpha)),          y_v = y + eta w,      k_v = k + eta kappa       (look ahead)
    w  <- w - eta/a (l2 w_v - u(alpha_v)),      y  <- y + eta w_v,    k  <- k + eta kappa       (step from there)

so that the vector y and the number k stand for all distributions (as in `eg-primal`); a step takes two inferences.
eta, by `step_rule`:

    theorem    1 / L, L = l2 / a + sqrt(sum_i omega_i Psi_i / a), Psi_i >= |A_i'(g_i - counts(y))|^2 for all y
    adaptive   first 1 / L. A step is accepted if eta <F(v), v - new> <= distance of the new point from the old one: the
               proof needs L for nothing else. Then eta grows by the factor 1.2; after a rejected step it is halved, and
               the step is tried again. Steps of at most 1 / L are always accepted

The answer consists of averages of w_v and of the planes of alpha_v, weighted by eta; their gap is at most
(a/2 |w(mean alpha) - first w|^2 + sum_i omega_i log |Y_i|) / sum of eta, with w(alpha) = u(alpha) / l2.

Stopping rule. gap = P - D <= tol |P|; D of the averaged plane or the newest, P at the averaged weights or those of the
averaged plane, whichever is better.

Source. Taskar et al. 2006, Figure 5 (dual extragradient) with the Bregman projections of their section 5 (Zhang et al.
2011, Table 1, "Extragradient"). All w and all slot scores are allowed, so projections change nothing. A step from the
newest point (extragradient) therefore equals one from the start along the sum of gradients (dual extragradient).

Departures. A penalty instead of a ball of weights; sample weights; the search for eta; the choice
a = `balance` l2 sum_i omega_i log |Y_i| / P(0), which gives both distances the same scale.
"""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from partwise._core import dot
from partwise.problem import DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import HINGE, Capability
from partwise.solvers.dual.base import psi2_bounds
from partwise.solvers.engine.base import Certified, ScheduledSolver, WarmStart, start_weights
from partwise.solvers.engine.options import POSITIVE, one_of, option
from partwise.solvers.engine.state import State
from partwise.support.arrays import Floats

Step = Literal["adaptive", "theorem"]

#: Factors of eta after a step that holds, and after one that does not.
GROW, SHRINK = 1.2, 0.5
#: Differences below this share of the numbers involved are rounding.
NOISE = 1e-12


@dataclass(kw_only=True)
class ExtragradientState(State):
    """weights: w; y, cost_scale: of alpha's slot scores; u, b: its plane. All vectors (d,).

    log_partition: sum omega log Z of these scores. mean_weights, mean_u, mean_b: averages, of total weight `total`.
    gold: sum omega A'g. step_size: eta; least_step: the theorem's; prox: a.
    """

    positive: ClassVar[frozenset[str]] = frozenset({"step_size", "least_step", "prox"})

    weights: Floats
    y: Floats
    cost_scale: float = 0.0
    u: Floats
    b: float
    log_partition: float
    gold: Floats
    mean_weights: Floats
    mean_u: Floats
    mean_b: float
    total: float = 0.0
    step_size: float
    least_step: float
    prox: float


class _Point(NamedTuple):
    """Weights, and distributions with slot scores A y + k c: plane, sum omega log Z, sum omega (H + old k <mu, c>)."""

    weights: Floats
    y: Floats
    cost_scale: float
    u: Floats
    b: float
    log_partition: float
    reference: float


@dataclass(frozen=True)
class Extragradient(ScheduledSolver[ExtragradientState]):
    """Dual extragradient with Bregman projections, for the saddle point of max-margin losses."""

    name = "extragradient"
    requires = HINGE | {Capability.EXPECTATION_ORACLE}
    rate = "sublinear"
    proof = "Taskar et al. 2006: O(1/eps)"
    advice = "Raise max_passes or tol (the gap falls like 1 / passes), or take a larger l2 (a smaller C)"
    default_max_passes = 4000

    step_rule: Step = option("adaptive", "length of steps: adaptive, or as in the theorem", one_of(Step))
    balance: float = option(10.0, "weight of distances in w beside those in alpha", POSITIVE)

    def init_state(
        self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None
    ) -> ExtragradientState:
        weights, y = start_weights(problem, warm_start), np.zeros(problem.n_weights)
        u, b, spread, _ = problem.sums.eg_primal_point(y, 0.0, 0.0)  # log Z of zero scores is log |Y|
        at_zero = problem.sums.value(y)
        prox = self.balance * problem.l2 * (spread / at_zero if spread > 0 and at_zero > 0 else 1.0)
        coupling = dot(problem.sample_weight, psi2_bounds(problem))
        step = 1.0 / (problem.l2 / prox + sqrt(coupling / prox))
        return ExtragradientState(
            weights=weights,
            y=y,
            u=u,
            b=b,
            log_partition=spread,
            gold=problem.sums.gold_features(),
            mean_weights=weights.copy(),
            mean_u=u.copy(),
            mean_b=b,
            step_size=step,
            least_step=step,
            prox=prox,
            visits=2 * len(problem.active),
        )

    def step(self, problem: Problem, state: ExtragradientState) -> None:
        while True:
            eta = state.step_size
            ahead = _moved(problem, state, state.weights, problem.gradient(state.weights, state.u))
            slope = problem.gradient(ahead.weights, ahead.u)
            new = _moved(problem, state, ahead.weights, slope)
            if not (isfinite(new.b + new.log_partition) and np.isfinite(new.weights).all()):
                raise DivergenceError(f"{self.name}: numbers beyond double precision at a step of {eta:.3g}")
            if _holds(problem, state, slope, ahead, new):
                break
            if eta <= state.least_step:
                raise DivergenceError(
                    f"{self.name}: a step of {eta:.3g}, the theorem's, is too long: the feature map's psi2_bound is "
                    "not a bound, or an oracle is wrong"
                )
            state.step_size = max(SHRINK * eta, state.least_step)
        state.total += eta
        share = eta / state.total
        state.mean_weights += share * (ahead.weights - state.mean_weights)
        state.mean_u += share * (ahead.u - state.mean_u)
        state.mean_b += share * (ahead.b - state.mean_b)
        state.weights, state.y, state.cost_scale, state.u, state.b, state.log_partition, _ = new
        if self.step_rule == "adaptive":
            state.step_size = GROW * eta
        state.gain = 1.0 / state.total
        state.epoch += 1

    def certificate(self, problem: Problem, state: ExtragradientState) -> Certified:
        planes = [(state.mean_u, state.mean_b), (state.u, state.b)]
        u, b = max(planes, key=lambda plane: problem.dual_of_plane(*plane))
        candidates = [state.mean_weights, problem.weights_of_plane(state.mean_u)]
        primal, weights = min(((problem.value(each), each) for each in candidates), key=lambda pair: pair[0])
        certificate = problem.certificate_of(primal, u, b, weights, state.epoch + 1)
        return Certified(certificate, weights.copy(), DualPoint.of_plane(u.copy(), b))

    def weights(self, problem: Problem, state: ExtragradientState) -> Floats:
        return state.mean_weights.copy()

    def remark(self, problem: Problem, state: ExtragradientState) -> str:
        return f"step size {state.step_size / state.least_step:.3g} times the theorem's"


def _moved(problem: Problem, state: ExtragradientState, along: Floats, slope: Floats) -> _Point:
    """Return where a step from the state leads, y along these weights and w down this slope; one pass."""
    eta = state.step_size
    y, cost_scale = state.y + eta * along, state.cost_scale + eta * problem.loss.cost_scale
    state.visits += len(problem.active)
    found = problem.sums.eg_primal_point(y, cost_scale, state.cost_scale)
    return _Point(state.weights - eta / state.prox * slope, y, cost_scale, *found)


def _holds(problem: Problem, state: ExtragradientState, slope: Floats, ahead: _Point, new: _Point) -> bool:
    """Test eta <F(v), v - new> <= a/2 |w_new - w|^2 + sum omega KL(alpha_new || alpha), up to rounding."""
    eta, rest = state.step_size, ahead.weights - new.weights
    of_alpha = (ahead.b - problem.dot(ahead.u, ahead.weights)) - (new.b - problem.dot(new.u, ahead.weights))
    gain = problem.dot(slope, rest) - of_alpha
    # E_new[scores of alpha] = <sum omega A'mu_new, y> + k <mu_new, c>, and sum omega A'mu = sum omega A'g - u
    expected = problem.dot(state.gold - new.u, state.y)
    divergence = state.log_partition - new.reference - expected
    distance = 0.5 * state.prox * problem.norm2(new.weights - state.weights) + divergence
    # Logarithms of sums near 1 are rounded as 1 is, and u as its terms are, even if the results are small.
    size = float(problem.sample_weight.sum()) + abs(state.log_partition) + abs(new.reference)
    size += abs(expected) + eta * (abs(new.b) + abs(ahead.b))
    rounding = problem.sums.rounding
    times_u = 2.0 * rounding.size(state.y) + eta * (2.0 * rounding.size(ahead.weights) + rounding.size(rest))
    return eta * gain <= distance + NOISE * size + rounding.of_plane(0.0, 1.0, 0)[1] * times_u
