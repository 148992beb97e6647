"""Dual coordinate descent for the squared hinge (DCD-SSVM).

Problem. max D(alpha) of `problem` at temperature 0 with the squared link; l2 > 0. Example i keeps a working set W_i of
labellings y with coefficients x_y > 0 (the shares s_i p_i(y) of its dual block). With psi_y = A_i'(g_i - counts(y)),

    s_i = sum of x_y over W_i,   D = sum_i omega_i [sum_y x_y cost_y - s_i^2 / 4] - l2/2 |w|^2,
    w = sum_i omega_i / l2 sum_y x_y psi_y

Update. On one labelling, by exact maximisation over its coefficient,

    x_y <- max(0, x_y + (cost_y - <w, psi_y> - s_i / 2) / (omega_i / l2 |psi_y|^2 + 1/2))

`update(i)` does this for all of W_i, the newest first and the others in random order, and forgets labellings whose
coefficient became 0. An epoch is

    `rounds` times: update(i) for all examples, in random order
    for all examples, in random order: ask the oracle for y = argmax cost_y - <w, psi_y>; if its violation
        cost_y - <w, psi_y> - s_i / 2 is at least delta, y joins W_i as the newest; update(i)

Only the second half asks the oracle, and only it counts as a pass. With `rounds` None the first half comes last, and
goes on as long as its last sweep's gain of D for the numbers it read is above the average since the pass began. With
`violators` > 1 the k best labellings join that violate by delta or more, the best one as the newest.

Stopping rule. gap = P(w) - D <= tol |P|, recomputed from the working sets; checked when it may be near, at least
every fifth pass (after pass 100: every twentieth part of the passes made).

Source. Chang and Yih 2013: Algorithms 1 and 3; dual (4), weights (6). There C_i = omega_i / l2, alpha = C_i x, and (4)
is -D / l2; it never increases. Departures: sample weights; several violators (the paper's
future work); an answer of the oracle that is in W_i already counts as the newest; the
memory of working sets is bounded (`memory_mb`), by merging an example's labellings into one mixture when all of them
together take more: w and D stay as they are, and the mixture remains as one labelling with fractional counts.
"""

from abc import ABC
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar, NamedTuple

import numpy as np

from partwise import _core
from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import DualPoint
from partwise.problem.result import DivergenceError
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.block_steps import BlockSolver
from partwise.solvers.engine.options import NOT_NEGATIVE, POSITIVE, Values, at_least, option
from partwise.solvers.engine.registry import register
from partwise.solvers.online.base import OnlineState
from partwise.solvers.working_sets.base import (
    MEMORY_HELP,
    VIOLATORS_HELP,
    active_set,
    check_violators,
    start_sets,
)
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats

#: Most sweeps after a pass with the oracle, where their number is chosen.
MOST_ROUNDS = 50


@dataclass(kw_only=True)
class DCDState(OnlineState):
    """weights: (d,). sets: the working sets. rounds: sweeps over them without the oracle. merged: sets merged."""

    weights: Floats
    sets: KeptLabellings
    rounds: int = 0
    merged: int = 0


class Visited(NamedTuple):
    """After a pass: the gap as its visits saw it, the largest violation an update met, the gain of D, numbers read."""

    gap_estimate: float = 0.0
    violation: float = 0.0
    dual_gain: float = 0.0
    work: int = 0


@dataclass(frozen=True)
class CoordinateDescent(BlockSolver[DCDState], ABC):
    """What dcd, dcd-light and cpd share: all but the order in which they ask the oracle and update."""

    requires: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.TEMPERATURE_0,
            Capability.SQUARED_LINK,
            Capability.MAX_ORACLE,
            Capability.EXPLICIT_WEIGHTS,
            Capability.L2,
            Capability.ALL_PENALISED,
            Capability.SMOOTH_PENALTY,
            Capability.IN_MEMORY,
        }
    )
    state_types: ClassVar[tuple[type[OnlineState], ...]] = (DCDState,)
    rate: ClassVar[str] = "sublinear"
    proof: ClassVar[str] = (
        "Chang and Yih 2013, Theorem 3: O(1/eps^2 log 1/eps); O(log 1/eps) once working sets stay, Theorem 2"
    )
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000

    delta: float = option(1e-6, "least violation for which a labelling joins the working set", NOT_NEGATIVE)
    violators: int = option(1, VIOLATORS_HELP, at_least(1))
    memory_mb: float = option(1024.0, MEMORY_HELP, POSITIVE)

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> DCDState:
        check_violators(self.violators, problem)
        sets = start_sets(problem, warm_start, self.name)
        weights = problem.weights_of_plane(np.zeros(problem.n_weights))
        if warm_start is not None:
            weights = problem.weights_from_dual(DualPoint.of_active_set(active_set(sets)))
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
            seen = Visited(
                seen.gap_estimate + report.gap_estimate,
                max(seen.violation, report.violation),
                seen.dual_gain + report.dual_gain,
                seen.work + report.work,
            )
        state.rounds += not search
        return seen

    def certificate(self, problem: Problem, state: DCDState) -> Certified:
        point = self.dual_point(problem, state)
        return Certified(*problem.certify(point), point)

    def dual_point(self, problem: Problem, state: DCDState) -> DualPoint:
        return DualPoint.of_active_set(active_set(state.sets))

    def weights(self, problem: Problem, state: DCDState) -> Floats:
        return state.weights.copy()

    def remark(self, problem: Problem, state: DCDState) -> str:
        kept = f"{state.sets.num_atoms} labellings kept in {state.sets.bytes / 2**20:.3g} MB"
        merged = f", {state.merged} times merged to stay within memory_mb={self.memory_mb:g}" if state.merged else ""
        return f"{state.rounds} rounds without the oracle, {kept}{merged}"


@register(place=21)
@dataclass(frozen=True)
class DCD(CoordinateDescent):
    """DCD-SSVM (see the module's docstring)."""

    name: ClassVar[str] = "dcd"

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
