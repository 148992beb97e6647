"""partwise inside other libraries: spaCy, MLflow, skops. Each module needs its library (extra of the same name)."""

import tempfile
from pathlib import Path
from typing import Any

from partwise.model_files import load

__all__ = ["model_from_bytes", "model_to_bytes"]


def model_to_bytes(model: Any) -> bytes:
    """Return the model file of a fitted estimator, as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pw")
        model.save(path)
        return path.read_bytes()


def model_from_bytes(data: bytes) -> Any:
    """Return the estimator of a model file's bytes, as `partwise.load`; ModelFormatError if they are damaged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pw")
        path.write_bytes(data)
        return load(path)
