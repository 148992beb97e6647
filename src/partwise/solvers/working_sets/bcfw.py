"""Block-coordinate Frank-Wolfe on the dual of max-margin losses, with pairwise steps and cached labellings.

Problem. max D(alpha) of `problem` at temperature 0 (hinge, squared hinge); l2 > 0. Example i keeps a working set of
labellings y with coefficients x_y >= 0 (the shares s_i p_i(y) of its dual block; they sum to 1 for the hinge). With
psi_y = A_i'(g_i - counts(y)), w = sum_i omega_i / l2 sum_y x_y psi_y, and v_y = cost_y - <w, psi_y>.

Update. A visit to example i asks the oracle for y = argmax v, lets it join the working set (with `violators` > 1 also
the next best labellings, as long as D rises towards them), and makes up to `steps` steps there, each with an exact line
search:

    hinge, pairwise        shift weight from a = argmin of v over x_a > 0 to y = argmax v: gamma <= x_a
    hinge, pairwise=False  x <- (1 - gamma) x + gamma e_y
    squared hinge          x_y <- max(0, x_y + (v_y - s_i / 2) / (omega_i / l2 |psi_y|^2 + 1/2)) where that gains most

The inner products of a working set's psi are kept, so that a step costs as many numbers as there are labellings; w
follows at the visit's end. Labellings that had no weight for `keep` passes are forgotten. A pass with the oracle is
followed by up to `cached_sweeps` sweeps that do the same over the labellings kept, without the oracle: they continue as
long as the last sweep's gain of D for its cost is above the average since the pass began. The cost is counted: numbers
of feature rows read or written, slots and new labellings for the oracle. Three of four sweeps leave out examples
whose gap over the labellings kept is less than half of the mean. With a number for `sweep_cost` every sweep visits all
examples and costs that many passes.
A pass visits every example in the given order; with `gap_sampling`, examples by their share of the gap as last seen
(systematic sampling, a tenth of the draws uniform), and every tenth pass all of them.

passes counts calls of the oracle over n. Sweeps over kept labellings make none and are not counted; the result's
message says how many there were.

Average. After each sweep average <- 4/5 average + 1/5 w.

Plain form (`BCFW.plain()`: no pairwise steps, sweeps or gap sampling). Of a block, s_i mu_i in slots is all that is
kept. A visit moves it towards the oracle's corner:

    hinge           s_i mu_i <- (1 - gamma) mu_i + gamma counts(y), gamma in [0, 1] the maximiser of D
    squared hinge   s_i mu_i <- a s_i mu_i + b counts(y), the pair a, b >= 0 that maximises D (the mass s_i is free)

and after k visits average_{k+1} = k/(k + 2) average_k + 2/(k + 2) w_{k+1}, kept as average = w - scale * lag: with
z = w - average the rule reads z_{k+1} = k/(k + 2) (z_k + w_{k+1} - w_k), so a visit adds its sparse change of w, over
`scale`, to `lag` and shrinks `scale` by k/(k + 2). Its b is averaged likewise.

Stopping rule. The smaller of P(w) and P(average) minus the larger of their duals <= tol |P|, checked when it may be
near, at least every fifteenth pass (after pass 300: every twentieth part of the passes made). The iterate's
dual is recomputed from the blocks; the average is certified by its plane (u, b).

Source. Lacoste-Julien et al. 2013, Algorithms 3 and 4 and their appendix on averaging: the plain form, a rival
("FW-Struct") in Chang and Yih 2013. Osokin et al. 2016: gap sampling, pairwise steps, caching. Shah et al. 2015: sweeps
over cached planes, and when to end them; there by measured time, here by counted work, so that the same seed gives the
same bits. Shevade et al. 2011: the sequential dual method (`BCFW.sequential_dual()`), which Chang and Yih call closest
to theirs.
Departures: sample weights; order "permuted" by default; the squared hinge, with scaled corners or coordinate steps;
several steps per visit; bounded memory, by merging an example's labellings into one mixture when all of them together
take more than `memory_mb`.
"""

from dataclasses import dataclass, replace
from math import isfinite
from typing import ClassVar, NamedTuple

import numpy as np

from partwise import _core
from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import DualPoint
from partwise.problem.result import Certificate, DivergenceError
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.block_steps import BlockSolver, InBlocks
from partwise.solvers.engine.options import NOT_NEGATIVE, POSITIVE, at_least, option
from partwise.solvers.engine.registry import register
from partwise.solvers.online.base import OnlineState, drawn_by_gap
from partwise.solvers.working_sets.base import (
    MEMORY_HELP,
    VIOLATORS_HELP,
    active_set,
    check_violators,
    start_sets,
)
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats, Ints

#: Share of the newest weights in the average, after each sweep.
NEWEST = 0.2
#: With gap sampling: the share of uniform draws, and the passes from one over all examples to the next.
UNIFORM = 0.1
REFRESH = 10
#: The gap after a pass, over the sum of the blocks' gaps as they were met in it (measured: 0.5 to 0.65).
REMAINS = 0.6
#: Sweeps of counted cost: the share of the mean gap below which an example is left out, and how often none is.
LITTLE, EVERY = 0.5, 4


@dataclass(kw_only=True)
class BCFWState(OnlineState):
    """weights, lag: (d,). gaps: the blocks' gaps as last seen (n,). average: [visits averaged, scale of lag, its b].

    sets: the working sets; sweeps over them; merged: how many were merged. The plain form has None for sets, and counts
    (s mu, all slots), mass and linear (s and kappa <s mu, c>, (n,)). dual: D after the last sweep (plain form: 0).
    """

    weights: Floats
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


class Sweep(NamedTuple):
    """Sums over the visits of a sweep: oracle calls, sets merged, numbers read, gain of D; bound: b after it."""

    visits: int
    merged: int
    work: int
    dual_gain: float
    bound: float = 0.0

    def plus(self, found: _core.BcfwSetReport) -> "Sweep":
        return Sweep(
            self.visits + found.visits,
            self.merged + found.merged,
            self.work + found.work,
            self.dual_gain + found.dual_gain,
        )


@register(place=3)
@dataclass(frozen=True)
class BCFW(BlockSolver[BCFWState]):
    """Block-coordinate Frank-Wolfe (see the module's docstring)."""

    name: ClassVar[str] = "bcfw"
    requires: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.TEMPERATURE_0,
            Capability.MAX_ORACLE,
            Capability.EXPLICIT_WEIGHTS,
            Capability.L2,
            Capability.ALL_PENALISED,
            Capability.SMOOTH_PENALTY,
            Capability.IN_MEMORY,
        }
    )
    state_types: ClassVar[tuple[type[OnlineState], ...]] = (BCFWState,)
    vectors: ClassVar[frozenset[str]] = frozenset({"weights", "lag"})
    rate: ClassVar[str] = "sublinear"
    proof: ClassVar[str] = "Lacoste-Julien et al. 2013, for the plain form: O(1/eps)"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000
    seldom: ClassVar[int] = 15

    averaging: bool = option(True, "certify the weighted average of the iterates too, and return the better of the two")
    pairwise: bool = option(True, "shift weight from the worst labelling of an example to the best (hinge)")
    cached_sweeps: int = option(50, "most sweeps over the labellings kept after each pass with the oracle", at_least(0))
    sweep_cost: float | None = option(
        None,
        "cost of such a sweep in passes, for choosing how many to make (0: always all); by default it is counted, and "
        "sweeps leave out examples with little to gain",
        NOT_NEGATIVE,
    )
    gap_sampling: bool = option(False, "visit examples with a large share of the gap more often")
    violators: int = option(1, VIOLATORS_HELP, at_least(1))
    steps: int = option(10, "most steps per visit", at_least(1))
    keep: int = option(3, "passes for which a labelling without weight is kept", at_least(0))
    memory_mb: float = option(1024.0, MEMORY_HELP, POSITIVE)

    @classmethod
    def plain(cls, *, averaging: bool = True) -> "BCFW":
        """The form of 2013: one step per visit, towards the oracle's corner, nothing kept but expected counts."""
        return cls(averaging=averaging, pairwise=False, cached_sweeps=0)

    @classmethod
    def sequential_dual(cls, *, sweeps: int = 5) -> "BCFW":
        """The sequential dual method (SDM) of Shevade et al. 2011: solve one example's dual after the other.

        Each visit steps on the pair of labellings that violates most until the example's working set is solved. A pass
        with the oracle is followed by `sweeps` without (fewer if one gains nothing); their rules for when to alternate
        are not reproduced. No average, and no labelling is forgotten.
        """
        return cls(averaging=False, cached_sweeps=sweeps, sweep_cost=0.0, steps=1000, keep=2**31)

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> BCFWState:
        check_violators(self.violators, problem)
        sets = start_sets(problem, warm_start, self.name)
        point = DualPoint.of_active_set(active_set(sets))
        u, b = np.zeros(problem.n_weights), 0.0  # of gold
        if warm_start is not None:
            u, b = problem.dual_terms(point)
        state = BCFWState(
            weights=problem.weights_of_plane(u),
            lag=np.zeros(problem.n_weights),
            average=np.array([0.0, 1.0, b]),
            gaps=np.zeros(problem.n_examples),
            sets=sets,
            rng=rng,
        )
        if not self.pairwise and self.cached_sweeps == 0:
            if problem.n_batches > 1:
                raise ValueError("bcfw: the plain form averages over visits of all examples and needs one batch")
            offsets = problem.slot_offsets
            assert point.active is not None
            state.counts, state.mass = point.active.expected_counts(offsets)
            costs = problem.loss.cost_scale * problem.sums.slot_costs() * state.counts
            state.linear = np.diff(np.concatenate([[0.0], np.cumsum(costs)])[offsets])
            state.sets = None
        return state

    def step(self, problem: Problem, state: BCFWState) -> None:
        order = self._order(problem, state)
        state.epoch += 1
        if state.sets is None:
            self._plain_pass(problem, state, order)
        else:
            self._pass(problem, state, state.sets, order)
        state.gain = float(state.gaps.sum())
        if not isfinite(state.gain):
            raise DivergenceError(f"bcfw: the gap is {state.gain} after {state.epoch} epochs")

    def _order(self, problem: Problem, state: BCFWState) -> Ints:
        if not self.gap_sampling:
            return self.draw_order(problem, state.rng)
        active = problem.active
        gaps = state.gaps[active]
        if state.epoch % REFRESH == 0 or not gaps.sum() > 0:
            return state.rng.permutation(active)
        return drawn_by_gap(active, gaps, UNIFORM, state.rng)

    def _pass(self, problem: Problem, state: BCFWState, sets: KeptLabellings, order: Ints) -> None:
        """A pass with the oracle, and sweeps without it as long as they are worth their cost."""
        report = self._sweep(problem, state, sets, order, state.gaps)
        state.visits += report.visits
        state.merged += report.merged
        measured = self.sweep_cost is None
        gain, cost = report.dual_gain, report.work if measured else report.visits / len(problem.active)
        gaps = state.gaps.copy()  # as the sweeps see them; those that no sweep has visited yet: as the oracle did
        for k in range(self.cached_sweeps):
            order = self.draw_order(problem, state.rng)
            if measured and k % EVERY:
                order = order[gaps[order] > LITTLE * gaps[order].mean()]
            report = self._sweep(problem, state, sets, order, gaps, search=False)
            state.sweeps += 1
            own = report.work if self.sweep_cost is None else self.sweep_cost
            gain, cost = gain + report.dual_gain, cost + own
            if report.dual_gain * cost <= gain * own:
                break
        state.dual = problem.dual_of_weights(state.weights, report.bound)

    def _sweep(
        self,
        problem: Problem,
        state: BCFWState,
        sets: KeptLabellings,
        order: Ints,
        gaps: Floats,
        *,
        search: bool = True,
    ) -> Sweep:
        if self.averaging:
            state.lag -= state.weights  # -average
        report, limited = Sweep(0, 0, 0, 0.0), sets.limited(self.memory_mb)
        bounds = np.zeros(len(limited))  # b of each batch after its last visits
        for part, own in problem.sums.rounds(order):
            kept, limit = limited[part.number]
            blocks = _core.BcfwSetState(part.native, weights=state.weights, sets=kept, gaps=gaps[part.examples])
            options = _core.BcfwSetOptions(
                l2=problem.l2,
                search=search,
                pairwise=self.pairwise,
                steps=self.steps,
                now=state.epoch,
                keep=self.keep,
                max_bytes=limit,
                violators=self.violators,
            )
            found = _core.bcfw_set_epoch(blocks, own, options)
            report, bounds[part.number] = report.plus(found), found.bound
            state.raised += found.dual_gain
        report = report._replace(bound=float(bounds.sum()))
        if self.averaging:
            state.lag += state.weights
            state.lag *= 1 - NEWEST
            state.average[0] += 1.0
            state.average[2] += NEWEST * (report.bound - state.average[2])
        return report

    def _plain_pass(self, problem: Problem, state: BCFWState, order: Ints) -> None:
        assert state.counts is not None
        assert state.mass is not None
        assert state.linear is not None
        (part,) = problem.sums.in_memory()
        blocks = _core.BcfwState(
            part.native,
            weights=state.weights,
            counts=state.counts,
            mass=state.mass,
            linear=state.linear,
            lag=state.lag,
            average=state.average,
            gaps=state.gaps,
        )
        report = _core.bcfw_epoch(blocks, order, _core.BcfwOptions(l2=problem.l2))
        state.visits += report.visits

    def guess_gap(self, state: BCFWState) -> float:
        return super().guess_gap(state) if state.checked_gain else REMAINS * state.gain

    def guess_primal(self, state: BCFWState) -> float:
        return state.checked_primal or state.dual

    def certificate(self, problem: Problem, state: BCFWState) -> Certified:
        blocks = self.dual_point(problem, state)
        now, weights = problem.certify(blocks)
        best = Certified(now, weights, blocks)
        if not self.averaging or state.average[0] == 0:
            return best
        weights = self.average_weights(state)
        u, b = problem.plane_of_weights(weights), float(state.average[2])
        mean = problem.certificate_of(problem.value(weights), u, b, carried=state.visits)
        # Any primal value bounds from above and any dual value from below, whichever iterates they come from.
        if mean.primal < now.primal:
            best = Certified(mean, weights, blocks)
        if mean.dual > now.dual:
            best = best._replace(point=DualPoint.of_plane(u, b, blocks))
        primal, dual = min(now.primal, mean.primal), max(now.dual, mean.dual)
        return best._replace(certificate=Certificate.of(primal, dual, now.rounding + mean.rounding))

    def weights(self, problem: Problem, state: BCFWState) -> Floats:
        return self.average_weights(state) if self.averaging else state.weights.copy()

    def remark(self, problem: Problem, state: BCFWState) -> str:
        if state.sets is None:
            return ""
        kept = f"{state.sets.num_atoms} labellings kept in {state.sets.bytes / 2**20:.3g} MB"
        merged = f", {state.merged} times merged to stay within memory_mb={self.memory_mb:g}" if state.merged else ""
        return f"{state.sweeps} sweeps without the oracle, {kept}{merged}"

    @staticmethod
    def average_weights(state: BCFWState) -> Floats:
        """The weighted average of the iterates."""
        average: Floats = state.weights - float(state.average[1]) * state.lag
        return average

    def in_blocks(self) -> InBlocks | None:
        # An average of iterates is one over all examples, and so is the plain form.
        return None if not self.pairwise and self.cached_sweeps == 0 else InBlocks(replace(self, averaging=False))  # type: ignore[arg-type]

    def dual_point(self, problem: Problem, state: BCFWState) -> DualPoint:
        if state.sets is not None:
            return DualPoint.of_active_set(active_set(state.sets))
        assert state.counts is not None
        return DualPoint.of_counts(state.counts.copy(), None if state.mass is None else state.mass.copy())
