"""Checkpoint files of every solver, and forged ones with a valid digest."""

from __future__ import annotations

import copy
import json
import time
import warnings

import numpy as np

from helpers.small_problems import Small, kind_for, loss_for, penalty_for
from partwise import CheckpointError, ConvergenceWarning, DivergenceError, Problem, solve
from partwise.model_files import container
from partwise.solvers.engine import checkpoint as files


def problem_for(solver: str) -> Problem:
    small = Small(kind_for(solver), loss_for(solver), l2=0.05, n=6)
    return small.problem.with_penalty(penalty_for(solver, 0.05))


def run(problem, solver, path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(problem, solver, **({"tol": 1e-9, "max_passes": 5, "random_state": 0} | options), checkpoint=path)


def saved_run(solver, folder):
    problem, path = problem_for(solver), folder / "run.ckpt"
    run(problem, solver, path, max_passes=3)
    return problem, path


def parts(path):
    """Return (values, arrays) of a checkpoint file, as copies that can be changed."""
    metadata, arrays = container.read(path, files.KIND)
    return json.loads(metadata["values"]), dict(arrays)


def forge(path, values, arrays, **metadata):
    """Write a checkpoint file with a valid digest and this content."""
    text = metadata.pop("text", None) or json.dumps(values)
    header = {"format": files.KIND.format, "format_version": str(files.KIND.version), "values": text}
    with open(path, "wb") as file:
        container.write(file, header | metadata, arrays)


#: Values by which tests replace each JSON value of a file.
ODD = [None, True, -1, 0, 1, 2**60, -(2**70), 1.5, -1e300, 1e300, float("inf"), "x", "", [], [1.0, "a"], {}, {"a": 1}]


def places(value, at=()):
    """Yield the paths to all values in nested JSON; of long lists only to the first two items."""
    yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*at, key))
    elif isinstance(value, list):
        for k, item in enumerate(value[:2]):
            yield from places(item, (*at, k))


def changed(values, at, odd):
    out = copy.deepcopy(values)
    if not at:
        return odd
    inner = out
    for key in at[:-1]:
        inner = inner[key]
    if odd is changed:
        del inner[at[-1]]
    else:
        inner[at[-1]] = odd
    return out


def attempt(problem, solver, path):
    """Resume from a forged file, and check that it is refused, diverges with an error, or ends with finite numbers."""
    begin = time.process_time()
    try:
        with np.errstate(all="ignore"):
            result = run(problem, solver, path)
    except (CheckpointError, DivergenceError) as error:
        told = error
    else:
        told = None
    assert time.process_time() - begin < 2.0
    if told is not None:
        assert isinstance(told, DivergenceError) or (told.path, str(path) in str(told)) == (str(path), True)
        return False
    assert np.isfinite(result.weights).all()
    assert np.isfinite([result.primal, result.passes, result.seconds]).all()
    assert result.gap >= 0
    return True


def without(arrays, name):
    return {key: array for key, array in arrays.items() if key != name}
