"""A time limit for work on this thread, which long calls of the core check."""

from collections.abc import Iterator
from contextlib import contextmanager

from partwise import _core


class OutOfTime(Exception):
    """The error that work was stopped at its deadline."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Stop work in this block after so many seconds, with `OutOfTime`."""
    _core.set_deadline(seconds)
    try:
        yield
    finally:
        _core.set_deadline(None)


def check_deadline() -> None:
    """Raise OutOfTime if the deadline has passed, for work that waits for other work."""
    if _core.out_of_time():
        raise OutOfTime
