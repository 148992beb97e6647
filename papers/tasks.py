"""The papers' tasks by name: data (or a replacement that is named here), estimator and held-out score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from partwise.callbacks import Session
from partwise.support.arrays import Floats


@dataclass(frozen=True)
class Task:
    """An estimator with training and held-out data; scores are between 0 and 1.

    measure: the score of answers, called with gold and predicted ones; None: the estimator's own. X_dev, y_dev: more
    held-out data, to choose parameters by, if the task has any.
    """

    estimator: Any
    X: Any
    y: Any
    X_held: Any
    y_held: Any
    measure: Callable[[Any, Any], float] | None = None
    X_dev: Any = None
    y_dev: Any = None
    _sessions: dict[str, tuple[float, Session]] = field(default_factory=dict, repr=False)

    def first(self, limit: int | None) -> Task:
        """Return the task with only the first examples of all its data."""
        names = ("X", "y", "X_held", "y_held", "X_dev", "y_dev")
        return self if limit is None else replace(self, **{name: getattr(self, name)[:limit] for name in names})

    def session(self, loss: str, l2: float, **parameters: Any) -> Session:
        """Return the problem of this loss and penalty, with predictions for given weights; one thread.

        The last session is cached, so that the same data under other penalties are not read again.
        """
        from sklearn.base import clone

        key = repr((loss, sorted(parameters.items())))
        if key in self._sessions:
            before, last = self._sessions[key]
            # The estimator may scale the penalty, so only the ratio of l2 values is used.
            return replace(last, problem=last.problem.with_penalty(last.problem.l2 * l2 / before))
        self._sessions.clear()
        estimator = clone(self.estimator).set_params(loss=loss, C=1.0 / l2, n_jobs=1, **parameters)
        session: Session = estimator.prepare(self.X, self.y)
        if not session.problem.l1:
            self._sessions[key] = l2, session
        return session

    def scorer(self, session: Session, dev: bool = False) -> Callable[[Floats], float]:
        """Return a function that scores weights on the held-out data, or on `X_dev`."""
        X, y = (self.X_dev, self.y_dev) if dev else (self.X_held, self.y_held)
        first = session.preview(np.zeros(session.problem.n_weights))
        score: Callable[[Floats], float] = first.scorer(X, y, self.measure)
        return score


@lru_cache(maxsize=1)
def task(name: str, data: str | None, limit: int | None) -> Task:
    """Return the task of this name, cached; limit: the most examples for training, and for testing."""
    return TASKS[name](data, limit)


def mnist(data: str | None, limit: int | None) -> Task:
    """Handwritten digits, pixels from 0 to 1: the first 59,000 of MNIST's training images, and its 10,000 test images.

    The paper says 59k for training and 10k for validation, but not which images, nor the pixels' scale. Its model has
    no bias.
    """
    from partwise import MaxentClassifier, datasets

    X, y, X_test, y_test = datasets.mnist(data)
    size, held = (59_000, 10_000) if limit is None else (limit, limit)
    estimator = MaxentClassifier(fit_intercept=False)
    return Task(estimator, X[:size], y[:size], X_test[:held], y_test[:held])


def spanish(data: str | None, limit: int | None) -> Task:
    """Spanish dependency trees: 2306 sentences for training, 1000 for validation.

    The paper draws them from the 3306 training sentences of CoNLL-X; ours are from CoNLL-2007's training and test
    files, which contain sentences of the same treebank.
    """
    from partwise import DependencyParser, datasets

    full = datasets.conll2007_spanish(data)
    X, y = [*full.X_train, *full.X_test], [*full.y_train, *full.y_test]
    size, held = (2306, 1000) if limit is None else (limit, limit)
    estimator = DependencyParser(labels=False)
    return Task(estimator, X[:size], y[:size], X[size : size + held], y[size : size + held])


def wnut17(data: str | None, limit: int | None) -> Task:
    """Named entities of WNUT 17, with its own development and test data, by words, shapes and affixes; scored by F1.

    It replaces MUC-7 and CoNLL-2003, which need a licence. The paper's gazetteers and word clusters are missing.
    """
    from partwise import SequenceTagger, datasets
    from partwise.metrics import chunk_f1

    X, y, X_test, y_test = datasets.wnut17(data)
    _, _, X_dev, y_dev = datasets.wnut17(data, test="dev")
    made = Task(SequenceTagger(template="ner"), X, y, X_test, y_test, chunk_f1, X_dev, y_dev)
    return made.first(limit)


def conll2000_pos(data: str | None, limit: int | None) -> Task:
    """Parts of speech of CoNLL-2000: sections 15-18 of the WSJ (the last 1000 sentences for development), tested on 20.

    It replaces all of the WSJ, which needs a licence; scored by accuracy per word.
    """
    return _conll2000("pos", None, data, limit)


def conll2000_chunks(data: str | None, limit: int | None) -> Task:
    """Chunks of CoNLL-2000 by words and parts of speech, divided as in `conll2000_pos`; scored by F1."""
    from partwise.metrics import chunk_f1

    return _conll2000("chunks", chunk_f1, data, limit)


def _conll2000(kind: str, measure: Callable[[Any, Any], float] | None, data: str | None, limit: int | None) -> Task:
    from partwise import SequenceTagger, datasets

    X, y, X_test, y_test = datasets.conll2000(data, task=kind)
    made = Task(SequenceTagger(), X[:-1000], y[:-1000], X_test, y_test, measure, X[-1000:], y[-1000:])
    return made.first(limit)


def ewt(data: str | None, limit: int | None) -> Task:
    """English dependency trees (EWT), with their own development and test data, without relations; scored by UAS.

    They replace the WSJ's trees, which need a licence. Training leaves out 2.3 % of the trees, as not projective.
    """
    from partwise import DependencyParser, datasets

    X, y, X_test, y_test = datasets.universal_dependencies("ud-english-ewt", data)
    _, _, X_dev, y_dev = datasets.universal_dependencies("ud-english-ewt", data, test="dev")
    return Task(DependencyParser(labels=False), X, y, X_test, y_test, None, X_dev, y_dev).first(limit)


#: Tasks by name.
TASKS: dict[str, Callable[[str | None, int | None], Task]] = {
    "mnist": mnist,
    "spanish": spanish,
    "wnut17": wnut17,
    "conll2000-pos": conll2000_pos,
    "conll2000-chunks": conll2000_chunks,
    "ewt": ewt,
}
