"""Labels, settings and certificates as JSON, with nothing lost and nothing executed.

None, strings, bools and finite floats and ints are themselves; a list is a list. Everything else is an object with
one entry that says what it is: {"tuple": [...]}, {"dict": [[key, value], ...]}, {"float": "inf"}, {"loss": {...}},
{"solver": [name, {option: value}]}, {"kernel": [name, {parameter: value}]}.
"""

import math
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from partwise.model_files.container import Json
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.problem.result import HISTORY, Result, Status
from partwise.support.arrays import Floats

#: NumPy types that labels may have, besides strings and objects.
_INTS = {f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)}
_NUMBERS = {"bool", "float16", "float32", "float64"} | _INTS

#: The fields that every loss in a model file has.
_LOSS = {"name", "temperature", "cost_scale"}

#: The numbers of a certificate, and a number that earlier files lack, which is then 0.
_CERTIFICATE = ("primal", "dual", "gap", "passes", "seconds", "l2")
_LATER = ("l1",)

#: Labels and predictions are NumPy's strings if none is longer: each takes as much memory as the longest.
LONGEST = 100


def string_array(names: list[str]) -> NDArray[Any]:
    """Return labels as an array: of NumPy's strings if they are short and survive that, else of objects."""
    if max(map(len, names), default=0) <= LONGEST:
        array = np.array(names, dtype=str)
        if array.tolist() == names:
            return array
    return object_array(names)


def object_array(values: list[Any]) -> NDArray[Any]:
    """Return values of any kind as a one-dimensional array of objects."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def encode(value: object, what: str) -> Json:
    """Return a value as JSON; ValueError if it is of a kind that a model file cannot hold."""
    from partwise.features.kernels import KernelLike
    from partwise.problem.losses import Loss
    from partwise.solvers import Solver

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int):
        return value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what} {value!r} holds a lone surrogate, which is not text") from None
        return str(value)
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is list:
        return [encode(each, what) for each in value]
    if type(value) is tuple:
        return {"tuple": [encode(each, what) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key, what), encode(each, what)] for key, each in value.items()]}
    if type(value) is Loss:
        return {"loss": asdict(value)}
    if isinstance(value, Solver):
        return {"solver": [value.name, encode(value.options(), what)]}
    if isinstance(value, KernelLike):
        parameters = {item.name: getattr(value, item.name) for item in fields(value)}
        return {"kernel": [value.name, encode(parameters, what)]}
    raise ValueError(
        f"{what} {value!r} of type {type(value).__name__} cannot be saved: a model file holds strings, ints, bools, "
        "floats, None, and tuples, lists and dicts of these"
    )


def decode(value: Json) -> Json:
    """Return what `encode` was given; ModelFormatError (or a ValueError of a loss, solver or kernel) for other JSON."""
    from partwise.features.kernels import get_kernel
    from partwise.problem.losses import Loss
    from partwise.solvers import get_solver

    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ModelFormatError("has a setting that cannot be read")
    ((kind, inner),) = value.items()
    if kind == "float" and inner in ("inf", "-inf", "nan"):
        return float(inner)
    if kind == "tuple" and isinstance(inner, list):
        return tuple(decode(each) for each in inner)
    if kind == "dict" and isinstance(inner, list) and all(isinstance(each, list) and len(each) == 2 for each in inner):
        try:
            return {decode(key): decode(each) for key, each in inner}
        except TypeError:
            raise ModelFormatError("has a setting whose keys cannot be keys") from None
    # Files of earlier releases lack the fields that later releases have added to losses.
    if kind == "loss" and isinstance(inner, dict) and _LOSS <= set(inner) <= {item.name for item in fields(Loss)}:
        numbers = inner["temperature"], inner["cost_scale"]
        if isinstance(inner["name"], str) and all(type(number) in (int, float) for number in numbers):
            return Loss(**inner)
    if kind in ("solver", "kernel") and isinstance(inner, list) and len(inner) == 2 and isinstance(inner[0], str):
        options = decode(inner[1])
        if isinstance(options, dict) and all(isinstance(name, str) for name in options):
            return get_solver(inner[0], **options) if kind == "solver" else get_kernel(inner[0], **options)
    raise ModelFormatError(f"has a setting of unknown kind {kind[:40]!r}")


def encode_labels(classes: NDArray[Any]) -> dict[str, Any]:
    """Return the type and the values of an array of labels."""
    dtype = classes.dtype.newbyteorder("=").name
    if dtype not in _NUMBERS:
        dtype = {"U": "str", "O": "object"}.get(classes.dtype.kind, "")
    if not dtype:
        raise ValueError(f"labels of type {classes.dtype} cannot be saved: use strings, ints, bools or floats")
    return {"dtype": dtype, "values": [encode(label, "label") for label in classes.tolist()]}


def decode_labels(found: Json) -> NDArray[Any]:
    """Return the labels of `encode_labels`; ModelFormatError unless there are two or more, all different."""
    if not isinstance(found, dict) or set(found) != {"dtype", "values"} or not isinstance(found["values"], list):
        raise ModelFormatError("has no list of labels")
    dtype, plain = found["dtype"], [decode(value) for value in found["values"]]
    try:
        distinct = set(plain)
    except TypeError:
        raise ModelFormatError("has labels that cannot be told apart") from None
    if len(distinct) != len(plain) or len(plain) < 2 or any(label is None or label != label for label in plain):
        raise ModelFormatError("has labels that are missing or occur twice")
    if dtype == "object":
        return object_array(plain)
    if dtype == "str" and all(isinstance(label, str) for label in plain):
        return string_array(plain)
    if dtype in _NUMBERS and all(type(label) in (bool, int, float) for label in plain):
        with suppress(OverflowError, ValueError):
            array = np.array(plain, dtype=dtype)
            if array.tolist() == plain:
                return array
    raise ModelFormatError(f"has labels that are not of their type {dtype!r}")


def add_result(parts: ModelParts, result: Result, name: str = "result", history: str = "history") -> None:
    """Add a certificate and the history of its run."""
    certificate = {column: encode(float(getattr(result, column)), column) for column in (*_CERTIFICATE, *_LATER)}
    certificate |= {column: str(getattr(result, column)) for column in ("status", "solver", "message")}
    columns = {column: encode(result.history[column].tolist(), column) for column in HISTORY}
    parts.settings |= {name: certificate, history: columns}


def read_result(parts: ModelParts, weights: Floats, name: str = "result", history: str = "history") -> Result:
    """Return the result that `add_result` wrote, with these weights."""
    settings = parts.settings.get(name)
    if not isinstance(settings, dict):
        raise ModelFormatError("has no certificate of its training")
    found = ModelParts("result", settings)
    numbers: dict[str, Json] = {name: found.number(name) for name in _CERTIFICATE}
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


def _read_history(found: Json) -> dict[str, Floats]:
    if not isinstance(found, dict) or set(found) != set(HISTORY):
        raise ModelFormatError("has no history of its training")
    columns = {name: decode(found[name]) for name in HISTORY}
    for values in columns.values():
        if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
            raise ModelFormatError("has a history of its training that is not of numbers")
    if len({len(values) for values in columns.values()}) != 1:
        raise ModelFormatError("has a history of its training in columns of unlike lengths")
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
