"""What can be asked of one batch: functions of its sums, of weights, and of the batch's own block of a dual point.

A task has no state: the same arguments give the same answer wherever the batch is, so that it can be sent there. Its
name, the batch's reference, weights and blocks are all that travels, and partial sums or the batch's new block come
back. The caller adds the partial sums up in the order of the batches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from partwise import _core
from partwise._core import (
    FeatureMap,
    Hessian,
    Objective,
    Structure,
    WorkingSets,
    all_scores,
    check_clique_marginals,
    eg_batch_step,
    eg_primal_point,
    gold_features,
    match_counts,
    rounding_sums,
    slot_curvatures,
)
from partwise.problem.batch import Gold, LabelledBatch
from partwise.problem.capabilities import Capability, capabilities
from partwise.problem.losses import Loss
from partwise.structures.capabilities import is_compiled, structure_capabilities
from partwise.support.arrays import Floats, Ints

#: Examples whose features are read to tell a batch's capabilities.
SAMPLE = 20
#: How far below those of gold parts the scores of wrong parts lie where a search for scores begins.
NEAR_GOLD = 11.0

Task = TypeVar("Task", bound=Callable[..., Any])

#: All tasks by name.
TASKS: dict[str, Callable[..., Any]] = {}


def task(function: Task) -> Task:
    """Make it a task: a function of (sums, n_jobs, *shared, *block)."""
    TASKS[function.__name__] = function
    return function


def register_task(function: Task) -> Task:
    """Make a function a task, for `Problem.ask`: the decorator of functions that are summed over batches.

    The function is called as ``function(sums, n_jobs, *shared)`` for each batch, where `sums` has the batch's
    structure, features, gold labellings, sample weights and loss (`BatchSums`), and n_jobs threads may be used. It has
    no state, as it may run in another process; there its module must be importable. A function that is written again,
    as in a notebook's cell, replaces the one before.

    Raises
    ------
    ValueError
        If there is another task of this name.
    TypeError
        If it is not a function.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"register_task takes a function, got {function!r}")
    known = TASKS.get(function.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
        raise ValueError(f"there is another task {function.__name__!r}: {known.__module__}.{known.__qualname__}")
    return task(function)


def registered(name: str) -> Callable[..., Any] | None:
    """The task of this name, if it is not one of partwise: other processes may not know it by its name."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}: register it (partwise.problem.register_task)")
    return None if TASKS[name].__module__ == __name__ else TASKS[name]


class _Curved(NamedTuple):
    """Second derivatives as last asked for."""

    weights: Floats
    every: int
    with_marginals: bool
    hessian: Hessian


class BatchSums:
    """One labelled batch under a loss, ready for the core: what tasks work on.

    `structure`, `features`, `gold` (indptr, slots, counts), `sample_weight` and `loss` are those of the batch.
    """

    def __init__(self, labelled: LabelledBatch, loss: Loss) -> None:
        self.structure: Structure = labelled.batch.structure
        self.features: FeatureMap = labelled.batch.features
        self.loss = loss
        self.gold = labelled.gold
        self.sample_weight = labelled.sample_weight
        self.objective = Objective(
            self.structure,
            self.features,
            *labelled.gold,
            loss.temperature,
            loss.cost_scale,
            loss.link,
            labelled.cost,
            labelled.sample_weight,
        )
        self.slack = loss.rescaling == "slack"
        self._curved: _Curved | None = None

    def hessian(self, n_jobs: int, weights: Floats, every: int, marginals: Floats | None) -> Hessian:
        """Second derivatives at these weights. The last ones are kept: a solver asks for many products at one point."""
        known, with_marginals = self._curved, marginals is not None
        if known is None or known.every != every or known.with_marginals != with_marginals:
            fresh = True
        else:
            # The caller may have written to the marginals since: with them, only the very same weights array counts.
            same = not with_marginals and np.array_equal(known.weights, weights)
            fresh = known.weights is not weights and not same
        if fresh:
            self._curved = None  # the old one's memory first
            hessian = Hessian(self.objective, weights, n_jobs, every, marginals)
            self._curved = _Curved(weights, every, with_marginals, hessian)
        assert self._curved is not None
        return self._curved.hessian


@dataclass(frozen=True)
class Facts:
    """What a batch is, as far as a problem must know it before it works on it.

    capabilities: of structure and features. row_length: weights that a slot's score is a sum of, at most.
    """

    capabilities: frozenset[Capability]
    row_length: int
    structure: str


class Room:
    """An array for a task to write to: in this process the caller's own, elsewhere a new one of its size."""

    def __init__(self, array: Floats) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return _room, (len(self.array),)


def _room(size: int) -> Room:
    return Room(np.empty(size))


# what a batch is


class First(NamedTuple):
    """What is asked of each batch before any work, in one opening of it.

    complaint: what is wrong with the first gold labelling that is none, or costs something, or "".
    """

    explicit_weights: bool
    sample_weight: Floats
    complaint: str
    facts: Facts


@task
def first_look(sums: BatchSums, n_jobs: int, sound: bool) -> First:
    """What a batch is, and whether it is sound, if that is not known."""
    complaint = ""
    try:
        if not sound:
            sums.objective.check_gold()
    except ValueError as error:
        complaint = str(error)
    explicit = Capability.EXPLICIT_WEIGHTS in sums.features.capabilities()
    return First(explicit, sums.sample_weight, complaint, _facts(sums))


def _facts(sums: BatchSums) -> Facts:
    structure = structure_capabilities(sums.structure)
    found = structure | capabilities(sums.features.capabilities())
    # Where a labelling is one slot, its block of the dual is simple if A_i A_i' is diagonal; a few examples tell.
    n = sums.structure.num_examples
    if Capability.ONE_PART in structure and n:
        some = np.linspace(0, n - 1, min(SAMPLE, n)).astype(np.int64)
        if slot_curvatures(sums.objective, some) is not None:
            found |= {Capability.DIAGONAL_BLOCKS}
    return Facts(found, sums.features.row_length, type(sums.structure).__name__)


@task
def lacks(sums: BatchSums, n_jobs: int, capability: str) -> str:
    """Why the features lack a capability, where there is more to say than its name."""
    return sums.features.lacks(capability)


@task
def gold(sums: BatchSums, n_jobs: int) -> Gold:
    """Gold labellings."""
    return sums.gold


@task
def slot_offsets(sums: BatchSums, n_jobs: int) -> Ints:
    """Where each example's slots begin, and where the last ones end."""
    return sums.structure.slot_offsets()


@task
def clique_starts(sums: BatchSums, n_jobs: int) -> Ints:
    """Where each example's clique marginals begin, and where the last ones end."""
    return _core.clique_starts(sums.structure)


# what some examples are


@task
def psi2_bounds(sums: BatchSums, n_jobs: int, examples: Ints) -> Floats:
    """Upper bounds of max_y |A_i'(g_i - counts(y))|^2."""
    return np.array([sums.features.psi2_bound(i) for i in examples.tolist()], dtype=np.float64)


@task
def gold_sizes(sums: BatchSums, n_jobs: int, examples: Ints) -> Floats:
    """Parts of the gold labellings."""
    indptr, _, counts = sums.gold
    return np.array([counts[indptr[i] : indptr[i + 1]].sum() for i in examples.tolist()], dtype=np.float64)


@task
def feature_sums(sums: BatchSums, n_jobs: int, examples: Ints) -> list[tuple[Ints, Floats]]:
    """(indices, values) of the sum of all slots' feature vectors of each example."""
    found = []
    for i in examples.tolist():
        vector = sums.features.project(i, np.ones(sums.features.num_slots(i)))
        found.append((vector.indices, vector.values))
    return found


@task
def example_sizes(sums: BatchSums, n_jobs: int, examples: Ints) -> list[tuple[int, float]]:
    """(slots, numbers that inference works on) of each example; infinitely many where inference is Python code."""
    structure = sums.structure
    if not is_compiled(structure):
        return [(structure.num_slots(i), inf) for i in examples.tolist()]
    with_cliques = Capability.CLIQUES in structure.capabilities()
    return [
        (structure.num_slots(i), int(structure.clique_offsets(i)[-1]) if with_cliques else structure.num_slots(i))
        for i in examples.tolist()
    ]


# primal


@task
def value(sums: BatchSums, n_jobs: int, weights: Floats) -> float:
    """sum omega phi(smax(theta + kappa c) - <theta, g>); with slack rescaling an upper bound of the losses."""
    if sums.slack:
        return sums.objective.slack_plane(weights, False, n_jobs)[0]
    return sums.objective.value(weights, n_jobs)


@task
def margins(sums: BatchSums, n_jobs: int, weights: Floats, temperature: float) -> Floats:
    """smax(theta + kappa c) - <theta, g> of each example at this temperature."""
    return sums.objective.margins(weights, temperature, n_jobs)


@task
def plane(sums: BatchSums, n_jobs: int, weights: Floats) -> tuple[float, Floats, float]:
    """(value, u, b) at the oracle's answer; with slack rescaling b - <u, w> may be less than the value."""
    if sums.slack:
        return sums.objective.slack_plane(weights, True, n_jobs)
    return sums.objective.plane(weights, n_jobs)


@task
def plane_of(sums: BatchSums, n_jobs: int, weights: Floats, examples: Ints) -> tuple[float, Floats, float]:
    """(value, u, b) of these examples alone, at the oracle's answer."""
    return sums.objective.plane_of(weights, examples)


@task
def plane_at(
    sums: BatchSums, n_jobs: int, weights: Floats, temperature: float, marginals: Floats
) -> tuple[float, Floats, float, float, Floats]:
    """(value, u, b, sum omega s H, expected counts) at p ~ exp((theta + kappa c) / temperature).

    marginals: what examples of weight zero keep; written to.
    """
    return *sums.objective.plane_at(weights, temperature, marginals, n_jobs), marginals


@task
def hessian_product(
    sums: BatchSums, n_jobs: int, weights: Floats, every: int, direction: Floats, marginals: Floats | None
) -> Floats:
    """(Hessian of the losses at w) v."""
    return sums.hessian(n_jobs, weights, every, marginals).product(direction, n_jobs)


@task
def hessian_diagonal(sums: BatchSums, n_jobs: int, weights: Floats, every: int, marginals: Floats | None) -> Floats:
    """Something near the diagonal of the Hessian of the losses at w."""
    return sums.hessian(n_jobs, weights, every, marginals).diagonal(n_jobs)


@task
def hessian_partial(sums: BatchSums, n_jobs: int, weights: Floats, every: int, marginals: Floats | None) -> bool:
    """Whether it is an estimate from a part of the examples."""
    return sums.hessian(n_jobs, weights, every, marginals).partial


# dual


@task
def dual_gibbs(
    sums: BatchSums, n_jobs: int, moved: tuple[Floats, Floats] | None, scores: Floats
) -> tuple[Floats, float]:
    """(u, b) of slot scores."""
    return sums.objective.dual_terms_gibbs(scores, n_jobs, moved)


@task
def dual_linear(
    sums: BatchSums, n_jobs: int, z: Floats, cost_scale: float, moved: tuple[Floats, Floats] | None = None
) -> tuple[Floats, float]:
    """(u, b) of slot scores A z + cost_scale c."""
    return sums.objective.dual_terms_linear(z, cost_scale, n_jobs, moved)


@task
def dual_slots(
    sums: BatchSums, n_jobs: int, counts: Floats, mass: Floats | None, entropies: Floats | None
) -> tuple[Floats, float]:
    """(u, b) of expected counts s mu, masses s and entropies s H."""
    return sums.objective.dual_terms_slots(counts, mass, entropies, n_jobs)


@task
def dual_sparse(
    sums: BatchSums, n_jobs: int, indptr: Ints, slots: Ints, counts: Floats, mass: Floats
) -> tuple[Floats, float]:
    """(u, b) of expected counts given by the slots that are used."""
    return sums.objective.dual_terms_sparse(indptr, slots, counts, mass, n_jobs)


@task
def dual_cliques(sums: BatchSums, n_jobs: int, marginals: Floats) -> tuple[Floats, float]:
    """(u, b) of clique marginals."""
    counts, entropies = read_cliques(sums, n_jobs, marginals)
    return dual_slots(sums, n_jobs, counts, None, entropies)


@task
def read_cliques(sums: BatchSums, n_jobs: int, marginals: Floats) -> tuple[Floats, Floats]:
    """(expected counts, entropies) of clique marginals."""
    return _core.read_cliques(sums.structure, np.ascontiguousarray(marginals), n_jobs)


@task
def clique_disagreement(sums: BatchSums, n_jobs: int, marginals: Floats) -> tuple[float, str]:
    """By how much clique marginals fail to be those of distributions, and why they are refused ("" if they are not)."""
    return check_clique_marginals(sums.objective, np.ascontiguousarray(marginals), n_jobs)


@task
def labelling_complaint(sums: BatchSums, n_jobs: int, labellings: dict[str, NDArray[Any]]) -> str:
    """Why labellings or mixtures (`WorkingSets.to_arrays`) do not belong to the structure; "" if they do."""
    sets = WorkingSets.from_arrays(**labellings)
    try:
        sets.check(sums.objective, n_jobs)
    except ValueError as error:
        return str(error)
    return ""


@task
def cliques_of_scores(sums: BatchSums, n_jobs: int, scores: Floats) -> Floats:
    """Clique marginals of slot scores."""
    return _core.cliques_of_scores(sums.structure, scores, n_jobs)


@task
def scores_of_cliques(
    sums: BatchSums, n_jobs: int, floor: float, tolerance: float, most: int, marginals: Floats
) -> tuple[Floats, int, int]:
    """Slot scores with these clique marginals, or at least their expected counts; see `scores_of_counts`."""
    structure = sums.structure
    uniform = cliques_of_scores(sums, n_jobs, np.zeros(int(structure.slot_offsets()[-1])))
    mixed = (1.0 - floor) * np.maximum(marginals, 0.0) + floor * uniform
    scores = near_gold_scores(sums, n_jobs, NEAR_GOLD)
    offsets, starts = structure.slot_offsets().tolist(), clique_starts(sums, n_jobs).tolist()
    for i, (first, last) in enumerate(pairwise(starts)):
        found = structure.slot_scores_from_cliques(i, mixed[first:last])
        if found is not None:
            scores[offsets[i] : offsets[i + 1]] = found
    return _matched(sums, n_jobs, read_cliques(sums, n_jobs, mixed)[0], scores, tolerance, most)


@task
def scores_of_counts(
    sums: BatchSums, n_jobs: int, floor: float, tolerance: float, most: int, counts: Floats
) -> tuple[Floats, int, int]:
    """Slot scores of the Gibbs distributions with these expected counts and a share `floor` of the uniform ones'.

    Then how many inferences it took, and of how many examples the counts are not matched after `most` of them.
    """
    scores = near_gold_scores(sums, n_jobs, NEAR_GOLD)
    uniform = marginals_of_scores(sums, n_jobs, np.zeros_like(scores))[0]
    return _matched(sums, n_jobs, (1.0 - floor) * np.maximum(counts, 0.0) + floor * uniform, scores, tolerance, most)


def _matched(
    sums: BatchSums, n_jobs: int, counts: Floats, scores: Floats, tolerance: float, most: int
) -> tuple[Floats, int, int]:
    found = match_counts(sums.objective, counts, scores, tolerance=tolerance, max_inferences=most, n_jobs=n_jobs)
    return scores, found.inferences, found.unmatched


@task
def marginals_of_scores(sums: BatchSums, n_jobs: int, scores: Floats) -> tuple[Floats, Floats]:
    """(expected counts, entropies) of slot scores."""
    return sums.objective.marginals_of_scores(scores, n_jobs)


@task
def scores_of_weights(sums: BatchSums, n_jobs: int, weights: Floats) -> Floats:
    """A w, slots end to end."""
    return all_scores(sums.structure, sums.features, weights, n_jobs)


@task
def near_gold_scores(sums: BatchSums, n_jobs: int, sharpness: float) -> Floats:
    """-sharpness c, slots end to end."""
    return sums.objective.near_gold_scores(sharpness)


# batch steps


@task
def eg_step(
    sums: BatchSums, n_jobs: int, weights: Floats, step: float, scores: Floats, moved: Room
) -> tuple[Floats, float, float, float, Floats]:
    """Scores after a step of exponentiated gradient; before them (u, b), sum omega log Z and the step's reference."""
    return *eg_batch_step(sums.objective, weights, step, scores, moved.array, n_jobs), moved.array


@task
def eg_linear_point(
    sums: BatchSums, n_jobs: int, z: Floats, cost_scale: float, old_cost_scale: float
) -> tuple[Floats, float, float, float]:
    """The same sums for slot scores A z + cost_scale c."""
    return eg_primal_point(sums.objective, z, cost_scale, old_cost_scale, n_jobs)


@task
def sum_of_gold_features(sums: BatchSums, n_jobs: int) -> Floats:
    """sum omega A'g."""
    return gold_features(sums.objective, n_jobs)


@task
def curvatures(sums: BatchSums, n_jobs: int) -> Floats | None:
    """|A_i' e_a|^2 of every slot a; None unless A_i A_i' is diagonal for all examples."""
    return slot_curvatures(sums.objective, np.arange(sums.structure.num_examples))


# rounding


@task
def largest_cost(sums: BatchSums, n_jobs: int) -> float:
    """The largest cost of any labelling, what multiplies margins in slack rescaling."""
    return sums.objective.largest_cost(n_jobs)


@task
def sums_of_rounding(sums: BatchSums, n_jobs: int, fixed: float, examples: float) -> tuple[float, ...]:
    """The sums of `_core.RoundingSums`, the largest reach last."""
    found = rounding_sums(sums.objective, fixed, examples, n_jobs)
    terms = found.scores, found.level, found.transposed, found.scores2, found.level2, found.transposed2
    return *terms, found.largest_reach
