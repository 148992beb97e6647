"""What solvers that keep labellings for each example share: starts, dual points, the limit on memory."""

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import WorkingSets
from ..dual import ActiveSet, DualPoint
from ..problem import Problem
from .base import WarmStart, start_point

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The text of the option `memory_mb`.
MEMORY_HELP = (
    "limit of the labellings kept, in MB (2^20 bytes); above it the labellings of each example that the oracle visits "
    "are merged into one mixture: the same weights and dual value, but slower progress"
)


def max_bytes(memory_mb: float) -> int:
    """The limit in bytes."""
    return int(memory_mb * 2**20)


def check_memory(memory_mb: float) -> None:
    """ValueError unless it is a limit."""
    if not (isfinite(memory_mb) and memory_mb > 0):
        raise ValueError(f"memory_mb must be a number above 0, got {memory_mb}")


def active_set(sets: WorkingSets) -> ActiveSet:
    """The labellings and their coefficients as a dual point's parts."""
    arrays = sets.to_arrays()
    del arrays["stamps"]
    return ActiveSet(**arrays)


def start_sets(problem: Problem, warm_start: WarmStart | None, solver: str) -> WorkingSets:
    """Working sets to start from: the gold labellings, or for the squared link nothing at all (w = 0 in both cases).

    Of a dual point in slots or slot scores each example's part becomes one mixture.
    """
    n = problem.n_examples
    if warm_start is None:
        if problem.loss.link != "identity":
            return WorkingSets(n)
        return _sets(ActiveSet(np.arange(n + 1), *problem.gold, np.ones(n)))
    point = start_point(problem, warm_start, ("slots", "gibbs", "active"))
    if point is None:
        raise ValueError(
            f"{solver} starts from expected counts, slot scores or an active set (a dual point of kind 'slots', "
            "'gibbs' or 'active'); weights alone do not give them"
        )
    active = point.active if point.active is not None else _mixtures(problem, point)
    if len(active.example_ptr) != n + 1:
        raise ValueError(f"warm start: an active set of {len(active.example_ptr) - 1} examples, not {n}")
    mass = active.expected_counts(problem.structure.slot_offsets())[1]
    if problem.loss.link == "identity" and not np.allclose(mass, 1.0, rtol=0.0, atol=1e-9):
        raise ValueError("warm start: masses that are not 1 are a dual point of another loss")
    return _sets(active)


def _sets(active: ActiveSet) -> WorkingSets:
    arrays: dict[str, Any] = dict(vars(active))
    return WorkingSets.from_arrays(**arrays, stamps=np.zeros(len(active.coefficients), dtype=np.int64))


def _mixtures(problem: Problem, point: DualPoint) -> ActiveSet:
    """One mixture an example from expected counts, or from those of slot scores."""
    n, offsets = problem.n_examples, problem.structure.slot_offsets()
    if point.scores is not None:
        counts, mass = problem.objective.marginals_of_scores(point.scores, problem.n_jobs)[0], np.ones(n)
    else:
        counts = np.asarray(point.counts, dtype=np.float64)
        mass = np.ones(n) if point.mass is None else np.asarray(point.mass, dtype=np.float64)
    if counts.shape != (int(offsets[-1]),) or mass.shape != (n,):
        raise ValueError(f"warm start: {counts.size} slots of {mass.size} examples, not {offsets[-1]} of {n}")
    there = mass > 0
    used = np.flatnonzero(counts)
    owner = np.searchsorted(offsets, used, side="right") - 1  # example of each slot
    used, owner = used[there[owner]], owner[there[owner]]
    sizes = np.bincount(owner, minlength=n)[there]
    return ActiveSet(
        _pointers(there),
        _pointers(sizes),
        used - offsets[owner],
        counts[used] / mass[owner],
        mass[there],
    )


def _pointers(sizes: NDArray[Any]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
