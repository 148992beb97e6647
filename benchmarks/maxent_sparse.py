"""How long does logistic regression under an L1 or elastic-net penalty take, next to saga and LIBLINEAR's -s 6?

a9a (two labels, 0/1 features) and 20news (20 labels, counts with rows of length 1), without intercept:

    C sum of log losses + l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2

divided by C; scikit-learn's C and l1_ratio mean the same. LIBLINEAR has only the L1 penalty, and solves 20 problems of
one label against the rest for 20 labels. Its time for these at its own tolerance (0.01) is shown next to the time of
MaxentClassifier on the same 20 problems, to 1e-3 above LIBLINEAR's objectives, and on the multinomial problem.

CPU seconds of the whole fit (LIBLINEAR: with its copy of the matrix), medians of --repeat runs in turn, until the
objective is at most 1 + --within times that of an accurate partwise run: ours by its certificates, LIBLINEAR's by the
largest tolerance 1, 1/2, 1/4, ... that gets there, saga's by the smallest number of epochs 1, 2, 4, ... that does.
Systems that are not there after --patience CPU seconds are stopped ("> so many").
"""

from __future__ import annotations

import json
import time
import warnings
from statistics import median
from typing import Any

import click
import numpy as np
from scipy.special import logsumexp

from benchmarks.maxent import load
from benchmarks.report import print_table


def objective(X: Any, y: Any, coef: Any, C: float, ratio: float) -> float:
    """Evaluate the objective of weights (1 or labels x inputs), without using partwise."""
    scores = np.asarray(X @ coef.T)
    if len(coef) == 1:
        scores = np.column_stack([np.zeros(len(y)), scores[:, 0]])
    losses = float((logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).sum())
    return losses + (ratio * float(np.abs(coef).sum()) + (1 - ratio) / 2 * float((coef**2).sum())) / C


def rows_of(data: str | None, dataset: str, limit: int | None) -> tuple[Any, Any]:
    """Return the inputs, and labels from 0; rows of 20news have length 1."""
    found = load(data, limit, dataset)
    X, y = found.X_train, np.asarray(found.y_train)
    if dataset == "20news":
        from sklearn.preprocessing import normalize

        X = normalize(X)
    return X, y


def ours(X: Any, y: Any, C: float, ratio: float, target: float, within: float) -> tuple[float | None, Any, str]:
    """Return partwise's CPU seconds to the target, its weights, and its solver."""
    from partwise import ConvergenceWarning, MaxentClassifier

    reached: list[float] = []
    begin = time.process_time()

    def watch(progress: Any) -> bool:
        if progress.certificate is not None and progress.certificate.primal <= target:
            reached.append(time.process_time() - begin)
        return bool(reached)

    model = MaxentClassifier(C=C, penalty="elasticnet", l1_ratio=ratio, fit_intercept=False, tol=within / 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(callbacks=watch).fit(X, y)
    return (reached[0] if reached else None), model.coef_, model.result_.solver


def optimum(X: Any, y: Any, C: float, ratio: float, seconds: float) -> float:
    """Return the objective of a run that stops at a relative gap of 1e-6 or after so many seconds (long if l2 = 0)."""
    from partwise import ConvergenceWarning, MaxentClassifier

    model = MaxentClassifier(C=C, penalty="elasticnet", l1_ratio=ratio, fit_intercept=False, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_seconds=seconds).fit(X, y)
    return objective(X, y, model.coef_, C, ratio)


def saga(X: Any, y: Any, C: float, ratio: float, target: float, patience: float) -> tuple[float, bool]:
    """Return the CPU seconds of saga's shortest run that reaches the target, and whether one does."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    epochs = 1
    while True:
        model = LogisticRegression(
            C=C, l1_ratio=ratio, solver="saga", fit_intercept=False, max_iter=epochs, tol=1e-12, random_state=0
        )
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        seconds = time.process_time() - begin
        if objective(X, y, model.coef_, C, ratio) <= target:
            return seconds, True
        if seconds > patience or epochs > 1 << 16:
            return seconds, False
        epochs *= 2


def liblinear(X: Any, y: Any, C: float, target: float, patience: float) -> tuple[float, bool]:
    """Return the CPU seconds of LIBLINEAR's -s 6 (two labels) to the target, and whether it reaches it."""
    from liblinear.liblinearutil import parameter, problem, train

    begin = time.process_time()
    prepared = problem(np.where(y == 1, 1.0, -1.0), X)
    copying, eps = time.process_time() - begin, 1.0
    while True:
        begin = time.process_time()
        model = train(prepared, parameter(f"-s 6 -c {C} -e {eps} -q"))
        seconds = time.process_time() - begin
        coef = np.array(model.get_decfun()[0])[None, : X.shape[1]]
        if objective(X, y, coef, C, 1.0) <= target:
            return copying + seconds, True
        if seconds > patience or eps < 1e-10:
            return copying + seconds, False
        eps *= 0.5


def one_against_the_rest(X: Any, y: Any, C: float) -> tuple[float, float]:
    """Return the CPU seconds on each label against the others: LIBLINEAR's at its own tolerance, MaxentClassifier's.

    MaxentClassifier ends 1e-3 above LIBLINEAR's objective, or below it.
    """
    from liblinear.liblinearutil import parameter, problem, train

    theirs = mine = 0.0
    for label in range(int(y.max()) + 1):
        own = (y == label).astype(np.int64)
        begin = time.process_time()
        prepared = problem(np.where(own == 1, 1.0, -1.0), X)
        model = train(prepared, parameter(f"-s 6 -c {C} -q"))
        theirs += time.process_time() - begin
        value = objective(X, own, np.array(model.get_decfun()[0])[None, : X.shape[1]], C, 1.0)
        seconds, _, _ = ours(X, own, C, 1.0, 1.001 * value, 1e-3)
        mine += seconds or 0.0
    return theirs, mine


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


@click.command("maxent-sparse", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--datasets", default="a9a,20news", show_default=True, help="With commas.")
@click.option("--C", "strengths", default="1", show_default=True, help="Values of C, with commas.")
@click.option("--ratios", default="1,0.5", show_default=True, help="Values of l1_ratio, with commas.")
@click.option("--within", default=1e-3, show_default=True, help="Target: objective <= (1 + this) * optimum.")
@click.option("--accurate", default=60.0, show_default=True, help="Seconds of the run that finds the optimum.")
@click.option("--patience", default=30.0, show_default=True, help="CPU seconds of a run of a rival.")
@click.option("--repeat", default=3, show_default=True, help="Runs of each system; the median is shown.")
@click.option("--rest/--no-rest", default=True, show_default=True, help="LIBLINEAR's own problems on 20news, too.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(
    data: str | None,
    json_file: str | None,
    datasets: str,
    strengths: str,
    ratios: str,
    within: float,
    accurate: float,
    patience: float,
    repeat: int,
    rest: bool,
    quick: bool,
) -> None:
    records: list[dict[str, Any]] = []
    for dataset in datasets.split(","):
        X, y = rows_of(data, dataset, 500 if quick else None)
        for C, ratio in [(float(C), float(ratio)) for C in strengths.split(",") for ratio in ratios.split(",")]:
            best = optimum(X, y, C, ratio, 2.0 if quick else accurate)
            target = (1.0 + within) * best
            head = {"dataset": dataset, "C": C, "l1_ratio": ratio, "optimum": best, "within": within}

            def add(system: str, runs: list[tuple[float | None, bool]], head: dict[str, Any] = head) -> None:
                seconds = [found for found, _ in runs if found is not None]
                there = bool(seconds) and all(reached for _, reached in runs)
                shown = None if not seconds else median(seconds) if there else f"> {max(seconds):.3g}"
                records.append({**head, "system": system, "cpu_seconds": shown})

            two = ratio == 1.0 and int(y.max()) == 1
            mine, sagas, linears = [], [], []
            for _ in range(repeat):  # systems take turns, so that a slow phase of the machine affects all of them
                mine.append(ours(X, y, C, ratio, target, within))
                sagas.append(saga(X, y, C, ratio, target, patience))
                linears += [liblinear(X, y, C, target, patience)] if two else []
            add(f"partwise, {mine[0][2]}", [(seconds, seconds is not None) for seconds, _, _ in mine])
            records[-1]["n_nonzero"] = int(np.count_nonzero(mine[0][1]))
            add("sklearn, saga", sagas)
            if two:
                add("liblinear -s 6", linears)
            elif ratio == 1.0 and rest:
                theirs, own = one_against_the_rest(X, y, C)
                add("liblinear -s 6, its own 20 problems", [(theirs, True)])
                add("partwise, these 20 problems", [(own, True)])
    columns = ("dataset", "C", "l1_ratio", "system", "cpu_seconds", "n_nonzero", "optimum")
    rows = [[_text(record.get(name)) for name in columns] for record in records]
    print_table("Sparse logistic regression", columns, rows, f"CPU seconds to {within:g} above the optimum")
    if json_file:
        with open(json_file, "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
