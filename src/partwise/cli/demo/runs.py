"""What a run of the demo is given and what it gives back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partwise.datasets import Treebank, digit_strings, make_treebank
from partwise.problem.result import Result


@dataclass(frozen=True)
class Options:
    """What the demo was asked for, and the data made from it."""

    strings: int
    sentences: int
    tol: float
    jobs: int
    seed: int

    def common(self, **more: Any) -> dict[str, Any]:
        """Parameters of every estimator."""
        return {"tol": self.tol, "n_jobs": self.jobs, "random_state": self.seed, **more}

    def digits(self) -> Any:
        return digit_strings(self.strings, self.seed)

    def treebank(self) -> tuple[Treebank, Treebank]:
        """Training and test sentences."""
        bank = make_treebank(self.sentences + self.sentences // 2, self.seed)
        return bank[: self.sentences], bank[self.sentences :]


@dataclass(frozen=True)
class Row:
    """One line of the demo's table: tokens and whole answers that are right, as fractions of 1.

    kind: the heading that the table of runs gives it; examples: drawings for the report.
    """

    name: str
    data: str
    tokens: float
    wholes: float
    seconds: float
    result: Result
    model: Any = field(repr=False)
    examples: Sequence[Any] = field(default=(), repr=False)
    confusion: Any = field(default=None, repr=False)
    top: Any = field(default=None, repr=False)
    kind: str = ""


def compare(predicted: Sequence[Any], gold: Sequence[Any]) -> tuple[float, float]:
    """Shares of tokens and of whole answers that are right."""
    right = [np.asarray(a) == np.asarray(b) for a, b in zip(predicted, gold, strict=True)]
    return float(np.concatenate(right).mean()), float(np.mean([all(row) for row in right]))


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """What `fit` returns, and its seconds."""
    begin = time.perf_counter()
    model = fit()
    return model, time.perf_counter() - begin


def telling(predicted: Sequence[Any], gold: Sequence[Any]) -> list[int]:
    """Sentences in the order of what they tell: those with a mistake and of a length that can be drawn first."""
    return sorted(range(len(gold)), key=lambda i: (list(predicted[i]) == list(gold[i]), abs(len(gold[i]) - 9), i))
