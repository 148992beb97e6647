"""Small fitted models of every kind, for the tests of model files."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from partwise import DependencyParser, GraphLabeler, MaxentClassifier, SequenceTagger
from partwise.datasets import make_treebank
from partwise.model_files import container


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator with input that it was not trained on."""

    estimator: Any
    X: Any


def sequences(seed: int, n: int, labels: list[Any]) -> tuple[list[np.ndarray], list[list[Any]]]:
    """Make counts in five columns, with labels that depend on the counts and on the previous label."""
    rng = np.random.default_rng(seed)
    table = np.random.default_rng(5).normal(size=(5, len(labels)))
    arrays, y = [], []
    for _ in range(n):
        x = rng.integers(0, 3, size=(int(rng.integers(1, 6)), 5)).astype(np.float64)
        before, row = 0, []
        for scores in x @ table:
            before = int(np.argmax(scores + np.roll(np.arange(len(labels)), before) + rng.gumbel(size=len(labels))))
            row.append(labels[before])
        arrays.append(x)
        y.append(row)
    return arrays, y


def as_names(arrays: list[np.ndarray]) -> list[list[list[str]]]:
    return [[[f"é{j}={v:g}" for j, v in enumerate(row)] for row in x] for x in arrays]


def as_dicts(arrays: list[np.ndarray]) -> list[list[dict[str, float]]]:
    return [[{f"c{j}": float(v) for j, v in enumerate(row) if v} for row in x] for x in arrays]


def kernel_columns(arrays: list[np.ndarray], training: list[np.ndarray]) -> list[np.ndarray]:
    rows = np.concatenate(training)
    return [(x @ rows.T + 1.0) ** 2 for x in arrays]


TAGGERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "names": (as_names, {}),
    "names, ends, all": (as_names, {"ends": True, "features": "all"}),
    "dicts, conditioned": (as_dicts, {"transition_features": "all", "ends": True}),
    "arrays, hinge": (list, {"loss": "hinge", "features": "all", "transition_features": [0, 3]}),
    "sparse": (lambda arrays: [sparse.csr_array(x) for x in arrays], {"features": "all", "transition_features": "all"}),
    "second order": (as_names, {"order": 2}),
    "maxent": (as_names, {"model": "maxent"}),
    "maxent, one tag back": (list, {"model": "maxent", "history": 1, "features": "all"}),
    "rbf": (list, {"kernel": "rbf"}),
    "polynomial on edges": (as_names, {"kernel": "polynomial", "transition_features": "all", "loss": "hinge"}),
}


def fitted_tagger(name: str, labels: list[Any] | None = None) -> Fitted:
    form, options = TAGGERS[name]
    arrays, y = sequences(0, 25, labels or ["B", "I", "O"])
    fresh, _ = sequences(1, 10, labels or ["B", "I", "O"])
    return Fitted(SequenceTagger(random_state=0, **{"tol": 1e-2, **options}).fit(form(arrays), y), form(fresh))


def fitted_classifier(labels: Any, seed: int = 0, **options: Any) -> Fitted:
    rng = np.random.default_rng(seed)
    labels = np.asarray(labels)
    X = rng.normal(size=(40, 4))
    best = np.argmax(X @ rng.normal(size=(4, len(labels))), axis=1)
    best[: len(labels)] = np.arange(len(labels))
    return Fitted(MaxentClassifier(**options).fit(X, labels[best]), rng.normal(size=(15, 4)))


PARSERS: dict[str, dict[str, Any]] = {
    "parser": {},
    "parser, hashed, unlabelled": {"features": "hashed", "hash_bits": 10, "labels": False, "structure": "spanning"},
}


def fitted_parser(name: str) -> Fitted:
    bank = make_treebank(30, 0)
    words = [list(zip(*rows, strict=True)) for rows in zip(bank.words, bank.tags, strict=True)]
    trees = [list(zip(*rows, strict=True)) for rows in zip(bank.heads, bank.labels, strict=True)]
    parser = DependencyParser(tol=0.1, random_state=0, **PARSERS[name]).fit(words[:20], trees[:20])
    return Fitted(parser, words[20:])


def fitted_labeler() -> Fitted:
    """Fit a GraphLabeler to rings of nodes with named attributes, features of edges, and kinds of nodes."""

    def graphs(arrays: list[np.ndarray]) -> list[Any]:
        found = []
        for x in arrays:
            edges = [(v, (v + 1) % len(x)) for v in range(len(x) if len(x) > 2 else 0)]
            rows = [{"far": float(v), "even": v % 2 == 0} for v, _ in edges]
            found.append((as_names([x])[0], edges, rows))
        return found

    arrays, y = sequences(0, 25, ["B", "I", "O"])
    fresh, _ = sequences(1, 10, ["B", "I", "O"])
    return Fitted(GraphLabeler(kind_features=["é0"], tol=1e-2).fit(graphs(arrays), y), graphs(fresh))


def remade(data: bytes, change) -> bytes:
    """Return a model file with changed metadata, settings or arrays, and a valid digest."""
    metadata, arrays = container.parse(container.Source(io.BytesIO(data), len(data)))
    metadata = {name: value for name, value in metadata.items() if name != "sha256"}
    settings = json.loads(metadata["settings"])
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(metadata, settings, arrays)
    metadata.setdefault("settings", "")
    if metadata["settings"] and settings is not None:
        metadata["settings"] = json.dumps(settings)
    file = io.BytesIO()
    container.write(file, metadata, arrays)
    return file.getvalue()
