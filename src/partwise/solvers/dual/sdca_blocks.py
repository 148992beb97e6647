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

Weights without a penalty (intercepts b). What is climbed is the dual of P(w) + pull / 2 |b - z|^2, in which b = z + u_b
/ pull, and after every pass z <- b (a proximal point). At the end z no longer moves: u_b is 0, and `pull` does not
matter. `pull` is `LIGHT` l2 / |x|^2, |x| the median norm of a row, so that intercepts bend an example's dual less than
its features do, and a `WEAKER`th of that after each pass that gained less than `SLOW` pull |b - z|^2: there z is what
moves slowly. For the certificate a little probability is moved so that u_b is zero (`free_weights.balanced`).
Passes to a gap of 1e-3 with penalised and with free intercepts: 20news, l2 = 0.1: 136, 164; l2 = 1: 19.5, 21.7; MNIST,
l2 = 1: 34.3, 35.5; l2 = 10: 7.4, 8.3; 1,000 labels, 6,000 rows of 64 numbers, l2 = 1: 12.5, 12.9.

Memory. Two numbers per slot, log p and rho's curvature, 16 bytes for every example and label (Brown's parts of speech,
895,804 contexts with 184 labels: 2.6 GB); p itself, the certificate's sums and the start are made example by example.

Source. Huang et al. 2010 treat the primal; this is the dual counterpart, block by block: the dual of Collins et al.
2008, section 2, with the visits of Figure 2, the step replaced by the block's maximum. Departures from Collins et al.:
no step size; start near the gold labelling, log p_a = -sharpness * c_a but for a constant; w is recomputed from the
dual every `REFRESH` passes, as its sum drifts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from partwise import _core
from partwise._core import sdca_start
from partwise.problem import Problem
from partwise.problem.dual_points import DualPoint
from partwise.problem.free_weights import balanced, free_part, penalised
from partwise.solvers.dual.base import REFRESH, start_scores
from partwise.solvers.engine.base import Certified, WarmStart, start_weights
from partwise.solvers.online.base import OnlineState
from partwise.support.arrays import Floats, Ints

#: Scores of a start are cut off this far from the gold label's: every label keeps a positive probability.
REACH = 300.0
#: The pull to the last intercepts, over l2 / (the median of |x|^2), and what makes it weaker on the way.
LIGHT, WEAKER, SLOW = 30.0, 4.0, 1.0
#: Examples whose |x|^2 the median is taken of, at most.
SAMPLE = 1000


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


@dataclass(kw_only=True)
class PulledState(BlockState):
    """With weights that are not penalised. center: where they are pulled to, the best known of them. pull: how much.

    curvatures: with l2 / pull in place of 1 for each of these weights.
    """

    positive: ClassVar[frozenset[str]] = frozenset({"pull"})

    center: Floats
    pull: float


def start(
    problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None, cost_scale: float, curvatures: Floats
) -> BlockState:
    """The state before the first step. curvatures: as `Sums.slot_curvatures` gives them."""
    scores = start_scores(problem, warm_start, cost_scale, "sdca")
    entropies = np.concatenate(
        [sdca_start(part.native, REACH, scores[part.slots], problem.n_jobs) for part in problem.sums.in_memory()]
    )
    fields: dict[str, Any] = {
        "weights": np.empty(0),
        "plane": np.empty(0),
        "scores": scores,
        "entropies": entropies,
        "gains": np.zeros(problem.n_examples),
        "curvatures": curvatures,
        "rest": np.zeros(problem.n_examples, dtype=np.int64),
        "pause": np.zeros(problem.n_examples, dtype=np.int64),
        "dual": 0.0,
        "rng": rng,
    }
    if problem.penalty.free is None:
        state = BlockState(**fields)
    else:
        weights = np.zeros(problem.n_weights)
        if warm_start is not None and not isinstance(warm_start, DualPoint):
            weights = start_weights(problem, warm_start)
        pull = LIGHT * problem.l2 / _typical(problem, curvatures)
        state = PulledState(**fields, center=free_part(problem.penalty, weights).copy(), pull=problem.l2)
        _weaken(problem, state, pull)
    _settle(problem, state)
    return state


def _typical(problem: Problem, curvatures: Floats) -> float:
    """The median of |x|^2 over some examples."""
    some = problem.active[:: -(-len(problem.active) // SAMPLE)]
    return float(np.median(curvatures[problem.slot_offsets[some]]))


def _weaken(problem: Problem, state: PulledState, pull: float) -> None:
    """Change the pull to this, and curvatures with it: a slot with a free weight has at least its curvature."""
    before = problem.l2 / state.pull
    # Sums of these changes are rounded: a slot with a free weight alone may have a little less than it.
    state.curvatures[state.curvatures >= (1.0 - 1e-9) * before] += problem.l2 / pull - before
    state.pull = pull


def _settle(problem: Problem, state: BlockState) -> None:
    """Find weights and dual afresh."""
    u, b = problem.sums.dual_terms_gibbs(state.scores)
    rest = penalised(problem.penalty, u)
    state.weights = problem.weights_of_plane(rest)
    state.plane = u if problem.l1 else np.empty(0)
    state.dual = problem.dual_as_it_is(rest, b)
    if isinstance(state, PulledState):
        loose = free_part(problem.penalty, u)
        free_part(problem.penalty, state.weights)[:] = state.center + loose / state.pull
        state.dual -= float(state.center @ loose + loose @ loose / (2.0 * state.pull))


def step(problem: Problem, state: BlockState, draw: Callable[[], Ints], skip: float, longest_rest: int) -> None:
    """An epoch. With many examples at rest a pass is short: it is as many as make up one over all examples."""
    visits, gain = 0, 0.0
    options = _core.SdcaOptions(l2=problem.l2, l1=problem.l1, **_pulled(problem, state))
    while visits < len(problem.active):
        order = _awake(state, draw())
        for part, own in problem.sums.rounds(order):
            blocks = _core.SdcaState(
                part.native,
                curvatures=state.curvatures[part.slots],
                weights=state.weights,
                scores=state.scores[part.slots],
                entropies=state.entropies[part.examples],
                gains=state.gains[part.examples],
                plane=state.plane if problem.l1 else None,
            )
            report = _core.sdca_epoch(blocks, own, options)
            visits += report.visits
            gain += report.dual_gain
        _send_to_rest(state, order, skip, longest_rest)
    state.epoch += 1
    state.visits += visits
    state.gain = gain
    state.dual += gain
    state.raised += gain
    if state.epoch % REFRESH == 0:
        _settle(problem, state)
    if isinstance(state, PulledState):
        _move_center(problem, state)


def _pulled(problem: Problem, state: BlockState) -> dict[str, Any]:
    """The options of an epoch that are about weights without a penalty."""
    free = problem.penalty.free
    if free is None or not isinstance(state, PulledState):
        return {}
    return {"pulled": (free.start, free.stop), "pull": state.pull}


def _move_center(problem: Problem, state: PulledState) -> None:
    """Pull to where the last pass went, less than before if the pull is what makes progress slow."""
    found = free_part(problem.penalty, state.weights)
    moved = found - state.center
    loose = state.pull * moved
    state.dual -= float(moved @ loose)
    state.center = found.copy()
    if state.gain < SLOW * float(moved @ loose):
        state.dual += float(loose @ loose) * (0.5 / state.pull - 0.5 * WEAKER / state.pull)
        _weaken(problem, state, state.pull / WEAKER)
    found += loose / state.pull


def weights(problem: Problem, state: BlockState) -> Floats:
    """The weights that a state stands for."""
    found = state.weights.copy()
    if isinstance(state, PulledState):
        free_part(problem.penalty, found)[:] = state.center
    return found


def certify_pulled(problem: Problem, state: PulledState) -> Certified:
    """The certificate of a state with weights that are not penalised."""
    u, b = problem.sums.dual_terms_gibbs(state.scores)
    found = problem.weights_of_plane(u)
    free_part(problem.penalty, found)[:] = state.center
    plane = balanced(problem, u, b, lambda moved: problem.sums.dual_terms_gibbs(state.scores, moved)) or (u, b)
    certificate = problem.certificate_of(problem.value(found), *plane, found)
    return Certified(certificate, found, DualPoint.of_plane(*plane))


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
