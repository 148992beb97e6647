"""The estimator of all models: training, answers, inspection and files, written once.

A subclass is parameters, documentation and the choice of a model (`_make_model`). `fit` works on local values and sets
attributes at its very end, inside `unchanged_on_failure`: an error or Ctrl-C leaves an estimator as it was.
"""

from __future__ import annotations

import copy
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from partwise.arrays import Floats, Ints
from partwise.callbacks.base import Callbacks, Session, check_callbacks
from partwise.capabilities import Capability
from partwise.checks import check_count, check_positive, count_jobs, seed_of
from partwise.losses import get_loss
from partwise.models.base import Ability, InputReport, Labellings, Learnt, Model, Reading, Training
from partwise.models.errors import NotAvailable
from partwise.models.inspection import Pruning, without_certificate
from partwise.penalties import L2, ElasticNet, Penalty
from partwise.problem import Problem
from partwise.problem.inference import best_labellings, expectations, values_of
from partwise.result import HISTORY, Result
from partwise.solvers import Solver, get_solver, solve, solve_path
from partwise.structures import Structure

Method = TypeVar("Method", bound=Callable[..., Any])


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


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss makes the model a distribution (for scikit-learn's available_if)."""
    try:
        loss = get_loss(estimator.loss)
    except (TypeError, ValueError) as error:
        raise AttributeError(str(error)) from None
    if loss.probabilistic:
        return True
    raise AttributeError(f"probabilities are not available with loss={loss.name!r}: use 'log' or 'softmax-margin'")


def needs_probabilities(method: Method) -> Method:
    """Decorate a method that is there only when the loss makes the model a distribution."""
    return cast(Method, available_if(has_probabilities)(method))


@dataclass(frozen=True)
class _Prepared:
    """A fit up to the point where its solver is called."""

    model: Model
    learnt: Learnt
    problem: Problem
    key: tuple[Any, ...]
    options: dict[str, Any]


@dataclass
class _LastInput:
    """What was strange about the input of the last prediction; a fit makes a new one."""

    report: InputReport | None = None


class StructuredEstimator(BaseEstimator):
    """Base of the estimators.

    `_make_model` is what a subclass has to write. Constraints of predictions (`allowed`, ...) are those that the model
    knows; an answer that they leave no choice for is a `ConstraintError`.
    """

    loss: Any
    C: float
    solver: Any
    solver_options: Mapping[str, Any] | None
    tol: float
    max_seconds: float | None
    max_passes: float | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    warm_start: bool
    callbacks: Any

    result_: Result
    _model: Model
    _last: _LastInput
    #: Loss, solver and shape of the data of the last fit: what a dual point belongs to.
    _fit_key: tuple[Any, ...] | None = None

    @abstractmethod
    def _make_model(self) -> Model:
        """A model with the parameters that are about models, checked; not yet learnt."""

    # training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples `X` with answers `y`; `sample_weight` is one weight per example.

        An example of weight 0 is left out altogether: nothing is learnt from it.
        """
        with unchanged_on_failure(self):
            prepared = self._prepare_fit(X, y, sample_weight)
            model, problem = prepared.model, prepared.problem
            answers = None if prepared.learnt.reading is None else partial(self._training_answers, prepared)
            session = Session(problem, partial(self._preview, model), answers)
            with Callbacks(self.callbacks, session) as callbacks:
                callback = callbacks if callbacks.all else None
                result = callbacks.end(solve(problem, callback=callback, **prepared.options))
            self._keep(prepared, result)
        return self

    def fit_path(self, Cs: Sequence[float], X: Any, y: Any, sample_weight: Any = None) -> list[Result]:
        """Fit for each of these C in turn, each from the solution of the one before; the last one stays.

        `use` puts any of the results in its place. No callbacks are called.
        """
        with unchanged_on_failure(self):
            self.C = Cs[-1]
            prepared = self._prepare_fit(X, y, sample_weight)
            penalties = [_times(prepared.problem.penalty, self.C / C) for C in Cs]
            results = solve_path(prepared.problem, penalties, **prepared.options)
            self._keep(prepared, results[-1])
        return results

    def use(self, result: Result) -> Self:
        """Take the weights of another result of the last `fit_path`."""
        self._adopt(self._model.with_weights(result.weights), result)
        return self

    def _prepare_fit(self, X: Any, y: Any, sample_weight: Any) -> _Prepared:
        training = self._check_training()
        model = self._make_model()
        learnt = model.learn(*self._check_data(model, X, y), sample_weight, training)
        if training.max_seconds is not None and learnt.seconds:
            training = replace(training, max_seconds=max(0.0, training.max_seconds - learnt.seconds))
        penalty = replace(training, l2=learnt.l2_factor * training.l2).penalty
        problem = Problem.of([learnt.examples], training.loss, penalty, n_jobs=training.n_jobs)
        key = (type(model), training.loss, training.solver, *learnt.shape)
        options = {
            "solver": training.solver,
            "tol": training.tol,
            "max_passes": self.max_passes,
            "max_seconds": training.max_seconds,
            "random_state": training.seed(),
            "warm_start": self._start(training, model, key) if self.warm_start else None,
            "verbose": self.verbose,
        }
        return _Prepared(model, learnt, problem, key, options)

    def _check_data(self, model: Model, X: Any, y: Any) -> tuple[Any, Any]:
        """Training data as the model takes them."""
        return X, y

    def _check_input(self, X: Any) -> Any:
        """Data to predict for, as the model takes them."""
        return X

    def _check_training(self) -> Training:
        loss = get_loss(self.loss)
        check_callbacks(self.callbacks)
        check_positive("C", self.C)
        check_positive("tol", self.tol, zero=True)
        for name in ("max_seconds", "max_passes"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        return Training(
            loss,
            1.0 / float(self.C),
            self._make_solver(),
            float(self.tol),
            count_jobs(self.n_jobs),
            partial(seed_of, self.random_state),
            max_seconds=self.max_seconds,
            verbose=self.verbose,
        )

    def _make_solver(self) -> Any:
        if self.solver_options:
            if not isinstance(self.solver, str) or self.solver == "auto":
                raise ValueError(f"solver_options need a solver's name, got solver={self.solver!r}")
            return get_solver(self.solver, **self.solver_options)
        if isinstance(self.solver, str) and self.solver != "auto":
            return get_solver(self.solver)
        if not isinstance(self.solver, (str, Solver)):
            raise ValueError(f"solver must be a name or a Solver, got {self.solver!r}")
        return self.solver

    def _start(self, training: Training, model: Model, key: tuple[Any, ...]) -> Result | Floats | None:
        """Where the last fit ended, as far as that is a start for this one."""
        last: Model | None = getattr(self, "_model", None)
        if last is None:
            return None
        if training.loss.smooth:
            can = type(last) is type(model) and Ability.CARRYING in model.abilities()
            return model.carried(last) if can else None
        # max-margin solvers start from a dual point, which belongs to a loss, a solver and a shape of data
        old = self._fit_key
        if old is None or self.result_.dual_point is None or len(old) != len(key):
            return None
        return self.result_ if all(np.array_equal(a, b) for a, b in zip(old, key, strict=True)) else None

    def _keep(self, prepared: _Prepared, result: Result) -> None:
        self._fit_key = prepared.key
        self._adopt(prepared.model.with_weights(result.weights), result)

    def _adopt(self, model: Model, result: Result) -> None:
        """Become a fitted estimator of this model."""
        for name in self._model.attributes() if hasattr(self, "_model") else ():
            if name in vars(self):
                delattr(self, name)
        self._model = model
        self._last = _LastInput()
        self.result_ = result
        for name, value in model.attributes().items():
            setattr(self, name, value)

    def _preview(self, model: Model, weights: Floats) -> StructuredEstimator:
        """A model with these weights, which lives beside the one that is being trained."""
        nothing: dict[str, Floats] = {name: np.empty(0) for name in HISTORY}
        sketch = Result(weights, math.nan, math.nan, math.inf, 0.0, 0.0, "stopped", "", 0.0, nothing)
        other = copy.copy(self)
        other._adopt(model.with_weights(weights), sketch)
        return other

    def _training_answers(self, prepared: _Prepared, weights: Floats, which: Ints) -> Any:
        """The best answers for some of the training examples, from the batch that is trained on."""
        model, reading, n_jobs = prepared.model.with_weights(weights), prepared.learnt.reading, count_jobs(self.n_jobs)
        assert reading is not None
        return model.decode(reading, which, Labellings(*best_labellings(reading.batch, weights, n_jobs, which)), n_jobs)

    # answers

    def _fitted(self) -> Model:
        """The fitted model with the parameters as they are now."""
        check_is_fitted(self)
        model = self._model
        changed = {name: getattr(self, name) for name in model.late if getattr(self, name) != getattr(model, name)}
        return model.with_options(**changed) if changed else model

    def _read(self, X: Any, constraints: Mapping[str, Any] | None = None) -> tuple[Model, Reading, int]:
        """The model, what it reads, and the number of threads."""
        model, n_jobs = self._fitted(), count_jobs(self.n_jobs)
        reading = model.read(self._check_input(X), n_jobs)
        given = {name: value for name, value in (constraints or {}).items() if value is not None}
        for name in given:
            if name not in model.constraints:
                known = ", ".join(model.constraints) or "none"
                raise TypeError(f"{type(self).__name__} has no constraint {name!r}; there are: {known}")
        if given:
            model.constrain(reading, **given)
            reading.constrained = True
        return model, reading, n_jobs

    def predict(self, X: Any, **constraints: Any) -> Any:
        """The best answer for each example; `constraints` as the class says."""
        model, reading, n_jobs = self._read(X, constraints)
        best = model.best(reading, n_jobs)
        answers = model.decode(reading, np.arange(len(best.indptr) - 1), best, n_jobs)
        self._note(model, reading, best)
        return reading.spread(answers, model.empty)

    @needs_probabilities
    def predict_marginals(self, X: Any, **options: Any) -> Any:
        """Probabilities of the parts of answers, in the form that the class says; not available with hinge losses.

        Constraints, as for `predict`, are given that they hold.
        """
        known = self._fitted()
        known.needs(Ability.MARGINALS, "marginals")
        constraints = {name: options.pop(name) for name in known.constraints if name in options}
        model, reading, n_jobs = self._read(X, constraints)
        counts, _ = expectations(reading.batch, model.weights, get_loss(self.loss).temperature, n_jobs)
        self._note(model, reading, None)
        return model.marginals(reading, counts, **options)

    def predict_k_best(
        self, X: Any, k: int, *, probabilities: bool = False, **constraints: Any
    ) -> list[list[tuple[Any, float]]]:
        """For each example its k best answers (fewer if it has fewer) with their scores, best first.

        Scores are sums of weights: with the log loss, differences of scores are differences of log-probabilities.

        probabilities : bool
            Probabilities of the answers instead of scores; not available with hinge losses.
        constraints
            As for `predict`: the best answers that they allow.
        """
        if probabilities:
            has_probabilities(self)
        k = check_count("k", k)
        model, reading, n_jobs = self._read(X, constraints)
        structure, features = reading.batch.structure, reading.batch.features
        _check_oracle(structure, Capability.K_BEST, "the k best answers")
        which: list[int] = []
        found: list[Any] = []
        values: list[float] = []
        temperature = get_loss(self.loss).temperature
        for i in range(reading.batch.n_examples):
            scores = features.scores(i, model.weights)
            best = structure.k_best(i, scores, k)
            which += [i] * len(best)
            found += [labelling for _, *labelling in best]
            own = [value for value, _, _ in best]
            if probabilities:
                log_z = structure.log_partition(i, scores, temperature)[0]
                own = np.exp(np.subtract(own, log_z) / temperature).clip(0, 1).tolist()
            values += own
        rows = np.array(which, dtype=np.int64)
        answers = model.decode(reading, rows, Labellings.of(found), n_jobs)
        ranked: list[list[tuple[Any, float]]] = [[] for _ in range(reading.batch.n_examples)]
        for i, answer, value in zip(which, answers, values, strict=True):
            ranked[i].append((answer, value))
        first = np.searchsorted(rows, np.arange(len(ranked)))
        self._note(model, reading, Labellings.of([found[j] for j in first.tolist()]))
        found_all: list[list[tuple[Any, float]]] = reading.spread(
            ranked, lambda: [(model.empty(), float(probabilities))]
        )
        return found_all

    @needs_probabilities
    def sample(self, X: Any, n: int = 1, *, random_state: Any = None, **constraints: Any) -> list[list[Any]]:
        """For each example n answers drawn from the model's distribution; not available with hinge losses.

        random_state : int, RandomState, Generator or None
            None: other draws each time.
        constraints
            As for `predict`: draws given that they hold.
        """
        n = check_count("n", n)
        seeds = np.random.default_rng(seed_of(random_state))
        model, reading, n_jobs = self._read(X, constraints)
        structure, features = reading.batch.structure, reading.batch.features
        _check_oracle(structure, Capability.SAMPLE, "samples")
        temperature = get_loss(self.loss).temperature
        found: list[Any] = []
        for i in range(reading.batch.n_examples):
            seed = int(seeds.integers(np.iinfo(np.int64).max))
            found += structure.sample(i, features.scores(i, model.weights), temperature, n, seed)
        which = np.repeat(np.arange(reading.batch.n_examples), n)
        answers = list(model.decode(reading, which, Labellings.of(found), n_jobs))
        groups = [answers[k : k + n] for k in range(0, len(answers), n)]
        drawn: list[list[Any]] = reading.spread(groups, lambda: [model.empty() for _ in range(n)])
        return drawn

    @needs_probabilities
    def log_probability(self, X: Any, y: Any) -> Floats:
        """Log-probability of each answer in `y`: an array of shape (n_examples,). Not available with hinge losses.

        It is -inf for an answer that the model does not have, and 0 for an example that has one answer.
        """
        model, reading, n_jobs = self._read(X)
        model.needs(Ability.ENCODING, "log-probabilities")
        labellings, possible = model.encode(reading, y)
        temperature = get_loss(self.loss).temperature
        values = values_of(reading.batch, model.weights, labellings, n_jobs)
        values -= expectations(reading.batch, model.weights, temperature, n_jobs)[1]
        values /= temperature
        values[~possible] = -np.inf
        found = np.zeros(reading.n_examples)
        found[reading.numbers] = values
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """How good predictions are, between 0 and 1, by the measure that the class says."""
        predicted = self.predict(X)
        return self._model.score(X, y, predicted, sample_weight)

    def _note(self, model: Model, reading: Reading, best: Labellings | None) -> None:
        report = model.report(reading, best)
        if report is not None:
            self._last.report = report

    @property
    def unknown_counts_(self) -> tuple[int, int]:
        """How many features of the last input have no weight, and of how many; (0, 0) where all have one."""
        check_is_fitted(self)
        return (0, 0) if self._last.report is None else self._last.report.unknown()

    @property
    def unknown_rate_(self) -> float:
        """Share of the features of the last input that have no weight."""
        unknown, total = self.unknown_counts_
        return unknown / total if total else 0.0

    # inspection

    @property
    def coef_(self) -> Floats:
        """All weights."""
        return self._model.weights

    @coef_.setter
    def coef_(self, weights: Floats) -> None:
        self._model = copy.copy(self._model)
        self._model._weights = weights

    def explain(self, x: Any, *args: Any, **place: Any) -> Any:
        """Why the answer for one example is what it is."""
        return self._explain([x], *args, **place)

    def _explain(self, X: Any, *args: Any, **place: Any) -> Any:
        """Why the answer for the only example of X is what it is, at a place if answers have some."""
        check_is_fitted(self)
        self._model.needs(Ability.EXPLANATIONS, "explanations")
        model, reading, _ = self._read(X)
        return model.explain(reading, *args, **place)

    def top_features(self, *args: Any, **options: Any) -> Any:
        """The n weights of the largest absolute values under each heading; n is 10 unless it is given."""
        model = self._fitted()
        model.needs(Ability.TOP_FEATURES, "names of weights")
        return model.top_features(*args, **options)

    def prune(
        self, threshold: float | None = None, *, keep: float | None = None, X: Any = None, y: Any = None
    ) -> Pruning:
        """Drop small weights, and features that have none left: a smaller model, a smaller file.

        The certificate is lost: it was about the weights before.

        Parameters
        ----------
        threshold : float, optional
            Drop weights of an absolute value up to this.
        keep : int or float, optional
            Keep this many weights (int) or this share of them (float), the largest.
        X, y : optional
            Data to score the model on, before and after.
        """
        check_is_fitted(self)
        self._model.needs(Ability.PRUNING, "pruning")
        if (X is None) != (y is None):
            raise ValueError("give X and y, or neither")
        before = None if X is None else float(self.score(X, y))
        model, counts = self._model.pruned(threshold, keep)
        self._adopt(model, without_certificate(self.result_, model.weights, counts))
        return Pruning(*counts, before, None if X is None else float(self.score(X, y)))

    # files

    def save(self, path: str | os.PathLike[str], dtype: str = "float64") -> None:
        """Write the fitted model to a file, from which `partwise.load` reads it.

        Parameters
        ----------
        path : path
            Customarily ending in ``.pw``. An existing file is replaced in one step, or left as it was.
        dtype : {"float64", "float32"}
            How weights are stored; float32 rounds them, for a file of about half the size.

        Raises
        ------
        ValueError
            If labels or parameters are of a kind that no file can hold: strings, ints, bools, floats and tuples can be.
        """
        check_is_fitted(self)
        self._model.needs(Ability.FILES, "model files")
        from partwise.model_files import save

        self._check_training()
        self._make_model()  # parameters that were set since `fit` must make a model too
        save(self, path, dtype)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle has no dual point: it is as large as the training data and of use for a warm start alone."""
        state: dict[str, Any] = super().__getstate__().copy()
        if "result_" in state:
            state["_last"] = _LastInput()
            state["result_"] = replace(state["result_"], dual_point=None)
        return state


def _check_oracle(structure: Structure, capability: Capability, what: str) -> None:
    if capability not in structure.capabilities():
        raise NotAvailable(f"{what}: not available for the structure {type(structure).__name__}")


def _times(penalty: Penalty, ratio: float) -> Penalty:
    if isinstance(penalty, L2):
        return L2(ratio * penalty.strength)
    return ElasticNet(ratio * penalty.l1, ratio * penalty.strength)
