"""Readers of sequences: from names, dicts or numbers, as users give them, to rows of attributes.

Errors are ValueErrors that name the sequence and the position. The core reads the usual forms, Python reads others.
"""

from __future__ import annotations

import copy
import numbers
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from scipy import sparse

from partwise.features import Attributes, Vocabulary
from partwise.features.rows import own_sparse
from partwise.features.template import Template
from partwise.io import Sentences
from partwise.io.coded import CodedSequences
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models.features import Rows, csr_attributes, numbered
from partwise.support.arrays import Booleans, Floats, InputRows, Ints, pointers

#: The message for a dict whose reading ends in a RecursionError.
TOO_DEEP = "dicts are nested too deeply, or one contains itself"


@dataclass(frozen=True)
class Sequences:
    """Sequences to read, with the numbers they have in the caller's list (for messages)."""

    items: Any  # a list, or a table that the core reads
    numbers: Sequence[int]
    #: What messages call one of them, and a row of it.
    one: str = "sequence"
    row: str = "position"

    @classmethod
    def of(cls, X: object, name: str = "X") -> Sequences:
        """Return all of `X`, a list (or other sized iterable) of sequences; itself if it is one of these."""
        if isinstance(X, Sequences):
            return X
        if isinstance(X, Sentences):
            raise ValueError(f"{name} is a table of strings: attributes are made of it by a template")
        items = as_list(X, f"{name} must be a list of sequences")
        return cls(items, range(len(items)))

    def take(self, indices: Ints) -> Self:
        """Return some of them, under their own numbers."""
        chosen = indices.tolist()
        items = self.items.take(indices) if self._is_table else [self.items[i] for i in chosen]
        return replace(self, items=items, numbers=[self.numbers[i] for i in chosen])

    @property
    def _is_table(self) -> bool:
        return isinstance(self.items, (Sentences, CodedSequences))

    def lengths(self, name: str = "X") -> Ints:
        """Return the number of positions of each."""
        if self._is_table:
            return cast(Ints, self.items.lengths)
        for number, item in zip(self.numbers, self.items, strict=True):
            if isinstance(item, (str, bytes, dict)) or not (isinstance(item, Sized) or sparse.issparse(item)):
                what = f"{name}: {self.one} {number} must be a list or a 2-D array of {self.row}s"
                raise ValueError(f"{what}, got {type(item).__name__}")
        return np.fromiter(map(length_of, self.items), dtype=np.int64, count=len(self.items))

    def where(self, lengths: Ints, row: int) -> str:
        """Return the name of a row, counted from the first sequence's first."""
        ends = np.cumsum(lengths)
        i = int(np.searchsorted(ends, row, side="right"))
        return f"{self.one} {self.numbers[i]}, {self.row} {row - int(ends[i] - lengths[i])}"


def as_list(X: object, expected: str, single: bool = False) -> list[Any]:
    """Return examples or answers as a list; ValueError, beginning with `expected`, for one example (`single`) alone."""
    if single or isinstance(X, (str, bytes, dict)) or sparse.issparse(X) or not isinstance(X, Sized):
        raise ValueError(f"{expected}, got {type(X).__name__}")
    return list(cast(Iterable[Any], X))


def as_trees(y: object, n_sentences: int, single: bool) -> list[Any]:
    """Return trees as a list, one for each of so many sentences; single: whether y is one tree."""
    trees = as_list(y, "y must be a list of trees", single)
    if len(trees) != n_sentences:
        raise ValueError(f"X has {n_sentences} sentences, y has {len(trees)} trees")
    return trees


def length_of(item: Any) -> int:
    """Return the number of positions of a sequence."""
    return int(item.shape[0]) if hasattr(item, "shape") else len(item)


def input_form(sequences: Sequences) -> str:
    """Return "names" (lists of strings, dicts), "dense", "sparse", or "none" when there is no position at all."""
    for number, item in zip(sequences.numbers, sequences.items, strict=True):
        if length_of(item) == 0:
            continue
        if sparse.issparse(item):
            return "sparse"
        if isinstance(item, np.ndarray) and item.dtype != object:
            if item.ndim == 2 and item.dtype.kind in "biufU":
                return "names" if item.dtype.kind == "U" else "dense"
            raise ValueError(
                f"X: {sequences.one} {number} is a {item.ndim}-D array of {item.dtype}; "
                f"expected 2-D numbers, one row per {sequences.row}"
            )
        first = next(iter(item))
        if sparse.issparse(first):
            return "sparse"
        if isinstance(first, np.ndarray) and first.dtype.kind in "biuf":
            return "dense"
        plain = isinstance(first, (list, tuple)) and first and isinstance(first[0], (numbers.Real, np.bool_))
        return "dense" if plain else "names"
    return "none"


class Reader(ABC):
    """Turns sequences into rows of attributes. Its first reading learns which attributes there are."""

    #: Its name in model files.
    kind: ClassVar[str]
    #: Whether attributes have names, and not numbers alone.
    named: ClassVar[bool] = True
    #: The forms of sequences that it reads (`input_form`), and what messages call them.
    forms: ClassVar[tuple[str, ...]]
    expected: ClassVar[str]
    #: What makes attributes of strings; None if the user gives attributes.
    template: Template | None = None
    #: Whether pairs of labels have weights of their own.
    plain_transitions: bool = True

    @property
    @abstractmethod
    def n_attributes(self) -> int:
        """Number of attributes it knows."""

    def sequences(self, X: object) -> Sequences:
        """Return sequences of the form that it reads."""
        sequences = Sequences.of(X)
        if input_form(sequences) not in (*self.forms, "none"):
            raise ValueError(f"X: {sequences.one}s must be {self.expected}, as in fit")
        return sequences

    @abstractmethod
    def read(self, sequences: Any, min_count: int = 1, n_jobs: int = 1) -> Rows:
        """Return the rows of all positions; the first call learns the attributes that occur `min_count` times."""

    @abstractmethod
    def names(self) -> list[str] | None:
        """Return names of the attributes in the order of their numbers; None if they have numbers alone."""

    @abstractmethod
    def name(self, attribute: int) -> str | int:
        """Return the name of one attribute: for large vocabularies quicker than `names`."""

    @abstractmethod
    def pick(self, chosen: str | Iterable[object], what: str = "transition_features") -> Booleans:
        """Return which attributes `transition_features`, or another parameter, names: "all" or a list."""

    def edge_attributes(self) -> Booleans | None:
        """Return which attributes are about pairs of labels by themselves, if any."""
        return None

    def edge_only(self) -> Booleans | None:
        """Return which of these have no weights for labels alone, if there are any."""
        return self.edge_attributes()

    def edge_ids(self, chosen: object) -> Ints | None:
        """Return each attribute's number as an edge attribute, from 1, or -1; None for tied transitions.

        Edge attributes are those that `chosen` (`transition_features`) names and those about pairs of labels.
        """
        given = self.edge_attributes()
        if chosen is None and given is None:
            return None
        if chosen is not None and not (chosen == "all" if isinstance(chosen, str) else isinstance(chosen, Iterable)):
            raise ValueError(f"transition_features must be None, 'all' or a list, got {chosen!r}")
        picked = self.pick(chosen if isinstance(chosen, Iterable) else ())
        return numbered(picked if given is None else picked | given, first=1)

    @abstractmethod
    def numbers_in(self, old: Reader) -> Ints | None:
        """Return each attribute's number in another reader, -1 for none; None if they cannot have any in common."""

    @abstractmethod
    def keep(self, used: Booleans) -> tuple[Self, Ints]:
        """Return the reader of these attributes alone if they have names, and the new number of each (-1: gone)."""

    @abstractmethod
    def to_parts(self) -> ModelParts:
        """Return it for a model file."""

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: ModelParts) -> Self:
        """Return the reader that `to_parts` wrote."""


class VocabularyReader(Reader):
    """A reader whose attributes have names, numbered by frequency so that often used weights lie together."""

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary  # None before the first reading

    @property
    def known(self) -> Vocabulary:
        assert self.vocabulary is not None
        return self.vocabulary

    @property
    def n_attributes(self) -> int:
        return 0 if self.vocabulary is None else len(self.vocabulary)

    def names(self) -> list[str]:
        return self.known.names()

    def name(self, attribute: int) -> str:
        return self.known[attribute]

    def pick(self, chosen: str | Iterable[object], what: str = "transition_features") -> Booleans:
        given = ("",) if isinstance(chosen, str) else tuple(chosen)
        prefixes = [prefix for prefix in given if isinstance(prefix, str)]
        if len(prefixes) < len(given):
            raise ValueError(f"{what} must be prefixes of attribute names, got {chosen!r}")
        return self.known.starts_with(prefixes).astype(bool)

    def numbers_in(self, old: Reader) -> Ints | None:
        if not isinstance(old, VocabularyReader):
            return None
        return old.known.packed_ids(self.known.bytes, self.known.offsets)

    def keep(self, used: Booleans) -> tuple[Self, Ints]:
        lengths = np.diff(self.known.offsets)
        data = np.ascontiguousarray(self.known.bytes[np.repeat(used, lengths)])
        return self.with_vocabulary(Vocabulary(data, pointers(lengths[used]))), numbered(used)

    def with_names_of(self, other: VocabularyReader, chosen: Booleans) -> Self:
        """Return the same reader with some attributes of another one behind its own."""
        more, _ = other.keep(chosen)
        data = np.concatenate([self.known.bytes, more.known.bytes])
        lengths = np.concatenate([np.diff(self.known.offsets), np.diff(more.known.offsets)])
        return self.with_vocabulary(Vocabulary(np.ascontiguousarray(data), pointers(lengths)))

    def with_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """Return the same reader with other attributes."""
        other = copy.copy(self)
        other.vocabulary = vocabulary
        return other


ReaderT = TypeVar("ReaderT", bound=Reader)


class NameReader(VocabularyReader):
    """Reads sequences of attribute names: items are lists of strings or dicts {name: value}.

    separator: joins a dict's name with a string as its value. joined: whether the vocabulary was learnt from dicts.
    """

    kind: ClassVar[str] = "names"
    forms: ClassVar[tuple[str, ...]] = ("names",)
    expected: ClassVar[str] = "lists of attribute names or dicts"

    def __init__(self, vocabulary: Vocabulary | None = None, separator: str = "=", joined: bool = False) -> None:
        super().__init__(vocabulary)
        self.separator, self.joined = separator, joined

    def to_parts(self) -> ModelParts:
        settings: dict[str, object] = {} if self.separator == "=" else {"separator": self.separator}
        settings |= {"joined": True} if self.joined else {}
        return ModelParts(self.kind, settings, {"bytes": self.known.bytes, "offsets": self.known.offsets})

    @classmethod
    def from_parts(cls, parts: ModelParts) -> Self:
        separator = parts.text("separator") if parts.has("separator") else "="
        return cls(parts.vocabulary(), separator, parts.has("joined") and parts.flag("joined"))

    def read(self, sequences: Sequences, min_count: int = 1, n_jobs: int = 1) -> Rows:
        """Return the rows of all positions; names that are not in the vocabulary have the id -1, which is ignored."""
        lengths = sequences.lengths()
        tokens = list(chain.from_iterable(sequences.items))
        found = None
        if self.vocabulary is not None:
            found = self.vocabulary.read_items(tokens, self.separator)
        elif (learnt := Vocabulary.learn_items(tokens, self.separator, min_count)) is not None:
            self.vocabulary, found, self.joined = learnt
        if found is None:  # other forms of items, or something is wrong with them
            found = self._read_slowly(sequences, lengths, tokens, min_count)
        counts, ids, values = found
        size, unknown = self.n_attributes, int(np.count_nonzero(ids < 0))
        return Rows(lengths, size, Attributes(pointers(counts), ids, size, values), (unknown, len(ids)))

    def _read_slowly(
        self, sequences: Sequences, lengths: Ints, tokens: list[object], min_count: int
    ) -> tuple[Ints, Ints, Floats | None]:
        """Return how many attributes each token has, their ids and values; learn the vocabulary if there is none."""
        counts, names, values = _named_values(sequences, lengths, tokens, self.separator)
        try:
            if self.vocabulary is not None:
                return counts, self.vocabulary.ids(names), values
            self.joined = any(isinstance(token, dict) for token in tokens)
            self.vocabulary, ids = Vocabulary.learn(names, min_count)
            return counts, ids, values
        except ValueError:
            for k, name in enumerate(names):
                if re.search("[\ud800-\udfff]", name):
                    where = sequences.where(lengths, int(np.searchsorted(np.cumsum(counts), k, side="right")))
                    raise ValueError(f"X: {where}: {name!r} holds a lone surrogate, which is not a character") from None
            raise


def _named_values(
    sequences: Sequences, lengths: Ints, tokens: list[object], separator: str
) -> tuple[Ints, list[str], Floats | None]:
    """Return how many attributes each item has, their names and values; zeros are left out."""
    counts = np.empty(len(tokens), dtype=np.int64)
    names: list[str] = []
    values: list[float] = []
    for row, token in enumerate(tokens):
        before = len(names)
        try:
            if isinstance(token, dict):
                add_dict("", token, names, values, separator)
            elif isinstance(token, (list, tuple, set, frozenset)):
                add_names("", token, names, values)
            elif isinstance(token, np.ndarray) and token.dtype.kind in "UO":
                add_names("", token.tolist(), names, values)
            else:
                raise TypeError(f"expected a list of strings or a dict, got {type(token).__name__}")
        except (TypeError, RecursionError) as error:
            what = error if isinstance(error, TypeError) else TOO_DEEP
            raise ValueError(f"X: {sequences.where(lengths, row)}: {what}") from None
        counts[row] = len(names) - before
    array = np.array(values, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        row = int(np.searchsorted(np.cumsum(counts), bad[0], side="right"))
        raise _not_finite(array[bad[0]], sequences.where(lengths, row), f"attribute {names[bad[0]]!r}")
    return counts, names, None if (array == 1.0).all() else array


def add_names(prefix: str, token: Iterable[str], names: list[str], values: list[float]) -> None:
    """Append names of value 1."""
    # sets have no order of their own: sorted, so that vocabularies do not depend on string hashing
    for name in sorted(token) if isinstance(token, (set, frozenset)) else token:
        if not isinstance(name, str):
            raise TypeError(f"attributes must be strings, got {name!r}; give numbers as {{name: value}} or as arrays")
        names.append(prefix + name)
        values.append(1.0)


def add_dict(prefix: str, token: dict[Any, Any], names: list[str], values: list[float], separator: str = "=") -> None:
    """Append names and values; TypeError for anything else. separator: joins a name and a string as its value."""
    for name, value in token.items():
        if not isinstance(name, str):
            raise TypeError(f"attribute names must be strings, got {name!r}")
        if isinstance(value, str):
            add_names(prefix + name + separator, (value,), names, values)
        elif isinstance(value, (numbers.Real, np.bool_)):
            if value:
                names.append(prefix + name)
                values.append(float(value))
        elif isinstance(value, dict):
            add_dict(prefix + name + separator, value, names, values, separator)
        elif isinstance(value, (list, tuple, set, frozenset)):
            add_names(prefix + name + separator, value, names, values)
        else:
            raise TypeError(f"attribute {name!r} must be a string, a number or a bool, got {value!r}")


def check_known(reader: Reader, least: int) -> None:
    """Raise ValueError if a reader of names knows none. least: how often an attribute must occur to be known."""
    if isinstance(reader, NameReader) and not reader.n_attributes:
        raise ValueError("X has no attribute" + (f" that occurs {least} times" * (least > 1)))


class ColumnReader(Reader):
    """Reads sequences given as 2-D arrays or sparse matrices: attribute j is column j."""

    kind: ClassVar[str] = "columns"
    named: ClassVar[bool] = False
    forms: ClassVar[tuple[str, ...]] = ("dense", "sparse")
    expected: ClassVar[str] = "2-D arrays of numbers or sparse matrices"

    def __init__(self, n_features: int | None = None) -> None:
        self.n_features = n_features

    @property
    def n_attributes(self) -> int:
        return self.n_features or 0

    def read(self, sequences: Sequences, min_count: int = 1, n_jobs: int = 1) -> Rows:
        """Return the rows of all positions; a column that is seen less than `min_count` times is one of the others."""
        lengths, is_sparse = sequences.lengths(), input_form(sequences) == "sparse"
        blocks = []
        for number, item in zip(sequences.numbers, sequences.items, strict=True):
            if length_of(item) == 0:
                continue
            name = f"{sequences.one} {number}"
            block: Any = (_sparse_block if is_sparse else _dense_block)(item, name, sequences.row)
            if self.n_features is None:
                self.n_features = int(block.shape[1])
            if block.shape[1] != self.n_features:
                raise ValueError(f"X: {name} has {block.shape[1]} features, expected {self.n_features}")
            blocks.append(block)
        if self.n_features is None:
            raise ValueError(f"X has no {sequences.row}s")
        if is_sparse:
            matrix = sparse.vstack(blocks, format="csr")
            matrix.sum_duplicates()
            bad = np.flatnonzero(~np.isfinite(matrix.data))
            if len(bad):
                k = bad[0]
                where = sequences.where(lengths, int(np.searchsorted(matrix.indptr, k, side="right")) - 1)
                raise _not_finite(matrix.data[k], where, f"column {matrix.indices[k]}")
            matrix.eliminate_zeros()
            return Rows(lengths, self.n_features, csr_attributes(matrix))
        array = np.ascontiguousarray(np.concatenate(blocks)) if blocks else np.empty((0, self.n_features))
        # The sum is finite if all values are, unless it overflows: the slow search runs only if it is not.
        if not np.isfinite(array.sum(dtype=np.float64)):
            wrong = np.argwhere(~np.isfinite(array))
            if len(wrong):
                row, column = wrong[0].tolist()
                raise _not_finite(array[row, column], sequences.where(lengths, row), f"column {column}")
        return Rows(lengths, self.n_features, array)

    def names(self) -> None:
        return None

    def name(self, attribute: int) -> int:
        return int(attribute)

    def pick(self, chosen: str | Iterable[object], what: str = "transition_features") -> Booleans:
        picked = np.full(self.n_attributes, isinstance(chosen, str))
        for column in () if isinstance(chosen, str) else chosen:
            if not isinstance(column, (int, np.integer)) or not 0 <= column < self.n_attributes:
                raise ValueError(f"{what}: {column!r} is not a column of {self.n_attributes}")
            picked[column] = True
        return picked

    def numbers_in(self, old: Reader) -> Ints | None:
        same = isinstance(old, ColumnReader) and old.n_features == self.n_features
        return np.arange(self.n_attributes, dtype=np.int64) if same else None

    def keep(self, used: Booleans) -> tuple[Self, Ints]:
        return self, np.arange(len(used), dtype=np.int64)

    def to_parts(self) -> ModelParts:
        return ModelParts(self.kind, {"n_features": self.n_features})

    @classmethod
    def from_parts(cls, parts: ModelParts) -> Self:
        return cls(parts.integer("n_features", 1))


def read_reader(parts: ModelParts, *known: type[ReaderT]) -> ReaderT:
    """Return the reader that a model file holds; ModelFormatError unless it is of one of these classes."""
    for kind in known:
        if parts.kind == kind.kind:
            return kind.from_parts(parts)
    raise ModelFormatError(f"reads its input in an unknown way ({parts.kind[:40]!r})")


def _sparse_block(item: Any, name: str, row_name: str) -> Any:
    if not sparse.issparse(item):
        rows: list[Any] = []
        for position, row in enumerate(item):
            where = f"X: {name}, {row_name} {position}"
            if not sparse.issparse(row) or row.ndim != 2 or row.shape[0] != 1:
                raise ValueError(f"{where} is not a sparse row of shape (1, n)")
            if rows and row.shape != rows[0].shape:
                raise ValueError(f"{where} has {row.shape[1]} features, expected {rows[0].shape[1]}")
            rows.append(own_sparse(row, where))
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
        raise ValueError(f"X: {name}{_wrong_row(item, row_name)}") from None
    if block.ndim != 2:
        raise ValueError(f"X: {name} is {block.ndim}-D; expected 2-D, one row per {row_name}")
    return block


def _wrong_row(item: Any, row_name: str) -> str:
    """Return which row of a sequence of rows is unlike the first, or not of numbers."""
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


def _not_finite(value: float, where: str, what: str) -> ValueError:
    return ValueError(f"X: {where}, {what} is {value}: features must be finite (no NaN, no inf)")
