"""Temporary files and folders beside their targets, and those that a killed process has left there.

What is being written is locked (`flock`) by its writer, so that what nobody has locked was left behind. Where there are
no such locks, nothing is taken away.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

try:
    import fcntl
except ImportError:  # Windows
    LOCKS = False
else:
    LOCKS = True

#: Entries of a folder that are looked at: a save should not take longer the more files lie beside it.
MOST = 10_000


@contextmanager
def temporary_beside(target: str, make: Callable[[str], object], name: str) -> Iterator[str]:
    """A new name beside the target for the file or folder that `make` makes, which is renamed in the block.

    If the block fails it is removed, and errors of the system's say `name` instead.
    """
    temporary, guard = "", None
    try:
        while guard is None:
            folder, base = os.path.split(target)
            temporary = os.path.join(folder, f".{base[:100]}.{secrets.token_hex(6)}.tmp")
            make(temporary)
            guard = _lock(temporary)
        yield temporary
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            raise OSError(error.errno, error.strerror, name) from None
        raise
    finally:
        if guard is not None and guard >= 0:
            with suppress(OSError):
                os.close(guard)


def _lock(temporary: str) -> int | None:
    """A descriptor that holds the lock, -1 where there are no locks; None if another process took it for a leftover."""
    if not LOCKS:
        return -1
    try:
        guard = os.open(temporary, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with suppress(OSError):
        fcntl.flock(guard, fcntl.LOCK_EX)  # one who removes leftovers holds it for a moment
    if os.path.exists(temporary):
        return guard
    os.close(guard)
    return None


def clear_left(target: str) -> None:
    """Remove what writers of the same target have left behind when they were killed."""
    if not LOCKS:
        return
    folder, base = os.path.split(target)
    left = re.compile(rf"\.{re.escape(base[:100])}\.[0-9a-f]{{12}}\.tmp")
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in islice(entries, MOST):
            if left.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError if it is being written
        _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        os.unlink(path)
