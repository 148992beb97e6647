"""`partial_fit`: training on a stream of examples, whose features are chosen by the first ones.

Each call is one epoch of an online solver over its examples. The solver's state is kept for the next call and pickled
with the estimator, but not saved in model files: a loaded estimator resumes from its weights.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from partwise.estimators.warm_start import AnyModel
from partwise.models.base import Ability, Training
from partwise.problem import LabelledBatch, Problem
from partwise.problem.losses import Loss
from partwise.problem.result import HISTORY, Result, Status
from partwise.solvers import SGD, Solver, State
from partwise.solvers.engine.base import generator
from partwise.solvers.engine.registry import SOLVERS, check_fits
from partwise.support.arrays import Floats

if TYPE_CHECKING:
    from partwise.estimators.base import StructuredEstimator
    from partwise.estimators.parameters import TrainingParameters


@dataclass(frozen=True)
class Stream:
    """The end of the last call: solver, loss, the solver's state, and the seconds of all calls."""

    solver: Solver[Any]
    loss: Loss
    state: State
    seconds: float


def takes_single_examples(estimator: TrainingParameters) -> bool:
    """Return True, or raise AttributeError for an l1 penalty, which online solvers do not support."""
    if estimator.penalty == "l1" or (estimator.penalty == "elasticnet" and estimator.l1_ratio != 0):
        raise AttributeError(f"partial_fit is not available with penalty={estimator.penalty!r}: use 'l2'")
    return True


def train_further(
    estimator: StructuredEstimator[AnyModel],
    X: object,
    y: object,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None,
    grow: bool,
) -> None:
    """Run one epoch over these examples, from where the estimator's last call ended."""
    begin = time.perf_counter()
    training = estimator._check_training()
    training = replace(training, solver=_incremental_solver(estimator, training), classes=classes)
    grown = grow and hasattr(estimator, "_model")
    model, examples = (grown_model if grown else _examples)(estimator, training, X, y, sample_weight)
    penalty = replace(training, l2=model.l2_factor * training.l2).penalty
    problem = Problem.of([examples], training.loss, penalty, n_jobs=training.n_jobs)
    stream = _step(estimator, training, model, problem, grown)
    solver, state = stream.solver, stream.state
    weights = solver.weights(problem, state)
    stream = replace(stream, seconds=stream.seconds + time.perf_counter() - begin)
    remark = solver.remark(problem, state)
    calls = f"{state.epoch} call" + ("s" if state.epoch != 1 else "")
    message = f"{solver.name}: {calls} of partial_fit, {state.visits} visits" + (f"; {remark}" if remark else "")
    ran = {"solver": solver.name, "l2": problem.l2, "passes": float(state.epoch), "seconds": stream.seconds}
    # There is no certificate: it would need the examples of earlier calls, which are not kept.
    result = uncertified(weights, "no certificate", message=message, **ran)
    estimator._fit_key = None
    estimator._adopt(model.with_weights(weights), result)
    estimator._stream = stream


def _incremental_solver(estimator: TrainingParameters, training: Training) -> Solver[Any]:
    if isinstance(estimator.solver, str) and estimator.solver == "auto":
        return SGD()
    solver: Solver[Any] = training.solver
    if not solver.incremental:
        others = ", ".join(name for name, cls in SOLVERS.items() if cls.incremental)
        raise ValueError(f"partial_fit: solver {solver.name!r} needs all examples at once; those that fit: {others}")
    return solver


def _examples(
    estimator: StructuredEstimator[AnyModel], training: Training, X: object, y: object, sample_weight: ArrayLike | None
) -> tuple[AnyModel, LabelledBatch]:
    """Return the fitted model, or a new one with the features of these examples, and the batch of the examples."""
    classes: Any = training.classes
    fitted = hasattr(estimator, "_model")
    model = estimator._fitted() if fitted else estimator._make_model()
    model.needs(Ability.PARTIAL_FIT, "partial_fit")
    if fitted:
        if classes is not None and set(classes) != set(getattr(estimator, "classes_", classes)):
            raise ValueError("classes: they must be those of the first call, or left out")
        return model, model.further(*estimator._check_more(X, y), sample_weight, training.n_jobs)
    if classes is not None and not model.takes_classes:
        raise ValueError(f"classes: {type(estimator).__name__} takes none, leave them out")
    return model, model.learn(*estimator._check_data(model, X, y), sample_weight, training).labelled


def grown_model(
    estimator: StructuredEstimator[AnyModel], training: Training, X: object, y: object, sample_weight: ArrayLike | None
) -> tuple[AnyModel, LabelledBatch]:
    """Return the model with the features and labels of these examples added, and the batch of the examples."""
    old, new = estimator._fitted(), estimator._make_model()
    for ability in (Ability.GROWTH, Ability.WARM_START, Ability.PARTIAL_FIT):
        new.needs(ability, "partial_fit with grow=True")
    known = getattr(estimator, "classes_", None)
    classes: Any = training.classes
    data: tuple[Any, Any] = estimator._check_data(new, X, y)
    learnt = replace(training, classes=None)
    if known is not None:
        labels = data[1].tolist() if isinstance(data[1], np.ndarray) else [each for row in data[1] for each in row]
        union = {*labels, *known.tolist(), *(() if classes is None else classes)}
        if len({isinstance(label, str) for label in union}) > 1:
            raise ValueError("y: labels that are strings and labels that are not cannot be in one model")
        learnt = replace(training, classes=sorted(union, key=lambda label: (str(type(label)), label)))
    new.learn(*data, sample_weight, learnt)
    grown = new.joined(old)
    weights = grown.carried(old)
    assert weights is not None
    grown = grown.with_weights(weights)
    return grown, grown.further(*data, sample_weight, training.n_jobs)


def _step(
    estimator: StructuredEstimator[AnyModel], training: Training, model: AnyModel, problem: Problem, grown: bool
) -> Stream:
    """Run one epoch over the problem's examples, from the state of the last call if solver and loss are the same."""
    solver, last = training.solver, estimator._stream
    check_fits(solver, problem)
    if last is None or (last.solver, last.loss) != (solver, training.loss):
        start = model.weights.copy() if hasattr(estimator, "_model") else None
        state, seconds = solver.init_state(problem, generator(training.seed()), start), 0.0
    else:
        state, seconds = copy.deepcopy(last.state), last.seconds
        if grown:  # even if the number of weights is the same: widths are padded, and names may have moved
            old = estimator._model
            for name, value in vars(state).items():  # arrays with a value per weight get 0 for new features
                if isinstance(value, np.ndarray) and value.shape == old.weights.shape:
                    setattr(state, name, model.carried(old.with_weights(value)))
    solver.step(problem, state)
    return Stream(solver, training.loss, state, seconds)


def uncertified(weights: Floats, status: Status, **known: Any) -> Result:
    """Return the result of weights whose objective is not known. known: fields of the result that are."""
    fields: dict[str, Any] = {"primal": math.nan, "dual": -math.inf, "gap": math.inf, "passes": 0.0, "seconds": 0.0}
    fields |= {"solver": "", "l2": 0.0, "history": {name: np.empty(0) for name in HISTORY}}
    return Result(weights=weights, status=status, **{**fields, **known})
