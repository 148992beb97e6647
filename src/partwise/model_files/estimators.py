"""Estimators to model files and back: parameters, certificate, and what their models write."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from partwise.features.presets import read_gazetteers
from partwise.features.template import Template
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import decode, encode
from partwise.problem.losses import LOSSES, Loss, get_loss
from partwise.problem.result import HISTORY, Result, Status
from partwise.support.arrays import Floats

#: Parameters that say nothing about a model: they are None after loading.
_NOT_SAVED = ("callbacks",)
_NUMBERS = ("primal", "dual", "gap", "passes", "seconds", "l2")
#: Those that earlier files do not have: 0 there.
_LATER = ("l1",)


def to_parts(estimator: Any, kind: str) -> ModelParts:
    """A fitted estimator: parameters, certificate, how the command line read its data, the model."""
    parameters = {}
    model = estimator._fitted()
    table = model.cost_table
    for name, value in estimator.get_params(deep=False).items():
        if name in _NOT_SAVED:
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


def from_parts(cls: type[Any], parts: ModelParts) -> Any:
    """The inverse, for an estimator of this class."""
    found = parts.settings.get("parameters")
    if not isinstance(found, dict) or not set(found) <= set(cls._get_param_names()):
        raise ModelFormatError(f"has parameters that {cls.__name__} does not know")
    values = cls._earlier | {name: decode(value) for name, value in found.items() if name != "solver"}
    if "solver" in found:
        values |= _decode_solver(found["solver"])
    if isinstance(values.get("loss"), Loss):
        values["loss"] = _name_loss(values["loss"])
    for name in cls._phrases:
        if not isinstance(values.get(name), dict | None):  # names of files that would be read
            raise ModelFormatError(f"has no phrases in its parameter {name}")
    estimator = cls(**values)
    if parts.has("input"):
        estimator.input_settings_ = _read_input_settings(parts.settings["input"])
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


def _decode_solver(found: Any) -> dict[str, Any]:
    """The parameters `solver` and `solver_options`: a note on how the model was trained.

    A solver that is missing here, or has other options by now, stays a name with its options: it matters when the
    estimator is trained again.
    """
    named = isinstance(found, dict) and list(found) == ["solver"]
    try:
        return {"solver": decode(found)}
    except ModelFormatError:
        raise
    except (TypeError, ValueError):
        if not named:
            raise
        name, options = found["solver"]
        return {"solver": name, "solver_options": decode(options)}


def _name_loss(loss: Loss) -> Loss | str:
    """The name of a loss that is known by it, and means the same here; else the loss itself."""
    return loss.name if LOSSES.get(loss.name) == loss else loss


def add_result(parts: ModelParts, result: Result, name: str = "result", history: str = "history") -> None:
    """A certificate and the history of its run."""
    certificate = {column: encode(float(getattr(result, column)), column) for column in (*_NUMBERS, *_LATER)}
    certificate |= {column: str(getattr(result, column)) for column in ("status", "solver", "message")}
    columns = {column: encode(result.history[column].tolist(), column) for column in HISTORY}
    parts.settings |= {name: certificate, history: columns}


def _read_input_settings(found: Any) -> dict[str, str | int]:
    """How the command line read the training data; the commands check what the values mean."""
    if not isinstance(found, dict) or not all(type(value) in (str, int) for value in found.values()):
        raise ModelFormatError("has settings of its input that cannot be read")
    return found


def read_result(parts: ModelParts, weights: Floats, name: str = "result", history: str = "history") -> Result:
    """The inverse of `add_result`, with these weights."""
    settings = parts.settings.get(name)
    if not isinstance(settings, dict):
        raise ModelFormatError("has no certificate of its training")
    found = ModelParts("result", settings)
    numbers: dict[str, Any] = {name: found.number(name) for name in _NUMBERS}
    numbers |= {name: found.number(name) for name in _LATER if name in settings}
    status = found.text("status")
    if status not in get_args(Status):
        raise ModelFormatError(f"has the unknown status {status[:40]!r}")
    return Result(
        weights=weights,
        status=status,  # type: ignore[arg-type]
        solver=found.text("solver"),
        message=found.text("message"),
        history=_read_history(parts.settings.get(history)),
        **numbers,
    )


def _read_history(found: Any) -> dict[str, Floats]:
    if not isinstance(found, dict) or set(found) != set(HISTORY):
        raise ModelFormatError("has no history of its training")
    columns = {name: decode(found[name]) for name in HISTORY}
    for values in columns.values():
        if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
            raise ModelFormatError("has a history of its training that is not of numbers")
    if len({len(values) for values in columns.values()}) != 1:
        raise ModelFormatError("has a history of its training in columns of unlike lengths")
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
