"""Graphs from lists of vertices and cliques."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise._core import Graph
from partwise.support.arrays import Ints, pointers

#: Bytes that the tables of one example may take, by default.
MEMORY_LIMIT = float(1 << 30)


def graph(
    examples: Sequence[Any], memory_limit: float = MEMORY_LIMIT, *, common: Sequence[Sequence[int]] = ()
) -> Graph:
    """Return a `Graph` of examples ``(n_labels, cliques)`` or ``(n_labels, cliques, tables)``.

    n_labels: the number of labels of each vertex. cliques: tuples of numbers of vertices, of any length. tables: the
    number of each clique's table, from 0; cliques with the same one share its slots (default: each has its own).
    memory_limit: bytes that sums over the labellings of one example may take; an example beyond it is refused when it
    is used. common: numbers of labels of the vertices that the tables 0, 1, ... are for. Every example then has these
    tables, whether its cliques name them or not, as weights that all examples share need it.
    """
    labels: list[Sequence[int]] = []
    cliques: list[Sequence[int]] = []
    tables: list[Sequence[int]] = []
    for i, example in enumerate(examples):
        if not isinstance(example, (tuple, list)) or len(example) not in (2, 3):
            raise ValueError(f"example {i} must be (n_labels, cliques) or (n_labels, cliques, tables)")
        own, edges, *given = map(list, example)
        numbers = given[0] if given else range(len(edges))
        if len(numbers) != len(edges):
            raise ValueError(f"example {i} has {len(edges)} cliques and {len(numbers)} numbers of tables")
        labels.append(own)
        cliques += map(list, edges)
        tables.append(numbers)
    vertex_ptr, n_labels = _end_to_end(labels)
    member_ptr, members = _end_to_end(cliques)
    common_ptr, common_labels = _end_to_end(common)
    clique_ptr, numbered = _end_to_end(tables)
    return Graph(
        vertex_ptr, n_labels, clique_ptr, member_ptr, members, numbered, memory_limit, common_ptr, common_labels
    )


def _end_to_end(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return where each list begins in all of them end to end, and the numbers."""
    return pointers(list(map(len, lists))), np.array([int(n) for each in lists for n in each], dtype=np.int64)
