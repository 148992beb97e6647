"""What solvers that keep labellings for each example share: needs, options, starts, dual coordinate descent."""

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from partwise import _core
from partwise._core import WorkingSets
from partwise.problem import DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import BEST_LABELLINGS, PLAIN_L2, Capability
from partwise.problem.dual_points import ActiveSet
from partwise.problem.tasks import Plane
from partwise.solvers.engine.base import WarmStart, require_point
from partwise.solvers.engine.options import NOT_NEGATIVE, POSITIVE, at_least, option
from partwise.solvers.engine.point_conversions import expected_counts, mixtures
from partwise.solvers.online.base import BlockSolver, OnlineState
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats, Ints

#: What solvers of max-margin losses need that ask for the best labelling of single examples.
LABELLING_NEEDS = PLAIN_L2 | BEST_LABELLINGS | {Capability.TEMPERATURE_0}
_MEMORY_HELP = (
    "limit of the labellings kept and their inner products, in MB (2^20 bytes); above it the labellings of each "
    "example that the oracle visits are merged into one mixture: the same weights and dual value, but slower progress. "
    "Feature rows of the slots in which labellings differ from gold are kept besides"
)


def memory_option(help: str = "") -> float:
    """Declare the option that limits the memory of the labellings kept."""
    return option(1024.0, help + _MEMORY_HELP, POSITIVE)


def violators_option() -> int:
    """Declare the option of how many labellings the oracle is asked for."""
    help = "labellings that join an example's set after a call of the oracle, at most (above 1: by k_best)"
    return option(1, help, at_least(1))


def check_violators(violators: int, problem: Problem) -> None:
    """ValueError if more than one labelling is asked for and the problem's structure cannot list them."""
    if violators > 1 and Capability.K_BEST not in problem.capabilities():
        raise ValueError(f"violators={violators} needs k_best, which {problem.sums.facts.structure} does not have")


def start_sets(problem: Problem, warm_start: WarmStart | None, solver: str) -> KeptLabellings:
    """Return working sets to start from: the gold labellings, or for the squared link nothing (w = 0 in both cases).

    Of a dual point in slots, slot scores or cliques each example's part becomes one mixture.
    """
    n, one_mass = problem.n_examples, Capability.IDENTITY_LINK in problem.capabilities()
    sizes = [part.examples.stop - part.examples.start for part in problem.sums.in_memory()]
    if warm_start is None:
        if not one_mass:
            return KeptLabellings([WorkingSets(size) for size in sizes])
        return KeptLabellings.of(ActiveSet(np.arange(n + 1), *problem.gold, np.ones(n)), sizes)
    point = require_point(problem, warm_start, ("slots", "gibbs", "active", "cliques"), solver)
    active = point.active
    if active is None:
        active = mixtures(problem, *expected_counts(problem, point))
    if one_mass:  # masses must be exactly 1: what they are off by would count as mass
        mass = active.used_slots(n)[3]
        owner = np.repeat(np.arange(n), np.diff(active.example_ptr))
        active = replace(active, coefficients=active.coefficients / mass[owner])
    return KeptLabellings.of(active, sizes)


def start_plane(problem: Problem, sets: KeptLabellings, warm_start: WarmStart | None) -> Plane:
    """Return (u, b) of the working sets that a run starts from; without a warm start these are 0."""
    return (np.zeros(problem.n_weights), 0.0) if warm_start is None else problem.dual_terms(sets.point())


def visit_sets(
    problem: Problem, sets: KeptLabellings, weights: Floats, gaps: Floats, order: Ints, memory_mb: float, **options: Any
) -> Iterator[tuple[int, _core.BcfwSetReport]]:
    """Make steps of `bcfw` on the working sets of these examples; yield each visited batch's number and report."""
    limited = sets.limited(memory_mb)
    for part, own in problem.sums.rounds(order):
        kept, limit = limited[part.number]
        blocks = _core.BcfwSetState(part.native, weights=weights, sets=kept, gaps=gaps[part.examples])
        chosen = _core.BcfwSetOptions(l2=problem.l2, max_bytes=limit, **options)
        yield part.number, _core.bcfw_set_epoch(blocks, own, chosen)


@dataclass(kw_only=True)
class DCDState(OnlineState):
    """sets: the working sets. rounds: sweeps over them without the oracle. merged: sets merged."""

    sets: KeptLabellings
    rounds: int = 0
    merged: int = 0


class Visited(NamedTuple):
    """After a pass: the gap as its visits saw it, the largest violation an update met, the gain of D, numbers read."""

    gap_estimate: float
    violation: float
    dual_gain: float
    work: int


@dataclass(frozen=True)
class CoordinateDescent(BlockSolver[DCDState], ABC):
    """Dual coordinate descent for the squared hinge, but for the order in which oracle and updates are visited.

    The solvers `dcd`, `dcd-light` and `cpd` give that order in their `step`; problem and update are described in `dcd`.
    """

    requires = LABELLING_NEEDS | {Capability.SQUARED_LINK}
    state_types = (DCDState,)
    rate = "sublinear"
    proof = "Chang and Yih 2013, Theorem 3: O(1/eps^2 log 1/eps); O(log 1/eps) once working sets stay, Theorem 2"

    delta: float = option(1e-6, "least violation for which a labelling joins the working set", NOT_NEGATIVE)
    violators: int = violators_option()
    memory_mb: float = memory_option()

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> DCDState:
        check_violators(self.violators, problem)
        sets = start_sets(problem, warm_start, self.name)
        weights = problem.weights_of_plane(start_plane(problem, sets, warm_start)[0])
        return DCDState(weights=weights, sets=sets, rng=rng)

    def visit(self, problem: Problem, state: DCDState, *, search: bool = True, update: bool = True) -> Visited:
        """Visit all examples in a new order: ask the oracle, update the working sets, or both."""
        seen = Visited(0.0, 0.0, 0.0, 0)
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

    def dual_point(self, problem: Problem, state: DCDState) -> DualPoint:
        return state.sets.point()

    def remark(self, problem: Problem, state: DCDState) -> str:
        return state.sets.remark(state.rounds, state.merged, self.memory_mb)
