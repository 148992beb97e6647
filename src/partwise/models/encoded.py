"""Training examples as numbers alone: what a file of a partition holds.

Which features have weights is decided when all examples were seen, and is not part of the file. `EncodedRows` has rows
of attributes, a label per row and a weight per example. In `EncodedTables` each example has some rows of each of
several tables, whose columns hold whole numbers, real numbers, or strings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np

from partwise.features import Attributes
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import Array, ModelParts, encode_names
from partwise.models.features import Rows
from partwise.support.arrays import Floats, Ints, pointers


class Size(NamedTuple):
    """How much there is of encoded examples: rows of all of them, and stored values of all rows."""

    n_examples: int
    n_rows: int
    n_entries: int


class Encoded(ABC):
    """Examples as numbers."""

    @abstractmethod
    def ends(self) -> tuple[Ints, Ints]:
        """(rows, entries) of the first k examples, at place k. An entry is what an attribute of a row takes in memory
        (`partitions.sizes.ENTRY` bytes).
        """

    @property
    def size(self) -> Size:
        rows, entries = self.ends()
        return Size(len(rows) - 1, int(rows[-1]), int(entries[-1]))

    @property
    def valued(self) -> bool:
        """Whether entries have values, which take more."""
        return False

    @abstractmethod
    def cut(self, start: int, stop: int) -> Self:
        """Some of the examples."""

    @classmethod
    @abstractmethod
    def joined(cls, parts: Sequence[Any]) -> Self:
        """All examples of these parts, which are of one kind."""

    @abstractmethod
    def to_arrays(self) -> dict[str, Array]:
        """For a file; whole numbers in the width that they need."""


@dataclass(frozen=True, eq=False)
class EncodedRows(Encoded):
    """Examples of `rows.lengths` rows each; weight: None where all are 1."""

    rows: Rows
    labels: Ints
    weight: Floats | None = None

    def ends(self) -> tuple[Ints, Ints]:
        ends, table = pointers(self.rows.lengths), self.rows.table
        return ends, table.row_ptr[ends] if isinstance(table, Attributes) else ends * self.rows.n_attributes

    @property
    def valued(self) -> bool:
        table = self.rows.table
        return not isinstance(table, Attributes) or table.values is not None

    def cut(self, start: int, stop: int) -> EncodedRows:
        rows = self.rows
        ends = pointers(rows.lengths)
        first, last = int(ends[start]), int(ends[stop])
        if isinstance(rows.table, Attributes):
            row_ptr = rows.table.row_ptr
            a, b = int(row_ptr[first]), int(row_ptr[last])
            values = None if rows.table.values is None else rows.table.values[a:b]
            table: Any = Attributes(
                row_ptr[first : last + 1] - a, rows.table.attributes[a:b], rows.table.num_attributes, values
            )
        else:
            table = rows.table[first:last]
        weight = None if self.weight is None else self.weight[start:stop]
        return EncodedRows(Rows(rows.lengths[start:stop], rows.n_attributes, table), self.labels[first:last], weight)

    @classmethod
    def joined(cls, parts: Sequence[EncodedRows]) -> EncodedRows:
        if len(parts) == 1:
            return parts[0]
        tables: list[Any] = [part.rows.table for part in parts]
        n_attributes = parts[0].rows.n_attributes
        table: Any
        if isinstance(tables[0], Attributes):
            row_ptr = pointers(np.concatenate([np.diff(each.row_ptr) for each in tables]))
            values = None
            if any(each.values is not None for each in tables):
                ones = (np.ones(len(each.attributes)) if each.values is None else each.values for each in tables)
                values = np.concatenate(list(ones))
            table = Attributes(row_ptr, np.concatenate([each.attributes for each in tables]), n_attributes, values)
        else:
            table = np.concatenate(tables)
        weight = None
        if any(part.weight is not None for part in parts):
            each = [np.ones(part.size.n_examples) if part.weight is None else part.weight for part in parts]
            weight = np.concatenate(each)
        lengths = np.concatenate([part.rows.lengths for part in parts])
        return cls(Rows(lengths, n_attributes, table), np.concatenate([part.labels for part in parts]), weight)

    # files

    def to_arrays(self) -> dict[str, Array]:
        found: dict[str, Array] = {"lengths": narrow(self.rows.lengths), "labels": narrow(self.labels)}
        table = self.rows.table
        if isinstance(table, Attributes):
            found["counts"] = narrow(np.diff(table.row_ptr))
            found["attributes"] = narrow(table.attributes)
            if table.values is not None:
                found["values"] = table.values
        else:
            found["table"] = table
        if self.weight is not None:
            found["weight"] = self.weight
        return found

    @classmethod
    def from_parts(cls, parts: ModelParts, n_attributes: int, n_labels: int) -> EncodedRows:
        """The inverse of `to_arrays`, checked; ModelFormatError for anything else."""
        lengths = parts.ints("lengths", None, low=1, high=1 << 40)
        n_rows = int(lengths.sum())
        labels = parts.ints("labels", n_rows, low=0, high=n_labels)
        table: Any
        if "table" in parts.arrays:
            table = np.ascontiguousarray(parts.stored_floats("table", n_rows, n_attributes))
        else:
            attributes = parts.ints("attributes", None, low=-1, high=n_attributes)
            counts = parts.ints("counts", n_rows, low=0, high=len(attributes) + 1)
            row_ptr = pointers(counts)
            if row_ptr[-1] != len(attributes):
                raise ModelFormatError(f"has {len(attributes)} attributes, its rows have {row_ptr[-1]}")
            values = parts.floats("values", len(attributes)) if "values" in parts.arrays else None
            table = Attributes(row_ptr, attributes, n_attributes, values)
        weight = parts.floats("weight", len(lengths)) if "weight" in parts.arrays else None
        return cls(Rows(lengths, n_attributes, table), labels, weight)


def narrow(numbers: Ints) -> Array:
    """Whole numbers in 8, 16 or 32 bits, if they fit."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for dtype in (np.uint8, np.uint16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return numbers.astype(dtype)
    return numbers


Column = Any  # an array with a row per row of its table, or a list of strings


class Whole(NamedTuple):
    """Whole numbers from `low` up to, not including, `high`; width: numbers per row, None for one."""

    low: int
    high: int
    width: int | None = None


class Real(NamedTuple):
    """Numbers; width: so many per row, None for one."""

    width: int | None = None


class Text(NamedTuple):
    """Strings."""


Kind = Whole | Real | Text


@dataclass(frozen=True, eq=False)
class EncodedTables(Encoded):
    """Examples of lengths[table][i] rows of each table; columns are called "table/column".

    entries: what the examples take in memory once they are open (`Encoded.ends`). weight: None where all are 1.
    """

    lengths: Mapping[str, Ints]
    columns: Mapping[str, Column]
    entries: Ints
    weight: Floats | None = None
    _ends: dict[str, Ints] = field(default_factory=dict, repr=False)

    def starts(self, table: str) -> Ints:
        """Where the rows of each example begin, and the last end."""
        if table not in self._ends:
            self._ends[table] = pointers(self.lengths[table])
        return self._ends[table]

    def ends(self) -> tuple[Ints, Ints]:
        return self.starts(next(iter(self.lengths))), pointers(self.entries)

    @property
    def valued(self) -> bool:
        return any(name.endswith(("/table", "/values")) for name in self.columns)

    def cut(self, start: int, stop: int) -> EncodedTables:
        columns = {}
        for name, column in self.columns.items():
            ends = self.starts(name.partition("/")[0])
            columns[name] = column[int(ends[start]) : int(ends[stop])]
        lengths = {name: own[start:stop] for name, own in self.lengths.items()}
        weight = None if self.weight is None else self.weight[start:stop]
        return EncodedTables(lengths, columns, self.entries[start:stop], weight)

    @classmethod
    def joined(cls, parts: Sequence[EncodedTables]) -> EncodedTables:
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        columns: dict[str, Column] = {}
        for name in dict.fromkeys(name for part in parts for name in part.columns):
            # values that are missing are all 1
            every = [part.columns[name] if name in part.columns else part._ones(name) for part in parts]
            columns[name] = list(chain(*every)) if isinstance(every[0], list) else np.concatenate(every)
        weight = None
        if any(part.weight is not None for part in parts):
            each = [np.ones(len(part.entries)) if part.weight is None else part.weight for part in parts]
            weight = np.concatenate(each)
        lengths = {name: np.concatenate([part.lengths[name] for part in parts]) for name in first.lengths}
        return cls(lengths, columns, np.concatenate([part.entries for part in parts]), weight)

    def _ones(self, name: str) -> Floats:
        return np.ones(int(self.lengths[name.partition("/")[0]].sum()))

    # files

    def to_arrays(self) -> dict[str, Array]:
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
    def read(
        cls, parts: ModelParts, tables: Sequence[str], columns: Mapping[str, Whole | Real | Text]
    ) -> EncodedTables:
        """The inverse of `to_arrays` but for `entries`, checked; ModelFormatError for anything else."""
        lengths = {name: parts.ints(f"{name}/lengths", None, low=0, high=1 << 40) for name in tables}
        n = len(lengths[tables[0]])
        if any(len(own) != n for own in lengths.values()):
            raise ModelFormatError("has tables of different numbers of examples")
        found: dict[str, Column] = {}
        for name, kind in columns.items():
            rows = int(lengths[name.partition("/")[0]].sum())
            if isinstance(kind, Text):
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
        return cls(lengths, found, np.zeros(n, dtype=np.int64), weight)


def row_columns(name: str, rows: Rows) -> tuple[dict[str, Ints], dict[str, Column]]:
    """(lengths, columns) of rows of attributes: their tables are `name` and, where they are sparse, `name`-entries."""
    table = rows.table
    if not isinstance(table, Attributes):
        return {name: rows.lengths}, {f"{name}/table": np.ascontiguousarray(table)}
    ends = table.row_ptr[pointers(rows.lengths)]
    columns = {f"{name}/counts": np.diff(table.row_ptr), f"{name}-entries/attributes": table.attributes}
    if table.values is not None:
        columns[f"{name}-entries/values"] = table.values
    return {name: rows.lengths, f"{name}-entries": np.diff(ends)}, columns


def row_kinds(name: str, parts: ModelParts, n_attributes: int) -> tuple[list[str], dict[str, Kind]]:
    """(tables, columns) of rows of attributes in a file, for `EncodedTables.read`."""
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
    """The rows of `row_columns`; ModelFormatError if rows have other numbers of attributes than they say."""
    lengths, columns = tables.lengths[name], tables.columns
    if f"{name}/table" in columns:
        return Rows(lengths, n_attributes, columns[f"{name}/table"])
    row_ptr = pointers(columns[f"{name}/counts"])
    if not np.array_equal(row_ptr[pointers(lengths)], pointers(tables.lengths[f"{name}-entries"])):
        raise ModelFormatError("has rows of other numbers of attributes than it says")
    values = columns.get(f"{name}-entries/values")
    return Rows(lengths, n_attributes, Attributes(row_ptr, columns[f"{name}-entries/attributes"], n_attributes, values))
