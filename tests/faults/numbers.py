"""NaN, infinities, huge and tiny numbers in features and weights, for all estimators."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from modelcases import as_dicts, as_names, sequences
from scipy import sparse

from partwise import (
    ConstituencyParser,
    DependencyParser,
    GraphLabeler,
    MaxentClassifier,
    SegmentTagger,
    SequenceTagger,
)
from partwise.datasets import make_treebank

from .rows import Row

VALUES = (float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 1e308, 5e-324, 1e-310)
PLACES = ("fit", "predict", "sample_weight")
LABELS = ["B", "I", "O"]


@cache
def data() -> tuple[Any, Any]:
    return sequences(0, 12, LABELS)


def rows(value: float | None) -> list[np.ndarray]:
    """Sequences of rows, with a value in the middle of the fourth."""
    found = [x.copy() for x in data()[0]]
    if value is not None:
        found[3][len(found[3]) // 2, 2] = value
    return found


def graphs(value: float | None) -> list[Any]:
    return [(as_dicts([x])[0], [(v, v + 1) for v in range(len(x) - 1)], None) for x in rows(value)]


def treebank(value: float | None) -> list[Any]:
    bank = make_treebank(12, 0)
    return [list(zip(*each, strict=True)) for each in zip(bank.words, bank.tags, strict=True)]


def heads() -> list[Any]:
    return [list(each) for each in make_treebank(12, 0).heads]


def trees() -> list[Any]:
    nouns = ("cat", "dog", "man")
    return [(("S" if k % 4 else "X"), ("NP", ("D", "the"), ("N", nouns[k % 3])), ("V", "sat")) for k in range(12)]


def flat_labels() -> list[str]:
    return [label for labels in data()[1] for label in labels]


def chunks() -> list[list[str]]:
    return [["B-x", *["I-x"] * (len(y) - 1)] if k % 3 else ["O"] * len(y) for k, y in enumerate(data()[1])]


Make = Callable[[], Any]
CASES: dict[str, tuple[Make, Callable[[float | None], Any], Callable[[], Any], bool]] = {
    "classifier": (MaxentClassifier, lambda v: np.concatenate(rows(v)), flat_labels, True),
    "classifier, sparse": (
        MaxentClassifier,
        lambda v: sparse.csr_array(np.concatenate(rows(v))),
        flat_labels,
        True,
    ),
    "classifier, l1": (
        lambda: MaxentClassifier(penalty="l1"),
        lambda v: np.concatenate(rows(v)),
        flat_labels,
        True,
    ),
    "tagger, arrays": (SequenceTagger, rows, lambda: data()[1], True),
    "tagger, hinge": (lambda: SequenceTagger("hinge"), rows, lambda: data()[1], True),
    "tagger, sparse": (SequenceTagger, lambda v: list(map(sparse.csr_array, rows(v))), lambda: data()[1], True),
    "tagger, dicts": (SequenceTagger, lambda v: as_dicts(rows(v)), lambda: data()[1], True),
    "tagger, order 2": (lambda: SequenceTagger(order=2), rows, lambda: data()[1], True),
    "tagger, maxent": (lambda: SequenceTagger(model="maxent"), rows, lambda: data()[1], True),
    "tagger, rbf": (lambda: SequenceTagger(kernel="rbf"), rows, lambda: data()[1], True),
    "segments": (SegmentTagger, lambda v: as_dicts(rows(v)), chunks, True),
    "graphs": (GraphLabeler, graphs, lambda: data()[1], True),
    "names": (SequenceTagger, lambda v: as_names(rows(None)), lambda: data()[1], False),
    "dependencies": (DependencyParser, treebank, heads, False),
    "constituents": (
        ConstituencyParser,
        lambda v: [["the", tree[1][2][1], "sat"] for tree in trees()],
        trees,
        False,
    ),
}
TRIALS = [
    (name, value, place)
    for name, value, place in itertools.product(CASES, VALUES, PLACES)
    if place == "sample_weight" or CASES[name][3]  # others have no numbers in their features
]


def odd_number(number: int, folder: Path) -> tuple[str, str]:
    name, value, place = TRIALS[number]
    make, inputs, answers, _ = CASES[name]
    estimator, y = make().set_params(max_passes=30, tol=1e-2), answers()
    where = f"{name}, {value} in {place}"
    n = len(y)
    try:
        with np.errstate(all="ignore"):
            if place == "sample_weight":
                weight = np.ones(n)
                weight[3] = value
                estimator.fit(inputs(None), y, sample_weight=weight)
            else:
                estimator.fit(inputs(value if place == "fit" else None), y)
            found = estimator.predict(inputs(value if place == "predict" else None))
    except ValueError as error:
        return "ValueError", f"{where}: {error}"
    except ArithmeticError as error:
        return "ArithmeticError", f"{where}: {error}"
    finite = np.isfinite(estimator.coef_).all() and np.isfinite(estimator.result_.primal)
    return ("finite" if finite and len(found) == n else "not finite"), where


ROWS = [
    Row(
        "odd-numbers",
        "NaN, inf, 1e300, denormals in features or weights of examples, all estimators",
        "ValueError naming the place, or finite results",
        len(TRIALS),
        6,
        odd_number,
        ("ValueError", "finite"),
        120,
    ),
]
