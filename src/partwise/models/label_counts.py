"""More labels than can be meant: refused before anything is built for them, or warned about."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from partwise.support.arrays import Ints
from partwise.support.memory import check_weights, size_text

#: Labels that a model may have whose parts are pairs of labels: a table of all pairs takes 20 GB.
MOST_LABELS = 50_000
#: Up to so many are not looked at; products of positions and pairs of labels from which on a pass takes minutes.
FEW_LABELS, SLOW_PASS = 100, 1e11
#: Segments with their types that a pass goes through, from which on it takes many seconds.
SLOW_SEGMENTS = 1e9
#: Rows from which on labels are counted before anything else is done, and rows of items that are looked at.
MANY_ROWS, FIRST_ROWS = 100_000, 1000


def check_distinct(labels: Iterable[Any], what: str = "labels") -> None:
    """ValueError as soon as more than `MOST_LABELS` different ones have come; what is no label is left to others."""
    found: set[Any] = set()
    left = iter(labels)
    try:
        while some := list(islice(left, MOST_LABELS)):
            found.update(some)
            if len(found) > MOST_LABELS:
                break
    except TypeError:  # said where they are read
        return
    if len(found) > MOST_LABELS:
        size = size_text(8.0 * len(found) ** 2)
        raise ValueError(
            f"y has more than {MOST_LABELS} different {what}: tables of them would be too large (one of all pairs "
            f"takes {size} or more)"
        )


def check_table(X: Any, y: Any) -> None:
    """TooLarge at once for more weights of (column, label) than fit: very many labels take seconds to be sorted.

    X: a matrix, or a list of items, whose different names are counted in the first rows alone.
    """
    if not isinstance(y, (list, np.ndarray)) or len(y) < MANY_ROWS:
        return
    shape: tuple[int, ...] = getattr(X, "shape", ())
    try:
        n_labels = len(set(y if isinstance(y, list) else y.tolist()))
        rows = X[:FIRST_ROWS] if isinstance(X, list) else ()
        n_columns = shape[1] if len(shape) == 2 else len({name for row in rows for name in row})
    except TypeError:  # what is wrong with them is said where they are read
        return
    check_weights(n_labels * n_columns, f"{n_columns:,} features or more, {n_labels:,} classes")


def node_labels(trees: Iterable[Any]) -> Iterator[Any]:
    """First entries of all tuples within tuples."""
    left = [iter(trees)]
    while left:
        for node in left[-1]:
            if isinstance(node, tuple) and node:
                yield node[0]
                left.append(iter(node[1:]))
                break
        else:
            left.pop()


def given_labels(X: Any, y: Any) -> Iterator[str]:
    """Labels of the nodes of trees as they are given, in y or in X."""
    given = X if y is None else y
    return (label for label in node_labels(given if isinstance(given, list) else ()) if isinstance(label, str))


def warn_of_many_labels(counts: Ints, label_table: int = 0, what: str = "labels", place: str = "position") -> None:
    """Warn where labels may be something else by mistake, or a pass over the data takes minutes.

    Parameters
    ----------
    counts : how often each label occurs
    label_table : numbers in a table of what labels go with each other, which each position looks at
    """
    n_labels, n_places = len(counts), int(counts.sum())
    once = int(np.count_nonzero(counts == 1))
    if n_labels > FEW_LABELS and 2 * once > n_labels:
        why = f"{once:,} of them occur once: are they {what}?"
    elif n_places * label_table > SLOW_PASS:
        why = f"a pass goes through {label_table:,} pairs of them at each of {n_places:,} {place}s"
    else:
        return
    warnings.warn(f"y has {n_labels:,} different {what}; {why}", UserWarning, stacklevel=3)


def warn_of_long_segments(lengths: Ints, max_length: int, n_types: int) -> None:
    """Warn where a pass over all segments of sequences of these lengths takes long."""
    work = n_types * float((lengths * np.minimum(lengths, max_length)).sum())
    if work > SLOW_SEGMENTS:
        text = (
            f"segments may have {max_length:,} positions: a pass goes through {work:.2g} of them; max_length limits it"
        )
        warnings.warn(text, UserWarning, stacklevel=3)
