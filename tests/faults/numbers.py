"""NaN, infinities, huge numbers and tiny numbers in features and weights, for all estimators."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from helpers.model_cases import as_dicts, as_names, sequences
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
#: Methods that get the odd number in the features that they predict from.
ASKED = ("predict", "predict_marginals", "predict_k_best", "predict_proba", "score", "log_probability", "entropy")
PARAMETERS = ("C", "tol", "max_seconds", "max_passes", "l1_ratio", "label_C", "memory_limit", "gamma", "min_count")
OTHERS = ("class_weight", "cost", "coef_", *PARAMETERS)
#: Where the odd number is: in features for training, in features for prediction, in an example's weight, a label's
#: weight, a cost, the weights of the model, or a parameter.
PLACES = ("fit", "sample_weight", *ASKED, *OTHERS)
#: An error message must name one of these things with its number, or a label. `odd_number` checks this, and that errors
#: about parameters name the parameter.
THINGS = "sequence|graph|sentence|row|sample|position|node|column|feature|weight|input|example|attribute"
NAMED = re.compile(rf"({THINGS})s? \d|'[BO]'|'B-x'|'x'|of a sequence")
LABELS = ["B", "I", "O"]


@cache
def data() -> tuple[Any, Any]:
    return sequences(0, 12, LABELS)


def rows(value: float | None) -> list[np.ndarray]:
    """Return sequences of rows, with `value` in the middle of the fourth sequence."""
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


def applies(name: str, place: str) -> bool:
    """Say whether an estimator of this case takes such a number."""
    numbers = CASES[name][3]
    if place in ("sample_weight", "coef_"):
        return True
    if place in ("fit", *ASKED):
        return (
            numbers and (place == "fit" or hasattr(SHAPES[name], place)) and not (name in HINGE and place in PROBABLE)
        )
    if place == "cost" and name in ("classifier, l1", "tagger, maxent", "dependencies", "constituents"):
        return False  # l1 and maxent models have none, and those of parsers are not numbers
    return place in SHAPES[name].get_params()


SHAPES = {name: make() for name, (make, _, _, _) in CASES.items()}
HINGE = ("tagger, hinge",)
PROBABLE = ("predict_marginals", "predict_proba", "log_probability", "entropy")
TRIALS = [trial for trial in itertools.product(CASES, VALUES, PLACES) if applies(trial[0], trial[2])]


def numbers_in(found: Any) -> Any:
    """Yield all numbers in an answer, at any depth."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (list, tuple)):
        for each in found:
            yield from numbers_in(each)
    elif isinstance(found, (float, np.ndarray)):
        yield from np.asarray(found, dtype=object).ravel().tolist()


def attempt(name: str, value: float, place: str) -> bool:
    """Train and predict with the odd number. Say whether all results are finite."""
    make, inputs, answers, _ = CASES[name]
    estimator, y = make().set_params(max_passes=30, tol=1e-2), answers()
    X, n, given = inputs(None), len(y), {}
    if place == "sample_weight":
        given["sample_weight"] = np.ones(n)
        given["sample_weight"][3] = value
    elif place in ("class_weight", "cost"):
        known = "x" if name == "segments" else "B"
        label = "B-x" if name == "segments" and place == "class_weight" else known
        estimator.set_params(**{place: {label: value if place == "class_weight" else {"O": value}}})
        if place == "cost":
            estimator.set_params(loss="hinge")
    elif place in PARAMETERS:
        estimator.set_params(**{place: value})
    estimator.fit(inputs(value) if place == "fit" else X, y, **given)
    if place == "coef_":
        weights = np.array(estimator.coef_)
        weights.flat[0] = value
        estimator.coef_ = weights
    asked = inputs(value) if place in ASKED else X
    what = place if place in ASKED else "predict"
    method = getattr(estimator, what)
    more = {"score": (y,), "log_probability": (y,), "predict_k_best": (2,)}.get(what, ())
    found = method(asked, *more)
    kept = [estimator.result_.primal, *numbers_in(np.asarray(estimator.coef_))]
    answers_found = [each for each in numbers_in(found) if isinstance(each, float)]
    if what == "log_probability":  # the log probability of an impossible answer is minus infinity
        answers_found = [each for each in answers_found if each != -float("inf")]
    return bool(np.isfinite([*kept, *answers_found]).all())


def odd_number(number: int, folder: Path) -> tuple[str, str]:
    name, value, place = TRIALS[number]
    where = f"{name}, {value} in {place}"
    try:
        with np.errstate(all="ignore"):
            finite = attempt(name, value, place)
    except ValueError as error:
        named = place not in (*PARAMETERS, "sample_weight") or re.search(rf"\b{place}\b", str(error))
        told = named and (place in PARAMETERS or NAMED.search(str(error)))
        return ("ValueError" if told else "ValueError without a place"), f"{where}: {error}"
    except ArithmeticError as error:
        return "ArithmeticError", f"{where}: {error}"
    return ("finite" if finite else "not finite"), where


ROWS = [
    Row(
        "odd-numbers",
        "NaN, inf, 1e300, denormals in features, weights of examples, labels, models; costs, parameters; all kinds",
        "ValueError naming the place, or finite results",
        len(TRIALS),
        6,
        odd_number,
        ("ValueError", "finite"),
        120,
    ),
]
