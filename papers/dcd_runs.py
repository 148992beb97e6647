"""Runs of the comparison of Chang and Yih 2013: choose C on held-out data, then train for DCD-SSVM's CPU time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from papers.experiment import Record, Records
from papers.histories import follow
from papers.tasks import task
from partwise.callbacks import Session
from partwise.solvers import get_solver


def choose(
    data: str | None,
    *,
    of: str,
    solver: str,
    loss: str,
    options: Mapping[str, Any],
    limit: int | None,
    Cs: Sequence[float],
    passes: int,
) -> Record:
    """Train with each C for some passes and score on development data; of equal scores the smallest C is best."""
    session, rows = _session(data, of, limit, loss), []
    score = task(of, data, limit).scorer(session, dev=True)
    for C in Cs:
        problem = session.problem.with_penalty(1.0 / C)
        found = follow(problem, get_solver(solver, **options), max_passes=passes, share=passes)
        weights = found["weights"]
        rows.append({"C": C, "status": found["status"], "score": 0.0 if weights is None else score(weights)})
    return {"limit": limit, "rows": rows, "C": max(rows, key=lambda row: (row["score"], -row["C"]))["C"]}


def compete(
    data: str | None,
    *,
    of: str,
    solver: str,
    loss: str,
    options: Mapping[str, Any],
    limit: int | None,
    C: str | float,
    share: float,
    passes: int | None = None,
    time_of: str | None = None,
    score_dual: bool = False,
    random_state: int = 0,
    earlier: Records,
) -> Record:
    """Train with one solver, and score on test data along the way.

    C: a value, or the name of an earlier cell that chose it. The run ends after `passes`, or after the CPU time that
    the earlier cell `time_of` took. share, score_dual: see `follow`.
    """
    chosen = float(earlier[C]["C"]) if isinstance(C, str) else C
    session = _session(data, of, limit, loss)
    found = follow(
        session.problem.with_penalty(1.0 / chosen),
        get_solver(solver, **options),
        max_passes=math.inf if passes is None else passes,
        max_seconds=math.inf if time_of is None else earlier[time_of]["trace"]["cpu_seconds"][-1],
        score=task(of, data, limit).scorer(session),
        share=share,
        score_dual=score_dual,
        random_state=random_state,
    )
    return {"C": chosen, "limit": limit, "status": found["status"], "trace": found["trace"]}


@lru_cache(maxsize=1)
def _session(data: str | None, of: str, limit: int | None, loss: str) -> Session:
    """Return the problem at C = 1. It is cached, as reading it can take longer than a pass."""
    return task(of, data, limit).session(loss, 1.0)
