"""Scores of labels one by one: accuracy and confusion matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray


def flatten(y_true: Iterable[Any], y_pred: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """All labels end to end. ValueError if the numbers of sentences or tokens differ."""
    gold, guess = list(y_true), list(y_pred)
    if len(gold) != len(guess):
        raise ValueError(f"y_true has {len(gold)} sentences, y_pred has {len(guess)}")
    for i, (a, b) in enumerate(zip(gold, guess, strict=True)):
        if any(isinstance(side, str) or not hasattr(side, "__len__") for side in (a, b)):
            raise ValueError(f"sentence {i}: expected a sequence of labels")
        if len(a) != len(b):
            raise ValueError(f"sentence {i}: y_true has {len(a)} labels, y_pred has {len(b)}")
    return list(chain.from_iterable(gold)), list(chain.from_iterable(guess))


def token_accuracy(y_true: Iterable[Any], y_pred: Iterable[Any]) -> float:
    """Share of tokens whose label is right; 0 if there are none.

    Parameters
    ----------
    y_true, y_pred : iterables of label sequences, one per sentence
    """
    gold, guess = flatten(y_true, y_pred)
    return sum(bool(a == b) for a, b in zip(gold, guess, strict=True)) / len(gold) if gold else 0.0


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """How often each label was given each label.

    Attributes
    ----------
    labels : the labels of rows and columns
    counts : counts[i, j] tokens have the label labels[i] and were given labels[j]
    """

    labels: tuple[Any, ...]
    counts: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Share of tokens on the diagonal; 0 if there are none."""
        total = int(self.counts.sum())
        return float(np.trace(self.counts)) / total if total else 0.0

    def most_confused(self, n: int = 10) -> list[tuple[Any, Any, int]]:
        """The n most frequent errors as (label, label given, count), the most frequent first."""
        errors = self.counts.copy()
        np.fill_diagonal(errors, 0)
        order = np.argsort(-errors, axis=None, kind="stable")[:n]
        rows, columns = np.unravel_index(order, errors.shape)
        found = zip(rows.tolist(), columns.tolist(), strict=True)
        return [(self.labels[i], self.labels[j], int(errors[i, j])) for i, j in found if errors[i, j]]

    def __str__(self) -> str:
        """Rows are the right labels, columns the labels given."""
        names = [str(label) for label in self.labels]
        cells = [["", *names], *([name, *map(str, row)] for name, row in zip(names, self.counts.tolist(), strict=True))]
        # Longer labels stand out: as many cells of the longest one's length could fill the memory.
        widths = [min(max(map(len, column)), 100) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def confusion_matrix(
    y_true: Iterable[Any], y_pred: Iterable[Any], labels: Sequence[Any] | None = None
) -> ConfusionMatrix:
    """Count labels against labels given.

    Parameters
    ----------
    y_true, y_pred : iterables of label sequences, one per sentence
    labels : the labels, in the order wanted; None: all there are, sorted (by their text if they cannot be compared)

    Raises
    ------
    ValueError
        If the numbers of sentences or tokens differ, or a label is not in `labels`.
    """
    gold, guess = flatten(y_true, y_pred)
    if labels is None:
        seen = {*gold, *guess}
        try:
            names = tuple(sorted(seen))
        except TypeError:
            names = tuple(sorted(seen, key=str))
    else:
        names = tuple(labels)
    index = {label: k for k, label in enumerate(names)}
    if len(index) != len(names):
        raise ValueError("labels holds a label twice")
    missing = next((label for label in chain(gold, guess) if label not in index), None)
    if missing is not None:
        raise ValueError(f"label {missing!r} is not in labels")
    n = len(names)
    cells = np.fromiter((index[a] * n + index[b] for a, b in zip(gold, guess, strict=True)), np.int64, len(gold))
    return ConfusionMatrix(names, np.bincount(cells, minlength=n * n).reshape(n, n))
