"""Checkpoints whose content is wrong and whose digest is right."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
from checkpointcases import ODD, changed, forge, parts, places, problem_for, run, saved_run

from partwise import CheckpointError, DivergenceError, available_solvers

from .rows import Row

SOLVERS = available_solvers()


def forged_checkpoint(number: int, folder: Path) -> tuple[str, str]:
    solver, rng = SOLVERS[number % len(SOLVERS)], random.Random(number)
    fsync, os.fsync = os.fsync, lambda _: None
    try:
        _, path = saved_run(solver, folder)
        values, arrays = parts(path)
        if arrays and rng.random() < 0.4:
            name = rng.choice(sorted(arrays))
            array = arrays[name].copy()
            odd = rng.choice([-1, 0, 7, 2**40, float("nan"), float("inf"), 1e300])
            if rng.random() < 0.3 or not array.size or (array.dtype.kind != "f" and not -1 <= odd <= 7):
                arrays[name] = rng.choice([array[:-1], array.reshape(1, -1), array.astype(np.float32)])
            else:
                array.reshape(-1)[rng.randrange(array.size)] = odd
                arrays[name] = array
        else:
            place = rng.choice([at for at in places(values) if at])
            values = changed(values, place, changed if rng.random() < 0.2 else rng.choice(ODD))
        forge(path, values, arrays)
        with np.errstate(all="ignore"):
            result = run(problem_for(solver), solver, path)
    except (CheckpointError, DivergenceError) as error:
        return ("refused" if isinstance(error, CheckpointError) else "diverged, told"), ""
    finally:
        os.fsync = fsync
    fine = np.isfinite(result.weights).all() and np.isfinite(result.primal) and result.gap >= 0
    return ("ran to a certificate" if fine else "not finite"), solver


ROWS = [
    Row(
        "forged-checkpoints",
        "checkpoint forged, digest recomputed",
        "refused with one kind of error, or a run that ends with its certificate; 0 hangs, 0 calls by name",
        10_000,
        40,
        forged_checkpoint,
        ("refused", "diverged, told", "ran to a certificate"),
    ),
]
