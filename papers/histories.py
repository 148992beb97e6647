"""Follow a run step by step: certificates by passes and CPU seconds, without counting the time of the evaluations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from partwise.problem import Problem
from partwise.problem.result import DivergenceError
from partwise.solvers import Solver, choose, get_solver
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.registry import check_fits
from partwise.support.arrays import Floats

#: The columns of a trace, one entry per evaluation; `score` is added if scores are asked for.
COLUMNS = ("passes", "seconds", "cpu_seconds", "primal", "dual", "gap")
#: The next evaluation is due when this share of the steps made has been added.
_SHARE = 1 / 20


def follow(
    problem: Problem,
    solver: str | Solver[Any],
    *,
    max_passes: float = math.inf,
    max_seconds: float = math.inf,
    tol: float = 0.0,
    score: Callable[[Floats], float] | None = None,
    warm_start: WarmStart | None = None,
    random_state: int = 0,
    share: float = _SHARE,
    score_share: float = 0.0,
    score_dual: bool = False,
    certified: bool = False,
) -> dict[str, Any]:
    """Run a solver to a relative gap of `tol`, or for so many passes or CPU seconds, and evaluate it along the way.

    Evaluations (certificate and `score(weights)`) are made before and after the first step, and then whenever `share`
    of the steps made have been added. Their time is not counted. score_share: the share for scores, if they take long;
    evaluations without a score have NaN. score_dual: score the weights of the dual point (a cutting-plane method's
    current weights), not those that the certificate is for. certified: a solver without certificates makes one step.

    Returns
    -------
    dict
        solver, status ("converged", "max_passes", "max_seconds", "no certificate" for a solver that has none and ran
        to its limit, or "diverged: ..."), trace (columns `COLUMNS`, and `score`), weights and point (None if the run
        diverged before the first evaluation).
    """
    if math.isinf(max_passes) and math.isinf(max_seconds) and not tol > 0:
        raise ValueError("follow needs tol, max_passes or max_seconds: it would never end")
    trace: dict[str, list[float]] = {name: [] for name in (*COLUMNS, *(["score"] if score else []))}
    begin, cpu_begin = time.perf_counter(), time.process_time()
    chosen = choose(problem).solver if solver == "auto" else get_solver(solver) if isinstance(solver, str) else solver
    check_fits(chosen, problem)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu_begin
    state, found, due, score_due, status = None, None, 0, 0, ""
    while not status:
        begin, cpu_begin = time.perf_counter(), time.process_time()
        try:
            if state is None:
                state = chosen.init_state(problem, np.random.default_rng(random_state), warm_start)
            else:
                chosen.step(problem, state)
        except DivergenceError as error:
            status = f"diverged: {error}"
            break
        wall, cpu = wall + time.perf_counter() - begin, cpu + time.process_time() - cpu_begin
        passes = state.visits / len(problem.active)
        over = passes >= max_passes or cpu >= max_seconds
        if state.epoch < due and not over:
            continue
        due = state.epoch + max(1, int(share * state.epoch))
        found = chosen.certificate(problem, state)
        c = found.certificate
        values = [passes, wall, cpu, c.primal, c.dual, c.gap]
        if score is not None:
            scored = state.epoch >= score_due or over
            values.append(math.nan)
            if scored:
                dual = found.point if score_dual else None
                values[-1] = float(score(found.weights if dual is None else problem.weights_from_dual(dual)))
                score_due = state.epoch + max(1, int(score_share * state.epoch))
        for column, value in zip(trace.values(), values, strict=True):
            column.append(value)
        if tol > 0 and c.gap <= tol * abs(c.primal):
            status = "converged"
        elif certified and state.epoch > 0 and not math.isfinite(c.gap):
            status = "no certificate"
        elif over:
            limit = "max_passes" if passes >= max_passes else "max_seconds"
            status = limit if math.isfinite(c.gap) else "no certificate"
    return {
        "solver": chosen.name,
        "status": status,
        "trace": trace,
        "weights": None if found is None else found.weights,
        "point": None if found is None else found.point,
    }


def first(
    trace: dict[str, list[float]], column: str, *, least: float = -math.inf, most: float = math.inf, give: str
) -> float | None:
    """Return `give` at the first evaluation with `least` <= column <= `most`; None if there is none."""
    return next((x for x, y in zip(trace[give], trace[column], strict=True) if least <= y <= most), None)
