"""Problem. max D(alpha) at temperature 0 with the squared link; l2 > 0. Example i keeps a working set W_i of labellings
y with coefficients x_y > 0 (the shares s_i p_i(y) of its dual block). With psi_y = A_i'(g_i - counts(y)),

    s_i = sum of x_y over W_i,   D = sum_i omega_i [sum_y x_y cost_y - s_i^2 / 4] - l2/2 |w|^2,
    w = sum_i omega_i / l2 sum_y x_y psi_y

Update. On one labelling, by exact maximisation over its coefficient,

    x_y <- max(0, x_y + (cost_y - <w, psi_y> - s_i / 2) / (omega_i / l2 |psi_y|^2 + 1/2))

`update(i)` does this for all of W_i, the newest first and the others in random order, and forgets labellings whose
coefficient became 0. A search asks the oracle for y = argmax cost_y - <w, psi_y>; if its violation
cost_y - <w, psi_y> - s_i / 2 is at least delta, y joins W_i as the newest. Only searches count as passes. An epoch is

    dcd        `rounds` sweeps of update(i) over all examples in random order; then for all of them, in random order,
               a search and update(i). With `rounds` None the sweeps come last, and are repeated as long as the last
               one's gain of D for the numbers it read is above the average since the pass began
    dcd-light  for all examples, in random order, a search and update(i)
    cpd        a search for every example at the same weights, then sweeps of update(i) until no coefficient has a
               projected gradient above inner_tol, or `max_rounds` sweeps were made

With `violators` > 1 those of the k best labellings join that violate by delta or more, the best one as the newest.

Stopping rule. gap = P(w) - D <= tol |P|, recomputed from the working sets.

Source. Chang and Yih 2013: Algorithms 1 and 3 (`dcd`) or 2 (`dcd-light`); dual (4), weights (6). There
C_i = omega_i / l2, alpha = C_i x, and (4) is -D / l2; it never increases. `cpd` is their rival (section 4.4.1), after
Chang et al. 2010.

Departures. Sample weights; several violators (the paper's future work); an answer of the oracle that is in W_i already
counts as the newest; memory is bounded (`memory_mb`): when all labellings take more, an example's are merged into one
mixture, which changes neither w nor D. `cpd` has a limit on its sweeps: fitting the first cutting planes, which are
bad, would take too long.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from partwise import _core
from partwise.problem import Capability, DivergenceError, DualPoint, Problem
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.options import NOT_NEGATIVE, Values, at_least, option
from partwise.solvers.online.base import BlockSolver, OnlineState
from partwise.solvers.working_sets import base
from partwise.solvers.working_sets.kept_labellings import KeptLabellings

#: Most sweeps after a pass with the oracle, where their number is chosen.
MOST_ROUNDS = 50


@dataclass(kw_only=True)
class DCDState(OnlineState):
    """sets: the working sets. rounds: sweeps over them without the oracle. merged: sets merged."""

    sets: KeptLabellings
    rounds: int = 0
    merged: int = 0


@dataclass
class Visited:
    """Totals of a pass: the gap seen by its visits, the largest violation of an update, the gain of D, numbers read."""

    gap_estimate: float = 0.0
    violation: float = 0.0
    dual_gain: float = 0.0
    work: int = 0


@dataclass(frozen=True)
class CoordinateDescent(BlockSolver[DCDState]):
    """The base of dual coordinate descent for the squared hinge: everything but the order of searches and updates."""

    requires = base.LABELLING_NEEDS | {Capability.SQUARED_LINK}
    state_types = (DCDState,)
    rate = "sublinear"
    proof = "Chang and Yih 2013, Theorem 3: O(1/eps^2 log 1/eps); O(log 1/eps) once working sets stay, Theorem 2"

    delta: float = option(1e-6, "least violation for which a labelling joins the working set", NOT_NEGATIVE)
    violators: int = base.violators_option()
    memory_mb: float = base.memory_option()

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> DCDState:
        base.check_violators(self.violators, problem)
        sets = base.start_sets(problem, warm_start, self.name)
        weights = problem.weights_of_plane(base.start_plane(problem, sets, warm_start)[0])
        return DCDState(weights=weights, sets=sets, rng=rng)

    def visit(self, problem: Problem, state: DCDState, *, search: bool = True, update: bool = True) -> Visited:
        """Visit all examples in a new order: ask the oracle, update the working sets, or both."""
        seen = Visited()
        limited = state.sets.limited(self.memory_mb)
        for part, order in problem.sums.rounds(self.draw_order(problem, state.rng)):
            sets, limit = limited[part.number]
            options = _core.DcdOptions(
                l2=problem.l2,
                search=search,
                update=update,
                delta=self.delta,
                seed=int(state.rng.integers(2**63)),
                max_bytes=limit,
                violators=self.violators,
            )
            report = _core.dcd_epoch(_core.DcdState(part.native, weights=state.weights, sets=sets), order, options)
            if not isfinite(report.dual_gain):
                raise DivergenceError(f"{self.name}: the dual rose by {report.dual_gain} after {state.epoch} epochs")
            state.visits += report.visits
            state.merged += report.merged
            state.raised += report.dual_gain
            seen.gap_estimate += report.gap_estimate
            seen.violation = max(seen.violation, report.violation)
            seen.dual_gain += report.dual_gain
            seen.work += report.work
        state.rounds += not search
        return seen

    def dual_point(self, problem: Problem, state: DCDState) -> DualPoint:
        return state.sets.point()

    def remark(self, problem: Problem, state: DCDState) -> str:
        return state.sets.remark(state.rounds, state.merged, self.memory_mb)


@dataclass(frozen=True)
class DCD(CoordinateDescent):
    """Dual coordinate descent for the squared hinge (DCD-SSVM)."""

    name = "dcd"

    rounds: int | None = option(
        5,
        "sweeps over the working sets before each pass with the oracle; None: after it, while the last one gained more "
        "for its counted work than pass and sweeps did on average",
        Values("at least 0", lambda rounds: rounds is None or rounds >= 0),
    )

    def step(self, problem: Problem, state: DCDState) -> None:
        for _ in range(self.rounds or 0):
            self.visit(problem, state, search=False)
        seen = self.visit(problem, state)
        state.gain = seen.gap_estimate
        state.epoch += 1
        if self.rounds is not None:
            return
        gain, work = seen.dual_gain, seen.work
        for _ in range(MOST_ROUNDS):
            last = self.visit(problem, state, search=False)
            gain, work = gain + last.dual_gain, work + last.work
            if last.dual_gain * work <= gain * last.work:
                break


@dataclass(frozen=True)
class DCDLight(CoordinateDescent):
    """Dual coordinate descent for the squared hinge, one update per call of the oracle (DCD-Light)."""

    name = "dcd-light"

    def step(self, problem: Problem, state: DCDState) -> None:
        state.gain = self.visit(problem, state).gap_estimate
        state.epoch += 1


@dataclass(frozen=True)
class CPD(CoordinateDescent):
    """Cutting planes for the squared hinge with dual coordinate descent inside (CPD)."""

    name = "cpd"

    inner_tol: float = option(
        0.1, "largest projected gradient at which the working sets' problem counts as solved", NOT_NEGATIVE
    )
    max_rounds: int = option(20, "most sweeps over the working sets in an epoch", at_least(1))

    def step(self, problem: Problem, state: DCDState) -> None:
        state.gain = self.visit(problem, state, update=False).gap_estimate
        for _ in range(self.max_rounds):
            if self.visit(problem, state, search=False).violation <= self.inner_tol:
                break
        state.epoch += 1
