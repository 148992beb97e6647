"""The score on development data while a model trains, for the progress line."""

from __future__ import annotations

import time
from typing import Any

from partwise.callbacks import Session, TrainingCallback
from partwise.cli.tasks import Data, Task
from partwise.solvers import Progress

#: What a score may take of the time spent so far.
SHARE = 0.1


class DevScore(TrainingCallback):
    """Scores a model on the way, after every step by which scoring takes less than a tenth of the time spent so far.

    What is shown has no influence on what is learnt, so it may depend on the clock.
    """

    def __init__(self, task: Task, data: Data) -> None:
        self.task = task
        self.data = data

    def begin(self, session: Session) -> None:
        self.session = session
        self.cost = 0.0

    def __call__(self, progress: Progress) -> Any:
        if self.cost > SHARE * progress.seconds:
            return None
        begin = time.perf_counter()
        model = self.session.preview(progress.weights().copy())
        progress.scores["dev"] = self.task.main_score(self.task.evaluate(model, self.data))[1]
        self.cost = time.perf_counter() - begin
        return None
