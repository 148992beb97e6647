"""Inputs without examples, with one token, and with very many tokens, for every estimator."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from partwise import GraphLabeler, MaxentClassifier, SegmentTagger
from partwise.support.memory import TooLarge

from . import made_large
from .inputs import ANSWERS, KINDS, answers_of, data, estimator, fitted, through_a_file
from .rows import Row, apart

Work = Callable[[], Any]
#: A function that makes its data and returns the work to be done with it.
Prepare = Callable[[], Work]

PARSERS = ("dependencies", "dependencies, spanning", "constituents")
ONE_BY_ONE = ("classifier", "classifier, sparse", "path")
#: Numbers of tokens, and of features per token, that make a million features.
WIDE = {"tagger, rbf": (1000, 1000), "path": (100_000, 10), "constituents": (100_000, 10)}


def fit(kind: str, *sizes: int) -> Prepare:
    def prepare() -> Work:
        X, y = data(kind, *sizes)
        return lambda: estimator(kind).fit(X, y)

    return prepare


def ask(kind: str, what: str, make: Callable[[], tuple[Any, Any]]) -> Prepare:
    def prepare() -> Work:
        model, (X, y) = fitted(kind), make()

        def work() -> None:
            found = ANSWERS[what](model, X, y)
            assert what == "score" or len(found) == (X.shape[0] if hasattr(X, "shape") else len(X))

        return work

    return prepare


def fit_with_an_empty_one(kind: str) -> Prepare:
    def prepare() -> Work:
        (X, y), (nothing, none) = data(kind, 60, 20, 3, 6), data(kind, 0, 20, 3)
        return lambda: estimator(kind).fit([*X, *nothing], [*y, *none])

    return prepare


def many_features(kind: str) -> Prepare:
    """Train and save a model with a million features."""

    def prepare() -> Work:
        tokens, each = WIDE.get(kind, (100_000, 10))
        X, y = data(kind, tokens, 1_000_000, 3, 10, each)

        def work() -> None:
            model = estimator(kind).fit(X, y)
            some = X[:10]
            assert len(through_a_file(model).predict(some)) == (10 if not hasattr(some, "shape") else some.shape[0])

        return work

    return prepare


def partial_labels() -> Work:
    """A million labels, of which five occur in the data."""
    X = np.eye(5)
    model = MaxentClassifier(solver="sgd", tol=0.1)
    return lambda: model.partial_fit(X, np.arange(5), classes=np.arange(1_000_000)).predict(X)


def no_columns(n_rows: int, n_columns: int) -> Prepare:
    return lambda: lambda: MaxentClassifier().fit(np.empty((n_rows, n_columns)), list(range(n_rows)))


def one_long_segment(length: int) -> Prepare:
    def prepare() -> Work:
        y = ["B-x", *["I-x"] * (length - 1)]
        X = [[["a"]] * length, [["b"]]]
        return lambda: SegmentTagger(tol=0.1, max_passes=1).fit(X, [y, ["O"]])

    return prepare


def grid(side: int) -> Prepare:
    """A grid graph whose junction tree has cliques of side + 1 nodes."""

    def prepare() -> Work:
        number = np.arange(side * side).reshape(side, side)
        edges = np.concatenate(
            [
                np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
                np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
            ]
        )
        nodes, labels = [["a"]] * side**2, [f"l{k % 3}" for k in range(side**2)]
        return lambda: GraphLabeler(tol=0.1, max_passes=1).fit([(nodes, edges)], [labels])

    return prepare


def cases() -> dict[str, tuple[Prepare, bool]]:
    """Return the cases, and whether the documentation says that they are refused."""
    found: dict[str, tuple[Prepare, bool]] = {}
    for kind in KINDS:
        alone, parser = kind in ONE_BY_ONE, kind in PARSERS
        no_rows = kind == "classifier, sparse"  # as in scikit-learn, arrays must have rows
        found[f"{kind}: no examples, fit"] = (lambda kind=kind: lambda: estimator(kind).fit([], [])), True
        if not alone:
            left_out = kind.startswith(("tagger", "segments"))
            found[f"{kind}: an empty example, fit"] = fit_with_an_empty_one(kind), not left_out
        found[f"{kind}: one token, fit"] = fit(kind, 1, 1, 1), kind != "constituents"
        for what in answers_of(kind):
            if not no_rows:
                found[f"{kind}: no examples, {what}"] = ask(kind, what, lambda: ([], [])), what == "score"
            if not alone:
                empty = lambda kind=kind: data(kind, 0, 20, 3)  # noqa: E731
                found[f"{kind}: an empty example, {what}"] = ask(kind, what, empty), what == "score"
            one = lambda kind=kind: data(kind, 1, 20, 3)  # noqa: E731
            found[f"{kind}: one token, {what}"] = ask(kind, what, one), False
            long = lambda kind=kind: data(kind, 100_000, 20, 3)  # noqa: E731
            if what not in ("entropy", "sample", "log_probability") and kind != "path":
                found[f"{kind}: 100,000 tokens, {what}"] = ask(kind, what, long), parser
        found[f"{kind}: 100,000 tokens, fit"] = fit(kind, 100_000, 50, 3), parser or kind == "tagger, rbf"
        found[f"{kind}: 1,000,000 features"] = many_features(kind), False
        if kind == "path":
            continue  # labels that occur once are missing from the other folds, so cross-validation cannot work
        labels = fit(kind, 1_000_000, 1000, 1_000_000, 100)
        found[f"{kind}: 1,000,000 labels"] = labels, True
    found["classifier: 1,000,000 labels, five seen"] = (lambda: partial_labels()), False
    found["classifier: no rows"] = no_columns(0, 3), True
    found["classifier: no columns"] = no_columns(3, 0), True
    found["segments: one of 5,000 tokens"] = one_long_segment(5000), False
    found["graphs: a grid of 10 x 10"] = grid(10), False
    found["graphs: a grid of 150 x 150"] = grid(150), True
    return found


CASES = cases()


def size(number: int, folder: Path) -> tuple[str, str]:
    name, (prepare, refusal_documented) = list(CASES.items())[number]

    def go() -> list[Any]:
        work = prepare()
        begin = time.process_time()
        try:
            work()
        except (ValueError, TooLarge) as error:  # any other MemoryError comes from the allocator, without advice
            return [f"{type(error).__name__}: {error}"[:300], time.process_time() - begin]
        return [None, time.process_time() - begin]

    ended = apart(go, 250)
    if ended.how != "answer" or not isinstance(ended.answer, list):
        return "another end", f"{name}: {ended}"
    told, seconds = ended.answer
    detail = f"{name}: {seconds:.2f} s, {told}"
    if told is None:
        return ("not refused" if refusal_documented else "done"), detail
    if not refusal_documented or not told.partition(": ")[2]:
        return "refused, not documented", detail
    return ("refused late" if seconds > 1 else "refused"), detail


ROWS = [
    Row(
        "sizes",
        "empty set, empty sequence, one token, 1e5 tokens, 1e6 features, 1e6 labels: all estimators, all answers",
        "as documented; the impossible refused in < 1 s",
        len(CASES),
        6,
        size,
        ("done", "refused"),
        300,
    ),
    *made_large.ROWS,
]
