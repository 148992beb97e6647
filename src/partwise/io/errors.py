"""What readers of files raise."""

from __future__ import annotations

import os
from typing import Any


class FormatError(ValueError):
    """A file that is not in its format.

    Attributes
    ----------
    message : what is wrong
    path : the file's name; "-" is standard input
    line, column : where, counted from 1 (columns in characters); None where it makes no sense
    """

    def __init__(
        self,
        message: str,
        path: str | os.PathLike[str] = "<input>",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.message = message
        self.path = os.fspath(path)
        self.line = line
        self.column = column
        super().__init__(str(self))

    def __str__(self) -> str:
        places = [str(place) for place in (self.path, self.line, self.column) if place is not None]
        return f"{':'.join(places)}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.path, self.line, self.column)
