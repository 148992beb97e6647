"""Estimators to model files and back."""

import importlib
import os
from contextlib import suppress
from typing import Any

import numpy as np

from partwise.features.presets import read_gazetteers
from partwise.features.template import Template
from partwise.model_files import container, foreign
from partwise.model_files.container import Json
from partwise.model_files.errors import ContainerError, ModelFormatError
from partwise.model_files.foreign import crfsuite
from partwise.model_files.parts import Array, ModelParts
from partwise.model_files.values import add_result, decode, encode, read_result
from partwise.problem.losses import LOSSES, Loss, get_loss

#: A fitted estimator, or several models that know how they are written to one file; and its class.
Estimator = Any
Class = type[Any]
#: What `save` can write.
FORMATS = ("partwise", "crfsuite")

#: Kinds of models: where the class is that reads them.
KINDS: dict[str, tuple[str, str]] = {
    "conllu": ("partwise.tables.conllu", "ConlluPipeline"),
    "cfg": ("partwise.estimators.constituency", "ConstituencyParser"),
    "dep": ("partwise.estimators.parser", "DependencyParser"),
    "graph": ("partwise.estimators.graph_labeler", "GraphLabeler"),
    "maxent": ("partwise.estimators.classifier", "MaxentClassifier"),
    "segment": ("partwise.estimators.segment_tagger", "SegmentTagger"),
    "tagger": ("partwise.estimators.tagger", "SequenceTagger"),
}
#: Classes that `register` was given, by kind: a class may be missing from its module (made in a function, say).
_GIVEN: dict[str, Class] = {}


def register(kind: str, estimator: Class) -> None:
    """Let files hold models of a user-defined estimator, under this name; `load` knows it once this was called."""
    if not isinstance(estimator, type):
        raise TypeError(f"register takes the estimator's class, got {estimator!r}")
    if KINDS.setdefault(kind, _place(estimator)) != _place(estimator):
        raise ValueError(f"there is another estimator for model files of kind {kind!r}")
    _GIVEN[kind] = estimator


def kind_of(estimator: object) -> str:
    """Return the kind of an estimator's files: that of its class, or of the class that it is derived from."""
    places = {place: kind for kind, place in KINDS.items()}
    for cls in type(estimator).__mro__:
        if _place(cls) in places:
            return places[_place(cls)]
    raise ValueError(f"{type(estimator).__name__} has no kind of model files: see partwise.model_files.register")


def class_of(kind: str) -> Class:
    """Return the class that reads models of a kind; ModelFormatError for one that is not known."""
    if kind not in KINDS:
        hint = "import the module that registers it (partwise.model_files.register), if there is one"
        raise ModelFormatError(f"holds a model of unknown kind {kind[:40]!r}: {hint}")
    module, name = KINDS[kind]
    found: Class = _GIVEN[kind] if kind in _GIVEN else getattr(importlib.import_module(module), name)
    return found


def _place(cls: Class) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def save(estimator: Estimator, path: str | os.PathLike[str], dtype: str = "float64", format: str = "partwise") -> None:
    """Write a fitted estimator to a file, which is replaced in one step or left as it was; "-" is standard output.

    format="crfsuite": a first-order chain over named attributes, as CRFsuite reads it. ValueError if labels or settings
    are of a kind that a file cannot hold.
    """
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if os.fspath(path).endswith(".gz"):
        raise ValueError("model files are not compressed: give a name that does not end in .gz")
    several = hasattr(estimator, "to_parts")  # several models in one file, which know how that is done
    if format == "crfsuite":
        if dtype != "float64":
            raise ValueError("files of CRFsuite hold float64")
        if several:
            raise ValueError("files of CRFsuite hold one tagger, not several models")
        crfsuite.write(crfsuite.of_tagger(estimator), path)
        return
    from partwise import __version__

    parts = estimator.to_parts() if several else to_parts(estimator, kind_of(estimator))
    for name, array in parts.arrays.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name!r} of a model file must be a NumPy array, got {type(array).__name__}")
    weights = {name: array for name, array in parts.arrays.items() if name.endswith("weights")}
    rounded = {name: _rounded(array) for name, array in weights.items()} if dtype == "float32" else {}
    try:
        settings = container.json_text(parts.settings)
    except TypeError as error:
        raise TypeError(f"settings of a model file must be JSON values: {error}") from None
    metadata = {"partwise_version": __version__, "kind": parts.kind, "settings": settings}
    container.save(path, container.MODEL, metadata, parts.arrays | rounded, parts.version)


def _rounded(array: Array) -> Array:
    with np.errstate(over="ignore"):
        rounded = array.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ValueError("a weight is too large for float32: save in float64")
    return rounded


def load(path: str | os.PathLike[str]) -> Estimator:
    """Return the estimator that `save` wrote to a file ("-": standard input), ready to predict.

    Nothing in the file is executed, and nothing in it is used before its digest, shapes and ranges were checked. A
    model file of CRFsuite, of Wapiti or of CRF++ (its text form) gives a `SequenceTagger` with the same answers; such
    files have no digest to check. ModelFormatError if the file is damaged, of a newer format version, or not a model
    file; TooLarge if its header says that it takes more memory than there is (a pipe, or another tool's file); OSError
    if it cannot be read.
    """
    try:
        with container.opened(path) as source:
            found = foreign.load(source)
            return _load(source) if found is None else found
    except ContainerError as error:
        raise ModelFormatError(error.message, path) from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        # Raised for invalid values by a loss, a solver, a layout or an option.
        raise ModelFormatError(f"does not hold a valid model ({error})", path) from error


def _load(source: container.Source) -> Estimator:
    metadata, arrays = container.parse(source)
    kind, settings = metadata.get("kind", ""), None
    cls = class_of(kind)
    with suppress(ValueError, RecursionError):
        settings = container.parse_json(metadata.get("settings", ""))
    if not isinstance(settings, dict):
        raise ModelFormatError("has settings that cannot be read")
    parts = ModelParts(kind, settings, arrays, int(metadata["format_version"]))  # `parse` has checked it
    return cls.from_parts(parts) if hasattr(cls, "from_parts") else from_parts(cls, parts)


def to_parts(estimator: Estimator, kind: str) -> ModelParts:
    """Return the parts of a fitted estimator: parameters, certificate, how its data were read, the model."""
    parameters = {}
    model = estimator._fitted()
    table = model.cost_table
    for name, value in estimator.get_params(deep=False).items():
        if name == "callbacks":  # which say nothing about the model: None after loading
            continue
        if name == "random_state" and isinstance(value, np.random.RandomState | np.random.Generator):
            value = None  # a generator has moved on; its state would mean nothing to the next fit
        if isinstance(value, Template):
            value = None  # it is stored with the reader
        if name in estimator._phrases and value is not None:  # not the names of files, which may not be there
            value = {key: list(each.phrases) for key, each in read_gazetteers(getattr(model, name)).items()}
        if name == "loss":  # by value: the name may be known to the code that trained and to no other
            value = get_loss(value)
        if name == "cost":  # what was given may be a function
            value = table.as_mapping() if table is not None else None if callable(value) else value
        parameters[name] = encode(value, f"the parameter {name}")
    parts = ModelParts(kind, {"parameters": parameters}, version=1)
    add_result(parts, estimator.result_)
    if hasattr(estimator, "input_settings_"):
        parts.settings["input"] = estimator.input_settings_
    model.without_zeros().to_parts(parts)
    return parts


def from_parts(cls: Class, parts: ModelParts) -> Estimator:
    """Return the estimator of this class that `to_parts` wrote."""
    found = parts.settings.get("parameters")
    if not isinstance(found, dict) or not set(found) <= set(cls._get_param_names()):
        raise ModelFormatError(f"has parameters that {cls.__name__} does not know")
    values = cls._earlier | {name: decode(value) for name, value in found.items() if name != "solver"}
    if "solver" in found:
        values |= _decode_solver(found["solver"])
    loss = values.get("loss")
    if isinstance(loss, Loss) and LOSSES.get(loss.name) == loss:  # the registered loss of this name is the same
        values["loss"] = loss.name
    for name in cls._phrases:
        if not isinstance(values.get(name), dict | None):  # names of files that would be read
            raise ModelFormatError(f"has no phrases in its parameter {name}")
    estimator = cls(**values)
    if parts.has("input"):
        found = parts.settings["input"]  # the commands check what the values mean
        if not isinstance(found, dict) or not all(type(value) in (str, int) for value in found.values()):
            raise ModelFormatError("has settings of its input that cannot be read")
        estimator.input_settings_ = found
    estimator._check_settings()
    blank = estimator._make_model()
    model = blank.from_parts(parts)
    if not isinstance(model, type(blank)):
        raise TypeError(f"{type(blank).__name__}.from_parts must return the model, got {type(model).__name__}")
    for name, value in model.parameters().items():
        if getattr(estimator, name) is None:
            setattr(estimator, name, value)
    estimator._adopt(model, read_result(parts, model.weights))
    return estimator


def _decode_solver(found: Json) -> dict[str, object]:
    """Return the parameters `solver` and `solver_options`, which matter when the estimator is trained again.

    A solver that is missing here, or has other options by now, stays a name with its options.
    """
    try:
        return {"solver": decode(found)}
    except ModelFormatError:
        raise
    except (TypeError, ValueError):
        if not isinstance(found, dict) or list(found) != ["solver"]:
            raise
        name, options = found["solver"]
        return {"solver": name, "solver_options": decode(options)}
