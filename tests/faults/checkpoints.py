"""Checkpoints whose content is wrong although their digest is right."""

from __future__ import annotations

import random
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from helpers.checkpoint_cases import ODD, changed, forge, parts, places, run, saved_run
from partwise import CheckpointError, DivergenceError, available_solvers, solve
from partwise.solvers.engine.registry import SOLVERS as REGISTERED
from partwise.solvers.engine.registry import suitable_solvers

from .names import NAMES, watched
from .rows import Row

SOLVERS = available_solvers()


def held(solver: str, folder: Path) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """Return what `saved` returns; for a solver that keeps files beside its checkpoint, make a new run in `folder`."""
    if "files for blocks" not in REGISTERED[solver].requires:
        return saved(solver)
    problem, path = saved_run(solver, folder)
    return problem, *parts(path)


@cache
def saved(solver: str) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """Return a problem, and the values and arrays in the checkpoint of a run on it."""
    with tempfile.TemporaryDirectory() as folder:
        problem, path = saved_run(solver, Path(folder))
        values, arrays = parts(path)
        return problem, values, {name: array.copy() for name, array in arrays.items()}


@cache
def least(solver: str) -> float:
    """Return the lowest primal value that is known for the solver's problem. No valid dual value is above it."""
    problem = saved(solver)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = [name for name in ("eg-prox", "lbfgs", "bcfw", "owlqn") if name in suitable_solvers(problem)]
        return min(solve(problem, name, tol=1e-7, max_passes=1000, random_state=0).primal for name in (solver, *others))


def _drawn(rng: random.Random, values: Any, arrays: dict[str, np.ndarray]) -> tuple[Any, dict[str, np.ndarray], str]:
    """Replace one array or value, perhaps by an equal one. Return values, arrays and a text about the change."""
    if arrays and rng.random() < 0.4:
        name = rng.choice(sorted(arrays))
        array = arrays[name].copy()
        odd = rng.choice([-1, 0, 7, 2**40, float("nan"), float("inf"), 1e300])
        if rng.random() < 0.3 or not array.size or (array.dtype.kind != "f" and not -1 <= odd <= 7):
            array = rng.choice([array[:-1], array.reshape(1, -1), array.astype(np.float32)])
        else:
            array.reshape(-1)[rng.randrange(array.size)] = (
                odd if array.dtype.kind == "f" else np.int64(odd).astype(array.dtype)
            )
        return values, {**arrays, name: array}, f"{name} with {odd}"
    place = rng.choice([at for at in places(values) if at])
    odd = changed if rng.random() < 0.2 else rng.choice([*ODD, *NAMES])
    return changed(values, place, odd), arrays, f"{place} is {odd}"


def mutate(rng: random.Random, values: Any, arrays: dict[str, np.ndarray]) -> tuple[Any, dict[str, np.ndarray], str]:
    """Change one array or value. Return the values, the arrays, and a text about the change."""
    while True:
        found, others, what = _drawn(rng, values, arrays)
        # Compare texts, because NaN is not equal to itself, and 1, 1.0 and True are equal to each other.
        if repr(found) != repr(values) or any(not _same(arrays[name], others[name]) for name in arrays):
            return found, others, what


def _same(one: np.ndarray, two: np.ndarray) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


def forged_checkpoint(number: int, folder: Path) -> tuple[str, str]:
    solver, path = SOLVERS[number % len(SOLVERS)], folder / "run.ckpt"
    problem, values, arrays = held(solver, folder)
    values, arrays, what = mutate(random.Random(number), values, arrays)
    forge(path, values, arrays)
    what, result = f"{solver}: {what}", None
    try:
        with np.errstate(all="ignore"), watched() as calls:
            result = run(problem, solver, path)
    except CheckpointError:
        pass
    except DivergenceError as error:
        return "diverged, told", f"{what}: {error}"
    if calls:
        return "call by name", f"{what}: {calls[0]}"
    if result is None:
        return "refused", ""
    if result.dual > least(solver) + 1e-6 * abs(result.primal):
        return "false certificate", f"{what}: dual value {result.dual}, the optimum is {least(solver)}"
    fine = np.isfinite(result.weights).all() and np.isfinite(result.primal) and result.gap >= 0
    return ("another legal state, ran to its certificate" if fine else "not finite"), what


GOOD = ("refused", "another legal state, ran to its certificate")
ROWS = [
    Row(
        "forged-checkpoints",
        "checkpoint of every solver forged, digest recomputed (a number that could have been another is a legal state)",
        "refused with one kind of error, or the state is legal and the run ends with its certificate; 0 hangs, 0 calls "
        "by name",
        10_000,
        40,
        forged_checkpoint,
        GOOD,
    ),
    Row(
        "forged-checkpoints-asan",
        "checkpoint forged, digest recomputed, under AddressSanitizer and UndefinedBehaviorSanitizer",
        "as above; 0 reports",
        2000,
        10,
        forged_checkpoint,
        GOOD,
        core="asan",
    ),
]
