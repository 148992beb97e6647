"""Training examples as tables of columns: each example has some rows of each table.

A column holds whole numbers, numbers, or strings (which a file has as numbers of its own list of names). A column may
have several numbers per row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from partwise.features import Attributes
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.names import encode_names, read_names
from partwise.model_files.parts import Array, ModelParts
from partwise.models.encoded import Encoded, narrow
from partwise.models.rows import Rows
from partwise.support.arrays import Floats, Ints, pointers

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
                names = np.array([*read_names(ModelParts("names", {}, own)), None], dtype=object)
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
