"""Tasks: what `Sums` asks of each batch, with threads, the batch's blocks, weights and numbers.

A task is a method of `BatchSums`, or a function of users (`register_task`). It has no state: the same arguments give
the same answer wherever the batch is. An executor may send the function (by its module and name), the batch's
reference, weights and blocks to another process, and gets a partial sum or the batch's new block back. Where a task is
one call of the core, it has the name of the core's function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from types import FunctionType
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from partwise import _core
from partwise._core import FeatureMap, Hessian, Objective, Structure, WorkingSets
from partwise.problem.batch import Gold, LabelledBatch
from partwise.problem.capabilities import Capability, capabilities, is_compiled, structure_capabilities
from partwise.problem.losses import Loss
from partwise.support.arrays import Floats, Ints

#: Examples whose features are read to determine a batch's capabilities.
SAMPLE = 20
#: How far the first scores of wrong parts lie below those of gold parts in a search for scores.
NEAR_GOLD = 11.0

P = ParamSpec("P")
Registered = TypeVar("Registered", bound=Callable[..., object])

#: Where probability of labellings of one part is moved: the share of every label's probability that stays, and the
#: proportions in which labels get the rest.
Moved = tuple[Floats, Floats]
Plane = tuple[Floats, float]


class OutputArray:
    """An array for a task to write to: in this process the caller's own, elsewhere a new one of its size."""

    def __init__(self, array: Floats) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Callable[[int], "OutputArray"], tuple[int]]:
        return _empty_output, (len(self.array),)


def _empty_output(size: int) -> OutputArray:
    return OutputArray(np.empty(size))


@dataclass(frozen=True, eq=False)
class Facts:
    """What a problem must know about batches before it uses them, read in one opening because opening is slow.

    capabilities: of structures and features. row_length: weights that a slot's score is a sum of, at most. structure:
    the class, for messages. complaint: why the first gold labelling that is invalid or has a cost is refused, or "".
    """

    capabilities: frozenset[Capability]
    row_length: int
    structure: str
    sample_weight: Floats
    complaint: str


def _complaint(check: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> str:
    """Return the message of the ValueError that a check raises, or ""."""
    try:
        check(*args, **kwargs)
    except ValueError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class ColumnConstants:
    """Constants of the features that column solvers need; see core/solvers/scaling.h.

    empirical, mass: a number per weight. weights: those that have a feature, in a good order of visits.
    labels: slots that are labellings of some example. gold: slots that are gold where the example's weight is not 0.
    """

    empirical: Floats
    mass: Floats
    weights: Ints
    labels: Ints
    gold: Ints
    n_cells: int


class BatchSums:
    """A labelled batch under a loss, with its structure, features, gold labellings and weights, and the tasks on it."""

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
        self._hessian: Hessian | None = None
        self._hessian_at: tuple[Floats, int, bool] = np.empty(0), 0, False

    def _second_derivatives(self, n_jobs: int, marginals: Floats | None, weights: Floats, every: int) -> Hessian:
        """Return second derivatives at these weights; the last ones are kept, as many products are asked of them."""
        (known, *rest), asked = self._hessian_at, [every, marginals is not None]
        # With marginals, which the caller may have changed since, only the very same weights array counts as equal.
        same = known is weights or (marginals is None and np.array_equal(known, weights))
        if self._hessian is None or rest != asked or not same:
            self._hessian = None  # frees its memory first
            self._hessian = Hessian(self.objective, weights, n_jobs, every, marginals)
            self._hessian_at = weights, every, marginals is not None
        return self._hessian

    def facts(self, n_jobs: int, sound: bool) -> Facts:
        complaint = "" if sound else _complaint(self.objective.check_gold)
        structure = structure_capabilities(self.structure)
        found = structure | capabilities(self.features.capabilities())
        # If a labelling is one slot and A_i A_i' is diagonal (a few examples tell), blocks of the dual are simple.
        n = self.structure.num_examples
        if Capability.ONE_PART in structure and n:
            some = np.linspace(0, n - 1, min(SAMPLE, n)).astype(np.int64)
            if _core.slot_curvatures(self.objective, some) is not None:
                found |= {Capability.DIAGONAL_BLOCKS}
        return Facts(found, self.features.row_length, type(self.structure).__name__, self.sample_weight, complaint)

    def lacks(self, n_jobs: int, capability: str) -> str:
        """Return why the features lack a capability, or "" if its name says it all."""
        return self.features.lacks(capability)

    def describe_weight(self, n_jobs: int, weight: int) -> str:
        return self.features.describe(weight)

    def gold_labellings(self, n_jobs: int) -> Gold:
        return self.gold

    def slot_offsets(self, n_jobs: int) -> Ints:
        return self.structure.slot_offsets()

    def clique_starts(self, n_jobs: int) -> Ints:
        return _core.clique_starts(self.structure)

    def psi2_bounds(self, n_jobs: int, examples: Ints) -> list[float]:
        return [self.features.psi2_bound(i) for i in examples.tolist()]

    def gold_sizes(self, n_jobs: int, examples: Ints) -> list[float]:
        """Return the number of parts of these examples' gold labellings."""
        indptr, _, counts = self.gold
        return [counts[indptr[i] : indptr[i + 1]].sum() for i in examples.tolist()]

    def feature_sums(self, n_jobs: int, examples: Ints) -> list[tuple[Ints, Floats]]:
        """Return (indices, values) of the sum of all slots' feature vectors, for each of these examples."""
        vectors = (self.features.project(i, np.ones(self.features.num_slots(i))) for i in examples.tolist())
        return [(vector.indices, vector.values) for vector in vectors]

    def example_sizes(self, n_jobs: int, examples: Ints) -> list[tuple[int, float]]:
        """Return (slots, numbers that inference works on) of these examples; infinitely many for Python code."""
        structure = self.structure
        slots = [structure.num_slots(i) for i in examples.tolist()]
        if not is_compiled(structure):
            return [(each, inf) for each in slots]
        if Capability.CLIQUES not in structure.capabilities():
            return [(each, each) for each in slots]
        return [(each, int(structure.clique_offsets(i)[-1])) for each, i in zip(slots, examples.tolist(), strict=True)]

    def value(self, n_jobs: int, weights: Floats) -> float:
        """Return the losses, sum_i omega_i phi(smax_tau(theta_i + kappa c_i) - <theta_i, g_i>).

        With slack rescaling: an upper bound of sum_i omega_i max_y c_i(y) (1 + <theta_i, counts(y) - g_i>).
        """
        if self.slack:
            return self.objective.slack_plane(weights, False, n_jobs)[0]
        return self.objective.value(weights, n_jobs)

    def margins(self, n_jobs: int, weights: Floats, temperature: float) -> Floats:
        """Return smax(theta_i + kappa c_i) - <theta_i, g_i> at this temperature, 0 where the weight is zero."""
        return self.objective.margins(weights, temperature, n_jobs)

    def plane(self, n_jobs: int, weights: Floats) -> tuple[float, Floats, float]:
        """Return (losses, u, b) at the oracle's answer to w: the plane that touches the losses there.

        With slack rescaling b - <u, w> may stay below the upper bound that is given for the losses.
        """
        if self.slack:
            return self.objective.slack_plane(weights, True, n_jobs)
        return self.objective.plane(weights, n_jobs)

    def plane_of(self, n_jobs: int, examples: Ints, weights: Floats) -> tuple[float, Floats, float]:
        """Return (losses, u, b) of these examples, each as often as it is named, at the oracle's answer."""
        return self.objective.plane_of(weights, examples)

    def plane_at(
        self, n_jobs: int, marginals: Floats, weights: Floats, temperature: float
    ) -> tuple[tuple[float, Floats, float, float], Floats]:
        """Return the sums of `Sums.plane_at` and the array of expected counts that were written to."""
        return self.objective.plane_at(weights, temperature, marginals, n_jobs), marginals

    def hessian_product(
        self, n_jobs: int, marginals: Floats | None, weights: Floats, every: int, direction: Floats
    ) -> Floats:
        """Return (Hessian of the losses at w) v, of every `every`-th run; marginals: expected counts at w, if known."""
        return self._second_derivatives(n_jobs, marginals, weights, every).product(direction, n_jobs)

    def hessian_diagonal(self, n_jobs: int, marginals: Floats | None, weights: Floats, every: int) -> Floats:
        """Return an approximate diagonal of the Hessian of the losses at w (see `_core.Hessian.diagonal`)."""
        return self._second_derivatives(n_jobs, marginals, weights, every).diagonal(n_jobs)

    def hessian_partial(self, n_jobs: int, marginals: Floats | None, weights: Floats, every: int) -> bool:
        """Return whether the Hessian is an estimate from a part of the examples (where there are enough of them)."""
        return self._second_derivatives(n_jobs, marginals, weights, every).partial

    def dual_terms_gibbs(self, n_jobs: int, scores: Floats, moved: Moved | None = None) -> Plane:
        """Return (u, b) of the Gibbs distributions with these slot scores, after probability was moved."""
        return self.objective.dual_terms_gibbs(scores, n_jobs, moved)

    def dual_terms_linear(self, n_jobs: int, z: Floats, cost_scale: float, moved: Moved | None = None) -> Plane:
        """Return (u, b) of slot scores A_i z + cost_scale c_i, which are never stored, after probability was moved."""
        return self.objective.dual_terms_linear(z, cost_scale, n_jobs, moved)

    def dual_terms_slots(
        self, n_jobs: int, counts: Floats, mass: Floats | None = None, entropies: Floats | None = None
    ) -> Plane:
        """Return (u, b) of expected counts s mu, masses s (None: 1) and entropies s H (None: 0)."""
        return self.objective.dual_terms_slots(counts, mass, entropies, n_jobs)

    def dual_terms_sparse(self, n_jobs: int, indptr: Ints, slots: Ints, counts: Floats, mass: Floats) -> Plane:
        """Return (u, b) of expected counts given by the slots that are used: those at indptr[i]:indptr[i + 1]."""
        return self.objective.dual_terms_sparse(indptr, slots, counts, mass, n_jobs)

    def dual_terms_cliques(self, n_jobs: int, marginals: Floats) -> Plane:
        counts, entropies = self.read_cliques(n_jobs, marginals)
        return self.dual_terms_slots(n_jobs, counts, None, entropies)

    def read_cliques(self, n_jobs: int, marginals: Floats) -> tuple[Floats, Floats]:
        """Return (expected counts, entropies) of clique marginals."""
        return _core.read_cliques(self.structure, np.ascontiguousarray(marginals), n_jobs)

    def check_clique_marginals(self, n_jobs: int, marginals: Floats) -> tuple[float, str]:
        """Return by how much clique marginals fail to be those of distributions, and why they are refused or ""."""
        return _core.check_clique_marginals(self.objective, np.ascontiguousarray(marginals), n_jobs)

    def labelling_complaint(self, n_jobs: int, labellings: dict[str, NDArray[np.generic]]) -> str:
        """Return why labellings or mixtures (`WorkingSets.to_arrays`) do not belong to the structure; "" if they do."""
        sets = WorkingSets.from_arrays(**labellings)  # type: ignore[arg-type]
        return _complaint(sets.check, self.objective, n_jobs)

    def cliques_of_scores(self, n_jobs: int, scores: Floats) -> Floats:
        return _core.cliques_of_scores(self.structure, scores, n_jobs)

    def scores_of_cliques(
        self, n_jobs: int, marginals: Floats, floor: float, tolerance: float, most: int
    ) -> tuple[Floats, int, int]:
        """Return slot scores with these clique marginals, or at least their expected counts; see `scores_of_counts`."""
        structure = self.structure
        uniform = self.cliques_of_scores(n_jobs, np.zeros(int(structure.slot_offsets()[-1])))
        mixed = (1.0 - floor) * np.maximum(marginals, 0.0) + floor * uniform
        scores = self.near_gold_scores(n_jobs, NEAR_GOLD)
        offsets, starts = structure.slot_offsets().tolist(), self.clique_starts(n_jobs).tolist()
        for i, (first, last) in enumerate(pairwise(starts)):
            found = structure.slot_scores_from_cliques(i, mixed[first:last])
            if found is not None:
                scores[offsets[i] : offsets[i + 1]] = found
        return self._match_counts(n_jobs, self.read_cliques(n_jobs, mixed)[0], scores, tolerance, most)

    def scores_of_counts(
        self, n_jobs: int, counts: Floats, floor: float, tolerance: float, most: int
    ) -> tuple[Floats, int, int]:
        """Return slot scores of the Gibbs distributions with these expected counts and a share `floor` of uniform ones.

        Also return the number of inferences, at most `most` per example, and of examples whose counts are still off by
        more than `tolerance` of their sum.
        """
        scores = self.near_gold_scores(n_jobs, NEAR_GOLD)
        uniform = self.marginals_of_scores(n_jobs, np.zeros_like(scores))[0]
        mixed = (1.0 - floor) * np.maximum(counts, 0.0) + floor * uniform
        return self._match_counts(n_jobs, mixed, scores, tolerance, most)

    def _match_counts(
        self, n_jobs: int, counts: Floats, scores: Floats, tolerance: float, most: int
    ) -> tuple[Floats, int, int]:
        found = _core.match_counts(
            self.objective, counts, scores, tolerance=tolerance, max_inferences=most, n_jobs=n_jobs
        )
        return scores, found.inferences, found.unmatched

    def marginals_of_scores(self, n_jobs: int, scores: Floats) -> tuple[Floats, Floats]:
        """Return (expected counts, entropies) of the Gibbs distributions with these slot scores."""
        return self.objective.marginals_of_scores(scores, n_jobs)

    def all_scores(self, n_jobs: int, weights: Floats) -> Floats:
        """Return the slot scores A w."""
        return _core.all_scores(self.structure, self.features, weights, n_jobs)

    def near_gold_scores(self, n_jobs: int, sharpness: float) -> Floats:
        """Return the slot scores -sharpness c, near the gold labelling."""
        return self.objective.near_gold_scores(sharpness)

    def slot_curvatures(self, n_jobs: int) -> Floats | None:
        """Return |A_i' e_a|^2 of every slot a (-1 where unused); None unless all A_i A_i' are diagonal."""
        return _core.slot_curvatures(self.objective, np.arange(self.structure.num_examples))

    def gold_features(self, n_jobs: int) -> Floats:
        """Return sum_i omega_i A_i'g_i."""
        return _core.gold_features(self.objective, n_jobs)

    def eg_batch_step(
        self, n_jobs: int, scores: Floats, moved: OutputArray, weights: Floats, step: float
    ) -> tuple[tuple[Floats, float, float, float], Floats]:
        """Return the sums of `Sums.eg_batch_step` and the array that was written to."""
        return _core.eg_batch_step(self.objective, weights, step, scores, moved.array, n_jobs), moved.array

    def eg_primal_point(
        self, n_jobs: int, z: Floats, cost_scale: float, old_cost_scale: float
    ) -> tuple[Floats, float, float, float]:
        """Return the sums of `eg_batch_step` for slot scores A z + cost_scale c, with old_cost_scale c for `scores`."""
        return _core.eg_primal_point(self.objective, z, cost_scale, old_cost_scale, n_jobs)

    def scaling_constants(self, n_jobs: int) -> ColumnConstants:
        indptr, slots, _ = self.gold
        used = np.unique(slots[indptr[:-1][self.sample_weight > 0]])
        empirical, mass, weights, labels, n_cells = _core.scaling_constants(self.objective)
        return ColumnConstants(empirical, mass, weights, labels, used, n_cells)

    def scaling_extremes(self, n_jobs: int) -> tuple[Floats, Floats]:
        """Return the least and the largest value that each feature's expectation can have."""
        return _core.scaling_extremes(self.objective)

    def scaling_largest_sum(self, n_jobs: int) -> float:
        """Return f#, the largest sum of the features of an example and a label."""
        return _core.scaling_largest_sum(self.objective)

    def scaling_expectations(self, n_jobs: int, weights: Floats) -> Floats:
        """Return sum omega E[f_t] of every feature at these weights."""
        return _core.scaling_expectations(self.objective, weights, n_jobs)

    def scaling_separates(self, n_jobs: int, weights: Floats) -> bool:
        return _core.scaling_separates(self.objective, weights, n_jobs)

    def largest_cost(self, n_jobs: int) -> float:
        """Return the largest cost of any labelling, what multiplies margins in slack rescaling."""
        return self.objective.largest_cost(n_jobs)

    def rounding_sums(
        self, n_jobs: int, fixed: float, examples: float
    ) -> tuple[tuple[float, float, float], tuple[float, float, float], float]:
        """Return sums of scores, level and transposed, sums of squares, and the largest reach (`RoundingSums`)."""
        found = _core.rounding_sums(self.objective, fixed, examples, n_jobs)
        sums = found.scores, found.level, found.transposed
        return sums, (found.scores2, found.level2, found.transposed2), found.largest_reach


def register_task(function: Registered) -> Registered:
    """Make a function a task, for `Problem.ask`: the decorator of functions that are summed over batches.

    The function is called as ``function(batch, n_jobs, *shared)`` for each batch, where `batch` has the batch's
    structure, features, gold labellings, sample weights and loss (`BatchSums`), and n_jobs threads may be used. It must
    have no state, as it may run in another process, where its module must be importable. A function defined again, as
    in a notebook, replaces the one before. TypeError if it is not a function; ValueError if another has its name.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"register_task takes a function, got {function!r}")
    known = TASKS.get(function.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
        raise ValueError(f"there is another task {function.__name__!r}: {known.__module__}.{known.__qualname__}")
    TASKS[function.__name__] = function
    return function


def named_task(name: str) -> Callable[..., object]:
    """Return the task of this name: a registered one or one of `BatchSums`."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}: register it (partwise.problem.register_task)")
    return TASKS[name]


#: Tasks by name, for `Problem.ask`: those of `BatchSums`, and those of users.
TASKS: dict[str, Callable[..., object]] = {
    name: own for name, own in vars(BatchSums).items() if isinstance(own, FunctionType) and name[0] != "_"
}
