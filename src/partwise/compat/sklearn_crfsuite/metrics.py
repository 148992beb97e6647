"""scikit-learn's scores of single items, and the share of sequences without an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from sklearn import metrics as _metrics

from partwise.compat.sklearn_crfsuite.utils import flatten

Labels = Sequence[Sequence[Any]] | NDArray[Any]


def flat_accuracy_score(y_true: Labels, y_pred: Labels) -> Any:
    """Share of items with the right label."""
    return _metrics.accuracy_score(flatten(y_true), flatten(y_pred))


def flat_precision_score(y_true: Labels, y_pred: Labels, **kwargs: Any) -> Any:
    """Precision of items; arguments are scikit-learn's."""
    return _metrics.precision_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_recall_score(y_true: Labels, y_pred: Labels, **kwargs: Any) -> Any:
    """Recall of items; arguments are scikit-learn's."""
    return _metrics.recall_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_f1_score(y_true: Labels, y_pred: Labels, **kwargs: Any) -> Any:
    """F1 of items; arguments are scikit-learn's."""
    return _metrics.f1_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_fbeta_score(y_true: Labels, y_pred: Labels, beta: float, **kwargs: Any) -> Any:
    """F-beta of items; arguments are scikit-learn's."""
    return _metrics.fbeta_score(flatten(y_true), flatten(y_pred), beta=beta, **kwargs)


def flat_classification_report(y_true: Labels, y_pred: Labels, labels: Any = None, **kwargs: Any) -> Any:
    """scikit-learn's report on items."""
    return _metrics.classification_report(flatten(y_true), flatten(y_pred), labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Share of sequences without an error, 0 if there are none."""
    right = sum(one == two for one, two in zip(y_true, y_pred, strict=False))
    return right / len(y_true) if len(y_true) else 0
