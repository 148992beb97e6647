"""Arrow arrays as inputs of models. No row is null here: `TablePredictor` takes null rows out.

Strings go to the core as Arrow has them, concatenated. Python lists are cut out of one flat list: pyarrow's own
`to_pylist` takes ten times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from partwise.io import Sentences
from partwise.support.arrays import Floats, Ints, pointers
from partwise.tables.errors import TableError


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, in one of Arrow's ways."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    views = (pa.types.is_list_view, pa.types.is_large_list_view)
    return any(test(kind) for test in (*tests, *views))


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, perhaps by their numbers in a dictionary."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def is_number(kind: pa.DataType) -> bool:
    """Whether values are numbers or bools."""
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))


def is_words(kind: pa.DataType) -> bool:
    """Whether values are lists of strings."""
    return is_list(kind) and is_text(kind.value_type)


def lists(column: str, array: pa.Array) -> tuple[pa.Array, Ints]:
    """All items of a column of lists end to end, and the lists' lengths. TableError for an item that is null."""
    if pa.types.is_map(array.type):
        raise TypeError("maps have keys and items")
    lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = array.flatten()
    if flat.null_count:
        at = int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0])
        row = row_of(lengths, at)
        raise TableError(f"item {at - int(lengths[:row].sum())} is null", column, row)
    return flat, lengths


def list_array(flat: pa.Array, lengths: Ints) -> pa.ListArray:
    """Items end to end as a column of lists of these lengths."""
    return pa.ListArray.from_arrays(pa.array(pointers(lengths), type=pa.int32()), flat)


def row_of(lengths: Ints, item: int) -> int:
    """The row that an item lies in when the items of all rows lie end to end."""
    return int(np.searchsorted(np.cumsum(lengths), item, side="right"))


def sentences(columns: list[str], arrays: list[pa.Array]) -> Sentences:
    """A table of strings from columns of lists of strings, or of texts, which are split at white space."""
    packed, first = [], None
    for name, array in zip(columns, arrays, strict=True):
        flat, lengths = words_of(name, array)
        if first is not None and not np.array_equal(lengths, first):
            row = int(np.flatnonzero(lengths != first)[0])
            raise TableError(f"has {lengths[row]} items, column {columns[0]!r} has {first[row]}", name, row)
        first = lengths
        packed.append(_packed(flat))
    assert first is not None
    return Sentences.from_packed(packed, first)


def words_of(column: str, array: pa.Array) -> tuple[pa.Array, Ints]:
    """The words of all rows end to end and how many each row has."""
    return _split(array) if is_text(array.type) else lists(column, array)


def _split(array: pa.Array) -> tuple[pa.Array, Ints]:
    """Texts split at white space: words end to end and how many there are of each."""
    flat, lengths = lists("", pc.utf8_split_whitespace(array.cast(pa.large_string())))
    empty = pc.equal(flat, "").to_numpy(zero_copy_only=False)  # at the ends of a text
    kept = np.append(0, np.cumsum(~empty))[pointers(lengths)]
    return flat.filter(pa.array(~empty)), np.diff(kept)


def _packed(flat: pa.Array) -> tuple[pa.Array, Ints]:
    """Strings as bytes and offsets."""
    flat = flat.cast(pa.large_string())
    if not len(flat):
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _, offsets, data = flat.buffers()
    found = np.frombuffer(offsets, dtype=np.int64)[flat.offset : flat.offset + len(flat) + 1]
    held = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return held[found[0] : found[-1]], found - found[0]


def word_lists(column: str, array: pa.Array) -> list[list[str]]:
    """A column of lists of strings, or of texts, as Python has it."""
    flat, lengths = words_of(column, array)
    return _cut(_python(flat), lengths)


def _python(flat: pa.Array) -> list[Any]:
    """An array without nulls as a Python list."""
    if is_text(flat.type):
        flat = flat.cast(pa.large_string())
    found: list[Any] = flat.to_numpy(zero_copy_only=False).tolist()
    return found


def _cut(flat: list[Any], lengths: Ints) -> list[list[Any]]:
    ends = pointers(lengths).tolist()
    return [flat[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def named_items(column: str, array: pa.Array) -> list[list[Any]]:
    """Lists of positions with named attributes: lists of strings, maps or structs (null fields are left out)."""
    flat, lengths = lists(column, array)
    rows = _items(column, flat, lengths)
    return _cut(rows, lengths)


def items(column: str, array: pa.Array) -> list[Any]:
    """Rows of named attributes: lists of strings, maps or structs."""
    return _items(column, array, np.ones(len(array), dtype=np.int64))


def _items(column: str, flat: pa.Array, outer: Ints) -> list[Any]:
    kind = flat.type
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        fields = [_with_nulls(flat.field(k)) for k in range(len(names))]
        rows: Any = zip(*fields, strict=True) if fields else [()] * len(flat)
        return [{n: v for n, v in zip(names, row, strict=True) if v is not None} for row in rows]
    if pa.types.is_map(kind):
        lengths = np.diff(np.asarray(flat.offsets)).astype(np.int64)
        begin, end = int(flat.offsets[0].as_py()), int(flat.offsets[len(flat)].as_py())
        items = flat.items.slice(begin, end - begin)
        if items.null_count:
            at = int(np.flatnonzero(items.is_null().to_numpy(zero_copy_only=False))[0])
            raise TableError("an attribute's value is null", column, row_of(outer, row_of(lengths, at)))
        keys, values = _python(flat.keys.slice(begin, end - begin)), _python(items)
        named = list(zip(keys, values, strict=True))
        return [dict(each) for each in _cut(named, lengths)]
    try:
        inner, lengths = lists(column, flat)
    except TableError as error:
        raise TableError("an attribute is null", column, row_of(outer, error.row or 0)) from None
    return _cut(_python(inner), lengths)


def _with_nulls(array: pa.Array) -> list[Any]:
    """Values with None in place of nulls."""
    if is_text(array.type) or is_number(array.type):
        if not array.null_count:
            return _python(array)
        text = array.cast(pa.large_string()) if is_text(array.type) else array
        fill = pc.fill_null(text, "" if is_text(array.type) else False if pa.types.is_boolean(array.type) else 0)
        valid = array.is_valid().to_numpy(zero_copy_only=False).tolist()
        return [value if ok else None for value, ok in zip(_python(fill), valid, strict=True)]
    found: list[Any] = array.to_pylist()
    return found


def numbers(column: str, array: pa.Array) -> Floats:
    """A column of finite numbers."""
    found = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    _check_finite(column, found, lambda k: k)
    return np.ascontiguousarray(found, dtype=np.float64)


def matrix(column: str, array: pa.Array, width: int) -> Floats:
    """A column of lists of `width` numbers each, one row per list."""
    flat, lengths = lists(column, array)
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        row = int(wrong[0])
        raise TableError(f"has {lengths[row]} numbers, the model has {width} features", column, row)
    values = flat.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    _check_finite(column, values, lambda k: k // width)
    return np.ascontiguousarray(values, dtype=np.float64).reshape(-1, width)


def _check_finite(column: str, values: Any, row: Any) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        value = float(values[bad[0]])
        raise TableError(f"{value} is not a finite number", column, int(row(int(bad[0]))))


def matrices(column: str, array: pa.Array, width: int) -> list[Floats]:
    """A column of lists of lists of `width` numbers: one matrix each."""
    flat, lengths = lists(column, array)
    try:
        rows = matrix(column, flat, width)
    except TableError as error:
        raise TableError(error.message, column, row_of(lengths, error.row or 0)) from None
    return np.split(rows, pointers(lengths)[1:-1]) if len(lengths) else []


def sparse_matrix(column: str, array: pa.Array, width: int, first: int) -> Any:
    """A column of maps from indices, counted from `first`, to numbers; indices that the model has not are left out."""
    from scipy import sparse

    lengths = np.diff(np.asarray(array.offsets)).astype(np.int64)
    begin, end = int(array.offsets[0].as_py()), int(array.offsets[len(array)].as_py())
    keys, items = array.keys.slice(begin, end - begin), array.items.slice(begin, end - begin)
    if items.null_count:
        at = int(np.flatnonzero(items.is_null().to_numpy(zero_copy_only=False))[0])
        raise TableError("a value is null", column, row_of(lengths, at))
    indices = keys.cast(pa.int64()).to_numpy(zero_copy_only=False) - first
    values = items.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    low = np.flatnonzero(indices < 0)
    if len(low):
        at = int(low[0])
        raise TableError(f"index {indices[at] + first}: they are counted from {first}", column, row_of(lengths, at))
    _check_finite(column, values, lambda k: row_of(lengths, k))
    row = np.repeat(np.arange(len(lengths)), lengths)
    known = indices < width
    return sparse.csr_array((values[known], (row[known], indices[known])), shape=(len(lengths), width))
