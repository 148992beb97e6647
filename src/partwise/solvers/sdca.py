"""Dual coordinate ascent with exact blocks, for structures whose labellings are one part each (multinomial maxent).

Problem. max D(alpha) of `problem` for smooth losses with the identity link (temperature tau > 0, mass 1); l2 > 0; every
labelling is one slot, and A_i A_i' is diagonal ("diagonal blocks": rows of features with a weight for every label, or
features of one label each).

Update. A visit maximises D over example i's distribution. With theta = A_i w, t = (theta + kappa c) / tau, the
distribution p as it is and rho_a = omega_i |A_i' e_a|^2 / (l2 tau), the maximum q solves

    log q_a + rho_a q_a = t_a + rho_a p_a - nu        for every label a, where nu makes the sum of q one,

by Newton's method on all labels and nu at once, from q = p (two or three steps; where it does not settle, bisection on
nu). Then w += omega_i / l2 A_i'(p - q), w = 1/l2 sum_i omega_i A_i'(g_i - p_i). The dual never falls.

Options. skip > 0: an example whose last visit gained less than `skip` times the mean gain of a visit rests for the next
passes, twice as long each time in a row (at most `longest_rest`).

Memory. Two numbers per slot, log p and rho's curvature, 16 bytes for every example and label (Brown's parts of speech,
895,804 contexts with 184 labels: 2.6 GB); p itself, the certificate's sums and the start are made example by example.

Stopping rule. gap = P(w) - D <= tol |P|, both summed again over all examples; checked when it may be near, at least
every fifth pass (after pass 100: every twentieth part of the passes made).

Source. 003 treats the primal; this is its dual counterpart, block by block: the dual of section 2 of 000 with Figure
2's visits, the step replaced by the block's maximum. Departures from 000: no step size; start near the gold labelling,
log p_a = -sharpness * c_a but for a constant; w is recomputed from the dual every `REFRESH` passes, as its sum drifts.
"""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from .. import _core
from .._core import sdca_start
from ..arrays import Floats, Ints
from ..capabilities import Capability
from ..dual import DualPoint
from ..problem import Problem
from .base import Certified, WarmStart, option
from .eg_start import Start, start_cost_scale, start_scores
from .online import OnlineSolver, OnlineState
from .registry import register

#: Passes between two recomputations of the weights.
REFRESH = 20
#: Scores of a start are cut off this far from the gold label's: every label keeps a positive probability.
REACH = 300.0


@dataclass(kw_only=True)
class SDCAState(OnlineState):
    """weights: (d,). scores (log p), curvatures: (all slots,). entropies, gains: (n,).

    rest, pause: passes that an example still rests, and how long its last rest was, (n,). dual: D as tracked.
    """

    weights: Floats
    scores: Floats
    entropies: Floats
    gains: Floats
    curvatures: Floats
    rest: Ints
    pause: Ints
    dual: float


@register(place=3)
@dataclass(frozen=True)
class SDCA(OnlineSolver[SDCAState]):
    """Exact-block dual coordinate ascent (see the module's docstring)."""

    name: ClassVar[str] = "sdca"
    requires: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SMOOTH,
            Capability.IDENTITY_LINK,
            Capability.L2,
            Capability.SMOOTH_PENALTY,
            Capability.ONE_PART,
            Capability.DIAGONAL_BLOCKS,
            Capability.IN_MEMORY,
        }
    )
    rate: ClassVar[str] = "linear"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000

    start: Start = option("gold", "where to start: gold (near the gold labelling) or uniform")
    sharpness: float = option(11.0, "start gold: how far wrong labels' log-probabilities lie below the gold one's")
    skip: float = option(0.5, "examples that gain less than this times the mean gain rest for some passes (0: none)")
    longest_rest: int = option(30, "most passes that an example rests")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start not in ("gold", "uniform"):
            raise ValueError(f"start must be gold or uniform, got {self.start!r}")
        if not (isfinite(self.sharpness) and 0 <= self.sharpness <= REACH):
            raise ValueError(f"sharpness must be between 0 and {REACH:g}, got {self.sharpness}")
        if not (isfinite(self.skip) and self.skip >= 0 and self.longest_rest >= 0):
            raise ValueError("skip and longest_rest must be >= 0")

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> SDCAState:
        curvatures = problem.slot_curvatures()
        if curvatures is None:
            raise ValueError("sdca: some example's features are shared between labels (A A' is not diagonal)")
        scores = start_scores(problem, warm_start, start_cost_scale(self.start, self.sharpness), self.name)
        entropies = np.concatenate(
            [sdca_start(part.native, REACH, scores[part.slots], problem.n_jobs) for part in problem.in_memory()]
        )
        u, b = problem.terms_of_scores(scores)
        return SDCAState(
            weights=problem.weights_of_plane(u),
            scores=scores,
            entropies=entropies,
            gains=np.zeros(problem.n_examples),
            curvatures=curvatures,
            rest=np.zeros(problem.n_examples, dtype=np.int64),
            pause=np.zeros(problem.n_examples, dtype=np.int64),
            dual=problem.dual_of_plane(u, b),
            rng=rng,
        )

    def step(self, problem: Problem, state: SDCAState) -> None:
        # With many examples at rest a pass is short: an epoch is as many passes as make up one over all examples.
        visits, gain = 0, 0.0
        while visits < len(problem.active):
            order = self._awake(state, self.draw_order(problem, state.rng))
            for part, own in problem.visits(order):
                blocks = _core.SdcaState(
                    part.native,
                    curvatures=state.curvatures[part.slots],
                    weights=state.weights,
                    scores=state.scores[part.slots],
                    entropies=state.entropies[part.examples],
                    gains=state.gains[part.examples],
                )
                report = _core.sdca_epoch(blocks, own, _core.SdcaOptions(l2=problem.l2))
                visits += report.visits
                gain += report.dual_gain
            self._send_to_rest(state, order)
        state.epoch += 1
        state.visits += visits
        state.gain = gain
        state.dual += gain
        if state.epoch % REFRESH == 0:
            u, b = problem.terms_of_scores(state.scores)
            state.weights = problem.weights_of_plane(u)
            state.dual = problem.dual_of_plane(u, b)

    def certificate(self, problem: Problem, state: SDCAState) -> Certified:
        point = DualPoint.of_scores(state.scores)
        return Certified(*problem.certify(point), point)

    def weights(self, problem: Problem, state: SDCAState) -> Floats:
        return state.weights.copy()

    def check_due(self, state: SDCAState, tol: float) -> bool:
        """Early once: easy problems are done after a few passes, and guesses are better after a first certificate."""
        first = self.check_every is None and state.checked_epoch == 0 and state.epoch == 2
        return first or super().check_due(state, tol)

    def guess_primal(self, state: SDCAState) -> float:
        return state.checked_primal or state.dual

    def _awake(self, state: SDCAState, order: Ints) -> Ints:
        """The visits of this pass: those whose rest is over (all, if there are none)."""
        awake = order[state.rest[order] == 0]
        state.rest -= state.rest > 0
        return awake if len(awake) else order

    def _send_to_rest(self, state: SDCAState, order: Ints) -> None:
        gains = state.gains[order]
        idle = gains <= self.skip * gains.mean()
        pause = np.where(idle, np.minimum(2 * state.pause[order] + 1, self.longest_rest), 0)
        state.pause[order] = pause
        state.rest[order] = pause
