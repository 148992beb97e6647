"""What a file that cannot be read raises."""

import os


class ContainerError(ValueError):
    """A file is not a whole, undamaged one of a kind and version that are known here (`message`, `path`)."""

    def __init__(self, message: str, path: str | os.PathLike[str] | None = None) -> None:
        self.message = message
        self.path = None if path is None else os.fspath(path)
        super().__init__(message if path is None else f"{self.path}: {message}")


class ModelFormatError(ContainerError):
    """A file is not a whole, undamaged model file of a version that is known here."""


class CheckpointError(ContainerError):
    """A file is not a whole, undamaged checkpoint of a version that is known here, or not one of this run."""


class PartitionError(ContainerError):
    """A folder or one of its files is not a whole, undamaged partition of a version that is known here."""
