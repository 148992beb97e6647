"""Model files (`.pw`): what an estimator learnt, in a container that is checked before it is used.

    tagger.save("chunks.pw")
    tagger = partwise.load("chunks.pw")

docs/file_formats.md describes the files. A model takes part with `to_parts` and `from_parts` (`partwise.models.Model`),
which checks shapes, ranges and finiteness; its estimator with a line in `KINDS`.
"""

import importlib
import json
import os
from typing import Any

import numpy as np

from partwise.io.files import atomic_write
from partwise.model_files import container, crfsuite, foreign
from partwise.model_files.errors import ContainerError, ModelFormatError
from partwise.model_files.parts import Array, ModelParts
from partwise.model_files.source import START, Source, opened

__all__ = [
    "FORMAT_VERSION",
    "KINDS",
    "ModelFormatError",
    "ModelParts",
    "class_of",
    "kind_of",
    "load",
    "register",
    "save",
]

FORMAT_VERSION = container.FORMAT_VERSION
#: What `save` can write.
FORMATS = ("partwise", "crfsuite")

#: Kinds of models: where the class is that reads them.
KINDS: dict[str, tuple[str, str]] = {
    "conllu": ("partwise.conllu.pipeline", "ConlluPipeline"),
    "cfg": ("partwise.estimators.constituency", "ConstituencyParser"),
    "dep": ("partwise.estimators.parser", "DependencyParser"),
    "graph": ("partwise.estimators.graph_labeler", "GraphLabeler"),
    "maxent": ("partwise.estimators.classifier", "MaxentClassifier"),
    "segment": ("partwise.estimators.segment_tagger", "SegmentTagger"),
    "tagger": ("partwise.estimators.tagger", "SequenceTagger"),
}


#: Classes that `register` was given, by kind: no module need have them under their names.
_GIVEN: dict[str, type[Any]] = {}


def register(kind: str, estimator: type[Any]) -> None:
    """Let files hold models of a user-defined estimator, under this name; `load` knows it once this was called."""
    if not isinstance(estimator, type):
        raise TypeError(f"register takes the estimator's class, got {estimator!r}")
    if KINDS.setdefault(kind, _place(estimator)) != _place(estimator):
        raise ValueError(f"there is another estimator for model files of kind {kind!r}")
    _GIVEN[kind] = estimator


def kind_of(estimator: Any) -> str:
    """The kind of an estimator's files: that of its class, or of the class that it is derived from."""
    places = {place: kind for kind, place in KINDS.items()}
    for cls in type(estimator).__mro__:
        if _place(cls) in places:
            return places[_place(cls)]
    raise ValueError(f"{type(estimator).__name__} has no kind of model files: see partwise.model_files.register")


def _place(cls: type[Any]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def save(estimator: Any, path: str | os.PathLike[str], dtype: str = "float64", format: str = "partwise") -> None:
    """Write a fitted estimator to a file, which is replaced in one step or left as it was; "-" is standard output.

    format="crfsuite": a first-order chain over named attributes, as CRFsuite reads it.

    Raises
    ------
    ValueError
        If labels or settings are of a kind that a file cannot hold.
    """
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if os.fspath(path).endswith(".gz"):
        raise ValueError("model files are not compressed: give a name that does not end in .gz")
    if format == "crfsuite":
        if dtype != "float64":
            raise ValueError("files of CRFsuite hold float64")
        if hasattr(estimator, "to_parts"):
            raise ValueError("files of CRFsuite hold one tagger, not several models")
        crfsuite.write(crfsuite.of_tagger(estimator), path)
        return
    from partwise.model_files.estimators import to_parts

    # several models in one file know how that is done
    parts = estimator.to_parts() if hasattr(estimator, "to_parts") else to_parts(estimator, kind_of(estimator))
    for name, array in parts.arrays.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name!r} of a model file must be a NumPy array, got {type(array).__name__}")
    arrays = {
        name: _rounded(array, dtype) if name.endswith("weights") else array for name, array in parts.arrays.items()
    }
    metadata = {
        "format": container.FORMAT,
        "format_version": str(parts.version),
        "partwise_version": _version(),
        "kind": parts.kind,
        "settings": _settings(parts.settings),
    }
    with atomic_write(path) as file:
        container.write(file, metadata, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator that `save` wrote to a file ("-": standard input), ready to predict.

    Nothing in the file is executed, and nothing in it is used before its digest, shapes and ranges were checked. A
    model file of CRFsuite, of Wapiti or of CRF++ (its text form) gives a `SequenceTagger` with the same answers; such
    files have no digest to check.

    Raises
    ------
    ModelFormatError
        If the file is not a whole and undamaged model file, or of a newer format version.
    TooLarge
        If its header says that it takes more memory than there is (a pipe, or another tool's file).
    OSError
        If it cannot be read.
    """
    try:
        with opened(path) as source:
            return foreign.load(source) if foreign.is_foreign(source.first(START)) else _load(source)
    except ContainerError as error:
        raise ModelFormatError(error.message, path) from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        # What a loss, a solver, a layout or an option refuses.
        raise ModelFormatError(f"does not hold a valid model ({error})", path) from error


def _load(source: Source) -> Any:
    metadata, arrays = container.parse(source)
    kind = metadata.get("kind", "")
    cls = class_of(kind)
    try:
        settings = container.parse_json(metadata.get("settings", ""))
    except (ValueError, RecursionError):
        raise ModelFormatError("has settings that cannot be read") from None
    if not isinstance(settings, dict):
        raise ModelFormatError("has settings that cannot be read")
    from partwise.model_files.estimators import from_parts

    version = int(metadata["format_version"])  # the container knows it
    parts = ModelParts(kind, settings, arrays, version)
    return cls.from_parts(parts) if hasattr(cls, "from_parts") else from_parts(cls, parts)


def class_of(kind: str) -> type[Any]:
    """The class that reads models of a kind. ModelFormatError for one that is not known."""
    if kind not in KINDS:
        hint = "import the module that registers it (partwise.model_files.register), if there is one"
        raise ModelFormatError(f"holds a model of unknown kind {kind[:40]!r}: {hint}")
    if kind in _GIVEN:
        return _GIVEN[kind]
    module, name = KINDS[kind]
    found: type[Any] = getattr(importlib.import_module(module), name)
    return found


def _settings(settings: dict[str, Any]) -> str:
    try:
        return json.dumps(settings, separators=(",", ":"), allow_nan=False)
    except TypeError as error:
        raise TypeError(f"settings of a model file must be JSON values: {error}") from None


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
