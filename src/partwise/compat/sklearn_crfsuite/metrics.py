"""scikit-learn's scores of single items, and the share of sequences without an error."""

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray
from sklearn import metrics as _metrics

from partwise.compat.sklearn_crfsuite.utils import flatten

Labels = Sequence[Sequence[object]] | NDArray[Any]


def _of_items(name: str, *arguments: str) -> Callable[..., Any]:
    """Return scikit-learn's score `name` of the items of all sequences; `arguments` may be given by position."""
    score = getattr(_metrics, name)

    def flat(y_true: Labels, y_pred: Labels, *args: object, **options: object) -> object:
        options |= dict(zip(arguments[: len(args)], args, strict=True))
        return score(flatten(y_true), flatten(y_pred), **options)

    flat.__name__ = flat.__qualname__ = f"flat_{name}"
    flat.__doc__ = f"Return scikit-learn's `{name}` of all items; further arguments are scikit-learn's."
    return flat


flat_accuracy_score = _of_items("accuracy_score")
flat_precision_score = _of_items("precision_score")
flat_recall_score = _of_items("recall_score")
flat_f1_score = _of_items("f1_score")
flat_fbeta_score = _of_items("fbeta_score", "beta")
flat_classification_report = _of_items("classification_report", "labels")


def sequence_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Return the share of sequences without an error, 0 if there are none."""
    right = sum(one == two for one, two in zip(y_true, y_pred, strict=False))
    return right / len(y_true) if len(y_true) else 0
