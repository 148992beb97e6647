"""Every labelling of a small graph, and random graphs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .enumerate import Enumeration, _allowed, enumerator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def parts_of(structure: Any, i: int) -> tuple[list[int], list[list[int]], list[int]]:
    """Return the numbers of labels, the cliques and the numbers of the cliques' tables in example i."""
    labels = structure.n_labels[structure.vertex_ptr[i] : structure.vertex_ptr[i + 1]].tolist()
    which = range(structure.clique_ptr[i], structure.clique_ptr[i + 1])
    ptr = structure.member_ptr
    return labels, [structure.members[ptr[c] : ptr[c + 1]].tolist() for c in which], structure.tables[which].tolist()


def graph_counts(n_labels: list[int], cliques: list[list[int]], tables: list[int], labellings: Ints) -> Floats:
    """How often each labelling uses each slot: first rows of vertices, then tables, whose last axis is padded."""
    from partwise.structures import padded_width

    columns: list[Floats] = []
    for v, n in enumerate(n_labels):
        columns.append(np.eye(n, padded_width(n))[labellings[:, v]])
    for table in range(max(tables, default=-1) + 1):
        total: Any = 0.0
        for clique, own in zip(cliques, tables, strict=True):
            if own == table:
                shape = [n_labels[v] for v in clique[:-1]] + [padded_width(n_labels[clique[-1]])]
                place = np.ravel_multi_index(tuple(labellings[:, v] for v in clique), shape)
                total = total + np.eye(int(np.prod(shape)))[place]
        columns.append(total)
    return np.concatenate(columns, axis=1)


@enumerator("Graph")
def _graph_of(structure: Any, i: int) -> Enumeration:
    n_labels, cliques, tables = parts_of(structure, i)
    labellings = np.array(list(itertools.product(*map(range, n_labels))), dtype=np.int64)
    counts = graph_counts(n_labels, cliques, tables, labellings)
    keep = _allowed(counts, structure.mask(i))
    none = np.zeros((int(keep.sum()), 0), dtype=np.int64)
    return Enumeration(labellings[keep], counts[keep], none, np.zeros(1, dtype=np.int64))


def random_graph(rng: np.random.Generator, n_vertices: int, most: int = 400) -> tuple[list[int], list[Any], list[int]]:
    """Draw numbers of labels (1 to 4 each, at most `most` labellings) and cliques of 1 to 4 vertices. Cliques may
    repeat, and vertices may lie in no clique. Cliques share tables at random where the numbers of labels allow it."""
    n_labels = [int(n) for n in rng.integers(1, 5, n_vertices)]
    while np.prod(n_labels) > most:
        v = int(np.argmax(n_labels))
        n_labels[v] -= 1
    cliques = [
        rng.choice(n_vertices, min(n_vertices, int(rng.choice([1, 2, 2, 2, 3, 4]))), replace=False).tolist()
        for _ in range(int(rng.integers(0, 2 * n_vertices)))
    ]
    if cliques and rng.random() < 0.5:
        cliques.append(cliques[0])
    tables: list[int] = []
    shapes: list[list[int]] = []
    for clique in cliques:
        shape = [n_labels[v] for v in clique]
        same = [t for t, other in enumerate(shapes) if other == shape]
        if same and rng.random() < 0.5:
            tables.append(int(rng.choice(same)))
        else:
            tables.append(len(shapes))
            shapes.append(shape)
    return n_labels, cliques, tables


#: Numbers of vertices and edges of the graphs of problems, which are used in turn: a cycle; a tree and an isolated
#: vertex; a triangle with a tail.
SHAPES = ((4, [(0, 1), (1, 2), (2, 3), (3, 0)]), (3, [(2, 0)]), (4, [(0, 1), (1, 2), (0, 2), (2, 3)]))


def tied_graphs(first: int, last: int) -> Any:
    """The graphs with numbers first, ..., last - 1, with three labels per vertex, whose edges share a table."""
    from partwise.structures import graph

    shapes = [SHAPES[i % len(SHAPES)] for i in range(first, last)]
    return graph([([3] * n, edges, [0] * len(edges)) for n, edges in shapes])
