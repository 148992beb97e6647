"""The score on development data while a model trains, for the progress line."""

from __future__ import annotations

import time
from typing import Any

from partwise.callbacks import Session, TrainingCallback
from partwise.cli.tasks import Data, Task
from partwise.solvers import Progress


class DevScore(TrainingCallback):
    """Scores a model on the way when a certificate is issued; at most a tenth of the time goes into it."""

    def __init__(self, task: Task, data: Data) -> None:
        self.task = task
        self.data = data
        self.next = 0.0

    def begin(self, session: Session) -> None:
        self.session = session

    def __call__(self, progress: Progress) -> Any:
        now = time.perf_counter()
        if not progress.fresh or now < self.next:
            return None
        model = self.session.preview(progress.weights().copy())
        progress.scores["dev"] = self.task.main_score(self.task.evaluate(model, self.data))[1]
        spent = time.perf_counter() - now
        self.next = now + 10.0 * spent
        return None
