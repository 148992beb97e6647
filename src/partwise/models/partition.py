"""Learning a model from blocks of training data, two passes over them, in the memory of a block.

    partitioner = model.partitioner()
    for X, y in blocks: partitioner.scan(X, y, None)         labels and names are counted
    partitioner.choose_vocabulary()                          and chosen: numbers from here on
    for X, y in blocks: partitioner.encode(X, y, None)       examples as numbers; features are counted
    partitioner.choose_features()                            and chosen: the model is what `learn` would have made it

Memory grows with the model, not with the number of examples. Files of a partition hold examples as numbers
(`EncodedTables`): each example has rows of several tables, whose columns hold whole numbers, real numbers or strings
(as numbers of a list of names in the file). A column may have several numbers per row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np

from partwise.features import Attributes, NameCounts
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import Array, ModelParts, encode_names
from partwise.models.features import Density, Rows
from partwise.models.readers import ColumnReader, NameReader, Reader, Sequences, VocabularyReader
from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.lazy import cached_property


class Partitioner(ABC):
    """Learns the model that made it. Blocks come in the same order in both passes."""

    @abstractmethod
    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        """Count labels and names in a block of the first pass, which has examples of positive weight."""

    @abstractmethod
    def choose_vocabulary(self) -> None:
        """Choose labels and vocabulary, when the first pass is over."""

    @abstractmethod
    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables | None:
        """Return a block's examples of positive weight in the second pass, None without any; count their features."""

    @abstractmethod
    def choose_features(self) -> None:
        """Choose the model's features, when the second pass is over; it has no weights yet."""

    @abstractmethod
    def n_slots(self, encoded: Any) -> int:
        """Return the number of slots of all these examples, when labels are chosen."""


class ChangedData(ValueError):
    """The error for data in the second pass that were not in the first."""

    def __init__(self) -> None:
        super().__init__("the data changed between the first pass and the second: give the same blocks twice")


class AttributeCounts:
    """The attributes of blocks of sequences: how often each name occurs, or the share of numbers that are not 0."""

    def __init__(self) -> None:
        self._names = NameCounts()
        self._joined = False
        self.reader: Reader | None = None
        self.density = Density()

    def add(self, reader: Reader, sequences: Sequences, n_jobs: int = 1) -> None:
        """Count a block; reader: one that has read nothing yet."""
        if self.reader is not None and type(reader) is not type(self.reader):
            raise ValueError("blocks must be of one form: names, or numbers, in all of them")
        if isinstance(reader, ColumnReader):
            # One reader for all blocks checks that they have the same number of columns.
            self.reader = reader = self.reader or reader
            self.density.add(reader.read(sequences, n_jobs=n_jobs))
            return
        assert isinstance(reader, VocabularyReader)
        found = reader.read(sequences, n_jobs=n_jobs).attributes()
        self._names.add(reader.known, found.attributes)
        self._joined = self._joined or (isinstance(reader, NameReader) and reader.joined)
        self.reader = reader

    def reader_of(self, min_count: int) -> Reader:
        """Return the reader of the attributes that occur so often."""
        assert self.reader is not None
        if isinstance(self.reader, VocabularyReader):
            self.reader = self.reader.with_vocabulary(self._names.vocabulary(min_count))
            if isinstance(self.reader, NameReader):
                self.reader.joined = self._joined
            self._names = NameCounts()  # frees the memory of names that are not kept
        return self.reader

    def in_form(self, rows: Rows) -> Rows:
        """Return rows of a block in the form of all blocks: sparse, if some are."""
        sparse = self.density.sparse or isinstance(self.reader, VocabularyReader)
        return Rows(rows.lengths, rows.n_attributes, rows.attributes()) if sparse else rows


#: An array with a row per row of its table, or a list of strings.
Column: TypeAlias = Any


class Size(NamedTuple):
    """How much there is of encoded examples: rows of all of them, and stored values of all rows."""

    n_examples: int
    n_rows: int
    n_entries: int


class Whole(NamedTuple):
    """A column of whole numbers from `low` up to, not including, `high`; width: numbers per row, None for one."""

    low: int
    high: int
    width: int | None = None


class Real(NamedTuple):
    """A column of real numbers; width: numbers per row, None for one."""

    width: int | None = None


#: The kinds of columns; `str` for strings.
Kind: TypeAlias = Whole | Real | type[str]


@dataclass(eq=False)
class EncodedTables:
    """Examples of lengths[table][i] rows of each table; columns are called "table/column"."""

    lengths: Mapping[str, Ints]
    columns: Mapping[str, Column]
    entries: Ints  # memory of each example for training, in units of `partitions.executor.ENTRY` bytes
    weight: Floats | None = None  # None where all are 1

    @cached_property
    def starts(self) -> dict[str, Ints]:
        """Where the rows of each example begin, and the last end, by table."""
        return {name: pointers(own) for name, own in self.lengths.items()}

    def ends(self) -> tuple[Ints, Ints]:
        """Return how many (rows, entries) the first k examples have, at place k."""
        return self.starts[next(iter(self.lengths))], pointers(self.entries)

    @property
    def size(self) -> Size:
        rows, entries = self.ends()
        return Size(len(rows) - 1, int(rows[-1]), int(entries[-1]))

    @property
    def valued(self) -> bool:
        """Whether entries have values, which take more memory."""
        return any(name.endswith(("/table", "/values")) for name in self.columns)

    def cut(self, start: int, stop: int) -> Self:
        cuts = {table: slice(int(ends[start]), int(ends[stop])) for table, ends in self.starts.items()}
        columns = {name: column[cuts[name.partition("/")[0]]] for name, column in self.columns.items()}
        lengths = {name: own[start:stop] for name, own in self.lengths.items()}
        weight = None if self.weight is None else self.weight[start:stop]
        return replace(self, lengths=lengths, columns=columns, entries=self.entries[start:stop], weight=weight)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return all examples of these parts, which are of one kind."""
        if len(parts) == 1:
            return parts[0]
        columns: dict[str, Column] = {}
        for name in dict.fromkeys(name for part in parts for name in part.columns):
            table = name.partition("/")[0]
            # values that are missing are all 1
            every = [part.columns[name] if name in part.columns else np.ones(part.starts[table][-1]) for part in parts]
            columns[name] = list(chain(*every)) if isinstance(every[0], list) else np.concatenate(every)
        weight = None
        if any(part.weight is not None for part in parts):
            each = [np.ones(len(part.entries)) if part.weight is None else part.weight for part in parts]
            weight = np.concatenate(each)
        lengths = {name: np.concatenate([part.lengths[name] for part in parts]) for name in parts[0].lengths}
        entries = np.concatenate([part.entries for part in parts])
        return replace(parts[0], lengths=lengths, columns=columns, entries=entries, weight=weight)

    def to_arrays(self) -> dict[str, Array]:
        """Return arrays for a file; whole numbers in the width that they need."""
        found: dict[str, Array] = {f"{name}/lengths": narrow(own) for name, own in self.lengths.items()}
        for name, column in self.columns.items():
            if isinstance(column, list):
                number = {text: k for k, text in enumerate(dict.fromkeys(column))}
                found[name] = narrow(np.fromiter(map(number.__getitem__, column), np.int64, len(column)))
                found |= {f"{name}/{key}": array for key, array in encode_names(list(number)).items()}
            else:
                found[name] = column if column.dtype.kind == "f" else narrow(column)
        if self.weight is not None:
            found["weight"] = self.weight
        return found

    @classmethod
    def read(cls, parts: ModelParts, tables: Sequence[str], columns: Mapping[str, Kind]) -> EncodedTables:
        """Return what `to_arrays` wrote, but for `entries`; ModelFormatError for anything else."""
        lengths = {name: parts.ints(f"{name}/lengths", None, low=0, high=1 << 40) for name in tables}
        n = len(lengths[tables[0]])
        if any(len(own) != n for own in lengths.values()):
            raise ModelFormatError("has tables of different numbers of examples")
        found: dict[str, Column] = {}
        for name, kind in columns.items():
            rows = int(lengths[name.partition("/")[0]].sum())
            if isinstance(kind, type):
                keys = [key for key in ("bytes", "offsets") if f"{name}/{key}" in parts.arrays]
                own = {key: parts.arrays[f"{name}/{key}"] for key in keys}
                names = np.array([*ModelParts("names", {}, own).names(), None], dtype=object)
                found[name] = names[parts.ints(name, rows, low=0, high=len(names) - 1)].tolist()
                continue
            shape = (rows,) if kind.width is None else (rows, kind.width)
            if isinstance(kind, Real):
                found[name] = np.ascontiguousarray(parts.stored_floats(name, *shape))
            else:
                found[name] = parts.ints(name, *shape, low=kind.low, high=kind.high)
        weight = parts.floats("weight", n) if "weight" in parts.arrays else None
        return EncodedTables(lengths, found, np.zeros(n, dtype=np.int64), weight)


@dataclass(eq=False)
class EncodedRows(EncodedTables):
    """Examples of `rows.lengths` rows of attributes each, with a label per row."""

    n_attributes: int = 0

    @classmethod
    def of(cls, rows: Rows, labels: Ints, weight: Floats | None = None) -> Self:
        lengths, columns = row_columns("rows", rows)
        entries = lengths.get("rows-entries", rows.lengths * rows.n_attributes)
        return cls(lengths, {"rows/labels": labels, **columns}, entries, weight, rows.n_attributes)

    @cached_property
    def rows(self) -> Rows:
        return rows_of("rows", self, self.n_attributes)

    @property
    def labels(self) -> Ints:
        return cast(Ints, self.columns["rows/labels"])

    def to_arrays(self) -> dict[str, Array]:
        found = super().to_arrays()
        found.pop("rows-entries/lengths", None)  # follows from the counts
        return {name.rpartition("/")[2]: array for name, array in found.items()}

    @classmethod
    def from_parts(cls, parts: ModelParts, n_attributes: int, n_labels: int) -> EncodedRows:
        """Return what `to_arrays` wrote, checked; ModelFormatError for anything else."""
        lengths = parts.ints("lengths", None, low=1, high=1 << 40)
        n_rows = int(lengths.sum())
        labels = parts.ints("labels", n_rows, low=0, high=n_labels)
        weight = parts.floats("weight", len(lengths)) if "weight" in parts.arrays else None
        if "table" in parts.arrays:
            dense = np.ascontiguousarray(parts.stored_floats("table", n_rows, n_attributes))
            return cls.of(Rows(lengths, n_attributes, dense), labels, weight)
        attributes = parts.ints("attributes", None, low=-1, high=n_attributes)
        row_ptr = pointers(parts.ints("counts", n_rows, low=0, high=len(attributes) + 1))
        if row_ptr[-1] != len(attributes):
            raise ModelFormatError(f"has {len(attributes)} attributes, its rows have {row_ptr[-1]}")
        values = parts.floats("values", len(attributes)) if "values" in parts.arrays else None
        table = Attributes(row_ptr, attributes, n_attributes, values)
        return cls.of(Rows(lengths, n_attributes, table), labels, weight)


def narrow(numbers: Ints) -> Array:
    """Return whole numbers in 8, 16 or 32 bits, if they fit."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for dtype in (np.uint8, np.uint16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return numbers.astype(dtype)
    return numbers


def row_columns(name: str, rows: Rows) -> tuple[dict[str, Ints], dict[str, Column]]:
    """Return (lengths, columns) of rows of attributes: their tables are `name` and, if sparse, `name`-entries."""
    table = rows.table
    if not isinstance(table, Attributes):
        return {name: rows.lengths}, {f"{name}/table": np.ascontiguousarray(table)}
    ends = table.row_ptr[pointers(rows.lengths)]
    columns: dict[str, Column] = {
        f"{name}/counts": np.diff(table.row_ptr),
        f"{name}-entries/attributes": table.attributes,
    }
    if table.values is not None:
        columns[f"{name}-entries/values"] = table.values
    return {name: rows.lengths, f"{name}-entries": np.diff(ends)}, columns


def row_kinds(name: str, parts: ModelParts, n_attributes: int) -> tuple[list[str], dict[str, Kind]]:
    """Return (tables, columns) of rows of attributes in a file, for `EncodedTables.read`."""
    if f"{name}/table" in parts.arrays:
        return [name], {f"{name}/table": Real(n_attributes)}
    kinds: dict[str, Kind] = {
        f"{name}/counts": Whole(0, 1 << 40),
        f"{name}-entries/attributes": Whole(-1, n_attributes),
    }
    if f"{name}-entries/values" in parts.arrays:
        kinds[f"{name}-entries/values"] = Real()
    return [name, f"{name}-entries"], kinds


def rows_of(name: str, tables: EncodedTables, n_attributes: int) -> Rows:
    """Return the rows of `row_columns`; ModelFormatError if rows have other numbers of attributes than they say."""
    lengths = tables.lengths[name]
    if f"{name}/table" in tables.columns:
        return Rows(lengths, n_attributes, tables.columns[f"{name}/table"])
    row_ptr = pointers(tables.columns[f"{name}/counts"])
    if not np.array_equal(row_ptr[pointers(lengths)], pointers(tables.lengths[f"{name}-entries"])):
        raise ModelFormatError("has rows of other numbers of attributes than it says")
    values = tables.columns.get(f"{name}-entries/values")
    table = Attributes(row_ptr, tables.columns[f"{name}-entries/attributes"], n_attributes, values)
    return Rows(lengths, n_attributes, table)
