"""Training examples as numbers alone: what a file of a partition holds.

Which features have weights is not in it: that is known when all examples were seen. `EncodedRows`: rows of attributes,
a label per row, a weight per example. Other forms are made of `encoded_tables`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from partwise.features import Attributes
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import Array, ModelParts
from partwise.models.rows import Rows
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
