"""The error that readers of files raise."""

import os


class FormatError(ValueError):
    """A file is not in its format.

    message: what is wrong. path: the file's name; "-" is standard input. line, column: the place, counted from 1
    (columns in characters); None where there is no one place.
    """

    def __init__(
        self, message: str, path: str | os.PathLike[str] = "<input>", line: int | None = None, column: int | None = None
    ) -> None:
        self.message, self.path, self.line, self.column = message, os.fspath(path), line, column
        super().__init__(str(self))

    def __str__(self) -> str:
        places = [str(place) for place in (self.path, self.line, self.column) if place is not None]
        return f"{':'.join(places)}: {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.path, self.line, self.column)
