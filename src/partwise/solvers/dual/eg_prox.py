"""Problem. min P(w) for smooth losses with the identity link; l1 > 0 with any l2 >= 0, or l1 = 0 and l2 > 0.

Update. With a centre z and rho > 0 (`proximity`), the problem with rho/2 |w - z|^2 added to P has the dual

    D_z = b - |soft(u + rho z, l1)|^2 / (2 (l2 + rho)) + rho/2 |z|^2,    w = soft(u + rho z, l1) / (l2 + rho)

which, except for the constant shift rho z of u, is that of an elastic net with l2 + rho in place of l2: a pass of `eg`
with adaptive steps raises it. After a pass that gained at most `settled` rho |w - z|^2, z <- w; the next pass begins at
the same distributions. A fixed point does not depend on rho, but rho makes eg's steps long.

`proximity` "auto" is `PULL` sqrt(l2 c / tau), c the mean over examples of omega_i |psi_i|^2 / parts_i (`Look.curvature`
at l2 = 1); with l1 at least a hundredth of c. The larger l2 + rho is beside c / tau, the nearer a pass of eg comes to
its maximum, and the less it moves w away from z; the geometric mean of both costs least (docs/solvers.md).

Stopping rule. gap = P(w) - D <= tol |P| at the weights w of the last pass, D the dual of the distributions under the
penalty itself; both summed anew over all examples. With l2 = 0 D takes the multiple of u that lies in the box.

Source. Rockafellar 1976 (inexact proximal points); for l1 in its dual form Tomioka et al. 2011 (dual augmented
Lagrangians); Collins et al. 2008 for the passes of eg.

Departures. A pass of eg stands in place of an inner solver with a stopping rule. Rockafellar's linear rate asks for
inner errors over |w - z| with a finite sum, which `settled` does not give. Threads as in `eg`.
"""

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import ClassVar, Self

import numpy as np

from partwise import _core
from partwise.problem import L2, DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import SMOOTH_LOSS, Capability
from partwise.solvers.dual import base
from partwise.solvers.dual.eg import EG
from partwise.solvers.engine.base import Certified, WarmStart, start_weights
from partwise.solvers.engine.data_sample import Look
from partwise.solvers.engine.options import FROM_ONE, POSITIVE, Values, option
from partwise.solvers.online.base import InBlocks, OnlineSolver, OnlineState
from partwise.support.arrays import Floats

#: Proximity "auto" over the root of l2, the mean curvature of a part and the inverse temperature.
PULL = 0.3
#: With l1, the least proximity over that curvature.
SHARE = 0.01
#: First value of `settled` and the epochs in which it halves; the second pair is for rho above FAR times l2. A constant
#: `settled` makes some small problems go in circles.
SETTLED, FAR, FAR_SETTLED = (2.0, 20), 100.0, (4.0, 50)


def settled(epoch: int, ratio: float) -> float:
    """Return the gain of the pass of this number, over rho |w - z|^2, up to which the centre moves; ratio: rho / l2."""
    first, falling = FAR_SETTLED if ratio > FAR else SETTLED
    return first / (1.0 + epoch / falling)


@dataclass(kw_only=True)
class EGProxState(OnlineState, base.GibbsState):
    """center: z. weights: at z, of the next pass. last: of the last pass. plane: u + rho z with l1. proximity: rho."""

    positive: ClassVar[frozenset[str]] = frozenset({"step_sizes", "proximity"})

    last: Floats
    center: Floats
    plane: Floats
    proximity: float

    def complaint(self, fresh: Self) -> str:
        odd = "its proximity is not that of this run" if self.proximity != fresh.proximity else ""
        return super().complaint(fresh) or odd


@dataclass(frozen=True)
class EGProx(OnlineSolver[EGProxState]):
    """Proximal points by online exponentiated gradient: smooth losses with any penalty, also l1 without l2."""

    name = "eg-prox"
    requires = SMOOTH_LOSS.union(
        {Capability.IDENTITY_LINK, Capability.PENALTY, Capability.ALL_PENALISED, Capability.IN_MEMORY}
    )
    rate = "linear"
    proof = "none for its criterion: Rockafellar 1976 has O(log 1/eps) for errors with a finite sum"
    advice = "Raise max_passes or tol, or take a larger l1 or l2 (a smaller C)"
    slot_vectors = 2

    proximity: str | float = option(
        "auto",
        "rho, the strength of the pull to the last pass's weights, or auto",
        Values("positive", POSITIVE.contains, words=("auto",)),
    )
    start: base.Start = base.start_option()
    sharpness: float = base.sharpness_option()
    initial_step: float = option(0.5, "first step size of every example", POSITIVE)
    growth: float = option(1.05, "factor on the step size after each visit", FROM_ONE)
    round_size: int = base.round_size_option()

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> EGProxState:
        scores = base.start_scores(problem, warm_start, base.start_cost_scale(self.start, self.sharpness), self.name)
        marginals, entropies = problem.sums.marginals_of_scores(scores)
        no_weights = isinstance(warm_start, DualPoint) and problem.l2 == 0
        center = start_weights(problem, None if no_weights else warm_start)
        state = EGProxState(
            weights=np.zeros(problem.n_weights),
            last=center.copy(),
            center=center,
            plane=np.zeros(problem.n_weights if problem.l1 else 0),
            scores=scores,
            marginals=marginals,
            entropies=entropies,
            step_sizes=np.full(problem.n_examples, min(float(self.initial_step), base.max_step(problem))),
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
            max_step=base.max_step(problem),
            n_jobs=problem.n_jobs,
            round_size=self.round_size,
        )
        blocks = base.GibbsBlocks(*(getattr(state, name) for name in base.GibbsBlocks._fields))
        visits, state.gain = blocks.visit(problem, self.draw_order(problem, state.rng), options)
        state.visits += visits
        state.epoch += 1
        if state.epoch % base.REFRESH == 0:  # u drifts where changes are added up
            u = problem.sums.dual_terms_slots(state.marginals, None, state.entropies)[0]
        elif problem.l1:
            u = state.plane - rho * state.center
        else:
            u = base.with_l2(problem, problem.l2 + rho).plane_of_weights(state.weights) - rho * state.center
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
        if not isinstance(self.proximity, str):
            return float(self.proximity)
        curvature = Look(problem.with_penalty(L2(1.0))).curvature
        least = SHARE * curvature if problem.l1 else 0.0
        rho = max(PULL * sqrt(problem.l2) * sqrt(curvature / problem.loss.temperature), least)
        if not isfinite(rho):
            raise DivergenceError(f"{self.name}: the squares of the features are beyond double precision")
        return rho if rho > 0 else 1.0

    def _set_weights(self, problem: Problem, state: EGProxState, u: Floats) -> None:
        plane = u + state.proximity * state.center
        state.weights = base.with_l2(problem, problem.l2 + state.proximity).weights_of_plane(plane)
        if problem.l1:
            state.plane = plane
