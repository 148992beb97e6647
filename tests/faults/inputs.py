"""Training data of any size for every estimator: given numbers of tokens, features and labels."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import partwise
from partwise import (
    ConstituencyParser,
    DependencyParser,
    GraphLabeler,
    MaxentClassifier,
    RegularizationPathCV,
    SegmentTagger,
    SequenceTagger,
)

#: How each estimator is made, and the data that it takes.
KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "classifier": (MaxentClassifier, "items"),
    "classifier, sparse": (MaxentClassifier, "matrix"),
    "path": (lambda **given: RegularizationPathCV(MaxentClassifier(**given), Cs=[0.1, 1.0], cv=2), "items"),
    "tagger": (SequenceTagger, "sequences"),
    "tagger, hinge": (partial(SequenceTagger, "hinge"), "sequences"),
    "tagger, order 2": (partial(SequenceTagger, order=2), "sequences"),
    "tagger, maxent": (partial(SequenceTagger, model="maxent"), "sequences"),
    "tagger, rbf": (partial(SequenceTagger, kernel="rbf"), "sequences"),
    "segments": (SegmentTagger, "chunks"),
    "graphs": (GraphLabeler, "graphs"),
    "dependencies": (DependencyParser, "heads"),
    "dependencies, spanning": (partial(DependencyParser, structure="spanning"), "heads"),
    "constituents": (ConstituencyParser, "trees"),
}
QUICK = {"tol": 0.1, "max_passes": 2}


def estimator(kind: str) -> Any:
    return KINDS[kind][0](**QUICK)


def data(kind: str, tokens: int, features: int, labels: int, length: int = 0, per_token: int = 1) -> tuple[Any, Any]:
    """Return examples of `length` tokens (0: one example with all tokens); each token has `per_token` features."""
    form, length = KINDS[kind][1], length or max(tokens, 1)
    names = [[f"w{(per_token * i + j) % features}" for j in range(per_token)] for i in range(tokens)]
    answers = [f"l{i % labels}" for i in range(tokens)]
    cuts = range(0, tokens, length) if tokens else range(1)
    if form == "items":
        return names, answers
    if form == "matrix":
        columns = np.arange(per_token * tokens) % features
        ends = np.arange(0, len(columns) + 1, per_token)
        return sparse.csr_array((np.ones(len(columns)), columns, ends), (tokens, features)), np.array(answers)
    X, y = [names[i : i + length] for i in cuts], [answers[i : i + length] for i in cuts]
    if form == "sequences":
        return X, y
    if form == "chunks":
        return X, [[f"B-{label}" for label in own] for own in y]
    if form == "graphs":
        return [(x, np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))]) if x else []) for x in X], y
    if form == "heads":
        words = [[(" ".join(own), "N") for own in x] for x in X]
        return words, [list(enumerate(own)) for own in y]  # the head of each word is the word before it
    words = [[" ".join(own) for own in x] for x in X]
    trees = [("S", *zip(own, x, strict=True)) for own, x in zip(y, words, strict=True)]
    return words, [tree if len(tree) > 1 else () for tree in trees]


def fitted(kind: str) -> Any:
    """Return a small fitted model."""
    found = estimator(kind).fit(*data(kind, 60, 20, 3, 6))
    return getattr(found, "best_estimator_", found)


#: Questions to a fitted model.
ANSWERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "predict": lambda model, X, y: model.predict(X),
    "predict_marginals": lambda model, X, y: model.predict_marginals(X),
    "predict_k_best": lambda model, X, y: model.predict_k_best(X, 2),
    "entropy": lambda model, X, y: model.entropy(X),
    "sample": lambda model, X, y: model.sample(X),
    "log_probability": lambda model, X, y: model.log_probability(X, y),
    "score": lambda model, X, y: model.score(X, y),
}


def answers_of(kind: str) -> list[str]:
    """Return the questions that a model of this kind can answer: after a hinge loss there are no probabilities."""
    return [name for name in ANSWERS if kind != "tagger, hinge" or name in ("predict", "predict_k_best", "score")]


def through_a_file(model: Any) -> Any:
    """Return the model after saving and loading."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pw")
        getattr(model, "best_estimator_", model).save(path)
        return partwise.load(path)
