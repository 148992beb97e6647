"""`partial_fit`: training on a stream of examples, whose features are chosen by the first ones.

The first call chooses the model's features from its examples, as `fit` does; later ones leave out features that are not
known. (A hashed vocabulary, which knows all of them, is a matter of the input or of the model's features.) Each call is
one epoch of an online solver over its examples; the solver's state is kept for the next call, pickled with the
estimator, and not part of model files: an estimator that was loaded goes on from its weights.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from partwise.estimators.answers import AnsweringEstimator, Method
from partwise.estimators.training import unchanged_on_failure
from partwise.models.base import Ability, Model, Training
from partwise.problem import LabelledBatch, Problem
from partwise.problem.losses import Loss
from partwise.problem.result import HISTORY, Result
from partwise.solvers import SGD, Solver, State
from partwise.solvers.engine.base import generator
from partwise.solvers.engine.registry import SOLVERS, check_fits


@dataclass(frozen=True)
class Stream:
    """Where the last call ended: solver and loss, the solver's state, and the seconds of all calls."""

    solver: Solver[Any]
    loss: Loss
    state: State
    seconds: float


def _takes_single_examples(estimator: Any) -> bool:
    """Whether there may be a solver for `partial_fit`: none of those that go example by example takes an l1 term."""
    if estimator.penalty == "l1" or (estimator.penalty == "elasticnet" and estimator.l1_ratio != 0):
        raise AttributeError(f"partial_fit is not available with penalty={estimator.penalty!r}: use 'l2'")
    return True


def _where_examples_can_be_taken_singly(method: Method) -> Method:
    return cast(Method, available_if(_takes_single_examples)(method))


class IncrementalEstimator(AnsweringEstimator):
    """An estimator that can be trained further."""

    _stream: Stream | None = None

    @_where_examples_can_be_taken_singly
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None, *, grow: bool = False
    ) -> Self:
        """Train on these examples once, from where the last call (or `fit`, or a model file) ended.

        The solver must be one that keeps nothing of single examples: `perceptron`, `mira` or `sgd`, which "auto" stands
        for. There is no certificate: `result_.status` says so.

        Parameters
        ----------
        X, y
            As for `fit`. The first call chooses the features, and the labels unless `classes` says more; features that
            are not among them are left out by later calls, labels are an error.
        classes : array, optional
            All labels that there will be, on the first call.
        sample_weight : array, optional
            One weight per example.
        grow : bool
            Later calls add the features and labels of their examples (and `classes`) to the model, with weights 0.
            Taggers of named attributes with `order=1`, classifiers.
        """
        begin = time.perf_counter()
        with unchanged_on_failure(self):
            training = self._check_training()
            training = replace(training, solver=self._incremental_solver(training.solver))
            grown = grow and hasattr(self, "_model")
            if grown:
                model, examples = self._grown(training, X, y, classes, sample_weight)
            else:
                model, examples = self._examples(training, X, y, classes, sample_weight)
            penalty = replace(training, l2=model.l2_factor * training.l2).penalty
            problem = Problem.of([examples], training.loss, penalty, n_jobs=training.n_jobs)
            stream = self._step(training, model, problem, grown)
            weights = stream.solver.weights(problem, stream.state)
            stream = replace(stream, seconds=stream.seconds + time.perf_counter() - begin)
            self._fit_key = None
            self._adopt(model.with_weights(weights), _result(stream, problem, weights))
            self._stream = stream
        return self

    def _incremental_solver(self, solver: Any) -> Solver[Any]:
        if isinstance(self.solver, str) and self.solver == "auto":
            return SGD()
        if not solver.incremental:
            others = ", ".join(name for name, cls in SOLVERS.items() if cls.incremental)
            raise ValueError(
                f"partial_fit: solver {solver.name!r} needs all examples at once; those that fit: {others}"
            )
        found: Solver[Any] = solver
        return found

    def _examples(
        self, training: Training, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[Model, LabelledBatch]:
        """The model with its features, and the examples on them."""
        if hasattr(self, "_model"):
            model = self._fitted()
            model.needs(Ability.FURTHER, "partial_fit")
            if classes is not None and set(classes) != set(getattr(self, "classes_", classes)):
                raise ValueError("classes: they must be those of the first call, or left out")
            return model, model.further(*self._check_more(X, y), sample_weight, training.n_jobs)
        model = self._make_model()
        model.needs(Ability.FURTHER, "partial_fit")
        if classes is not None and not model.takes_classes:
            raise ValueError(f"classes: {type(self).__name__} takes none, leave them out")
        given = replace(training, classes=classes)
        return model, model.learn(*self._check_data(model, X, y), sample_weight, given).labelled

    def _grown(
        self, training: Training, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[Model, LabelledBatch]:
        """The model with what is new in these examples, and the examples on its features."""
        old, new = self._fitted(), self._make_model()
        for ability in (Ability.GROWING, Ability.CARRYING, Ability.FURTHER):
            new.needs(ability, "partial_fit with grow=True")
        known = getattr(self, "classes_", None)
        data = self._check_data(new, X, y)
        learnt = replace(training, classes=None)
        if known is not None:
            labels = np.asarray(data[1]) if isinstance(data[1], np.ndarray) else None
            own = set(labels.tolist()) if labels is not None else {each for row in data[1] for each in row}
            union = own | set(known.tolist()) | set(() if classes is None else classes)
            if len({isinstance(label, str) for label in union}) > 1:
                raise ValueError("y: labels that are strings and labels that are not cannot be in one model")
            learnt = replace(training, classes=sorted(union, key=lambda label: (str(type(label)), label)))
        new.learn(*data, sample_weight, learnt)
        grown = new.joined(old)
        weights = grown.carried(old)
        assert weights is not None
        grown = grown.with_weights(weights)
        return grown, grown.further(*data, sample_weight, training.n_jobs)

    def _check_more(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Training data of a later call as the model takes them."""
        return self._check_input(X), y

    def _step(self, training: Training, model: Model, problem: Problem, grown: bool) -> Stream:
        """One epoch over the problem's examples; what the state has per weight follows a model that has grown."""
        solver, last = training.solver, self._stream
        check_fits(solver, problem)
        if last is not None and (last.solver, last.loss) == (solver, training.loss):
            state, seconds = copy.deepcopy(last.state), last.seconds
            if grown:  # also where there are as many weights: widths are padded, and names may have moved
                _follow(state, self._model, model)
        else:
            start = model.weights.copy() if hasattr(self, "_model") else None
            state, seconds = solver.init_state(problem, generator(training.seed()), start), 0.0
        solver.step(problem, state)
        return Stream(solver, training.loss, state, seconds)


def _follow(state: State, old: Model, model: Model) -> None:
    """Arrays with a value per weight of the old model as those of the one that grew out of it, 0 for new features."""
    n = len(old.weights)
    for name, value in vars(state).items():
        if isinstance(value, np.ndarray) and value.shape == (n,):
            setattr(state, name, model.carried(old.with_weights(value)))


def _result(stream: Stream, problem: Problem, weights: Any) -> Result:
    """What is known after a call: no objective, as the examples of earlier calls are gone."""
    name, state = stream.solver.name, stream.state
    calls = f"{state.epoch} call" + ("s" if state.epoch != 1 else "")
    remark = stream.solver.remark(problem, state)
    return Result(
        weights=weights,
        primal=math.nan,
        dual=-math.inf,
        gap=math.inf,
        passes=float(state.epoch),
        seconds=stream.seconds,
        status="no certificate",
        solver=name,
        l2=problem.l2,
        history={column: np.empty(0) for column in HISTORY},
        message=f"{name}: {calls} of partial_fit, {state.visits} visits" + (f"; {remark}" if remark else ""),
    )
