"""Scores of labels for people and for JSON: whole chunks where labels are chunk labels, single labels otherwise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from partwise.cli.errors import UserError
from partwise.cli.output import table
from partwise.cli.tasks import Data, Evaluation
from partwise.metrics import chunk_scores
from partwise.support.arrays import Ints

_CHUNK = re.compile(r"O|[BIES]-.+")

#: Labels of a confusion matrix that people may want to look at.
MAX_CONFUSION = 60


def are_chunks(labels: Iterable[str]) -> bool:
    """Whether these labels are those of chunks: O, B-NP, I-NP, ..."""
    names = set(map(str, labels))
    return len(names - {"O"}) > 0 and all(_CHUNK.fullmatch(name) for name in names)


def most_frequent(keys: NDArray[Any], labels: NDArray[Any]) -> tuple[Ints, Ints, Ints]:
    """The label that each key is seen with most, the first one seen of several: (keys, labels, how often).

    Keys and labels are numbers, one of each per token.
    """
    width = int(labels.max()) + 1
    pairs, first, counts = np.unique(keys.astype(np.int64) * width + labels, return_index=True, return_counts=True)
    best = np.lexsort((first, -counts, pairs // width))
    best = best[np.flatnonzero(np.diff(pairs[best] // width, prepend=-1))]
    return pairs[best] // width, pairs[best] % width, counts[best]


def evaluate_sequences(gold: Sequence[Sequence[str]], guess: Sequence[Sequence[str]], chunks: bool) -> Evaluation:
    """Scores of label sequences."""
    single = evaluate_labels(list(chain.from_iterable(gold)), list(chain.from_iterable(guess)))
    if not chunks:
        return single
    found = chunk_scores(gold, guess)
    rows = [
        {
            "label": name,
            "precision": row.precision,
            "recall": row.recall,
            "f1": row.f1,
            "gold": row.n_true,
            "found": row.n_predicted,
        }
        for name, row in found.by_type.items()
    ]
    scores = {"f1": found.f1, "precision": found.precision, "recall": found.recall, "accuracy": found.accuracy}
    return Evaluation(scores, str(found), rows, single.confusion)


def evaluate_labels(gold: Sequence[Any], guess: Sequence[Any]) -> Evaluation:
    """Scores of single labels: accuracy, and precision, recall and F1 of each."""
    truth, found = Counter(gold), Counter(guess)
    right = Counter(a for a, b in zip(gold, guess, strict=True) if a == b)
    names = sorted(set(truth) | set(found), key=lambda name: (-truth[name], str(name)))
    rows: list[dict[str, Any]] = []
    for name in names:
        both = truth[name] + found[name]
        rows.append(
            {
                "label": str(name),
                "precision": right[name] / found[name] if found[name] else 0.0,
                "recall": right[name] / truth[name] if truth[name] else 0.0,
                "f1": 2 * right[name] / both if both else 0.0,
                "gold": truth[name],
                "found": found[name],
            }
        )
    accuracy = sum(right.values()) / len(gold) if gold else 0.0
    cells = [["label", "precision", "recall", "F1", "gold", "found"]]
    cells += [
        [
            row["label"],
            *(f"{row[key]:.2%}" for key in ("precision", "recall", "f1")),
            str(row["gold"]),
            str(row["found"]),
        ]
        for row in rows
    ]
    text = f"accuracy {accuracy:.2%} ({sum(right.values())} of {len(gold)})\n\n{table(cells)}"
    return Evaluation({"accuracy": accuracy}, text, rows, _confusion(names, gold, guess))


def class_weight_flag(text: str) -> click.Option:
    """--class-weight, with this help."""
    return click.Option(["--class-weight", "class_weights"], metavar="LABEL=WEIGHT", multiple=True, help=text)


def class_weight_of(
    given: Sequence[str], label_of: Callable[[str], Any] = str, what: str = "a number"
) -> str | dict[Any, float] | None:
    """The estimator's class_weight from flags; label_of: a label from its text; what: what is expected of them."""
    if "balanced" in given:
        if len(given) > 1:
            raise UserError("--class-weight: balanced cannot be combined with other weights")
        return "balanced"
    found: dict[Any, float] = {}
    for text in given:
        name, _, weight = text.rpartition("=")
        try:
            label, value = label_of(name), float(weight)
        except ValueError:
            raise UserError(f"--class-weight: expected LABEL=WEIGHT with {what}, or balanced, got {text!r}") from None
        if label in found:
            raise UserError(f"--class-weight: label {label} has two weights")
        found[label] = value
    return found or None


def check_weighted_labels(model: Any, data: Data) -> None:
    """UserError for a class weight of a label that all training data lack; a fold of them may lack it."""
    weights = getattr(model, "class_weight", None)
    if not isinstance(weights, Mapping) or data.y is None:
        return
    known = set(data.y.distinct() if hasattr(data.y, "distinct") else np.unique(data.y).tolist())
    for label in weights:
        if label not in known:
            raise UserError(f"--class-weight: label {label}, which is not in y: the data have no such label")


def _confusion(names: list[Any], gold: Sequence[Any], guess: Sequence[Any]) -> tuple[list[str], list[list[int]]] | None:
    if not names or len(names) > MAX_CONFUSION:
        return None
    place = {name: k for k, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(matrix, ([place[a] for a in gold], [place[b] for b in guess]), 1)
    return [str(name) for name in names], matrix.tolist()
