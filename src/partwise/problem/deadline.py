"""A limit of time for work on this thread, looked at inside of long calls of the core."""

from collections.abc import Iterator
from contextlib import contextmanager

from partwise import _core


class OutOfTime(Exception):
    """The work was given up at its deadline."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Work in this block that still goes on after so many seconds is given up: `OutOfTime`."""
    _core.set_deadline(seconds)
    try:
        yield
    finally:
        _core.set_deadline(None)


def check_deadline() -> None:
    """For work that waits for others: OutOfTime if the deadline has passed."""
    if _core.out_of_time():
        raise OutOfTime
