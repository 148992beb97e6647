"""Do edges improve accuracy? Snakes, small grids with loops: labelled cell by cell, and as graphs with exact inference.

The classifier and the graphs see the same features of cells. "graph": every cell may have all eleven labels; grids
whose junction tree exceeds the memory limit are refused in training and testing. "graph, kinds": a cell may have the
labels that cells of its colour have in the training data (background is background), which leaves narrow trees: all
grids. Accuracies are shares of cells; the classifier is compared on the test grids that the graphs can label.
"""

from __future__ import annotations

from typing import Any

import click

from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, save

SYSTEMS = ("per cell", "graph", "graph, kinds")
POINTS = 0.10
MINUTES, LIMIT_MB = 15.0, 4000.0
_QUICK = 12  # grids to train on, and to test on


@click.command("snakes", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--c", "strength", default=1.0, show_default=True, help="C, the inverse of the penalty's strength.")
@click.option("--tol", default=1e-3, show_default=True, help="Relative gap to train to.")
@click.option("--memory-limit", default=3e8, show_default=True, help="Bytes that the tables of one grid may take.")
@click.option("--threads", default=2, show_default=True, help="Threads.")
@click.option("--systems", default="", help='Only these of "per cell", "graph", "graph, kinds": p, g, k, with commas.')
@click.option("--quick", is_flag=True, help="A small part of the data and narrow grids, to see that all runs.")
def command(
    data: str | None,
    json_file: str | None,
    strength: float,
    tol: float,
    memory_limit: float,
    threads: int,
    systems: str,
    quick: bool,
) -> None:
    short = dict(zip("pgk", SYSTEMS, strict=True))
    records: list[Record] = []
    for letter in choose(systems, list(short)):
        system = short[letter]
        head = {"question": "snakes", "dataset": "snakes", "system": system, "part": quick, **machine()}
        try:
            found = run_apart(
                "benchmarks.snakes:run",
                threads,
                data=data,
                system=system,
                C=strength,
                tol=tol,
                memory_limit=min(memory_limit, 3e7) if quick else memory_limit,
                n_jobs=threads,
                part=_QUICK if quick else None,
            )
        except SystemFailed as error:
            found = {"error": str(error)}
        records.append({**head, **found})
    show(records)
    good = {record["system"]: record for record in records if "error" not in record}
    for name in SYSTEMS[1:]:
        if "per cell" in good and name in good and not quick:
            check(good["per cell"], good[name], tol)
    save(json_file, records)


def check(cells: Record, graphs: Record, tol: float) -> None:
    """Print whether each expectation about the graphs holds."""
    used = [i for i, fits in enumerate(graphs["test_fits"]) if fits]
    same = sum(cells["right"][i] for i in used) / sum(cells["cells"][i] for i in used)
    gain = graphs["accuracy"] - same
    for holds, text in (
        (gain >= POINTS, f"{graphs['system']}: {100 * gain:.1f} points above cell by cell ({same:.4f}), same grids"),
        (graphs["gap"] <= tol, f"with a certified gap of at most {tol:g}"),
        (graphs["fit_seconds"] < 60 * MINUTES, f"trained in less than {MINUTES:g} minutes"),
        (graphs["peak_mb"] < LIMIT_MB, f"in less than {LIMIT_MB:g} MB"),
    ):
        click.echo(f"{'yes' if holds else 'NO '}  {text}")


def run(
    data: str | None, system: str, C: float, tol: float, memory_limit: float, n_jobs: int, part: int | None
) -> Record:
    """Train on the grids within the memory limit, and test on those within it."""
    from partwise import datasets

    graphs = datasets.snakes(data)
    X, y = graphs.X_train[:part], graphs.y_train[:part]
    X_test, y_test = graphs.X_test[:part], graphs.y_test[:part]
    train_fits, test_fits = [True] * len(X), [True] * len(X_test)
    refusal = None
    if system == "graph":
        n_labels = len({label for own in y for label in own.tolist()})
        train_fits, refusal = within(X, n_labels, memory_limit)
        test_fits, _ = within(X_test, n_labels, memory_limit)
    X, y = _take(X, train_fits), _take(y, train_fits)
    X_test, y_test = _take(X_test, test_fits), _take(y_test, test_fits)
    with clock() as fitting:
        model, predict = train(system, X, y, C=C, tol=tol, memory_limit=memory_limit, n_jobs=n_jobs)
    with clock() as testing:
        answers = predict(X_test)
    right = [int((said == true).sum()) for said, true in zip(answers, y_test, strict=True)]
    result = model.result_
    return {
        "C": C,
        "train_grids": len(X),
        "test_grids": len(X_test),
        "train_refused": train_fits.count(False),
        "test_refused": test_fits.count(False),
        "test_fits": test_fits,
        "refusal": refusal,
        "right": right,
        "cells": [len(own) for own in y_test],
        "accuracy": sum(right) / sum(map(len, y_test)),
        "solver": result.solver,
        "status": result.status,
        "objective": result.primal,
        "gap": result.relative_gap,
        "passes": result.passes,
        "fit_seconds": fitting.wall,
        "fit_cpu_seconds": fitting.cpu,
        "test_cpu_seconds": testing.cpu,
        "peak_mb": peak_mb(),
    }


def within(X: list[Any], n_labels: int, memory_limit: float) -> tuple[list[bool], str | None]:
    """Return which grids are within the memory limit, and the message of the last refusal."""
    from partwise.structures import graph

    structure = graph([([n_labels] * len(x[0]), x[1].tolist()) for x in X], memory_limit)
    fits, message = [], None
    for i in range(len(X)):
        try:
            structure.width(i)
            fits.append(True)
        except ValueError as error:
            fits.append(False)
            message = str(error)
    return fits, message


def train(system: str, X: list[Any], y: list[Any], **options: Any) -> tuple[Any, Any]:
    """Return the trained model, and a function that labels grids."""
    import warnings

    import numpy as np

    from partwise import ConvergenceWarning, GraphLabeler, MaxentClassifier
    from partwise.datasets.arrays import OWN_COLOUR

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record has the gap that was reached
        if system == "per cell":
            del options["memory_limit"]
            cells = MaxentClassifier(**options).fit(np.concatenate([x[0] for x in X]), np.concatenate(y))
            return cells, lambda grids: [cells.predict(x[0]) for x in grids]
        kinds = list(OWN_COLOUR) if "kinds" in system else None
        labeler = GraphLabeler(kind_features=kinds, solver="eg", **options).fit(X, y)
        return labeler, lambda grids: [np.array(own) for own in labeler.predict(grids)]


def _take(items: list[Any], wanted: list[bool]) -> list[Any]:
    return [item for item, want in zip(items, wanted, strict=True) if want]


def show(records: list[Record]) -> None:
    """Print one row per system."""
    columns = (
        ("train_grids", "train", "d"),
        ("train_refused", "refused", "d"),
        ("test_grids", "test", "d"),
        ("test_refused", "refused", "d"),
        ("accuracy", "test accuracy", ".4f"),
        ("gap", "certified gap", ".1e"),
        ("solver", "solver", ""),
        ("passes", "passes", ".4g"),
        ("fit_seconds", "fit s", ".3g"),
        ("fit_cpu_seconds", "fit CPU s", ".3g"),
        ("peak_mb", "peak MB", ".0f"),
    )
    rows = [
        [record["system"], *(format(record[name], form) if name in record else "-" for name, _, form in columns)]
        for record in records
    ]
    notes = [f"{record['system']} failed: {record['error']}" for record in records if "error" in record]
    notes += [f"refused: {record['refusal']}" for record in records if record.get("refusal")]
    print_table("snakes", ["system", *(heading for _, heading, _ in columns)], rows, "\n".join(notes))
