"""Callbacks that predict: scores on development data during training, and labels of training examples at its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.callbacks import Session, TrainingCallback
from partwise.cli.tasks import Data, Task
from partwise.problem.result import Result
from partwise.solvers import Progress

#: The share of the time spent so far that scores may take.
SHARE = 0.1
#: Seconds that scores may take for a report.
FOR_REPORT = 2.0


class DevScore(TrainingCallback):
    """Scores a model after a step unless scoring would take more than a tenth of the time spent so far.

    `seen` has (passes, score) of each; scores may take `free` seconds in any case, so that short runs have a curve.
    """

    def __init__(self, task: Task, data: Data, free: float = 0.0) -> None:
        self.task = task
        self.data = data
        self.free = free

    def begin(self, session: Session) -> None:
        self.session = session
        self.cost = self.spent = 0.0
        self.seen: list[tuple[float, float]] = []

    def __call__(self, progress: Progress) -> None:
        if self.cost > SHARE * progress.seconds and self.spent > self.free:
            return
        begin = time.perf_counter()
        model = self.session.preview(progress.weights().copy())
        progress.scores["dev"] = self.task.main_score(self.task.evaluate(model, self.data))[1]
        self.seen.append((progress.passes, progress.scores["dev"]))
        self.cost = time.perf_counter() - begin
        self.spent += self.cost


class TrainingAnswers(TrainingCallback):
    """Keeps the trained model's predictions for some training examples in `found`; None if the model must read them."""

    def __init__(self, which: Sequence[int]) -> None:
        self.which = which
        self.found: Any = None

    def end(self, session: Session, result: Result | None) -> Result | None:
        if result is not None and session.answers is not None:
            self.found = session.answers(result.weights, np.asarray(self.which, dtype=np.int64))
        return result
