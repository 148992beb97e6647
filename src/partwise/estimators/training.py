"""The half of an estimator that trains: parameters, `fit`, paths, warm starts.

`fit` works on local values and sets attributes at its very end, inside `unchanged_on_failure`: an error or Ctrl-C
leaves an estimator as it was.
"""

from __future__ import annotations

import copy
import inspect
import math
import os
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from partwise.callbacks.base import Callbacks, Session, check_callbacks
from partwise.estimators.warm_start import FitKey, answer_numbers, start_of
from partwise.models.base import EncodedData, InputReport, Labellings, Learnt, Model, Reading, Training
from partwise.problem import Problem
from partwise.problem.inference import best_labellings
from partwise.problem.losses import Loss, get_loss
from partwise.problem.penalties import L2, ElasticNet, Penalty
from partwise.problem.result import HISTORY, Result
from partwise.solvers import Checkpoint, Solver, get_solver, solve, solve_path
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.path import start_of_l1_path
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import check_choice, check_count, check_positive, check_strength, count_jobs, seed_of


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Give back the estimator's attributes if the block does not end well (Ctrl-C included)."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@dataclass(frozen=True)
class _Prepared:
    """A fit up to the point where its solver is called; reading: see `Learnt`."""

    model: Model
    reading: Reading | None
    problem: Problem
    key: FitKey
    options: dict[str, Any]


@dataclass
class LastInput:
    """What was strange about the input of the last prediction; a fit makes a new one."""

    report: InputReport | None = None


class TrainedEstimator(BaseEstimator):
    """What an estimator learns, and how."""

    result_: Result
    _model: Model
    _last: LastInput
    #: Parameters that may name files of phrases, as attributes of the model too: model files hold the phrases.
    _phrases: ClassVar[tuple[str, ...]] = ()
    #: Parameters that model files did not have at first, with what they were then.
    _earlier: ClassVar[dict[str, Any]] = {}
    #: What the dual point of the last fit belongs to.
    _fit_key: FitKey | None = None
    #: What `partial_fit` keeps for its next call; anything else that gives a model other weights ends it.
    _stream: Any = None

    def __init__(
        self,
        loss: Any = "log",
        C: float = 1.0,
        *,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        solver: Any = "auto",
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_seconds: float | None = None,
        max_passes: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Any = None,
    ) -> None:
        if "sklearn.metrics" in sys.modules:  # not imported for this alone: that takes a tenth of a second
            from partwise.metrics.scorers import register_scorers

            register_scorers()
        self.loss = loss
        self.C = C
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_seconds = max_seconds
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.callbacks = callbacks

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Parameters for scikit-learn: those of `__init__`, and with ``**training`` those of the base class too."""
        kinds = {each.kind for each in inspect.signature(cls.__init__).parameters.values()}
        inherited = set(TrainedEstimator._get_param_names()) if inspect.Parameter.VAR_KEYWORD in kinds else set()
        return sorted({*super()._get_param_names(), *inherited})

    @abstractmethod
    def _make_model(self) -> Model:
        """A model with the parameters that are about models, checked; not yet learnt."""

    # training

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Self:
        """Train on examples `X` with answers `y`; `sample_weight` is one weight per example.

        An example of weight 0 is left out altogether: nothing is learnt from it. `X` may be a partition
        (`partwise.out_of_core.partitions.open`), which has its answers and weights: training data in files.

        checkpoint : path or `partwise.solvers.Checkpoint`
            A file for the state of the run, saved from time to time and at the end. If it exists, the run continues
            from it and ends with the same bits as one that was not interrupted.
        """
        with unchanged_on_failure(self):
            prepared = self._prepare_fit(X, y, sample_weight)
            with Callbacks(self.callbacks, self._session(prepared)) as callbacks:
                callback = callbacks if callbacks.all else None
                options = {"callback": callback, "checkpoint": checkpoint, **prepared.options}
                result = callbacks.end(solve(prepared.problem, **options))
            self._keep(prepared, result)
        return self

    def prepare(self, X: Any, y: Any = None, sample_weight: Any = None) -> Session:
        """What `fit` would solve, without solving it: the problem, and previews of the estimator by weights.

        ``session = estimator.prepare(X, y)``, then ``solve(session.problem, ...)`` with any solver, and
        ``session.preview(weights)`` is an estimator that predicts with these weights. This one is left as it is.
        """
        return self._session(self._prepare_fit(X, y, sample_weight))

    def _session(self, prepared: _Prepared) -> Session:
        answers = None if prepared.reading is None else partial(self._training_answers, prepared)
        return Session(prepared.problem, partial(self._preview, prepared.model), answers)

    def fit_path(self, Cs: Sequence[float], X: Any, y: Any = None, sample_weight: Any = None) -> list[Result]:
        """Fit for each of these C in turn, each from the solution of the one before; the last one stays.

        `use` puts any of the results in its place. No callbacks are called.
        """
        if not len(Cs):
            raise ValueError("Cs holds no values")
        for C in Cs:
            check_strength("Cs: each value", C)
        with unchanged_on_failure(self):
            self.C = Cs[-1]
            prepared = self._prepare_fit(X, y, sample_weight)
            penalties = [_times(prepared.problem.penalty, self.C / C) for C in Cs]
            results = solve_path(prepared.problem, penalties, **prepared.options)
            self._keep(prepared, results[-1])
        return results

    def fit_l1_path(
        self,
        l1_min: float,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        l1_max: float | None = None,
        points: int = 10,
    ) -> list[Result]:
        """Fit for strengths of |w|_1 from `l1_max` down to `l1_min`, evenly in logarithms; the last one stays.

        The strength of |w|^2 / 2 is that of the estimator's parameters at all of them. l1_max: None is the smallest
        at which all weights are zero. `penalty`, `l1_ratio` and `C` are those of `l1_min` afterwards; `use` puts the
        weights of any of the results in the last one's place. No callbacks are called.
        """
        check_positive("l1_min", l1_min)
        if l1_max is not None:
            check_positive("l1_max", l1_max)
        check_count("points", points)
        with unchanged_on_failure(self):
            l2 = self._check_training().l2
            self.set_params(**penalty_parameters(l1_min, l2))
            prepared = self._prepare_fit(X, y, sample_weight)
            options = prepared.options
            if l1_max is None:
                first, weights = start_of_l1_path(prepared.problem)
                if options["warm_start"] is None:
                    options = {**options, "warm_start": weights}
            else:
                first = l1_max
            if first < l1_min:
                what = f"{first:g}, from which on all weights are zero" if l1_max is None else f"l1_max = {first:g}"
                raise ValueError(f"l1_min = {l1_min:g} must be at most {what}")
            own = prepared.problem.l2
            penalties = [
                ElasticNet(l1, own, prepared.problem.penalty.free)
                for l1 in np.geomspace(first, l1_min, points).tolist()
            ]
            results = solve_path(prepared.problem, penalties, **options)
            self._keep(prepared, results[-1])
        return results

    def use(self, result: Result) -> Self:
        """Take the weights of another result of the last `fit_path`."""
        check_is_fitted(self)
        self._adopt(self._model.with_weights(result.weights), result)
        return self

    def _prepare_fit(self, X: Any, y: Any, sample_weight: Any) -> _Prepared:
        training = self._check_training()
        model = self._make_model()
        if not isinstance(model, Model):
            raise TypeError(f"{type(self).__name__}._make_model must return a Model, got {model!r}")
        model.check_cost(training.loss)
        if isinstance(X, EncodedData):
            if y is not None or sample_weight is not None:
                raise ValueError("a partition has its labels and weights: give it alone")
            model, learnt = X.learn(model, training)
        else:
            learnt = model.learn(*self._check_data(model, X, y), sample_weight, training)
            if not isinstance(learnt, Learnt):
                raise TypeError(f"{type(model).__name__}.learn must return Learnt, got {type(learnt).__name__}")
        if training.max_seconds is not None and learnt.seconds:
            training = replace(training, max_seconds=max(0.0, training.max_seconds - learnt.seconds))
        penalty = replace(training, l2=learnt.l2_factor * training.l2, free=learnt.free).penalty
        executor = learnt.executor
        problem = Problem.of(learnt.batches, training.loss, penalty, executor=executor, n_jobs=training.n_jobs)
        key = FitKey(type(model), training.loss, training.solver, penalty, learnt.shape)
        if executor is None:
            key = replace(key, slots=problem.slot_offsets, answers=answer_numbers(problem))
        options = {
            "solver": training.solver,
            "tol": training.tol,
            "max_passes": self.max_passes,
            "max_seconds": training.max_seconds,
            "random_state": training.seed(),
            "warm_start": self._start(model, problem, key) if self.warm_start else None,
            "verbose": self.verbose,
        }
        return _Prepared(model, learnt.reading, problem, key, options)

    def _check_data(self, model: Model, X: Any, y: Any) -> tuple[Any, Any]:
        """Training data as the model takes them."""
        return X, y

    def _check_input(self, X: Any) -> Any:
        """Data to predict for, as the model takes them."""
        return X

    def check_parameters(self) -> None:
        """ValueError for parameters that are wrong whatever the data."""
        self._make_model().check_cost(self._check_training().loss)

    def _check_settings(self) -> tuple[Loss, float]:
        """The loss and the share of |w|_1 in the penalty; ValueError for parameters that are wrong for any solver."""
        loss = get_loss(self.loss)
        check_callbacks(self.callbacks)
        check_strength("C", self.C)
        check_positive("tol", self.tol, zero=True)
        for name in ("max_seconds", "max_passes"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        count_jobs(self.n_jobs)
        if not isinstance(self.solver, (str, Solver)):
            raise ValueError(f"solver must be a name or a Solver, got {self.solver!r}")
        return loss, self._l1_share(loss)

    def _check_training(self) -> Training:
        loss, share = self._check_settings()
        solver = self._make_solver()
        if not (loss.smooth or loss.cost_scale) and getattr(solver, "certified", True):
            raise ValueError(
                f"loss {loss.name!r} at temperature 0 needs a cost_scale above 0: without costs, zero weights are best"
            )
        return Training(
            loss,
            (1.0 - share) / float(self.C),
            solver,
            float(self.tol),
            count_jobs(self.n_jobs),
            partial(seed_of, self.random_state),
            l1=share / float(self.C),
            max_seconds=self.max_seconds,
            verbose=self.verbose,
        )

    def _l1_share(self, loss: Loss) -> float:
        """How much of the penalty is |w|_1, between 0 and 1."""
        check_choice("penalty", self.penalty, ("l2", "l1", "elasticnet"))
        check_positive("l1_ratio", self.l1_ratio, zero=True)
        if self.l1_ratio > 1:
            raise ValueError(f"l1_ratio must be at most 1, got {self.l1_ratio!r}")
        share = {"l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))
        if share and not loss.takes_l1:
            raise ValueError(
                f"penalty={self.penalty!r} is not available with loss={loss.name!r}: use 'log', 'softmax-margin' or "
                "'smoothed-hinge'"
            )
        return share

    def _make_solver(self) -> Any:
        if self.solver_options:
            if not isinstance(self.solver, str) or self.solver == "auto":
                raise ValueError(f"solver_options need a solver's name, got solver={self.solver!r}")
            return get_solver(self.solver, **self.solver_options)
        if isinstance(self.solver, str) and self.solver != "auto":
            return get_solver(self.solver)
        return self.solver

    def _start(self, model: Model, problem: Problem, key: FitKey) -> WarmStart | None:
        """Where the last fit ended, as far as that is a start for this one."""
        last: Model | None = getattr(self, "_model", None)
        return None if last is None else start_of(last, self._fit_key, self.result_, model, key, problem)

    def _keep(self, prepared: _Prepared, result: Result) -> None:
        self._fit_key = prepared.key
        self._adopt(prepared.model.with_weights(result.weights), result)

    def _adopt(self, model: Model, result: Result) -> None:
        """Become a fitted estimator of this model."""
        for name in self._model.attributes() if hasattr(self, "_model") else ():
            if name in vars(self):
                delattr(self, name)
        self._model = model
        self._stream = None
        self._last = LastInput()
        self.result_ = result
        for name, value in model.attributes().items():
            setattr(self, name, value)

    def _preview(self, model: Model, weights: Floats) -> Self:
        """A model with these weights, which lives beside the one that is being trained."""
        nothing: dict[str, Floats] = {name: np.empty(0) for name in HISTORY}
        sketch = Result(weights, math.nan, math.nan, math.inf, 0.0, 0.0, "stopped", "", 0.0, nothing)
        other = copy.copy(self)
        other._adopt(model.with_weights(weights), sketch)
        return other

    def _training_answers(self, prepared: _Prepared, weights: Floats, which: Ints) -> Any:
        """The best answers for some of the training examples, from the batch that is trained on."""
        model, reading, n_jobs = prepared.model.with_weights(weights), prepared.reading, count_jobs(self.n_jobs)
        assert reading is not None
        best = Labellings(*best_labellings(reading.batch, weights, n_jobs, which))
        return decode(model, reading, which, best, n_jobs)


def decode(model: Model, reading: Reading, which: Ints, labellings: Labellings, n_jobs: int) -> Any:
    """`Model.decode`, checked: an answer per labelling."""
    answers = model.decode(reading, which, labellings, n_jobs)
    if not hasattr(answers, "__len__") or len(answers) != len(which):
        found = f"{len(answers)} answers" if hasattr(answers, "__len__") else type(answers).__name__
        raise TypeError(f"{type(model).__name__}.decode gave {found} for {len(which)} labellings")
    return answers


def penalty_parameters(l1: float, l2: float) -> dict[str, Any]:
    """`penalty`, `l1_ratio` and `C` of an estimator for l1 |w|_1 + l2 / 2 |w|^2."""
    if not l1:
        return {"penalty": "l2", "C": 1.0 / l2}
    return {"penalty": "elasticnet" if l2 else "l1", "l1_ratio": l1 / (l1 + l2), "C": 1.0 / (l1 + l2)}


def _times(penalty: Penalty, ratio: float) -> Penalty:
    if isinstance(penalty, L2):
        return replace(penalty, strength=ratio * penalty.strength)
    return replace(penalty, l1=ratio * penalty.l1, strength=ratio * penalty.strength)
