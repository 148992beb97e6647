"""The functions of most cells: one solver on one task; or a path of penalties, each from the last one's solution."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from papers.experiment import Record
from papers.histories import follow
from papers.tasks import task
from partwise.solvers import get_solver


def train(
    data: str | None,
    *,
    of: str,
    solver: str,
    l2: float,
    loss: str = "log",
    options: Mapping[str, Any] | None = None,
    limit: int | None = None,
    max_passes: float = math.inf,
    max_seconds: float = math.inf,
    tol: float = 0.0,
    score: bool = False,
    share: float = 0.05,
    score_share: float = 0.0,
    random_state: int = 0,
    estimator: Mapping[str, Any] | None = None,
) -> Record:
    """Train with one solver on a task.

    of: name of the task. options: of the solver. limit: see `tasks.task`. score: whether to score held-out data at each
    evaluation. estimator: its parameters, if they differ from the task's. For the rest see `follow`.
    """
    place = task(of, data, limit)
    session = place.session(loss, l2, **(estimator or {}))
    found = follow(
        session.problem,
        solver if solver == "auto" else get_solver(solver, **(options or {})),
        max_passes=max_passes,
        max_seconds=max_seconds,
        tol=tol,
        score=place.scorer(session) if score else None,
        share=share,
        score_share=score_share,
        random_state=random_state,
    )
    return {
        **_sizes(session.problem),
        "solver": found["solver"],
        "status": found["status"],
        "trace": found["trace"],
    }


def train_sgd(
    data: str | None,
    *,
    of: str,
    l2: float,
    max_passes: float,
    first_steps: Sequence[float],
    limit: int | None = None,
    score: bool = True,
    share: float = 0.05,
    score_share: float = 0.0,
    random_state: int = 0,
) -> Record:
    """Train by SGD as in Collins et al. 2008, section 7.1.3, with the eta0 of the best held-out score after one pass.

    The passes of this choice are not counted, as in the paper. tried: scores by eta0.
    """
    common: dict[str, Any] = {"of": of, "solver": "sgd", "l2": l2, "limit": limit, "share": share}
    common |= {"score_share": score_share, "random_state": random_state}

    def sgd(eta0: float, passes: float, score: bool) -> Record:
        options = {"rule": "reciprocal", "averaged": False, "step_size": eta0, "order": "random"}
        return train(data, **common, options=options, max_passes=passes, score=score)

    tried = {eta0: sgd(eta0, 1, True)["trace"]["score"][-1] for eta0 in first_steps} if len(first_steps) > 1 else {}
    best = max(tried, key=lambda eta0: tried[eta0]) if tried else first_steps[0]
    return sgd(best, max_passes, score) | {"eta0": best, "tried": [[eta0, score] for eta0, score in tried.items()]}


def train_path(
    data: str | None,
    *,
    of: str,
    l2s: Sequence[float],
    tol: float,
    solver: str = "eg",
    loss: str = "log",
    options: Mapping[str, Any] | None = None,
    limit: int | None = None,
    random_state: int = 0,
) -> Record:
    """Train a path of penalties, each from the last one's dual point; record passes, CPU seconds and score of each."""
    place = task(of, data, limit)
    session = place.session(loss, l2s[0])
    score = place.scorer(session)
    chosen = get_solver(solver, **(options or {}))
    problem, warm, rows = session.problem, None, []
    for l2 in l2s:
        # The estimator may scale the penalty, so only ratios of l2 values are used.
        problem = session.problem.with_penalty(session.problem.l2 * l2 / l2s[0])
        begin = time.process_time()
        result = chosen.run(problem, tol=tol, warm_start=warm, random_state=random_state)
        seconds = time.process_time() - begin
        warm = result
        row = {"l2": l2, "passes": result.passes, "cpu_seconds": seconds, "status": result.status}
        rows.append(row | {"primal": result.primal, "gap": result.gap, "score": score(result.weights)})
    return {**_sizes(problem), "rows": rows}


def _sizes(problem: Any) -> Record:
    return {"n_examples": len(problem.active), "n_weights": int(problem.n_weights)}
