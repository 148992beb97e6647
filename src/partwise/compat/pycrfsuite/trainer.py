"""`Trainer`: sequences in, a model file of CRFsuite out; CRFsuite's algorithms with their parameters."""

import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from partwise import ConvergenceWarning, SequenceTagger
from partwise.callbacks import Session, TrainingCallback
from partwise.compat.pycrfsuite._logparser import TrainLogParser
from partwise.compat.pycrfsuite.items import Items, sequence_of, text_of, token_of
from partwise.estimators.parameters import penalty_parameters
from partwise.model_files.foreign import crfsuite
from partwise.model_files.foreign.linear_chain import LinearChain, names_of
from partwise.solvers import Progress
from partwise.support.arrays import Floats

#: The largest number of iterations that CRFsuite can have.
MOST = 2**31 - 1
Value = bool | int | float | str
#: An item as estimators take it, and a sequence of items with its labels.
Token = list[str] | dict[str, float]
Labelled = tuple[list[Token], list[str]]


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm: its default, which also says the type, and what it means here."""

    default: Value
    help: str = "(unused here: the solver has none)"

    def cast(self, value: Any) -> Value:
        """Return what a user gives in the parameter's type; ValueError if it cannot be."""
        kind = type(self.default)
        if kind is bool:
            return bool(int(value))
        return int(float(value)) if kind is int else kind(value)


_RARE = "Leave out features that occur less often (CRFsuite: whose values add up to less)."
_FEATURES = {
    "feature.minfreq": Parameter(0.0, _RARE),
    "feature.possible_states": Parameter(False, "A weight for every pair of attribute and label, seen or not."),
    "feature.possible_transitions": Parameter(False, "A weight for every pair of labels, seen or not."),
}
_PASSES = "Passes over the training data, at most."
_STOPS = {"max_iterations": Parameter(100, _PASSES), "epsilon": Parameter(0.0)}
_CALIBRATION = {"eta": 0.1, "rate": 2.0, "samples": 1000, "candidates": 10, "max_trials": 20}
_C2 = Parameter(1.0, "Strength of the L2 penalty, c2 |w|^2.")
#: Parameters by algorithm.
ALGORITHMS: dict[str, dict[str, Parameter]] = {
    "lbfgs": _FEATURES
    | {
        "c1": Parameter(0.0, "Strength of the L1 penalty, c1 |w|_1."),
        "c2": _C2,
        "max_iterations": Parameter(MOST, _PASSES),
        "num_memories": Parameter(6),
        "epsilon": Parameter(1e-5),
        "period": Parameter(10),
        "delta": Parameter(1e-5, "Training ends at a relative duality gap of at most ten times this."),
        "linesearch": Parameter("MoreThuente"),
        "max_linesearch": Parameter(20),
    },
    "l2sgd": _FEATURES
    | {
        "c2": _C2,
        "max_iterations": Parameter(1000, _PASSES),
        "period": Parameter(10),
        "delta": Parameter(1e-6),
        **{f"calibration.{name}": Parameter(value) for name, value in _CALIBRATION.items()},
    },
    "averaged-perceptron": _FEATURES | _STOPS,
    "passive-aggressive": _FEATURES
    | {
        "type": Parameter(1, "0: hard margins, the method used here; 1 and 2 are taken for it."),
        "c": Parameter(1.0),
        "error_sensitive": Parameter(True, "The margin grows with the number of wrong labels, always."),
        "averaging": Parameter(True, "Return the mean of the weights."),
        **_STOPS,
    },
    "arow": _FEATURES | {"variance": Parameter(1.0), "gamma": Parameter(1.0), **_STOPS},
}

ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}

#: The titles of algorithms in the log.
TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "averaged-perceptron": "Averaged perceptron",
    "passive-aggressive": "Passive Aggressive",
}


def _estimator_parameters(algorithm: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a `SequenceTagger` that minimises the same objective, or runs the same online method."""
    found: dict[str, Any] = {
        "features": "all" if chosen["feature.possible_states"] else "observed",
        "transitions": "all" if chosen["feature.possible_transitions"] else "observed",
        "min_count": max(1, math.ceil(chosen["feature.minfreq"])),
        "legal": False,
    }
    if chosen["max_iterations"] < MOST:
        found["max_passes"] = max(1, chosen["max_iterations"])
    if solver := {"averaged-perceptron": "perceptron", "passive-aggressive": "mira"}.get(algorithm):
        options = {"averaged": chosen.get("averaging", True)}
        return found | {"loss": "hinge", "solver": solver, "solver_options": options}
    for name in ("c1", "c2"):
        if not 0.0 <= chosen.get(name, 0.0) < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, got {chosen[name]:g}")
    l1, l2 = chosen.get("c1", 0.0), 2.0 * chosen["c2"]
    found |= {"solver": "sgd", "tol": 1e-2} if algorithm == "l2sgd" else {"tol": 10.0 * chosen["delta"]}
    # Without any penalty there may be no optimum: a tiny penalty makes one.
    return found | penalty_parameters(l1, l2 if l1 or l2 else 1e-8)


class CRFSuiteError(Exception):
    """What CRFsuite's trainer raises, for programs that catch it; ours raises ValueError."""


class BaseTrainer:
    """Sequences with labels (`append`), an algorithm (`select`) with parameters (`set`), and `train`.

    algorithm: "lbfgs", "l2sgd", "ap", "pa" or "arow". params: as for `set_params`. verbose: print what happens.
    """

    verbose: bool = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a trainer that is usable even where a subclass does not call `__init__`."""
        self = super().__new__(cls)
        self.clear()
        self.select("lbfgs")
        return self

    def __init__(
        self, algorithm: str | None = None, params: Mapping[str, object] | None = None, verbose: bool = True
    ) -> None:
        self.verbose = verbose
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)

    _sequences: list[tuple[list[Token], list[str], int]]
    #: The one object that stands for each name and label, to save memory.
    _strings: dict[str, str]

    def message(self, message: str) -> None:
        """Receive a line of what training says; by default it is printed, if `verbose`."""
        if self.verbose:
            print(message, end="")  # noqa: T201

    def append(self, xseq: Items, yseq: Sequence[str], group: int = 0) -> None:
        """Add a sequence of items with its labels; `group` is for `train(holdout=...)`."""
        items = [token_of(item, self._strings) for item in sequence_of(xseq)]
        labels = [self._strings.setdefault(label, label) for label in map(text_of, yseq)]
        if len(items) != len(labels):
            raise ValueError(f"the numbers of items and labels differ: {len(items)} and {len(labels)}")
        self._sequences.append((items, labels, int(group)))

    def clear(self) -> None:
        self._sequences, self._strings = [], {}

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose the algorithm; its parameters have their defaults again."""
        name = ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in ALGORITHMS or type != "crf1d":
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}")
        self._algorithm = name
        self._chosen = {key: parameter.default for key, parameter in ALGORITHMS[name].items()}

    def params(self) -> list[str]:
        return list(self._chosen)

    def set_params(self, params: Mapping[str, object]) -> None:
        """Set parameters by name, as `set` does."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Value]:
        return dict(self._chosen)

    def set(self, name: str, value: object) -> None:
        self._chosen[name] = self._parameter(name).cast(value)

    def get(self, name: str) -> Value:
        self._parameter(name)
        return self._chosen[name]

    def help(self, name: str) -> str:
        """Return what a parameter means here."""
        return self._parameter(name).help

    def _parameter(self, name: str) -> Parameter:
        known = ALGORITHMS[self._algorithm]
        if name not in known:
            raise ValueError(f"Parameter not found: {name}")
        return known[name]

    def train(self, model: str, holdout: int = -1) -> None:
        """Train and write a model file of CRFsuite; an empty name writes none.

        holdout: sequences of this group are not trained on, but labelled after each iteration, for the messages.
        """
        if self._algorithm == "arow":
            hint = "use 'pa' for an online method, or 'lbfgs', which finds the optimum"
            raise ValueError(f"arow is not available: {hint}")
        self._before_train()
        trained = [(X, y) for X, y, group in self._sequences if X and (group != holdout or holdout < 0)]
        held = [(X, y) for X, y, group in self._sequences if X and group == holdout >= 0]
        if held:
            self._say(f"Holdout group: {holdout + 1}", "")
        begin = time.perf_counter()
        self._say("Feature generation", "type: CRF1d", *self._shown_parameters(features=True))
        labels = sorted({label for _, y in trained for label in y})
        # With one label, or none, there is nothing to learn.
        found = self._run(trained, held, begin) if len(labels) > 1 else LinearChain(labels, *names_of([]))
        self._say("Storing the model")
        begin = time.perf_counter()
        n_features = len(found.state_weights) + len(found.transition_weights)
        numbers = {"features": n_features, "attributes": found.n_attributes, "labels": len(found.labels)}
        self._say(*(f"Number of active {what}: {number} ({number})" for what, number in numbers.items()))
        if model:
            crfsuite.write(found, os.fspath(model))
        self._say(f"Seconds required: {time.perf_counter() - begin:.3f}", "")

    def _run(self, trained: list[Labelled], held: list[Labelled], begin: float) -> LinearChain:
        log = _Log(self, held, begin)
        tagger = SequenceTagger(**_estimator_parameters(self._algorithm, self._chosen), callbacks=[log])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tagger.fit(*zip(*trained, strict=True))
        self._say(tagger.result_.message, f"Total seconds required for training: {tagger.result_.seconds:.3f}", "")
        return crfsuite.of_tagger(tagger)

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.message(f"{line}\n")

    def _shown_parameters(self, features: bool) -> list[str]:
        """Return the parameters about features, or the others, as CRFsuite prints them."""
        chosen = {name: value for name, value in self._chosen.items() if name.startswith("feature.") == features}
        formats: dict[type, str] = {bool: "d", float: ".6f"}
        return [f"{name}: {format(value, formats.get(type(value), ''))}" for name, value in chosen.items()]

    def _before_train(self) -> None:
        """Prepare for training; called before it begins."""


class Trainer(BaseTrainer):
    """A trainer that reads its own messages: `logparser` has what they said, `on_...` is called for each event."""

    logparser: TrainLogParser | None = None

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def message(self, message: str) -> None:
        log = self.logparser
        event = log.feed(message) if log is not None else None
        if log is not None and event is not None and self.verbose:
            more = {"featgen_progress": (log.featgen_percent,), "iteration": (log.last_iteration,)}
            getattr(self, f"on_{event}")(log.last_log, *more.get(event, ()))

    def _print(self, log: str, info: Any = None) -> None:
        print(log, end="")  # noqa: T201

    on_start = on_featgen_progress = on_featgen_end = on_prepared = on_prepare_error = _print
    on_iteration = on_optimization_end = on_end = _print


@dataclass(eq=False)
class _Log(TrainingCallback):
    """Says in CRFsuite's words how a run of a trainer goes."""

    trainer: BaseTrainer
    held: list[Labelled]
    begun: float
    number: int = 0
    last: float = 0.0

    def begin(self, session: Session) -> None:
        self.session = session
        for message in (*"....".join("0123456789"), *"....", "10"):
            self.trainer.message(message)
        self.trainer._say(
            "",
            f"Number of features: {session.problem.n_weights}",
            f"Seconds required: {time.perf_counter() - self.begun:.3f}",
            "",
            TITLES[self.trainer._algorithm],
            *self.trainer._shown_parameters(features=False),
            "",
        )

    def __call__(self, progress: Progress) -> None:
        # If iterations are shown, an iteration is a pass; else it is a certificate that the solver computes anyway.
        each_pass = self.trainer.verbose or bool(self.held)
        certificate = progress.certificate if progress.fresh or not each_pass else progress.record()
        if certificate is None or not (progress.fresh or each_pass):
            return
        self.number += 1
        weights = progress.weights()
        self.trainer._say(
            f"***** Iteration #{self.number} *****",
            f"Loss: {certificate.primal:.6f}",
            f"Feature norm: {np.linalg.norm(weights):.6f}",
            f"Duality gap: {certificate.gap:.6f}",
            f"Active features: {np.count_nonzero(weights)}",
            f"Seconds required for this iteration: {progress.seconds - self.last:.3f}",
            *(self._evaluate(weights) if self.held else ()),
            "",
        )
        self.last = progress.seconds

    def _evaluate(self, weights: Floats) -> Iterator[str]:
        """Yield the lines about predictions for the sequences that were held out."""
        X, gold = zip(*self.held, strict=True)
        answers = self.session.preview(weights).predict(list(X))
        pairs = list(zip(chain.from_iterable(gold), chain.from_iterable(answers), strict=True))
        right, model = Counter(a for a, b in pairs if a == b), Counter(b for _, b in pairs)
        ref = Counter(a for a, _ in pairs)
        yield "Performance by label (#match, #model, #ref) (precision, recall, F1):"
        means = []
        for label in sorted(ref | model):
            counts = right[label], model[label], ref[label]
            shares = _ratio(counts[0], counts[1]), _ratio(counts[0], counts[2]), _ratio(2 * counts[0], sum(counts[1:]))
            means.append(shares)
            yield f"    {label}: {counts} ({', '.join(f'{share:.4f}' for share in shares)})"
        yield f"Macro-average precision, recall, F1: ({', '.join(f'{mean:.6f}' for mean in np.mean(means, axis=0))})"
        whole = sum(y == guess for y, guess in zip(gold, answers, strict=True))
        for what, good, total in (("Item", sum(right.values()), len(pairs)), ("Instance", whole, len(gold))):
            yield f"{what} accuracy: {good} / {total} ({_ratio(good, total):.4f})"


def _ratio(a: int, b: int) -> float:
    return a / b if b else 0.0
