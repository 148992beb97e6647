"""Block-coordinate Frank-Wolfe on the dual of max-margin losses, with pairwise steps and cached labellings.

Problem. max D(alpha) at temperature 0 (hinge, squared hinge); l2 > 0. Example i keeps a working set of labellings y
with coefficients x_y >= 0 (the shares s_i p_i(y) of its dual block; they sum to 1 for the hinge). With
psi_y = A_i'(g_i - counts(y)), w = sum_i omega_i / l2 sum_y x_y psi_y, and v_y = cost_y - <w, psi_y>.

Update. A visit to example i asks the oracle for y = argmax v, lets it join the working set (with `violators` > 1 also
the next best labellings, as long as D rises towards them), and makes up to `steps` steps there, by exact line search:

    hinge, pairwise        shift weight from a = argmin of v over x_a > 0 to y = argmax v: gamma <= x_a
    hinge, pairwise=False  x <- (1 - gamma) x + gamma e_y
    squared hinge          x_y <- max(0, x_y + (v_y - s_i / 2) / (omega_i / l2 |psi_y|^2 + 1/2)) where that gains most

The inner products of a working set's psi are kept; w follows at the visit's end. Labellings that had no weight for
`keep` passes are forgotten. A pass with the oracle is followed by up to `cached_sweeps` sweeps over these
without the oracle: they continue as long as the last sweep's gain of D for its cost is above the average since the pass
began. The cost is counted: numbers of feature rows read or written, and for the oracle slots and new labellings. Three
of four sweeps leave out examples whose gap over the labellings kept is below half of the mean. With a number for
`sweep_cost` every sweep visits all examples and costs that many passes. After a sweep average <- 4/5 average + 1/5 w.

Order, averages of the iterates and their certificate are those of `bcfw_plain`; with pairwise=False and
cached_sweeps=0 everything is. `passes` counts calls of the oracle over n: sweeps over kept labellings are not counted.

Stopping rule. That of `bcfw_plain`.

Source. Osokin et al. 2016: gap sampling, pairwise steps, caching. Shah et al. 2015: sweeps over cached planes and when
to end them, there by measured time, here by counted work, so that the same seed gives the same bits. Shevade et al.
2011: the sequential dual method (`BCFW.sequential_dual()`), which Chang and Yih 2013 call closest to theirs.

Departures. Those of `bcfw_plain`; coordinate steps for the squared hinge; several steps per visit; bounded memory, by
merging an example's labellings into one mixture when all of them together take more than `memory_mb`.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from partwise.problem import DualPoint, Problem
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.options import NOT_NEGATIVE, at_least, option
from partwise.solvers.online.base import InBlocks
from partwise.solvers.working_sets.base import check_violators, memory_option, violators_option, visit_sets
from partwise.solvers.working_sets.bcfw_plain import BCFWState, PlainBCFW
from partwise.support.arrays import Floats, Ints

#: Share of the newest weights in the average, after each sweep.
NEWEST = 0.2
#: Sweeps of counted cost leave out examples below this share of the mean gap, except in one of so many sweeps.
LITTLE, EVERY = 0.5, 4


class Sweep(NamedTuple):
    """Sums over the visits of a sweep: oracle calls, numbers read, gain of D; bound: b after the sweep."""

    visits: int
    work: int
    dual_gain: float
    bound: float


@dataclass(frozen=True)
class BCFW(PlainBCFW):
    """Block-coordinate Frank-Wolfe on working sets with pairwise steps, for max-margin losses."""

    pairwise: bool = option(True, "shift weight from the worst labelling of an example to the best (hinge)")
    cached_sweeps: int = option(50, "most sweeps over the labellings kept after each pass with the oracle", at_least(0))
    sweep_cost: float | None = option(
        None,
        "cost of such a sweep in passes, for choosing how many to make (0: always all); by default it is counted, and "
        "sweeps leave out examples with little to gain",
        NOT_NEGATIVE,
    )
    violators: int = violators_option()
    steps: int = option(10, "most steps per visit", at_least(1))
    keep: int = option(3, "passes for which a labelling without weight is kept", at_least(0))
    memory_mb: float = memory_option()

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
        check_violators(self.violators, problem)
        if self.is_plain:
            return super().init_state(problem, rng, warm_start)
        return self.first_state(problem, rng, warm_start)

    def make_pass(self, problem: Problem, state: BCFWState, order: Ints) -> None:
        """Make a pass with the oracle, and sweeps without the oracle as long as they are worth their cost."""
        if state.sets is None:
            super().make_pass(problem, state, order)
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
        assert state.sets is not None
        if self.averaging:
            state.lag -= state.weights  # -average
        visits, work, gain = 0, 0, 0.0
        bounds = np.zeros(len(state.sets.parts))  # b of each batch after its last visits
        options = {"search": search, "pairwise": self.pairwise, "steps": self.steps, "now": state.epoch}
        options |= {"keep": self.keep, "violators": self.violators}
        for number, found in visit_sets(problem, state.sets, state.weights, gaps, order, self.memory_mb, **options):
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

    def remark(self, problem: Problem, state: BCFWState) -> str:
        return "" if state.sets is None else state.sets.remark(state.sweeps, state.merged, self.memory_mb)

    def in_blocks(self) -> InBlocks | None:
        # An average of iterates is one over all examples.
        return None if self.is_plain else InBlocks(replace(self, averaging=False))  # type: ignore[arg-type]

    def dual_point(self, problem: Problem, state: BCFWState) -> DualPoint:
        return super().dual_point(problem, state) if state.sets is None else state.sets.point()
