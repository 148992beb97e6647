"""Proximal points by online exponentiated gradient: smooth losses with any penalty, also l1 without l2.

Problem. min P(w) of `problem` for smooth losses with the identity link; l1 > 0 with any l2 >= 0, or l1 = 0 and l2 > 0.

Update. With a centre z and rho > 0 (`proximity`), the problem with rho/2 |w - z|^2 added to P has the dual

    D_z = b - |soft(u + rho z, l1)|^2 / (2 (l2 + rho)) + rho/2 |z|^2,    w = soft(u + rho z, l1) / (l2 + rho)

(u, b of `problem`), which is that of an elastic net with l2 + rho in place of l2 but for the constant shift rho z of
u: a pass of `eg` with adaptive steps raises it. After a pass that gained at most `settled` rho |w - z|^2, a
measure of how far this dual is from its maximum, z <- w; the next pass begins at the same distributions. A
fixed point has u in the subdifferential of the penalty at w: there rho does not matter, while it makes eg's steps long.

Stopping rule. gap = P(w) - D <= tol |P| at the weights w of the last pass, D the dual of the distributions under the
penalty itself; both summed again over all examples, when it may be near. With l2 = 0 the multiple of u that lies in the
box (see `problem`).

Proximity "auto": `PULL` sqrt(l2 c / tau), c the mean over examples of omega_i |psi_i|^2 / parts_i (`Look.curvature` at
l2 = 1), which scales with the data as l2 does; with l1 at least a hundredth of c. A pass of eg comes the nearer to its
maximum the larger l2 + rho is beside c / tau, and takes w the less far from z: the mean of both costs least. Measured
(passes to a gap of 1e-2 and 1e-4; rho = 0 is eg): 1500 words of OCR letters, log, l2 = 2, c = 103: rho 0.26: 12, -; 1:
11, 19; 2.2: 8.4, 17; 4.3: 8.2, 14; 16: 10, -. 1500 sentences of CoNLL-2000, c = 50, l2 = 2: 0.5: 7.5, 14; 1.5: 8.4, 16;
3: 8.2, 13; l2 = 0.02: 0.07: 34, 85; 0.15: 23, 51; 0.3: 21, 53; 2: 59, -; smoothed hinge (tau = 0.1), l2 = 2: 0.5: 36,
85; 4.7: 32, 60; 9.5: 32, 65; 19: 33, 67. With l1 = 1, l2 = 0, all sentences: 0.5: 76 passes to 1e-2, 1: above 85.

Source. Rockafellar 1976 (inexact proximal points; his linear rate asks for errors of the inner minima, over |w - z|,
that have a finite sum, while `settled` falls like 1 / epoch and looks at a pass's gain, so that it does not cover this
method); for l1 in its dual form Tomioka et al. 2011 (dual
augmented Lagrangians). Ours: passes of eg (Collins et al. 2008) in place of an inner solver with a stopping rule.
Threads as in `eg`.
"""

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any, ClassVar

import numpy as np

from partwise import _core
from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import DualPoint
from partwise.problem.penalties import L2
from partwise.problem.result import DivergenceError
from partwise.solvers.dual.base import (
    REFRESH,
    GibbsBlocks,
    Start,
    growth_option,
    max_step,
    round_size_option,
    sharpness_option,
    start_cost_scale,
    start_option,
    start_scores,
    with_l2,
)
from partwise.solvers.dual.eg import EG
from partwise.solvers.engine.base import Certified, WarmStart, start_weights
from partwise.solvers.engine.block_steps import InBlocks
from partwise.solvers.engine.data_sample import Look
from partwise.solvers.engine.options import POSITIVE, Values, option
from partwise.solvers.engine.registry import register
from partwise.solvers.online.base import OnlineSolver, OnlineState
from partwise.support.arrays import Floats

#: Proximity "auto" over the root of l2, the mean curvature of a part and the inverse temperature.
PULL = 0.3
#: With l1, the least of it over that curvature.
SHARE = 0.01
#: Of `settled`, and from which rho over l2 on the second pair is for. Measured on 1500 sentences of CoNLL-2000 (passes
#: at l1, l2 = 0, 0.02; 0.1, 0.2; 1, 0; 1, 0.002): 2 and 20: 53, 21, 85, 49; 4 and 50: above 100, 29, 67, 41. What does
#: not fall makes some small problems go in circles.
SETTLED, FAR, FAR_SETTLED = (2.0, 20), 100.0, (4.0, 50)


def settled(epoch: int, ratio: float) -> float:
    """Gain of the pass of this number over rho |w - z|^2 up to which the centre moves. ratio: rho / l2."""
    first, falling = FAR_SETTLED if ratio > FAR else SETTLED
    return first / (1.0 + epoch / falling)


@dataclass(kw_only=True)
class EGProxState(OnlineState):
    """weights, last: (d,), those of the pass to come, at its centre, and those that the last pass ended with.

    center: (d,), z. plane: (d,), u + rho z with l1, else empty. scores, marginals: (all slots,). entropies, step_sizes:
    (n,). proximity: rho.
    """

    positive: ClassVar[frozenset[str]] = frozenset({"step_sizes", "proximity"})

    weights: Floats
    last: Floats
    center: Floats
    plane: Floats
    scores: Floats
    marginals: Floats
    entropies: Floats
    step_sizes: Floats
    proximity: float

    def complaint(self, fresh: Any) -> str:
        same = self.proximity == fresh.proximity
        return super().complaint(fresh) or ("" if same else "its proximity is not that of this run")


@register(place=4)
@dataclass(frozen=True)
class EGProx(OnlineSolver[EGProxState]):
    """Proximal points by online exponentiated gradient (see the module's docstring)."""

    name: ClassVar[str] = "eg-prox"
    requires: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SMOOTH,
            Capability.IDENTITY_LINK,
            Capability.EXPECTATION_ORACLE,
            Capability.EXPLICIT_WEIGHTS,
            Capability.PENALTY,
            Capability.ALL_PENALISED,
            Capability.IN_MEMORY,
        }
    )
    rate: ClassVar[str] = "linear"
    proof: ClassVar[str] = "none for its criterion: Rockafellar 1976 has O(log 1/eps) for errors with a finite sum"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l1 or l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000
    slot_vectors: ClassVar[int] = 2

    proximity: str | float = option(
        "auto",
        "rho, the strength of the pull to the last pass's weights, or auto",
        Values("positive", POSITIVE.contains, words=("auto",)),
    )
    start: Start = start_option()
    sharpness: float = sharpness_option()
    initial_step: float = option(0.5, "first step size of every example", POSITIVE)
    growth: float = growth_option("factor on the step size after each visit")
    round_size: int = round_size_option()

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> EGProxState:
        scores = start_scores(problem, warm_start, start_cost_scale(self.start, self.sharpness), self.name)
        marginals, entropies = problem.sums.marginals_of_scores(scores)
        center = self._first_center(problem, warm_start)
        state = EGProxState(
            weights=np.zeros(problem.n_weights),
            last=center.copy(),
            center=center,
            plane=np.zeros(problem.n_weights if problem.l1 else 0),
            scores=scores,
            marginals=marginals,
            entropies=entropies,
            step_sizes=np.full(problem.n_examples, min(float(self.initial_step), max_step(problem))),
            proximity=self.rho(problem),
            rng=rng,
        )
        self._set_weights(problem, state, problem.sums.dual_terms_slots(marginals, None, entropies)[0])
        return state

    def step(self, problem: Problem, state: EGProxState) -> None:
        rho = state.proximity
        options = _core.EgOptions(
            l2=problem.l2 + rho,
            l1=problem.l1,
            growth=self.growth,
            max_step=max_step(problem),
            n_jobs=problem.n_jobs,
            round_size=self.round_size,
        )
        gibbs = GibbsBlocks(
            state.weights, state.plane, state.scores, state.marginals, state.entropies, state.step_sizes
        )
        visits, state.gain = gibbs.visit(problem, self.draw_order(problem, state.rng), options)
        state.visits += visits
        state.epoch += 1
        if state.epoch % REFRESH == 0:  # u as it is carried along drifts
            u = problem.sums.dual_terms_slots(state.marginals, None, state.entropies)[0]
        elif problem.l1:
            u = state.plane - rho * state.center
        else:
            u = with_l2(problem, problem.l2 + rho).plane_of_weights(state.weights) - rho * state.center
        state.last = state.weights
        moved = state.last - state.center
        ratio = rho / problem.l2 if problem.l2 > 0 else inf
        if state.gain <= settled(state.epoch, ratio) * rho * problem.norm2(moved):
            state.center = state.last.copy()
        self._set_weights(problem, state, u)

    def certificate(self, problem: Problem, state: EGProxState) -> Certified:
        u, b = problem.sums.dual_terms_slots(state.marginals, None, state.entropies)
        certificate = problem.certificate_of(problem.value(state.last), u, b, state.last)
        return Certified(certificate, state.last.copy(), DualPoint.of_scores(state.scores))

    def weights(self, problem: Problem, state: EGProxState) -> Floats:
        return state.last.copy()

    def in_blocks(self) -> InBlocks:
        shared = ("check_every", "order", "start", "sharpness", "initial_step", "growth", "round_size")
        return InBlocks(EG(**{name: getattr(self, name) for name in shared}), self.proximity)  # type: ignore[arg-type]

    def rho(self, problem: Problem) -> float:
        """The proximity of this problem."""
        if not isinstance(self.proximity, str):
            return float(self.proximity)
        curvature = Look(problem.with_penalty(L2(1.0))).curvature
        rho = PULL * sqrt(problem.l2) * sqrt(curvature / problem.loss.temperature)
        if problem.l1:
            rho = max(rho, SHARE * curvature)
        if not isfinite(rho):
            raise DivergenceError(f"{self.name}: the squares of the features are beyond double precision")
        return rho if rho > 0 else 1.0

    def _first_center(self, problem: Problem, warm_start: WarmStart | None) -> Floats:
        without_weights = warm_start is None or (isinstance(warm_start, DualPoint) and problem.l2 == 0)
        return np.zeros(problem.n_weights) if without_weights else start_weights(problem, warm_start)  # type: ignore[arg-type]

    def _set_weights(self, problem: Problem, state: EGProxState, u: Floats) -> None:
        """The weights of u at the centre."""
        plane = u + state.proximity * state.center
        state.weights = with_l2(problem, problem.l2 + state.proximity).weights_of_plane(plane)
        if problem.l1:
            state.plane = plane
