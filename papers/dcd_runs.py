"""Runs of the comparison of Chang and Yih 2013: C by held-out data; solvers with as much CPU time as DCD-SSVM."""

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
    """So many passes for each C, scored on development data; of equal scores the smallest C is the best."""
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
    """One solver, scored on test data on the way.

    C: the name of an earlier cell that chose it, or a value. It makes so many passes, or has the CPU time that the
    earlier cell `time_of` took. share, score_dual: see `follow`.
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
    """The problem at C = 1; reading it can take longer than a pass."""
    return task(of, data, limit).session(loss, 1.0)
