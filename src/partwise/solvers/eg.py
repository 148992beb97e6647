"""Online exponentiated gradient on the dual.

Problem. max D(alpha) of `problem` for losses with the identity link (mass 1), any temperature tau >= 0; l2 > 0.

Update. Example i's distribution is p_i ~ exp(<counts, s_i>) with slot scores s_i. A visit takes a step of size eta
along the block's gradient divided by omega_i, in the geometry of the Kullback-Leibler divergence:

    s_i <- (1 - eta tau) s_i + eta (theta_i + kappa c_i),    theta_i = A_i w,    w = 1/l2 sum_i omega_i A_i'(g_i - mu_i)

and w follows the change of mu_i. Step sizes:

    adaptive   eta_i starts at `initial_step`, is halved until the dual does not fall, and grows by `growth` a visit
    theorem    eta_i = 1 / (tau + omega_i |A|), |A| = max_i max_y |A_i'(g_i - counts(y))|^2 / l2 (an upper bound of it)
    a number   that one; a run whose dual falls back for good raises DivergenceError

Stopping rule. gap = P(w) - D <= tol |P|, both summed anew over all examples; looked at when it may be near, at least
every fifth pass.

Source. 000: Figures 2 and 3 (randomised online EG on part scores), section 7 (adaptive step), Theorem 2 (theorem step,
order "random", start "uniform"). Departures: sample weights omega; temperatures other than 0 and 1; order "permuted" by
default; start near the gold labelling, s_i = -sharpness * c_i (from the uniform distribution at small l2 the first w is
enormous and the run never recovers); w is recomputed from the dual every `REFRESH` passes, as its running sum drifts.
"""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._core import eg_epoch
from ..dual import DualPoint
from ..problem import Problem
from ..result import DivergenceError
from .base import Certified, WarmStart, option, start_point, start_weights
from .online import OnlineSolver, OnlineState
from .state import State

Floats = NDArray[np.float64]
Start = Literal["gold", "uniform"]

#: Passes between two recomputations of the weights.
REFRESH = 20
#: Passes without a new best dual value before a run with given steps counts as diverging.
PATIENCE = 5


@dataclass(kw_only=True)
class EGState(OnlineState):
    """weights: (d,). scores, marginals: (all slots,). entropies, step_sizes: (n,). dual: D as tracked, to watch."""

    weights: Floats
    scores: Floats
    marginals: Floats
    entropies: Floats
    step_sizes: Floats
    dual: float
    best_dual: float
    best_epoch: int = 0


@dataclass(frozen=True)
class EG(OnlineSolver[EGState]):
    """Online exponentiated gradient (see the module's docstring)."""

    name: ClassVar[str] = "eg"
    requires: ClassVar[frozenset[str]] = frozenset({"identity link", "expectation oracle", "l2 > 0"})
    rate: ClassVar[str] = "linear"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 500
    state_class: ClassVar[type[State]] = EGState

    step_size: str | float = option("adaptive", "adaptive, theorem, or a number")
    start: Start = option("gold", "where to start: gold (near the gold labelling) or uniform")
    sharpness: float = option(11.0, "start gold: how far the scores of wrong parts lie below those of gold parts")
    initial_step: float = option(0.5, "adaptive: first step size of every example")
    growth: float = option(1.05, "adaptive: factor on the step size after each visit")
    round_size: int = option(0, "several threads: examples of one thread between two exchanges (0: the core's choice)")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.step_size, str):
            if self.step_size not in ("adaptive", "theorem"):
                raise ValueError(f"step_size must be adaptive, theorem or a number, got {self.step_size!r}")
        elif not (isfinite(self.step_size) and self.step_size > 0):
            raise ValueError(f"step_size must be positive, got {self.step_size}")
        if self.start not in get_args(Start):
            raise ValueError(f"start must be one of {', '.join(get_args(Start))}, got {self.start!r}")
        if not (self.initial_step > 0 and self.growth >= 1 and self.sharpness >= 0 and self.round_size >= 0):
            raise ValueError("initial_step must be > 0, growth >= 1, sharpness >= 0 and round_size >= 0")

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> EGState:
        scores = self._start_scores(problem, warm_start)
        marginals, entropies = problem.objective.marginals_of_scores(scores, problem.n_jobs)
        u, b = problem.dual_terms(DualPoint.of_counts(marginals, None, entropies))
        dual = problem.dual_of_plane(u, b)
        return EGState(
            weights=u / problem.l2,
            scores=scores,
            marginals=marginals,
            entropies=entropies,
            step_sizes=self.step_sizes(problem),
            dual=dual,
            best_dual=dual,
            rng=rng,
        )

    def step(self, problem: Problem, state: EGState) -> None:
        report = eg_epoch(
            problem.objective,
            problem.l2,
            self.draw_order(problem, state.rng),
            state.step_sizes,
            state.weights,
            state.scores,
            state.marginals,
            state.entropies,
            adaptive=self.step_size == "adaptive",
            growth=self.growth,
            max_step=_max_step(problem) if self.step_size == "adaptive" else float("inf"),
            n_jobs=problem.n_jobs,
            round_size=self.round_size,
        )
        state.epoch += 1
        state.visits += report.visits
        state.gain = report.dual_gain
        state.dual += report.dual_gain
        self._watch(state)
        if state.epoch % REFRESH == 0:
            u, b = problem.dual_terms(DualPoint.of_counts(state.marginals, None, state.entropies))
            state.weights = u / problem.l2
            state.dual = problem.dual_of_plane(u, b)

    def certificate(self, problem: Problem, state: EGState) -> Certified:
        # Marginals and entropies are those of the scores, computed anew at each visit: nothing in them drifts.
        # The scores are shared with the state, not copied (a certificate is used before the next step, if at all).
        u, b = problem.dual_terms(DualPoint.of_counts(state.marginals, None, state.entropies))
        weights = u / problem.l2
        certificate = problem.certificate_of(problem.value(weights), u, b)
        return Certified(certificate, weights, DualPoint.of_scores(state.scores))

    def weights(self, problem: Problem, state: EGState) -> Floats:
        return state.weights.copy()

    def guess_primal(self, state: EGState) -> float:
        return state.checked_primal or state.dual

    def step_sizes(self, problem: Problem) -> Floats:
        """One step size an example, before the first visit."""
        n, tau = problem.n_examples, problem.loss.temperature
        if self.step_size == "adaptive":
            return np.full(n, min(self.initial_step, _max_step(problem)))
        if self.step_size != "theorem":
            return np.full(n, float(self.step_size))
        largest = max(problem.features.psi2_bound(i) for i in range(n)) / problem.l2
        return 1.0 / np.maximum(tau + problem.sample_weight * largest, 1.0 / _max_step(problem))

    def _start_scores(self, problem: Problem, warm_start: WarmStart | None) -> Floats:
        if warm_start is None:
            # -0 * cost is a slot vector of zeros.
            return problem.objective.near_gold_scores(self.sharpness if self.start == "gold" else 0.0)
        point = start_point(problem, warm_start, ("gibbs",))
        if point is None:
            if not problem.loss.smooth:
                raise ValueError(
                    "eg at temperature 0 starts from slot scores (a dual point of kind 'gibbs', as in an earlier "
                    "result of eg); weights alone, or another kind of dual point, do not give them"
                )
            point = problem.oracle_point(start_weights(problem, warm_start))
        scores = np.array(point.scores, dtype=np.float64)
        expected = int(problem.structure.slot_offsets()[-1])
        if scores.shape != (expected,):
            raise ValueError(f"warm start: {scores.shape[0]} slot scores, the problem has {expected} slots")
        return scores

    def _watch(self, state: EGState) -> None:
        """DivergenceError if the dual is not finite, or has stayed below its best for long.

        Halving makes the dual rise, the theorem's step does so by its proof; both are watched all the same.
        """
        if not isfinite(state.dual):
            raise DivergenceError(
                f"eg: the dual is {state.dual} after {state.epoch} epochs with step_size={self.step_size}"
            )
        if state.dual > state.best_dual:
            state.best_dual, state.best_epoch = state.dual, state.epoch
        fallen = state.best_dual - state.dual
        if state.epoch - state.best_epoch >= PATIENCE and fallen > 1e-6 * (1.0 + abs(state.best_dual)):
            raise DivergenceError(
                f"eg: the dual fell by {fallen:.3g} from {state.best_dual:.6g} and has not come back for {PATIENCE} "
                f"epochs with step_size={self.step_size}; take a smaller one, or 'adaptive' or 'theorem'"
            )


def _max_step(problem: Problem) -> float:
    """A step of 1 / tau forgets the old scores altogether; at temperature 0 the cap only keeps scores finite."""
    tau = problem.loss.temperature
    return 1.0 / tau if tau > 0 else 1e3
