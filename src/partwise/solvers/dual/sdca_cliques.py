"""The lines of `sdca`: dual coordinate ascent over clique marginals, each visit an exact line search.

Update. A visit to example i asks for the clique marginals q of p_w at theta = A_i w, and moves the example's own
marginals m along d = q - m to the maximum of D on that line: with the mixture's entropy,

    f(g) = tau H(m + g d) + g <theta + kappa c, slots(d)> - g^2 omega_i / (2 l2) |A_i' slots(d)|^2,    0 <= g <= 1,
    m <- m + g d,    w <- w - g omega_i / l2 A_i' slots(d).

H and its two derivatives by g come from one sweep over the cliques. Newton's method starts at the example's last g
and ends with a Newton step of at most `line_tol` of g, which is taken without another sweep: one or two sweeps.

Order. As with other online solvers, or, with gap_share > 0, after the first pass this share of the visits is drawn in
proportion to the blocks' duality gaps omega_i tau KL(m | q) as last seen, the rest uniformly.

Memory. Every example's clique marginals: for a chain of T positions and L labels T L^2 numbers, many times the slots
that `eg` keeps (CoNLL-2000: 0.9 GB).

Source. Le Priol et al. 2018: Algorithms 1 and 2, section 4.3 (gap sampling). Departures: sample weights, other
temperatures and costs; the start near the gold labelling; draws of one pass are made at its beginning, at even
distances; w, counts and entropies are recomputed from the cliques every `REFRESH` passes, as they drift.
"""

from dataclasses import dataclass

import numpy as np

from partwise import _core
from partwise.problem import Problem
from partwise.problem.dual_points import DualPoint
from partwise.solvers.dual.base import REFRESH, start_scores
from partwise.solvers.engine.base import WarmStart, start_point
from partwise.solvers.engine.point_conversions import clique_marginals
from partwise.solvers.online.base import OnlineState, drawn_by_gap
from partwise.support.arrays import Floats, Ints

#: The first step that is tried.
FIRST_STEP = 0.5


@dataclass(kw_only=True)
class LineState(OnlineState):
    """weights: (d,). plane: u with l1, else empty. cliques: marginals end to end. counts: their slots.

    entropies, gaps, steps: (n,). gaps: of each example at its last visit. steps: its last g. dual: D as tracked.
    """

    weights: Floats
    plane: Floats
    cliques: Floats
    counts: Floats
    entropies: Floats
    gaps: Floats
    steps: Floats
    dual: float

    def point(self) -> DualPoint:
        return DualPoint.of_cliques(self.cliques)

    def complaint(self, fresh: "LineState") -> str:
        if self.cliques.min(initial=0) < 0 or not (self.steps <= 1).all():
            return "its clique marginals or steps are invalid"
        return super().complaint(fresh)


def start(problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None, cost_scale: float) -> LineState:
    """The state before the first step."""
    point = None if warm_start is None else start_point(problem, warm_start, ("cliques",))
    if point is not None:
        cliques = clique_marginals(problem, point)
    else:
        cliques = problem.sums.cliques_of_scores(start_scores(problem, warm_start, cost_scale, "sdca"))
    n = problem.n_examples
    state = LineState(
        weights=np.empty(0),
        plane=np.empty(0),
        cliques=cliques,
        counts=np.empty(0),
        entropies=np.empty(0),
        gaps=np.zeros(n),
        steps=np.full(n, FIRST_STEP),
        dual=0.0,
        rng=rng,
    )
    _refresh(problem, state)
    return state


def drawn_order(problem: Problem, state: LineState, gap_share: float) -> Ints | None:
    """The visits of this pass where gaps have a say in them, None where not (yet)."""
    gaps = state.gaps[problem.active]
    if not gap_share or state.epoch == 0 or not gaps.sum() > 0:
        return None
    return drawn_by_gap(problem.active, gaps, 1.0 - gap_share, state.rng)


def step(problem: Problem, state: LineState, order: Ints, line_tol: float) -> None:
    """One pass."""
    for part, own in problem.sums.rounds(order):
        blocks = _core.SdcaLineState(
            part.native,
            weights=state.weights,
            cliques=state.cliques[problem.sums.clique_range(part)],
            counts=state.counts[part.slots],
            entropies=state.entropies[part.examples],
            gaps=state.gaps[part.examples],
            steps=state.steps[part.examples],
            plane=state.plane if problem.l1 else None,
        )
        options = _core.SdcaLineOptions(l2=problem.l2, line_tol=line_tol, l1=problem.l1)
        report = _core.sdca_line_epoch(blocks, own, options)
        state.visits += report.visits
        state.dual += report.dual_gain
        state.raised += report.dual_gain
    state.epoch += 1
    state.gain = float(state.gaps.sum())
    if state.epoch % REFRESH == 0:
        _refresh(problem, state)


def _refresh(problem: Problem, state: LineState) -> None:
    """What follows from the clique marginals."""
    state.counts, state.entropies = problem.sums.read_cliques(state.cliques)
    u, b = problem.sums.dual_terms_slots(state.counts, None, state.entropies)
    state.weights = problem.weights_of_plane(u)
    state.plane = u if problem.l1 else np.empty(0)
    state.dual = problem.dual_as_it_is(u, b)
