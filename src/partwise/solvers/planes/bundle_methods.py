"""Problem. min P(w); l2 > 0. The oracle's answer at any w is a plane below the losses that touches them at w
(docs/math.md, "The dual"). With planes (u_k, b_k), k = 1, ..., m, the model

    J_m(w) = l2/2 |w|^2 + max_k (b_k - <u_k, w>) <= P(w)

has its minimum at w_m = sum_k x_k u_k / l2, where x solves the dual over the simplex (`simplex_qp`), and its minimum is
the dual value of the mixture (u, b) = sum_k x_k (u_k, b_k): D = b - |u|^2 / (2 l2) = J_m(w_m) <= min P. For `one-slack`
planes are constraints of min l2/2 |w|^2 + xi, xi >= 0, one for each joint choice of labellings:
xi >= sum_i omega_i (cost(y_i) - <w, psi_i(y_i)>).

Update. Solve the model; ask the oracle at w_m, or between the best weights so far and w_m (`mix`); add its plane.
Planes that were not part of the mixture for `idle` rounds are dropped. If planes take more than `memory_mb`, idle ones
are dropped, and if there are none, all planes become one, their mixture: D stays the same. The first plane is that of
w = 0; before it `one-slack` has 0, the plane of the gold labellings (xi >= 0).

Stopping rule. gap = P(w) - D <= tol |P| after every step, for the best P(w) and the best mixture of all steps so far;
this takes no pass. The history also has

    bmrm_gap    the best P seen less J_m(w_m) of this step (Zhang et al. 2011, Figure 1 b)
    violation   P less J_m at the last point asked for: the violation of the newest plane, summed over examples
                (SVM-struct's criterion is its mean)

Source. `bmrm`: Teo et al. 2010, Algorithm 2 (the rival in Table 1 of Zhang et al. 2011). `one-slack`: Joachims et al.
2009, Algorithm 3 (its dual: their (11)), with C / n = 1 / l2 for weights of 1; constraints that were inactive for 50
rounds are dropped, as in SVM-struct.

Departures. Sample weights; the stopping rule of `one-slack` (theirs is on `violation`, over n); the best weights seen
are returned, not the last; `mix`, as in OCAS (Franc and Sonnenburg 2009), without its line search (a pass per trial).
"""

from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar

import numpy as np

from partwise.problem import DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import PLAIN_L2, Capability
from partwise.solvers.engine.base import Certified, Solver, WarmStart, start_weights
from partwise.solvers.engine.options import POSITIVE, SOME, at_least, option
from partwise.solvers.engine.state import State
from partwise.solvers.planes.bundle import Bundle
from partwise.solvers.planes.simplex_qp import QPError, best_mixture
from partwise.support.arrays import Floats

#: What a plane at any weights needs.
NEEDS = PLAIN_L2 | {Capability.LOSS_ORACLE}
#: A cut below this share of the objective is rounding.
NOISE = 1e-13


@dataclass(kw_only=True)
class BundleState(State):
    """weights, primal: the best so far, (d,). u, b, dual: the best mixture of planes, (d,). carried: planes in it.

    model: J_m(w_m). ahead: ask at the model's minimum next, as there was no progress between. stalled: no progress is
    possible in doubles, or where oracles give bounds (slack rescaling). trusted: planes were made here, or checked.
    """

    weights: Floats
    primal: float
    u: Floats
    b: float
    dual: float
    planes: Bundle
    carried: int = 1
    model: float = float("-inf")
    violation: float = float("inf")
    merged: int = 0
    ahead: bool = False
    stalled: bool = False
    trusted: bool = field(default=False, init=False, compare=False)


@dataclass(frozen=True)
class BundleMethod(Solver[BundleState]):
    """A cutting-plane method on one bundle of planes (see the module's docstring)."""

    traced = ("bmrm_gap", "violation")
    advice = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes = 2000
    #: Whether the plane of the gold labellings is one of the first.
    gold_plane: ClassVar[bool] = False

    mix: float = option(
        0.1, "how far to go from the best weights to the model's minimum, where the oracle is asked", SOME
    )
    idle: int = option(50, "rounds after which a plane that the model does not need is dropped", at_least(1))
    memory_mb: float = option(1024.0, "limit of the planes kept, in MB (2^20 bytes)", POSITIVE)

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> BundleState:
        weights = start_weights(problem, warm_start)
        losses, u, b = problem.plane(weights)
        primal = losses + problem.penalty_value(weights)
        if not isfinite(primal):
            raise DivergenceError(f"{self.name}: the objective is {primal} at the start")
        planes = Bundle(problem.n_weights)
        if self.gold_plane:
            planes.add(problem, np.zeros(problem.n_weights), 0.0, 0.0)
        planes.add(problem, u, b, problem.dot(u, weights))
        duals = planes.offsets - 0.5 * np.diag(planes.gram) / problem.l2
        x = (np.arange(planes.size) == np.argmax(duals)).astype(np.float64)
        best_u, best_b = planes.mixture(x)
        state = BundleState(
            weights=weights,
            primal=primal,
            u=best_u,
            b=best_b,
            dual=problem.dual_of_plane(best_u, best_b),
            planes=planes,
            visits=len(problem.active),
        )
        state.trusted = True
        return state

    @np.errstate(over="ignore", invalid="ignore")  # checked below
    def step(self, problem: Problem, state: BundleState) -> None:
        planes = state.planes
        try:
            x = best_mixture(planes.gram, planes.offsets, problem.l2)
        except QPError as error:
            raise QPError(f"{self.name}, step {state.epoch + 1}: {error}") from None
        u, b = planes.mixture(x)
        state.model = problem.dual_of_plane(u, b)
        if state.model > state.dual:
            state.u, state.b, state.dual, state.carried = u, b, state.model, int(np.count_nonzero(x))
        # <u_k, w> of all planes at the next point, from their inner products alone
        mix = 1.0 if state.ahead else self.mix
        at = (1.0 - mix) * planes.at + mix / problem.l2 * (planes.gram @ x)
        below = float((planes.offsets - at).max())
        weights = problem.weights_of_plane(u)
        if mix < 1.0:
            weights *= mix
            weights += (1.0 - mix) * state.weights
        losses, new_u, new_b = problem.plane(weights)
        primal = losses + problem.penalty_value(weights)
        here = problem.dot(new_u, weights)
        state.visits += len(problem.active)
        state.epoch += 1
        if not isfinite(primal + new_b + here + problem.norm2(new_u) / min(problem.l2, 1.0)):
            state.stalled = True  # a plane beyond double precision is of no use
            return
        state.violation = losses - below
        noise = NOISE * (1.0 + abs(state.primal))
        better = primal < state.primal
        nothing = new_b - here - below <= noise and primal >= state.primal - noise
        state.ahead, state.stalled = nothing, nothing and mix == 1.0
        if better:
            state.weights, state.primal, planes.at = weights, primal, at
        planes.idle = np.where(x > 0, 0, planes.idle + 1)
        self._drop(problem, state, u, b)
        planes.add(problem, new_u, new_b, here if better else problem.dot(new_u, state.weights))

    def certificate(self, problem: Problem, state: BundleState) -> Certified:
        if not state.trusted:
            state.planes.check(problem)
            state.trusted = True
        off = problem.certificate_of(state.primal, state.u, state.b, state.weights, state.carried)
        return Certified(off, state.weights.copy(), DualPoint.of_plane(state.u.copy(), state.b))

    def trace(self, problem: Problem, state: BundleState) -> tuple[float, ...]:
        return state.primal - state.model, state.violation

    def weights(self, problem: Problem, state: BundleState) -> Floats:
        return state.weights.copy()

    def is_stalled(self, state: BundleState) -> bool:
        return state.stalled

    def remark(self, problem: Problem, state: BundleState) -> str:
        merged = f", {state.merged} times merged to stay within memory_mb={self.memory_mb:g}" if state.merged else ""
        return f"{state.planes.size} planes kept{merged}"

    def _drop(self, problem: Problem, state: BundleState, u: Floats, b: float) -> None:
        """Forget idle planes and make room for one more within the limit of memory."""
        planes = state.planes
        planes.keep(planes.idle < self.idle)
        limit = self.memory_mb * 2**20
        if planes.bytes > limit:
            planes.keep(planes.idle == 0)
        if planes.bytes > limit and planes.size > 1:
            planes.keep(np.zeros(planes.size, dtype=bool))
            planes.add(problem, u, b, problem.dot(u, state.weights))
            state.merged += 1


@dataclass(frozen=True)
class BMRM(BundleMethod):
    """Bundle method for regularised risk minimisation (BMRM)."""

    name = "bmrm"
    requires = NEEDS
    rate = "linear"
    proof = "Teo et al. 2010: O(log 1/eps); O(1/eps) at temperature 0"


@dataclass(frozen=True)
class OneSlack(BundleMethod):
    """One-slack cutting planes for structural SVMs, the algorithm of SVM-struct and SVM-hmm."""

    name = "one-slack"
    requires = NEEDS | {Capability.MAXIMA}
    rate = "sublinear"
    proof = "Joachims et al. 2009: O(1/eps)"
    gold_plane = True
