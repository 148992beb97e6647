"""What solvers that keep labellings for each example share: starts, dual points, the limit on memory."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from .._core import WorkingSets
from ..arrays import pointers
from ..capabilities import Capability
from ..dual import ActiveSet, DualPoint
from ..problem import Problem
from .base import WarmStart, start_point
from .conversions import expected_counts
from .kept_labellings import KeptLabellings

#: The text of the option `memory_mb`.
MEMORY_HELP = (
    "limit of the labellings kept and their inner products, in MB (2^20 bytes); above it the labellings of each "
    "example that the oracle visits are merged into one mixture: the same weights and dual value, but slower progress. "
    "Feature rows of the slots in which labellings differ from gold are kept besides"
)

#: The text of the option `violators`.
VIOLATORS_HELP = "labellings that join an example's set after a call of the oracle, at most (above 1: by k_best)"


def check_violators(violators: int, problem: Problem | None = None) -> None:
    """ValueError unless it is a number of labellings that the problem's structure can list."""
    if violators < 1:
        raise ValueError(f"violators must be at least 1, got {violators}")
    if problem is not None and violators > 1 and Capability.K_BEST not in problem.capabilities():
        raise ValueError(f"violators={violators} needs k_best, which {problem.facts.structure} does not have")


def check_memory(memory_mb: float) -> None:
    """ValueError unless it is a limit."""
    if not (isfinite(memory_mb) and memory_mb > 0):
        raise ValueError(f"memory_mb must be a number above 0, got {memory_mb}")


def active_set(sets: KeptLabellings) -> ActiveSet:
    """The labellings and their coefficients as a dual point's parts."""
    arrays = sets.to_arrays()
    del arrays["stamps"]
    return ActiveSet(**arrays)


def check_labellings(problem: Problem, active: ActiveSet) -> None:
    """ValueError if a labelling is none of the problem's; mixtures, with fractional counts, are not looked at."""
    for part in problem.in_memory():
        for i in range(part.examples.start, part.examples.stop):
            for k in range(active.example_ptr[i], active.example_ptr[i + 1]):
                used = slice(active.labelling_ptr[k], active.labelling_ptr[k + 1])
                counts = active.counts[used]
                if (counts == np.floor(counts)).all():
                    part.structure.check_labelling(i - part.examples.start, active.slots[used], counts)


def start_sets(problem: Problem, warm_start: WarmStart | None, solver: str) -> KeptLabellings:
    """Working sets to start from: the gold labellings, or for the squared link nothing at all (w = 0 in both cases).

    Of a dual point in slots or slot scores each example's part becomes one mixture.
    """
    n, one_mass = problem.n_examples, Capability.IDENTITY_LINK in problem.capabilities()
    sizes = [part.examples.stop - part.examples.start for part in problem.in_memory()]
    if warm_start is None:
        if not one_mass:
            return KeptLabellings([WorkingSets(size) for size in sizes])
        return _sets(sizes, ActiveSet(np.arange(n + 1), *problem.gold, np.ones(n)))
    point = start_point(problem, warm_start, ("slots", "gibbs", "active", "cliques"))
    if point is None:
        raise ValueError(
            f"{solver} starts from expected counts, slot scores, clique marginals or an active set (a dual point of "
            "kind 'slots', 'gibbs', 'cliques' or 'active'); weights alone do not give them"
        )
    active = point.active if point.active is not None else _mixtures(problem, point)
    if len(active.example_ptr) != n + 1:
        raise ValueError(f"warm start: an active set of {len(active.example_ptr) - 1} examples, not {n}")
    mass = active.expected_counts(problem.slot_offsets)[1]
    if one_mass and not np.allclose(mass, 1.0, rtol=0.0, atol=1e-9):
        raise ValueError("warm start: masses that are not 1 are a dual point of another loss")
    return _sets(sizes, active)


def _sets(sizes: Sequence[int], active: ActiveSet) -> KeptLabellings:
    arrays: dict[str, Any] = dict(vars(active))
    return KeptLabellings.from_arrays(sizes, **arrays, stamps=np.zeros(len(active.coefficients), dtype=np.int64))


def _mixtures(problem: Problem, point: DualPoint) -> ActiveSet:
    """One mixture per example, from expected counts."""
    n, offsets = problem.n_examples, problem.slot_offsets
    counts, mass = expected_counts(problem, point)
    there = mass > 0
    used = np.flatnonzero(counts)
    owner = np.searchsorted(offsets, used, side="right") - 1  # example of each slot
    used, owner = used[there[owner]], owner[there[owner]]
    sizes = np.bincount(owner, minlength=n)[there]
    return ActiveSet(
        pointers(there),
        pointers(sizes),
        used - offsets[owner],
        counts[used] / mass[owner],
        mass[there],
    )
