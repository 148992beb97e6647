"""Hyper-parameters of solvers: each is declared with its default, its help text, and the values it may have."""

from collections.abc import Callable
from dataclasses import field, fields
from math import isfinite
from typing import Any, NamedTuple, TypeVar, get_args

T = TypeVar("T")


class Values(NamedTuple):
    """Allowed values of an option: numbers that `contains` accepts, and `words`; `text` completes "... must be"."""

    text: str
    contains: Callable[[Any], bool]
    words: tuple[str, ...] = ()


POSITIVE = Values("a number above 0", lambda x: isfinite(x) and x > 0)
NOT_NEGATIVE = Values("a number >= 0", lambda x: isfinite(x) and x >= 0)
FROM_ONE = Values(">= 1", lambda x: isfinite(x) and x >= 1)
#: Shares: neither 0 nor 1, not 0, or not 1.
PROPER_SHARE = Values("above 0 and below 1", lambda x: 0 < x < 1)
SOME = Values("above 0 and at most 1", lambda x: 0 < x <= 1)
NOT_ALL = Values("at least 0 and below 1", lambda x: 0 <= x < 1)


def at_least(least: int) -> Values:
    """Return the values that are numbers of at least this size."""
    return Values(f"at least {least}", lambda x: x >= least)


def one_of(literal: Any) -> Values:
    """Return the values that are names of a Literal."""
    names = get_args(literal)
    return Values(f"one of {', '.join(names)}", lambda name: name in names)


def option(default: T, help: str, values: Values | None = None) -> T:
    """Declare a hyper-parameter with the text that the docs and the command line show.

    values: allowed values (None: any of its type). An option whose default is None may be None.
    """
    return field(default=default, metadata={"help": help, "values": values})


def check_options(solver: Any) -> None:
    """Raise ValueError for the first option of a solver whose value is not allowed."""
    for item in fields(solver):
        values, value = item.metadata.get("values"), getattr(solver, item.name)
        if values is None or (value is None and item.default is None):
            continue
        if values.words and isinstance(value, str):
            good, text = value in values.words, f"{', '.join(values.words)} or a number"
        else:
            good, text = values.contains(value), values.text
        if not good:
            raise ValueError(f"{item.name} must be {text}, got {value!r}")
