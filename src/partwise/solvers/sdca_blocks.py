"""The exact blocks of `sdca`, for structures whose labellings are one part each (multinomial maxent).

Every labelling is one slot, and A_i A_i' is diagonal ("diagonal blocks": rows of features with a weight for every
label, or features of one label each).

Update. A visit maximises D over example i's distribution. With theta = A_i w, t = (theta + kappa c) / tau, the
distribution p as it is and rho_a = omega_i |A_i' e_a|^2 / (l2 tau), the maximum q solves

    log q_a + rho_a q_a = t_a + rho_a p_a - nu        for every label a, where nu makes the sum of q one,

by Newton's method on all labels and nu at once, from q = p (two or three steps; where it does not settle, bisection on
nu). Then w += omega_i / l2 A_i'(p - q), w = 1/l2 sum_i omega_i A_i'(g_i - p_i). The dual never falls.

Options. skip > 0: an example whose last visit gained less than `skip` times the mean gain of a visit rests for the next
passes, twice as long each time in a row (at most `longest_rest`).

Memory. Two numbers per slot, log p and rho's curvature, 16 bytes for every example and label (Brown's parts of speech,
895,804 contexts with 184 labels: 2.6 GB); p itself, the certificate's sums and the start are made example by example.

Source. 003 treats the primal; this is its dual counterpart, block by block: the dual of section 2 of 000 with Figure
2's visits, the step replaced by the block's maximum. Departures from 000: no step size; start near the gold labelling,
log p_a = -sharpness * c_a but for a constant; w is recomputed from the dual every `REFRESH` passes, as its sum drifts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._core import sdca_start
from ..arrays import Floats, Ints
from ..dual import DualPoint
from ..problem import Problem
from .base import WarmStart
from .eg_start import start_scores
from .online import OnlineState

#: Passes between two recomputations of the weights.
REFRESH = 20
#: Scores of a start are cut off this far from the gold label's: every label keeps a positive probability.
REACH = 300.0


@dataclass(kw_only=True)
class BlockState(OnlineState):
    """weights: (d,). plane: u with l1, else empty. scores (log p), curvatures: (all slots,). entropies, gains: (n,).

    rest, pause: passes that an example still rests, and how long its last rest was, (n,). dual: D as tracked.
    """

    weights: Floats
    plane: Floats
    scores: Floats
    entropies: Floats
    gains: Floats
    curvatures: Floats
    rest: Ints
    pause: Ints
    dual: float

    def point(self) -> DualPoint:
        """The dual point that it stands for."""
        return DualPoint.of_scores(self.scores)


def start(
    problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None, cost_scale: float, curvatures: Floats
) -> BlockState:
    """The state before the first step. curvatures: as `Problem.slot_curvatures` gives them."""
    scores = start_scores(problem, warm_start, cost_scale, "sdca")
    entropies = np.concatenate(
        [sdca_start(part.native, REACH, scores[part.slots], problem.n_jobs) for part in problem.in_memory()]
    )
    u, b = problem.terms_of_scores(scores)
    return BlockState(
        weights=problem.weights_of_plane(u),
        plane=u if problem.l1 else np.empty(0),
        scores=scores,
        entropies=entropies,
        gains=np.zeros(problem.n_examples),
        curvatures=curvatures,
        rest=np.zeros(problem.n_examples, dtype=np.int64),
        pause=np.zeros(problem.n_examples, dtype=np.int64),
        dual=problem.dual_as_it_is(u, b),
        rng=rng,
    )


def step(problem: Problem, state: BlockState, draw: Callable[[], Ints], skip: float, longest_rest: int) -> None:
    """An epoch. With many examples at rest a pass is short: it is as many as make up one over all examples."""
    visits, gain = 0, 0.0
    while visits < len(problem.active):
        order = _awake(state, draw())
        for part, own in problem.rounds(order):
            blocks = _core.SdcaState(
                part.native,
                curvatures=state.curvatures[part.slots],
                weights=state.weights,
                scores=state.scores[part.slots],
                entropies=state.entropies[part.examples],
                gains=state.gains[part.examples],
                plane=state.plane if problem.l1 else None,
            )
            report = _core.sdca_epoch(blocks, own, _core.SdcaOptions(l2=problem.l2, l1=problem.l1))
            visits += report.visits
            gain += report.dual_gain
        _send_to_rest(state, order, skip, longest_rest)
    state.epoch += 1
    state.visits += visits
    state.gain = gain
    state.dual += gain
    state.raised += gain
    if state.epoch % REFRESH == 0:
        u, b = problem.terms_of_scores(state.scores)
        state.weights = problem.weights_of_plane(u)
        state.plane = u if problem.l1 else np.empty(0)
        state.dual = problem.dual_as_it_is(u, b)


def _awake(state: BlockState, order: Ints) -> Ints:
    """The visits of this pass: those whose rest is over (all, if there are none)."""
    awake = order[state.rest[order] == 0]
    state.rest -= state.rest > 0
    return awake if len(awake) else order


def _send_to_rest(state: BlockState, order: Ints, skip: float, longest_rest: int) -> None:
    gains = state.gains[order]
    idle = gains <= skip * gains.mean()
    pause = np.where(idle, np.minimum(2 * state.pause[order] + 1, longest_rest), 0)
    state.pause[order] = pause
    state.rest[order] = pause
