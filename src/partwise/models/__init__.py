"""Model files (`.pw`): what an estimator learnt, in a container that is checked before it is used.

    tagger.save("chunks.pw")
    tagger = partwise.load("chunks.pw")

docs/file_formats.md describes the files. An estimator takes part with a `_kind`, a method `_to_model() -> ModelParts`
and a class method `_from_model(parts)`, which checks shapes, ranges and finiteness; and with a line in `KINDS`.
"""

import importlib
import json
import os
from typing import Any

import numpy as np

from ..io.files import atomic_write
from . import container
from .errors import ModelFormatError
from .parts import Array, ModelParts

__all__ = ["FORMAT_VERSION", "KINDS", "ModelFormatError", "ModelParts", "load", "save"]

FORMAT_VERSION = container.FORMAT_VERSION

#: Kinds of models: where the class is that reads them.
KINDS: dict[str, tuple[str, str]] = {
    "dep": ("partwise.estimators.parser", "DependencyParser"),
    "maxent": ("partwise.estimators.maxent", "MaxentClassifier"),
    "tagger": ("partwise.estimators.tagger", "SequenceTagger"),
}


def save(estimator: Any, path: str | os.PathLike[str], dtype: str = "float64") -> None:
    """Write a fitted estimator to a file, which is replaced in one step or left as it was; "-" is standard output.

    Raises
    ------
    ValueError
        If labels or settings are of a kind that a file cannot hold.
    """
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    if os.fspath(path).endswith(".gz"):
        raise ValueError("model files are not compressed: give a name that does not end in .gz")
    parts: ModelParts = estimator._to_model()
    arrays = {
        name: _rounded(array, dtype) if name.endswith("weights") else array for name, array in parts.arrays.items()
    }
    metadata = {
        "format": container.FORMAT,
        "format_version": str(FORMAT_VERSION),
        "partwise_version": _version(),
        "kind": parts.kind,
        "settings": json.dumps(parts.settings, separators=(",", ":"), allow_nan=False),
    }
    with atomic_write(path) as file:
        container.write(file, metadata, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator that `save` wrote to a file ("-": standard input), ready to predict.

    Nothing in the file is executed, and nothing in it is used before its digest, shapes and ranges were checked.

    Raises
    ------
    ModelFormatError
        If the file is not a whole and undamaged model file, or of a newer format version.
    OSError
        If it cannot be read.
    """
    metadata, arrays = container.read(path)
    try:
        kind = metadata.get("kind", "")
        if kind not in KINDS:
            raise ModelFormatError(f"holds a model of unknown kind {kind[:40]!r}")
        try:
            settings = container.parse_json(metadata.get("settings", ""))
        except (ValueError, RecursionError):
            raise ModelFormatError("has settings that cannot be read") from None
        if not isinstance(settings, dict):
            raise ModelFormatError("has settings that cannot be read")
        module, name = KINDS[kind]
        return getattr(importlib.import_module(module), name)._from_model(ModelParts(kind, settings, arrays))
    except ModelFormatError as error:
        raise ModelFormatError(error.message, path) from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        # What a loss, a solver, a layout or an option refuses.
        raise ModelFormatError(f"holds what makes no model ({error})", path) from error


def _rounded(array: Array, dtype: str) -> Array:
    if dtype == "float64":
        return array
    with np.errstate(over="ignore"):
        rounded = array.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ValueError("a weight is too large for float32: save in float64")
    return rounded


def _version() -> str:
    from partwise import __version__

    return __version__
