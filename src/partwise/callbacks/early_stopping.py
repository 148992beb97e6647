"""Stopping when the score on held-out data no longer rises."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from partwise.callbacks.base import Session, TrainingCallback
from partwise.problem.result import Certificate, Result, Status
from partwise.solvers.engine.base import Progress
from partwise.solvers.engine.registry import has_certificates
from partwise.support.arrays import Floats
from partwise.support.checks import check_count


class EarlyStopping(TrainingCallback):
    """Stop when the score on held-out data has not risen for a while, and give back the best weights.

    The result's certificate, status and message are for the returned weights: their objective with the last dual value,
    which is a lower bound of the optimum whatever the weights are; "stopped", unless that gap is below the tolerance.
    `passes`, `seconds` and `history` are those of the whole run.

    Every step is scored (with `every`: fewer), however long it takes: the machine's speed must not matter.

    X_dev, y_dev: data that are not trained on, in the form that `fit` takes. patience: how many scores in a row may
    fail to rise. metric: None and "accuracy" for the estimator's own `score`; "f1" and "chunk_f1" for F1 of chunks,
    another name of `partwise.metrics.get_measure`, or a function of (y_dev, predicted labels). Larger is better.
    min_delta: a score rises if it is more than this above the best. every: score at most once in this many passes.

    A run leaves `scores_`, a list of (passes, score), `best_score_` and `best_passes_`.
    """

    def __init__(
        self,
        X_dev: object,
        y_dev: object,
        patience: int = 5,
        metric: str | Callable[[object, object], float] | None = None,
        *,
        min_delta: float = 0.0,
        every: float = 1.0,
    ) -> None:
        self.patience = check_count("patience", patience)
        from partwise.metrics.scorers import MEASURES

        if not (metric is None or metric in ("accuracy", "f1", *MEASURES) or callable(metric)):
            names = ", ".join(map(repr, MEASURES))
            raise ValueError(f"metric must be None, 'accuracy', 'f1', {names} or a function, got {metric!r}")
        if not (min_delta >= 0 and every >= 0):
            raise ValueError(f"min_delta and every must be >= 0, got {min_delta!r} and {every!r}")
        self.X_dev, self.y_dev, self.metric = X_dev, y_dev, metric
        self.min_delta, self.every = float(min_delta), float(every)

    def begin(self, session: Session) -> None:
        self._session = session
        self.scores_: list[tuple[float, float]] = []
        self.best_score_, self.best_passes_ = -math.inf, 0.0
        self._best: Floats | None = None
        self._waited, self._tol = 0, 0.0

    def __call__(self, progress: Progress) -> bool:
        if self.scores_ and progress.passes - self.scores_[-1][0] < self.every:
            return False
        self._tol = progress.tol
        weights = np.array(progress.weights())
        score = self._score(self._session.preview(weights))
        self.scores_.append((progress.passes, score))
        progress.scores["dev"] = score
        if score > self.best_score_ + self.min_delta or self._best is None:
            self.best_score_, self.best_passes_, self._best, self._waited = score, progress.passes, weights, 0
            return False
        self._waited += 1
        return self._waited >= self.patience

    def end(self, session: Session, result: Result | None) -> Result | None:
        best, self._best = self._best, None
        del self._session
        if result is None or best is None:
            return result
        last = self._score(session.preview(result.weights))
        if last >= self.best_score_:
            return result.noted(f"early stopping: dev score {last:.6g} at the end")
        primal = session.problem.value(best)
        rounding = session.problem.sums.rounding
        of_primal = rounding.of_primal(primal, result.l2, rounding.size(best))
        found = Certificate.of(primal, result.dual, result.rounding + of_primal)
        status: Status = "converged" if 0 < self._tol >= found.relative_gap else "stopped"
        message = (
            f"early stopping: weights of pass {self.best_passes_:.4g}, dev score {self.best_score_:.6g}, "
            f"{found.text(result.l2, has_certificates(result.solver))}; "
            f"{result.solver} went on to pass {result.passes:.4g} without a better score"
        )
        return replace(
            result, weights=best, primal=primal, gap=found.gap, rounding=found.rounding, status=status, message=message
        )

    def _score(self, estimator: Any) -> float:
        if self.metric is None or self.metric == "accuracy":
            return float(estimator.score(self.X_dev, self.y_dev))
        measure = self.metric
        if isinstance(measure, str):
            from partwise.metrics.scorers import get_measure

            measure = get_measure("chunk_f1" if measure == "f1" else measure)
        return float(measure(self.y_dev, estimator.predict(self.X_dev)))
