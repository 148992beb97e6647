"""Answers while a model trains: the score on development data for the progress line, those for training data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.callbacks import Session, TrainingCallback
from partwise.cli.tasks import Data, Task
from partwise.problem.result import Result
from partwise.solvers import Progress

#: What a score may take of the time spent so far.
SHARE = 0.1
#: Seconds that they may take for a report.
FOR_REPORT = 2.0


class DevScore(TrainingCallback):
    """Scores a model on the way, after every step by which scoring takes less than a tenth of the time spent so far.

    What is shown has no influence on what is learnt, so it may depend on the clock. `seen`: (passes, score) of each.
    `free`: seconds that scores may take in any case, so that there is a curve of a short run, too.
    """

    def __init__(self, task: Task, data: Data, free: float = 0.0) -> None:
        self.task = task
        self.data = data
        self.free = free

    def begin(self, session: Session) -> None:
        self.session = session
        self.cost = self.spent = 0.0
        self.seen: list[tuple[float, float]] = []

    def __call__(self, progress: Progress) -> Any:
        if self.cost > SHARE * progress.seconds and self.spent > self.free:
            return None
        begin = time.perf_counter()
        model = self.session.preview(progress.weights().copy())
        progress.scores["dev"] = self.task.main_score(self.task.evaluate(model, self.data))[1]
        self.seen.append((progress.passes, progress.scores["dev"]))
        self.cost = time.perf_counter() - begin
        self.spent += self.cost
        return None


class TrainingAnswers(TrainingCallback):
    """What the trained model answers for some of the training examples, which it does not read again.

    `found` is None before the end, and for a model that has to read them.
    """

    def __init__(self, which: Sequence[int]) -> None:
        self.which = which
        self.found: Any = None

    def end(self, session: Session, result: Result | None) -> Result | None:
        if result is not None and session.answers is not None:
            self.found = session.answers(result.weights, np.asarray(self.which, dtype=np.int64))
        return result
