"""What all estimators share: training parameters, sample weights, the call of the solver.

`fit` works on local values and sets attributes at its very end, inside `unchanged_on_failure`: an error or Ctrl-C
leaves an estimator as it was before the call.
"""

from __future__ import annotations

import copy
import math
import numbers
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from partwise._core import FeatureMap, Multiclass, RowLayout, stacked_products
from partwise.callbacks.base import Callbacks, Session, check_callbacks
from partwise.estimators.inputs import Floats
from partwise.features import maxent_map, multiclass_map
from partwise.features.sparse_inputs import csr_product
from partwise.losses import Loss, get_loss
from partwise.penalties import L2, ElasticNet, Penalty
from partwise.problem import Problem
from partwise.result import HISTORY, Result
from partwise.solvers import Solver, get_solver, solve, solve_path
from partwise.threads import count_threads

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Training:
    """Checked training parameters."""

    loss: Loss
    l2: float
    solver: Any
    tol: float
    n_jobs: int
    l1: float = 0.0
    max_seconds: float | None = None

    @property
    def penalty(self) -> Penalty:
        return ElasticNet(self.l1, self.l2) if self.l1 else L2(self.l2)

    def classifier_map(self, structure: Multiclass, rows: Any, layout: RowLayout | None = None) -> FeatureMap:
        """The features of rows with a label each; single features can be had too if the solver goes by them."""
        by_features = self.l1 > 0 or (isinstance(self.solver, Solver) and "column access" in self.solver.requires)
        return (maxent_map if by_features else multiclass_map)(structure, rows, layout=layout)


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


def count_jobs(n_jobs: Any) -> int:
    """Threads meant by scikit-learn's `n_jobs` (`threads.count_threads`)."""
    if n_jobs is not None and (not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a nonzero integer, got {n_jobs!r}")
    return count_threads(None if n_jobs is None else int(n_jobs))


def row_products(X: Any, weights: Floats, n_jobs: int) -> Floats:
    """X weights', by sums whose order is the same for one row and for many (that of BLAS is not)."""
    if sparse.issparse(X):
        return csr_product(X, weights.T)
    rows, columns = np.ascontiguousarray(X)[:, None, :], np.ascontiguousarray(weights.T)[None]
    return stacked_products(rows, columns, n_jobs)[:, 0]


def check_sample_weight(sample_weight: Any, n_examples: int, what: str = "sequence") -> Floats | None:
    """One finite weight >= 0 an example, not all zero; None stays None."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers") from None
    if weight.ndim == 0:
        weight = np.full(n_examples, float(weight))
    if weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weight) != n_examples:
        raise ValueError(f"sample_weight has {len(weight)} entries, expected one for each of {n_examples} {what}s")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(f"sample_weight of {what} {bad[0]} is {weight[bad[0]]}: must be finite and not negative")
    if not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


@dataclass
class Path:
    """Values of C to train for in one `fit`, and what came of it."""

    Cs: tuple[float, ...]
    results: list[Result] = field(default_factory=list)

    def penalties(self, last: Penalty, C: float) -> list[Penalty]:
        """The penalty of each C, from the one that belongs to `C`."""
        return [_times(last, C / each) for each in self.Cs]


def _sketch(weights: Floats) -> Result:
    """Weights of a run that goes on, as a result."""
    nothing: dict[str, Floats] = {name: np.empty(0) for name in HISTORY}
    return Result(weights, math.nan, math.nan, math.inf, 0.0, 0.0, "stopped", "", 0.0, nothing)


def _times(penalty: Penalty, ratio: float) -> Penalty:
    if isinstance(penalty, L2):
        return L2(ratio * penalty.strength)
    return ElasticNet(ratio * penalty.l1, ratio * penalty.strength)


class TrainedEstimator(BaseEstimator):
    """Base of the estimators: checks the common parameters and runs the solver."""

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
            max_seconds=self.max_seconds,
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

    def _train(
        self, training: Training, shape: tuple[Any, ...], weights: Floats | None, fitted: dict[str, Any], **parts: Any
    ) -> Result:
        """Solve the problem made of `parts` (features, structure, gold, sample_weight).

        `weights` are the last fit's, carried over to the new features. `shape` says what labellings the examples
        have: where it is the last fit's, so is the room for dual points. `fitted` are the attributes that, with
        weights, make a model: what callbacks need to look at one on the way.
        """
        problem = Problem(loss=training.loss, penalty=training.penalty, n_jobs=training.n_jobs, **parts)
        key = (training.loss, training.solver, *shape)
        options: dict[str, Any] = {
            "solver": training.solver,
            "tol": training.tol,
            "max_passes": self.max_passes,
            "max_seconds": training.max_seconds,
            "random_state": seed_of(self.random_state),
            "warm_start": self._start(training, key, weights) if self.warm_start else None,
            "verbose": self.verbose,
        }
        path = getattr(self, "_path", None)
        if path is None:
            with Callbacks(self.callbacks, Session(problem, partial(self._preview, fitted))) as callbacks:
                result = callbacks.end(solve(problem, callback=callbacks if callbacks.all else None, **options))
        else:
            path.results = solve_path(problem, path.penalties(problem.penalty, self.C), **options)
            result = path.results[-1]
        self._fit_key = key
        return result

    def _preview(self, fitted: dict[str, Any], weights: Floats) -> TrainedEstimator:
        """A model with these weights, which lives beside the one that is being trained."""
        model = copy.copy(self)
        model.__dict__.update(fitted)
        model._set_weights(_sketch(weights))
        return model

    def _set_weights(self, result: Result) -> None:
        raise NotImplementedError

    def _fit_path(self, Cs: Sequence[float], X: Any, y: Any, sample_weight: Any = None) -> list[Result]:
        """Fit for each of these C in turn, each from the solution of the one before; the last one stays.

        `_set_weights` puts any of the results in its place.
        """
        self.C = Cs[-1]
        self._path = path = Path(tuple(Cs))
        try:
            self.fit(X, y, sample_weight)
        finally:
            del self._path
        return path.results

    def _start(self, training: Training, key: tuple[Any, ...], weights: Floats | None) -> Result | Floats | None:
        if training.loss.smooth:
            return weights
        # max-margin solvers start from a dual point, which belongs to a loss, a solver and a shape of data
        old = getattr(self, "_fit_key", None)
        if old is None or self.result_.dual_point is None or len(old) != len(key):
            return None
        last: Result = self.result_
        return last if all(np.array_equal(a, b) for a, b in zip(old, key, strict=True)) else None

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
        from partwise.models import save

        save(self, path, dtype)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle has no dual point: it is as large as the training data and of use for a warm start alone."""
        state: dict[str, Any] = super().__getstate__().copy()
        if "result_" in state:
            state["result_"] = replace(state["result_"], dual_point=None)
        return state


def check_positive(name: str, value: Any, zero: bool = False) -> None:
    """A finite number > 0 (or >= 0)."""
    real = not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)
    if not real or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be a finite number {'>= 0' if zero else '> 0'}, got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """One of a few values."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_count(name: str, value: Any) -> int:
    """A number of things, at least one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    return int(value)


def seed_of(random_state: Any) -> int | None:
    """scikit-learn's random_state as a seed: None (another one each time), an int, or a draw from a generator."""
    if random_state is None or isinstance(random_state, numbers.Integral):
        return random_state if random_state is None else int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    raise ValueError(f"random_state must be None, an int or a NumPy generator, got {random_state!r}")


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss makes the model a distribution (for scikit-learn's available_if)."""
    try:
        loss = get_loss(estimator.loss)
    except (TypeError, ValueError) as error:
        raise AttributeError(str(error)) from None
    if loss.temperature > 0 and loss.link == "identity" and loss.name != "smoothed-hinge":
        return True
    raise AttributeError(f"probabilities are not available with loss={loss.name!r}: use 'log' or 'softmax-margin'")


def needs_probabilities(method: Method) -> Method:
    """Decorate a method that is there only when the loss makes the model a distribution."""
    return cast(Method, available_if(has_probabilities)(method))
