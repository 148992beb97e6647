"""Callbacks with a beginning and an end, and several of them as one."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from partwise.problem import Problem
from partwise.problem.result import Result
from partwise.solvers.engine.base import Callback, Progress
from partwise.support.arrays import Floats, Ints


@dataclass
class Session:
    """One training run of an estimator.

    preview: returns an estimator that predicts with the given weights, while the run continues. answers: returns the
    answers of a model with these weights for the training examples of these numbers, without reading them again; None
    if the model cannot. last_scores: (score, passes) of the last score of each name.
    """

    problem: Problem
    preview: Callable[[Floats], Any]
    answers: Callable[[Floats, Ints], Any] | None = None
    last_scores: dict[str, tuple[float, float]] = field(default_factory=dict)


class TrainingCallback:
    """Base of callbacks that must know when a run begins and ends.

    A callback's state belongs to one run: `clone` of scikit-learn makes a new callback with the same parameters.
    """

    def begin(self, session: Session) -> None:
        """Called before the first step."""

    def __call__(self, progress: Progress) -> object:
        """Called after each step; returning a true value stops the run."""
        return None

    def end(self, session: Session, result: Result | None) -> Result | None:
        """Called at the end with the result, or with None after an error. A returned result replaces it."""
        return result

    def __sklearn_clone__(self) -> Self:
        return copy.copy(self)


class Callbacks:
    """An estimator's callbacks as one callable for `solve`."""

    def __init__(self, given: object, session: Session) -> None:
        self.all = check_callbacks(given)
        self.session = session

    def __enter__(self) -> "Callbacks":
        self.begun: list[TrainingCallback] = []
        for each in self.all:
            if isinstance(each, TrainingCallback):
                each.begin(self.session)
                self.begun.append(each)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for each in self.begun if error is not None else ():
            each.end(self.session, None)

    def __call__(self, progress: Progress) -> bool:
        progress = replace(progress, scores={}, last_scores=dict(self.session.last_scores))
        answers = [bool(each(progress)) for each in self.all]  # all are called, even if the first one wants to stop
        self.session.last_scores |= {name: (score, progress.passes) for name, score in progress.scores.items()}
        return any(answers)

    def end(self, result: Result) -> Result:
        begun, self.begun = self.begun, []
        for each in begun:
            result = each.end(self.session, result) or result
        return result


def check_callbacks(given: object) -> list[Callback]:
    """Return a callable, a list of callables or None as a list; ValueError for anything else."""
    if given is None:
        return []
    found = [given] if callable(given) else given
    if isinstance(found, (str, bytes, dict)) or not isinstance(found, Iterable):
        raise ValueError(f"callbacks must be None, a callable or a list of callables, got {given!r}")
    found = list(found)
    for each in found:
        if not callable(each) or isinstance(each, type):
            raise ValueError(f"callbacks: {each!r} is not callable" + (" (give an instance)" * isinstance(each, type)))
    return found
