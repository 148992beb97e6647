"""Sums over the examples of all batches, each added up in the order of the batches; `Problem` is built on them.

Arrays with values per example or slot (sample weights, slot scores, expected counts, ...) hold all examples end to end,
batch after batch. A batch's part, its block, is a view. With one batch nothing is copied or added.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import pairwise
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from partwise._core import FeatureMap, Objective, Structure, dot
from partwise.problem.batch import Gold
from partwise.problem.capabilities import Capability
from partwise.problem.executor import BatchReference, Blocks, Executor, Walk, Work
from partwise.problem.losses import Loss
from partwise.problem.rounding import Rounding
from partwise.problem.tasks import BatchSums, ColumnConstants, Facts, OutputArray, Plane
from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.lazy import cached_property

P = ParamSpec("P")
T = TypeVar("T")
Array = TypeVar("Array", bound=NDArray[np.generic])
Given = TypeVar("Given", Floats, Floats | None)

#: Rounds over several batches in memory that make up a pass of visits. If whole batches came one after the other, the
#: weights would fit the last batch best, and passes would be lost. Passes to a gap of 1e-2, log loss, l2 = 2,
#: CoNLL-2000 in ten batches (`eg-prox`): 1 round 21.6, 2: 12.3, 4: 9.2, 8 and more: 8.2, as in one batch. Hinge
#: (`bcfw`), 1000 sentences of WNUT 17 in ten batches: 8 rounds 24, 16: 20, as in one batch.
ROUNDS = 16


def added(parts: Iterator[T]) -> T:
    """Return the sum, in order; of tuples, place by place. The first part is written to: nothing else refers to it."""
    total = next(parts)
    for part in parts:
        total = _plus(total, part)
    return total


def _plus(total: T, part: T) -> T:
    if isinstance(total, tuple) and isinstance(part, tuple):
        return tuple(map(_plus, total, part))  # type: ignore[return-value]
    total += part  # type: ignore[operator]
    return total


def joined(parts: Iterable[Array]) -> Array:
    """Return arrays end to end."""
    return np.concatenate(list(parts))  # type: ignore[return-value]


def joined_pointers(parts: Iterable[Ints]) -> Ints:
    """Return pointers into arrays end to end."""
    return pointers(np.concatenate([np.diff(each) for each in parts]))


def joined_or_none(parts: Iterable[Floats | None]) -> Floats | None:
    """Return arrays end to end; None if one of them is missing."""
    found = list(parts)
    there = [part for part in found if part is not None]
    return joined(there) if len(there) == len(found) else None


def joined_columns(parts: Iterable[ColumnConstants]) -> ColumnConstants:
    """Return the constants of all batches; the order of the weights is that of the first batch that has them."""
    total, *rest = parts
    for other in rest:
        total = ColumnConstants(
            empirical=total.empirical + other.empirical,
            mass=total.mass + other.mass,
            weights=np.concatenate([total.weights, np.setdiff1d(other.weights, total.weights)]),
            labels=np.union1d(total.labels, other.labels),
            gold=np.union1d(total.gold, other.gold),
            n_cells=total.n_cells + other.n_cells,
        )
    return total


def first_text(parts: Iterable[str]) -> str:
    """Return the first text that is not empty."""
    return next(filter(None, list(parts)), "")


def by_place(*reductions: Callable[..., object]) -> Callable[..., Any]:
    """Return the reduction of tuples that reduces each place by its own reduction."""
    return lambda parts: tuple(
        reduce(iter(own)) for reduce, own in zip(reductions, zip(*parts, strict=True), strict=True)
    )


def _blocks(array: Given, ranges: Sequence[slice], what: str) -> Sequence[Given]:
    if array is None or len(ranges) == 1:
        return [array] * len(ranges)
    if array.shape != (ranges[-1].stop,):
        raise ValueError(f"an array of shape {array.shape} for {ranges[-1].stop} {what}")
    return [array[part] for part in ranges]


def by_slot(sums: "Sums", array: Given) -> Sequence[Given]:
    """Return each batch's part of an array with a value per slot; None for each batch if there is no array."""
    return _blocks(array, sums.slot_ranges, "slots")


def by_example(sums: "Sums", array: Given) -> Sequence[Given]:
    """Return each batch's part of an array with a value per example; None for each batch if there is no array."""
    return _blocks(array, sums.example_ranges, "examples")


def by_clique(sums: "Sums", marginals: Floats) -> Sequence[Floats]:
    """Return each batch's part of an array of clique marginals."""
    starts = sums.clique_starts
    if marginals.shape != (starts[-1],):
        raise ValueError(f"{len(marginals)} clique marginals given, the structure has {starts[-1]}")
    return [marginals[starts[part.start] : starts[part.stop]] for part in sums.example_ranges]


class Sum(Generic[P, T]):
    """A method of `Sums`: a task for every batch, and the reduction of several batches' answers to one.

    cut: the functions that cut the task's first arguments into the batches' blocks; all batches share the others.
    """

    def __init__(
        self,
        task: Callable[Concatenate[BatchSums, int, P], T],
        reduce: Callable[[Iterator[T]], T],
        *cut: Callable[["Sums", Floats], Sequence[Floats]],
    ) -> None:
        self.task, self.reduce, self.cut = task, reduce, cut
        self.__doc__ = task.__doc__

    @overload
    def __get__(self, sums: None, owner: object) -> Self: ...
    @overload
    def __get__(self, sums: "Sums", owner: object) -> Callable[P, T]: ...
    def __get__(self, sums: "Sums | None", owner: object) -> Self | Callable[P, T]:
        return self if sums is None else partial(sums.run, self)


@dataclass(frozen=True)
class Part:
    """A batch in memory, for solvers that visit its examples one by one.

    native: the core's sums over its examples, which are numbered from 0 there. examples, slots: the places of the batch
    in arrays of all examples and of all slots. number: of the batch.
    """

    native: Objective
    structure: Structure
    features: FeatureMap
    examples: slice
    slots: slice
    number: int


class Sums:
    """The sums of a loss over the examples of all batches.

    A method gives the answer for all batches of the method of `BatchSums` with the same name. `executor` does the work.
    sound: whether gold labellings are known to be valid.
    """

    def __init__(
        self, references: Sequence[BatchReference], loss: Loss, executor: Executor, n_jobs: int, sound: bool = False
    ) -> None:
        self.references = tuple(references)
        self.loss, self.executor, self.n_jobs, self._sound = loss, executor, n_jobs, sound
        self.n_batches = len(self.references)
        self.n_examples = sum(reference.n_examples for reference in self.references)
        check_size(self.n_examples)
        sizes = sorted({reference.n_weights for reference in self.references})
        if len(sizes) > 1:
            raise ValueError(
                f"batches with features of {sizes[0]} and of {sizes[-1]} weights are of different problems"
            )
        self.n_weights = sizes[0]

    @cached_property
    def facts(self) -> Facts:
        """The facts of all batches; the complaint is about the first example whose gold labelling is refused."""
        found = list(self.each(BatchSums.facts, self._sound))
        shared = frozenset.intersection(*(facts.capabilities for facts in found))
        if len(found) == 1:
            shared |= {Capability.ONE_BATCH}
        if self._opened is not None:
            shared |= {Capability.IN_MEMORY}
        if self.executor.files is not None:
            shared |= {Capability.BLOCK_FILES}
        complaints = (f"batch {number}: {facts.complaint}" for number, facts in enumerate(found) if facts.complaint)
        structures = list(dict.fromkeys(facts.structure for facts in found))
        return Facts(
            capabilities=shared,
            row_length=max(facts.row_length for facts in found),
            structure=" and ".join(structures) + (f" in {len(found)} batches" if len(found) > 1 else ""),
            sample_weight=joined(facts.sample_weight for facts in found),
            complaint=next(complaints, "") if len(found) > 1 else found[0].complaint,
        )

    @property
    def explicit_weights(self) -> bool:
        """Whether weights are coordinates (with kernels they are coefficients)."""
        return Capability.EXPLICIT_WEIGHTS in self.facts.capabilities

    @cached_property
    def active(self) -> Ints:
        """Examples of positive weight, the ones that a pass visits."""
        return np.flatnonzero(self.facts.sample_weight > 0).astype(np.int64)

    @cached_property
    def gold(self) -> Gold:
        return self.run(Sum(BatchSums.gold_labellings, by_place(joined_pointers, joined, joined)))

    @property
    def batch_sizes(self) -> list[int]:
        return [reference.n_examples for reference in self.references]

    @cached_property
    def example_ranges(self) -> list[slice]:
        return _ranges(self.batch_sizes)

    @cached_property
    def slot_ranges(self) -> list[slice]:
        return _ranges([reference.n_slots for reference in self.references])

    @property
    def n_slots(self) -> int:
        return int(self.slot_ranges[-1].stop)

    @cached_property
    def slot_offsets(self) -> Ints:
        """Slots of example i are slot_offsets[i]:slot_offsets[i + 1] of arrays with a value per slot."""
        return self.run(Sum(BatchSums.slot_offsets, joined_pointers))

    @cached_property
    def clique_starts(self) -> Ints:
        """Clique marginals of example i are clique_starts[i]:clique_starts[i + 1] of arrays of all of them."""
        return self.run(Sum(BatchSums.clique_starts, joined_pointers))

    def clique_range(self, part: Part) -> slice:
        return slice(int(self.clique_starts[part.examples.start]), int(self.clique_starts[part.examples.stop]))

    @cached_property
    def inner_product(self) -> Callable[[Floats, Floats, int], float]:
        """<w, v> in weight space, on some threads. With a kernel it takes the batch's own features."""
        return self._opened[0].features.dot if self._opened is not None and len(self._opened) == 1 else dot

    @cached_property
    def rounding(self) -> Rounding:
        """How far sums over these examples may be off."""
        return Rounding(self)

    lacks = Sum(BatchSums.lacks, first_text)
    describe_weight = Sum(BatchSums.describe_weight, first_text)

    def psi2_bounds(self, examples: Ints) -> Floats:
        """Return upper bounds of max_y |A_i'(g_i - counts(y))|^2 of these examples."""
        return np.array(self.of_examples(BatchSums.psi2_bounds, examples), dtype=np.float64)

    def of_examples(self, task: Callable[..., Iterable[T]], examples: Ints) -> list[T]:
        """Return a task's answers for these examples, one each, in their order."""
        answers: dict[int, T] = {}
        for places, found in self._run_on(examples, task):
            answers.update(zip(places.tolist(), found, strict=True))
        return [answers[place] for place in range(len(examples))]

    value = Sum(BatchSums.value, added)
    margins = Sum(BatchSums.margins, joined)
    plane = Sum(BatchSums.plane, added)
    hessian_product = Sum(BatchSums.hessian_product, added, by_slot)
    hessian_diagonal = Sum(BatchSums.hessian_diagonal, added, by_slot)
    hessian_partial = Sum(BatchSums.hessian_partial, any, by_slot)

    def plane_of(self, examples: Ints, weights: Floats) -> tuple[float, Floats, float]:
        return added(found for _, found in self._run_on(examples, BatchSums.plane_of, weights))

    def plane_at(self, weights: Floats, temperature: float, marginals: Floats) -> tuple[float, Floats, float, float]:
        """Return (losses, u, b, sum omega s H) at p ~ exp((theta + kappa c) / temperature) for any temperature.

        The losses are those of this temperature; u and b are of p as a dual point of this problem. p's expected counts
        are written to `marginals` (except for examples of weight zero).
        """
        blocks = by_slot(self, marginals)
        results = self.each(BatchSums.plane_at, weights, temperature, blocks=[(block,) for block in blocks])
        return added(_written(results, blocks))

    dual_terms_gibbs = Sum(BatchSums.dual_terms_gibbs, added, by_slot)
    dual_terms_linear = Sum(BatchSums.dual_terms_linear, added)
    dual_terms_slots = Sum(BatchSums.dual_terms_slots, added, by_slot, by_example, by_example)
    dual_terms_cliques = Sum(BatchSums.dual_terms_cliques, added, by_clique)
    read_cliques = Sum(BatchSums.read_cliques, by_place(joined, joined), by_clique)
    check_clique_marginals = Sum(BatchSums.check_clique_marginals, by_place(max, first_text), by_clique)
    cliques_of_scores = Sum(BatchSums.cliques_of_scores, joined, by_slot)
    scores_of_cliques = Sum(BatchSums.scores_of_cliques, by_place(joined, sum, sum), by_clique)
    scores_of_counts = Sum(BatchSums.scores_of_counts, by_place(joined, sum, sum), by_slot)
    marginals_of_scores = Sum(BatchSums.marginals_of_scores, by_place(joined, joined), by_slot)
    all_scores = Sum(BatchSums.all_scores, joined)
    near_gold_scores = Sum(BatchSums.near_gold_scores, joined)
    slot_curvatures = Sum(BatchSums.slot_curvatures, joined_or_none)
    gold_features = Sum(BatchSums.gold_features, added)
    eg_primal_point = Sum(BatchSums.eg_primal_point, added)

    def dual_terms_sparse(self, indptr: Ints, slots: Ints, counts: Floats, mass: Floats) -> Plane:
        blocks: list[tuple[object, ...]] = []
        for part in self.example_ranges:
            own = indptr[part.start : part.stop + 1]
            used = slice(int(own[0]), int(own[-1]))
            blocks.append((own - own[0], slots[used], counts[used], mass[part]))
        return added(self.each(BatchSums.dual_terms_sparse, blocks=blocks))

    def labelling_complaint(self, batches: Iterable[dict[str, NDArray[np.generic]]]) -> str:
        return first_text(self.each(BatchSums.labelling_complaint, blocks=[(batch,) for batch in batches]))

    def linear_scores(self, z: Floats, cost_scale: float) -> Floats:
        """Return the slot scores A_i z + cost_scale c_i of all examples end to end."""
        scores = self.all_scores(z)
        if cost_scale:
            scores += cost_scale * self.slot_costs()
        return scores

    def slot_costs(self) -> Floats:
        """Return c_i of all examples end to end."""
        return -self.near_gold_scores(1.0)

    def eg_batch_step(
        self, weights: Floats, step: float, scores: Floats, moved: Floats
    ) -> tuple[Floats, float, float, float]:
        """Write moved = (1 - step tau) scores + step (A w + kappa c); it may be the same array as scores.

        Return (u, b) and sum omega log Z of the Gibbs distributions p with scores `moved`, and
        sum omega (H(p) + <mu, scores>).
        """
        outputs = by_slot(self, moved)
        blocks = list(zip(by_slot(self, scores), map(OutputArray, outputs), strict=True))
        return added(_written(self.each(BatchSums.eg_batch_step, weights, step, blocks=blocks), outputs))

    @cached_property
    def scaling_constants(self) -> ColumnConstants:
        return self.run(Sum(BatchSums.scaling_constants, joined_columns))

    scaling_extremes = Sum(BatchSums.scaling_extremes, added)
    scaling_largest_sum = Sum(BatchSums.scaling_largest_sum, max)
    scaling_expectations = Sum(BatchSums.scaling_expectations, added)
    scaling_separates = Sum(BatchSums.scaling_separates, all)

    rounding_sums = Sum(BatchSums.rounding_sums, by_place(added, added, max))
    largest_cost = Sum(BatchSums.largest_cost, max)

    def in_memory(self) -> tuple[Part, ...]:
        """Return the batches as solvers that visit single examples need them (capability "batches in memory")."""
        return self._parts  # cached, because a pass over few examples takes microseconds

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        if self._opened is None:
            raise ValueError("the batches of this problem do not lie in memory")
        places = zip(self.example_ranges, self.slot_ranges, range(self.n_batches), strict=True)
        return tuple(
            Part(batch.objective, batch.structure, batch.features, *place)
            for batch, place in zip(self._opened, places, strict=True)
        )

    @cached_property
    def _opened(self) -> list[BatchSums] | None:
        found = [self.executor.in_memory(reference, self.loss) for reference in self.references]
        here = [batch for batch in found if batch is not None]
        return here if len(here) == len(found) else None

    def visits(self, order: Ints) -> Iterator[tuple[Part, Ints]]:
        """Go over the batches, each with those of its examples that come in this order, numbered within the batch."""
        parts = self.in_memory()
        if len(parts) == 1:
            yield parts[0], order
            return
        for part in parts:
            start, stop = part.examples.start, part.examples.stop
            yield part, order[(order >= start) & (order < stop)] - start

    def rounds(self, order: Ints) -> Iterator[tuple[Part, Ints]]:
        """Do as `visits`, but in up to `ROUNDS` rounds over the batches, each for the next part of the order.

        The last round has every batch, some perhaps without examples; the others have those with some.
        """
        n_rounds = min(ROUNDS, max(1, len(order) // self.n_batches)) if self.n_batches > 1 else 1
        for k, some in enumerate(np.array_split(order, n_rounds)):
            for part, own in self.visits(some):
                if len(own) or k == n_rounds - 1:
                    yield part, own

    def run(self, chosen: Sum[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the answer of all batches; what a method that is a `Sum` calls."""
        given = signature(chosen.task).bind(None, 0, *args, **kwargs).args[2:] if kwargs else args
        cut = [into_blocks(self, array) for into_blocks, array in zip(chosen.cut, given, strict=False)]
        blocks = list(zip(*cut, strict=True)) if cut else None
        parts = self.each(chosen.task, *given[len(cut) :], blocks=blocks)
        if self.n_batches == 1:
            (answer,) = parts
            return answer
        answer = chosen.reduce(parts)
        deque(parts, maxlen=0)  # work that is not finished may hang on a cluster
        return answer

    def each(self, task: Callable[..., T], *shared: object, blocks: Blocks | None = None) -> Iterator[T]:
        """Go over what a task gives for each batch, in the order of the batches."""
        work = Work(task, self.loss, shared, self.n_jobs)
        return self.executor.run(work, self.references, [()] * self.n_batches if blocks is None else blocks)

    def walk(self, walks: Sequence[Walk], batches: Sequence[Sequence[int]]) -> list[Any]:
        """Return what each walk finds on the batches of these numbers, in the order of the walks."""
        own = [[self.references[number] for number in numbers] for numbers in batches]
        return list(self.executor.walk(walks, own))

    def _run_on(self, examples: Ints, task: Callable[..., T], *shared: object) -> Iterator[tuple[Ints, T]]:
        """Yield, for each batch with some of these examples, their places in the array and a task's answer for them."""
        owner = np.searchsorted([part.stop for part in self.example_ranges], examples, side="right")
        asked = np.unique(owner).tolist()
        members = [np.flatnonzero(owner == number) for number in asked]
        blocks = [(examples[where] - self.example_ranges[k].start,) for k, where in zip(asked, members, strict=True)]
        work = Work(task, self.loss, shared, self.n_jobs)
        results = self.executor.run(work, [self.references[number] for number in asked], blocks)
        return zip(members, results, strict=True)


def check_size(n_examples: int) -> None:
    """Raise ValueError if there is nothing to sum over."""
    if n_examples == 0:
        raise ValueError("a problem needs at least one example")


def _ranges(sizes: Sequence[int]) -> list[slice]:
    """Return where batches of these sizes are in arrays of all of them."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _written(results: Iterable[tuple[T, Floats]], blocks: Sequence[Floats]) -> Iterator[T]:
    """Yield the results without their arrays, which are copied to the blocks unless they are the blocks."""
    for (sums, answer), block in zip(results, blocks, strict=True):
        if answer is not block:
            block[:] = answer
        yield sums
