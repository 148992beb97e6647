"""Reading sequences of numbers: attribute j is column j."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from partwise.features.sparse_inputs import own_sparse
from partwise.model_files.parts import ModelParts
from partwise.models.rows import Rows, csr_attributes
from partwise.models.sequences.inputs import Sequences, input_form, length_of
from partwise.models.sequences.reader import Reader, not_finite
from partwise.support.arrays import Booleans, InputRows, Ints


class ColumnReader(Reader):
    """Reads sequences given as 2-D arrays or sparse matrices."""

    kind: ClassVar[str] = "columns"
    named: ClassVar[bool] = False

    def __init__(self, n_features: int | None = None) -> None:
        self.n_features = n_features

    @property
    def n_attributes(self) -> int:
        return self.n_features or 0

    def sequences(self, X: Any) -> Sequences:
        sequences = Sequences.of(X)
        if input_form(sequences) not in ("dense", "sparse", "none"):
            raise ValueError(f"X: {sequences.one}s must be 2-D arrays of numbers or sparse matrices, as in fit")
        return sequences

    def read(self, sequences: Sequences, min_count: int = 1, n_jobs: int = 1) -> Rows:
        """All rows end to end; a column that is seen less than `min_count` times is one of the others."""
        lengths, form = sequences.lengths(), input_form(sequences)
        blocks = []
        for number, item in zip(sequences.numbers, sequences.items, strict=True):
            if length_of(item) == 0:
                continue
            name = f"{sequences.one} {number}"
            block = (
                _sparse_block(item, name, sequences.row)
                if form == "sparse"
                else _dense_block(item, name, sequences.row)
            )
            if self.n_features is None:
                self.n_features = int(block.shape[1])
            if block.shape[1] != self.n_features:
                raise ValueError(f"X: {name} has {block.shape[1]} features, expected {self.n_features}")
            blocks.append(block)
        if self.n_features is None:
            raise ValueError(f"X has no {sequences.row}s")
        if form == "sparse":
            matrix = sparse.vstack(blocks, format="csr")
            matrix.sum_duplicates()
            bad = np.flatnonzero(~np.isfinite(matrix.data))
            if len(bad):
                row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
                not_finite(matrix.data[bad[0]], sequences.where(lengths, row), f"column {matrix.indices[bad[0]]}")
            matrix.eliminate_zeros()
            return Rows(lengths, self.n_features, csr_attributes(matrix))
        array = np.ascontiguousarray(np.concatenate(blocks)) if blocks else np.empty((0, self.n_features))
        # float64: the sum is finite whenever all values are (barring overflow): the full test runs only when it is not
        if not np.isfinite(array.sum(dtype=np.float64)):
            wrong = np.argwhere(~np.isfinite(array))
            if len(wrong):
                row, column = wrong[0].tolist()
                not_finite(array[row, column], sequences.where(lengths, row), f"column {column}")
        return Rows(lengths, self.n_features, array)

    def names(self) -> None:
        return None

    def name(self, attribute: int) -> int:
        return int(attribute)

    def pick(self, chosen: Any, what: str = "transition_features") -> Booleans:
        picked = np.full(self.n_attributes, isinstance(chosen, str))
        for column in () if isinstance(chosen, str) else chosen:
            if not isinstance(column, (int, np.integer)) or not 0 <= column < self.n_attributes:
                raise ValueError(f"{what}: {column!r} is not a column of {self.n_attributes}")
            picked[column] = True
        return picked

    def numbers_in(self, old: Reader) -> Ints | None:
        same = isinstance(old, ColumnReader) and old.n_features == self.n_features
        return np.arange(self.n_attributes, dtype=np.int64) if same else None

    def keep(self, used: Booleans) -> tuple[ColumnReader, Ints]:
        return self, np.arange(len(used), dtype=np.int64)

    def to_parts(self) -> ModelParts:
        return ModelParts(self.kind, {"n_features": self.n_features})

    @classmethod
    def from_parts(cls, parts: ModelParts) -> ColumnReader:
        return cls(parts.integer("n_features", 1))


def _sparse_block(item: Any, name: str, row_name: str) -> Any:
    if not sparse.issparse(item):
        rows: list[Any] = []
        for position, row in enumerate(item):
            if not sparse.issparse(row) or row.ndim != 2 or row.shape[0] != 1:
                raise ValueError(f"X: {name}, {row_name} {position} is not a sparse row of shape (1, n)")
            if rows and row.shape != rows[0].shape:
                raise ValueError(
                    f"X: {name}, {row_name} {position} has {row.shape[1]} features, expected {rows[0].shape[1]}"
                )
            rows.append(own_sparse(row, f"X: {name}, {row_name} {position}"))
        item = sparse.vstack(rows, format="csr")
    if item.ndim != 2 or np.dtype(item.dtype).kind not in "biuf":
        raise ValueError(f"X: {name} must be a 2-D sparse matrix of real numbers")
    return sparse.csr_array(own_sparse(item, f"X: {name}"), dtype=np.float64)


def _dense_block(item: Any, name: str, row_name: str) -> InputRows:
    if sparse.issparse(item):
        raise ValueError(f"X: {name} is sparse, others are dense arrays: use one form")
    try:
        block = np.asarray(item)
        if block.dtype.kind not in "biufO":
            raise ValueError
        if block.dtype != np.float32:
            block = block.astype(np.float64, copy=False)
    except (ValueError, TypeError):
        raise ValueError(f"X: {name}{_bad_dense_position(item, row_name)}") from None
    if block.ndim != 2:
        raise ValueError(f"X: {name} is {block.ndim}-D; expected 2-D, one row per {row_name}")
    return block


def _bad_dense_position(item: Any, row_name: str) -> str:
    """Which row of a sequence of rows is not like the first, or not of numbers."""
    width = None
    for position, row in enumerate(item):
        try:
            size = np.asarray(row, dtype=np.float64).shape
        except (ValueError, TypeError):
            return f", {row_name} {position} is not a row of real numbers"
        if width is not None and size != width:
            return f", {row_name} {position} has shape {size}, expected {width}"
        width = size
    return " is not an array of real numbers"
