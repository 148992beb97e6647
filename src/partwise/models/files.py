"""Weights to model files and back: one value per feature, by attribute and label, without the padding of memory."""

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import Array, ModelParts
from partwise.models.features import PairLayout
from partwise.structures import padded_width
from partwise.support.arrays import Floats, Ints, pointers


def coefficient_arrays(table: Floats) -> dict[str, Array]:
    """Return rows of weights: all of them or, if most are zero, the others alone."""
    chosen = table != 0
    n = int(chosen.sum())
    if n > 0.6 * table.size or not _in_proportion(table.size, n):
        return {"weights": table}
    columns = _narrow(np.nonzero(chosen)[1].astype(np.int64), table.shape[1])
    return {"weights": table[chosen], "offsets": pointers(chosen.sum(axis=1)), "columns": columns}


def read_coefficients(parts: ModelParts, n_rows: int, n_columns: int | None = None) -> Floats:
    """Return what `coefficient_arrays` wrote; n_columns: how many there must be."""
    n_columns = parts.integer("n_features", n_columns or 1, n_columns or 1 << 40)
    if "columns" not in parts.arrays:
        return np.array(parts.floats("weights", n_rows, n_columns))
    columns = parts.ints("columns", None, low=0, high=n_columns)
    values = parts.floats("weights", len(columns))
    offsets = parts.pointers("offsets", n_rows, len(columns))
    if not _in_proportion(n_rows * n_columns, len(columns)):
        size = f"{n_rows} x {n_columns}"
        raise ModelFormatError(f"has {size} weights of which {len(columns)} are not zero: out of proportion")
    rows = np.repeat(np.arange(n_rows), np.diff(offsets))
    if bool(((columns[1:] <= columns[:-1]) & (rows[1:] == rows[:-1])).any()):
        raise ModelFormatError("has weights in 'columns' that are not in order, or one twice")
    table = np.zeros((n_rows, n_columns))
    table[rows, columns] = values
    return table


def _in_proportion(size: int, n: int) -> bool:
    """Return whether a file may hold n values of a table of this size: a small file must not ask for all memory."""
    return size <= max(1 << 24, 100 * n)


def layout_parts(layout: PairLayout, weights: Floats, edge_labels: int = 0) -> ModelParts:
    """Return (attribute, label) pairs with weights; edge_labels: how many labels, if columns are pairs of labels."""
    core, n = layout.core, edge_labels
    parts = ModelParts("triples" if n else "pairs", {"all": layout.all_pairs, "n_attributes": core.num_attributes})
    values = core.unpack(weights)
    if layout.all_pairs:
        parts.arrays["weights"] = unpadded(values, core.num_attributes, n, n) if n else values
    else:
        indptr, columns = core.pairs()
        if n:
            columns = columns // padded_width(n) * n + columns % padded_width(n)
        parts.arrays |= {"weights": values, "offsets": indptr, "columns": _narrow(columns, n * n or core.n_columns)}
    return parts


def read_layout(parts: ModelParts, n_labels: int, room: int = 0) -> tuple[PairLayout, Floats]:
    """Return what `layout_parts` wrote; the weights have this many zeros after them."""
    shape = parts.integer("n_attributes"), n_labels, padded_width(n_labels)
    if parts.flag("all"):
        layout, n_values = PairLayout.every(*shape), shape[0] * n_labels
    else:
        columns = parts.columns("columns", None, high=n_labels)
        layout = PairLayout.some(*shape, parts.pointers("offsets", shape[0], len(columns)), columns)
        n_values = len(columns)
    return layout, layout.core.pack(np.ascontiguousarray(parts.floats("weights", n_values)), room)


def read_edge_layout(parts: ModelParts, n_labels: int) -> tuple[PairLayout, Floats]:
    """Return what `layout_parts` wrote of (edge attribute, label, next label)."""
    n_attributes, width = parts.integer("n_attributes", 1), padded_width(n_labels)
    size = n_labels * width
    if parts.flag("all"):
        layout = PairLayout.every(n_attributes, size, size)
        return layout, layout.core.pack(padded(parts.floats("weights", n_attributes, n_labels, n_labels)))
    cells = parts.ints("columns", None, low=0, high=n_labels * n_labels)
    values = parts.floats("weights", len(cells))
    indptr = parts.pointers("offsets", n_attributes, len(cells))
    layout = PairLayout.some(n_attributes, size, size, indptr, cells // n_labels * width + cells % n_labels)
    return layout, layout.core.pack(values)


def unpadded(run: Array, *shape: int) -> Array:
    """Return rows of labels without their padding: the last of `shape` is the number of labels."""
    return np.ascontiguousarray(run.reshape(*shape[:-1], padded_width(shape[-1]))[..., : shape[-1]])


def padded(table: Array) -> Array:
    """Return rows of labels with their padding, as one run."""
    out = np.zeros((*table.shape[:-1], padded_width(table.shape[-1])), dtype=table.dtype)
    out[..., : table.shape[-1]] = table
    return out.ravel()


def _narrow(columns: Ints, n_columns: int) -> Array:
    return columns.astype(np.uint16 if n_columns <= 1 << 16 else np.int32 if n_columns <= 1 << 31 else np.int64)
