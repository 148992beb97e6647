"""Block-coordinate Frank-Wolfe on the dual of max-margin losses: one step per visit, towards the oracle's corner.

Problem. max D(alpha) at temperature 0 (hinge, squared hinge); l2 > 0. Of example i the expected counts s_i mu_i in
slots, s_i the mass, are all that is kept.

Update. A visit to example i asks the oracle for y = argmax cost_y - <w, psi_y>, psi_y = A_i'(g_i - counts(y)), and
moves the block towards it:

    hinge           s_i mu_i <- (1 - gamma) mu_i + gamma counts(y), gamma in [0, 1] the maximiser of D
    squared hinge   s_i mu_i <- a s_i mu_i + b counts(y), the pair a, b >= 0 that maximises D (the mass s_i is free)

and after k visits average_{k+1} = k/(k + 2) average_k + 2/(k + 2) w_{k+1}, kept as average = w - scale * lag: with
z = w - average the rule reads z_{k+1} = k/(k + 2) (z_k + w_{k+1} - w_k), so a visit adds its sparse change of w, over
`scale`, to `lag` and shrinks `scale` by k/(k + 2). Its b is averaged likewise.

A pass visits every example in the given order. With `gap_sampling` it draws examples by their share of the gap as last
seen (systematic sampling, a tenth of the draws uniform), and every tenth pass visits all of them.

Stopping rule. The smaller of P(w) and P(average) minus the larger of their duals <= tol |P|. The iterate's dual is
recomputed from the blocks; the average is certified by its plane (u, b).

Source. Lacoste-Julien et al. 2013, Algorithms 3 and 4 and their appendix on averaging ("FW-Struct" in Chang and Yih
2013). Osokin et al. 2016: gap sampling.

Departures. Sample weights; order "permuted" by default; the squared hinge, with scaled corners. `BCFW.plain()` is this.
"""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from partwise import _core
from partwise.problem import Certificate, DivergenceError, DualPoint, Problem
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.options import option
from partwise.solvers.online.base import BlockSolver, InBlocks, OnlineState, drawn_by_gap
from partwise.solvers.working_sets.base import LABELLING_NEEDS, start_plane, start_sets
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats, Ints

#: With gap sampling: the share of uniform draws, and the number of passes of which one visits all examples.
UNIFORM, WHOLE = 0.1, 10
#: The gap after a pass, over the sum of the blocks' gaps at their visits (0.5 to 0.65 in practice).
REMAINS = 0.6


@dataclass(kw_only=True)
class BCFWState(OnlineState):
    """lag: (d,). gaps: the blocks' gaps at their last visits, (n,). average: [visits averaged, scale of lag, its b].

    sets: the working sets; sweeps over them; merged: how many were merged. The plain form has None for sets, and counts
    (s mu, all slots), mass and linear (s and kappa <s mu, c>, (n,)). dual: D after the last sweep (plain form: 0).
    """

    lag: Floats
    average: Floats
    gaps: Floats
    sets: KeptLabellings | None
    counts: Floats | None = None
    mass: Floats | None = None
    linear: Floats | None = None
    dual: float = 0.0
    sweeps: int = 0
    merged: int = 0


@dataclass(frozen=True)
class PlainBCFW(BlockSolver[BCFWState]):
    """Block-coordinate Frank-Wolfe that keeps expected counts (see the module's docstring)."""

    name = "bcfw"
    requires = LABELLING_NEEDS
    state_types = (BCFWState,)
    vectors: ClassVar[frozenset[str]] = frozenset({"weights", "lag"})
    rate = "sublinear"
    proof = "Lacoste-Julien et al. 2013, for the plain form: O(1/eps)"
    seldom = 15

    averaging: bool = option(True, "certify the weighted average of the iterates too, and return the better of the two")
    gap_sampling: bool = option(False, "visit examples with a large share of the gap more often")

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> BCFWState:
        if problem.n_batches > 1:
            raise ValueError("bcfw: the plain form averages over visits of all examples and needs one batch")
        state = self.first_state(problem, rng, warm_start)
        active = state.sets.point().active if state.sets is not None else None
        assert active is not None
        offsets = problem.slot_offsets
        state.counts, state.mass = active.expected_counts(offsets)
        costs = problem.loss.cost_scale * problem.sums.slot_costs() * state.counts
        state.linear = np.diff(np.concatenate([[0.0], np.cumsum(costs)])[offsets])
        state.sets = None
        return state

    def first_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> BCFWState:
        """Return the state before the first step, with labellings."""
        sets = start_sets(problem, warm_start, self.name)
        u, b = start_plane(problem, sets, warm_start)
        return BCFWState(
            weights=problem.weights_of_plane(u),
            lag=np.zeros(problem.n_weights),
            average=np.array([0.0, 1.0, b]),
            gaps=np.zeros(problem.n_examples),
            sets=sets,
            rng=rng,
        )

    def step(self, problem: Problem, state: BCFWState) -> None:
        order = self._order(problem, state)
        state.epoch += 1
        self.make_pass(problem, state, order)
        state.gain = float(state.gaps.sum())
        if not isfinite(state.gain):
            raise DivergenceError(f"bcfw: the gap is {state.gain} after {state.epoch} epochs")

    def _order(self, problem: Problem, state: BCFWState) -> Ints:
        if not self.gap_sampling:
            return self.draw_order(problem, state.rng)
        active, gaps = problem.active, state.gaps[problem.active]
        if state.epoch % WHOLE == 0 or not gaps.sum() > 0:
            return state.rng.permutation(active)
        return drawn_by_gap(active, gaps, UNIFORM, state.rng)

    def make_pass(self, problem: Problem, state: BCFWState, order: Ints) -> None:
        (part,) = problem.sums.in_memory()
        names = ("weights", "counts", "mass", "linear", "lag", "average", "gaps")
        blocks = _core.BcfwState(part.native, **{name: getattr(state, name) for name in names})
        state.visits += _core.bcfw_epoch(blocks, order, _core.BcfwOptions(l2=problem.l2)).visits

    def guess_gap(self, state: BCFWState) -> float:
        return super().guess_gap(state) if state.checked_gain else REMAINS * state.gain

    def certificate(self, problem: Problem, state: BCFWState) -> Certified:
        blocks = self.dual_point(problem, state)
        now, weights = problem.certify(blocks)
        best = Certified(now, weights, blocks)
        if not self.averaging or state.average[0] == 0:
            return best
        weights = self.average_weights(state)
        u, b = problem.plane_of_weights(weights), float(state.average[2])
        mean = problem.certificate_of(problem.value(weights), u, b, carried=state.visits)
        # Every primal value is an upper bound and every dual value a lower one, whichever iterates they come from.
        if mean.primal < now.primal:
            best = Certified(mean, weights, blocks)
        if mean.dual > now.dual:
            best = best._replace(point=DualPoint.of_plane(u, b, blocks))
        primal, dual = min(now.primal, mean.primal), max(now.dual, mean.dual)
        return best._replace(certificate=Certificate.of(primal, dual, now.rounding + mean.rounding))

    def weights(self, problem: Problem, state: BCFWState) -> Floats:
        return self.average_weights(state) if self.averaging else state.weights.copy()

    @staticmethod
    def average_weights(state: BCFWState) -> Floats:
        average: Floats = state.weights - float(state.average[1]) * state.lag
        return average

    def in_blocks(self) -> InBlocks | None:
        return None  # the average is one over all examples

    def dual_point(self, problem: Problem, state: BCFWState) -> DualPoint:
        assert state.counts is not None
        return DualPoint.of_counts(state.counts.copy(), None if state.mass is None else state.mass.copy())
