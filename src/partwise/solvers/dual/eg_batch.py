"""Problem. max D(alpha) for losses with the identity link (mass 1), any temperature tau >= 0; l2 > 0.

Update. Example i's distribution is p_i ~ exp(<counts, s_i>) with slot scores s_i. All examples step at once along the
gradient divided by omega_i, in the geometry of the Kullback-Leibler divergence:

    s_i <- (1 - eta tau) s_i + eta (A_i w + kappa c_i) for all i,    w = u / l2,   u = sum_i omega_i A_i'(g_i - mu_i)

`eg-primal`. If the first slot scores are s_i = A_i z + k c_i for one vector z and one number k, all later ones are,
because the update is linear in them and has the same coefficients for every example:

    z <- (1 - eta tau) z + eta w,    k <- (1 - eta tau) k + eta kappa,    w = 1/l2 sum_i omega_i A_i'(g_i - mu_i)

where mu_i is computed from A_i z + k c_i at example i's turn, and not kept. At the start z = 0 and k = 0
(uniform distributions) or k = -`sharpness` (near the gold labelling). The result's dual point is the pair (z, k).

Step sizes, with |psi_i|^2 an upper bound of max_y |A_i'(g_i - counts(y))|^2:

    search     a step from q to p is taken if tau KL(p || q) + |u_p - u_q|^2 / (2 l2) <= KL(p || q) / eta, and halved if
               not. eta doubles until that happens for the first time, then grows by `growth` per step. Steps up to
               1 / (tau + sum_i omega_i |psi_i|^2 / l2) are never refused
    theorem    eta = 1 / (tau + (sum_i omega_i) |A|), |A| = max_i |psi_i|^2 / l2
    a number   that one; a run whose dual falls raises DivergenceError

Stopping rule. gap = P(w) - D <= tol |P|. (u, b) of the dual point come out of the step; P(w) costs half a pass more.

Source. Collins et al. 2008: Figure 1 (log-linear and max-margin), on part scores as in Lemma 1; Bartlett et al. 2004:
Figure 3. With the theorem's step Corollary 1 and Theorem 1 hold: the dual never falls, and
D* - D^(T+1) <= KL(u* || u^1) / (eta T), for tau > 0 also <= e^(-eta tau T) KL(u* || u^1) / eta, where KL is summed with
weights omega.
`eg-primal`: Bartlett et al. 2004, Figure 5 (appendix C), the max-margin problem. The paper's line z^(t+1) = z^t + ...
inside the loop over examples must add to z^(t+1), or all examples but the last are forgotten. With weights 1 and
tau = 0, eta C^2 z there is z here (there w* = C z^(t+1) - C z^t) and eta C (t - 1) is k.

Departures. Sample weights and temperatures other than 0 and 1 (the bound of Lemma 3 becomes M_A <= (sum omega) |A| KL,
by Pinsker's inequality on omega_i p_i / sum omega); start near the gold labelling; the search, because most problems
allow far longer steps than the theorem's. Its test is what the proofs of Corollary 1 and Lemma 5 need of a single step:
the dual never falls and D* - D^(T+1) <= KL(u* || u^1) / (eta_1 + ... + eta_T); its safe step is due to Cauchy.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from partwise._core import dot
from partwise.problem import DivergenceError, DualPoint, Problem, Status
from partwise.problem.capabilities import PLAIN_L2, Capability
from partwise.solvers.dual import base
from partwise.solvers.engine.base import (
    Certified,
    ScheduledSolver,
    WarmStart,
    require_point,
    start_point,
    start_weights,
)
from partwise.solvers.engine.options import FROM_ONE, option
from partwise.support.arrays import Floats

#: A divergence below this, over the size of the log partitions that it is the difference of, is rounding.
NOISE = 1e-14


@dataclass(kw_only=True)
class BatchState(base.WatchedState):
    """u, b: the point's dual terms; log_partition: its sum_i omega_i log Z_i. safe_step: never too long a step."""

    positive: ClassVar[frozenset[str]] = frozenset({"step_size", "safe_step"})

    u: Floats
    b: float
    log_partition: float
    step_size: float
    safe_step: float
    doubling: bool = True


@dataclass(kw_only=True)
class EGBatchState(BatchState):
    """scores: (all slots,)."""

    scores: Floats


S = TypeVar("S", bound=BatchState)


class Moved(NamedTuple):
    """The state after a step: the solver's own fields, and the point's dual terms.

    reference: sum_i omega_i (H(p_i) + <mu_i, scores before>); log_partition before - reference is the step's KL.
    """

    own: dict[str, Any]
    u: Floats
    b: float
    log_partition: float
    reference: float


@dataclass(frozen=True)
class BatchEG(ScheduledSolver[S]):
    """Batch steps on a dual point in some form."""

    requires = PLAIN_L2 | {Capability.IDENTITY_LINK, Capability.EXPECTATION_ORACLE}
    rate = "linear"
    proof = "Collins et al. 2008, Theorem 1: O(log 1/eps); O(1/eps) at temperature 0"
    default_max_passes = 2000
    slot_vectors = 1

    step_size: str | float = base.step_size_option("search", "theorem")
    start: base.Start = base.start_option()
    sharpness: float = base.sharpness_option()
    growth: float = option(1.05, "search: factor on the step size after each step that is not refused", FROM_ONE)

    @abstractmethod
    def move(self, problem: Problem, state: S, step: float) -> Moved:
        """Return the point after a step of this size; leave the state alone if the step may still be refused."""

    @abstractmethod
    def point(self, state: S) -> DualPoint: ...

    def step(self, problem: Problem, state: S) -> None:
        while True:
            moved = self.move(problem, state, state.step_size)
            state.visits += len(problem.active)
            if self.step_size != "search" or self._acceptable(problem, state, moved):
                break
            state.doubling = False
            state.step_size *= 0.5
        vars(state).update(moved.own)
        dual = problem.dual_of_plane(moved.u, moved.b)
        state.gain = dual - state.dual
        state.u, state.b, state.log_partition, state.dual = moved.u, moved.b, moved.log_partition, dual
        state.epoch += 1
        if self.step_size == "search":
            grown = state.step_size * (2.0 if state.doubling else self.growth)
            state.step_size = min(grown, base.max_step(problem))
        base.watch(state, self.name, self.step_size)

    def _acceptable(self, problem: Problem, state: S, moved: Moved) -> bool:
        """Apply the search's test; a step that is known to be safe, or fails by rounding alone, passes."""
        if state.step_size <= state.safe_step:
            return True
        divergence = state.log_partition - moved.reference + NOISE * (1.0 + abs(state.log_partition))
        curvature = problem.half_square(moved.u - state.u)
        return (1.0 / state.step_size - problem.loss.temperature) * divergence >= curvature

    def certificate(self, problem: Problem, state: S) -> Certified:
        # The last step summed u and b anew from the point: they have no accumulated errors.
        return Certified(*problem.certify_plane(state.u, state.b), self.point(state))

    def weights(self, problem: Problem, state: S) -> Floats:
        return problem.weights_of_plane(state.u)

    def check_end(self, problem: Problem, state: S, status: Status) -> None:
        base.check_end(state, status, self.name, self.step_size)

    def first_fields(self, problem: Problem, first: Moved) -> dict[str, Any]:
        """Return the fields of a state at its first point, which costs a pass."""
        dual, (step, safe) = problem.dual_of_plane(first.u, first.b), self.step_sizes(problem)
        point = {**first.own, "u": first.u, "b": first.b, "log_partition": first.log_partition}
        steps = {"step_size": step, "safe_step": safe, "visits": len(problem.active)}
        return {**point, **steps, "dual": dual, "best_dual": dual}

    def step_sizes(self, problem: Problem) -> tuple[float, float]:
        """Return (the first step, a step up to which the dual cannot fall)."""
        tau, bounds, omega = problem.loss.temperature, base.psi2_bounds(problem), problem.sample_weight
        least = 1.0 / base.max_step(problem)
        safe = 1.0 / max(tau + dot(omega, bounds) / problem.l2, least)
        if self.step_size == "search":
            return safe, safe
        if self.step_size == "theorem":
            return 1.0 / max(tau + float(omega.sum() * bounds[problem.active].max()) / problem.l2, least), safe
        return float(self.step_size), safe


@dataclass(frozen=True)
class EGBatch(BatchEG[EGBatchState]):
    """Batch exponentiated gradient on the dual."""

    name = "eg-batch"

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> EGBatchState:
        scores = base.start_scores(problem, warm_start, base.start_cost_scale(self.start, self.sharpness), self.name)
        weights = np.zeros(problem.n_weights)  # a step of size 0 does not use them
        first = Moved({"scores": scores}, *problem.sums.eg_batch_step(weights, 0.0, scores, scores))
        return EGBatchState(**self.first_fields(problem, first))

    def move(self, problem: Problem, state: EGBatchState, step: float) -> Moved:
        # A step that cannot be refused needs no second array of scores.
        scores = np.empty_like(state.scores) if self.step_size == "search" else state.scores
        found = problem.sums.eg_batch_step(self.weights(problem, state), step, state.scores, scores)
        return Moved({"scores": scores}, *found)

    def point(self, state: EGBatchState) -> DualPoint:
        # Shared with the state, not copied; the next step leaves it alone only if it searches.
        return DualPoint.of_scores(state.scores)


@dataclass(kw_only=True)
class EGPrimalState(BatchState):
    """z: (d,). cost_scale: k. gold: (d,), the sum of omega_i A_i'g_i."""

    z: Floats
    cost_scale: float
    gold: Floats


@dataclass(frozen=True)
class EGPrimal(BatchEG[EGPrimalState]):
    """Batch exponentiated gradient in primal form: memory for weights and one example."""

    name = "eg-primal"

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> EGPrimalState:
        z, cost_scale = self._start(problem, warm_start)
        point = {"z": z, "cost_scale": cost_scale}
        first = Moved(point, *problem.sums.eg_primal_point(z, cost_scale, cost_scale))
        return EGPrimalState(gold=problem.sums.gold_features(), **self.first_fields(problem, first))

    def move(self, problem: Problem, state: EGPrimalState, step: float) -> Moved:
        keep = 1.0 - step * problem.loss.temperature
        with np.errstate(over="ignore", invalid="ignore"):
            z = keep * state.z + problem.weights_of_plane(state.u, step)
            cost_scale = keep * state.cost_scale + step * problem.loss.cost_scale
        if not (isfinite(cost_scale) and np.isfinite(z).all()):
            raise DivergenceError(f"eg-primal: z is not finite after {state.epoch} epochs with step_size={step}")
        u, b, log_partition, reference = problem.sums.eg_primal_point(z, cost_scale, state.cost_scale)
        if self.step_size == "search":
            reference += problem.dot(state.gold - u, state.z)  # sum_i omega_i A_i'mu_i = gold - u
        return Moved({"z": z, "cost_scale": cost_scale}, u, b, log_partition, reference)

    def point(self, state: EGPrimalState) -> DualPoint:
        return DualPoint.of_linear(state.z, state.cost_scale)

    def _start(self, problem: Problem, warm_start: WarmStart | None) -> tuple[Floats, float]:
        if warm_start is None:
            return np.zeros(problem.n_weights), base.start_cost_scale(self.start, self.sharpness)
        tau, kinds = problem.loss.temperature, ("linear",)
        point = start_point(problem, warm_start, kinds)
        if tau == 0:
            point = require_point(problem, warm_start, kinds, "eg-primal at temperature 0")
        if point is not None:
            z, cost_scale = point.linear()
            return start_weights(problem, z), cost_scale
        # The oracle's answer at w: slot scores (A_i w + kappa c_i) / tau.
        return start_weights(problem, warm_start) / tau, problem.loss.cost_scale / tau
