"""Watch scikit-learn's logistic regression after every iteration, without counting the time of the watching.

Its solvers have no history, and running them again and again with other iteration counts takes many times as long as
one run. So one fit is watched: the functions that `fit` calls are replaced, to see the weights after every iteration of
lbfgs, newton-cg and newton-cholesky; sag and saga run one epoch at a time, each from the memory of the last one (their
order of visits then differs from that of one long run). The fit ends at the target or when its CPU seconds are used up,
which may be during an iteration.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.objective import Floats

_MOST_ITERATIONS = 100_000  # never reached: the CPU seconds end the fit
_FAR = 1.001  # objectives above this times the target are far from it


class Enough(Exception):
    """Raised to end the watched fit."""


@dataclass
class Watch:
    """Objectives after each iteration, and the seconds of the fit without their evaluation.

    value: computes the objective of weights (labels x inputs). patience: CPU seconds.
    """

    value: Callable[[Floats], float]
    target: float
    patience: float
    wall: float = 0.0
    cpu: float = 0.0
    objectives: list[float] = field(default_factory=list)
    weights: Floats | None = None
    _since: tuple[float, float] | None = None

    @property
    def reached(self) -> bool:
        """Whether the last iteration reached the target."""
        return bool(self.objectives) and self.objectives[-1] <= self.target

    def go(self) -> None:
        self._since = (time.perf_counter(), time.process_time())

    def halt(self) -> None:
        if self._since is not None:
            self.wall += time.perf_counter() - self._since[0]
            self.cpu += time.process_time() - self._since[1]
            self._since = None

    def see(self, weights: Floats, said: float | None = None) -> None:
        """Record the weights after one more iteration.

        said: the objective that the system reports; it is used, to save time, while it is far above the target.
        """
        self.halt()
        self.weights = np.array(weights)
        far = said is not None and said > _FAR * self.target
        self.objectives.append(said if said is not None and far else self.value(self.weights))
        if self.reached or self.cpu > self.patience:
            raise Enough
        self.go()

    def on_alarm(self, *_: Any) -> None:
        """End an iteration that takes too long; the alarm's clock also counts evaluations, so it may be early."""
        spent = self.cpu + (time.process_time() - self._since[1] if self._since is not None else 0.0)
        if self._since is not None and spent >= self.patience:
            self.halt()
            raise Enough
        signal.setitimer(signal.ITIMER_PROF, max(self.patience - spent, 0.05))


def watch_fit(options: dict[str, Any], X: Any, y: Any, watch: Watch) -> None:
    """Fit a LogisticRegression with these options until the watch has seen enough."""
    import sklearn
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    rows = len(np.unique(y))
    shape = (1 if rows == 2 else rows, -1)
    model = LogisticRegression(**options, max_iter=_MOST_ITERATIONS)
    before = signal.signal(signal.SIGPROF, watch.on_alarm)
    with warnings.catch_warnings(), _watched(options["solver"], shape, len(y), watch):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            signal.setitimer(signal.ITIMER_PROF, max(watch.patience, 0.01))
            watch.go()
            model.fit(X, y)
            watch.halt()
            watched = len(watch.objectives)
            watch.see(model.coef_)
        except Enough:
            return
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, before)
    if not watched:  # the fit ended unwatched: this version uses other functions
        raise RuntimeError(f"scikit-learn {sklearn.__version__}: the iterations of {options['solver']} cannot be seen")


@contextmanager
def _replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    old = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)


def _watched(solver: str, shape: tuple[int, int], n: int, watch: Watch) -> Any:
    """Return a context in which the watch sees this solver's weights after each iteration."""
    from sklearn.linear_model import _logistic
    from sklearn.linear_model._glm._newton_solver import NewtonSolver
    from sklearn.linear_model._linear_loss import LinearModelLoss

    def see(coef: Any, mean: float | None = None) -> None:
        weights = np.reshape(coef, shape, order="F") if np.ndim(coef) == 1 else coef
        watch.see(weights, None if mean is None else n * float(mean))

    if solver == "lbfgs":
        minimize = _logistic.optimize.minimize

        def with_callback(*arguments: Any, **options: Any) -> Any:
            def callback(intermediate_result: Any) -> None:
                see(intermediate_result.x, intermediate_result.fun)

            return minimize(*arguments, **{**options, "callback": callback})

        return _replaced(_logistic.optimize, "minimize", with_callback)
    if solver == "newton-cg":
        product = LinearModelLoss.gradient_hessian_product
        calls = 0

        def first_of_iteration(self: Any, coef: Any, *arguments: Any, **options: Any) -> Any:
            nonlocal calls
            if calls > 0:  # the first call is before the first iteration
                see(coef)
            calls += 1
            return product(self, coef, *arguments, **options)

        return _replaced(LinearModelLoss, "gradient_hessian_product", first_of_iteration)
    if solver == "newton-cholesky":
        check = NewtonSolver.check_convergence

        def last_of_iteration(self: Any, *arguments: Any, **options: Any) -> Any:
            see(self.coef)
            return check(self, *arguments, **options)

        return _replaced(NewtonSolver, "check_convergence", last_of_iteration)
    sag_solver = _logistic.sag_solver

    def by_epochs(*given: Any, is_saga: bool) -> Any:
        *start, most, tol, verbose, random_state, check_input, largest, memory = given
        for _ in range(most):
            rest = (1, tol, verbose, random_state, check_input, largest, memory)
            coef, _, memory = sag_solver(*start, *rest, is_saga=is_saga)
            see(coef)
        return coef, most, memory

    return _replaced(_logistic, "sag_solver", by_epochs)
