"""Precision, recall and F1 of counts; scores of single labels: accuracy, confusion matrix, calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from partwise.support.arrays import Floats, Ints

#: A sequence of labels per sentence.
Sentences = Iterable[Sequence[Any]]
S = TypeVar("S", bound=Sized)
T = TypeVar("T", bound=Sized)


def share(part: float, whole: float) -> float:
    """Return part / whole, 0 where nothing was counted."""
    return part / whole if whole else 0.0


class Ratios:
    """Precision, recall and F1, as fractions of 1, for classes with these counts."""

    n_gold: int
    n_predicted: int
    n_right: int

    @property
    def precision(self) -> float:
        """The share of what was predicted that is right."""
        return share(self.n_right, self.n_predicted)

    @property
    def recall(self) -> float:
        """The share of what is in gold that was predicted."""
        return share(self.n_right, self.n_gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return share(2.0 * self.n_right, self.n_gold + self.n_predicted)


def paired(y_true: Iterable[S], other: Iterable[T], name: str = "y_pred") -> list[tuple[S, T]]:
    """Return sentences in pairs; ValueError if the numbers of sentences or tokens differ."""
    gold, guess = list(y_true), list(other)
    if len(gold) != len(guess):
        raise ValueError(f"y_true has {len(gold)} sentences, {name} has {len(guess)}")
    pairs = list(zip(gold, guess, strict=True))
    for i, (a, b) in enumerate(pairs):
        if any(isinstance(side, str) or not hasattr(side, "__len__") for side in (a, b)):
            raise ValueError(f"sentence {i}: expected a sequence of labels, not a string or a single label")
        if len(a) != len(b):
            raise ValueError(f"sentence {i}: y_true has {len(a)} labels, {name} has {len(b)}")
    return pairs


def _flattened(y_true: Sentences, y_pred: Sentences) -> tuple[list[Any], list[Any]]:
    pairs = paired(y_true, y_pred)
    return [label for gold, _ in pairs for label in gold], [label for _, guess in pairs for label in guess]


def token_accuracy(y_true: Sentences, y_pred: Sentences) -> float:
    """Return the share of tokens whose label is right, 0 without tokens; both are label sequences, one per sentence."""
    gold, guess = _flattened(y_true, y_pred)
    return share(sum(bool(a == b) for a, b in zip(gold, guess, strict=True)), len(gold))


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """How often each label was given each label: rows are the gold labels, columns the labels given.

    Attributes
    ----------
    labels : the labels of rows and columns
    counts : counts[i, j] tokens have the label labels[i] and were given labels[j]
    """

    labels: tuple[Any, ...]
    counts: Ints

    @property
    def accuracy(self) -> float:
        """The share of tokens on the diagonal; 0 without tokens."""
        return share(float(np.trace(self.counts)), int(self.counts.sum()))

    def most_confused(self, n: int = 10) -> list[tuple[Any, Any, int]]:
        """Return the n most frequent errors as (label, label given, count), the most frequent first."""
        errors = self.counts.copy()
        np.fill_diagonal(errors, 0)
        order = np.argsort(-errors, axis=None, kind="stable")[:n]
        rows, columns = np.unravel_index(order, errors.shape)
        found = zip(rows.tolist(), columns.tolist(), strict=True)
        return [(self.labels[i], self.labels[j], int(errors[i, j])) for i, j in found if errors[i, j]]

    def __str__(self) -> str:
        names = [str(label) for label in self.labels]
        cells = [["", *names], *([name, *map(str, row)] for name, row in zip(names, self.counts.tolist(), strict=True))]
        # Longer labels stand out: as many cells of the longest one's length could fill the memory.
        widths = [min(max(map(len, column)), 100) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def confusion_matrix(y_true: Sentences, y_pred: Sentences, labels: Sequence[Any] | None = None) -> ConfusionMatrix:
    """Count how often each label was given each label.

    Raises ValueError if the numbers of sentences or tokens differ, or a label is not in `labels`.

    Parameters
    ----------
    y_true, y_pred : iterables of label sequences, one per sentence
    labels : the labels in order; None: all that occur, sorted (by their text if they cannot be compared)
    """
    gold, guess = _flattened(y_true, y_pred)
    names = tuple({*gold, *guess} if labels is None else labels)
    if labels is None:
        try:
            names = tuple(sorted(names))
        except TypeError:
            names = tuple(sorted(names, key=str))
    index = {label: k for k, label in enumerate(names)}
    if len(index) != len(names):
        raise ValueError("labels holds a label twice")
    missing = next((label for label in chain(gold, guess) if label not in index), None)
    if missing is not None:
        raise ValueError(f"label {missing!r} is not in labels")
    n = len(names)
    cells = np.fromiter((index[a] * n + index[b] for a, b in zip(gold, guess, strict=True)), np.int64, len(gold))
    return ConfusionMatrix(names, np.bincount(cells, minlength=n * n).reshape(n, n))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Whether probabilities are what they say: of the tokens labelled with confidence 0.8, are 80% right?

    A token's confidence is the probability of its most probable label. Tokens are put into bins of equal width by
    confidence; a bin's accuracy is the share of its tokens whose most probable label is right.

        expected calibration error = sum over bins of n_bin / n * |accuracy_bin - mean confidence_bin|
        Brier score                = mean over tokens of sum over labels of (probability - [label is right])^2

    Attributes
    ----------
    edges : bin b holds confidences in (edges[b], edges[b + 1]], the first one 0 too
    count : tokens of each bin
    confidence, accuracy : their mean confidence and the share that is right; NaN for empty bins
    ece : expected calibration error
    brier : Brier score, between 0 and 2
    """

    edges: Floats
    count: Ints
    confidence: Floats
    accuracy: Floats
    ece: float
    brier: float

    def __str__(self) -> str:
        lines = ["confidence          tokens    mean  right"]
        for b in np.flatnonzero(self.count).tolist():
            low, high = self.edges[b], self.edges[b + 1]
            shares = f"{self.confidence[b]:.4f}  {self.accuracy[b]:.4f}"
            lines.append(f"({low:.2f}, {high:.2f}]  {self.count[b]:>12}  {shares}")
        return "\n".join([*lines, f"expected calibration error {self.ece:.4f}; Brier score {self.brier:.4f}"])


def calibration(
    y_true: Sentences, marginals: Iterable[Any], labels: Sequence[Any] | None = None, n_bins: int = 10
) -> Calibration:
    """Compare marginal probabilities with what is right.

    Raises ValueError if the numbers of sentences or tokens differ, or a probability is not between 0 and 1.

    Parameters
    ----------
    y_true : label sequences, one per sentence
    marginals : what `SequenceTagger.predict_marginals` gives: for each sentence a list of dicts {label: probability},
        or (output="array") an array of shape (length, n_labels)
    labels : the labels of the arrays' columns (`classes_`); not needed for dicts
    n_bins : number of bins
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise ValueError(f"n_bins must be an integer >= 1, got {n_bins!r}")
    names = None if labels is None else getattr(labels, "tolist", lambda: list(labels))()
    rows: list[Floats] = []
    flat: list[Any] = []
    for right, table in filter(lambda pair: len(pair[0]), paired(y_true, marginals, "marginals")):
        if names is None:
            if not isinstance(table[0], dict):
                raise ValueError("labels are needed to read arrays of marginals")
            names = list(table[0])
        if isinstance(table[0], dict):
            table = [[token[name] for name in names] for token in table]
        rows.append(np.asarray(table, dtype=np.float64).reshape(len(right), len(names)))
        flat.extend(right)
    if not rows or names is None:
        raise ValueError("there is no token to score")
    p = np.concatenate(rows)
    if not (np.isfinite(p).all() and p.min() >= -1e-9 and p.max() <= 1 + 1e-9):
        raise ValueError("marginals must be probabilities, between 0 and 1")
    index = {name: k for k, name in enumerate(names)}
    truth = np.array([index.get(label, -1) for label in flat], dtype=np.int64)

    confidence = np.clip(p.max(axis=1), 0.0, 1.0)
    correct = p.argmax(axis=1) == truth
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bins = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(bins, weights=confidence, minlength=n_bins) / count
        accuracy = np.bincount(bins, weights=correct, minlength=n_bins) / count
    share = count / len(truth)
    ece = float(np.sum(np.where(count > 0, share * np.abs(accuracy - mean), 0.0)))
    # |p - e|^2 with e the right label's unit vector; a label without a column has probability 0.
    known = truth >= 0
    of_truth = np.where(known, p[np.arange(len(truth)), np.where(known, truth, 0)], 0.0)
    brier = float(np.mean((p**2).sum(axis=1) - 2.0 * of_truth + 1.0))
    return Calibration(edges, count, mean, accuracy, ece, brier)
