"""How long does multinomial logistic regression take, next to scikit-learn's solvers and LIBLINEAR?

MNIST (pixels between 0 and 1), 20news (counts), and a9a and w8a with two labels, where LIBLINEAR's -s 0 and -s 7 have
the same objective. All minimise l2/2 |w|^2 + sum of log losses without intercept (scikit-learn's C is 1/l2), in
float64. scikit-learn gives no history, so for each of its solvers the fewest iterations that reach the target are
looked for, and the fastest run with just those counts; a solver is given up when one run takes longer than --patience
without reaching it (then "> so many s" is all that is said), and the search when it has taken six times that.
LIBLINEAR's stopping tolerance is halved until it reaches the target. The optimum is that of an accurate partwise run
made first or of any system that goes below it.

What is timed: "fit" is from a matrix in memory to a model (LIBLINEAR: its own copy of the matrix and training;
partwise: checks, its own copy, training); "solver" is without that copy (LIBLINEAR: `train` on a ready problem;
partwise: `solve` on a ready problem; scikit-learn: all of `fit`, which has no such copy).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from benchmarks import models
from benchmarks.measure import SystemFailed, clock, first_within, peak_mb, run_apart
from benchmarks.objective import multiclass_objective
from benchmarks.questions import choose, common_options
from benchmarks.report import Record, conclude, machine, save

_QUICK = 3000  # rows
_MOST_ITERATIONS = 1024
_SEARCHES = 6.0  # patience for all runs of a search together

# name: strengths of the penalty by default
DATA = {"mnist": "10,1", "20news": "1", "a9a": "1", "w8a": "1"}
_TWO_LABELS = {"a9a", "w8a"}
# name: function of this module, options
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "partwise-auto": ("fit_partwise", {"solver": "auto"}),
    "partwise-lbfgs": ("fit_partwise", {"solver": "lbfgs"}),
    "partwise-eg": ("fit_partwise", {"solver": "eg"}),
    "partwise-sdca": ("fit_partwise", {"solver": "sdca"}),
    **{
        f"sklearn-{solver}": ("fit_sklearn", {"solver": solver})
        for solver in ("lbfgs", "newton-cg", "sag", "saga", "newton-cholesky")
    },
    "liblinear-s0": ("fit_liblinear", {"solver": "0"}),
    "liblinear-s7": ("fit_liblinear", {"solver": "7"}),
}
# Forming its Hessian, (labels x inputs)^2 entries, takes some 4e12 operations an iteration on all of MNIST: it runs
# when named, or on the quick part.
_ONLY_WHEN_NAMED = {"sklearn-newton-cholesky"}


@click.command("maxent", help=__doc__)
@common_options(default_l2="")
@click.option("--datasets", default="", help=f"Of {', '.join(DATA)}, with commas [all].")
@click.option("--patience", type=float, help="Longest run of a rival short of the target, in s [10 times ours, or 2].")
def command(
    data: str | None,
    json_file: str | None,
    l2: str,
    threads: int,
    repeat: int,
    within: float,
    systems: str,
    quick: bool,
    patience: float | None,
    datasets: str,
) -> None:
    records: list[Record] = []
    named = [name for name in choose(systems, list(SYSTEMS)) if quick or systems or name not in _ONLY_WHEN_NAMED]
    problems = [
        (name, strength)
        for name in choose(datasets, list(DATA), "--datasets")
        for strength in map(float, (l2 or DATA[name]).split(","))
    ]
    for dataset, strength in problems:
        chosen = [name for name in named if dataset in _TWO_LABELS or SYSTEMS[name][0] != "fit_liblinear"]
        common = {"data": data, "l2": strength, "limit": _QUICK if quick else None, "dataset": dataset}
        reference = run_apart(
            "benchmarks.maxent:fit_partwise", threads, solver="auto", tol=1e-8, n_jobs=threads, **common
        )
        optimum = reference["objective"]
        at = first_within(reference["trace_objective"], (1.0 + within) * optimum)
        ours = reference["trace_seconds"][at] if at is not None else reference["solver_seconds"]
        wait = patience if patience is not None else max(2.0, 10.0 * ours)
        runs: list[Record] = []
        for name in chosen:
            function, options = SYSTEMS[name]
            if function == "fit_partwise":
                extra: dict[str, Any] = {"tol": within / 10, "n_jobs": threads}
                rounds = repeat
            else:
                extra = {"optimum": optimum, "within": within, "repeat": repeat, "patience": wait}
                rounds = 1  # repeated inside, after the search for the iterations
            for _ in range(rounds):
                head = {"question": "maxent", "system": name, "threads": threads, "l2": strength, "dataset": dataset}
                head |= machine()
                try:
                    record = run_apart(f"benchmarks.maxent:{function}", threads, **options, **extra, **common)
                except SystemFailed as error:
                    record = {"error": str(error)}
                runs.append({**head, **record})
        title = f"Multinomial logistic regression, {dataset}{' (part)' if quick else ''}, l2 = {strength:g}"
        conclude(title, runs, reference, within)
        records += runs
    save(json_file, records)


def load(data: str | None, limit: int | None, dataset: str) -> Any:
    """The shared data; labels are numbers from 0."""
    from partwise.datasets import Dataset, mnist

    if dataset == "mnist":
        return Dataset(*(part[:limit] for part in mnist(data)))
    return Dataset(*(part[:limit] for part in _svmlight(data, dataset)))


def _svmlight(data: str | None, dataset: str) -> tuple[Any, ...]:
    from sklearn.datasets import load_svmlight_file, load_svmlight_files

    from partwise.datasets import data_file

    folder, names = {
        "20news": ("20news", [f"20news_bydate_counts.{part}.libsvm" for part in ("train", "test")]),
        "a9a": ("libsvm", ["a9a", "a9a.t"]),
        "w8a": ("libsvm", ["w8a"]),
    }[dataset]
    paths = [str(data_file(folder, name, data)) for name in names]
    # w8a has no test data here: its accuracy is that on the training data.
    parts = load_svmlight_files(paths) if len(paths) > 1 else (*load_svmlight_file(paths[0]),) * 2
    X_train, y_train, X_test, y_test = parts
    labels = np.unique(y_train)
    return X_train, np.searchsorted(labels, y_train), X_test, np.searchsorted(labels, y_test)


def fewest(distance: Callable[[int], float], most: int, first: int = 8) -> int | None:
    """The smallest k in 1..most with distance(k) <= 0, or None; the first guess is `first`.

    `distance` falls as k grows and is costly for large k: guesses are interpolated from the values seen, and every
    third one halves the bracket.
    """
    seen: dict[int, float] = {}
    low, high = 0, most + 1  # too few, enough (or one past the most)
    k = min(first, most)
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
    dataset: str = "mnist",
) -> Record:
    """Train with the fewest iterations of this solver that reach the target."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    shared = load(data, limit, dataset)
    before = peak_mb()
    times: dict[int, tuple[float, float]] = {}
    values: dict[int, float] = {}
    fitted: dict[int, Any] = {}
    spent: list[float] = []
    repeating = False

    def run(iterations: int) -> float:
        model = LogisticRegression(
            C=1.0 / l2, fit_intercept=False, solver=solver, max_iter=iterations, tol=1e-10, random_state=0
        )
        with warnings.catch_warnings(), clock() as fit:
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(shared.X_train, shared.y_train)
        times[iterations] = min(times.get(iterations, (np.inf, np.inf)), (fit.wall, fit.cpu))
        values[iterations] = multiclass_objective(shared.X_train, shared.y_train, model.coef_, l2)
        fitted[iterations] = model
        # Logarithm of the excess over the allowed one: for these solvers about linear in the iterations.
        distance = float(np.log(max(values[iterations] / optimum - 1.0, 1e-12) / within))
        spent.append(fit.wall)
        if (distance > 0 and fit.wall > patience) or (sum(spent) > _SEARCHES * patience and not repeating):
            raise TooSlow
        return distance

    try:
        needed = fewest(run, _MOST_ITERATIONS, 2 if solver == "newton-cg" else 8)  # its iterations are long ones
    except TooSlow:
        needed = min((k for k, value in values.items() if value <= (1.0 + within) * optimum), default=None)
    reached = needed is not None
    needed = needed if needed is not None else max(times)
    repeating = True
    for _ in range(repeat if reached else 0):
        run(needed)
    peak = peak_mb()
    wall, cpu = times[needed]
    with clock() as predict:
        accuracy = fitted[needed].score(shared.X_test, shared.y_test)
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
        "more_than_seconds": None if reached else wall,
        "accuracy": float(accuracy),
    }


def fit_liblinear(
    data: str | None,
    l2: float,
    limit: int | None,
    solver: str,
    optimum: float,
    within: float,
    repeat: int,
    patience: float,
    dataset: str = "a9a",
) -> Record:
    """Train with the largest stopping tolerance, of those halved from 0.1, that reaches the target."""
    from liblinear.liblinearutil import parameter, problem, train

    shared = load(data, limit, dataset)
    signs = np.where(shared.y_train == 1, 1.0, -1.0)
    before = peak_mb()
    with clock() as copy:
        prepared = problem(signs, shared.X_train)

    def run(eps: float) -> tuple[Any, float, float, float]:
        with clock() as fit:
            model = train(prepared, parameter(f"-s {solver} -c {1.0 / l2} -e {eps} -q"))
        weights = np.array(model.get_decfun()[0])
        weights = weights[None, : shared.X_train.shape[1]]
        return weights, multiclass_objective(shared.X_train, shared.y_train, weights, l2), fit.wall, fit.cpu

    eps = 0.1
    weights, value, wall, cpu = run(eps)
    while value > (1.0 + within) * optimum and wall <= patience and eps > 1e-12:
        eps *= 0.5
        weights, value, wall, cpu = run(eps)
    for _ in range(repeat):
        _, _, *again = run(eps)
        wall, cpu = min((wall, cpu), tuple(again))
    guesses = np.asarray(shared.X_test[:, : weights.shape[1]] @ weights[0, : shared.X_test.shape[1]]) > 0
    return {
        "fit_seconds": copy.wall + wall,
        "fit_cpu_seconds": copy.cpu + cpu,
        "solver_seconds": wall,
        "solver_cpu_seconds": cpu,
        "passes": None,
        "eps": eps,
        "trace_seconds": [wall],
        "trace_cpu_seconds": [cpu],
        "trace_objective": [value],
        "trace_passes": [None],
        "reported_objective": None,
        "gap": None,
        "data_mb": before,
        "peak_mb": peak_mb(),
        "objective": value,
        "accuracy": float(np.mean(guesses == shared.y_test)),
    }


def fit_partwise(
    data: str | None, l2: float, limit: int | None, solver: str, tol: float, n_jobs: int, dataset: str = "mnist"
) -> Record:
    """Train a MaxentClassifier."""
    from partwise import MaxentClassifier

    shared = load(data, limit, dataset)
    before = peak_mb()
    model = MaxentClassifier(
        loss="log", C=1.0 / l2, fit_intercept=False, solver=solver, tol=tol, n_jobs=n_jobs, random_state=0
    )
    with clock() as fit, models.watched() as watch:
        model.fit(shared.X_train, shared.y_train)
    peak = peak_mb()
    with clock() as predict:
        accuracy = model.score(shared.X_test, shared.y_test)
    return {
        **models.history_of(model.result_, watch),
        "fit_seconds": fit.wall,
        "fit_cpu_seconds": fit.cpu,
        "predict_seconds": predict.wall,
        "data_mb": before,
        "peak_mb": peak,
        "objective": multiclass_objective(shared.X_train, shared.y_train, model.coef_, l2),
        "accuracy": float(accuracy),
    }
