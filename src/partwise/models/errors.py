"""What a file that is no model raises."""

import os


class ModelFormatError(ValueError):
    """A file is not a whole, undamaged model file of a version that is known here.

    Attributes
    ----------
    path : str or None
    message : str
    """

    def __init__(self, message: str, path: str | os.PathLike[str] | None = None) -> None:
        self.message = message
        self.path = None if path is None else os.fspath(path)
        super().__init__(message if path is None else f"{self.path}: {message}")

    def __reduce__(self) -> tuple[type["ModelFormatError"], tuple[str, str | None]]:
        return ModelFormatError, (self.message, self.path)
