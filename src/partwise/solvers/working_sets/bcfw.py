"""Block-coordinate Frank-Wolfe on the dual of max-margin losses, with pairwise steps and cached labellings.

Problem. max D(alpha) at temperature 0 (hinge, squared hinge); l2 > 0. Example i keeps a working set of labellings y
with coefficients x_y >= 0 (the shares s_i p_i(y) of its dual block, s_i the mass; they sum to 1 for the hinge). With
psi_y = A_i'(g_i - counts(y)), w = sum_i omega_i / l2 sum_y x_y psi_y, and v_y = cost_y - <w, psi_y>. The plain form
(`BCFW.plain()`) keeps the expected counts s_i mu_i in slots alone.

Update. A visit to example i asks the oracle for y = argmax v, lets it join the working set (with `violators` > 1 also
the next best labellings, as long as D rises towards them), and makes up to `steps` steps there, by exact line search:

    hinge, pairwise        shift weight from a = argmin of v over x_a > 0 to y = argmax v: gamma <= x_a
    hinge, pairwise=False  x <- (1 - gamma) x + gamma e_y
    squared hinge          x_y <- max(0, x_y + (v_y - s_i / 2) / (omega_i / l2 |psi_y|^2 + 1/2)) where that gains most
    plain, hinge           s_i mu_i <- (1 - gamma) mu_i + gamma counts(y), gamma in [0, 1] the maximiser of D
    plain, squared hinge   s_i mu_i <- a s_i mu_i + b counts(y), the pair a, b >= 0 that maximises D (s_i is free)

The inner products of a working set's psi are kept; w follows at the visit's end. Labellings that had no weight for
`keep` passes are forgotten. A pass with the oracle is followed by up to `cached_sweeps` sweeps over these
without the oracle: they continue as long as the last sweep's gain of D for its cost is above the average since the pass
began. The cost is counted: numbers of feature rows read or written, and for the oracle slots and new labellings. Three
of four sweeps leave out examples whose gap over the labellings kept is below half of the mean. With a number for
`sweep_cost` every sweep visits all examples and costs that many passes. After a sweep average <- 4/5 average + 1/5 w.

The plain form has average_{k+1} = k/(k + 2) average_k + 2/(k + 2) w_{k+1} after k visits, kept as average = w - scale *
lag: with z = w - average the rule reads z_{k+1} = k/(k + 2) (z_k + w_{k+1} - w_k), so a visit adds its sparse change of
w, over `scale`, to `lag` and shrinks `scale` by k/(k + 2). Its b is averaged likewise.

A pass visits every example in the given order. With `gap_sampling` it draws examples by their share of the gap as last
seen (systematic sampling, a tenth of the draws uniform), and every tenth pass visits all of them. `passes` counts calls
of the oracle over n: sweeps over kept labellings are not counted.

Stopping rule. The smaller of P(w) and P(average) minus the larger of their duals <= tol |P|. The iterate's dual is
recomputed from the blocks; the average is certified by its plane (u, b).

Source. Lacoste-Julien et al. 2013, Algorithms 3 and 4 and their appendix on averaging ("FW-Struct" in Chang and Yih
2013): the plain form. Osokin et al. 2016: gap sampling, pairwise steps, caching. Shah et al. 2015: sweeps over cached
planes and when to end them, there by measured time, here by counted work, so that the same seed gives the same bits.
Shevade et al. 2011: the sequential dual method (`BCFW.sequential_dual()`), which Chang and Yih 2013 call closest to
theirs.

Departures. Sample weights; order "permuted" by default; the squared hinge, with coordinate steps or scaled corners;
several steps per visit; bounded memory, by merging an example's labellings into one mixture when all of them together
take more than `memory_mb`.
"""

from dataclasses import dataclass, replace
from math import isfinite
from typing import ClassVar, NamedTuple

import numpy as np

from partwise import _core
from partwise.problem import Certificate, DivergenceError, DualPoint, Problem
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.options import NOT_NEGATIVE, at_least, option
from partwise.solvers.online.base import BlockSolver, InBlocks, OnlineState, drawn_by_gap
from partwise.solvers.working_sets import base
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats, Ints

#: Share of the newest weights in the average, after each sweep.
NEWEST = 0.2
#: Sweeps of counted cost leave out examples below this share of the mean gap, except in one of so many sweeps.
LITTLE, EVERY = 0.5, 4
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


class Sweep(NamedTuple):
    """Sums over the visits of a sweep: oracle calls, numbers read, gain of D; bound: b after the sweep."""

    visits: int
    work: int
    dual_gain: float
    bound: float


@dataclass(frozen=True)
class BCFW(BlockSolver[BCFWState]):
    """Block-coordinate Frank-Wolfe on working sets with pairwise steps, for max-margin losses."""

    name = "bcfw"
    requires = base.LABELLING_NEEDS
    state_types = (BCFWState,)
    vectors: ClassVar[frozenset[str]] = frozenset({"weights", "lag"})
    rate = "sublinear"
    proof = "Lacoste-Julien et al. 2013, for the plain form: O(1/eps)"
    seldom = 15

    averaging: bool = option(True, "certify the weighted average of the iterates too, and return the better of the two")
    gap_sampling: bool = option(False, "visit examples with a large share of the gap more often")
    pairwise: bool = option(True, "shift weight from the worst labelling of an example to the best (hinge)")
    cached_sweeps: int = option(50, "most sweeps over the labellings kept after each pass with the oracle", at_least(0))
    sweep_cost: float | None = option(
        None,
        "cost of such a sweep in passes, for choosing how many to make (0: always all); by default it is counted, and "
        "sweeps leave out examples with little to gain",
        NOT_NEGATIVE,
    )
    violators: int = base.violators_option()
    steps: int = option(10, "most steps per visit", at_least(1))
    keep: int = option(3, "passes for which a labelling without weight is kept", at_least(0))
    memory_mb: float = base.memory_option()

    @classmethod
    def plain(cls, *, averaging: bool = True) -> "BCFW":
        """Return the form of 2013: one step per visit, towards the oracle's corner; only expected counts are kept."""
        return cls(averaging=averaging, pairwise=False, cached_sweeps=0)

    @classmethod
    def sequential_dual(cls, *, sweeps: int = 5) -> "BCFW":
        """Return the sequential dual method (SDM) of Shevade et al. 2011: solve one example's dual after the other.

        A pass with the oracle is followed by `sweeps` without (fewer if one gains nothing); their rules for when to
        alternate are not reproduced. No average, and no labelling is forgotten.
        """
        return cls(averaging=False, cached_sweeps=sweeps, sweep_cost=0.0, steps=1000, keep=2**31)

    @property
    def is_plain(self) -> bool:
        return not self.pairwise and self.cached_sweeps == 0

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> BCFWState:
        base.check_violators(self.violators, problem)
        if self.is_plain and problem.n_batches > 1:
            raise ValueError("bcfw: the plain form averages over visits of all examples and needs one batch")
        sets = base.start_sets(problem, warm_start, self.name)
        u, b = base.start_plane(problem, sets, warm_start)
        state = BCFWState(
            weights=problem.weights_of_plane(u),
            lag=np.zeros(problem.n_weights),
            average=np.array([0.0, 1.0, b]),
            gaps=np.zeros(problem.n_examples),
            sets=sets,
            rng=rng,
        )
        if self.is_plain:
            active, offsets = sets.point().active, problem.slot_offsets
            assert active is not None
            state.counts, state.mass = active.expected_counts(offsets)
            costs = problem.loss.cost_scale * problem.sums.slot_costs() * state.counts
            state.linear = np.diff(np.concatenate([[0.0], np.cumsum(costs)])[offsets])
            state.sets = None
        return state

    def step(self, problem: Problem, state: BCFWState) -> None:
        order = self._order(problem, state)
        state.epoch += 1
        self._pass(problem, state, order)
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

    def _pass(self, problem: Problem, state: BCFWState, order: Ints) -> None:
        """Make a pass with the oracle, and sweeps without the oracle as long as they are worth their cost."""
        if state.sets is None:
            (part,) = problem.sums.in_memory()
            names = ("weights", "counts", "mass", "linear", "lag", "average", "gaps")
            blocks = _core.BcfwState(part.native, **{name: getattr(state, name) for name in names})
            state.visits += _core.bcfw_epoch(blocks, order, _core.BcfwOptions(l2=problem.l2)).visits
            return
        sweep = self._sweep(problem, state, order, state.gaps, search=True)
        state.visits += sweep.visits
        measured = self.sweep_cost is None
        gain, cost = sweep.dual_gain, sweep.work if measured else sweep.visits / len(problem.active)
        gaps = state.gaps.copy()  # as the sweeps see them; before an example's first sweep, as the oracle did
        for k in range(self.cached_sweeps):
            order = self.draw_order(problem, state.rng)
            if measured and k % EVERY:
                order = order[gaps[order] > LITTLE * gaps[order].mean()]
            sweep = self._sweep(problem, state, order, gaps, search=False)
            state.sweeps += 1
            own = sweep.work if self.sweep_cost is None else self.sweep_cost
            gain, cost = gain + sweep.dual_gain, cost + own
            if sweep.dual_gain * cost <= gain * own:
                break
        state.dual = problem.dual_of_weights(state.weights, sweep.bound)

    def _sweep(self, problem: Problem, state: BCFWState, order: Ints, gaps: Floats, search: bool) -> Sweep:
        """Visit these examples, with the oracle or without, and let the average follow."""
        sets = state.sets
        assert sets is not None
        if self.averaging:
            state.lag -= state.weights  # -average
        visits, work, gain = 0, 0, 0.0
        bounds = np.zeros(len(sets.parts))  # b of each batch after its last visits
        options = {"search": search, "pairwise": self.pairwise, "steps": self.steps, "now": state.epoch}
        options |= {"keep": self.keep, "violators": self.violators}
        for number, found in base.visit_sets(problem, sets, state.weights, gaps, order, self.memory_mb, **options):
            visits, work, gain = visits + found.visits, work + found.work, gain + found.dual_gain
            bounds[number] = found.bound
            state.merged += found.merged
            state.raised += found.dual_gain
        sweep = Sweep(visits, work, gain, float(bounds.sum()))
        if self.averaging:
            state.lag += state.weights
            state.lag *= 1 - NEWEST
            state.average[0] += 1.0
            state.average[2] += NEWEST * (sweep.bound - state.average[2])
        return sweep

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

    def remark(self, problem: Problem, state: BCFWState) -> str:
        return "" if state.sets is None else state.sets.remark(state.sweeps, state.merged, self.memory_mb)

    def in_blocks(self) -> InBlocks | None:
        # An average of iterates is one over all examples.
        return None if self.is_plain else InBlocks(replace(self, averaging=False))  # type: ignore[arg-type]

    def dual_point(self, problem: Problem, state: BCFWState) -> DualPoint:
        if state.sets is not None:
            return state.sets.point()
        assert state.counts is not None
        return DualPoint.of_counts(state.counts.copy(), None if state.mass is None else state.mass.copy())
