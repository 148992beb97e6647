"""Weights to model files and back.

Files know no padding: weights are stored one value per feature, in the order (attribute, label), so that they do not
depend on how rows of weights are laid out in memory.
"""

from __future__ import annotations

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import Array, ModelParts
from partwise.models.features import PairLayout
from partwise.structures import padded_width
from partwise.support.arrays import Floats, Ints, pointers

# coefficients


def coefficient_arrays(table: Floats) -> dict[str, Array]:
    """Rows of weights, all of them or, where most are zero, the others alone."""
    chosen = table != 0
    n = int(chosen.sum())
    if n > 0.6 * table.size or not _in_proportion(table.size, n):
        return {"weights": table}
    offsets = pointers(chosen.sum(axis=1))
    columns = np.nonzero(chosen)[1].astype(np.int64)
    return {"weights": table[chosen], "offsets": offsets, "columns": _narrow(columns, table.shape[1])}


def read_coefficients(parts: ModelParts, n_rows: int, n_columns: int | None = None) -> Floats:
    """The inverse of `coefficient_arrays`; n_columns: how many there must be."""
    most = 1 << 40
    n_columns = parts.integer("n_features", n_columns or 1, n_columns or most)
    if "columns" not in parts.arrays:
        return np.array(parts.floats("weights", n_rows, n_columns))
    columns = parts.ints("columns", None, low=0, high=n_columns)
    values = parts.floats("weights", len(columns))
    offsets = parts.pointers("offsets", n_rows, len(columns))
    if not _in_proportion(n_rows * n_columns, len(columns)):
        raise ModelFormatError(
            f"has {n_rows} x {n_columns} weights of which {len(columns)} are not zero: out of proportion"
        )
    rows = np.repeat(np.arange(n_rows), np.diff(offsets))
    if bool(((columns[1:] <= columns[:-1]) & (rows[1:] == rows[:-1])).any()):
        raise ModelFormatError("has weights in 'columns' that are not in order, or one twice")
    table = np.zeros((n_rows, n_columns))
    table[rows, columns] = values
    return table


def _in_proportion(size: int, n: int) -> bool:
    """Whether a file may hold n values of a table of this size: a small file must not ask for all memory."""
    return size <= max(1 << 24, 100 * n)


# layouts


def layout_parts(layout: PairLayout, weights: Floats) -> ModelParts:
    """Which (attribute, label) pairs there are, and their weights."""
    core = layout.core
    parts = ModelParts("pairs", {"all": layout.all_pairs, "n_attributes": core.num_attributes})
    parts.arrays["weights"] = core.unpack(weights)
    if not layout.all_pairs:
        indptr, columns = core.pairs()
        parts.arrays |= {"offsets": indptr, "columns": _narrow(columns, core.n_columns)}
    return parts


def read_layout(parts: ModelParts, n_labels: int, room: int = 0) -> tuple[PairLayout, Floats]:
    """The inverse of `layout_parts`; the weights have this many zeros after them."""
    n_attributes, width = parts.integer("n_attributes"), padded_width(n_labels)
    if parts.flag("all"):
        values = parts.floats("weights", n_attributes * n_labels)
        layout = PairLayout.every(n_attributes, n_labels, width)
    else:
        columns = parts.columns("columns", None, high=n_labels)
        values = parts.floats("weights", len(columns))
        indptr = parts.pointers("offsets", n_attributes, len(columns))
        layout = PairLayout.some(n_attributes, n_labels, width, indptr, columns)
    return layout, layout.core.pack(np.ascontiguousarray(values), room)


def edge_layout_parts(layout: PairLayout, weights: Floats, n_labels: int) -> ModelParts:
    """The same for (edge attribute, label, next label)."""
    core, width = layout.core, padded_width(n_labels)
    parts = ModelParts("triples", {"all": layout.all_pairs, "n_attributes": core.num_attributes})
    values = core.unpack(weights)
    if layout.all_pairs:
        table = values.reshape(core.num_attributes, n_labels, width)[:, :, :n_labels]
        parts.arrays["weights"] = np.ascontiguousarray(table)
    else:
        indptr, columns = core.pairs()
        cells = columns // width * n_labels + columns % width
        parts.arrays |= {"weights": values, "offsets": indptr, "columns": _narrow(cells, n_labels * n_labels)}
    return parts


def read_edge_layout(parts: ModelParts, n_labels: int) -> tuple[PairLayout, Floats]:
    """The inverse of `edge_layout_parts`."""
    n_attributes, width = parts.integer("n_attributes", 1), padded_width(n_labels)
    size = n_labels * width
    if parts.flag("all"):
        values = parts.floats("weights", n_attributes, n_labels, n_labels)
        table = np.zeros((n_attributes, n_labels, width))
        table[:, :, :n_labels] = values
        layout = PairLayout.every(n_attributes, size, size)
        return layout, layout.core.pack(table.ravel())
    cells = parts.ints("columns", None, low=0, high=n_labels * n_labels)
    values = parts.floats("weights", len(cells))
    indptr = parts.pointers("offsets", n_attributes, len(cells))
    layout = PairLayout.some(n_attributes, size, size, indptr, cells // n_labels * width + cells % n_labels)
    return layout, layout.core.pack(values)


def unpadded(run: Array, *shape: int) -> Array:
    """Rows of labels without their padding: the last of `shape` is the number of labels."""
    return np.ascontiguousarray(run.reshape(*shape[:-1], padded_width(shape[-1]))[..., : shape[-1]])


def padded(table: Array) -> Array:
    """Rows of labels with their padding, as one run."""
    out = np.zeros((*table.shape[:-1], padded_width(table.shape[-1])), dtype=table.dtype)
    out[..., : table.shape[-1]] = table
    return out.ravel()


def _narrow(columns: Ints, n_columns: int) -> Array:
    return columns.astype(np.uint16 if n_columns <= 1 << 16 else np.int32 if n_columns <= 1 << 31 else np.int64)
