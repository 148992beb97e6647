"""Small graphs to label, in all forms of input."""

from __future__ import annotations

import numpy as np

LABELS = np.array(["a", "b", "c"])


class Plain:
    """The part of networkx's graph interface that GraphLabeler uses."""

    def __init__(self, nodes, edges, directed=True):
        self.nodes, self._edges, self._directed = nodes, edges, directed

    def is_directed(self):
        return self._directed

    def adjacency(self):
        raise NotImplementedError

    def edges(self, data):
        assert data
        return self._edges


def make(n, seed, typed=True):
    """Make cycles with a tail, whose labels depend on the nodes' rows and on the neighbours' labels."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(3, 7))
        edges = np.array([(v, (v + 1) % (size - 1)) for v in range(size - 1)] + [(size - 1, 0)])
        labels = rng.integers(0, 3, size)
        for u, v in edges.tolist():
            if rng.random() < 0.8:
                labels[v] = (labels[u] + 1) % 3
        rows = np.round(np.eye(3)[labels] + rng.normal(size=(size, 3)), 2)
        types = ["ring"] * (size - 1) + ["tail"]
        X.append((rows, edges, None, types) if typed else (rows, edges))
        y.append(LABELS[labels].tolist())
    return X, y


def as_dicts(X):
    return [([{f"c{j}": v for j, v in enumerate(row)} for row in x[0].tolist()], *x[1:]) for x in X]


def as_networkx(X, make_graph=Plain, directed=True):
    out = []
    for rows, edges, _, types in X:
        names = [f"n{v}" for v in range(len(rows))]
        nodes = {name: {"row": row} for name, row in zip(names, rows, strict=True)}
        pairs = [(names[u], names[v], {"t": t}) for (u, v), t in zip(edges.tolist(), types, strict=True)]
        out.append(make_graph(nodes, pairs, directed))
    return out
