"""How long does a sparse linear-chain CRF take, next to CRFsuite's OWL-QN? Text chunking, CoNLL-2000.

Both systems get the same attribute strings and weights as in `crf` and minimise c1 |w|_1 + c2 |w|^2 + sum of log losses
(l1 = c1, l2 = 2 c2). CRFsuite runs for 400 iterations; its time is that to within 1e-3 of its own last objective.
partwise runs until its certified gap is at most 1e-3 of the objective (1e-2 without c2) and its objective is at most
CRFsuite's last one. CPU seconds are those of the solvers alone.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import models
from benchmarks.crf import judge, load
from benchmarks.measure import SystemFailed, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, save

PENALTIES = "0.1:0.1,0.6:0.5,1:0.001,1:0"
SYSTEMS = ("crfsuite", "auto", "eg", "owlqn")
_QUICK = 800  # sentences
_ITERATIONS = 400
_WITHIN = 1e-3  # of CRFsuite's own last value
COLUMNS = (
    ("system", "system", ""),
    ("c1", "c1", "g"),
    ("c2", "c2", "g"),
    ("cpu_seconds", "CPU s", ".3g"),
    ("share", "of CRFsuite's", ".3g"),
    ("passes", "passes", ".4g"),
    ("objective", "objective", ".3f"),
    ("gap", "certified gap", ".1e"),
    ("n_weights", "weights not zero", "d"),
    ("f1", "F1", ".4f"),
)


@click.command("sparse", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--penalties", default=PENALTIES, show_default=True, help="c1:c2 with commas.")
@click.option("--systems", default="", help="Only these systems, with commas.")
@click.option("--rival", type=click.Path(dir_okay=False), help="CRFsuite's records are kept here and read from it.")
@click.option("--max-seconds", default=600.0, show_default=True, help="Limit of each run of partwise.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(
    data: str | None,
    json_file: str | None,
    penalties: str,
    systems: str,
    rival: str | None,
    max_seconds: float,
    quick: bool,
) -> None:
    chosen = choose(systems, list(SYSTEMS))
    records: list[Record] = []
    for pair in penalties.split(","):
        c1, c2 = map(float, pair.split(":"))
        common: dict[str, Any] = {"data": data, "c1": c1, "c2": c2, "limit": _QUICK if quick else None}
        theirs = _rival(rival, common) if "crfsuite" in chosen else None
        for name in chosen:
            head = {"question": "sparse", "system": name, **common, **machine()}
            if name == "crfsuite":
                record = theirs or {}
            else:
                target = {"target": theirs["objective"] if theirs and "objective" in theirs else None}
                record = _try("fit_partwise", solver=name, max_seconds=max_seconds, **target, **common)
            if theirs and theirs.get("cpu_seconds") and record.get("cpu_seconds"):
                record = {**record, "share": record["cpu_seconds"] / theirs["cpu_seconds"]}
            records.append({**head, **record})
    _show(records)
    save(json_file, records)


def fit_crfsuite(data: str | None, c1: float, c2: float, limit: int | None) -> Record:
    """Train with python-crfsuite's L-BFGS, which is OWL-QN where c1 > 0."""
    import pycrfsuite

    begin = 0.0
    stamps: list[float] = []

    class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
        def message(self, message: str) -> None:
            nonlocal begin
            event = self.logparser.feed(message)
            if event == "featgen_end":
                begin = time.process_time()
            elif event == "iteration":
                stamps.append(time.process_time() - begin)

    dataset = load(data, limit)
    trainer = Trainer(algorithm="lbfgs", params={"c1": c1, "c2": c2, "max_iterations": _ITERATIONS}, verbose=False)
    trainer.set("feature.possible_states", False)
    trainer.set("feature.possible_transitions", False)
    for x, y in zip(dataset.X_train, dataset.y_train, strict=True):
        trainer.append(x, y)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predicted = [tagger.tag(x) for x in dataset.X_test]
        info = tagger.info()
        tagger.close()
    losses = np.array([step["loss"] for step in trainer.logparser.iterations])
    enough = int(np.flatnonzero(losses <= (1.0 + _WITHIN) * losses[-1])[0])
    return {
        "cpu_seconds": stamps[enough],
        "all_cpu_seconds": stamps[-1],
        "iterations": len(losses),
        "passes": float(1 + sum(step["linesearch_trials"] for step in trainer.logparser.iterations)),
        "trace_cpu_seconds": stamps,
        "trace_objective": losses.tolist(),
        "reported_objective": float(losses[-1]),
        "gap": None,
        **_judged(dataset, info.state_features, info.transitions, predicted, c1, c2),
    }


def fit_partwise(
    data: str | None, c1: float, c2: float, limit: int | None, solver: str, max_seconds: float, target: float | None
) -> Record:
    """Train a SequenceTagger under the elastic net to a certified gap and to the target objective."""
    from partwise import SequenceTagger

    dataset = load(data, limit)
    tol = 1e-3 if c2 else 1e-2
    tagger = SequenceTagger(loss="log", solver=solver, tol=tol / 100, max_seconds=max_seconds, random_state=0)
    with models.watched() as watch, _under(c1, 2.0 * c2, tol, target):
        tagger.fit(dataset.X_train, dataset.y_train)
    predicted = tagger.predict(dataset.X_test)
    return {
        **models.history_of(tagger.result_, watch),
        "cpu_seconds": watch.total,
        "message": tagger.result_.message,
        **_judged(dataset, tagger.state_features_, tagger.transition_features_, predicted, c1, c2),
    }


@contextmanager
def _under(l1: float, l2: float, tol: float, target: float | None) -> Iterator[None]:
    """Make the next fit use this elastic net, and stop at both the tolerance and an objective of at most the target."""
    from partwise.estimators import base
    from partwise.problem.penalties import L2, ElasticNet

    solve = base.solve

    def sparse(problem: Any, *arguments: Any, callback: Any = None, **options: Any) -> Any:
        def done(progress: Any) -> bool:
            c = progress.certificate
            low = progress.fresh and c.gap <= tol * c.primal and (target is None or c.primal <= target)
            return bool(low) or (callback is not None and bool(callback(progress)))

        penalty = ElasticNet(l1, l2) if l1 else L2(l2)
        return solve(problem.with_penalty(penalty), *arguments, **{**options, "callback": done})

    base.solve = sparse
    try:
        yield
    finally:
        base.solve = solve


def _judged(dataset: Any, state: Any, transitions: Any, predicted: Any, c1: float, c2: float) -> Record:
    """Evaluate the objective by the independent code, and count nonzero weights and test scores."""
    weights = np.array([*state.values(), *transitions.values()])
    found = judge(dataset, state, transitions, predicted, 2.0 * c2)
    objective = found["objective"] + c1 * float(np.abs(weights).sum())
    return {**found, "objective": objective, "n_weights": int(np.count_nonzero(weights))}


def _rival(file: str | None, common: dict[str, Any]) -> Record:
    """Return CRFsuite's record from the file if it has one of this problem, else run CRFsuite."""
    key = json.dumps({name: common[name] for name in ("c1", "c2", "limit")})
    path = Path(file) if file else None
    kept: dict[str, Record] = json.loads(path.read_text()) if path and path.exists() else {}
    if key not in kept:
        kept[key] = _try("fit_crfsuite", **common)
        if path and "error" not in kept[key]:
            path.write_text(json.dumps(kept))
    return kept[key]


def _try(function: str, **options: Any) -> Record:
    try:
        return run_apart(f"benchmarks.sparse:{function}", 1, **options)
    except SystemFailed as error:
        return {"error": str(error)}


def _show(records: list[Record]) -> None:
    table = Table(title="Sparse chain CRF, CoNLL-2000")
    for _, heading, _ in COLUMNS:
        table.add_column(heading)
    for record in records:
        row = [("" if record.get(name) is None else format(record[name], form)) for name, _, form in COLUMNS]
        table.add_row(*row)
    console = Console(width=140)
    console.print(table)
    for record in records:
        if "error" in record:
            console.print(f"{record['system']}: {record['error']}")
