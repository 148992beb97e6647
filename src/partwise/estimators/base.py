"""The base class of all estimators: training, predictions, inspection and files.

`fit` sets attributes at its very end, inside `unchanged_on_failure`: an error or Ctrl-C leaves an estimator as it was.
"""

import copy
import inspect
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from partwise.callbacks.base import Callbacks, Session, check_callbacks
from partwise.estimators.parameters import Seed, SolverChoice, TrainingParameters, document, penalty_parameters
from partwise.estimators.partial_fit import Stream, takes_single_examples, train_further, uncertified
from partwise.estimators.warm_start import AnyModel, FitKey, answer_numbers, start_of
from partwise.model_files.values import object_array
from partwise.models import Ability, Labellings, Learnt, Model, NotAvailable, Reading, Training
from partwise.models.base import EncodedData, InputReport, Shortcut
from partwise.models.inspection import Pruning, TopFeatures, without_certificate
from partwise.problem import LabelledBatch, Problem
from partwise.problem.capabilities import Capability
from partwise.problem.inference import best_labellings, check_weights, entropies_of, expectations, values_of
from partwise.problem.losses import Loss, get_loss
from partwise.problem.penalties import L2, ElasticNet, Penalty
from partwise.problem.result import Result
from partwise.solvers import Checkpoint, Solver, get_solver, solve, solve_path
from partwise.solvers.engine.path import start_of_l1_path
from partwise.structures import Structure
from partwise.support import checks
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:

    class BaseEstimator:
        """The part of scikit-learn's class that is used here; the class itself has no types for mypy to check."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: object) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> dict[str, object]: ...
        def __getattr__(self, name: str) -> Any: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...

else:
    from sklearn.base import BaseEstimator

ModelT = TypeVar("ModelT", bound=AnyModel)
Method = TypeVar("Method", bound=Callable[..., object])
Weights = ArrayLike | None
CheckpointFile = str | os.PathLike[str] | Checkpoint | None
#: What a model predicts for one example: a label, a list of labels, a tree, ...
Answer = Any
ModelReading = Reading[Any]


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the estimator's attributes if the block raises an exception (Ctrl-C included)."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


#: Decorates a method that an estimator has only if a check returns True; otherwise the check raises AttributeError.
available_where: Callable[[Callable[[Any], bool]], Callable[[Method], Method]] = available_if


def has_probabilities(estimator: TrainingParameters) -> bool:
    """Return True if the loss makes the model a distribution; else raise AttributeError, which names such losses."""
    try:
        loss = get_loss(estimator.loss)
    except (TypeError, ValueError) as error:
        raise AttributeError(str(error)) from None
    if loss.probabilistic:
        return True
    raise AttributeError(f"probabilities are not available with loss={loss.name!r}: use 'log' or 'softmax-margin'")


needs_probabilities = available_where(has_probabilities)


class Answers(list[Answer]):
    """A list with one answer per example, which NumPy converts to a one-dimensional array of objects.

    `cross_val_predict` converts answers to arrays; of a list of lists NumPy would make a table, or raise an error.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return object_array(list(self)) if dtype in (None, object) else np.array(list(self), dtype=dtype)


@dataclass(frozen=True)
class _Prepared(Generic[ModelT]):
    """What `fit` needs to call a solver and to keep its result. options: arguments of `solve`."""

    model: ModelT
    reading: ModelReading | None
    problem: Problem
    key: FitKey
    options: dict[str, Any]


@dataclass
class LastInput:
    """The report on the last prediction's input, in an object of its own: `predict` may not set attributes."""

    report: InputReport | None = None


class StructuredEstimator(TrainingParameters, BaseEstimator, Generic[ModelT]):
    """Base of the estimators.

    A subclass is a dataclass of its own parameters that names its model class in `_model_class`, or writes
    `_make_model` and an `__init__` that lists its own parameters and may take the others as ``**training``. Predictions
    take the model's constraints (`allowed`, ...); `ConstraintError` if these leave an example without an answer.
    """

    result_: Result
    #: How the command line read the training data; only models that it trained have it.
    input_settings_: dict[str, object]
    _model: ModelT
    _last: LastInput
    #: The class of models that has the estimator's own parameters as its options.
    _model_class: ClassVar[type[AnyModel]]
    #: The forms that inputs may have, by scikit-learn's names, and whether `fit` needs `y`.
    _input_forms: ClassVar[tuple[str, ...]] = ("two_d_array",)
    _needs_answers: ClassVar[bool] = False
    #: The solver that "auto" stands for with a smooth loss and the penalty "l2", and the largest C for that.
    _auto_solver: ClassVar[tuple[str, float] | None] = None
    #: Parameters that may name files of phrases; model files hold the phrases, which the model has as an attribute.
    _phrases: ClassVar[tuple[str, ...]] = ()
    #: Parameters that the first model files lack, with the values that those models were trained with.
    _earlier: ClassVar[dict[str, object]] = {}
    #: The problem that the dual point of the last fit belongs to.
    _fit_key: FitKey | None = None
    #: What `partial_fit` keeps for its next call; None after any other change of the weights.
    _stream: Stream | None = None

    def __init_subclass__(cls, **options: object) -> None:
        if "_model_class" in vars(cls):  # scikit-learn passes these arguments of predict through pipelines
            setattr(cls, "__metadata_request__predict", dict.fromkeys(cls._model_class.constraints))
        super().__init_subclass__(**options)
        document(cls)

    def __post_init__(self) -> None:
        if "sklearn.metrics" in sys.modules:  # importing it here would be slow for programs that do not use it
            from partwise.metrics.scorers import register_scorers

            register_scorers()

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters, which ``**training`` in `__init__` extends by those of the base class."""
        kinds = {each.kind for each in inspect.signature(cls.__init__).parameters.values()}
        inherited = {each.name for each in fields(cls)} if inspect.Parameter.VAR_KEYWORD in kinds else set()
        return sorted({*super()._get_param_names(), *inherited})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for form in ("two_d_array", "sparse", "dict", "string"):
            setattr(tags.input_tags, form, form in self._input_forms)
        tags.target_tags.required |= self._needs_answers
        return tags

    def _make_model(self) -> ModelT:
        """Return an untrained model with the estimator's own parameters, checked."""
        training = {each.name for each in fields(TrainingParameters)}
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in training}
        return cast(ModelT, self._model_class(**own))

    def fit(
        self, X: object, y: object = None, sample_weight: Weights = None, *, checkpoint: CheckpointFile = None
    ) -> Self:
        """Train on examples `X` with answers `y` and one weight per example (nothing is learnt from weight 0).

        `X` may be a partition of files with answers and weights (`partwise.out_of_core.partitions.open`).

        checkpoint : path or `partwise.solvers.Checkpoint`
            A file for the state of the run, saved from time to time and at the end. If it exists, the run continues
            from it and ends with the same bits as one that was not interrupted.
        """
        with unchanged_on_failure(self):
            prepared = self._prepare_fit(X, y, sample_weight)
            with Callbacks(self.callbacks, self._session(prepared)) as callbacks:
                callback = callbacks if callbacks.all else None
                result = solve(prepared.problem, callback=callback, checkpoint=checkpoint, **prepared.options)
                result = callbacks.end(result)
            self._keep(prepared, result)
        return self

    def prepare(self, X: object, y: object = None, sample_weight: Weights = None) -> Session:
        """Return the problem that `fit` would solve, without solving it; this estimator does not change.

        After ``session = estimator.prepare(X, y)``, call ``solve(session.problem, ...)`` with any solver;
        ``session.preview(weights)`` is an estimator that predicts with these weights.
        """
        return self._session(self._prepare_fit(X, y, sample_weight))

    def _session(self, prepared: _Prepared[ModelT]) -> Session:
        answers = None if prepared.reading is None else partial(self._training_answers, prepared)
        return Session(prepared.problem, partial(self._preview, prepared.model), answers)

    def fit_path(self, Cs: Sequence[float], X: object, y: object = None, sample_weight: Weights = None) -> list[Result]:
        """Fit for each of these C in turn, each from the solution of the one before; keep the last one's weights.

        `use` puts the weights of any of the results in their place. No callbacks are called.
        """
        if not len(Cs):
            raise ValueError("Cs holds no values")
        for C in Cs:
            checks.check_strength("Cs: each value", C)
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
        X: object,
        y: object = None,
        sample_weight: Weights = None,
        *,
        l1_max: float | None = None,
        points: int = 10,
    ) -> list[Result]:
        """Fit for strengths of |w|_1 from `l1_max` down to `l1_min`, evenly in logarithms; keep the last one's weights.

        The strength of |w|^2 / 2 follows from the estimator's parameters. l1_max: None is the smallest strength at
        which all weights are zero. Afterwards `penalty`, `l1_ratio` and `C` are those of `l1_min`; see also `fit_path`.
        """
        checks.check_positive("l1_min", l1_min)
        if l1_max is not None:
            checks.check_positive("l1_max", l1_max)
        checks.check_count("points", points)
        with unchanged_on_failure(self):
            self.set_params(**penalty_parameters(l1_min, self._check_training().l2))
            prepared = self._prepare_fit(X, y, sample_weight)
            what = f"l1_max = {l1_max or 0.0:g}"
            if l1_max is None:
                l1_max, weights = start_of_l1_path(prepared.problem)
                what = f"{l1_max:g}, from which on all weights are zero"
                if prepared.options["warm_start"] is None:
                    prepared.options["warm_start"] = weights
            if l1_max < l1_min:
                raise ValueError(f"l1_min = {l1_min:g} must be at most {what}")
            l2, free = prepared.problem.l2, prepared.problem.penalty.free
            penalties = [ElasticNet(l1, l2, free) for l1 in np.geomspace(l1_max, l1_min, points).tolist()]
            results = solve_path(prepared.problem, penalties, **prepared.options)
            self._keep(prepared, results[-1])
        return results

    def use(self, result: Result) -> Self:
        """Replace the weights by those of another result of the last `fit_path` or `fit_l1_path`."""
        check_is_fitted(self)
        self._adopt(self._model.with_weights(result.weights), result)
        return self

    @available_where(takes_single_examples)
    def partial_fit(
        self,
        X: object,
        y: object = None,
        classes: ArrayLike | None = None,
        sample_weight: Weights = None,
        *,
        grow: bool = False,
    ) -> Self:
        """Train on these examples once, from where the last call (or `fit`, or a model file) ended.

        The solver must be `sgd` ("auto" is the same), `perceptron` or `mira`. `result_` has no certificate.

        X, y, sample_weight
            As for `fit`. The first call chooses the features and, without `classes`, the labels. Later calls ignore
            other features, and raise ValueError for other labels.
        classes : array, optional
            All labels of all calls; for the first call.
        grow : bool
            Add the features and labels of later calls' examples (and `classes`) to the model, with weights 0. For
            taggers of named attributes with `order=1`, and classifiers.
        """
        with unchanged_on_failure(self):
            train_further(cast(StructuredEstimator[AnyModel], self), X, y, classes, sample_weight, grow)
        return self

    def _prepare_fit(self, X: object, y: object, sample_weight: Weights) -> _Prepared[ModelT]:
        training = self._check_training()
        model = self._make_model()
        if not isinstance(model, Model):
            raise TypeError(f"{type(self).__name__}._make_model must return a Model, got {model!r}")
        model.check_cost(training.loss)
        if isinstance(X, EncodedData):
            if y is not None or sample_weight is not None:
                raise ValueError("a partition has its labels and weights: give it alone")
            known, learnt = X.learn(model, training)
            model = cast(ModelT, known)
        else:
            learnt = model.learn(*self._check_data(model, X, y), sample_weight, training)
            if not isinstance(learnt, Learnt):
                raise TypeError(f"{type(model).__name__}.learn must return Learnt, got {type(learnt).__name__}")
        left = None if training.max_seconds is None else max(0.0, training.max_seconds - learnt.seconds)
        penalty = replace(training, l2=learnt.l2_factor * training.l2, free=learnt.free).penalty
        problem = Problem.of(learnt.batches, training.loss, penalty, executor=learnt.executor, n_jobs=training.n_jobs)
        key = FitKey(type(model), training.loss, training.solver, penalty, learnt.shape)
        if learnt.executor is None:
            key = replace(key, slots=problem.slot_offsets, answers=answer_numbers(problem))
        start = None
        if self.warm_start and hasattr(self, "_model"):
            start = start_of(self._model, self._fit_key, self.result_, model, key, problem)
        options = {name: getattr(training, name) for name in ("solver", "tol", "verbose")}
        options |= {"random_state": training.seed(), "warm_start": start}
        options |= {"max_passes": self.max_passes, "max_seconds": left}
        return _Prepared(model, learnt.reading, problem, key, options)

    def _check_data(self, model: ModelT, X: object, y: object) -> tuple[object, object]:
        """Return training data as the model takes them, checked."""
        return X, y

    def _check_more(self, X: object, y: object) -> tuple[object, object]:
        """Return the same for a later call of `partial_fit`."""
        return self._check_input(X), y

    def _check_input(self, X: object) -> object:
        """Return examples to predict for as the model takes them, checked."""
        return X

    def check_parameters(self) -> None:
        """Raise ValueError for parameters that are invalid for all data."""
        self._make_model().check_cost(self._check_training().loss)

    def _check_settings(self) -> tuple[Loss, float]:
        """Check the parameters that do not depend on the solver; return the loss and the share of |w|_1."""
        loss = get_loss(self.loss)
        check_callbacks(self.callbacks)
        checks.check_strength("C", self.C)
        checks.check_positive("tol", self.tol, zero=True)
        for name in ("max_seconds", "max_passes"):
            if getattr(self, name) is not None:
                checks.check_positive(name, getattr(self, name))
        checks.count_jobs(self.n_jobs)
        if not isinstance(self.solver, (str, Solver)):
            raise ValueError(f"solver must be a name or a Solver, got {self.solver!r}")
        checks.check_choice("penalty", self.penalty, ("l2", "l1", "elasticnet"))
        checks.check_positive("l1_ratio", self.l1_ratio, zero=True)
        if self.l1_ratio > 1:
            raise ValueError(f"l1_ratio must be at most 1, got {self.l1_ratio!r}")
        share = {"l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))
        if share and not loss.takes_l1:
            fitting = "'log', 'softmax-margin' or 'smoothed-hinge'"
            raise ValueError(f"penalty={self.penalty!r} is not available with loss={loss.name!r}: use {fitting}")
        return loss, share

    def _check_training(self) -> Training:
        loss, share = self._check_settings()
        solver, C = self._make_solver(), float(self.C)
        if not (loss.smooth or loss.cost_scale) and getattr(solver, "certified", True):
            raise ValueError(
                f"loss {loss.name!r} at temperature 0 needs a cost_scale above 0: without costs, zero weights are best"
            )
        n_jobs, seed = checks.count_jobs(self.n_jobs), partial(checks.seed_of, self.random_state)
        options: dict[str, Any] = {"l1": share / C, "max_seconds": self.max_seconds, "verbose": self.verbose}
        return Training(loss, (1.0 - share) / C, solver, float(self.tol), n_jobs, seed, **options)

    def _make_solver(self) -> SolverChoice:
        """Return the solver with its options, or "auto"."""
        if isinstance(self.solver, str) and self.solver != "auto":
            return get_solver(self.solver, **(self.solver_options or {}))
        if self.solver_options:
            raise ValueError(f"solver_options need a solver's name, got solver={self.solver!r}")
        if self.solver == "auto" and self._auto_solver is not None and self.penalty == "l2":
            name, most = self._auto_solver
            return get_solver(name) if get_loss(self.loss).smooth and most >= self.C else "auto"
        return self.solver

    def _keep(self, prepared: _Prepared[ModelT], result: Result) -> None:
        self._fit_key = prepared.key
        self._adopt(prepared.model.with_weights(result.weights), result)

    def _adopt(self, model: ModelT, result: Result) -> None:
        """Make this a fitted estimator with this model."""
        for name in self._model.attributes() if hasattr(self, "_model") else ():
            if name in vars(self):
                delattr(self, name)
        self._model = model
        self._stream = None
        self._last = LastInput()
        self.result_ = result
        for name, value in model.attributes().items():
            setattr(self, name, value)

    def _preview(self, model: ModelT, weights: Floats) -> Self:
        """Return a copy of the estimator that predicts with these weights."""
        other = copy.copy(self)
        other._adopt(model.with_weights(weights), uncertified(weights, "stopped", dual=math.nan))
        return other

    def _training_answers(self, prepared: _Prepared[ModelT], weights: Floats, which: Ints) -> Answer:
        """Return the best answers for some of the training examples, from the batch that the solver uses."""
        reading, n_jobs = prepared.reading, checks.count_jobs(self.n_jobs)
        assert reading is not None
        best = Labellings(*best_labellings(reading.batch, weights, n_jobs, which))
        return _decode(prepared.model.with_weights(weights), reading, which, best, n_jobs)

    def _fitted(self) -> ModelT:
        """Return the fitted model with the parameters as they are now."""
        if "_model" not in vars(self):  # `check_is_fitted` takes as long as a prediction for a short sentence
            check_is_fitted(self)
        model = self._model
        changed = {name: getattr(self, name) for name in model.late if getattr(self, name) != getattr(model, name)}
        return model.with_options(**changed) if changed else model

    def _read(
        self, X: object, constraints: Mapping[str, object] | None = None, note: bool = True, model: ModelT | None = None
    ) -> tuple[ModelT, ModelReading, int]:
        """Return the model (or the fitted one), its reading of X (reported if `note`), and the number of threads."""
        model, n_jobs = self._fitted() if model is None else model, checks.count_jobs(self.n_jobs)
        reading = model.read(self._check_input(X), n_jobs)
        if not isinstance(reading, Reading):
            raise TypeError(f"{type(model).__name__}.read must return a Reading, got {type(reading).__name__}")
        given = {name: value for name, value in (constraints or {}).items() if value is not None}
        for name in given.keys() - set(model.constraints):
            known = ", ".join(model.constraints) or "none"
            if Ability.CONSTRAINTS in model.abilities() and not model.constraints:
                known += f" ({type(model).__name__}.constraints must name the arguments of its constrain)"
            raise TypeError(f"{type(self).__name__} has no constraint {name!r}; there are: {known}")
        if given:
            model.needs(Ability.CONSTRAINTS, "constraints")
            model.constrain(reading, **given)
            reading.constrained = True
        model.check_reading(reading)
        if note:
            self._note(model, reading)
        return model, reading, n_jobs

    def _shortcut(self, X: object, constraints: Mapping[str, object]) -> Shortcut | None:
        """Return X as the model's `Shortcut`, if the model has one for such input and there are no constraints."""
        if any(value is not None for value in constraints.values()):
            return None
        short = self._fitted().shortcut(self._check_input(X))
        if short is not None:
            unknown = short.unknown
            self._last.report = InputReport(lambda: unknown)
        return short

    def predict(self, X: object, **constraints: object) -> Any:
        """Return the best answer for each example; `constraints` as the class says."""
        short = self._shortcut(X, constraints)
        if short is not None:
            return Answers(short.best(checks.count_jobs(self.n_jobs)))
        model, reading, n_jobs = self._read(X, constraints, note=False)
        best, answers = _best_answers(model, reading, n_jobs)
        self._note(model, reading, best)
        return Answers(answers) if isinstance(answers, list) else answers

    def _predict_numbers(self, X: object, probabilities: bool = False) -> tuple[Ints, Floats | None] | None:
        """Return `predict`'s labels as indices of `classes_`, and their probabilities; None if answers have none."""
        model, reading, n_jobs = self._read(X, note=False)
        best = model.best(reading, n_jobs)
        numbers = model.label_numbers(reading, best)
        if numbers is None:
            return None
        self._note(model, reading, best)
        if not probabilities:
            return numbers, None
        rows = model.marginals(reading, self._expected_counts(model, reading, n_jobs), output="array")
        return numbers, np.concatenate(rows)[np.arange(len(numbers)), numbers] if rows else np.empty(0)

    def _expected_counts(self, model: ModelT, reading: ModelReading, n_jobs: int) -> Floats:
        """Return the expected counts of the slots of all examples."""
        counts, values = expectations(reading.batch, model.weights, get_loss(self.loss).temperature, n_jobs)
        checks.check_sums(values, reading.numbers)
        return counts

    @needs_probabilities
    def predict_marginals(self, X: object, **options: Any) -> Any:
        """Return probabilities of the parts of answers, as the class says; not available with hinge losses.

        With constraints, as for `predict`, the probabilities are conditional on them.
        """
        known = self._fitted()
        known.needs(Ability.MARGINALS, "marginals")
        constraints = {name: options.pop(name) for name in known.constraints if name in options}
        short = self._shortcut(X, constraints)
        if short is not None:
            return short.marginals(get_loss(self.loss).temperature, checks.count_jobs(self.n_jobs), **options)
        model, reading, n_jobs = self._read(X, constraints)
        return model.marginals(reading, self._expected_counts(model, reading, n_jobs), **options)

    def predict_k_best(
        self, X: object, k: int, *, probabilities: bool = False, **constraints: object
    ) -> list[list[tuple[Answer, float]]]:
        """Return for each example its k best answers (fewer if it has fewer) with their scores, best first.

        Scores are sums of weights: with the log loss, differences of scores are differences of log-probabilities.
        `constraints` are those of `predict`.

        probabilities : bool
            Probabilities of the answers instead of scores; not available with hinge losses.
        """
        if probabilities:
            has_probabilities(self)
        k = checks.check_count("k", k)
        model, reading, n_jobs = self._read(X, constraints, note=False)
        structure, temperature = reading.batch.structure, get_loss(self.loss).temperature
        found: list[list[tuple[Ints, Floats]]] = []
        values: list[list[float]] = []
        for i, scores in enumerate(_slot_scores(model, reading, Capability.K_BEST, "the k best answers")):
            best = structure.k_best(i, scores, k)
            found.append([(slots, counts) for _, slots, counts in best])
            values.append([value for value, _, _ in best])
            if probabilities:
                log_z = structure.log_partition(i, scores, temperature)[0]
                values[i] = np.exp(np.subtract(values[i], log_z) / temperature).clip(0, 1).tolist()
        which = np.array([i for i, each in enumerate(found) for _ in each], dtype=np.int64)
        answers = iter(_decode(model, reading, which, Labellings.of(list(chain.from_iterable(found))), n_jobs))
        ranked = [[(next(answers), value) for value in each] for each in values]
        self._note(model, reading, Labellings.of([best[0] for best in found]))
        return reading.completed(
            ranked, lambda i: [] if i in reading.failed else [(model.left_out(reading, i), float(probabilities))]
        )

    @needs_probabilities
    def sample(self, X: object, n: int = 1, *, random_state: Seed = None, **constraints: object) -> list[list[Answer]]:
        """Return for each example n answers drawn from the model's distribution; not available with hinge losses.

        random_state : int, RandomState, Generator or None
            None: draw differently each time.
        constraints
            As for `predict`.
        """
        n = checks.check_count("n", n)
        seeds = np.random.default_rng(checks.seed_of(random_state))
        model, reading, n_jobs = self._read(X, constraints)
        temperature = get_loss(self.loss).temperature
        found: list[tuple[Ints, Floats]] = []
        for i, scores in enumerate(_slot_scores(model, reading, Capability.SAMPLE, "samples")):
            seed = int(seeds.integers(np.iinfo(np.int64).max))
            found += reading.batch.structure.sample(i, scores, temperature, n, seed)
        which = np.repeat(np.arange(reading.batch.n_examples), n)
        answers = list(_decode(model, reading, which, Labellings.of(found), n_jobs))
        groups = [answers[k : k + n] for k in range(0, len(answers), n)]
        return reading.completed(groups, lambda i: [model.left_out(reading, i) for _ in range(n)])

    @needs_probabilities
    def entropy(self, X: object, **constraints: object) -> Floats:
        """Return the entropy of each example's answers in nats: an array of shape (n_examples,).

        It is 0 for one possible answer, NaN without any, and conditional on constraints. Not for hinge losses.
        """
        model, reading, n_jobs = self._read(X, constraints)
        entropies = entropies_of(reading.batch, model.weights, get_loss(self.loss).temperature, n_jobs)
        checks.check_sums(entropies, reading.numbers)
        found = np.zeros(reading.n_examples)
        found[reading.numbers] = np.maximum(entropies, 0.0)
        found[reading.failed] = np.nan
        return found

    @needs_probabilities
    def log_probability(self, X: object, y: object, **constraints: object) -> Floats:
        """Return the log-probability of each answer in `y`: an array of shape (n_examples,).

        It is -inf for an impossible or forbidden answer, and conditional on constraints. Not for hinge losses.
        """
        model, reading, n_jobs = self._read(X, constraints)
        labellings, possible = _encode(model, reading, y, "log-probabilities")
        if reading.constrained:
            possible &= _allowed(reading.batch.structure, labellings)
        temperature = get_loss(self.loss).temperature
        values = values_of(reading.batch, model.weights, labellings, n_jobs)
        sums = expectations(reading.batch, model.weights, temperature, n_jobs)[1]
        checks.check_sums(sums, reading.numbers)
        found = np.zeros(reading.n_examples)
        found[reading.numbers] = np.where(possible, (values - sums) / temperature, -np.inf)
        found[reading.failed] = -np.inf
        return found

    def labelled(self, X: object, y: object) -> LabelledBatch:
        """Return examples with their answers as a batch for solvers and `partwise.bounds`, with the model's features.

        ValueError for an answer that is impossible under the model.
        """
        if y is None:
            raise ValueError("y is None: labelled examples have answers")
        model, reading, _ = self._read(X, note=False)
        labellings, possible = _encode(model, reading, y, "labelled examples")
        odd = np.flatnonzero(~possible)
        if odd.size or len(reading.failed):
            first = reading.numbers[odd[0]] if odd.size else reading.failed[0]
            raise ValueError(f"example {first}: the model does not have this answer")
        return model.labelled_reading(reading, labellings)

    def score(self, X: object, y: object, sample_weight: Weights = None) -> float:
        """Return how good predictions are, between 0 and 1, by the measure that the class says."""
        return self._model.score(X, y, self.predict(X), sample_weight)

    def scorer(
        self, X: object, y: object, measure: str | Callable[[Any, Any], float] | None = None
    ) -> Callable[[Floats], float]:
        """Return a function that computes the score on these examples from weights.

        measure: a name ("chunk_f1", ...: `partwise.metrics.get_measure`) or a function of right and predicted answers;
        None is `score`. The function reads X only now, except with ``model="maxent"``.
        """
        from partwise.metrics.scorers import get_measure

        by = get_measure(measure) if isinstance(measure, str) else measure
        model, reading, n_jobs = self._read(X, note=False)

        def score(weights: Floats) -> float:
            other = self.with_weights(weights)
            known = other._read(X, note=False)[1] if model.reads_by_weights else reading
            answers = _best_answers(other._model, known, n_jobs)[1]
            return other._model.score(X, y, answers, None) if by is None else float(by(y, answers))

        return score

    def _note(self, model: ModelT, reading: ModelReading, best: Labellings | None = None) -> None:
        report, last = model.report(reading, best), self._last.report
        if report is not None:
            self._last.report = replace(report, unknown=last.unknown) if last and report.unknown is None else report

    @property
    def unknown_counts_(self) -> tuple[int, int]:
        """How many features of the last input have no weight, and how many it has; (0, 0) if all have one."""
        check_is_fitted(self)
        report = self._last.report
        return (0, 0) if report is None or report.unknown is None else report.unknown()

    @property
    def unknown_rate_(self) -> float:
        """Share of the features of the last input that have no weight."""
        unknown, total = self.unknown_counts_
        return unknown / total if total else 0.0

    @property
    def weights_(self) -> Floats:
        """All weights, in the order of the solver's vector."""
        return self._fitted().weights

    @property
    def coef_(self) -> Floats:
        """All weights."""
        return self.weights_

    @coef_.setter
    def coef_(self, weights: Floats) -> None:
        checks.check_finite_weights("coef_", weights)
        self._model = copy.copy(self._model)
        self._model._weights = weights

    def with_weights(self, weights: Floats) -> Self:
        """Return a copy of this estimator with other weights, without a certificate."""
        if np.shape(weights) != np.shape(self.weights_):
            raise ValueError(f"weights of shape {np.shape(weights)}, the model has {np.shape(self.weights_)}")
        checks.check_finite_weights("weights", weights)
        return self._preview(self._model, weights)

    def explain(self, x: object, *args: Any, **place: Any) -> Any:
        """Return the features that make the best answer for one example better than the second-best one.

        Their amounts add up to the difference of the two scores.
        """
        return self._explain([x], *args, **place)

    def _explain(self, X: object, *args: Any, **place: Any) -> Any:
        """Explain the answer for the only example of X, or the part of the answer at a place."""
        check_is_fitted(self)
        self._model.needs(Ability.EXPLANATIONS, "explanations")
        model, reading, _ = self._read(X)
        return model.explain(reading, *args, **place)

    def top_features(self, n: int = 10) -> TopFeatures:
        """Return the n weights of the largest absolute values under each heading (a label, a pair of labels, ...)."""
        model = self._fitted()
        model.needs(Ability.TOP_FEATURES, "names of weights")
        return cast(TopFeatures, model.top_features(checks.check_count("n", n)))

    def prune(
        self, threshold: float | None = None, *, keep: float | None = None, X: object = None, y: object = None
    ) -> Pruning:
        """Drop small weights, and features without weights, for a smaller model file; the certificate is dropped too.

        threshold : float, optional
            Drop weights whose absolute value is at most this.
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

    def save(self, path: str | os.PathLike[str], dtype: str = "float64", format: str = "partwise") -> None:
        """Write the fitted model to a file, from which `partwise.load` reads it.

        path : path
            Usually ends in ``.pw``. An existing file is replaced in one step, or not changed.
        dtype : {"float64", "float32"}
            Type of the stored weights; float32 rounds them, for a file of about half the size.
        format : {"partwise", "crfsuite"}
            "crfsuite": a file that CRFsuite, python-crfsuite and `partwise.load` read, for `SequenceTagger` over named
            attributes without weights for ends or for pairs of an attribute and a transition.

        ValueError if labels or parameters are not strings, ints, bools, floats or tuples of these.
        """
        check_is_fitted(self)
        self._model.needs(Ability.FILES, "model files")
        from partwise.model_files import save

        self._check_settings()
        self._make_model()  # checks parameters that were set after `fit`
        save(self, path, dtype, format)

    def __getstate__(self) -> dict[str, object]:
        """Return the state without dual points, which are as large as the training data and only help warm starts."""
        state: dict[str, object] = super().__getstate__().copy()
        if "result_" in state:
            state["_last"] = LastInput()
        results = {name: value for name, value in state.items() if isinstance(value, Result)}
        return state | {name: replace(result, dual_point=None) for name, result in results.items()}


document(StructuredEstimator, always=True)


class TreeParser(StructuredEstimator[ModelT]):
    """Base of the estimators whose answers are trees of sentences."""

    # "auto" solves tiny problems to machine precision, as scikit-learn's classifiers should; a parser's weights are not
    # worth that. Its rule for very many slots prefers L-BFGS. Weak penalties are left to its rule.
    _auto_solver: ClassVar = ("eg", 100.0)

    def score(self, X: object, y: object = None, sample_weight: Weights = None) -> float:
        """Return how good predicted trees are, as the class says; y: the right trees, None for those of `X` itself."""
        return super().score(X, y, sample_weight)


def _decode(model: AnyModel, reading: ModelReading, which: Ints, labellings: Labellings, n_jobs: int) -> Answer:
    """Return `Model.decode`'s answers, checked: one per labelling."""
    answers = model.decode(reading, which, labellings, n_jobs)
    if not hasattr(answers, "__len__") or len(answers) != len(which):
        found = f"{len(answers)} answers" if hasattr(answers, "__len__") else type(answers).__name__
        raise TypeError(f"{type(model).__name__}.decode gave {found} for {len(which)} labellings")
    return answers


def _best_answers(model: AnyModel, reading: ModelReading, n_jobs: int) -> tuple[Labellings, Answer]:
    """Return the best labelling of each example of the batch, and the answers for all examples."""
    best = model.best(reading, n_jobs)
    answers = _decode(model, reading, np.arange(len(best.indptr) - 1), best, n_jobs)
    return best, reading.completed(answers, lambda i: model.left_out(reading, i))


def _encode(model: AnyModel, reading: ModelReading, y: object, what: str) -> tuple[Labellings, NDArray[np.bool_]]:
    """Return `Model.encode`'s labellings, checked: one per example of the batch, and whether each is possible."""
    model.needs(Ability.ENCODING, what)
    found, name = model.encode(reading, y), f"{type(model).__name__}.encode"
    if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[0], Labellings):
        raise TypeError(f"{name} must return Labellings and which of them are possible")
    n, n_examples = len(found[0].indptr) - 1, reading.batch.n_examples
    if n != n_examples:
        raise ValueError(f"{name} gave {n} labellings for {n_examples} examples: are X and y of the same length?")
    return found[0], np.array(found[1], dtype=bool)


def _allowed(structure: Structure, labellings: Labellings) -> NDArray[np.bool_]:
    """Return for each example whether its structure and its mask allow its labelling."""
    ends, allowed = labellings.indptr.tolist(), np.ones(structure.num_examples, dtype=bool)
    for i, (begin, end) in enumerate(zip(ends, ends[1:], strict=False)):
        slots, mask = labellings.slots[begin:end], structure.mask(i)
        try:
            structure.check_labelling(i, slots, labellings.counts[begin:end])
            allowed[i] = mask is None or bool(mask[slots].all())
        except ValueError:
            allowed[i] = False
    return allowed


def _slot_scores(model: AnyModel, reading: ModelReading, needed: Capability, what: str) -> Iterator[Floats]:
    """Return the slot scores of each example; NotAvailable unless the structure has the needed capability."""
    batch = reading.batch
    if needed not in batch.structure.capabilities():
        name = type(batch.structure).__name__
        raise NotAvailable(f"{what}: not available for the structure {name}, which has no method {needed}")
    check_weights(batch, model.weights)
    return (batch.features.scores(i, model.weights) for i in range(batch.n_examples))


def _times(penalty: Penalty, ratio: float) -> Penalty:
    l1: dict[str, Any] = {} if isinstance(penalty, L2) else {"l1": ratio * penalty.l1}
    return replace(penalty, strength=ratio * penalty.strength, **l1)
