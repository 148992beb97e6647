"""Stochastic dual coordinate ascent for smooth losses: one example's distribution at a time, by exact steps.

Problem. max D(alpha) of `problem` for smooth losses with the identity link (temperature tau > 0, mass 1), l2 > 0, where
the structure has a clique view (a single label is one clique).

Update. Two forms, by what the problem allows:

    exact blocks   labellings are single parts and A_i A_i' is diagonal ("diagonal blocks"): D is maximised over all of
                   the example's distribution (`sdca_blocks`)
    lines          else: D is maximised on the line from the example's clique marginals to those of p_w (`sdca_cliques`)

With an l1 term w = soft(u, l1) / l2 is kept beside u on the rows that a visit touches, and both forms maximise the
bound of D in which R*(u) bends as it does without l1: a shorter step, never one that lowers the dual.

The dual never falls, no step size is to be chosen, and a visit is one call of the oracle however many points of a
line are tried.

Stopping rule. gap = P(w) - D <= tol |P|, both summed again over all examples; checked when it may be near, at least
every fifth pass (after pass 100: every twentieth part of the passes made).

Sources. The modules of the two forms name them.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import DualPoint
from partwise.solvers.dual import sdca_blocks, sdca_cliques
from partwise.solvers.dual.base import Start, sharpness_option, start_cost_scale, start_option
from partwise.solvers.dual.sdca_blocks import REACH, BlockState, PulledState
from partwise.solvers.dual.sdca_cliques import LineState
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.block_steps import BlockSolver
from partwise.solvers.engine.options import NOT_NEGATIVE, POSITIVE, PROPER_SHARE, Values, at_least, option
from partwise.solvers.engine.point_conversions import check_clique_memory, updates_of
from partwise.solvers.engine.registry import register
from partwise.solvers.online.base import OnlineState
from partwise.support.arrays import Floats


@register(place=6)
@dataclass(frozen=True)
class SDCA(BlockSolver[BlockState | LineState]):
    """Stochastic dual coordinate ascent with exact blocks or lines (see the module's docstring)."""

    name: ClassVar[str] = "sdca"
    requires: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SMOOTH,
            Capability.IDENTITY_LINK,
            Capability.L2,
            Capability.CLIQUES,
            Capability.IN_MEMORY,
        }
    )
    state_types: ClassVar[tuple[type[OnlineState], ...]] = (BlockState, PulledState, LineState)
    rate: ClassVar[str] = "linear"
    proof: ClassVar[str] = "Shalev-Shwartz and Zhang 2013: O(log 1/eps)"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000
    slot_vectors: ClassVar[int] = 2

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
        # at 1 an example whose gap was once 0 would never be visited again
        Values("at least 0 and below 1", lambda share: 0 <= share < 1),
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
        cost_scale = start_cost_scale(self.start, self.sharpness)
        curvatures = None
        if self.exact_blocks and Capability.DIAGONAL_BLOCKS in problem.capabilities():
            curvatures = problem.sums.slot_curvatures()  # None: the examples that the capability was read from misled
        if curvatures is not None:
            return sdca_blocks.start(problem, rng, warm_start, cost_scale, curvatures)
        if problem.penalty.free is not None:
            raise ValueError(
                f"{self.name}: weights without a penalty need exact blocks, where labellings are single parts (and "
                "exact_blocks=True)"
            )
        check_clique_memory(problem, self.memory_mb, self.name)
        return sdca_cliques.start(problem, rng, warm_start, cost_scale)

    def step(self, problem: Problem, state: BlockState | LineState) -> None:
        if isinstance(state, BlockState):
            sdca_blocks.step(problem, state, lambda: self.draw_order(problem, state.rng), self.skip, self.longest_rest)
        else:
            order = sdca_cliques.drawn_order(problem, state, self.gap_share)
            if order is None:
                order = self.draw_order(problem, state.rng)
            sdca_cliques.step(problem, state, order, self.line_tol)

    def certificate(self, problem: Problem, state: BlockState | LineState) -> Certified:
        if isinstance(state, PulledState):
            return sdca_blocks.certify_pulled(problem, state)
        point = self.dual_point(problem, state)
        carried = updates_of(problem, state.cliques) if isinstance(state, LineState) else 0
        return Certified(*problem.certify(point, carried), point)

    def dual_point(self, problem: Problem, state: BlockState | LineState) -> DualPoint:
        return state.point()

    def weights(self, problem: Problem, state: BlockState | LineState) -> Floats:
        return sdca_blocks.weights(problem, state) if isinstance(state, BlockState) else state.weights.copy()

    def check_due(self, state: BlockState | LineState, tol: float) -> bool:
        """Early once: easy problems are done after a few passes, and guesses are better after a first certificate."""
        first = self.check_every is None and state.checked_epoch == 0 and state.epoch == 2
        return first or super().check_due(state, tol)

    def guess_primal(self, state: BlockState | LineState) -> float:
        return state.checked_primal or state.dual
