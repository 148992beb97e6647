"""Putting together what batches give: sums in the order of the batches, arrays end to end."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from partwise.support.arrays import Floats, Ints, pointers

Array = TypeVar("Array", bound=NDArray[Any])


def added(parts: Iterator[Any]) -> Any:
    """The sum, in order. The first part is written to: nothing else refers to it."""
    total = next(parts)
    for part in parts:
        total += part
    return total


def added_up(parts: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Sums of tuples, place by place."""
    rest = iter(parts)
    totals = list(next(rest))
    for part in rest:
        for k, term in enumerate(part):
            totals[k] += term
    return totals


def written(results: Iterable[tuple[Any, ...]], blocks: Sequence[Floats]) -> Iterator[tuple[Any, ...]]:
    """The results without their last entry, which goes into the block (where it was not written there at once)."""
    for (*sums, answer), block in zip(results, blocks, strict=True):
        if answer is not block:
            block[:] = answer
        yield tuple(sums)


def joined(parts: Iterable[Array]) -> Array:
    """Arrays end to end; a single one as it is."""
    found = list(parts)
    return found[0] if len(found) == 1 else np.concatenate(found)  # type: ignore[return-value]


def joined_pointers(parts: Iterable[Ints]) -> Ints:
    """Pointers into arrays end to end."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    return pointers(np.concatenate([np.diff(each) for each in found]))
