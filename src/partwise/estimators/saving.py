"""Estimators to model files and back: parameters, labels, certificates, layouts of features.

Files know no padding: weights are stored a value a feature, in the order (attribute, label), so that they do not depend
on how rows of weights are laid out in memory.
"""

from __future__ import annotations

import inspect
from typing import Any, get_args

import numpy as np

from partwise._core import padded_width
from partwise.estimators.chains import PairLayout
from partwise.estimators.inputs import ColumnReader, Floats, Ints, NameReader
from partwise.estimators.templates import TemplateReader
from partwise.features.template import Template
from partwise.models.errors import ModelFormatError
from partwise.models.parts import Array, ModelParts
from partwise.models.values import decode, decode_labels, encode, encode_labels
from partwise.result import HISTORY, Result, Status

#: Parameters that say nothing about a model: they are None after loading.
_NOT_SAVED = ("callbacks",)
_NUMBERS = ("primal", "dual", "gap", "passes", "seconds", "l2")


def start_model(estimator: Any, kind: str) -> ModelParts:
    """The parts that every estimator has: parameters, labels, certificate."""
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _NOT_SAVED:
            continue
        if name == "random_state" and isinstance(value, np.random.RandomState | np.random.Generator):
            value = None  # a generator has moved on; its state would mean nothing to the next fit
        if isinstance(value, Template):
            value = None  # it is stored with the reader
        parameters[name] = encode(value, f"the parameter {name}")
    result: Result = estimator.result_
    certificate = {name: encode(float(getattr(result, name)), name) for name in _NUMBERS}
    certificate |= {name: str(getattr(result, name)) for name in ("status", "solver", "message")}
    settings: dict[str, Any] = {"parameters": parameters, "result": certificate}
    if hasattr(estimator, "classes_"):  # a parser may have none
        settings["labels"] = encode_labels(estimator.classes_)
    settings["history"] = {column: encode(result.history[column].tolist(), column) for column in HISTORY}
    if hasattr(estimator, "input_settings_"):
        settings["input"] = estimator.input_settings_
    return ModelParts(kind, settings)


def make_estimator(cls: type[Any], parts: ModelParts, labelled: bool = True) -> Any:
    """An estimator with the saved parameters and labels, not yet fitted."""
    found = parts.settings.get("parameters")
    known = inspect.signature(cls.__init__).parameters
    if not isinstance(found, dict) or not all(name in known and name != "self" for name in found):
        raise ModelFormatError(f"has parameters that {cls.__name__} does not know")
    estimator = cls(**{name: decode(value) for name, value in found.items()})
    if labelled:
        estimator.classes_ = decode_labels(parts.settings.get("labels"))
    if parts.has("input"):
        estimator.input_settings_ = _read_input_settings(parts.settings["input"])
    return estimator


def _read_input_settings(found: Any) -> dict[str, str | int]:
    """How the command line read the training data; the commands check what the values mean."""
    if not isinstance(found, dict) or not all(type(value) in (str, int) for value in found.values()):
        raise ModelFormatError("has settings of its input that cannot be read")
    return found


def read_result(parts: ModelParts, weights: Floats) -> Result:
    """The certificate and history of the training run, with these weights."""
    settings = parts.settings.get("result")
    if not isinstance(settings, dict):
        raise ModelFormatError("has no certificate of its training")
    found = ModelParts("result", settings)
    numbers: dict[str, Any] = {name: found.number(name) for name in _NUMBERS}
    status = found.text("status")
    if status not in get_args(Status):
        raise ModelFormatError(f"has the unknown status {status[:40]!r}")
    return Result(
        weights=weights,
        status=status,  # type: ignore[arg-type]
        solver=found.text("solver"),
        message=found.text("message"),
        history=_read_history(parts.settings.get("history")),
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


# coefficients


def coefficient_arrays(table: Floats) -> dict[str, Array]:
    """Rows of weights, all of them or, where most are zero, the others alone."""
    chosen = table != 0
    n = int(chosen.sum())
    if n > 0.6 * table.size or not _in_proportion(table.size, n):
        return {"weights": table}
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(chosen)[1].astype(np.int64)
    return {"weights": table[chosen], "offsets": offsets, "columns": _narrow(columns, table.shape[1])}


def read_coefficients(parts: ModelParts, n_rows: int) -> Floats:
    """The inverse of `coefficient_arrays`."""
    n_columns = parts.integer("n_features", 1, 1 << 40)
    if "columns" not in parts.arrays:
        return np.array(parts.floats("weights", n_rows, n_columns))
    columns = parts.ints("columns", None, low=0, high=n_columns)
    values = parts.floats("weights", len(columns))
    offsets = parts.pointers("offsets", n_rows, len(columns))
    if not _in_proportion(n_rows * n_columns, len(columns)):
        raise ModelFormatError(
            f"has {n_rows} x {n_columns} weights of which {len(columns)} are not zero: out of proportion"
        )
    table = np.zeros((n_rows, n_columns))
    table[np.repeat(np.arange(n_rows), np.diff(offsets)), columns] = values
    return table


def _in_proportion(size: int, n: int) -> bool:
    """Whether a file may hold n values of a table of this size: a small file must not ask for all memory."""
    return size <= max(1 << 24, 100 * n)


# layouts


def layout_parts(layout: PairLayout, weights: Floats) -> ModelParts:
    """Which (attribute, label) pairs there are, and their weights."""
    core = layout.core
    parts = ModelParts("pairs", {"all": layout.all_pairs, "n_attributes": core.num_attributes})
    parts.arrays["weights"] = core.unpack(weights)
    if not layout.all_pairs:
        indptr, columns = core.pairs()
        parts.arrays |= {"offsets": indptr, "columns": _narrow(columns, core.n_columns)}
    return parts


def read_layout(parts: ModelParts, n_labels: int, room: int = 0) -> tuple[PairLayout, Floats]:
    """The inverse of `layout_parts`; the weights have this many zeros after them."""
    n_attributes, width = parts.integer("n_attributes"), padded_width(n_labels)
    if parts.flag("all"):
        values = parts.floats("weights", n_attributes * n_labels)
        layout = PairLayout.every(n_attributes, n_labels, width)
    else:
        columns = parts.columns("columns", None, high=n_labels)
        values = parts.floats("weights", len(columns))
        indptr = parts.pointers("offsets", n_attributes, len(columns))
        layout = PairLayout.some(n_attributes, n_labels, width, indptr, columns)
    return layout, layout.core.pack(np.ascontiguousarray(values), room)


def edge_layout_parts(layout: PairLayout, weights: Floats, n_labels: int) -> ModelParts:
    """The same for (edge attribute, label, next label)."""
    core, width = layout.core, padded_width(n_labels)
    parts = ModelParts("triples", {"all": layout.all_pairs, "n_attributes": core.num_attributes})
    values = core.unpack(weights)
    if layout.all_pairs:
        table = values.reshape(core.num_attributes, n_labels, width)[:, :, :n_labels]
        parts.arrays["weights"] = np.ascontiguousarray(table)
    else:
        indptr, columns = core.pairs()
        cells = columns // width * n_labels + columns % width
        parts.arrays |= {"weights": values, "offsets": indptr, "columns": _narrow(cells, n_labels * n_labels)}
    return parts


def read_edge_layout(parts: ModelParts, n_labels: int) -> tuple[PairLayout, Floats]:
    """The inverse of `edge_layout_parts`."""
    n_attributes, width = parts.integer("n_attributes", 1), padded_width(n_labels)
    size = n_labels * width
    if parts.flag("all"):
        values = parts.floats("weights", n_attributes, n_labels, n_labels)
        table = np.zeros((n_attributes, n_labels, width))
        table[:, :, :n_labels] = values
        layout = PairLayout.every(n_attributes, size, size)
        return layout, layout.core.pack(table.ravel())
    cells = parts.ints("columns", None, low=0, high=n_labels * n_labels)
    values = parts.floats("weights", len(cells))
    indptr = parts.pointers("offsets", n_attributes, len(cells))
    layout = PairLayout.some(n_attributes, size, size, indptr, cells // n_labels * width + cells % n_labels)
    return layout, layout.core.pack(values)


def unpadded(run: Array, *shape: int) -> Array:
    """Rows of labels without their padding: the last of `shape` is the number of labels."""
    return np.ascontiguousarray(run.reshape(*shape[:-1], padded_width(shape[-1]))[..., : shape[-1]])


def padded(table: Array) -> Array:
    """Rows of labels with their padding, as one run."""
    out = np.zeros((*table.shape[:-1], padded_width(table.shape[-1])), dtype=table.dtype)
    out[..., : table.shape[-1]] = table
    return out.ravel()


def _narrow(columns: Ints, n_columns: int) -> Array:
    return columns.astype(np.uint16 if n_columns <= 1 << 16 else np.int32 if n_columns <= 1 << 31 else np.int64)


# readers


def n_attributes(parts: ModelParts) -> int:
    """How many attributes a reader will know."""
    if parts.kind == ColumnReader.kind:
        return parts.integer("n_features", 1)
    return parts.length("offsets") - 1


def read_reader(parts: ModelParts) -> NameReader | ColumnReader | TemplateReader:
    """The reader that `_to_model` of one of them gave."""
    readers: tuple[type[NameReader | ColumnReader | TemplateReader], ...] = (NameReader, ColumnReader, TemplateReader)
    for cls in readers:
        if parts.kind == cls.kind:
            return cls._from_model(parts)
    raise ModelFormatError(f"reads its input in an unknown way ({parts.kind[:40]!r})")
