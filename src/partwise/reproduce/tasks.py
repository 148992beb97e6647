"""The papers' tasks: data, estimator and held-out score by name. What stands in for data that we lack is said here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays import Floats
from ..callbacks import Session


@dataclass(frozen=True)
class Task:
    """An estimator with training and held-out data; `score` of an estimator is in units of 0 to 1."""

    estimator: Any
    X: Any
    y: Any
    X_held: Any
    y_held: Any
    _sessions: dict[str, tuple[float, Session]] = field(default_factory=dict, repr=False)

    def session(self, loss: str, l2: float, **parameters: Any) -> Session:
        """The problem of this loss and penalty, and previews by weights; one thread.

        The last one is remembered, so that the same data under other penalties are not read again.
        """
        from sklearn.base import clone

        key = repr((loss, sorted(parameters.items())))
        if key in self._sessions:
            before, last = self._sessions[key]
            # The estimator may scale the penalty: the ratio is what counts.
            return replace(last, problem=last.problem.with_penalty(last.problem.l2 * l2 / before))
        self._sessions.clear()
        estimator = clone(self.estimator).set_params(loss=loss, C=1.0 / l2, n_jobs=1, **parameters)
        session: Session = estimator.prepare(self.X, self.y)
        if not session.problem.l1:
            self._sessions[key] = l2, session
        return session

    def scorer(self, session: Session) -> Callable[[Floats], float]:
        """The held-out score of weights."""
        first = session.preview(np.zeros(session.problem.n_weights))
        score: Callable[[Floats], float] = first.scorer(self.X_held, self.y_held)
        return score


@lru_cache(maxsize=1)
def task(name: str, data: str | None, limit: int | None) -> Task:
    """The task of this name; limit: examples for training and for testing, at most. The last one is remembered."""
    return TASKS[name](data, limit)


def mnist(data: str | None, limit: int | None) -> Task:
    """Handwritten digits, pixels from 0 to 1: the first 59,000 of MNIST's training images, and its 10,000 test images.

    The paper says 59k for training and 10k for validation, not which, and does not state the pixels' scale. A bias is
    no part of its model.
    """
    from .. import MaxentClassifier, datasets

    X, y, X_test, y_test = datasets.mnist(data)
    size, held = (59_000, 10_000) if limit is None else (limit, limit)
    estimator = MaxentClassifier(fit_intercept=False)
    return Task(estimator, X[:size], y[:size], X_test[:held], y_test[:held])


def spanish(data: str | None, limit: int | None) -> Task:
    """Spanish dependency trees: 2306 sentences for training, 1000 for validation.

    The paper draws them from the 3306 training sentences of CoNLL-X; ours are of CoNLL-2007's training and test files,
    which are sentences of the same treebank.
    """
    from .. import DependencyParser, datasets

    full = datasets.conll2007_spanish(data)
    X, y = [*full.X_train, *full.X_test], [*full.y_train, *full.y_test]
    size, held = (2306, 1000) if limit is None else (limit, limit)
    estimator = DependencyParser(labels=False)
    return Task(estimator, X[:size], y[:size], X[size : size + held], y[size : size + held])


def wnut17(data: str | None, limit: int | None) -> Task:
    """Named entities of WNUT 17 by words, shapes and affixes.

    In place of CoNLL-2003, which is licensed.
    """
    from .. import SequenceTagger, datasets

    X, y, X_test, y_test = datasets.wnut17(data)
    return Task(SequenceTagger(template="ner"), X[:limit], y[:limit], X_test[:limit], y_test[:limit])


#: Tasks by name.
TASKS: dict[str, Callable[[str | None, int | None], Task]] = {"mnist": mnist, "spanish": spanish, "wnut17": wnut17}
