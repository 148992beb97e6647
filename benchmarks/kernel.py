"""Is an RBF-kernel chain better than a linear chain? Handwritten words (OCR letters).

Train on fold 0, test on the other nine. C (and gamma) are chosen by the error on a fifth of fold 0, then the chain is
trained on all of it. Both chains use the hinge loss; gaps are certified. Memory is the peak of the whole process.
"""

from __future__ import annotations

import itertools
from typing import Any

import click

from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, save

GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "linear": {"C": (0.03, 0.1, 0.3, 1.0)},
    "rbf": {"C": (1.0, 3.0, 10.0), "gamma": (0.03, 0.06, 0.12)},
}
LIMIT_MB = 4000.0
_QUICK = 60  # words to train on, and words to test on


@click.command("kernel", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--tol", default=0.05, show_default=True, help="Relative gap to train to.")
@click.option("--systems", default="", help="Only these systems, with commas.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(data: str | None, json_file: str | None, tol: float, systems: str, quick: bool) -> None:
    records: list[Record] = []
    for system in choose(systems, list(GRIDS)):
        head = {"question": "kernel", "dataset": "ocr-letters", "system": system, "part": quick, **machine()}
        try:
            found = run_apart(
                "benchmarks.kernel:run", 1, data=data, system=system, tol=tol, part=_QUICK if quick else None
            )
        except SystemFailed as error:
            found = {"error": str(error)}
        records.append({**head, **found})
    show(records, quick)
    good = {record["system"]: record for record in records if "error" not in record}
    if len(good) == len(GRIDS) and not quick:
        linear, rbf = good["linear"], good["rbf"]
        for holds, text in (
            (rbf["test_error"] < linear["test_error"], "the RBF chain has the smaller test error"),
            (rbf["peak_mb"] < LIMIT_MB, f"in less than {LIMIT_MB:g} MB"),
            (rbf["gap"] <= tol, f"with a certified gap of at most {tol:g}"),
        ):
            click.echo(f"{'yes' if holds else 'NO '}  {text}")
    save(json_file, records)


def run(data: str | None, system: str, tol: float, part: int | None) -> Record:
    """Choose C (and gamma) on a fifth of fold 0, train on all of it, test on the other folds."""
    from partwise import datasets

    full = datasets.ocr_letters(data, test_folds=range(1, 10))
    X, y, X_test, y_test = full.X_train[:part], full.y_train[:part], full.X_test[:part], full.y_test[:part]
    held = [k % 5 == 0 for k in range(len(X))]
    dev_X, dev_y = _take(X, held), _take(y, held)
    fit_X, fit_y = _take(X, [not h for h in held]), _take(y, [not h for h in held])
    grid = GRIDS[system]
    tried = []
    with clock() as choosing:
        for values in itertools.product(*grid.values()):
            options = dict(zip(grid, values, strict=True))
            tried.append((error_rate(train(system, options, tol, fit_X, fit_y), dev_X, dev_y), options))
    best = min(tried, key=lambda pair: pair[0])
    with clock() as fitting:
        model = train(system, best[1], tol, X, y)
    with clock() as testing:
        error = error_rate(model, X_test, y_test)
    result = model.result_
    return {
        **best[1],
        "words": len(X),
        "test_words": len(X_test),
        "solver": result.solver,
        "status": result.status,
        "tried": [{"held_out_error": rate, **options} for rate, options in tried],
        "held_out_error": best[0],
        "test_error": error,
        "objective": result.primal,
        "gap": result.relative_gap,
        "passes": result.passes,
        "choose_cpu_seconds": choosing.cpu,
        "fit_cpu_seconds": fitting.cpu,
        "test_cpu_seconds": testing.cpu,
        "peak_mb": peak_mb(),
    }


def train(system: str, options: dict[str, float], tol: float, X: list[Any], y: list[Any]) -> Any:
    """Train a chain with the hinge loss."""
    import warnings

    from partwise import ConvergenceWarning, SequenceTagger

    kernel = {} if system == "linear" else {"kernel": system}
    with warnings.catch_warnings():
        # Ignore warnings about convergence: the record has the gap that was reached.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SequenceTagger(loss="hinge", tol=tol, max_passes=400, random_state=0, **kernel, **options).fit(X, y)


def error_rate(model: Any, X: list[Any], y: list[Any]) -> float:
    """Return the share of wrong letters."""
    pairs = [(a, b) for said, true in zip(model.predict(X), y, strict=True) for a, b in zip(said, true, strict=True)]
    return sum(a != b for a, b in pairs) / len(pairs)


def _take(items: list[Any], wanted: list[bool]) -> list[Any]:
    return [item for item, want in zip(items, wanted, strict=True) if want]


def show(records: list[Record], quick: bool) -> None:
    """Print one row per system."""
    columns = (
        ("C", "C", "g"),
        ("gamma", "gamma", "g"),
        ("held_out_error", "held-out error", ".4f"),
        ("test_error", "test error", ".4f"),
        ("gap", "certified gap", ".1e"),
        ("solver", "solver", ""),
        ("passes", "passes", ".4g"),
        ("fit_cpu_seconds", "fit CPU s", ".3g"),
        ("peak_mb", "peak MB", ".0f"),
    )
    rows = [
        [record["system"], *(format(record[name], form) if name in record else "-" for name, _, form in columns)]
        for record in records
    ]
    failed = [f"{record['system']} failed: {record['error']}" for record in records if "error" in record]
    title = f"OCR letters{' (part)' if quick else ''}, hinge, trained on fold 0"
    print_table(title, ["system", *(heading for _, heading, _ in columns)], rows, "\n".join(failed))
