"""Intercepts of a classifier that are not penalised."""

from __future__ import annotations

import warnings
from math import log
from typing import TYPE_CHECKING

import numpy as np

from partwise.features import Attributes
from partwise.models.encoded import EncodedRows
from partwise.models.features import Rows
from partwise.problem.capabilities import Capability
from partwise.problem.losses import Loss
from partwise.problem.penalties import Free
from partwise.solvers import Solver
from partwise.structures import padded_width
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.base import Training
    from partwise.models.classes.model import ClassesModel


#: A column's mean over its standard deviation from which on a penalty on the intercept does harm.
FAR = 10.0


def choose_intercepts(model: ClassesModel, encoded: EncodedRows, training: Training) -> Free | None:
    """The weights without a penalty, if the intercept has none; a warning where a penalty by default does harm.

    By default intercepts have no penalty where that is possible: smooth losses, no l1 term, and a solver that takes
    them.
    """
    choice = model.penalize_intercept
    if not model.fit_intercept or choice:
        return None
    solver = training.solver
    takes = not isinstance(solver, Solver) or Capability.ALL_PENALISED not in solver.requires
    if choice is not None or (training.loss.smooth and not training.l1 and takes):
        found = free_intercepts(model, encoded, training.loss)
        if found is not None:
            return found
        message = (
            "penalize_intercept=False needs examples of every label, but some labels have none of positive weight: the "
            "best intercept of such a label is minus infinity; leave these labels out, or set penalize_intercept=True"
        )
        if choice is not None:
            raise ValueError(message)
    far = _far_columns(encoded.rows)
    if len(far):
        name = model.column_name(int(far[0]))
        warnings.warn(
            f"the intercept is penalised like other weights, and column {name!r} (of {len(far)} such) has a mean more "
            f"than {FAR:g} times its standard deviation: the penalty keeps the intercept from making up for that; "
            "subtract the mean, or set penalize_intercept=False where the loss is smooth",
            UserWarning,
            stacklevel=2,
        )
    return None


def _far_columns(rows: Rows) -> Ints:
    """Columns whose values are far from 0 beside their spread, and not all the same."""
    table = rows.table
    n = max(rows.n_rows, 1)
    if not isinstance(table, Attributes):
        mean = table.mean(axis=0, dtype=np.float64)
        deviation = table.std(axis=0, dtype=np.float64)
    else:
        values = np.ones(len(table.attributes)) if table.values is None else table.values
        sums = (
            np.bincount(table.attributes, weights=each, minlength=rows.n_attributes) for each in (values, values**2)
        )
        mean, square = (each / n for each in sums)
        deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
    same = deviation <= 1e-6 * np.abs(mean)
    found: Ints = np.flatnonzero(~same & (np.abs(mean) > FAR * deviation))
    return found


def free_intercepts(model: ClassesModel, encoded: EncodedRows, loss: Loss) -> Free | None:
    """The weights of the column of ones, and what bounds them; None where a label has no example.

    At w = 0 the loss of an example is at most phi(tau log(number of labels) + kappa times the largest cost), and with
    intercepts tau log q_k, q_k the share of label k, phi(tau log(1 / q_k) + kappa times the largest cost).
    """
    n_labels, n = len(model.classes), encoded.size.n_examples
    weight = np.ones(n) if encoded.weight is None else encoded.weight
    by_label = np.bincount(encoded.labels, weights=weight, minlength=n_labels)
    if not by_label.min() > 0:
        return None
    table = model.costs_of(model.classes.tolist())
    cost = loss.cost_scale * (1.0 if table is None else float(np.max(table)))
    total = by_label.sum()
    violations = cost + loss.temperature * np.stack([np.full(n_labels, log(n_labels)), np.log(total / by_label)])
    losses = violations**2 if loss.link == "squared" else violations
    at_zero = float((losses @ by_label).min())
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
