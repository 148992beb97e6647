"""Models that are read once per process, for workers that serve many partitions or batches of rows."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

#: The model that was read last, with what tells its file from another.
_READ: dict[tuple[str, int, int], Any] = {}
_READING = Lock()


def load_cached(path: str | os.PathLike[str]) -> Any:
    """A model from its file; the last one is kept, and read again only if the file is another one.

    For functions that run in workers, such as Spark's: they may call it for every batch of rows. The estimator is the
    same object each time: do not change it.
    """
    name = os.path.abspath(os.fspath(path))
    status = os.stat(name)
    key = name, status.st_mtime_ns, status.st_size
    with _READING:  # threads of a worker begin at the same time
        found = _READ.get(key)
        if found is None:
            from partwise.model_files import load

            found = load(name)
            _READ.clear()
            _READ[key] = found
    return found
