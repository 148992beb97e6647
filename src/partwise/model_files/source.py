"""What model files are read from: files, pipes, devices and standard input, each only as far as its header allows."""

from __future__ import annotations

import io
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from partwise.io.files import standard_input
from partwise.model_files.errors import ContainerError
from partwise.support.memory import check_room

#: In so many first bytes every format says what it is, and how long.
START = 256
READING = "reading this model file"
#: A text model from a pipe, whose header does not say its length, may take this many bytes, and so many per weight.
PIPED, RATIO = 3 << 19, 256
_CHUNK = 1 << 20
#: Bytes from which a file is mapped into memory.
_LARGE = 1 << 26


class Source:
    """An open model file.

    Attributes
    ----------
    length : the bytes of a regular file; None for a pipe or a device, which may be endless
    """

    def __init__(self, file: BinaryIO, length: int | None) -> None:
        self.length = length
        self._file = file
        self._read: list[bytes] = []

    def first(self, size: int) -> bytes:
        """Return the first bytes; fewer if there are no more. Memory is taken as the bytes come."""
        missing = size - sum(map(len, self._read))
        while missing > 0 and (part := self._file.read(min(missing, _CHUNK))):
            self._read.append(part)
            missing -= len(part)
        self._read = [b"".join(self._read)]
        return self._read[0][:size]

    def whole(self, limit: int) -> NDArray[np.uint8]:
        """Return all bytes, of which there may be `limit`.

        Raises
        ------
        ContainerError
            If there are more: known before they are read, but for a pipe, which is read up to the limit.
        TooLarge
            If there are fewer than `limit`, and less memory than for them.
        """
        length = limit if self.length is None else self.length
        if length > limit:
            raise ContainerError(f"is damaged: {length} bytes long, its header allows {limit}")
        if length > _LARGE and self.length is not None and not isinstance(self._file, io.BytesIO):
            # The page cache is read in place: a copy would take as long as the digest, most of it for new pages.
            return np.frombuffer(mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ), dtype=np.uint8)
        check_room(length, READING)
        data = self.first(length)
        if self._file.read(1):
            raise ContainerError(
                f"is damaged, or no model for a pipe: it does not end after the {limit} bytes that its header allows; "
                "give the file itself"
            )
        return np.frombuffer(data, dtype=np.uint8)


@contextmanager
def opened(path: str | os.PathLike[str], noun: str = "model file") -> Iterator[Source]:
    """Open a file, a pipe or standard input ("-")."""
    if os.fspath(path) == "-":
        yield Source(standard_input(), None)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below)
    except IsADirectoryError:
        raise ContainerError(f"is a directory, not a {noun}") from None
    with file:
        status = os.fstat(file.fileno())
        yield Source(file, status.st_size if stat.S_ISREG(status.st_mode) else None)


def of_bytes(data: bytes) -> Source:
    """Return the bytes of a file as a source."""
    return Source(io.BytesIO(data), len(data))


def text_limit(n_weights: int, length: int | None) -> int:
    """Return the most bytes of a text model: the length of a file; of a pipe, what is in proportion to its weights."""
    return max(PIPED, RATIO * n_weights) if length is None else length
