"""Intercepts of a classifier that are not penalised."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from partwise.features import Attributes
from partwise.losses import Loss
from partwise.models.encoded import EncodedRows
from partwise.models.rows import Rows
from partwise.penalties import Free
from partwise.structures import padded_width

if TYPE_CHECKING:
    from partwise.models.classes import ClassesModel


def free_intercepts(model: ClassesModel, encoded: EncodedRows, loss: Loss) -> Free:
    """The weights of the column of ones, and what bounds them.

    At w = 0 the loss of an example is at most phi(tau log(number of labels) + kappa times the largest cost).
    """
    n_labels, n = len(model.classes), encoded.size.n_examples
    weight = np.ones(n) if encoded.weight is None else encoded.weight
    by_label = np.bincount(encoded.labels, weights=weight, minlength=n_labels)
    table = model.costs_of(model.classes.tolist())
    cost = loss.cost_scale * (1.0 if table is None else float(np.max(table)))
    violation = loss.temperature * log(n_labels) + cost
    at_zero = float(weight.sum()) * (violation**2 if loss.link == "squared" else violation)
    reach, largest = _sizes(encoded.rows)
    width = 1 if model.one_sided else padded_width(n_labels)
    start = (model.n_attributes - 1) * width
    stop = start + (1 if model.one_sided else n_labels)
    return Free(start, stop, at_zero, tuple(by_label.tolist()), reach, largest, loss.link)


def _sizes(rows: Rows) -> tuple[float, float]:
    """The largest norm of a row, and the largest absolute value."""
    table = rows.table
    if not isinstance(table, Attributes):
        squares = np.einsum("ij,ij->i", table, table, dtype=np.float64)
        return float(np.sqrt(squares.max(initial=0.0))), float(np.abs(table).max(initial=0.0))
    values = np.ones(len(table.attributes)) if table.values is None else np.abs(table.values)
    starts = table.row_ptr[:-1][np.diff(table.row_ptr) > 0]
    squares = np.add.reduceat(values * values, starts) * (1 + 1e-9) if len(starts) else np.zeros(0)
    return float(np.sqrt(squares.max(initial=0.0))), float(values.max(initial=0.0))
