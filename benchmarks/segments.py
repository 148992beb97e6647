"""Are segments better than chains? SegmentTagger and SequenceTagger with the same word features, on chunks and names.

Scores: C, and for segments which borders have weights, are chosen on held-out sentences (CoNLL-2000: every tenth
training sentence; WNUT17: its development file), in the same way for both; then both are trained on all and tested.
Passes: CPU seconds of one pass of `eg` and of one evaluation of `lbfgs` over the CoNLL-2000 sentences whose chunks have
at most 8 tokens, with max_length 8, and their ratios to those of the chain; medians of runs in alternation.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, save

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "chain": {"C": (0.5, 2.0)},
    "segments": {"C": (0.5, 2.0), "borders": ("none", "both")},
}
DATA_SETS = {"conll2000": "chunk", "wnut17": "ner"}
SOLVERS = ("eg", "lbfgs")
LONGEST, MOST_TIMES = 8, 6.0
_QUICK = 150  # sentences


@click.command("segments", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--tol", default=0.01, show_default=True, help="Relative gap to train to.")
@click.option("--parts", default="", help="Only these parts (conll2000, wnut17, passes), with commas.")
@click.option("--repeat", default=5, show_default=True, help="Runs of each measurement of passes.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(data: str | None, json_file: str | None, tol: float, parts: str, repeat: int, quick: bool) -> None:
    records: list[Record] = []
    part = _QUICK if quick else None
    chosen = choose(parts, [*DATA_SETS, "passes"], "--parts")
    for name in chosen:
        head = {"question": "segments", "part": quick, **machine()}
        systems: tuple[str | None, ...] = (None,) if name == "passes" else tuple(GRIDS)
        for system in systems:
            options: dict[str, Any] = {"data": data, "sentences": part}
            if system is None:
                function, own = "benchmarks.segments:passes", {"repeat": repeat}
            else:
                function, own = "benchmarks.segments:scores", {"name": name, "system": system, "tol": tol}
            try:
                found = run_apart(function, 1, **options, **own)
            except SystemFailed as error:
                found = {"error": str(error)}
            records.append({**head, "dataset": name, "system": system or "both", **found})
    show(records)
    save(json_file, records)


def load(name: str, data: str | None, sentences: int | None) -> dict[str, Any]:
    """Return (X, y) of "train", "test", "dev" (to choose C) and "rest" (training sentences that are not in "dev")."""
    import os

    from partwise.io import CodedSequences, read_columns

    folder = Path(data or os.environ.get("PARTWISE_DATA", ""), name)
    files = {"train": "train.txt.gz", "test": "test.txt.gz"}
    if name == "wnut17":
        files = {"train": "train.conll", "dev": "dev.conll", "test": "test.conll"}
    found: dict[str, Any] = {}
    for part, file in files.items():
        table = read_columns(folder / file)
        table = table if sentences is None else table.take(np.arange(min(sentences, len(table))))
        found[part] = table.select(list(range(table.n_columns - 1))), CodedSequences.of(table, -1)
    X, y = found["train"]
    held = np.arange(len(X)) % 10 == 9 if "dev" not in found else np.zeros(len(X), dtype=bool)
    found["rest"] = _take(X, y, np.flatnonzero(~held))
    found.setdefault("dev", _take(X, y, np.flatnonzero(held)))
    return found


def _take(X: Any, y: Any, which: Any) -> tuple[Any, Any]:
    return X.take(which), y.take(which)


def make(system: str, template: str, **options: Any) -> Any:
    """Make an estimator that is not fitted."""
    from partwise import SegmentTagger, SequenceTagger

    cls = SequenceTagger if system == "chain" else SegmentTagger
    return cls(template=template, n_jobs=1, random_state=0, **options)


def scores(data: str | None, sentences: int | None, name: str, system: str, tol: float) -> Record:
    """Choose parameters on held-out sentences, train on all, test."""
    from partwise.metrics import chunk_f1

    sets, grid = load(name, data, sentences), GRIDS[system]
    tried = []
    for values in itertools.product(*grid.values()):
        options = dict(zip(grid, values, strict=True))
        model = make(system, DATA_SETS[name], tol=tol, **options).fit(*sets["rest"])
        tried.append((chunk_f1(sets["dev"][1], model.predict(sets["dev"][0])), options))
    best = max(tried, key=lambda pair: pair[0])
    with clock() as fitting:
        model = make(system, DATA_SETS[name], tol=tol, **best[1]).fit(*sets["train"])
    with clock() as testing:
        guess = model.predict(sets["test"][0])
    return {
        **best[1],
        "tried": [{"held_out_f1": f1, **options} for f1, options in tried],
        "held_out_f1": best[0],
        "f1": chunk_f1(sets["test"][1], guess),
        "max_length": getattr(model, "max_length_", None),
        "weights": len(model.coef_),
        "gap": model.result_.relative_gap,
        "passes": model.result_.passes,
        "fit_cpu_seconds": fitting.cpu,
        "predict_cpu_seconds": testing.cpu,
        "peak_mb": peak_mb(),
    }


def passes(data: str | None, sentences: int | None, repeat: int) -> Record:
    """Return CPU seconds of a pass by solver and system, and their ratios to the chain's."""
    from partwise.metrics import chunk_spans

    X, y = load("conll2000", data, sentences)["train"]
    short = [max((end - begin for _, begin, end in chunk_spans(labels)), default=0) <= LONGEST for labels in y]
    X, y = _take(X, y, np.flatnonzero(short))
    systems: dict[str, tuple[str, dict[str, Any]]] = {
        "chain": ("chain", {}),
        "segments, no borders": ("segments", {"borders": "none", "max_length": LONGEST}),
        "segments, both borders": ("segments", {"borders": "both", "max_length": LONGEST}),
    }
    found: dict[tuple[str, str], list[float]] = {}
    for system, options in systems.values():  # first calls import modules and allocate memory: not timed
        _pass_seconds(system, options, "eg", *_take(X, y, np.arange(min(20, len(X)))))
    for _ in range(repeat):
        for solver, (name, (system, options)) in itertools.product(SOLVERS, systems.items()):
            found.setdefault((solver, name), []).append(_pass_seconds(system, options, solver, X, y))
    seconds = {key: median(values) for key, values in found.items()}
    return {
        "sentences": len(X),
        "max_length": LONGEST,
        "pass_cpu_seconds": {f"{solver}, {name}": value for (solver, name), value in seconds.items()},
        "times_chain": {
            f"{solver}, {name}": value / seconds[solver, "chain"]
            for (solver, name), value in seconds.items()
            if name != "chain"
        },
    }


def _pass_seconds(system: str, options: dict[str, Any], solver: str, X: Any, y: Any) -> float:
    """Return the CPU seconds of a pass: the difference of runs of 2 and 8 passes, whose set-ups are the same."""
    import warnings

    from partwise import ConvergenceWarning

    times = []
    for n in (2, 8):
        with warnings.catch_warnings(), clock() as fitting:
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(system, "chunk", solver=solver, tol=1e-9, max_passes=n, **options).fit(X, y)
        times.append((model.result_.passes, fitting.cpu))
    (few, first), (many, last) = times
    return (last - first) / (many - few)


def show(records: list[Record]) -> None:
    """Print a row per data set and system, then the ratios of passes."""
    columns = (
        ("C", "C", "g"),
        ("borders", "borders", ""),
        ("held_out_f1", "held-out F1", ".4f"),
        ("f1", "test F1", ".4f"),
        ("gap", "certified gap", ".1e"),
        ("passes", "passes", ".4g"),
        ("fit_cpu_seconds", "fit CPU s", ".3g"),
        ("predict_cpu_seconds", "predict CPU s", ".3g"),
        ("peak_mb", "peak MB", ".0f"),
    )
    rows = [
        [
            r["dataset"],
            r["system"],
            *(format(r[name], form) if r.get(name) is not None else "-" for name, _, form in columns),
        ]
        for r in records
        if "f1" in r
    ]
    failed = [f"{r['dataset']} {r['system']} failed: {r['error']}" for r in records if "error" in r]
    if rows:
        headings = ["data", "system", *(heading for _, heading, _ in columns)]
        print_table("Segments and chains with the same features of words", headings, rows, "\n".join(failed))
    for record in records:
        if "times_chain" not in record:
            continue
        seconds = record["pass_cpu_seconds"]
        rows = [[name, f"{seconds[name]:.3f}", f"{record['times_chain'].get(name, 1.0):.2f}"] for name in seconds]
        print_table("CPU seconds of a pass", ["solver, system", "CPU s", "times the chain's"], rows)
        most = max(record["times_chain"].values())
        click.echo(f"{'yes' if most <= MOST_TIMES else 'NO '}  a pass takes at most {MOST_TIMES:g} times the chain's")
