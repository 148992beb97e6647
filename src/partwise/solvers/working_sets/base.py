"""What solvers that keep labellings for each example share: needs, options, starts, visits of working sets."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from partwise import _core
from partwise._core import WorkingSets
from partwise.problem import Problem
from partwise.problem.capabilities import BEST_LABELLINGS, PLAIN_L2, Capability
from partwise.problem.dual_points import ActiveSet
from partwise.problem.tasks import Plane
from partwise.solvers.engine.base import WarmStart, require_point
from partwise.solvers.engine.options import POSITIVE, at_least, option
from partwise.solvers.engine.point_conversions import expected_counts, mixtures
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats, Ints

#: Capabilities that solvers of max-margin losses need to ask for the best labelling of single examples.
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
    """Raise ValueError if more than one labelling is asked for and the problem's structure cannot list them."""
    if violators > 1 and Capability.K_BEST not in problem.capabilities():
        raise ValueError(f"violators={violators} needs k_best, which {problem.sums.facts.structure} does not have")


def start_sets(problem: Problem, warm_start: WarmStart | None, solver: str) -> KeptLabellings:
    """Return working sets to start from: the gold labellings, or for the squared link nothing (w = 0 in both cases).

    From a dual point in slots, slot scores or cliques each example gets one mixture.
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
    if one_mass:  # masses must be exactly 1: a difference would count as mass
        mass = active.used_slots(n)[3]
        owner = np.repeat(np.arange(n), np.diff(active.example_ptr))
        active = replace(active, coefficients=active.coefficients / mass[owner])
    return KeptLabellings.of(active, sizes)


def start_plane(problem: Problem, sets: KeptLabellings, warm_start: WarmStart | None) -> Plane:
    """Return (u, b) of the first working sets; without a warm start these are 0."""
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
