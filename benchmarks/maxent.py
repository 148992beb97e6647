"""How long does multinomial logistic regression take, next to scikit-learn's solvers? MNIST, pixels between 0 and 1.

All minimise l2/2 |w|^2 + sum of log losses without intercept (scikit-learn's C is 1/l2), in float64. scikit-learn
gives no history, so for each of its solvers the fewest iterations that reach the target are looked for, and the
fastest run with just those counts; a solver is given up when one run takes longer than --patience without reaching
it. The optimum is that of an accurate partwise run made first or of any system that
goes below it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from benchmarks import models
from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.objective import multiclass_objective
from benchmarks.questions import choose, common_options
from benchmarks.report import Record, conclude, machine, save

_QUICK = 3000  # images
_MOST_ITERATIONS = 1024

# name: function of this module, options
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "partwise-auto": ("fit_partwise", {"solver": "auto"}),
    "partwise-lbfgs": ("fit_partwise", {"solver": "lbfgs"}),
    "partwise-eg": ("fit_partwise", {"solver": "eg"}),
    **{
        f"sklearn-{solver}": ("fit_sklearn", {"solver": solver})
        for solver in ("lbfgs", "newton-cg", "sag", "saga", "newton-cholesky")
    },
}
# Forming its Hessian, (labels x inputs)^2 entries, takes some 4e12 operations an iteration on all of MNIST: it runs
# when named, or on the quick part.
_ONLY_WHEN_NAMED = {"sklearn-newton-cholesky"}


@click.command("maxent", help=__doc__)
@common_options(default_l2="10,1")
@click.option("--patience", default=120.0, show_default=True, help="Longest run of a rival short of the target, in s.")
def command(
    data: str | None,
    json_file: str | None,
    l2: str,
    threads: int,
    repeat: int,
    within: float,
    systems: str,
    quick: bool,
    patience: float,
) -> None:
    records: list[Record] = []
    chosen = [name for name in choose(systems, list(SYSTEMS)) if quick or systems or name not in _ONLY_WHEN_NAMED]
    for strength in map(float, l2.split(",")):
        common = {"data": data, "l2": strength, "limit": _QUICK if quick else None}
        reference = run_apart(
            "benchmarks.maxent:fit_partwise", threads, solver="auto", tol=1e-8, n_jobs=threads, **common
        )
        optimum = reference["objective"]
        runs: list[Record] = []
        for name in chosen:
            function, options = SYSTEMS[name]
            if function == "fit_partwise":
                extra: dict[str, Any] = {"tol": within / 10, "n_jobs": threads}
                rounds = repeat
            else:
                extra = {"optimum": optimum, "within": within, "repeat": repeat, "patience": patience}
                rounds = 1  # repeated inside, after the search for the iterations
            for _ in range(rounds):
                head = {"question": "maxent", "system": name, "threads": threads, "l2": strength, **machine()}
                try:
                    record = run_apart(f"benchmarks.maxent:{function}", threads, **options, **extra, **common)
                except SystemFailed as error:
                    record = {"error": str(error)}
                runs.append({**head, **record})
        title = f"Multinomial logistic regression, MNIST{' (part)' if quick else ''}, l2 = {strength:g}"
        conclude(title, runs, reference, within)
        records += runs
    save(json_file, records)


def load(data: str | None, limit: int | None) -> Any:
    """The shared data."""
    from partwise.datasets import Dataset, mnist

    full = mnist(data)
    return Dataset(*(part[:limit] for part in full))


def fewest(distance: Callable[[int], float], most: int) -> int | None:
    """The smallest k in 1..most with distance(k) <= 0, or None.

    `distance` falls as k grows and is costly for large k: guesses are interpolated from the values seen, and every
    third one halves the bracket.
    """
    seen: dict[int, float] = {}
    low, high = 0, most + 1  # too few, enough (or one past the most)
    k = min(8, most)
    while True:
        seen[k] = distance(k)
        low, high = (low, k) if seen[k] <= 0 else (k, high)
        if high - low <= 1:
            return high if high <= most else None
        k = _next_guess(seen, low, high)


def _next_guess(seen: dict[int, float], low: int, high: int) -> int:
    points = sorted(seen)
    bracketed = low in seen and high in seen
    if bracketed and len(points) % 3:
        guess = low + (high - low) * seen[low] / (seen[low] - seen[high])
    elif high in seen:
        guess = (low + high) / 2
    else:  # nothing is enough so far: go on along the slope of the last two values
        guess = 2.0 * low
        if len(points) > 1 and seen[points[-2]] > seen[low]:
            step = seen[low] * (low - points[-2]) / (seen[points[-2]] - seen[low])
            guess = min(max(low + 1.1 * step, 1.5 * low), 4.0 * low)
    return int(min(max(np.ceil(guess), low + 1), high - 1))


class TooSlow(Exception):
    """A rival's run took longer than one is ready to wait."""


def fit_sklearn(
    data: str | None,
    l2: float,
    limit: int | None,
    solver: str,
    optimum: float,
    within: float,
    repeat: int,
    patience: float,
) -> Record:
    """Train with the fewest iterations of this solver that reach the target."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    dataset = load(data, limit)
    before = peak_mb()
    times: dict[int, tuple[float, float]] = {}
    values: dict[int, float] = {}
    fitted: dict[int, Any] = {}

    def run(iterations: int) -> float:
        model = LogisticRegression(
            C=1.0 / l2, fit_intercept=False, solver=solver, max_iter=iterations, tol=1e-10, random_state=0
        )
        with warnings.catch_warnings(), clock() as fit:
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(dataset.X_train, dataset.y_train)
        times[iterations] = min(times.get(iterations, (np.inf, np.inf)), (fit.wall, fit.cpu))
        values[iterations] = multiclass_objective(dataset.X_train, dataset.y_train, model.coef_, l2)
        fitted[iterations] = model
        # Logarithm of the excess over the allowed one: for these solvers about linear in the iterations.
        distance = float(np.log(max(values[iterations] / optimum - 1.0, 1e-12) / within))
        if distance > 0 and fit.wall > patience:
            raise TooSlow
        return distance

    try:
        needed = fewest(run, _MOST_ITERATIONS)
    except TooSlow:
        needed = min((k for k, value in values.items() if value <= (1.0 + within) * optimum), default=None)
    reached = needed is not None
    needed = needed if needed is not None else max(times)
    for _ in range(repeat if reached else 0):
        run(needed)
    peak = peak_mb()
    wall, cpu = times[needed]
    with clock() as predict:
        accuracy = fitted[needed].score(dataset.X_test, dataset.y_test)
    return {
        "fit_seconds": wall,
        "fit_cpu_seconds": cpu,
        "solver_seconds": wall,
        "solver_cpu_seconds": cpu,
        "predict_seconds": predict.wall,
        "passes": float(needed),
        "trace_seconds": [wall],
        "trace_cpu_seconds": [cpu],
        "trace_objective": [values[needed]],
        "trace_passes": [float(needed)],
        "reported_objective": None,
        "gap": None,
        "data_mb": before,
        "peak_mb": peak,
        "objective": values[needed],
        "accuracy": float(accuracy),
    }


def fit_partwise(data: str | None, l2: float, limit: int | None, solver: str, tol: float, n_jobs: int) -> Record:
    """Train a MaxentClassifier."""
    from partwise import MaxentClassifier

    dataset = load(data, limit)
    before = peak_mb()
    model = MaxentClassifier(
        loss="log", C=1.0 / l2, fit_intercept=False, solver=solver, tol=tol, n_jobs=n_jobs, random_state=0
    )
    with clock() as fit, models.watched() as watch:
        model.fit(dataset.X_train, dataset.y_train)
    peak = peak_mb()
    with clock() as predict:
        accuracy = model.score(dataset.X_test, dataset.y_test)
    return {
        **models.history_of(model.result_, watch),
        "fit_seconds": fit.wall,
        "fit_cpu_seconds": fit.cpu,
        "predict_seconds": predict.wall,
        "data_mb": before,
        "peak_mb": peak,
        "objective": multiclass_objective(dataset.X_train, dataset.y_train, model.coef_, l2),
        "accuracy": float(accuracy),
    }
