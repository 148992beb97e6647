"""Columns of a frame as Python lists, checked value by value: errors name row and column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from partwise.tables.tokens.errors import FrameError

#: Names of columns that a message lists.
LISTED = 20


def eager(frame: Any) -> Any:
    """A frame as narwhals has it. TypeError for what is none, FrameError for lazy frames and names that come twice."""
    try:
        import narwhals.stable.v2 as nw
        from narwhals.stable.v2.dependencies import is_into_dataframe
    except ImportError:
        raise ImportError("data frames need narwhals: pip install 'partwise[frames]'") from None
    names = [*getattr(frame, "columns", ())] if is_into_dataframe(frame) else []
    if hasattr(frame, "column_names"):
        names = list(frame.column_names)  # pyarrow's `columns` are the values
    seen: set[Any] = set()
    for name in names:
        if isinstance(name, str) and name in seen:
            raise FrameError("two columns of this name", name)
        seen.add(name)
    found = nw.from_native(frame, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        raise FrameError(f"the frame is lazy ({type(frame).__module__.partition('.')[0]}): call its collect() first")
    if not isinstance(found, nw.DataFrame):
        if hasattr(frame, "compute"):
            raise FrameError("the frame is lazy (dask): call its compute() first")
        raise TypeError(f"expected a data frame (pandas, polars, pyarrow, ...), got {type(frame).__name__}")
    return found


def check_string(name: Any) -> None:
    """FrameError for a name that is no string, as pandas has them."""
    if not isinstance(name, str):
        raise FrameError(f"names of columns must be strings, got {name!r}: rename them first")


def names_of(given: Any) -> list[str]:
    """One name or several, as a list; FrameError for what is none."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        check_string(given)
        return [given]
    return list(given)


def check_names(frame: Any, names: Iterable[str]) -> None:
    """FrameError for a column that is not there or is named twice, and for names that are no strings."""
    taken: set[str] = set()
    for name in names:
        check_string(name)
        if name in taken:
            raise FrameError("is named twice", name)
        taken.add(name)
        if name not in frame.columns:
            there = ", ".join(map(repr, frame.columns[:LISTED])) or "none"
            levels = getattr(getattr(frame.to_native(), "index", None), "names", ())
            hint = "it is in the index: call reset_index() first" if name in levels else f"there are {there}"
            raise FrameError(f"there is no such column; {hint}", name)


def values(frame: Any, name: str) -> list[Any]:
    """A column as a list, None where it is null or NaN."""
    column = frame[name]
    found: list[Any] = column.to_list()
    if column.is_null().any():
        found = [None if null else value for value, null in zip(found, column.is_null().to_list(), strict=True)]
    if column.dtype.is_float() or not column.dtype.is_numeric():  # polars tells NaN from null; objects may hold either
        found = [None if isinstance(value, float) and math.isnan(value) else value for value in found]
    return found


def checked(name: str, found: Sequence[Any], good: Callable[[Any], bool], wanted: str, hint: str = "") -> list[Any]:
    """The values, all of them good; FrameError with the first row that is not."""
    for row, value in enumerate(found):
        if value is None:
            raise FrameError("is missing" + hint, name, row)
        if not good(value):
            raise FrameError(f"is {_shown(value)}, expected {wanted}", name, row)
    return list(found)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"


def texts(frame: Any, name: str) -> list[str]:
    """A column of strings."""
    hint = " (pandas.read_csv takes words such as 'NA' and 'null' for missing: keep_default_na=False)"
    return checked(name, values(frame, name), lambda value: isinstance(value, str), "text", hint)


def attribute_values(frame: Any, name: str) -> list[Any]:
    """A column of strings, finite numbers, bools or lists of strings; None where a token has no such attribute."""
    found = [each.tolist() if hasattr(each, "tolist") else each for each in values(frame, name)]
    for row, value in enumerate(found):
        if isinstance(value, Sequence) and not isinstance(value, str):
            fits = all(isinstance(each, str) for each in value)
        else:
            fits = value is None or isinstance(value, str) or (isinstance(value, Real) and math.isfinite(value))
        if not fits:
            raise FrameError(f"is {_shown(value)}, expected text, a finite number or a list of strings", name, row)
    return found


def finite_numbers(frame: Any, name: str) -> list[float]:
    """A column of finite numbers."""
    found = values(frame, name)
    return checked(name, found, lambda v: isinstance(v, Real) and math.isfinite(v), "a finite number")


def labels(frame: Any, name: str) -> list[Any]:
    """A column of labels: strings, whole numbers or bools; numbers that are whole are ints."""
    found = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values(frame, name)]
    return checked(
        name, found, lambda v: isinstance(v, (str, bool, Integral)), "a label (text, a whole number or a bool)"
    )


def heads(frame: Any, name: str, places: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """A column of heads; places, lengths: of each row its number in its sentence, and how many words that has."""
    found = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values(frame, name)]
    whole = "a whole number: the head's place in its sentence, counted from 1, or 0 for the root"
    checked(name, found, lambda v: isinstance(v, Integral) and not isinstance(v, bool), whole)
    for row, (head, place, length) in enumerate(zip(found, places, lengths, strict=True)):
        if not 0 <= head <= length:
            raise FrameError(f"head {head} in a sentence of {length} words", name, row)
        if head == place:
            raise FrameError(f"word {place} is its own head", name, row)
    return found


def fields_of(columns: Any) -> dict[str, str] | list[str]:
    """Names of columns: a list, or {field: column}. ValueError for anything else."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, Mapping):
        found: dict[str, str] | list[str] = dict(columns)
    elif isinstance(columns, Sequence):
        found = list(columns)
    else:
        if isinstance(columns, Integral):
            check_string(columns)
        raise ValueError(f"columns must be names of columns or a mapping to them, got {columns!r}")
    if not found:
        raise ValueError("columns: name at least one")
    return found
