"""What solvers that keep labellings for each example share: starts, dual points, the limit on memory."""

from dataclasses import replace

import numpy as np

from partwise._core import WorkingSets
from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import ActiveSet
from partwise.solvers.engine.base import WarmStart, start_point
from partwise.solvers.engine.point_conversions import expected_counts, mixtures
from partwise.solvers.working_sets.kept_labellings import KeptLabellings

#: The text of the option `memory_mb`.
MEMORY_HELP = (
    "limit of the labellings kept and their inner products, in MB (2^20 bytes); above it the labellings of each "
    "example that the oracle visits are merged into one mixture: the same weights and dual value, but slower progress. "
    "Feature rows of the slots in which labellings differ from gold are kept besides"
)

#: The text of the option `violators`.
VIOLATORS_HELP = "labellings that join an example's set after a call of the oracle, at most (above 1: by k_best)"


def check_violators(violators: int, problem: Problem) -> None:
    """ValueError if more than one labelling is asked for and the problem's structure cannot list them."""
    if violators > 1 and Capability.K_BEST not in problem.capabilities():
        raise ValueError(f"violators={violators} needs k_best, which {problem.sums.facts.structure} does not have")


def active_set(sets: KeptLabellings) -> ActiveSet:
    """The labellings and their coefficients as a dual point's parts."""
    arrays = sets.to_arrays()
    del arrays["stamps"]
    return ActiveSet(**arrays)


def start_sets(problem: Problem, warm_start: WarmStart | None, solver: str) -> KeptLabellings:
    """Working sets to start from: the gold labellings, or for the squared link nothing at all (w = 0 in both cases).

    Of a dual point in slots or slot scores each example's part becomes one mixture.
    """
    n, one_mass = problem.n_examples, Capability.IDENTITY_LINK in problem.capabilities()
    sizes = [part.examples.stop - part.examples.start for part in problem.sums.in_memory()]
    if warm_start is None:
        if not one_mass:
            return KeptLabellings([WorkingSets(size) for size in sizes])
        return KeptLabellings.of(ActiveSet(np.arange(n + 1), *problem.gold, np.ones(n)), sizes)
    point = start_point(problem, warm_start, ("slots", "gibbs", "active", "cliques"))
    if point is None:
        raise ValueError(
            f"{solver} starts from expected counts, slot scores, clique marginals or an active set (a dual point of "
            "kind 'slots', 'gibbs', 'cliques' or 'active'); weights alone do not give them"
        )
    active = point.active
    if active is None:
        active = mixtures(problem, *expected_counts(problem, point))
    if one_mass:  # what the masses lack or have too much would count as mass
        mass = active.used_slots(n)[3]
        owner = np.repeat(np.arange(n), np.diff(active.example_ptr))
        active = replace(active, coefficients=active.coefficients / mass[owner])
    return KeptLabellings.of(active, sizes)
