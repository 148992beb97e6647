"""Whether probabilities are what they say: of the tokens labelled with confidence 0.8, are 80% right?

A token's confidence is the probability of its most probable label. Tokens are put into bins of equal width by
confidence; a bin's reliability is the share of its tokens whose most probable label is right.

    expected calibration error = sum over bins of n_bin / n * |accuracy_bin - mean confidence_bin|
    Brier score                = mean over tokens of sum over labels of (probability - [label is right])^2
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.support.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Calibration:
    """The reliability table and its summaries.

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
        """The bins that are not empty, and the summaries."""
        lines = ["confidence          tokens    mean  right"]
        for b in np.flatnonzero(self.count).tolist():
            low, high = self.edges[b], self.edges[b + 1]
            lines.append(
                f"({low:.2f}, {high:.2f}]  {self.count[b]:>12}  {self.confidence[b]:.4f}  {self.accuracy[b]:.4f}"
            )
        return "\n".join([*lines, f"expected calibration error {self.ece:.4f}; Brier score {self.brier:.4f}"])


def calibration(
    y_true: Iterable[Sequence[Any]], marginals: Iterable[Any], labels: Sequence[Any] | None = None, n_bins: int = 10
) -> Calibration:
    """Compare marginal probabilities with what is right.

    Parameters
    ----------
    y_true : label sequences, one per sentence
    marginals : what `SequenceTagger.predict_marginals` gives: for each sentence a list of dicts {label: probability},
        or (output="array") an array of shape (length, n_labels)
    labels : the labels of the arrays' columns (`classes_`); not needed for dicts
    n_bins : number of bins

    Raises
    ------
    ValueError
        If the numbers of sentences or tokens differ, or a probability is not between 0 and 1.
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise ValueError(f"n_bins must be an integer >= 1, got {n_bins!r}")
    gold, tables = list(y_true), list(marginals)
    if len(gold) != len(tables):
        raise ValueError(f"y_true has {len(gold)} sentences, marginals has {len(tables)}")
    names = None if labels is None else getattr(labels, "tolist", lambda: list(labels))()
    rows: list[Floats] = []
    flat: list[Any] = []
    for i, (right, table) in enumerate(zip(gold, tables, strict=True)):
        if len(right) != len(table):
            raise ValueError(f"sentence {i}: y_true has {len(right)} labels, marginals has {len(table)}")
        if not len(right):
            continue
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
