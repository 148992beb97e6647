"""Arrow arrays as inputs of models. No row is null here: `TablePredictor` takes null rows out.

Strings go to the core as Arrow has them. Python lists are cut out of a flat one: `to_pylist` takes ten times as long.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types
from scipy import sparse

from partwise.io import Sentences
from partwise.support.arrays import Floats, Ints, pointers
from partwise.tables import TableError

#: A value of an attribute, or a row of attributes.
Value = Any


def is_list(kind: pa.DataType) -> bool:
    """Return whether values are lists, in one of Arrow's ways."""
    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(test(kind) for test in tests)


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are strings, perhaps by their numbers in a dictionary."""
    plain = kind.value_type if types.is_dictionary(kind) else kind
    return any(test(plain) for test in (types.is_string, types.is_large_string, types.is_string_view))


def is_number(kind: pa.DataType) -> bool:
    """Return whether values are numbers or bools."""
    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean))


def is_words(kind: pa.DataType) -> bool:
    """Return whether values are lists of strings."""
    return is_list(kind) and is_text(kind.value_type)


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """Return an array of NumPy's, copied if need be."""
    found: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return found


def first_null(array: pa.Array) -> int:
    """Return the index of the first null of an array that has nulls."""
    return int(to_numpy(array.is_null()).argmax())


def _lists(column: str, array: pa.Array) -> tuple[pa.Array, Ints]:
    """Return the items of all lists, concatenated, and the lists' lengths; TableError for an item that is null."""
    lengths = to_numpy(pc.list_value_length(array)).astype(np.int64)
    flat = array.flatten()
    if flat.null_count:
        at = first_null(flat)
        row = _row_of(lengths, at)
        raise TableError(f"item {at - int(lengths[:row].sum())} is null", column, row)
    return flat, lengths


def _maps(column: str, array: pa.Array, what: str, row: Callable[[int], int]) -> tuple[pa.Array, pa.Array, Ints]:
    """Return the keys and values of all maps, concatenated, and the maps' lengths; TableError for a null value.

    what: the name of a value in messages. row: returns the row of a map, given the map's number.
    """
    lengths = np.diff(np.asarray(array.offsets)).astype(np.int64)
    begin, end = int(array.offsets[0].as_py()), int(array.offsets[len(array)].as_py())
    values = array.items.slice(begin, end - begin)
    if values.null_count:
        raise TableError(f"{what} is null", column, row(_row_of(lengths, first_null(values))))
    return array.keys.slice(begin, end - begin), values, lengths


def list_array(flat: pa.Array, lengths: Ints) -> pa.ListArray:
    """Return concatenated items as a column of lists of these lengths."""
    return pa.ListArray.from_arrays(pa.array(pointers(lengths), type=pa.int32()), flat)


def _row_of(lengths: Ints, item: int) -> int:
    """Return the row of an item, by its number among the items of all rows."""
    return int(np.searchsorted(np.cumsum(lengths), item, side="right"))


def sentences(columns: list[str], arrays: list[pa.Array]) -> Sentences:
    """Return a table of strings from columns of lists of strings, or of texts, which are split at white space."""
    words = list(map(_words, columns, arrays))
    first = words[0][1]
    for name, (_, lengths) in zip(columns, words, strict=True):
        if not np.array_equal(lengths, first):
            row = int((lengths != first).argmax())
            raise TableError(f"has {lengths[row]} items, column {columns[0]!r} has {first[row]}", name, row)
    return Sentences.from_packed([_packed(flat) for flat, _ in words], first)


def _words(column: str, array: pa.Array) -> tuple[pa.Array, Ints]:
    """Return the words of all rows, concatenated, and how many each row has."""
    if not is_text(array.type):
        return _lists(column, array)
    flat, lengths = _lists("", pc.utf8_split_whitespace(array.cast(pa.large_string())))
    empty = to_numpy(pc.equal(flat, ""))  # at the ends of a text
    kept = np.append(0, np.cumsum(~empty))[pointers(lengths)]
    return flat.filter(pa.array(~empty)), np.diff(kept)


def _packed(flat: pa.Array) -> tuple[NDArray[Any], Ints]:
    flat = flat.cast(pa.large_string())
    if not len(flat):
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _, offsets, data = flat.buffers()
    found = np.frombuffer(offsets, dtype=np.int64)[flat.offset : flat.offset + len(flat) + 1]
    held = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return held[found[0] : found[-1]], found - found[0]


def word_lists(column: str, array: pa.Array) -> list[list[str]]:
    """Return a column of lists of strings, or of texts, as Python lists."""
    flat, lengths = _words(column, array)
    return _cut(_python(flat), lengths)


def _python(flat: pa.Array) -> list[Value]:
    """Return an array without nulls as a Python list."""
    if is_text(flat.type):
        flat = flat.cast(pa.large_string())
    found: list[Value] = to_numpy(flat).tolist()
    return found


def _cut(flat: list[Value], lengths: Ints) -> list[list[Value]]:
    ends = pointers(lengths).tolist()
    return [flat[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def named_items(column: str, array: pa.Array) -> list[list[Value]]:
    """Return lists of positions with named attributes: lists of strings, maps, or structs without their null fields."""
    flat, lengths = _lists(column, array)
    return _cut(items(column, flat, lambda item: _row_of(lengths, item)), lengths)


def items(column: str, flat: pa.Array, row: Callable[[int], int] = int) -> list[Value]:
    """Return the named attributes of each item, as `named_items`; row: returns the row of an item's number."""
    kind = flat.type
    if types.is_struct(kind):
        names = [field.name for field in kind]
        fields = [_with_nulls(flat.field(k)) for k in range(len(names))]
        rows = zip(*fields, strict=True) if fields else [()] * len(flat)
        return [{n: v for n, v in zip(names, each, strict=True) if v is not None} for each in rows]
    if types.is_map(kind):
        keys, values, lengths = _maps(column, flat, "an attribute's value", row)
        return list(map(dict, _cut(list(zip(_python(keys), _python(values), strict=True)), lengths)))
    try:
        inner, lengths = _lists(column, flat)
    except TableError as error:
        raise TableError("an attribute is null", column, row(error.row or 0)) from None
    return _cut(_python(inner), lengths)


def _with_nulls(array: pa.Array) -> list[Value]:
    """Return values with None in place of nulls."""
    text = is_text(array.type)
    if not (text or is_number(array.type)):
        found: list[Value] = array.to_pylist()
        return found
    if not array.null_count:
        return _python(array)
    plain = array.cast(pa.large_string()) if text else array
    filled = _python(pc.fill_null(plain, "" if text else False if types.is_boolean(array.type) else 0))
    return [value if ok else None for value, ok in zip(filled, to_numpy(array.is_valid()).tolist(), strict=True)]


def numbers(column: str, array: pa.Array, row: Callable[[int], int] = int) -> Floats:
    """Return finite numbers; TableError with the row of one that is not, by `row` from its place in the array."""
    values: Floats = np.ascontiguousarray(to_numpy(array.cast(pa.float64(), safe=False)), dtype=np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        bad = int(finite.argmin())
        raise TableError(f"{float(values[bad])} is not a finite number", column, row(bad))
    return values


def matrix(column: str, array: pa.Array, width: int) -> Floats:
    """Return a column of lists of `width` numbers as a matrix with a row per list."""
    flat, lengths = _lists(column, array)
    if (lengths != width).any():
        row = int((lengths != width).argmax())
        raise TableError(f"has {lengths[row]} numbers, the model has {width} features", column, row)
    return numbers(column, flat, lambda k: k // width).reshape(-1, width)


def matrices(column: str, array: pa.Array, width: int) -> list[Floats]:
    """Return a column of lists of lists of `width` numbers as a matrix each."""
    flat, lengths = _lists(column, array)
    try:
        rows = matrix(column, flat, width)
    except TableError as error:
        raise TableError(error.message, column, _row_of(lengths, error.row or 0)) from None
    return np.split(rows, pointers(lengths)[1:-1]) if len(lengths) else []


def sparse_matrix(column: str, array: pa.Array, width: int, first: int) -> sparse.csr_array:
    """Return a column of maps from indices, counted from `first`, to numbers; unknown indices are left out."""
    keys, items, lengths = _maps(column, array, "a value", lambda row: row)
    indices = to_numpy(keys.cast(pa.int64())) - first
    if (indices < 0).any():
        at = int((indices < 0).argmax())
        raise TableError(f"index {indices[at] + first}: they are counted from {first}", column, _row_of(lengths, at))
    values = numbers(column, items, lambda k: _row_of(lengths, k))
    known = indices < width
    row = np.repeat(np.arange(len(lengths)), lengths)
    return sparse.csr_array((values[known], (row[known], indices[known])), shape=(len(lengths), width))
