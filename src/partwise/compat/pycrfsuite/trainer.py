"""`Trainer`: sequences in, a model file of CRFsuite out."""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise import ConvergenceWarning, SequenceTagger
from partwise.callbacks import Session, TrainingCallback
from partwise.compat.pycrfsuite._logparser import TrainLogParser
from partwise.compat.pycrfsuite.items import sequence_of, text_of, token_of
from partwise.compat.pycrfsuite.parameters import ALGORITHMS, ALIASES, TITLES, Parameter, estimator_parameters
from partwise.model_files.foreign import crfsuite
from partwise.model_files.foreign.linear_chain import LinearChain, names_of
from partwise.solvers import Progress


class CRFSuiteError(Exception):
    """What CRFsuite's trainer raises, for programs that catch it; ours raises ValueError."""


class BaseTrainer:
    """Sequences with labels (`append`), an algorithm (`select`) with parameters (`set`), and `train`.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
    params : dict, optional
        Parameters by name, as for `set_params`.
    verbose : bool
        Print what happens.
    """

    verbose: bool = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A trainer is usable even where a subclass does not call `__init__`."""
        self = super().__new__(cls)
        self.clear()
        self.select("lbfgs")
        return self

    def __init__(
        self, algorithm: str | None = None, params: dict[str, Any] | None = None, verbose: bool = True
    ) -> None:
        self.verbose = verbose
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)

    _sequences: list[tuple[list[Any], list[str], int]]
    #: Every name and label once, however often it occurs.
    _strings: dict[str, str]

    def message(self, message: str) -> None:
        """Receive a line of what training says; by default it is printed, if `verbose`."""
        if self.verbose:
            print(message, end="")  # noqa: T201

    def append(self, xseq: Any, yseq: Sequence[str], group: int = 0) -> None:
        """Add a sequence of items with its labels; `group` is for `train(holdout=...)`."""
        items = [token_of(item, self._strings) for item in sequence_of(xseq)]
        labels = [self._strings.setdefault(label, label) for label in map(text_of, yseq)]
        if len(items) != len(labels):
            raise ValueError(f"the numbers of items and labels differ: {len(items)} and {len(labels)}")
        self._sequences.append((items, labels, int(group)))

    def clear(self) -> None:
        """Forget all sequences."""
        self._sequences, self._strings = [], {}

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose the algorithm; its parameters have their defaults again."""
        name = ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in ALGORITHMS or type != "crf1d":
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}")
        self._algorithm = name
        self._chosen = {key: parameter.default for key, parameter in ALGORITHMS[name].items()}

    # parameters

    def params(self) -> list[str]:
        """Names of the algorithm's parameters."""
        return list(self._chosen)

    def set_params(self, params: dict[str, Any]) -> None:
        """Set parameters by name, as `set` does."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        return dict(self._chosen)

    def set(self, name: str, value: Any) -> None:
        self._chosen[name] = self._parameter(name).cast(value)

    def get(self, name: str) -> Any:
        self._parameter(name)
        return self._chosen[name]

    def help(self, name: str) -> str:
        """What a parameter means here."""
        return self._parameter(name).help

    def _parameter(self, name: str) -> Parameter:
        known = ALGORITHMS[self._algorithm]
        if name not in known:
            raise ValueError(f"Parameter not found: {name}")
        return known[name]

    # training

    def train(self, model: str, holdout: int = -1) -> None:
        """Train and write a model file of CRFsuite; an empty name writes none.

        holdout: sequences of this group are not trained on, but labelled after each iteration, for the messages.
        """
        if self._algorithm == "arow":
            raise ValueError(
                "arow is not available: use 'pa' for an online method, or 'lbfgs', which finds the optimum"
            )
        self._before_train()
        trained = [(X, y) for X, y, group in self._sequences if X and (group != holdout or holdout < 0)]
        held = [(X, y) for X, y, group in self._sequences if X and group == holdout and holdout >= 0]
        say = self.message
        if held:
            say(f"Holdout group: {holdout + 1}\n")
            say("\n")
        begin = time.perf_counter()
        self._say_features()
        labels = sorted({label for _, y in trained for label in y})
        # With one label, or none, there is nothing to learn.
        chain = self._run(trained, held, begin) if len(labels) > 1 else _plain_chain(labels)
        say("Storing the model\n")
        begin = time.perf_counter()
        for what, number in (
            ("features", len(chain.state_weights) + len(chain.transition_weights)),
            ("attributes", chain.n_attributes),
            ("labels", len(chain.labels)),
        ):
            say(f"Number of active {what}: {number} ({number})\n")
        if model:
            crfsuite.write(chain, os.fspath(model))
        say(f"Seconds required: {time.perf_counter() - begin:.3f}\n")
        say("\n")

    def _run(self, trained: list[Any], held: list[Any], begin: float) -> LinearChain:
        say = self.message
        each_pass = self.verbose or bool(held)
        log = _Log(say, held, begin, TITLES[self._algorithm], self._chosen, each_pass)
        tagger = SequenceTagger(**estimator_parameters(self._algorithm, self._chosen), callbacks=[log])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tagger.fit(*zip(*trained, strict=True))
        say(f"{tagger.result_.message}\n")
        say(f"Total seconds required for training: {tagger.result_.seconds:.3f}\n")
        say("\n")
        return crfsuite.of_tagger(tagger)

    def _say_features(self) -> None:
        self.message("Feature generation\n")
        self.message("type: CRF1d\n")
        for name, value in self._chosen.items():
            if name.startswith("feature."):
                self.message(f"{name}: {_shown(value)}\n")

    def _before_train(self) -> None:
        """Called before training begins."""


class Trainer(BaseTrainer):
    """A trainer that reads its own messages: `logparser` has what they said, `on_...` is called for each event."""

    logparser: TrainLogParser | None = None

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def message(self, message: str) -> None:
        log = self.logparser
        event = log.feed(message) if log is not None else None
        if log is None or event is None or not self.verbose:
            return
        more = {"featgen_progress": (log.featgen_percent,), "iteration": (log.last_iteration,)}
        getattr(self, f"on_{event}")(log.last_log, *more.get(event, ()))

    def on_start(self, log: str) -> None:
        print(log, end="")  # noqa: T201

    def on_featgen_progress(self, log: str, percent: int) -> None:
        print(log, end="")  # noqa: T201

    def on_featgen_end(self, log: str) -> None:
        print(log, end="")  # noqa: T201

    def on_prepared(self, log: str) -> None:
        print(log, end="")  # noqa: T201

    def on_prepare_error(self, log: str) -> None:
        print(log, end="")  # noqa: T201

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        print(log, end="")  # noqa: T201

    def on_optimization_end(self, log: str) -> None:
        print(log, end="")  # noqa: T201

    def on_end(self, log: str) -> None:
        print(log, end="")  # noqa: T201


class _Log(TrainingCallback):
    """Says in CRFsuite's words how a run goes."""

    def __init__(
        self, say: Any, held: list[Any], begin: float, title: str, chosen: dict[str, Any], each_pass: bool
    ) -> None:
        self.say, self.held, self.begun, self.title, self.chosen = say, held, begin, title, chosen
        self.each_pass = each_pass
        self.number, self.last = 0, 0.0

    def begin(self, session: Session) -> None:
        self.session = session
        for percent in range(11):
            self.say(str(percent))
            for _ in range(4 if percent < 10 else 0):
                self.say(".")
        self.say("\n")
        self.say(f"Number of features: {session.problem.n_weights}\n")
        self.say(f"Seconds required: {time.perf_counter() - self.begun:.3f}\n")
        self.say("\n")
        self.say(f"{self.title}\n")
        for name, value in self.chosen.items():
            if not name.startswith("feature."):
                self.say(f"{name}: {_shown(value)}\n")
        self.say("\n")

    def __call__(self, progress: Progress) -> None:
        # An iteration for each pass, where somebody looks at them; else for each certificate, which costs nothing.
        certificate = progress.certificate if progress.fresh or not self.each_pass else progress.record()
        if certificate is None or not (progress.fresh or self.each_pass):
            return
        self.number += 1
        weights = progress.weights()
        self.say(f"***** Iteration #{self.number} *****\n")
        self.say(f"Loss: {certificate.primal:.6f}\n")
        self.say(f"Feature norm: {np.linalg.norm(weights):.6f}\n")
        self.say(f"Duality gap: {certificate.gap:.6f}\n")
        self.say(f"Active features: {np.count_nonzero(weights)}\n")
        self.say(f"Seconds required for this iteration: {progress.seconds - self.last:.3f}\n")
        self.last = progress.seconds
        if self.held:
            self._evaluate(weights)
        self.say("\n")

    def _evaluate(self, weights: Any) -> None:
        X, gold = zip(*self.held, strict=True)
        answers = self.session.preview(weights).predict(list(X))
        pairs = [pair for y, guess in zip(gold, answers, strict=True) for pair in zip(y, guess, strict=True)]
        right, model, ref = (
            Counter(a for a, b in pairs if a == b),
            Counter(b for _, b in pairs),
            Counter(a for a, _ in pairs),
        )
        self.say("Performance by label (#match, #model, #ref) (precision, recall, F1):\n")
        means = []
        for label in sorted(ref | model):
            counts = right[label], model[label], ref[label]
            shares = _ratio(counts[0], counts[1]), _ratio(counts[0], counts[2]), _ratio(2 * counts[0], sum(counts[1:]))
            means.append(shares)
            text = ", ".join(f"{share:.4f}" for share in shares)
            self.say(f"    {label}: ({counts[0]}, {counts[1]}, {counts[2]}) ({text})\n")
        averages = ", ".join(f"{value:.6f}" for value in np.mean(means, axis=0))
        self.say(f"Macro-average precision, recall, F1: ({averages})\n")
        whole = sum(y == guess for y, guess in zip(gold, answers, strict=True))
        for what, good, total in (("Item", sum(right.values()), len(pairs)), ("Instance", whole, len(gold))):
            self.say(f"{what} accuracy: {good} / {total} ({_ratio(good, total):.4f})\n")


def _ratio(a: int, b: int) -> float:
    return a / b if b else 0.0


def _shown(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(int(value) if isinstance(value, bool) else value)


def _plain_chain(labels: list[str]) -> LinearChain:
    """A chain of these labels without weights."""
    nothing = np.zeros((2, 0), dtype=np.int64)
    return LinearChain(labels, *names_of([]), nothing, np.zeros(0), nothing, np.zeros(0))
