"""partwise inside other libraries: spaCy, MLflow, skops. Each module needs its library (extra of the same name)."""

import os
import tempfile
from typing import Any

from partwise.model_files import load

__all__ = ["model_from_bytes", "model_to_bytes"]


def model_to_bytes(model: Any) -> bytes:
    """The model file of a fitted estimator, as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pw")
        model.save(path)
        with open(path, "rb") as file:
            return file.read()


def model_from_bytes(data: bytes) -> Any:
    """The inverse: as `partwise.load`, nothing in it is executed; ModelFormatError if it is damaged."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pw")
        with open(path, "wb") as file:
            file.write(data)
        return load(path)
