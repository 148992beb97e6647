"""Weights of rows by their labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partwise.support.arrays import Floats
from partwise.support.checks import MOST_WEIGHT, check_choice, check_positive

if TYPE_CHECKING:
    from partwise.models.sequences.labels import Targets


def with_class_weight(
    class_weight: Any, y: NDArray[Any], weight: Floats | None, classes: NDArray[Any] | None = None
) -> Floats | None:
    """Row weights times the weights of their labels; classes: all labels, where y may have some of them only."""
    if class_weight is None:
        return weight
    if classes is not None and isinstance(class_weight, str):
        raise ValueError(f"class_weight={class_weight!r} is not available with partial_fit: give a mapping")
    seen, labels = np.unique(y, return_inverse=True)
    if classes is not None:
        seen, labels = classes, np.searchsorted(classes, seen)[labels]
    rows = np.ones(len(y)) if weight is None else weight
    sums: Floats = np.bincount(labels, weights=rows, minlength=len(seen)).astype(np.float64, copy=False)
    factors = label_factors(class_weight, seen, sums)
    product: Floats = rows * factors[labels]
    return product


def warn_of_gone(before: NDArray[Any], after: NDArray[Any]) -> None:
    """Warn of labels that are gone, because class_weight leaves no example of them."""
    gone = [label for label in before.tolist() if not np.any(after == label)]
    if gone:
        names = ", ".join(map(repr, gone[:5]))
        warnings.warn(
            f"y: all examples with {names} have weight 0, so that nothing is learnt of it and classes_ is without it",
            UserWarning,
            stacklevel=3,
        )


def sequence_weights(class_weight: Any, targets: Targets, weight: Floats | None, classes: Any = None) -> Floats:
    """Weights of sequences: each is multiplied by the mean of the weights of its labels.

    The weight of an example multiplies the loss of its whole labelling, which is no sum over positions: so there is an
    objective, a dual and a certificate as ever. classes: all labels, where `targets` may have some of them only.
    """
    if classes is not None and isinstance(class_weight, str):
        raise ValueError(f"class_weight={class_weight!r} is not available with partial_fit: give a mapping")
    lengths = targets.lengths("y")
    rows = np.ones(len(lengths)) if weight is None else weight
    known = targets.classes() if classes is None else classes
    labels = targets.encode(known)
    if (labels < 0).any():
        raise ValueError(f"y has the label {targets.flat[int(np.argmin(labels))]!r}, which is not known")
    sums = np.bincount(labels, weights=np.repeat(rows, lengths), minlength=len(known)).astype(np.float64)
    each = label_factors(class_weight, known, sums)[labels]
    owner = np.repeat(np.arange(len(lengths)), lengths)
    totals: Floats = np.bincount(owner, weights=each, minlength=len(lengths)) / np.maximum(lengths, 1)
    return rows * np.where(lengths > 0, totals, 1.0)


def label_factors(class_weight: Any, seen: NDArray[Any], sums: Floats) -> Floats:
    """What the weights of rows with each of the labels `seen` are multiplied by; sums: of their weights.

    ValueError for what is no class_weight, or not one of these labels.
    """
    if class_weight is None:
        return np.ones(len(seen))
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        # Labels that only rows of weight 0 have do not count.
        balanced: Floats = sums.sum() / ((sums > 0).sum() * np.where(sums > 0, sums, 1.0))
        return balanced
    if isinstance(class_weight, Mapping):
        unknown = [label for label in class_weight if not np.any(seen == label)]
        if unknown:  # so it may be in a fold of the data
            names = ", ".join(repr(label) for label in unknown[:5])
            warnings.warn(f"class_weight names labels that are not in y: {names}", UserWarning, stacklevel=3)
        for label, value in class_weight.items():
            check_positive(f"class_weight of label {label!r}", value, zero=True)
            if value > MOST_WEIGHT:
                raise ValueError(f"class_weight of label {label!r} is {value}: at most {MOST_WEIGHT:g}")
        factors = np.array([float(class_weight.get(label, 1.0)) for label in seen.tolist()])
        if not (factors * sums).any():
            raise ValueError("class_weight and sample_weight leave no row with a weight above 0")
        return factors
    raise ValueError(f"class_weight must be None, 'balanced' or a mapping, got {class_weight!r}")
