"""Problem. max D(alpha) for smooth losses with the identity link (temperature tau > 0, mass 1), l2 > 0, where the
structure has a clique view (a single label is one clique). The dual never falls, and there is no step size to choose.

Update. Two forms, depending on the problem.

Exact blocks, where every labelling is one slot and A_i A_i' is diagonal ("diagonal blocks": rows of features with a
weight for every label, or features of one label each). A visit maximises D over example i's distribution. With
theta = A_i w, t = (theta + kappa c) / tau, the distribution p as it is and rho_a = omega_i |A_i' e_a|^2 / (l2 tau), the
maximum q solves

    log q_a + rho_a q_a = t_a + rho_a p_a - nu        for every label a, where nu makes the sum of q one,

by Newton's method on all labels and nu at once, from q = p (bisection on nu where it does not settle). Then
w += omega_i / l2 A_i'(p - q). With skip > 0 an example whose last visit gained less than `skip` times the mean gain of
a visit rests for the next passes, twice as long each time in a row, up to `longest_rest`. Memory: log p and rho's
curvature, 16 bytes for every example and label.

Lines, elsewhere. A visit asks for the clique marginals q of p_w, and moves the example's own marginals m along
d = q - m to the maximum of D on that line: with the mixture's entropy,

    f(g) = tau H(m + g d) + g <theta + kappa c, slots(d)> - g^2 omega_i / (2 l2) |A_i' slots(d)|^2,    0 <= g <= 1,
    m <- m + g d,    w <- w - g omega_i / l2 A_i' slots(d).

Newton's method starts at the example's last g and ends with a step of at most `line_tol` of g, without another sweep
over the cliques. After the first pass a share `gap_share` of the visits is drawn in proportion to the gaps
omega_i tau KL(m | q) at the examples' last visits. Memory: every example's clique marginals.

With an l1 term w = soft(u, l1) / l2 is kept beside u on the rows that a visit touches. Both forms then maximise the
bound of D in which R*(u) bends as it does without l1: a shorter step, never one that lowers the dual.

Weights without a penalty (intercepts b; exact blocks only). The dual of P(w) + pull / 2 |b - z|^2 is raised, in which
b = z + u_b / pull, and after every pass z <- b (a proximal point). At the end u_b is 0, and `pull` does not matter.
`pull` starts at `LIGHT` l2 / |x|^2, |x| the median norm of a row, so that intercepts bend an example's dual less than
its features do. It is divided by `WEAKER` after each pass that gained less than `SLOW` pull |b - z|^2, where z is too
slow. For the certificate a little probability is moved so that u_b is 0 (`balanced`).

Stopping rule. gap = P(w) - D <= tol |P|, both summed anew over all examples.

Source. Blocks: the dual of Huang et al. 2010's primal, which is that of Collins et al. 2008, section 2, with the visits
of their Figure 2 and the step replaced by the block's maximum. Lines: Le Priol et al. 2018, Algorithms 1 and 2, section
4.3 (gap sampling).

Departures. Start near the gold labelling, log p_a = -sharpness * c_a up to a constant; sample weights, other
temperatures and costs; the visits of a pass are drawn at its beginning, at even distances; sums that visits update are
recomputed every `REFRESH` passes.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from partwise import _core
from partwise.problem import Capability, DualPoint, Problem
from partwise.problem.dual_points import balanced
from partwise.problem.penalties import free_part, penalised
from partwise.solvers.dual.base import REFRESH, Start, sharpness_option, start_cost_scale, start_option, start_scores
from partwise.solvers.engine.base import Certified, WarmStart, start_point, start_weights
from partwise.solvers.engine.options import NOT_ALL, NOT_NEGATIVE, POSITIVE, PROPER_SHARE, Values, at_least, option
from partwise.solvers.engine.point_conversions import check_clique_memory, clique_marginals, updates_of
from partwise.solvers.online.base import BlockSolver, OnlineState, drawn_by_gap, views
from partwise.support.arrays import Floats, Ints

#: First scores are at most this far below the gold label's: every label keeps a positive probability.
REACH = 300.0
#: The first pull over l2 / (the median of |x|^2), the divisor of a weaker pull, and the gain at which it gets weaker.
LIGHT, WEAKER, SLOW = 30.0, 4.0, 1.0
#: Most examples for the median of |x|^2.
SAMPLE = 1000
#: The first step that is tried on a line.
FIRST_STEP = 0.5


@dataclass(kw_only=True)
class BlockState(OnlineState):
    """plane: u with l1, else empty. scores (log p), curvatures: (all slots,). entropies, gains: (n,).

    rest, pause: passes for which an example still rests, and the length of its last rest, (n,). dual: D as tracked.
    """

    plane: Floats = field(default_factory=lambda: np.empty(0))
    scores: Floats
    entropies: Floats
    gains: Floats
    curvatures: Floats
    rest: Ints
    pause: Ints
    dual: float = 0.0


@dataclass(kw_only=True)
class PulledState(BlockState):
    """center, pull: where free weights are pulled to, how strongly; l2 / pull replaces 1 in their curvatures."""

    positive: ClassVar[frozenset[str]] = frozenset({"pull"})

    center: Floats
    pull: float


@dataclass(kw_only=True)
class LineState(OnlineState):
    """plane: u with l1, else empty. cliques: marginals of all examples, one after the other. counts: their slots.

    entropies, gaps, steps: (n,). gaps: of each example at its last visit. steps: its last g. dual: D as tracked.
    """

    plane: Floats = field(default_factory=lambda: np.empty(0))
    cliques: Floats
    counts: Floats = field(default_factory=lambda: np.empty(0))
    entropies: Floats
    gaps: Floats
    steps: Floats
    dual: float = 0.0

    def complaint(self, fresh: Self) -> str:
        if self.cliques.min(initial=0) < 0 or not (self.steps <= 1).all():
            return "its clique marginals or steps are invalid"
        return super().complaint(fresh)


@dataclass(frozen=True)
class SDCA(BlockSolver[BlockState | LineState]):
    """Stochastic dual coordinate ascent for smooth losses: one example's distribution at a time, by exact steps."""

    name = "sdca"
    requires = frozenset(
        {Capability.SMOOTH, Capability.IDENTITY_LINK, Capability.L2, Capability.CLIQUES, Capability.IN_MEMORY}
    )
    state_types = (BlockState, PulledState, LineState)
    rate = "linear"
    proof = "Shalev-Shwartz and Zhang 2013: O(log 1/eps)"
    slot_vectors = 2

    start: Start = start_option()
    sharpness: float = sharpness_option(Values(f"between 0 and {REACH:g}", lambda x: 0 <= x <= REACH))
    exact_blocks: bool = option(True, "exact blocks where labellings are single parts, lines elsewhere; false: lines")
    skip: float = option(
        0.5,
        "exact blocks: examples that gain less than this times the mean gain rest for some passes (0: none)",
        NOT_NEGATIVE,
    )
    longest_rest: int = option(30, "exact blocks: most passes that an example rests", at_least(0))
    gap_share: float = option(
        0.8,
        "lines: share of the visits drawn in proportion to the examples' last duality gaps, the rest uniformly",
        NOT_ALL,  # at 1 an example whose gap was once 0 would never be visited again
    )
    line_tol: float = option(
        0.1, "lines: the search ends with a Newton step of at most this share of the step", PROPER_SHARE
    )
    memory_mb: float = option(
        4096.0, "lines: limit of the clique marginals, in MB; a problem with more is refused", POSITIVE
    )

    def init_state(
        self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None
    ) -> BlockState | LineState:
        curvatures = None
        if self.exact_blocks and Capability.DIAGONAL_BLOCKS in problem.capabilities():
            curvatures = problem.sums.slot_curvatures()  # None: not diagonal, unlike the examples that were sampled
        if curvatures is not None:
            return self._start_blocks(problem, rng, warm_start, curvatures)
        if problem.penalty.free is not None:
            raise ValueError(
                f"{self.name}: weights without a penalty need exact blocks, where labellings are single parts (and "
                "exact_blocks=True)"
            )
        check_clique_memory(problem, self.memory_mb, self.name)
        return self._start_lines(problem, rng, warm_start)

    def step(self, problem: Problem, state: BlockState | LineState) -> None:
        if isinstance(state, BlockState):
            self._block_epoch(problem, state)
        else:
            self._line_epoch(problem, state)

    def certificate(self, problem: Problem, state: BlockState | LineState) -> Certified:
        if isinstance(state, PulledState):
            u, b = problem.sums.dual_terms_gibbs(state.scores)
            found = problem.weights_of_plane(u)
            free_part(problem.penalty, found)[:] = state.center
            plane = balanced(problem, u, b, lambda v: problem.sums.dual_terms_gibbs(state.scores, v)) or (u, b)
            certificate = problem.certificate_of(problem.value(found), *plane, found)
            return Certified(certificate, found, DualPoint.of_plane(*plane))
        point = self.dual_point(problem, state)
        carried = updates_of(problem, state.cliques) if isinstance(state, LineState) else 0
        return Certified(*problem.certify(point, carried), point)

    def dual_point(self, problem: Problem, state: BlockState | LineState) -> DualPoint:
        if isinstance(state, LineState):
            return DualPoint.of_cliques(state.cliques)
        return DualPoint.of_scores(state.scores)

    def weights(self, problem: Problem, state: BlockState | LineState) -> Floats:
        weights = state.weights.copy()
        if isinstance(state, PulledState):
            free_part(problem.penalty, weights)[:] = state.center
        return weights

    def check_due(self, state: BlockState | LineState, tol: float) -> bool:
        # Once early: easy problems are done after a few passes, and a first certificate improves guesses of the gap.
        first = self.check_every is None and state.checked_epoch == 0 and state.epoch == 2
        return first or super().check_due(state, tol)

    def _start_blocks(
        self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None, curvatures: Floats
    ) -> BlockState:
        """Return the first state of exact blocks. curvatures: as `Sums.slot_curvatures` gives them."""
        scores = start_scores(problem, warm_start, start_cost_scale(self.start, self.sharpness), self.name)
        n, parts = problem.n_examples, problem.sums.in_memory()
        entropies = [_core.sdca_start(part.native, REACH, scores[part.slots], problem.n_jobs) for part in parts]
        fields: dict[str, Any] = {
            "weights": np.empty(0),
            "scores": scores,
            "entropies": np.concatenate(entropies),
            "gains": np.zeros(n),
            "curvatures": curvatures,
            "rest": np.zeros(n, dtype=np.int64),
            "pause": np.zeros(n, dtype=np.int64),
            "rng": rng,
        }
        if problem.penalty.free is None:
            state = BlockState(**fields)
        else:
            weights = start_weights(problem, None if isinstance(warm_start, DualPoint) else warm_start)
            # the median of |x|^2 over some examples
            some = problem.active[:: -(-len(problem.active) // SAMPLE)]
            pull = LIGHT * problem.l2 / float(np.median(curvatures[problem.slot_offsets[some]]))
            state = PulledState(**fields, center=free_part(problem.penalty, weights).copy(), pull=problem.l2)
            weaken(problem, state, pull)
        settle(problem, state)
        return state

    def _block_epoch(self, problem: Problem, state: BlockState) -> None:
        """Make passes over the examples that do not rest until the visits make up one pass over all examples."""
        visits, gain, free = 0, 0.0, problem.penalty.free
        options = _core.SdcaOptions(l2=problem.l2, l1=problem.l1)
        if isinstance(state, PulledState) and free is not None:
            options = _core.SdcaOptions(l2=problem.l2, l1=problem.l1, pulled=(free.start, free.stop), pull=state.pull)
        while visits < len(problem.active):
            order = self.draw_order(problem, state.rng)
            awake = order[state.rest[order] == 0]
            state.rest -= state.rest > 0
            if len(awake):  # where all examples rest, all are visited
                order = awake
            for part, own in problem.sums.rounds(order):
                arrays = views(part, state, ("curvatures", "scores"), ("entropies", "gains"))
                plane = state.plane if problem.l1 else None
                blocks = _core.SdcaState(part.native, weights=state.weights, plane=plane, **arrays)
                report = _core.sdca_epoch(blocks, own, options)
                visits += report.visits
                gain += report.dual_gain
            gains = state.gains[order]
            idle = gains <= self.skip * gains.mean()
            pause = np.where(idle, np.minimum(2 * state.pause[order] + 1, self.longest_rest), 0)
            state.pause[order] = state.rest[order] = pause
        state.epoch += 1
        state.visits += visits
        state.gain = gain
        state.dual += gain
        state.raised += gain
        if state.epoch % REFRESH == 0:
            settle(problem, state)
        if isinstance(state, PulledState):
            _move_center(problem, state)

    def _start_lines(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> LineState:
        point = start_point(problem, warm_start, ("cliques",))
        if point is not None:
            cliques = clique_marginals(problem, point)
        else:
            scores = start_scores(problem, warm_start, start_cost_scale(self.start, self.sharpness), self.name)
            cliques = problem.sums.cliques_of_scores(scores)
        n = problem.n_examples
        state = LineState(
            weights=np.empty(0),
            cliques=cliques,
            entropies=np.empty(0),
            gaps=np.zeros(n),
            steps=np.full(n, FIRST_STEP),
            rng=rng,
        )
        _refresh_lines(problem, state)
        return state

    def _line_epoch(self, problem: Problem, state: LineState) -> None:
        gaps = state.gaps[problem.active]
        if self.gap_share and state.epoch > 0 and gaps.sum() > 0:
            order = drawn_by_gap(problem.active, gaps, 1.0 - self.gap_share, state.rng)
        else:
            order = self.draw_order(problem, state.rng)
        options = _core.SdcaLineOptions(l2=problem.l2, line_tol=self.line_tol, l1=problem.l1)
        for part, own in problem.sums.rounds(order):
            arrays = views(part, state, ("counts",), ("entropies", "gaps", "steps"))
            cliques, plane = state.cliques[problem.sums.clique_range(part)], state.plane if problem.l1 else None
            blocks = _core.SdcaLineState(part.native, weights=state.weights, cliques=cliques, plane=plane, **arrays)
            report = _core.sdca_line_epoch(blocks, own, options)
            state.visits += report.visits
            state.dual += report.dual_gain
            state.raised += report.dual_gain
        state.epoch += 1
        state.gain = float(state.gaps.sum())
        if state.epoch % REFRESH == 0:
            _refresh_lines(problem, state)


def settle(problem: Problem, state: BlockState) -> None:
    """Recompute weights and dual from the distributions of exact blocks."""
    u, b = problem.sums.dual_terms_gibbs(state.scores)
    rest = penalised(problem.penalty, u)
    state.weights = problem.weights_of_plane(rest)
    state.plane = u if problem.l1 else np.empty(0)
    state.dual = problem.dual_as_it_is(rest, b)
    if isinstance(state, PulledState):
        loose = free_part(problem.penalty, u)
        free_part(problem.penalty, state.weights)[:] = state.center + loose / state.pull
        state.dual -= float(state.center @ loose + loose @ loose / (2.0 * state.pull))


def weaken(problem: Problem, state: PulledState, pull: float) -> None:
    """Change the pull, and the curvatures with it: a slot with a free weight has at least that weight's curvature."""
    before = problem.l2 / state.pull
    # Sums of these changes are rounded: a slot with only a free weight may have a little less than its curvature.
    state.curvatures[state.curvatures >= (1.0 - 1e-9) * before] += problem.l2 / pull - before
    state.pull = pull


def _move_center(problem: Problem, state: PulledState) -> None:
    """Pull to the intercepts of the last pass, and weaken the pull if it makes progress slow."""
    found = free_part(problem.penalty, state.weights)
    moved = found - state.center
    loose = state.pull * moved
    state.dual -= float(moved @ loose)
    state.center = found.copy()
    if state.gain < SLOW * float(moved @ loose):
        state.dual += float(loose @ loose) * (0.5 / state.pull - 0.5 * WEAKER / state.pull)
        weaken(problem, state, state.pull / WEAKER)
    found += loose / state.pull


def _refresh_lines(problem: Problem, state: LineState) -> None:
    state.counts, state.entropies = problem.sums.read_cliques(state.cliques)
    u, b = problem.sums.dual_terms_slots(state.counts, None, state.entropies)
    state.weights = problem.weights_of_plane(u)
    state.plane = u if problem.l1 else np.empty(0)
    state.dual = problem.dual_as_it_is(u, b)
