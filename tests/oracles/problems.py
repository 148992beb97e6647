"""Small random problems of which every quantity is known by enumeration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .enumerate import Enumeration, enumerate_chain, enumerate_multiclass, enumeration_of
from .grammars import KnownGrammar, Spec, nodes_array, wrong_constituents
from .graphs import tied_graphs
from .objective import LOSSES, DenseProblem, hamming_cost, matrix_of
from .trees import wrong_heads

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Every generator makes an empty column and one that occurs only in this example, whose weight is 0.
WEIGHTLESS = 2
SEGMENTS = ("segments", "second-order")
TREES = {"projective": "ProjectiveTree", "spanning": "SpanningTree"}
KINDS = ("multiclass", "chain-tied", "chain-tied-ends", "chain-untied", "chain-masked")


def bare_columns(n: int) -> tuple[int, int]:
    """Choose, of n columns, the empty one and the one that occurs only where the weight is 0; neither is the last."""
    return n // 2, n // 2 - 1


def random_weights(rng: np.random.Generator, n: int, plain: bool = False) -> Floats:
    """Draw weights of examples. One weight is 0 unless `plain`."""
    omega = rng.uniform(0.3, 2.5, n)
    if n > WEIGHTLESS and not plain:
        omega[WEIGHTLESS] = 0.0
    return omega


def dense_problem(kind: str, loss: str, seed: int, l2: float = 0.7, n: int = 4, dim: int = 6) -> DenseProblem:
    """Make a problem with dense random matrices, without using the library. All weights are positive."""
    rng = np.random.default_rng(seed)
    n_labels, width = 3, 4
    examples: list[Enumeration] = []
    rows = []
    for _ in range(n):
        length = 1 if kind == "multiclass" else int(rng.integers(1, 4))
        if kind == "multiclass":
            examples.append(enumerate_multiclass(n_labels, width))
        else:
            example = enumerate_chain(length, n_labels, width, kind != "chain-untied", kind == "chain-tied-ends")
            if kind == "chain-masked":
                keep = np.sort(rng.choice(len(example), max(2, len(example) // 2), replace=False))
                example = replace(
                    example,
                    labellings=example.labellings[keep],
                    counts=example.counts[keep],
                    cliques=example.cliques[keep],
                )
            examples.append(example)
        rows.append(length)
    gold = [e.counts[rng.integers(len(e))] for e in examples]
    cost = [hamming_cost(g, t, n_labels, width) for g, t in zip(gold, rows, strict=True)]
    matrices = [rng.normal(size=(e.counts.shape[1], dim)) for e in examples]
    temperature, cost_scale, link = LOSSES[loss]
    omega = random_weights(rng, n, plain=True)
    return DenseProblem(examples, matrices, gold, cost, omega, l2, temperature, cost_scale, link)


@dataclass(frozen=True)
class Case:
    """A structure and a feature map of the core, with their enumerated labellings and matrices."""

    structure: Any
    features: Any
    gold: tuple[Ints, Ints, Floats]
    sample_weight: Floats
    examples: list[Enumeration]
    matrices: list[Floats]
    rows: list[int]

    @property
    def n(self) -> int:
        return len(self.examples)

    @property
    def gold_counts(self) -> list[Floats]:
        indptr, slots, counts = self.gold
        dense = []
        for i, example in enumerate(self.examples):
            row = np.zeros(example.counts.shape[1])
            part = slice(indptr[i], indptr[i + 1])
            np.add.at(row, slots[part], counts[part])
            dense.append(row)
        return dense

    def dense(self, loss: str, l2: float) -> DenseProblem:
        """The enumerated problem."""
        temperature, cost_scale, link = LOSSES[loss]
        gold = self.gold_counts
        if isinstance(self.structure, KnownGrammar):
            cost = [wrong_constituents(self.structure.spec, g, t) for g, t in zip(gold, self.rows, strict=True)]
        elif hasattr(self.structure, "single_root"):
            cost = [wrong_heads(g, t) for g, t in zip(gold, self.rows, strict=True)]
        else:
            from partwise import _core

            n_labels = int(np.max(self.structure.n_labels))
            shape = n_labels, _core.padded_width(n_labels)
            cost = [hamming_cost(g, t, *shape) for g, t in zip(gold, self.rows, strict=True)]
        return DenseProblem(
            self.examples, self.matrices, gold, cost, self.sample_weight, l2, temperature, cost_scale, link
        )

    def objective(self, loss: str, structure: Any = None) -> Any:
        """The core's objective of the same problem."""
        from partwise import _core

        temperature, cost_scale, link = LOSSES[loss]
        return _core.Objective(
            self.structure if structure is None else structure,
            self.features,
            *self.gold,
            temperature,
            cost_scale,
            link,
            None,
            self.sample_weight,
        )

    def split(self, slots: Floats) -> list[Floats]:
        """Split a vector over all examples' slots into one vector per example."""
        offsets = self.structure.slot_offsets()
        return [slots[a:b] for a, b in pairwise(offsets)]


def random_rows(
    rng: np.random.Generator, n_rows: int, n_attributes: int, values: bool, weightless: tuple[int, int] | None = None
) -> tuple[Ints, Ints, Floats | None]:
    """Draw CSR rows of attributes. Some attributes repeat inside a row, some are ignored (-1), and some rows are empty.

    weightless: the rows (first, one past the last) of an example with weight 0. With such rows, one attribute does not
    occur at all and another occurs only in these rows.
    """
    sizes = rng.integers(0, 5, n_rows)
    row_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    attributes = rng.integers(-1, n_attributes, row_ptr[-1]).astype(np.int64)
    if weightless is not None:
        empty, only_there = bare_columns(n_attributes)
        there = np.zeros(len(attributes), dtype=bool)
        there[row_ptr[weightless[0]] : row_ptr[weightless[1]]] = True
        attributes[there & (attributes == empty)] = only_there
        attributes[(attributes == empty) | (~there & (attributes == only_there))] = -1
    return row_ptr, attributes, rng.normal(size=row_ptr[-1]) if values else None


def maxent_case(
    seed: int,
    n: int = 6,
    n_labels: int = 3,
    n_attributes: int = 5,
    form: str = "real",
    pairs: str = "all",
    unit_weights: bool = False,
    plain: bool = False,
    part: tuple[int, int] | None = None,
) -> Case:
    """One label per example, with a feature map that has column access.

    form: "binary", "real" (non-negative), "negative", or "matrix" (features shared by labels). pairs: "all" (attribute,
    label) pairs or the "observed" ones. Every label occurs as a gold label. Every attribute but two (`bare_columns`)
    occurs in several examples. unit_weights: all weights are 1. plain, part: as in `make_case`.
    """
    from partwise import _core

    rng = np.random.default_rng(seed)
    labels = np.array([0, 1, 0, 2, 1] * n, dtype=np.int64)[:n] % n_labels
    structure: Any = _core.Multiclass(n if part is None else part[1] - part[0], n_labels)
    present = rng.random((n, n_attributes)) < 0.6
    present[0] = present[-1] = True
    if form == "matrix":
        cells = rng.random((n * n_labels, n_attributes)) < 0.5
        cells[:n_labels] = True
        table = cells * rng.choice([1.0, 0.5, 2.0], size=cells.shape)
    else:
        table = present * (1.0 if form == "binary" else rng.uniform(0.2, 1.5, size=present.shape))
        if form == "negative":
            table *= rng.choice([-1.0, 1.0], size=table.shape)
    empty, weightless = bare_columns(n_attributes)
    if not plain:
        table[:, empty] = 0.0
        table[np.arange(len(table)) // (len(table) // n) != WEIGHTLESS, weightless] = 0.0
    weight = np.ones(n) if unit_weights else random_weights(rng, n, plain)
    if part is not None:
        each = len(table) // n  # number of rows of each example
        table, labels, weight = table[part[0] * each : part[1] * each], labels[slice(*part)], weight[slice(*part)]
        n = len(labels)
    rows, columns = map(np.ascontiguousarray, np.nonzero(table))
    row_ptr = np.searchsorted(rows, np.arange(len(table) + 1)).astype(np.int64)
    values = None if form == "binary" else table[rows, columns]
    if form == "matrix":
        features: Any = _core.MaxentMap.of_matrix(n_labels, structure.width, n_attributes, row_ptr, columns, values)
    else:
        layout = (
            _core.RowLayout.dense(n_attributes, n_labels, structure.width)
            if pairs == "all"
            else _core.RowLayout.observed(n_attributes, n_labels, structure.width, row_ptr, columns, labels)
        )
        features = _core.MaxentMap(layout, row_ptr, columns, values)
    examples = [enumeration_of(structure, i) for i in range(n)]
    matrices = [matrix_of(features, i) for i in range(n)]
    return Case(structure, features, structure.encode(labels), weight, examples, matrices, [1] * n)


def tree_case(
    kind: str, seed: int, n: int, n_inputs: int, plain: bool = False, part: tuple[int, int] | None = None
) -> Case:
    """Sentences of three words with random trees. Arc (h, m) has the score x_m @ w_h, where x_m is the random input of
    word m; the four possible heads of a word are a row of slots."""
    from partwise import _core

    rng = np.random.default_rng(seed)
    lengths = np.full(n, 3, dtype=np.int64)
    structure: Any = getattr(_core, TREES[kind])(lengths)
    inputs = rng.normal(size=(3 * n, n_inputs))
    empty, weightless = bare_columns(n_inputs)
    if not plain:
        inputs[:, empty] = 0.0
        inputs[np.arange(3 * n) // 3 != WEIGHTLESS, weightless] = 0.0
    segment = _core.DenseSegment(inputs, 3 * np.arange(n + 1), 4, 4)
    features = _core.LinearMap([segment])
    examples = [enumeration_of(structure, i) for i in range(n)]
    heads = np.concatenate([example.labellings[rng.integers(len(example))] for example in examples])
    weight = random_weights(rng, n, plain)
    if part is not None:
        n, weight, examples = part[1] - part[0], weight[slice(*part)], examples[slice(*part)]
        lengths, words = lengths[:n], slice(3 * part[0], 3 * part[1])
        structure, heads = type(structure)(lengths), heads[words]
        features = _core.LinearMap([_core.DenseSegment(inputs[words].copy(), 3 * np.arange(n + 1), 4, 4)])
    gold = structure.encode(heads)
    matrices = [matrix_of(features, i) for i in range(n)]
    return Case(structure, features, gold, weight, examples, matrices, lengths.tolist())


def graph_case(seed: int, n: int, n_inputs: int, plain: bool = False, part: tuple[int, int] | None = None) -> Case:
    """Graphs whose vertices have random inputs, and whose edges share a table of weights."""
    from partwise import _core

    rng = np.random.default_rng(seed)
    structure: Any = tied_graphs(0, n)
    ptr = structure.vertex_ptr
    inputs = rng.normal(size=(int(ptr[-1]), n_inputs))
    empty, weightless = bare_columns(n_inputs)
    if not plain:
        inputs[:, empty] = 0.0
        inputs[np.repeat(np.arange(n), np.diff(ptr)) != WEIGHTLESS, weightless] = 0.0
    labels = rng.integers(0, 3, int(ptr[-1])).astype(np.int64)
    weight = random_weights(rng, n, plain)
    if part is not None:
        used = slice(ptr[part[0]], ptr[part[1]])
        structure, weight, labels, inputs = tied_graphs(*part), weight[slice(*part)], labels[used], inputs[used].copy()
        ptr, n = structure.vertex_ptr, part[1] - part[0]
    nodes = _core.DenseSegment(inputs, ptr, 3, 4)
    features = _core.LinearMap([nodes, _core.SharedSegment(12, np.diff(structure.clique_ptr))])
    examples = [enumeration_of(structure, i) for i in range(n)]
    matrices = [matrix_of(features, i) for i in range(n)]
    return Case(structure, features, structure.encode(labels), weight, examples, matrices, np.diff(ptr).tolist())


#: Two symbols of whole sentences and two of words, one of which is both. Symbols share columns, and one table lacks
#: some symbols.
SMALL_GRAMMAR = Spec(
    3,
    [(0, 0, 1), (0, 1, 1), (0, 1, 2), (2, 1, 1)],
    [0, 2],
    [1, 0],
    {"start": [0, -1, 1], "split": [0, 0, 0], "span": [0, -1, 1]},
)


def grammar_case(seed: int, n: int, n_inputs: int, plain: bool = False, part: tuple[int, int] | None = None) -> Case:
    """Sentences of one to four words with random derivations, and random features of slots."""
    from partwise.features import slot_map

    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, n).tolist()
    sizes = [SMALL_GRAMMAR.num_slots(length) for length in lengths]
    rows = [0.3 * rng.normal(size=(size, n_inputs)) * (rng.random((size, n_inputs)) < 0.5) for size in sizes]
    empty, weightless = bare_columns(n_inputs)
    for i, own in enumerate(rows):
        if not plain:
            own[:, empty] = 0.0
            own[:, weightless] *= i == WEIGHTLESS
    every = [SMALL_GRAMMAR.derivations(0, length) for length in lengths]
    gold = [each[rng.integers(len(each))] for each in every]
    weight = random_weights(rng, n, plain)
    chosen = slice(0, n) if part is None else slice(*part)
    lengths, rows, gold, weight = lengths[chosen], rows[chosen], gold[chosen], weight[chosen]
    structure: Any = KnownGrammar(lengths, SMALL_GRAMMAR)
    features = slot_map(structure, np.concatenate(rows), uses=3, parts=3 * 4 + 4)
    examples = [enumeration_of(structure, i) for i in range(len(lengths))]
    matrices = [matrix_of(features, i) for i in range(len(lengths))]
    nodes = nodes_array([node for each in gold for node in each])
    return Case(structure, features, structure.encode(nodes), weight, examples, matrices, lengths)


def make_case(
    kind: str,
    seed: int,
    n: int = 4,
    n_labels: int = 3,
    n_attributes: int = 5,
    max_length: int = 3,
    scale: float = 1.0,
    plain: bool = False,
    part: tuple[int, int] | None = None,
) -> Case:
    """Make a structure and feature map of the core of one kind, with random gold labels, attributes and weights.

    scale: factor of the attributes' values (multiclass and chains). plain: every column occurs and every weight is
    positive, as transcriptions of papers assume. part: use only these of the n examples (first, one past the last).
    """
    from partwise import _core

    if kind == "maxent":
        return maxent_case(seed, n, n_labels, n_attributes, plain=plain, part=part)
    if kind == "graph":
        return graph_case(seed, n, n_attributes, plain, part)
    if kind == "grammar":
        return grammar_case(seed, n, n_attributes, plain, part)
    if kind in TREES:
        return tree_case(kind, seed, n, n_attributes, plain, part)
    if kind in SEGMENTS:
        from .segment_problems import segment_case

        return segment_case(kind, seed, n, n_attributes, scale, plain, part)
    rng = np.random.default_rng(seed)
    lengths = (
        np.ones(n, dtype=np.int64) if kind == "multiclass" else rng.integers(1, max_length + 1, n).astype(np.int64)
    )
    example_ptr = _pointers(lengths)
    there = (int(example_ptr[WEIGHTLESS]), int(example_ptr[WEIGHTLESS + 1])) if n > WEIGHTLESS and not plain else None
    rows = random_rows(rng, int(example_ptr[-1]), n_attributes, values=True, weightless=there)
    edge_ptr = _pointers(lengths - 1)
    edges = random_rows(rng, int(edge_ptr[-1]), 2, values=True) if kind == "chain-untied" else None
    labels = rng.integers(0, n_labels, int(lengths.sum())).astype(np.int64)
    masked = kind == "chain-masked"  # draw masks before the weights
    weight = None if masked else random_weights(rng, n, plain)
    if part is not None:
        assert weight is not None
        lengths, weight, n = lengths[slice(*part)], weight[slice(*part)], part[1] - part[0]
        labels = labels[example_ptr[part[0]] : example_ptr[part[1]]]
        rows = _rows_between(rows, example_ptr[part[0]], example_ptr[part[1]])
        edges = edges and _rows_between(edges, edge_ptr[part[0]], edge_ptr[part[1]])
        example_ptr, edge_ptr = _pointers(lengths), _pointers(lengths - 1)
    if kind == "multiclass":
        structure: Any = _core.Multiclass(n, n_labels)
    else:
        structure = _core.Chain(lengths, n_labels, tied=kind != "chain-untied", ends=kind == "chain-tied-ends")
    width = structure.width
    layout = _core.RowLayout.dense(n_attributes, n_labels, width)
    row_ptr, attributes, values = rows
    segments: list[Any] = [_core.AttributeSegment(layout, example_ptr, row_ptr, attributes, scale * values)]
    if edges is not None:
        table = n_labels * width
        segments.append(_core.AttributeSegment(_core.RowLayout.dense(2, table, table), edge_ptr, *edges))
    elif kind != "multiclass":
        segments.append(_core.SharedSegment(n_labels * width, lengths - 1))
    if kind == "chain-tied-ends":
        segments.append(_core.SharedSegment(2 * width, np.full(n, 2, dtype=np.int64)))
    features = _core.LinearMap(segments)
    gold = structure.encode(labels)
    if masked:
        mask_around_gold(structure, gold, rng)
        weight = random_weights(rng, n, plain)
    examples = [enumeration_of(structure, i) for i in range(n)]
    matrices = [matrix_of(features, i) for i in range(n)]
    return Case(structure, features, gold, weight, examples, matrices, lengths.tolist())


def _pointers(lengths: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _rows_between(rows: tuple[Ints, Ints, Any], first: int, last: int) -> tuple[Ints, Ints, Any]:
    row_ptr, attributes, values = rows
    used = slice(row_ptr[first], row_ptr[last])
    return row_ptr[first : last + 1] - row_ptr[first], attributes[used], values[used]


def mask_around_gold(structure: Any, gold: tuple[Ints, Ints, Floats], rng: np.random.Generator) -> None:
    """Forbid about a third of the slots that gold does not use, in all examples but the first."""
    indptr, slots, _ = gold
    for i in range(1, structure.num_examples):
        allowed = (rng.random(structure.num_slots(i)) < 0.67).astype(np.uint8)
        allowed[slots[indptr[i] : indptr[i + 1]]] = 1
        structure.set_mask(i, allowed)
