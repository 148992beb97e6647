"""Small training data in blocks, and what is trained on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from partwise import MaxentClassifier, SequenceTagger
from partwise.features import Template

TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\n"
EDGES = "U00:%x[0,0]\nB01:%x[0,0]\n"


@dataclass(frozen=True)
class Case:
    """An estimator's class with parameters, and all data."""

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
        n = len(self.y)
        parts = [slice(a, min(a + size, n)) for a in range(0, n, size)]
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


def rows(n: int = 60, kind: str = "dense", n_labels: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < (1.0 if kind == "dense" else 0.3))
    y = np.array(list("pqr"))[rng.integers(0, n_labels, size=n)]
    return (sparse.csr_array(X) if kind == "sparse" else X), y


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
    "rows": Case(MaxentClassifier, *rows()),
    "rows-two": Case(MaxentClassifier, *rows(n_labels=2), {"class_weight": "balanced"}),
    "rows-few": Case(MaxentClassifier, *rows(kind="few"), {"fit_intercept": False}, WEIGHT),
    "rows-sparse": Case(MaxentClassifier, *rows(kind="sparse"), {"class_weight": {"p": 2.0}}, WEIGHT),
}
