"""Costs that a user gives: how bad it is to answer one label where another is right (c of docs/math.md).

Costs are finite, at least 0, and 0 for the right answer. What does not depend on the labels is checked before any work.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.io.costs import FileCosts
from partwise.io.errors import FormatError
from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.checks import MOST_WEIGHT


@dataclass(frozen=True, eq=False)
class LabelCost:
    """Costs of pairs (gold label, label), in one of the forms that the estimators' parameter `cost` may have."""

    given: Floats | Mapping[Any, Any] | Callable[[Any, Any], float]

    @classmethod
    def of(cls, given: Any) -> LabelCost | None:
        """Return the user's costs after the checks that need no labels; None stays None."""
        if given is None:
            return None
        if isinstance(given, Mapping):
            for gold, label, value in _pairs(given):
                _check(value, gold, label)
        elif not callable(given):
            given = _as_table(given)
            for (gold, label), value in np.ndenumerate(given):
                _check(value, gold, label, "number ")
        return cls(given)

    def table(self, labels: Sequence[Hashable]) -> Floats:
        """Return the costs of these labels, a row per gold label; ValueError for invalid costs or other labels."""
        n, given = len(labels), self.given
        if isinstance(given, np.ndarray):
            if len(given) != n:
                raise ValueError(f"cost is of {len(given)} labels, there are {n}")
            return given
        if not isinstance(given, Mapping):
            values = [_check(given(gold, label), gold, label) for gold in labels for label in labels]
            return np.array(values).reshape(n, n)
        table = 1.0 - np.eye(n)
        number = {label: k for k, label in enumerate(labels)}
        for gold, label, value in _pairs(given):
            for each in (gold, label):
                if each not in number:
                    text = f"label {each!r} was not in the training data"
                    if isinstance(given, FileCosts):
                        raise FormatError(text, given.path, given.lines.get((gold, label)))
                    raise ValueError(f"cost: {text}")
            table[number[gold], number[label]] = value
        return table


@dataclass(frozen=True, eq=False)
class CostTable:
    """Costs that a model was trained with, a row per gold label."""

    labels: Sequence[Hashable]
    values: Floats

    def as_mapping(self) -> dict[Hashable, dict[Hashable, float]]:
        """Return the costs of wrong labels by gold label and label, as `LabelCost` takes them."""
        return {
            gold: {label: row[j] for j, label in enumerate(self.labels) if j != k}
            for k, (gold, row) in enumerate(zip(self.labels, self.values.tolist(), strict=True))
        }


def row_costs(
    offsets: Ints, lengths: Ints, width: int, labels: Ints, table: Floats, others: Floats | None = None
) -> Floats:
    """Return costs of slots; the slots of an example begin with a row of labels (padded to `width`) per position.

    offsets: where examples' slots begin. labels: gold labels of all positions. others: costs of all other slots, or 0.
    """
    cost = np.zeros(int(offsets[-1])) if others is None else others.copy()
    within = np.arange(len(labels)) - np.repeat(pointers(lengths)[:-1], lengths)
    begins = np.repeat(offsets[:-1], lengths) + width * within
    cost[begins[:, None] + np.arange(len(table))] = table[labels]
    return cost


def head_costs(lengths: Ints, heads: Ints, cost: LabelCost) -> Floats:
    """Return costs of arcs: n words have n rows of n + 1 heads (0: the root); a word as its own head costs nothing."""
    table = cost.table(range(int(lengths.max(initial=0)) + 1))
    found, begin = [], 0
    for n in lengths.tolist():
        rows = table[heads[begin : begin + n], : n + 1]  # a copy
        rows[np.arange(n), np.arange(1, n + 1)] = 0.0
        found.append(rows.ravel())
        begin += n
    return np.concatenate(found)


def _pairs(given: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (gold label, label, cost)."""
    nested = bool(given) and all(isinstance(value, Mapping) for value in given.values())
    for key, value in given.items():
        if nested:
            yield from ((key, label, cost) for label, cost in value.items())
        elif isinstance(key, tuple) and len(key) == 2:
            yield *key, value
        else:
            raise ValueError(f"cost: keys are pairs (gold label, label), got {key!r}")


def _as_table(given: Any) -> Floats:
    if isinstance(given, (str, bytes)):
        raise ValueError(f"cost must be an array, a mapping or a function, got {given!r}")
    try:
        table = np.array(given, dtype=np.float64)  # a copy
    except (TypeError, ValueError):
        raise ValueError(f"cost must be an array, a mapping or a function, got {type(given).__name__}") from None
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"cost has shape {table.shape}, expected a row and a column per label")
    return table


def _check(value: object, gold: object, label: object, what: str = "") -> float:
    """Return a cost as a number; ValueError unless it is finite, at least 0, and 0 where the answer is right."""
    names = f"{what}{label!r} where {what}{gold!r} is right"
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"cost of label {names} must be a number, got {value!r}") from None
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(f"cost of label {names} is {number:g}: costs must be finite and not negative")
    if number > MOST_WEIGHT:
        raise ValueError(f"cost of label {names} is {number:g}: at most {MOST_WEIGHT:g}")
    if number and bool(gold == label):
        raise ValueError(f"cost of label {names} is {number:g}: the right answer must cost nothing")
    return number
