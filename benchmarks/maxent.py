"""How long does multinomial logistic regression take, next to scikit-learn's solvers and LIBLINEAR?

MNIST (pixels between 0 and 1), 20news (counts), and a9a and w8a with two labels, where LIBLINEAR's -s 0 and -s 7 have
the same objective. All minimise l2/2 |w|^2 + sum of log losses without intercept (scikit-learn's C is 1/l2), in
float64. The optimum is the lowest objective of all systems and of an accurate partwise run, which is made first.

How the time to the target is found (column "how found"): partwise's certificates of its one run give it, and their time
is included ("certified"). scikit-learn's solvers are watched: in one fit the objective is computed after every
iteration, with the clock stopped, until the target ("watched"); then --repeat plain fits run with that number of
iterations ("plain fit" if one is at the target too), and the fastest of all counts. LIBLINEAR's stopping tolerance is
divided by sqrt(2) from 1024 on until it reaches the target; only the run that does is counted, the fastest of one more
than --repeat. A rival that has not reached the target when its CPU time is --patience times ours (and 2 s at least) is
"stopped", and the table says "> so many s". scikit-learn's newton-cholesky is left out where its Hessian, (labels x
inputs)^2 numbers, has more than 4 GB.

What is timed: "fit" is from a matrix in memory to a model (LIBLINEAR: its own copy of the matrix and training;
partwise: checks, its own copy, training); "solver" is without that copy (LIBLINEAR: `train` on a ready problem;
partwise: `solve` on a ready problem; scikit-learn: all of `fit`, which has no such copy).
"""

from __future__ import annotations

import warnings
from typing import Any

import click
import numpy as np

from benchmarks import models
from benchmarks.measure import SystemFailed, clock, first_within, peak_mb, run_apart
from benchmarks.objective import multiclass_objective
from benchmarks.questions import choose, common_options
from benchmarks.report import Record, conclude, machine, save, write_json

_QUICK = 3000  # rows
_TIMES_OURS = 12.0  # stop a rival after this many times our CPU time to the target
_LARGEST_HESSIAN = 4e9  # bytes

# Data set: default values of l2.
DATA = {"mnist": "10,1", "20news": "1", "a9a": "1", "w8a": "1"}
_TWO_LABELS = {"a9a", "w8a"}
# System: (function of this module, its options).
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
# By default "auto" runs, which chooses one of these solvers; these run only when they are named.
_ONLY_WHEN_NAMED = {"partwise-lbfgs", "partwise-eg", "partwise-sdca"}


@click.command("maxent", help=__doc__)
@common_options(default_l2="")
@click.option("--datasets", default="", help=f"Of {', '.join(DATA)}, with commas [all].")
@click.option("--patience", default=_TIMES_OURS, show_default=True, help="Longest run of a rival, times our CPU time.")
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
        runs: list[Record] = []
        for name in chosen:
            head = {"question": "maxent", "system": name, "threads": threads, "l2": strength, "dataset": dataset}
            function, options = SYSTEMS[name]
            if function == "fit_partwise":
                extra: dict[str, Any] = {"tol": within / 10, "n_jobs": threads}
                rounds = repeat
            else:
                wait = max(2.0, patience * our_seconds([*runs, reference], reference["objective"], within))
                extra = {"optimum": reference["objective"], "within": within, "repeat": repeat, "patience": wait}
                rounds = 1  # fit_sklearn and fit_liblinear repeat their runs themselves
            if options["solver"] == "newton-cholesky" and 8.0 * reference["coefficients"] ** 2 > _LARGEST_HESSIAN:
                runs.append({**head, "skipped": f"its Hessian has {reference['coefficients']}^2 numbers"})
                continue
            for _ in range(rounds):
                try:
                    record = run_apart(f"benchmarks.maxent:{function}", threads, **options, **extra, **common)
                except SystemFailed as error:
                    record = {"error": str(error)}
                runs.append({**head, **machine(), **record})
        title = f"Multinomial logistic regression, {dataset}{' (part)' if quick else ''}, l2 = {strength:g}"
        conclude(title, runs, reference, within, ours="partwise-auto")
        records += runs
        if json_file:  # keep the finished records, whatever happens later
            write_json(json_file, records)
    save(json_file, records)


def our_seconds(runs: list[Record], optimum: float, within: float) -> float:
    """Return the CPU seconds to the target of the first partwise run with a time (the reference run has no system)."""
    for run in runs:
        if not run.get("system", "partwise").startswith("partwise"):
            continue
        at = first_within(run.get("trace_objective", []), (1.0 + within) * optimum)
        if at is not None and run["trace_cpu_seconds"][at] is not None:
            return float(run["trace_cpu_seconds"][at])
    return 0.0


def load(data: str | None, limit: int | None, dataset: str) -> Any:
    """Load the data that all systems get; labels are numbers from 0."""
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
    # w8a has no test data here: its accuracy is measured on the training data.
    parts = load_svmlight_files(paths) if len(paths) > 1 else (*load_svmlight_file(paths[0]),) * 2
    X_train, y_train, X_test, y_test = parts
    labels = np.unique(y_train)
    return X_train, np.searchsorted(labels, y_train), X_test, np.searchsorted(labels, y_test)


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
    """Watch a fit up to the target, then time plain fits with the same number of iterations."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    from benchmarks.watch import Watch, watch_fit

    shared = load(data, limit, dataset)
    before = peak_mb()

    def value(weights: Any) -> float:
        return multiclass_objective(shared.X_train, shared.y_train, weights, l2)

    options = {"C": 1.0 / l2, "fit_intercept": False, "solver": solver, "tol": 1e-10, "random_state": 0}
    watch = Watch(value, (1.0 + within) * optimum, patience)
    watch_fit(options, shared.X_train, shared.y_train, watch)
    iterations = len(watch.objectives)
    found = [(watch.cpu, watch.wall)]
    weights = watch.weights if watch.weights is not None else _zeros(shared)
    objective = value(weights)
    how = "stopped"
    if watch.reached:
        how = "watched"
        for _ in range(repeat):
            model = LogisticRegression(**options, max_iter=iterations)
            with warnings.catch_warnings(), clock() as fit:
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(shared.X_train, shared.y_train)
            # In an unwatched run sag and saga visit the examples in another order, and may just miss the target.
            if value(model.coef_) <= watch.target:
                found.append((fit.cpu, fit.wall))
                how = "plain fit"
    cpu, wall = min(found)
    return {
        "how": how,
        "fit_seconds": wall,
        "fit_cpu_seconds": cpu,
        "solver_seconds": wall,
        "solver_cpu_seconds": cpu,
        "passes": float(iterations),
        "trace_seconds": [wall],
        "trace_cpu_seconds": [cpu],
        "trace_objective": [objective],
        "trace_passes": [float(iterations)],
        "iteration_objectives": watch.objectives,
        "reported_objective": None,
        "gap": None,
        "data_mb": before,
        "peak_mb": peak_mb(),
        "objective": objective,
        "more_than_seconds": None if watch.reached else wall,
        "more_than_cpu_seconds": None if watch.reached else cpu,
        "accuracy": _accuracy(shared, weights),
    }


def _zeros(shared: Any) -> Any:
    labels = int(shared.y_train.max()) + 1
    return np.zeros((1 if labels == 2 else labels, shared.X_train.shape[1]))


def _accuracy(shared: Any, weights: Any) -> float:
    """Return the test accuracy of weights (labels x inputs, or 1 x inputs for two labels)."""
    inputs = min(weights.shape[1], shared.X_test.shape[1])
    scores = np.asarray(shared.X_test[:, :inputs] @ weights[:, :inputs].T)
    guesses = scores[:, 0] > 0 if len(weights) == 1 else scores.argmax(axis=1)
    return float(np.mean(guesses == shared.y_test))


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
    """Train with the largest stopping tolerance, of 1024, 1024/sqrt(2), 512 ..., that reaches the target."""
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

    eps = 1024.0
    weights, value, wall, cpu = run(eps)
    while value > (1.0 + within) * optimum and cpu <= patience and eps > 1e-12:
        eps *= 0.5**0.5
        weights, value, wall, cpu = run(eps)
    reached = value <= (1.0 + within) * optimum
    for _ in range(repeat if reached else 0):
        _, _, *again = run(eps)
        cpu, wall = min((cpu, wall), (again[1], again[0]))
    return {
        "how": f"tolerance {eps:.2g}",
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
        "more_than_seconds": None if reached else wall,
        "more_than_cpu_seconds": None if reached else cpu,
        "accuracy": _accuracy(shared, weights),
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
        "how": f"{model.result_.solver}, certified",
        "coefficients": int(model.coef_.size),
        "fit_seconds": fit.wall,
        "fit_cpu_seconds": fit.cpu,
        "predict_seconds": predict.wall,
        "data_mb": before,
        "peak_mb": peak,
        "objective": multiclass_objective(shared.X_train, shared.y_train, model.coef_, l2),
        "accuracy": float(accuracy),
    }
