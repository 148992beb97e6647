"""Reading data sets of sequences: attribute names to ids, arrays to rows, labels to numbers.

Everything here works on whole data sets at C speed (`chain`, `map`, `fromiter`): four million attribute strings are
indexed in about a second. Errors are ValueErrors that name the sequence and the position.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from partwise._core import Sentences, Vocabulary
from partwise.estimators.dicts import add_dict, add_names
from partwise.features import Attributes
from partwise.features.sparse_inputs import own_sparse
from partwise.models.names import read_vocabulary
from partwise.models.parts import ModelParts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Dense input with at most this share of nonzeros is kept as sparse attributes: the sparse kernels touch one row of
# weights per nonzero, the dense ones every row. Measured: a pass over MNIST (19% nonzero, 10 labels) takes 0.6 times as
# long, at 50% both are equal in time and memory.
SPARSE_DENSITY = 0.5


def pointers(lengths: Ints) -> Ints:
    """CSR-style offsets: 0 and the running sums of `lengths`."""
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


@dataclass(frozen=True)
class Sequences:
    """Sequences to read, with the numbers they have in the caller's list (for messages)."""

    items: list[Any]
    numbers: Sequence[int]

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Sequences:
        """All of `X`, a list (or other sized iterable) of sequences."""
        if isinstance(X, Sentences):
            raise ValueError(f"{name} is a table of strings: attributes are made of it by a template")
        if isinstance(X, (str, bytes, dict)) or sparse.issparse(X) or not isinstance(X, Sized):
            raise ValueError(f"{name} must be a list of sequences, got {type(X).__name__}")
        items = list(X)  # type: ignore[call-overload]
        return cls(items, range(len(items)))

    def take(self, indices: Ints) -> Sequences:
        """Some of them, under their own numbers."""
        chosen = indices.tolist()
        return Sequences([self.items[i] for i in chosen], [self.numbers[i] for i in chosen])

    def lengths(self, name: str = "X") -> Ints:
        """Number of positions of each."""
        for number, item in zip(self.numbers, self.items, strict=True):
            if isinstance(item, (str, bytes, dict)) or not (isinstance(item, Sized) or sparse.issparse(item)):
                raise ValueError(
                    f"{name}: sequence {number} must be a list or a 2-D array of positions, got {type(item).__name__}"
                )
        return np.fromiter(map(_length, self.items), dtype=np.int64, count=len(self.items))

    def where(self, lengths: Ints, row: int) -> str:
        """The name of a row when all sequences lie end to end."""
        ends = np.cumsum(lengths)
        i = int(np.searchsorted(ends, row, side="right"))
        return f"sequence {self.numbers[i]}, position {row - int(ends[i] - lengths[i])}"


def _length(item: Any) -> int:
    return int(item.shape[0]) if hasattr(item, "shape") else len(item)


@dataclass(frozen=True, eq=False)
class Rows:
    """The positions of all sequences end to end: sparse attributes, or a dense array of one column an attribute."""

    lengths: Ints
    n_attributes: int
    table: Attributes | Floats

    @property
    def n_rows(self) -> int:
        """Number of positions."""
        return int(self.lengths.sum())

    @property
    def n_entries(self) -> int:
        """Number of stored values."""
        return len(self.table.attributes) if isinstance(self.table, Attributes) else self.table.size

    def attributes(self) -> Attributes:
        """The rows as sparse attributes: the nonzeros where they are dense."""
        if isinstance(self.table, Attributes):
            return self.table
        flat, width = self.table.ravel(), self.n_attributes
        places = np.flatnonzero(flat != 0)  # of a boolean array: three times as fast as of the floats
        starts = np.arange(self.n_rows + 1, dtype=np.int64) * width
        row_ptr = np.searchsorted(places, starts).astype(np.int64)
        columns = places - np.repeat(starts[:-1], np.diff(row_ptr))
        return Attributes(row_ptr, columns, width, flat[places])

    def with_ones(self) -> Rows:
        """The same rows with one more attribute, of value 1 everywhere."""
        n_rows, size = self.n_rows, self.n_attributes + 1
        if not isinstance(self.table, Attributes):
            array = np.empty((n_rows, size))
            array[:, :-1] = self.table
            array[:, -1] = 1.0
            return Rows(self.lengths, size, array)
        old = self.table
        row_ptr = old.row_ptr + np.arange(n_rows + 1, dtype=np.int64)
        is_new = np.zeros(int(row_ptr[-1]), dtype=bool)
        is_new[row_ptr[1:] - 1] = True
        attributes = np.full(len(is_new), self.n_attributes, dtype=np.int64)
        attributes[~is_new] = old.attributes
        values = None
        if old.values is not None:
            values = np.ones(len(is_new))
            values[~is_new] = old.values
        return Rows(self.lengths, size, Attributes(row_ptr, attributes, size, values))

    def compact(self) -> Rows:
        """The same rows in the storage that trains faster."""
        if isinstance(self.table, Attributes) or np.count_nonzero(self.table) > SPARSE_DENSITY * self.table.size:
            return self
        return Rows(self.lengths, self.n_attributes, self.attributes())


def csr_attributes(matrix: Any) -> Attributes:
    """A canonical CSR matrix as attributes; without values when all are 1."""
    data = np.ascontiguousarray(matrix.data, dtype=np.float64)
    values = None if (data == 1.0).all() else data
    return Attributes(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), int(matrix.shape[1]), values)


def input_form(sequences: Sequences) -> str:
    """Which of "names" (lists of strings, dicts), "dense", "sparse", or "none" when there is no position at all."""
    for number, item in zip(sequences.numbers, sequences.items, strict=True):
        if _length(item) == 0:
            continue
        if sparse.issparse(item):
            return "sparse"
        if isinstance(item, np.ndarray) and item.dtype != object:
            if item.ndim == 2 and item.dtype.kind in "biufU":
                return "names" if item.dtype.kind == "U" else "dense"
            raise ValueError(
                f"X: sequence {number} is a {item.ndim}-D array of {item.dtype}; "
                "expected 2-D numbers, one row a position"
            )
        first = next(iter(item))
        if sparse.issparse(first):
            return "sparse"
        if isinstance(first, np.ndarray) and first.dtype.kind in "biuf":
            return "dense"
        if isinstance(first, (list, tuple)) and first and isinstance(first[0], (numbers.Real, np.bool_)):
            return "dense"
        return "names"
    return "none"


class ColumnReader:
    """Reads sequences given as 2-D arrays or sparse matrices: attribute j is column j."""

    kind = "columns"
    forms = ("dense", "sparse")
    expected = "2-D arrays of numbers or sparse matrices"

    def __init__(self, n_features: int | None = None) -> None:
        self.n_features = n_features

    @property
    def n_attributes(self) -> int:
        """Number of attributes it knows."""
        return self.n_features or 0

    def _to_model(self) -> ModelParts:
        return ModelParts(self.kind, {"n_features": self.n_features})

    @classmethod
    def _from_model(cls, parts: ModelParts) -> ColumnReader:
        return cls(parts.integer("n_features", 1))

    def read(self, sequences: Sequences) -> Rows:
        """All rows end to end; learns the number of columns on the first call."""
        lengths, form = sequences.lengths(), input_form(sequences)
        blocks = []
        for number, item in zip(sequences.numbers, sequences.items, strict=True):
            if _length(item) == 0:
                continue
            block = self._sparse_block(item, number) if form == "sparse" else _dense_block(item, number)
            if self.n_features is None:
                self.n_features = int(block.shape[1])
            if block.shape[1] != self.n_features:
                raise ValueError(f"X: sequence {number} has {block.shape[1]} features, expected {self.n_features}")
            blocks.append(block)
        if self.n_features is None:
            raise ValueError("X has no positions")
        if form == "sparse":
            matrix = sparse.vstack(blocks, format="csr")
            matrix.sum_duplicates()
            bad = np.flatnonzero(~np.isfinite(matrix.data))
            if len(bad):
                row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
                _not_finite(matrix.data[bad[0]], sequences.where(lengths, row), f"column {matrix.indices[bad[0]]}")
            matrix.eliminate_zeros()
            return Rows(lengths, self.n_features, csr_attributes(matrix))
        array = np.ascontiguousarray(np.concatenate(blocks)) if blocks else np.empty((0, self.n_features))
        # the sum is finite whenever all values are (barring overflow): the full test runs only when it is not
        if not np.isfinite(array.sum()):
            wrong = np.argwhere(~np.isfinite(array))
            if len(wrong):
                row, column = wrong[0].tolist()
                _not_finite(array[row, column], sequences.where(lengths, row), f"column {column}")
        return Rows(lengths, self.n_features, array)

    @staticmethod
    def _sparse_block(item: Any, number: int) -> Any:
        if not sparse.issparse(item):
            rows: list[Any] = []
            for position, row in enumerate(item):
                if not sparse.issparse(row) or row.ndim != 2 or row.shape[0] != 1:
                    raise ValueError(f"X: sequence {number}, position {position} is not a sparse row of shape (1, n)")
                if rows and row.shape != rows[0].shape:
                    raise ValueError(
                        f"X: sequence {number}, position {position} has {row.shape[1]} features, "
                        f"expected {rows[0].shape[1]}"
                    )
                rows.append(own_sparse(row, f"X: sequence {number}, position {position}"))
            item = sparse.vstack(rows, format="csr")
        if item.ndim != 2 or np.dtype(item.dtype).kind not in "biuf":
            raise ValueError(f"X: sequence {number} must be a 2-D sparse matrix of real numbers")
        return sparse.csr_array(own_sparse(item, f"X: sequence {number}"), dtype=np.float64)


def _dense_block(item: Any, number: int) -> Floats:
    if sparse.issparse(item):
        raise ValueError(f"X: sequence {number} is sparse, others are dense arrays: use one form")
    try:
        block = np.asarray(item)
        if block.dtype.kind not in "biufO":
            raise ValueError
        block = block.astype(np.float64, copy=False)
    except (ValueError, TypeError):
        raise ValueError(f"X: sequence {number}{_bad_dense_position(item)}") from None
    if block.ndim != 2:
        raise ValueError(f"X: sequence {number} is {block.ndim}-D; expected 2-D, one row a position")
    return block


def _bad_dense_position(item: Any) -> str:
    """Which row of a sequence of rows is not like the first, or not of numbers."""
    width = None
    for position, row in enumerate(item):
        try:
            size = np.asarray(row, dtype=np.float64).shape
        except (ValueError, TypeError):
            return f", position {position} is not a row of real numbers"
        if width is not None and size != width:
            return f", position {position} has shape {size}, expected {width}"
        width = size
    return " is not an array of real numbers"


def _not_finite(value: float, where: str, what: str) -> None:
    raise ValueError(f"X: {where}, {what} is {value}: features must be finite (no NaN, no inf)")


class VocabularyReader:
    """Numbers attributes that have names.

    `vocabulary` maps names to ids, the most frequent first, so that the rows of weights used most lie together; None
    before the first reading. `unknown` says how many attributes of the last input are not in it, and of how many.
    """

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary
        self.unknown = (0, 0)

    @property
    def n_attributes(self) -> int:
        """Number of attributes it knows."""
        return 0 if self.vocabulary is None else len(self.vocabulary)

    def names(self) -> list[str]:
        """Attribute names in the order of their ids."""
        return [] if self.vocabulary is None else self.vocabulary.names()


class NameReader(VocabularyReader):
    """Reads sequences of attribute names: items are lists of strings or dicts {name: value}."""

    kind = "names"
    forms = ("names",)
    expected = "lists of attribute names or dicts"

    def with_vocabulary(self, vocabulary: Vocabulary) -> NameReader:
        """The same reader with other attributes."""
        return NameReader(vocabulary)

    def _to_model(self) -> ModelParts:
        assert self.vocabulary is not None
        return ModelParts(self.kind, {}, {"bytes": self.vocabulary.bytes, "offsets": self.vocabulary.offsets})

    @classmethod
    def _from_model(cls, parts: ModelParts) -> NameReader:
        return cls(read_vocabulary(parts))

    def read(self, sequences: Sequences, min_count: int = 1) -> Rows:
        """All positions end to end.

        The first call makes the vocabulary, leaving out names seen less than `min_count` times; later calls give
        unknown names the id -1, which the core ignores.
        """
        lengths = sequences.lengths()
        tokens = list(chain.from_iterable(sequences.items))
        kinds = set(map(type, tokens))
        if kinds <= {list, tuple}:
            counts = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
            names = list(chain.from_iterable(tokens))
            values = None
            if not all(issubclass(kind, str) for kind in set(map(type, names))):
                self._refuse_name(sequences, lengths, tokens)
        else:
            counts, names, values = _named_values(sequences, lengths, tokens)
        try:
            if self.vocabulary is None:
                self.vocabulary, ids = Vocabulary.learn(names, min_count)
            else:
                ids = self.vocabulary.ids(names)
        except ValueError:
            self._refuse_surrogate(sequences, lengths, counts, names)
            raise
        self.unknown = int(np.count_nonzero(ids < 0)), len(ids)
        size = len(self.vocabulary)
        return Rows(lengths, size, Attributes(pointers(counts), ids, size, values))

    @staticmethod
    def _refuse_surrogate(sequences: Sequences, lengths: Ints, counts: Ints, names: list[str]) -> None:
        for k, name in enumerate(names):
            try:
                name.encode("utf-8")
            except UnicodeEncodeError:
                row = int(np.searchsorted(np.cumsum(counts), k, side="right"))
                raise ValueError(
                    f"X: {sequences.where(lengths, row)}: {name!r} holds a lone surrogate, which is no character"
                ) from None

    @staticmethod
    def _refuse_name(sequences: Sequences, lengths: Ints, tokens: list[Any]) -> None:
        for row, token in enumerate(tokens):
            for name in token:
                if not isinstance(name, str):
                    raise ValueError(
                        f"X: {sequences.where(lengths, row)}: attributes must be strings, got {name!r}; "
                        "give numbers as {name: value} or as arrays"
                    )


def _named_values(sequences: Sequences, lengths: Ints, tokens: list[Any]) -> tuple[Ints, list[str], Floats | None]:
    """Items that are dicts (or sets, or a mixture): attributes and values, zeros left out."""
    counts = np.empty(len(tokens), dtype=np.int64)
    names: list[str] = []
    values: list[float] = []
    for row, token in enumerate(tokens):
        before = len(names)
        try:
            if isinstance(token, dict):
                add_dict("", token, names, values)
            elif isinstance(token, (list, tuple, set, frozenset)):
                add_names("", token, names, values)
            elif isinstance(token, np.ndarray) and token.dtype.kind in "UO":
                add_names("", token.tolist(), names, values)
            else:
                raise TypeError(f"expected a list of strings or a dict, got {type(token).__name__}")
        except TypeError as error:
            raise ValueError(f"X: {sequences.where(lengths, row)}: {error}") from None
        counts[row] = len(names) - before
    array = np.fromiter(values, dtype=np.float64, count=len(values))
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        row = int(np.searchsorted(np.cumsum(counts), bad[0], side="right"))
        _not_finite(array[bad[0]], sequences.where(lengths, row), f"attribute {names[bad[0]]!r}")
    return counts, names, None if (array == 1.0).all() else array
