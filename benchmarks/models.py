"""Turn the results of partwise's estimators into the benchmarks' records."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.report import Record


class Watch:
    """CPU seconds of the solver alone: the total, and by the passes at which it issued certificates."""

    def __init__(self) -> None:
        self.total = 0.0
        self.at: dict[float, float] = {}


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch the solver that an estimator's `fit` runs, as a Result's history has wall seconds only."""
    from partwise.estimators import base

    watch = Watch()
    solve = base.solve

    def watching(*arguments: Any, callback: Any = None, **options: Any) -> Any:
        begin = time.process_time()

        def note(progress: Any) -> bool:
            if progress.fresh:
                watch.at[progress.passes] = time.process_time() - begin
            return callback is not None and bool(callback(progress))

        result = solve(*arguments, **{**options, "callback": note})
        watch.total = time.process_time() - begin
        return result

    base.solve = watching
    try:
        yield watch
    finally:
        base.solve = solve


def history_of(result: Any, watch: Watch) -> Record:
    """Return a Result's certificates as the columns of a trace."""
    history = {name: np.asarray(values, dtype=float).tolist() for name, values in result.history.items()}
    return {
        "solver": result.solver,
        "status": result.status,
        "solver_seconds": result.seconds,
        "solver_cpu_seconds": watch.total,
        "passes": float(result.passes),
        "trace_seconds": history["seconds"],
        "trace_cpu_seconds": [watch.at.get(passes) for passes in history["passes"]],
        "trace_passes": history["passes"],
        "trace_objective": history["primal"],
        "trace_gap": history["gap"],
        "reported_objective": result.primal,
        "gap": result.gap / result.primal,
    }
