"""Checks of a classifier's data: what is wrong is named by its row and column."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from partwise.features.sparse_inputs import own_sparse


def validated(estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
    """scikit-learn's `validate_data` of numbers in rows (and their labels), which refuses a cell by its place."""
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(each, str) for each in X):
        raise ValueError(
            "X is a list of strings: each row must be a list of attribute names, such as text.split(), a dict, or a "
            "row of a vectorizer's matrix"
        )
    # CSR rows to predict for are followed by `row_products` alone, which looks at each index
    X = X if not reset and sparse.issparse(X) and X.format == "csr" else own_sparse(X)
    options: dict[str, Any] = {"order": "C"} if reset else {}
    options["dtype"] = np.float64 if sparse.issparse(X) else [np.float64, np.float32]  # dense float32 stays float32
    try:
        return validate_data(estimator, X, *y, accept_sparse="csr", reset=reset, **options)
    except (TypeError, ValueError) as error:
        place = _bad_cell(own_sparse(X))
        if place is None:
            raise
        raise type(error)(f"{error}\nX: {place}") from error


def checked_labels(X: Any, y: Any) -> Any:
    """Labels of rows that are as many."""
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    missing = [i for i, label in enumerate(y.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"y: row {missing[0]}: label missing ({y.tolist()[missing[0]]!r})")
    check_classification_targets(y)
    return y


def feature_names(given: Any, n_features: int) -> list[str]:
    """Names of columns: a sequence of strings, or what a fitted transformer says that its columns are."""
    found = given.get_feature_names_out() if hasattr(given, "get_feature_names_out") else given
    if isinstance(found, str) or not hasattr(found, "__len__"):
        raise ValueError(f"feature_names must be a list of strings or a fitted transformer, got {given!r}")
    names = list(found)
    for column, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"feature_names: column {column}: a name must be a string, got {name!r}")
    if len(names) != n_features:
        raise ValueError(f"feature_names: {len(names)} names for {n_features} columns")
    return [str(name) for name in names]


def _bad_cell(X: Any) -> str | None:
    """Where X holds what is not a number or, if there is no such cell, not finite; None where all cells are fine."""
    if sparse.issparse(X):
        return _bad_entry(X)
    columns = getattr(X, "columns", None)
    if columns is not None:
        names, parts = list(columns), [X[name] for name in columns]
    else:
        array = np.asarray(X, dtype=object) if not isinstance(X, np.ndarray) else X
        if array.ndim != 2:
            return None
        names, parts = list(range(array.shape[1])), list(array.T)
    infinite = None
    for name, part in zip(names, parts, strict=True):
        values = np.asarray(part)
        if values.dtype.kind in "biu":
            continue
        for row, value in enumerate(values.tolist()):
            try:
                finite = np.isfinite(float(value))
            except (TypeError, ValueError):
                # scikit-learn turns cells into numbers before it looks whether they are finite
                return f"row {row}, column {name!r}: {value!r}"
            if infinite is None and not finite:
                infinite = f"row {row}, column {name!r}: {value!r}"
    return infinite


def _bad_entry(X: Any) -> str | None:
    table = X.tocoo()
    if table.data.dtype.kind not in "biuf":
        return None
    bad = np.flatnonzero(~np.isfinite(table.data))
    if not len(bad):
        return None
    first = bad[np.argmin(table.row[bad])]
    return f"row {table.row[first]}, column {table.col[first]}: {float(table.data[first])!r}"
