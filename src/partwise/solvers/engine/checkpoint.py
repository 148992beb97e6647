"""Checkpoints: the state of a run in one file, replaced in one step.

The container is that of model files (`model_files.container`): arrays, and one JSON text with everything else. Nothing
in a file is executed, and everything is checked before it is used. A checkpoint of another problem is refused: it holds
the problem's constants, and each example's margin at a fixed vector of weights, smax(theta_i + kappa c_i) -
<theta_i, g_i>, at a temperature at which every labelling counts. A change of features, gold labellings, costs, masks or
their order changes the margins, which take one pass.
"""

import json
import math
import os
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from partwise.model_files import container
from partwise.model_files.errors import CheckpointError
from partwise.problem import Capability, Problem
from partwise.problem.result import HISTORY, Status
from partwise.support.arrays import Array

#: On any processor, margins of the same data differ by at most this, relative to their size.
ROUNDING = 1e-12

HINT = " of this version: files of partwise 0.1.0 cannot be resumed, start again"
KIND = container.Kind("partwise checkpoint", 2, "checkpoint", CheckpointError, HINT)


@dataclass(frozen=True)
class Checkpoint:
    """Where a run saves its state, and how often; a run that finds a file there continues from it.

    The state is saved after a step, `every_seconds` after the last save or (if given) `every_passes` after it.
    """

    path: str | os.PathLike[str]
    every_seconds: float = 60.0
    every_passes: float | None = None

    def __post_init__(self) -> None:
        name = os.fspath(self.path)
        if name == "-" or name.endswith(".gz"):
            raise ValueError(f"checkpoint: {name!r} is not a name for a file that is read and rewritten")
        if not self.every_seconds >= 0:
            raise ValueError(f"every_seconds must be >= 0, got {self.every_seconds}")
        if self.every_passes is not None and not self.every_passes > 0:
            raise ValueError(f"every_passes must be above 0, got {self.every_passes}")

    def due(self, seconds: float, passes: float) -> bool:
        return seconds >= self.every_seconds or (self.every_passes is not None and passes >= self.every_passes)


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds. arrays, scalars: the state (`state.pack`). status: how the run ended, None before.

    problem, data: the problem's constants, and arrays that tell its data from other data (`answers`).
    """

    solver: str
    options: dict[str, Any]
    problem: dict[str, Any]
    data: dict[str, Array]
    seconds: float
    status: Status | None
    history: dict[str, list[float]]
    arrays: dict[str, Array]
    scalars: dict[str, Any]


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write, flush to the disk, then rename: a reader sees the old file or the new one, never half of a file."""
    names = ("solver", "options", "problem", "seconds", "status", "history", "scalars")
    values = json.dumps({name: getattr(saved, name) for name in names})
    arrays = {f"data.{name}": array for name, array in saved.data.items()}
    arrays |= {f"state.{name}": array for name, array in saved.arrays.items()}
    container.save(path, KIND, {"values": values}, arrays)


def read(path: str | os.PathLike[str]) -> Saved:
    """Return what was written; raise CheckpointError unless the file is a whole and undamaged checkpoint."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise CheckpointError("is not a file", path)
    metadata, arrays = container.read(path, KIND)
    try:
        if metadata["format_version"] != str(KIND.version):
            raise ValueError(f"is not a checkpoint{KIND.hint}")
        text = metadata.get("values", "")
        values = json.loads(text, object_pairs_hook=container.no_repeats, parse_constant=_constant)
        return _checked(values, arrays)
    except CheckpointError as error:
        raise CheckpointError(error.message, path) from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"is not a checkpoint of a run ({error})", path) from None


def _constant(text: str) -> float:
    if text == "NaN":
        raise ValueError("a number is NaN")
    return math.inf if text == "Infinity" else -math.inf


def _checked(values: Any, arrays: dict[str, Array]) -> Saved:
    """Return what a file holds; raise CheckpointError unless all but the state (see `state.unpack`) is valid."""
    kinds = {"solver": str, "options": dict, "problem": dict, "history": dict, "scalars": dict}
    if not isinstance(values, dict) or set(values) != {*kinds, "seconds", "status"}:
        raise CheckpointError("lacks something that every checkpoint has")
    for name, kind in kinds.items():
        if not isinstance(values[name], kind):
            raise CheckpointError(f"has a field {name} that is no {kind.__name__}")
    seconds, status, history = values["seconds"], values["status"], values["history"]
    if not _is_number(seconds) or not 0 <= seconds < math.inf:
        raise CheckpointError("has an invalid number of seconds")
    if status is not None and status not in get_args(Status):
        raise CheckpointError("ended in a way that is unknown here")
    if not _is_history(history):
        raise CheckpointError("has an invalid history")
    parts: dict[str, dict[str, Array]] = {"data": {}, "state": {}}
    for key, array in arrays.items():
        part, _, name = key.partition(".")
        if part not in parts:
            raise CheckpointError(f"has an array {key[:40]!r}, which no checkpoint has")
        parts[part][name] = array
    return Saved(**values, data=parts["data"], arrays=parts["state"])


def _is_history(history: dict[str, Any]) -> bool:
    columns = list(history.values())
    if not set(HISTORY) <= set(history) or not all(isinstance(column, list) for column in columns):
        return False
    if len({len(column) for column in columns}) != 1 or not all(_is_number(x) for column in columns for x in column):
        return False
    passes = np.array([0.0, *history["passes"]])
    return bool(np.isfinite(passes).all() and np.all(np.diff(passes) >= 0) and np.isfinite(history["primal"]).all())


def _is_number(value: Any) -> bool:
    return type(value) is float and not math.isnan(value)


def constants(problem: Problem) -> dict[str, Any]:
    """Return the problem's sizes, loss and penalty."""
    loss, free = problem.loss, problem.penalty.free
    return {
        "n_examples": problem.n_examples,
        "n_weights": problem.n_weights,
        "n_slots": problem.n_slots,
        "l1": float(problem.l1),
        "l2": float(problem.l2),
        "temperature": float(loss.temperature),
        "cost_scale": float(loss.cost_scale),
        "link": loss.link,
        **({} if loss.rescaling == "margin" else {"rescaling": loss.rescaling}),
        **({} if free is None else {"first_free": free.start, "n_free": free.stop - free.start}),
    }


def answers(problem: Problem) -> dict[str, Array]:
    """Return the margins of the module's docstring, and the sample weights."""
    probe = np.cos(np.arange(problem.n_weights))
    temperature = 1.0 if Capability.EXPECTATION_ORACLE in problem.capabilities() else 0.0
    with np.errstate(all="ignore"):
        margins = problem.sums.margins(probe, temperature)
    return {"margins": margins, "sample_weight": problem.sample_weight}


def difference(saved: dict[str, Array], mine: dict[str, Array]) -> str:
    """Return where the data differs, "" if it does not."""
    if set(saved) != set(mine) or any(saved[k].shape != mine[k].shape or saved[k].dtype != mine[k].dtype for k in mine):
        return "the data differs in size"
    far = np.abs(saved["margins"] - mine["margins"]) > ROUNDING * (1.0 + np.abs(mine["margins"]))
    odd = np.flatnonzero(far | (saved["sample_weight"] != mine["sample_weight"]))
    return f"example {odd[0]} differs" if odd.size else ""
