"""Sums over the examples of all batches, each added up in the order of the batches; what `Problem` is built on.

What belongs to an example or a slot (sample weights, slot scores, expected counts, ...) is one array, all examples
end to end, batch after batch. A batch's part of it, its block, is a view. With one batch nothing is copied or added.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partwise._core import FeatureMap, Objective, Structure, dot
from partwise.problem.batch import Gold
from partwise.problem.capabilities import Capability
from partwise.problem.executor import BatchReference, Executor, Walk, Work
from partwise.problem.losses import Loss
from partwise.problem.reductions import added, added_up, joined, joined_pointers, written
from partwise.problem.tasks import BatchSums, Facts, First, Room, registered
from partwise.support.arrays import Floats, Ints
from partwise.support.lazy import cached_property

Array = TypeVar("Array", bound=NDArray[Any])
#: Rounds over several batches in memory that make up a pass of visits. After batch upon batch the weights are those of
#: the last batch above all, and passes are lost. Passes to a gap of 1e-2, log loss, l2 = 2, CoNLL-2000 in ten batches
#: (`eg-prox`): 1 round 21.6, 2: 12.3, 4: 9.2, 8 and more: 8.2, as in one batch. Hinge (`bcfw`), 1000 sentences of WNUT
#: 17 in ten batches: 8 rounds 24, 16: 20, as in one batch.
ROUNDS = 16


@dataclass(frozen=True)
class Part:
    """A batch in memory, for solvers that visit its examples one by one.

    native: the core's sums over its examples, which are numbered from 0 there. examples, slots: where the batch's
    blocks are in arrays of all examples and of all slots. number: of the batch.
    """

    native: Objective
    structure: Structure
    features: FeatureMap
    examples: slice
    slots: slice
    number: int


class Sums:
    """The sums of a loss over batches."""

    def __init__(self, references: Sequence[BatchReference], loss: Loss, executor: Executor, n_jobs: int) -> None:
        self.loss = loss
        self.n_jobs = n_jobs
        self._references = tuple(references)
        self._executor = executor
        self._sound = False  # whether gold labellings are known to be labellings
        self.n_examples = sum(reference.n_examples for reference in self._references)
        check_size(self.n_examples)
        sizes = sorted({reference.n_weights for reference in self._references})
        if len(sizes) > 1:
            raise ValueError(
                f"batches with features of {sizes[0]} and of {sizes[-1]} weights are of different problems"
            )
        self.n_weights = sizes[0]

    def check_gold(self) -> None:
        """ValueError naming the first example, by its number in its batch, whose gold labelling is none or costs."""
        for number, first in enumerate(self._first):
            if first.complaint:
                raise ValueError(f"batch {number}: {first.complaint}" if self.n_batches > 1 else first.complaint)

    @cached_property
    def _first(self) -> list[First]:
        """Of each batch; where they lie in files every other question would open all of them again."""
        return list(self._run("first_look", self._sound))

    @property
    def n_batches(self) -> int:
        return len(self._references)

    # what the batches are

    @property
    def batch_sizes(self) -> list[int]:
        """Examples of each batch."""
        return [reference.n_examples for reference in self._references]

    @cached_property
    def sample_weight(self) -> Floats:
        """omega."""
        return joined(first.sample_weight for first in self._first)

    @cached_property
    def active(self) -> Ints:
        """Examples of positive weight, the ones that a pass visits."""
        return np.flatnonzero(self.sample_weight > 0).astype(np.int64)

    @cached_property
    def gold(self) -> Gold:
        """Gold labellings (indptr, slots, counts); slots are numbered within their example."""
        indptr, slots, counts = zip(*self._run("gold"), strict=True)
        return joined_pointers(indptr), joined(slots), joined(counts)

    @cached_property
    def n_slots(self) -> int:
        """Slots of all examples."""
        return self._ends(True)[-1]

    @cached_property
    def slot_offsets(self) -> Ints:
        """Slots of example i are slot_offsets[i]:slot_offsets[i + 1] of arrays with a value per slot."""
        return joined_pointers(self._run("slot_offsets"))

    @cached_property
    def facts(self) -> Facts:
        """What all batches are."""
        found = [first.facts for first in self._first]
        shared = frozenset.intersection(*(facts.capabilities for facts in found))
        if len(found) == 1:
            shared |= {Capability.ONE_BATCH}
        if self._parts is not None:
            shared |= {Capability.IN_MEMORY}
        if self._executor.files is not None:
            shared |= {Capability.BLOCK_FILES}
        structures = list(dict.fromkeys(facts.structure for facts in found))
        batches = f" in {len(found)} batches" if len(found) > 1 else ""
        return Facts(shared, max(facts.row_length for facts in found), " and ".join(structures) + batches)

    @cached_property
    def explicit_weights(self) -> bool:
        """Whether weights are coordinates (with kernels they are coefficients)."""
        return all(first.explicit_weights for first in self._first)

    @cached_property
    def inner_product(self) -> Callable[[Floats, Floats, int], float]:
        """<w, v> in weight space, on some threads. With a kernel it takes the batch's own features."""
        if self._parts is not None and len(self._parts) == 1:
            return self._parts[0].features.dot
        return dot

    def lacks(self, capability: str) -> str:
        """Why a capability is missing, where there is more to say than its name."""
        return next(filter(None, self._run("lacks", capability)), "")

    # what some examples are

    def psi2_bounds(self, examples: Ints) -> Floats:
        """Upper bounds of max_y |A_i'(g_i - counts(y))|^2 of these examples."""
        return np.array(self._of_examples("psi2_bounds", examples), dtype=np.float64)

    def gold_sizes(self, examples: Ints) -> Floats:
        """Parts of the gold labellings of these examples."""
        return np.array(self._of_examples("gold_sizes", examples), dtype=np.float64)

    def feature_sums(self, examples: Ints) -> list[tuple[Ints, Floats]]:
        """(indices, values) of the sum of all slots' feature vectors, for each of these examples."""
        return self._of_examples("feature_sums", examples)

    def example_sizes(self, examples: Ints) -> list[tuple[int, float]]:
        """(slots, numbers that inference works on) of these examples; infinitely many where it is Python code."""
        return self._of_examples("example_sizes", examples)

    # primal

    def losses(self, weights: Floats) -> float:
        """sum_i omega_i phi(smax_tau(theta_i + kappa c_i) - <theta_i, g_i>).

        With slack rescaling: an upper bound of sum_i omega_i max_y c_i(y) (1 + <theta_i, counts(y) - g_i>).
        """
        total: float = added(self._run("value", weights))
        return total

    def margins(self, weights: Floats, temperature: float) -> Floats:
        """smax(theta_i + kappa c_i) - <theta_i, g_i> at this temperature, 0 where the weight is zero."""
        return joined(self._run("margins", weights, temperature))

    def plane(self, weights: Floats, examples: ArrayLike | None = None) -> tuple[float, Floats, float]:
        """(losses, u, b) at the oracle's answer to w: the plane that touches the losses there.

        With slack rescaling it may stay below the upper bound that is given for the losses. examples: numbers of the
        examples whose losses are summed, each as often as it is named (None: all once; not with slack rescaling).
        """
        if examples is None:
            value, u, b = added_up(self._run("plane", weights))
            return value, u, b
        if self.loss.rescaling == "slack":
            raise ValueError("examples: the plane of some examples is not available with slack rescaling")
        chosen = check_examples(examples, self.n_examples)
        if not len(chosen):
            return 0.0, np.zeros(self.n_weights), 0.0
        value, u, b = added_up(found for _, found in self._run_on(chosen, "plane_of", weights))
        return value, u, b

    def plane_at(self, weights: Floats, temperature: float, marginals: Floats) -> tuple[float, Floats, float, float]:
        """(losses, u, b, sum omega s H) at p ~ exp((theta + kappa c) / temperature), whatever the loss's own is.

        The losses are those of this temperature; u and b are of p as a point of this problem's dual. p's expected
        counts go to `marginals` (those of examples of weight zero are left alone).
        """
        blocks = self._slot_blocks(marginals)
        results = self._run("plane_at", weights, temperature, blocks=((block,) for block in blocks))
        value, u, b, entropy = added_up(written(results, blocks))
        return value, u, b, entropy

    def hessian_product(self, weights: Floats, every: int, marginals: Floats | None, direction: Floats) -> Floats:
        """(Hessian of the losses at w) v, of every `every`-th run; marginals: expected counts at w, if known.

        The point gets a new name each time. Where a batch stays, what was computed there for it is kept until the next.
        """
        return self._sum("hessian_product", weights, every, direction, blocks=self._or_nothing(marginals))

    def hessian_diagonal(self, weights: Floats, every: int, marginals: Floats | None) -> Floats:
        """Something near the diagonal of the Hessian of the losses at w (see `_core.Hessian.diagonal`)."""
        return self._sum("hessian_diagonal", weights, every, blocks=self._or_nothing(marginals))

    def hessian_partial(self, weights: Floats, every: int, marginals: Floats | None) -> bool:
        """Whether they are estimates from a part of the examples (where there are enough of them)."""
        return any(self._run("hessian_partial", weights, every, blocks=self._or_nothing(marginals)))

    # dual

    def terms_of_scores(self, scores: Floats, moved: tuple[Floats, Floats] | None = None) -> tuple[Floats, float]:
        """(u, b) of the Gibbs distributions with these slot scores.

        moved, where labellings are one part: the share of every slot's probability that stays in each example, and the
        proportions in which slots get what the others lose.
        """
        return self._terms("dual_gibbs", moved, blocks=((block,) for block in self._slot_blocks(scores)))

    def terms_of_linear(
        self, z: Floats, cost_scale: float, moved: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, float]:
        """(u, b) of slot scores A_i z + cost_scale c_i, which are never stored; moved: as above."""
        return self._terms("dual_linear", z, cost_scale, moved)

    def terms_of_counts(
        self, counts: Floats, mass: Floats | None = None, entropies: Floats | None = None
    ) -> tuple[Floats, float]:
        """(u, b) of expected counts s mu, masses s (None: 1) and entropies s H (None: 0)."""
        parts = (self._slot_blocks(counts), self._example_blocks(mass), self._example_blocks(entropies))
        return self._terms("dual_slots", blocks=zip(*parts, strict=True))

    def terms_of_used_slots(self, indptr: Ints, slots: Ints, counts: Floats, mass: Floats) -> tuple[Floats, float]:
        """(u, b) of expected counts given by the slots that are used: slots[indptr[i]:indptr[i + 1]] of example i."""
        if self.n_batches == 1:
            return self._terms("dual_sparse", blocks=[(indptr, slots, counts, mass)])
        blocks = []
        for start, stop in self._ranges(False):
            first, last = int(indptr[start]), int(indptr[stop])
            used = slots[first:last], counts[first:last]
            blocks.append((indptr[start : stop + 1] - first, *used, mass[start:stop]))
        return self._terms("dual_sparse", blocks=blocks)

    def terms_of_cliques(self, marginals: Floats) -> tuple[Floats, float]:
        """(u, b) of clique marginals of all examples end to end."""
        return self._terms("dual_cliques", blocks=self._clique_blocks(marginals))

    @cached_property
    def clique_starts(self) -> Ints:
        """Clique marginals of example i are clique_starts[i]:clique_starts[i + 1] of arrays of all of them."""
        return joined_pointers(self._run("clique_starts"))

    def clique_range(self, part: Part) -> slice:
        """Where the clique marginals of a batch's examples are."""
        return slice(int(self.clique_starts[part.examples.start]), int(self.clique_starts[part.examples.stop]))

    def read_cliques(self, marginals: Floats) -> tuple[Floats, Floats]:
        """(expected counts, entropies) of clique marginals."""
        counts, entropies = zip(*self._run("read_cliques", blocks=self._clique_blocks(marginals)), strict=True)
        return joined(counts), joined(entropies)

    def clique_disagreement(self, marginals: Floats) -> tuple[float, str]:
        """By how much clique marginals fail to be those of distributions, and the first reason to refuse them or ""."""
        off, complaints = zip(*self._run("clique_disagreement", blocks=self._clique_blocks(marginals)), strict=True)
        return max(off), next(filter(None, complaints), "")

    def labelling_complaint(self, batches: Iterable[dict[str, NDArray[Any]]]) -> str:
        """Why labellings or mixtures, given batch by batch, do not belong to the structures; "" if they do."""
        return next(filter(None, self._run("labelling_complaint", blocks=((batch,) for batch in batches))), "")

    def cliques_of_scores(self, scores: Floats) -> Floats:
        """Clique marginals of the Gibbs distributions with these slot scores."""
        return joined(self._run("cliques_of_scores", blocks=((block,) for block in self._slot_blocks(scores))))

    def scores_of_cliques(
        self, marginals: Floats, floor: float, tolerance: float, most: int
    ) -> tuple[Floats, int, int]:
        """Slot scores of the Gibbs distributions nearest to these clique marginals (`scores_of_counts`)."""
        return self._scores("scores_of_cliques", floor, tolerance, most, blocks=self._clique_blocks(marginals))

    def scores_of_counts(self, counts: Floats, floor: float, tolerance: float, most: int) -> tuple[Floats, int, int]:
        """Slot scores of the Gibbs distributions with these expected counts, but for a share `floor` of uniform ones.

        Then the inferences that this took, at most `most` per example, and of how many examples the counts are still
        off by more than `tolerance` of their sum.
        """
        blocks = ((block,) for block in self._slot_blocks(counts))
        return self._scores("scores_of_counts", floor, tolerance, most, blocks=blocks)

    def marginals_of_scores(self, scores: Floats) -> tuple[Floats, Floats]:
        """(expected counts, entropies) of the Gibbs distributions with these slot scores."""
        blocks = ((block,) for block in self._slot_blocks(scores))
        counts, entropies = zip(*self._run("marginals_of_scores", blocks=blocks), strict=True)
        return joined(counts), joined(entropies)

    def linear_scores(self, z: Floats, cost_scale: float) -> Floats:
        """Slot scores A_i z + cost_scale * c_i of all examples end to end."""
        scores: Floats = joined(self._run("scores_of_weights", z))
        if cost_scale:
            scores += cost_scale * self.slot_costs()
        return scores

    def near_gold_scores(self, sharpness: float) -> Floats:
        """Slot scores -sharpness * c_i, near the gold labelling."""
        return joined(self._run("near_gold_scores", sharpness))

    def slot_costs(self) -> Floats:
        """c_i of all examples end to end."""
        return -self.near_gold_scores(1.0)

    def slot_curvatures(self) -> Floats | None:
        """|A_i' e_a|^2 of every slot a (-1 where no labelling uses it); None unless all A_i A_i' are diagonal."""
        found = list(self._run("curvatures"))
        if any(part is None for part in found):
            return None
        whole: Floats = joined(found)
        return whole

    # batch steps

    def eg_step(
        self, weights: Floats, step: float, scores: Floats, moved: Floats
    ) -> tuple[Floats, float, float, float]:
        """moved = (1 - step tau) scores + step (A w + kappa c); it may be the same array as scores.

        Gives (u, b) and sum omega log Z of the Gibbs distributions p with scores `moved`, and
        sum omega (H(p) + <mu, scores>).
        """
        rooms = self._slot_blocks(moved)
        blocks = zip(self._slot_blocks(scores), map(Room, rooms), strict=True)
        u, b, log_partition, reference = added_up(written(self._run("eg_step", weights, step, blocks=blocks), rooms))
        return u, b, log_partition, reference

    def eg_linear_point(
        self, z: Floats, cost_scale: float, old_cost_scale: float
    ) -> tuple[Floats, float, float, float]:
        """The same sums for the slot scores A z + cost_scale c, and sum omega (H(p) + old_cost_scale <mu, c>)."""
        u, b, log_partition, reference = added_up(self._run("eg_linear_point", z, cost_scale, old_cost_scale))
        return u, b, log_partition, reference

    def gold_features(self) -> Floats:
        """sum_i omega_i A_i'g_i."""
        return self._sum("sum_of_gold_features")

    # rounding

    def rounding_sums(self, fixed: float, examples: float) -> tuple[list[float], list[float], float]:
        """Sums of scores, level and transposed, sums of their squares, and the largest reach (`_core.RoundingSums`)."""
        found = list(self._run("sums_of_rounding", fixed, examples))
        totals = added_up(terms[:-1] for terms in found)
        return totals[:3], totals[3:], max(terms[-1] for terms in found)

    def largest_cost(self) -> float:
        """The largest cost of any labelling."""
        return float(max(self._run("largest_cost")))

    # single examples

    def in_memory(self) -> tuple[Part, ...]:
        """The batches as solvers that visit single examples need them (capability "batches in memory")."""
        return self._visited

    @cached_property
    def _visited(self) -> tuple[Part, ...]:
        # kept: a pass over few examples takes microseconds
        if self._parts is None:
            raise ValueError("the batches of this problem do not lie in memory")
        ranges = enumerate(zip(self._parts, self._ranges(False), self._ranges(True), strict=True))
        return tuple(
            Part(sums.objective, sums.structure, sums.features, slice(*examples), slice(*slots), number)
            for number, (sums, examples, slots) in ranges
        )

    def visits(self, order: Ints) -> Iterator[tuple[Part, Ints]]:
        """Batch after batch, which of its examples come in this order, by their numbers within the batch."""
        parts = self.in_memory()
        if len(parts) == 1:
            yield parts[0], order
            return
        for part in parts:
            start, stop = part.examples.start, part.examples.stop
            yield part, order[(order >= start) & (order < stop)] - start

    def rounds(self, order: Ints) -> Iterator[tuple[Part, Ints]]:
        """As `visits`, but in up to `ROUNDS` rounds over the batches, each for the next part of the order.

        The last round has every batch, some perhaps without examples; the others have those with some.
        """
        n_rounds = min(ROUNDS, max(1, len(order) // self.n_batches)) if self.n_batches > 1 else 1
        for k, some in enumerate(np.array_split(order, n_rounds)):
            for part, own in self.visits(some):
                if len(own) or k == n_rounds - 1:
                    yield part, own

    @cached_property
    def _parts(self) -> list[BatchSums] | None:
        found = [self._executor.in_memory(reference, self.loss) for reference in self._references]
        here = [sums for sums in found if sums is not None]
        return here if len(here) == len(found) else None

    # walks

    @property
    def files(self) -> str:
        """The folder for files of walks (capability "files for blocks")."""
        if self._executor.files is None:
            raise ValueError("there is no folder for files of blocks")
        return self._executor.files

    @property
    def block_room(self) -> int | None:
        """Bytes that a walk may keep of one batch's dual variables; None: any number."""
        return self._executor.block_room

    @property
    def files_anywhere(self) -> bool:
        """Whether they may lie in any other folder as well."""
        return self._executor.files_anywhere

    @property
    def overwrites(self) -> bool:
        """Whether walks may write over files that are no longer needed."""
        return self._executor.overwrites

    @property
    def roomy(self) -> bool:
        """Whether there is room for everything that walks find on batches, and on all of them."""
        return self._executor.roomy

    @property
    def places(self) -> int:
        """In how many places walks are done at the same time, at most one per batch."""
        return min(self._executor.places, self.n_batches)

    def walk(self, walks: Sequence[Walk], batches: Sequence[Sequence[int]]) -> list[Any]:
        """What each walk finds on the batches of these numbers, in the order of the walks."""
        own = [[self._references[number] for number in numbers] for numbers in batches]
        return list(self._executor.walk(walks, own))

    # the work itself

    def ask(self, task: str, *shared: Any) -> list[Any]:
        """What a task that `register_task` knows gives for each batch, in the order of the batches.

        The task is called as ``task(sums, n_jobs, *shared)`` wherever the batch is: in this process, or in another one.
        """
        return list(self._run(task, *shared))

    def _run(self, task: str, *shared: Any, blocks: Iterable[tuple[Any, ...]] | None = None) -> Iterator[Any]:
        """What a task gives for each batch."""
        own = [()] * self.n_batches if blocks is None else list(blocks)
        work = Work(task, self.loss, shared, self.n_jobs, registered(task))
        return self._executor.run(work, self._references, own)

    def _sum(self, task: str, *shared: Any, blocks: Iterable[tuple[Any, ...]] | None = None) -> Floats:
        total: Floats = added(self._run(task, *shared, blocks=blocks))
        return total

    def _terms(self, task: str, *shared: Any, blocks: Iterable[tuple[Any, ...]] | None = None) -> tuple[Floats, float]:
        u, b = added_up(self._run(task, *shared, blocks=blocks))
        return u, b

    def _scores(self, task: str, *shared: Any, blocks: Iterable[tuple[Any, ...]]) -> tuple[Floats, int, int]:
        scores, inferences, unmatched = zip(*self._run(task, *shared, blocks=blocks), strict=True)
        return joined(scores), sum(inferences), sum(unmatched)

    def _of_examples(self, task: str, examples: Ints) -> list[Any]:
        """A task's answers for these examples, one each, in their order."""
        answers: list[Any] = [None] * len(examples)
        for places, found in self._run_on(examples, task):
            for place, answer in zip(places.tolist(), found, strict=True):
                answers[place] = answer
        return answers

    def _run_on(self, examples: Ints, task: str, *shared: Any) -> Iterator[tuple[Ints, Any]]:
        """For each batch of these examples their places in the array, and what a task gives for them.

        Batches without any of them are not opened.
        """
        owner = np.searchsorted(self._ends(False), examples, side="right")
        ranges, asked = self._ranges(False), np.unique(owner).tolist()
        members = [np.flatnonzero(owner == number) for number in asked]
        blocks = [(examples[where] - ranges[number][0],) for number, where in zip(asked, members, strict=True)]
        work = Work(task, self.loss, shared, self.n_jobs)
        results = self._executor.run(work, [self._references[number] for number in asked], blocks)
        return zip(members, results, strict=True)

    def _ends(self, of_slots: bool) -> list[int]:
        """Where batches end in arrays of all slots, or of all examples."""
        sizes = [reference.n_slots if of_slots else reference.n_examples for reference in self._references]
        return [int(end) for end in np.cumsum(sizes)]

    def _ranges(self, of_slots: bool) -> list[tuple[int, int]]:
        ends = self._ends(of_slots)
        return list(zip([0, *ends], ends, strict=False))

    def _slot_blocks(self, array: Floats) -> list[Floats]:
        if self.n_batches == 1:
            return [array]
        if array.shape != (self.n_slots,):
            raise ValueError(f"an array of shape {array.shape} for {self.n_slots} slots")
        return [array[start:stop] for start, stop in self._ranges(True)]

    def _clique_blocks(self, marginals: Floats) -> list[tuple[Floats]]:
        starts = self.clique_starts
        if marginals.shape != (starts[-1],):
            raise ValueError(f"{len(marginals)} clique marginals given, the structure has {starts[-1]}")
        return [(marginals[starts[start] : starts[stop]],) for start, stop in self._ranges(False)]

    def _or_nothing(self, marginals: Floats | None) -> list[tuple[Floats | None]]:
        if marginals is None:
            return [(None,)] * self.n_batches
        return [(block,) for block in self._slot_blocks(marginals)]

    def _example_blocks(self, array: Floats | None) -> Sequence[Floats | None]:
        if array is None or self.n_batches == 1:
            return [array] * self.n_batches
        if array.shape != (self.n_examples,):
            raise ValueError(f"an array of shape {array.shape} for {self.n_examples} examples")
        return [array[start:stop] for start, stop in self._ranges(False)]


def check_size(n_examples: int) -> None:
    """ValueError if there is nothing to sum over."""
    if n_examples == 0:
        raise ValueError("a problem needs at least one example")


def check_examples(examples: ArrayLike, n_examples: int) -> Ints:
    """Return numbers of examples as an array; raise ValueError for what is not one."""
    chosen = np.asarray(examples)
    if chosen.ndim != 1 or (chosen.dtype.kind not in "iu" and chosen.size):
        raise ValueError(f"examples: whole numbers are needed, got an array of {chosen.dtype}, shape {chosen.shape}")
    bad = np.flatnonzero((chosen < 0) | (chosen >= n_examples))
    if bad.size:
        raise ValueError(f"examples: {chosen[bad[0]]} is not between 0 and {n_examples - 1}")
    return chosen.astype(np.int64, copy=False)
