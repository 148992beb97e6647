"""How long does a linear-chain CRF take to train, next to CRFsuite? Text chunking, CoNLL-2000.

Both systems get the same attribute strings (19 templates), have a weight for each (attribute, label) and (label, next
label) pair seen in training, no begin or end weights, and minimise l2/2 |w|^2 + sum of log losses; CRFsuite's c2 is
l2/2. The optimum is the lowest objective of all systems and of an accurate partwise run (gap at most 1e-7 of the
objective), which is made first.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks import models
from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.objective import ChainData, chain_objective
from benchmarks.questions import choose, common_options
from benchmarks.report import Record, conclude, machine, save

_QUICK = 800  # sentences

# System: (function of this module, its options, whether it uses threads).
SYSTEMS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "partwise-eg": ("fit_partwise", {"solver": "eg", "tol": 1e-3}, True),
    "partwise-eg-accurate": ("fit_partwise", {"solver": "eg", "tol": 1e-6}, True),
    "partwise-lbfgs": ("fit_partwise", {"solver": "lbfgs", "tol": 1e-4}, True),
    "crfsuite-lbfgs": ("fit_crfsuite", {}, False),
}
_REFERENCE: dict[str, Any] = {"solver": "eg", "tol": 1e-7}


@click.command("crf", help=__doc__)
@common_options(default_l2="2")
def command(
    data: str | None,
    json_file: str | None,
    l2: str,
    threads: int,
    repeat: int,
    within: float,
    systems: str,
    quick: bool,
) -> None:
    records: list[Record] = []
    limit = _QUICK if quick else None
    chosen = choose(systems, list(SYSTEMS))
    for strength in map(float, l2.split(",")):
        common = {"data": data, "l2": strength, "limit": limit}
        runs: list[Record] = []
        reference = run_apart("benchmarks.crf:fit_partwise", threads, n_jobs=threads, **_REFERENCE, **common)
        for _ in range(repeat):
            for name in chosen:
                function, options, threaded = SYSTEMS[name]
                used = threads if threaded else 1
                extra = {"n_jobs": used} if threaded else {}
                head = {"question": "crf", "system": name, "threads": used, "l2": strength, **machine()}
                try:
                    record = run_apart(f"benchmarks.crf:{function}", used, **options, **extra, **common)
                except SystemFailed as error:
                    record = {"error": str(error)}
                runs.append({**head, **record})
        conclude(f"Chain CRF, CoNLL-2000{' (part)' if quick else ''}, l2 = {strength:g}", runs, reference, within)
        records += runs
    save(json_file, records)


def load(data: str | None, limit: int | None) -> Any:
    """Load the data that both systems get: attribute strings and labels."""
    from partwise.datasets import Dataset, conll2000

    full = conll2000(data)
    return Dataset(*(part[:limit] for part in full))


def fit_crfsuite(data: str | None, l2: float, limit: int | None) -> Record:
    """Train with python-crfsuite's L-BFGS at its default stopping rule."""
    import pycrfsuite

    begin = (0.0, 0.0)
    stamps: list[tuple[float, float]] = []  # wall and CPU time at the end of each iteration

    def now() -> tuple[float, float]:
        return time.perf_counter() - begin[0], time.process_time() - begin[1]

    class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
        def message(self, message: str) -> None:
            nonlocal begin
            event = self.logparser.feed(message)
            if event == "featgen_end":
                begin = time.perf_counter(), time.process_time()
            elif event == "iteration":
                stamps.append(now())

    dataset = load(data, limit)
    before = peak_mb()
    trainer = Trainer(algorithm="lbfgs", params={"c1": 0.0, "c2": l2 / 2.0}, verbose=False)
    trainer.set("feature.possible_states", False)
    trainer.set("feature.possible_transitions", False)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        with clock() as fit:
            for x, y in zip(dataset.X_train, dataset.y_train, strict=True):
                trainer.append(x, y)
            trainer.train(path)
        peak = peak_mb()
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        with clock() as predict:
            predicted = [tagger.tag(x) for x in dataset.X_test]
        info = tagger.info()
        tagger.close()
    iterations = trainer.logparser.iterations
    passes = 1 + np.cumsum([step["linesearch_trials"] for step in iterations])  # one evaluation more, at the start
    return {
        "fit_seconds": fit.wall,
        "fit_cpu_seconds": fit.cpu,
        "solver_seconds": stamps[-1][0],
        "solver_cpu_seconds": stamps[-1][1],
        "predict_seconds": predict.wall,
        "passes": float(passes[-1]),
        "trace_seconds": [wall for wall, _ in stamps],
        "trace_cpu_seconds": [cpu for _, cpu in stamps],
        "trace_objective": [step["loss"] for step in iterations],
        "trace_passes": passes.astype(float).tolist(),
        "reported_objective": iterations[-1]["loss"],
        "gap": None,
        "data_mb": before,
        "peak_mb": peak,
        **judge(dataset, info.state_features, info.transitions, predicted, l2),
    }


def fit_partwise(data: str | None, l2: float, limit: int | None, solver: str, tol: float, n_jobs: int) -> Record:
    """Train a SequenceTagger."""
    from partwise import SequenceTagger

    dataset = load(data, limit)
    before = peak_mb()
    tagger = SequenceTagger(loss="log", C=1.0 / l2, solver=solver, tol=tol, n_jobs=n_jobs, random_state=0)
    with clock() as fit, models.watched() as watch:
        tagger.fit(dataset.X_train, dataset.y_train)
    peak = peak_mb()
    with clock() as predict:
        predicted = tagger.predict(dataset.X_test)
    return {
        **models.history_of(tagger.result_, watch),
        "fit_seconds": fit.wall,
        "fit_cpu_seconds": fit.cpu,
        "predict_seconds": predict.wall,
        "data_mb": before,
        "peak_mb": peak,
        **judge(dataset, tagger.state_features_, tagger.transition_features_, predicted, l2),
    }


def judge(dataset: Any, state: Any, transitions: Any, predicted: Any, l2: float) -> Record:
    """Evaluate the objective by the independent code, and scores on the test set."""
    from partwise.metrics import chunk_scores

    arrays = ChainData.from_strings(dataset.X_train, dataset.y_train)
    objective = chain_objective(arrays, arrays.state_matrix(state), arrays.transition_matrix(transitions), l2)
    scores = chunk_scores(dataset.y_test, predicted)
    return {"objective": objective, "accuracy": scores.accuracy, "f1": scores.f1}
