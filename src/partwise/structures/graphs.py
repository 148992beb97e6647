"""Graphs from lists of vertices and cliques."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise._core import Graph
from partwise.support.arrays import pointers

#: Bytes that the tables of one example may take, by default.
MEMORY_LIMIT = float(1 << 30)


def graph(
    examples: Sequence[Any], memory_limit: float = MEMORY_LIMIT, *, common: Sequence[Sequence[int]] = ()
) -> Graph:
    """A `Graph` of examples ``(n_labels, cliques)`` or ``(n_labels, cliques, tables)``.

    Parameters
    ----------
    examples : list of tuples
        n_labels: the number of labels of each vertex. cliques: tuples of numbers of vertices, of any length. tables:
        the number of each clique's table, from 0; cliques with the same one share its slots. By default each has its
        own.
    memory_limit : float
        Bytes that sums over the labellings of one example may take; an example beyond it is refused when it is used.
    common : list of tuples
        Numbers of labels of the vertices that the tables 0, 1, ... are for, which every example then has, whether its
        cliques name them or not: as weights that all examples share need it.
    """
    n_labels: list[int] = []
    members: list[int] = []
    tables: list[int] = []
    n_vertices, n_cliques, n_members = [], [], []
    for i, example in enumerate(examples):
        if not isinstance(example, (tuple, list)) or len(example) not in (2, 3):
            raise ValueError(f"example {i} must be (n_labels, cliques) or (n_labels, cliques, tables)")
        own = [int(n) for n in example[0]]
        cliques = [[int(v) for v in clique] for clique in example[1]]
        numbers = range(len(cliques)) if len(example) == 2 else [int(t) for t in example[2]]
        if len(numbers) != len(cliques):
            raise ValueError(f"example {i} has {len(cliques)} cliques and {len(numbers)} numbers of tables")
        n_labels += own
        n_vertices.append(len(own))
        n_cliques.append(len(cliques))
        for clique in cliques:
            n_members.append(len(clique))
            members += clique
        tables += numbers
    return Graph(
        pointers(n_vertices),
        np.array(n_labels, dtype=np.int64),
        pointers(n_cliques),
        pointers(n_members),
        np.array(members, dtype=np.int64),
        np.array(tables, dtype=np.int64),
        memory_limit,
        pointers([len(shape) for shape in common]),
        np.array([int(n) for shape in common for n in shape], dtype=np.int64),
    )
