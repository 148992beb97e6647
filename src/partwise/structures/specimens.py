"""Specimens of the structures."""

import numpy as np

from partwise._core import (
    Chain,
    DenseSegment,
    Grammar,
    LinearMap,
    Multiclass,
    ProjectiveTree,
    SecondOrderChain,
    SegmentChain,
    SpanningTree,
    Structure,
)
from partwise.features import TableRows, attribute_map, second_order_map, segment_map, slot_map
from partwise.problem import Batch, LabelledBatch
from partwise.problem.penalties import L2, ElasticNet
from partwise.specimens import specimen
from partwise.support.arrays import Floats, Ints


@specimen("Multiclass, l1 > 0", penalty=ElasticNet(1.0))
@specimen("Multiclass, l2 = 0", penalty=L2(0.0))
@specimen("Multiclass")
def one_label() -> LabelledBatch:
    """One example with two labels and one dense input."""
    structure = Multiclass(1, 2)
    return LabelledBatch(Batch(structure, attribute_map(structure, np.ones((1, 1)))), gold_of(structure, 1))


@specimen("Chain, two batches", batches=2)
@specimen("Chain, l1 > 0", penalty=ElasticNet(1.0))
@specimen("Chain, elastic net", penalty=ElasticNet(1.0, 1.0))
@specimen("Chain, l2 = 0", penalty=L2(0.0))
@specimen("Chain")
def chain() -> LabelledBatch:
    """One chain of two positions with two labels and one dense input per position."""
    structure = Chain(np.array([2], dtype=np.int64), 2)
    return LabelledBatch(Batch(structure, attribute_map(structure, np.ones((2, 1)))), gold_of(structure, 2))


@specimen("SecondOrderChain")
def _second_order_chain() -> LabelledBatch:
    structure = SecondOrderChain(np.array([3], dtype=np.int64), 2)
    features = second_order_map(structure, np.ones((3, 1)))
    return LabelledBatch(Batch(structure, features), structure.encode(np.zeros(3, dtype=np.int64)))


@specimen("SegmentChain")
def _segment_chain() -> LabelledBatch:
    """One sequence of three positions, segments of at most two, one of them listed."""
    one, three = (np.array([k], dtype=np.int64) for k in (1, 3))
    structure = SegmentChain(three, 2, 2, listed=(np.array([0, 1], dtype=np.int64), one, three))
    features = segment_map(structure, TableRows(np.ones((3, 1))), whole=TableRows(np.ones((1, 1))))
    labels, begins = np.zeros(3, dtype=np.int64), np.array([1, 1, 0], dtype=np.uint8)
    return LabelledBatch(Batch(structure, features), structure.encode(labels, begins))


@specimen("ProjectiveTree")
def _projective_tree() -> LabelledBatch:
    return _tree(ProjectiveTree)


@specimen("SpanningTree")
def _spanning_tree() -> LabelledBatch:
    return _tree(SpanningTree)


def _tree(kind: type[ProjectiveTree] | type[SpanningTree]) -> LabelledBatch:
    """One sentence of three words with one dense input per word, whose four heads are a row of slots."""
    structure = kind(np.array([3], dtype=np.int64))
    features = LinearMap([DenseSegment(np.ones((3, 1)), np.array([0, 3], dtype=np.int64), 4, 4)])
    return LabelledBatch(Batch(structure, features), structure.encode(np.array([0, 1, 1], dtype=np.int64)))


@specimen("Grammar")
def _grammar() -> LabelledBatch:
    """One sentence of three words, one symbol, one rule and one column of spans: two derivations, a weight per slot."""
    only = np.zeros(1, dtype=np.int64)
    rules = np.zeros((1, 3), dtype=np.int64)
    structure = Grammar(np.array([3], dtype=np.int64), 1, rules, only, only, span_columns=only)
    features = slot_map(structure, np.eye(structure.num_slots(0)), uses=2)
    nodes = np.array([[0, 0, 3], [0, 0, 1], [0, 1, 3], [0, 1, 2], [0, 2, 3]], dtype=np.int64)
    return LabelledBatch(Batch(structure, features), structure.encode(nodes))


class _MaxOracle(Structure):
    """A user-defined structure with the fewest capabilities: the two labels of one example."""

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
    """A user-defined structure that can do what most solvers need."""

    def log_partition(self, i: int, scores: Floats, temperature: float = 1.0) -> tuple[float, Floats, float]:
        return self.other.log_partition(i, scores, temperature)


@specimen("Python structure with both oracles")
def _both_oracles() -> LabelledBatch:
    like = one_label()
    return LabelledBatch(Batch(_BothOracles(), like.batch.features), like.gold)


@specimen("Python structure with the maximum alone")
def _max_oracle() -> LabelledBatch:
    like = one_label()
    return LabelledBatch(Batch(_MaxOracle(), like.batch.features), like.gold)


def gold_of(structure: Multiclass | Chain, rows: int) -> tuple[Ints, Ints, Floats]:
    """Gold labellings of nothing but the first label."""
    return structure.encode(np.zeros(rows, dtype=np.int64))
