"""Lists of lists as one list."""

from collections.abc import Iterable
from itertools import chain
from typing import Any


def flatten(y: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the items of all sequences in one list."""
    return list(chain.from_iterable(y))
