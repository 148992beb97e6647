"""Small training data in blocks, and estimators to train on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from partwise import (
    ConstituencyParser,
    DependencyParser,
    GraphLabeler,
    MaxentClassifier,
    SegmentTagger,
    SequenceTagger,
)
from partwise.features import Template

TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\n"
EDGES = "U00:%x[0,0]\nB01:%x[0,0]\n"


@dataclass(frozen=True)
class Case:
    """An estimator's class and parameters, with all its training data."""

    cls: type[Any]
    X: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    weight: Any = None

    def make(self, **more: Any) -> Any:
        return self.cls(**{"solver": "lbfgs", "tol": 1e-6, **self.options, **more})

    def fitted(self, **more: Any) -> Any:
        return self.make(**more).fit(self.X, self.y, self.weight)

    def blocks(self, size: int = 7) -> list[tuple[Any, ...]]:
        n = self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)
        parts = [slice(a, min(a + size, n)) for a in range(0, n, size)]
        if self.y is None:
            weights = [() if self.weight is None else (self.weight[part],) for part in parts]
            return [(self.X[part], None, *weight) for part, weight in zip(parts, weights, strict=True)]
        if self.weight is None:
            return [(self.X[part], self.y[part]) for part in parts]
        return [(self.X[part], self.y[part], self.weight[part]) for part in parts]


def words(n: int = 60, seed: int = 0) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, size=n)
    X = [[f"w{k}" for k in rng.zipf(1.5, size=length) % 40] for length in lengths]
    y = [[f"l{(hash_of(word) + int(rng.random() < 0.2)) % 3}" for word in each] for each in X]
    return X, y


def hash_of(word: str) -> int:
    return int(word[1:])


def names(n: int = 60) -> tuple[list[Any], list[Any]]:
    X, y = words(n)
    return [[[word, f"last={word[-1]}"] for word in each] for each in X], y


def dicts(n: int = 60) -> tuple[list[Any], list[Any]]:
    X, y = words(n)
    return [[{"x": 0.5 * k, "y": word} for k, word in enumerate(each)] for each in X], y


def arrays(n: int = 60, density: float = 1.0) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(3)
    X, y = words(n)
    table = [rng.normal(size=(len(each), 4)) * (rng.random((len(each), 4)) < density) for each in X]
    return table, y


def items(n: int = 60) -> tuple[list[Any], Any]:
    X, y = words(n)
    found = [{"first": each[0], "length": float(len(each)), each[-1]: True} for each in X]
    return found, np.array([labels[0] for labels in y])


def bags(n: int = 60) -> tuple[list[Any], Any]:
    X, y = words(n)
    return X, np.array([labels[0] for labels in y])


def rows(n: int = 60, kind: str = "dense", n_labels: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < (1.0 if kind == "dense" else 0.3))
    y = np.array(list("pqr"))[rng.integers(0, n_labels, size=n)]
    return (sparse.csr_array(X) if kind == "sparse" else X), y


def arcs(n: int = 60, named: bool = True, crossing: bool = False) -> tuple[list[Any], list[Any]]:
    """Make sentences of (form, upos), with trees in which heads are near, and some arcs cross."""
    rng = np.random.default_rng(5)
    X = [[(word, f"t{hash_of(word) % 4}") for word in each] for each in words(n)[0]]
    y = []
    for each in X:
        size = len(each)
        root = int(rng.integers(1, size + 1))
        heads = [0 if m == root else m + 1 if m < root else m - 1 for m in range(1, size + 1)]
        if crossing and size > 4 and rng.random() < 0.4:
            heads = [0, 4, 1, 1, 3, *range(5, size)] if root == 1 else heads
        y.append([(h, f"r{hash_of(word) % 3}") if named else h for h, (word, _) in zip(heads, each, strict=True)])
    return X, y


def chunks(n: int = 60) -> tuple[list[Any], list[Any]]:
    """Make sentences of words with chunks of one or two types."""
    rng = np.random.default_rng(6)
    X, y = words(n)[0], []
    for each in X:
        labels: list[str] = []
        while len(labels) < len(each):
            kind = "AB"[hash_of(each[len(labels)]) % 2]
            size = min(int(rng.integers(1, 4)), len(each) - len(labels))
            labels += [f"B-{kind}", *[f"I-{kind}"] * (size - 1)] if rng.random() < 0.6 else ["O"] * size
        y.append(labels)
    return X, y


def named_chunks() -> tuple[list[Any], list[Any]]:
    X, y = chunks()
    return [[[word, f"last={word[-1]}"] for word in each] for each in X], y


def graphs(n: int = 60, kind: str = "names") -> tuple[list[Any], list[Any]]:
    """Make rings of nodes with labels; `kind` chooses names or arrays, and features or types of edges."""
    rng = np.random.default_rng(7)
    X, y = words(n)
    found: list[Any] = []
    for each in X:
        nodes: Any = [[word, "t" + word[-1]] for word in each]
        if kind == "arrays":
            nodes = rng.normal(size=(len(each), 3))
        edges = [(k, k + 1) for k in range(len(each) - 1)] + ([(len(each) - 1, 0)] if len(each) > 2 else [])
        features = [[f"e{(a + b) % 3}"] for a, b in edges] if kind == "edges" else None
        types = ["next" if a < b else "back" for a, b in edges] if kind == "types" else None
        found.append((nodes, edges, features, types))
    return found, y


def brackets(n: int = 60, root: Any = True) -> tuple[list[Any], None]:
    """Make trees: flat phrases of two labels, all, some or none of them under a root TOP."""
    rng = np.random.default_rng(8)
    found = []
    for each in words(n)[0]:
        leaves = [(f"T{hash_of(word) % 3}", word) for word in each]
        cut = int(rng.integers(0, len(leaves)))
        tree: Any = ("S", *leaves[:cut], ("P" + "AB"[hash_of(each[cut]) % 2], *leaves[cut:]))
        found.append(("TOP", tree) if root and (root is True or len(found) < 30) else tree)
    return found, None


WEIGHT = np.where(np.arange(60) % 5 == 0, 0.0, 1.0 + np.arange(60) % 3)
CASES = {
    "template": Case(SequenceTagger, *words(), {"template": Template(TEMPLATE)}),
    "template-edges": Case(SequenceTagger, *words(), {"template": Template(EDGES), "transitions": "all"}),
    "template-min": Case(SequenceTagger, *words(), {"template": Template(EDGES), "min_count": 2, "ends": True}),
    "names": Case(SequenceTagger, *names()),
    "names-weights": Case(SequenceTagger, *names(), {"ends": True}, WEIGHT),
    "names-all": Case(SequenceTagger, *names(), {"features": "all", "min_count": 3}),
    "names-min": Case(SequenceTagger, *names(), {"min_count": 2, "transitions": "all"}),
    "names-edges": Case(SequenceTagger, *names(), {"transition_features": ["last"], "min_count": 2}),
    "names-edges-all": Case(SequenceTagger, *names(), {"transition_features": "all", "features": "all"}),
    "dicts": Case(SequenceTagger, *dicts()),
    "arrays": Case(SequenceTagger, *arrays()),
    "arrays-sparse": Case(SequenceTagger, *arrays(density=0.2)),
    "arrays-edges": Case(SequenceTagger, *arrays(density=0.2), {"transition_features": [1], "min_count": 4}),
    "order-2": Case(SequenceTagger, *names(), {"order": 2}),
    "order-2-min": Case(SequenceTagger, *names(), {"order": 2, "min_count": 2}, WEIGHT),
    "order-2-all": Case(SequenceTagger, *words(), {"order": 2, "features": "all", "template": Template(TEMPLATE)}),
    "maxent": Case(SequenceTagger, *names(), {"model": "maxent"}, WEIGHT),
    "maxent-all": Case(SequenceTagger, *arrays(), {"model": "maxent", "features": "all"}),
    "maxent-min": Case(SequenceTagger, *dicts(), {"model": "maxent", "history": 1, "min_count": 2}),
    "trees": Case(DependencyParser, *arcs()),
    "trees-heads": Case(DependencyParser, *arcs(named=False), {"min_count": 2}, WEIGHT),
    "trees-hashed": Case(DependencyParser, *arcs(), {"features": "hashed", "hash_bits": 10, "labels": False}),
    "trees-skip": Case(DependencyParser, *arcs(crossing=True), {"features": "all"}),
    "trees-lift": Case(DependencyParser, *arcs(crossing=True), {"non_projective": "lift", "min_count": 2}, WEIGHT),
    "trees-spanning": Case(DependencyParser, *arcs(crossing=True), {"structure": "spanning"}),
    "segments": Case(SegmentTagger, *chunks(), {"template": Template(TEMPLATE)}),
    "segments-names": Case(SegmentTagger, *named_chunks(), {"min_count": 2, "borders": "first"}, WEIGHT),
    "segments-all": Case(SegmentTagger, *named_chunks(), {"features": "all", "max_length": 5}),
    "segments-min": Case(
        SegmentTagger,
        *chunks(),
        {"template": Template(TEMPLATE), "min_count": 2, "lists": {"some": ["w1 w2", "w3"]}, "segment_cost": True},
        WEIGHT,
    ),
    "graphs": Case(GraphLabeler, *graphs(), {}, WEIGHT),
    "graphs-arrays": Case(GraphLabeler, *graphs(kind="arrays"), {"directed": True}),
    "graphs-edges": Case(GraphLabeler, *graphs(kind="edges")),
    "graphs-types": Case(GraphLabeler, *graphs(kind="types"), {"kind_features": ["t"]}, WEIGHT),
    "brackets": Case(ConstituencyParser, *brackets()),
    "brackets-min": Case(ConstituencyParser, *brackets(root=False), {"min_count": 2, "vertical": 2, "rare": 0}, WEIGHT),
    "brackets-some": Case(ConstituencyParser, *brackets(root="some"), {"horizontal": 1}),
    "rows": Case(MaxentClassifier, *rows(), {"penalize_intercept": True}),
    "items": Case(MaxentClassifier, *items(), {"class_weight": {"l0": 0.0, "l1": 2.0}, "penalize_intercept": True}),
    "items-min": Case(MaxentClassifier, *bags(), {"min_count": 3, "fit_intercept": False}, WEIGHT),
    "rows-two": Case(MaxentClassifier, *rows(n_labels=2), {"class_weight": "balanced", "penalize_intercept": True}),
    "rows-few": Case(MaxentClassifier, *rows(kind="few"), {"fit_intercept": False}, WEIGHT),
    "rows-sparse": Case(
        MaxentClassifier, *rows(kind="sparse"), {"class_weight": {"p": 2.0}, "penalize_intercept": True}, WEIGHT
    ),
}
