"""A tiny problem of each kind in the table of solvers and problems (`solvers.engine.registry.KINDS`)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers.kernel_maps import kernel_map
from partwise.features import (
    DenseSegment,
    FeatureMap,
    LinearMap,
    SlotSegment,
    TableRows,
    attribute_map,
    second_order_map,
    segment_map,
    slot_map,
)
from partwise.features.maxent import maxent_map
from partwise.problem import Batch, LabelledBatch, Problem
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet, Penalty
from partwise.structures import (
    Chain,
    Grammar,
    Multiclass,
    ProjectiveTree,
    SecondOrderChain,
    SegmentChain,
    SpanningTree,
    Structure,
    graph,
)
from partwise.support.arrays import Floats, Ints


@dataclass(frozen=True)
class Specimen:
    """A kind of problem: its name, a function that makes a batch, a penalty, and the number of batches."""

    name: str
    make: Callable[[], LabelledBatch]
    penalty: Penalty
    batches: int

    def problem(self, loss: Loss) -> Problem:
        """Return a problem of this kind with the given loss."""
        return Problem.of([self.make() for _ in range(self.batches)], loss, self.penalty)


#: The penalty of specimens that differ in something else.
USUAL = L2(1.0)
SPECIMENS: dict[str, Specimen] = {}
Maker = Callable[[], LabelledBatch]


def specimen(name: str, *, penalty: Penalty = USUAL, batches: int = 1) -> Callable[[Maker], Maker]:
    """Add the specimen that the decorated function makes. Of stacked decorators the lowest is applied first."""

    def register(make: Maker) -> Maker:
        SPECIMENS[name] = Specimen(name, make, penalty, batches)
        return make

    return register


def _integers(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def _first_labels(structure: Multiclass | Chain | SecondOrderChain, features: FeatureMap, rows: int) -> LabelledBatch:
    """Return a batch whose gold labellings have the first label everywhere."""
    return LabelledBatch(Batch(structure, features), structure.encode(np.zeros(rows, dtype=np.int64)))


@specimen("Graph")
def _triangle() -> LabelledBatch:
    """A triangle of three vertices with two labels each, and one weight per slot."""
    structure = graph([([2, 2, 2], [(0, 1), (1, 2), (0, 2)], [0, 0, 0])])
    n = structure.num_slots(0)
    each = np.arange(n + 1, dtype=np.int64)
    features = LinearMap([SlotSegment(n, each[[0, n]], each, each[:-1].copy(), None, uses=3)])
    return LabelledBatch(Batch(structure, features), structure.encode(_integers(0, 0, 0)))


@specimen("Multiclass, l1 > 0", penalty=ElasticNet(1.0))
@specimen("Multiclass, l2 = 0", penalty=L2(0.0))
@specimen("Multiclass")
def _one_label() -> LabelledBatch:
    """One example with two labels and one dense input."""
    structure = Multiclass(1, 2)
    return _first_labels(structure, attribute_map(structure, np.ones((1, 1))), 1)


@specimen("Chain, two batches", batches=2)
@specimen("Chain, l1 > 0", penalty=ElasticNet(1.0))
@specimen("Chain, elastic net", penalty=ElasticNet(1.0, 1.0))
@specimen("Chain, l2 = 0", penalty=L2(0.0))
@specimen("Chain")
def _chain() -> LabelledBatch:
    """One chain of two positions with two labels and one dense input per position."""
    structure = Chain(_integers(2), 2)
    return _first_labels(structure, attribute_map(structure, np.ones((2, 1))), 2)


@specimen("SecondOrderChain")
def _second_order_chain() -> LabelledBatch:
    structure = SecondOrderChain(_integers(3), 2)
    return _first_labels(structure, second_order_map(structure, np.ones((3, 1))), 3)


@specimen("SegmentChain")
def _segment_chain() -> LabelledBatch:
    """One sequence of three positions, with segments of at most two positions; one segment has its own feature row."""
    structure = SegmentChain(_integers(3), 2, 2, listed=(_integers(0, 1), _integers(1), _integers(3)))
    features = segment_map(structure, TableRows(np.ones((3, 1))), whole=TableRows(np.ones((1, 1))))
    gold = structure.encode(_integers(0, 0, 0), np.array([1, 1, 0], dtype=np.uint8))
    return LabelledBatch(Batch(structure, features), gold)


@specimen("ProjectiveTree")
def _projective_tree() -> LabelledBatch:
    return _tree(ProjectiveTree)


@specimen("SpanningTree")
def _spanning_tree() -> LabelledBatch:
    return _tree(SpanningTree)


def _tree(kind: type[ProjectiveTree] | type[SpanningTree]) -> LabelledBatch:
    """One sentence of three words with one dense input per word; each word has four possible heads, a slot each."""
    structure = kind(_integers(3))
    features = LinearMap([DenseSegment(np.ones((3, 1)), _integers(0, 3), 4, 4)])
    return LabelledBatch(Batch(structure, features), structure.encode(_integers(0, 1, 1)))


@specimen("Grammar")
def _grammar() -> LabelledBatch:
    """A grammar of one symbol and one rule over three words: two derivations, and one weight per slot."""
    only = _integers(0)
    structure = Grammar(_integers(3), 1, np.zeros((1, 3), dtype=np.int64), only, only, span_columns=only)
    features = slot_map(structure, np.eye(structure.num_slots(0)), uses=2)
    nodes = np.array([[0, 0, 3], [0, 0, 1], [0, 1, 3], [0, 1, 2], [0, 2, 3]], dtype=np.int64)
    return LabelledBatch(Batch(structure, features), structure.encode(nodes))


class _MaxOracle(Structure):
    """A user-defined structure with the fewest capabilities: one example with two labels."""

    def __init__(self) -> None:
        super().__init__(1)
        self.other = Multiclass(1, 2)

    def num_slots(self, i: int) -> int:
        return self.other.num_slots(i)

    def maximize(self, i: int, scores: Floats) -> tuple[float, Ints, Floats]:
        return self.other.maximize(i, scores)

    def cost(self, i: int, slots: Ints, counts: Floats) -> Floats:
        return self.other.cost(i, slots, counts)


class _BothOracles(_MaxOracle):
    """A user-defined structure with the capabilities that most solvers need."""

    def log_partition(self, i: int, scores: Floats, temperature: float = 1.0) -> tuple[float, Floats, float]:
        return self.other.log_partition(i, scores, temperature)


@specimen("Python structure with both oracles")
def _both_oracles() -> LabelledBatch:
    like = _one_label()
    return LabelledBatch(Batch(_BothOracles(), like.batch.features), like.gold)


@specimen("Python structure with the maximum alone")
def _max_oracle() -> LabelledBatch:
    like = _one_label()
    return LabelledBatch(Batch(_MaxOracle(), like.batch.features), like.gold)


@specimen("Multiclass with a kernel")
def _one_label_with_a_kernel() -> LabelledBatch:
    structure = Multiclass(1, 2)
    return _first_labels(structure, kernel_map(structure, np.ones((1, 1)), "rbf"), 1)


@specimen("Chain with a kernel")
def _chain_with_a_kernel() -> LabelledBatch:
    structure = Chain(_integers(2), 2)
    return _first_labels(structure, kernel_map(structure, np.ones((2, 1)), "rbf"), 2)


@specimen("Multiclass, maxent map, two batches", batches=2)
@specimen("Multiclass, maxent map, l2 = 0", penalty=L2(0.0))
@specimen("Multiclass, maxent map")
def _maxent() -> LabelledBatch:
    return _of_value(1.0)


@specimen("Multiclass, maxent map, negative features")
def _negative() -> LabelledBatch:
    return _of_value(-1.0)


def _of_value(value: float) -> LabelledBatch:
    structure = Multiclass(1, 2)
    return _first_labels(structure, maxent_map(structure, np.full((1, 1), value)), 1)
