"""What fitted partwise models say, in the benchmarks' terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report import Record


def history_of(result: Any) -> Record:
    """A Result's certificates as a trace."""
    history = {name: np.asarray(values, dtype=float).tolist() for name, values in result.history.items()}
    return {
        "solver": result.solver,
        "status": result.status,
        "solver_seconds": result.seconds,
        "passes": float(result.passes),
        "trace_seconds": history["seconds"],
        "trace_passes": history["passes"],
        "trace_objective": history["primal"],
        "trace_gap": history["gap"],
        "reported_objective": result.primal,
        "gap": result.gap / result.primal,
    }
