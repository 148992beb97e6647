"""Problem. max D(alpha) for losses with the identity link (mass 1), any temperature tau >= 0; l2 > 0.

Update. The slot scores of batch exponentiated gradient are s_i = A_i z + k c_i for one vector z and one number k if
they are so at the start, for the update is linear in them and has the same coefficients for every example:

    z <- (1 - eta tau) z + eta w,    k <- (1 - eta tau) k + eta kappa,    w = 1/l2 sum_i omega_i A_i'(g_i - mu_i)

where mu_i is computed from A_i z + k c_i when example i's turn comes, and forgotten. At the start z = 0 and k = 0
(uniform distributions) or k = -`sharpness` (near the gold labelling). Step sizes as in `eg-batch`.

Stopping rule. That of `eg-batch`: u and b = sum_i omega_i (kappa <mu_i, c_i> + tau H_i), all that D needs, are
summed in the same pass over the data. The result's dual point is the pair (z, k).

Source. Bartlett et al. 2004: Figure 5 (appendix C), the max-margin problem. The paper's line z^(t+1) = z^t + ... inside
the loop over examples must add to z^(t+1), or all examples but the last are forgotten. With weights 1 and tau = 0,
eta C^2 z there is z here (there w* = C z^(t+1) - C z^t) and eta C (t - 1) is k.

Departures. tau > 0 (for the log loss z <- (1 - eta) z + eta w), sample weights, the start near the gold labelling, and
steps that may change from round to round.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from partwise.problem import DivergenceError, DualPoint, Problem
from partwise.solvers.dual.base import start_cost_scale
from partwise.solvers.dual.eg_batch import BatchEG, BatchState, Moved
from partwise.solvers.engine.base import WarmStart, require_point, start_point, start_weights
from partwise.support.arrays import Floats


@dataclass(kw_only=True)
class EGPrimalState(BatchState):
    """z: (d,). cost_scale: k. gold: (d,), the sum of omega_i A_i'g_i."""

    z: Floats
    cost_scale: float
    gold: Floats


@dataclass(frozen=True)
class EGPrimal(BatchEG[EGPrimalState, tuple[Floats, float]]):
    """Batch exponentiated gradient in primal form: memory for weights and one example."""

    name = "eg-primal"

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> EGPrimalState:
        z, cost_scale = self._start(problem, warm_start)
        first = Moved((z, cost_scale), *problem.sums.eg_primal_point(z, cost_scale, cost_scale))
        gold = problem.sums.gold_features()
        return EGPrimalState(z=z, cost_scale=cost_scale, gold=gold, **vars(self.first_state(problem, first)))

    def move(self, problem: Problem, state: EGPrimalState, step: float) -> Moved[tuple[Floats, float]]:
        keep = 1.0 - step * problem.loss.temperature
        with np.errstate(over="ignore", invalid="ignore"):
            z = keep * state.z + problem.weights_of_plane(state.u, step)
            cost_scale = keep * state.cost_scale + step * problem.loss.cost_scale
        if not (isfinite(cost_scale) and np.isfinite(z).all()):
            raise DivergenceError(f"eg-primal: z is not finite after {state.epoch} epochs with step_size={step}")
        u, b, log_partition, reference = problem.sums.eg_primal_point(z, cost_scale, state.cost_scale)
        if self.step_size == "search":
            reference += problem.dot(state.gold - u, state.z)  # sum_i omega_i A_i'mu_i = gold - u
        return Moved((z, cost_scale), u, b, log_partition, reference)

    def settle(self, state: EGPrimalState, point: tuple[Floats, float]) -> None:
        state.z, state.cost_scale = point

    def point(self, state: EGPrimalState) -> DualPoint:
        return DualPoint.of_linear(state.z, state.cost_scale)

    def _start(self, problem: Problem, warm_start: WarmStart | None) -> tuple[Floats, float]:
        if warm_start is None:
            return np.zeros(problem.n_weights), start_cost_scale(self.start, self.sharpness)
        tau, kinds = problem.loss.temperature, ("linear",)
        point = start_point(problem, warm_start, kinds)
        if tau == 0:
            point = require_point(problem, warm_start, kinds, "eg-primal at temperature 0")
        if point is not None:
            z, cost_scale = point.linear()
            return start_weights(problem, z), cost_scale
        # The oracle's answer at w: slot scores (A_i w + kappa c_i) / tau.
        return start_weights(problem, warm_start) / tau, problem.loss.cost_scale / tau
