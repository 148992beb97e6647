"""How long does text chunking take from files to scores, next to python-crfsuite? CoNLL-2000.

partwise: the commands `train tag --features chunk --report` and `evaluate`. python-crfsuite: one Python program that
reads the same files, makes the same attributes in Python (CRFsuite leaves this to its users), trains to CRFsuite's
default stopping rule with c2 = l2 / 2, and tags and scores the test set. Times are of whole processes, from start to
end, on one core each.

The prediction rows: from the test file to labels in memory, with the model loaded before, feature extraction included.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.measure import clock, run_apart
from benchmarks.questions import choose, common_options
from benchmarks.report import Record, machine, save

_QUICK = 800  # sentences
_COMMAND = "import sys; from partwise.cli import main; main(prog_name='partwise')"
SYSTEMS = ["partwise", "python-crfsuite"]


@click.command("cli", help=__doc__)
@common_options(default_l2="1")
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
    chosen = choose(systems, SYSTEMS)
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        train, test = _files(data, Path(folder), _QUICK if quick else None)
        for strength in map(float, l2.split(",")):
            for _ in range(repeat):
                runs = [_run(name, train, test, strength, within, threads, Path(folder)) for name in chosen]
                records += [{"question": "cli", "l2": strength, **machine(), **run} for run in runs]
            _show(records, strength)
    save(json_file, records)


def _files(data: str | None, folder: Path, limit: int | None) -> tuple[str, str]:
    """Return the paths of the training and test file, or of copies with their first sentences."""
    from partwise.datasets import data_file

    paths = [data_file("conll2000", name, data) for name in ("train.txt", "test.txt")]
    if limit is None:
        return str(paths[0]), str(paths[1])
    from partwise.io import read_bytes

    found = []
    for path in paths:
        part = folder / path.name.removesuffix(".gz")
        part.write_bytes(b"\n\n".join(read_bytes(path).split(b"\n\n")[:limit]) + b"\n\n")
        found.append(str(part))
    return found[0], found[1]


@dataclass
class _Spent:
    wall: float = 0.0
    cpu: float = 0.0

    def run(self, arguments: list[str], threads: int) -> str:
        """Run a process, add its time to the totals, and return its standard output."""
        environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(arguments, check=False, stdout=subprocess.PIPE, text=True, env=environment)
        self.wall += time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if done.returncode:
            raise click.ClickException(f"{shlex.join(arguments)} ended with status {done.returncode}")
        return done.stdout


def _run(name: str, train: str, test: str, l2: float, tol: float, threads: int, folder: Path) -> Record:
    model = str(folder / f"{name}.model")
    spent = _Spent()
    if name == "partwise":
        base = [sys.executable, "-c", _COMMAND]
        options = ["--features", "chunk", "--l2", repr(l2), "--tol", repr(tol), "--threads", str(threads), "--quiet"]
        spent.run(
            [*base, "train", "tag", train, "-o", model, "--report", str(folder / "report.html"), *options], threads
        )
        scores = json.loads(spent.run([*base, "evaluate", model, test, "--json"], threads))
    else:
        threads = 1
        program = (
            "import sys, json; from benchmarks.cli import crfsuite_job; print(json.dumps(crfsuite_job(*sys.argv[1:])))"
        )
        scores = json.loads(spent.run([sys.executable, "-c", program, train, test, model, repr(l2)], threads))
    predict = run_apart(f"benchmarks.cli:predict_{name.replace('-', '_')}", threads, model=model, test=test)
    f1 = scores["f1"]
    return {"system": name, "threads": threads, "seconds": spent.wall, "cpu_seconds": spent.cpu, "f1": f1, **predict}


def crfsuite_job(train: str, test: str, model: str, l2: str) -> dict[str, float]:
    """Train, tag and score with python-crfsuite: the job that partwise's commands are compared with."""
    import pycrfsuite

    from partwise.metrics import chunk_scores

    trainer = pycrfsuite.Trainer("lbfgs", {"c1": 0.0, "c2": float(l2) / 2.0}, verbose=False)
    for words, tags, labels in _read(train):
        trainer.append(_attributes(words, tags), labels)
    trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    found = _read(test)
    scores = chunk_scores([row[2] for row in found], [tagger.tag(_attributes(row[0], row[1])) for row in found])
    return {"f1": scores.f1}


def _attributes(words: list[str], tags: list[str]) -> Any:
    from partwise.datasets import chunk_features

    return chunk_features(words, tags)


def _read(path: str) -> list[list[list[str]]]:
    """Read words, tags and labels of each sentence in plain Python."""
    opener: Any = gzip.open if path.endswith(".gz") else open
    sentences: list[list[list[str]]] = []
    rows: list[list[str]] = []
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if fields:
                rows.append(fields)
            elif rows:
                sentences.append([list(column) for column in zip(*rows, strict=True)])
                rows = []
    if rows:
        sentences.append([list(column) for column in zip(*rows, strict=True)])
    return sentences


def predict_python_crfsuite(model: str, test: str) -> Record:
    """Time python-crfsuite from the test file to labels, with attributes made in Python."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    seconds = []
    for _ in range(7):
        with clock() as spent:
            labels = [tagger.tag(_attributes(words, tags)) for words, tags, _ in _read(test)]
        seconds.append(spent.cpu)
    return {"predict_cpu_seconds": median(seconds), "n_sentences": len(labels)}


def predict_partwise(model: str, test: str) -> Record:
    """Time partwise from the test file to labels, with attributes made by its own code."""
    import partwise
    from partwise.io import read_columns

    tagger = partwise.load(model)
    tagger.set_params(n_jobs=1)
    seconds = []
    for _ in range(7):
        with clock() as spent:
            labels = tagger.predict(read_columns(test).without(-1))
        seconds.append(spent.cpu)
    return {"predict_cpu_seconds": median(seconds), "n_sentences": len(labels)}


def ratios(records: list[Record]) -> dict[str, float]:
    """Return python-crfsuite's times over partwise's, by medians; empty unless both systems ran."""
    found = {}
    for field in ("seconds", "cpu_seconds", "predict_cpu_seconds"):
        times = {name: [run[field] for run in records if run["system"] == name] for name in SYSTEMS}
        if all(times.values()):
            found[field] = median(times["python-crfsuite"]) / median(times["partwise"])
    return found


def _show(records: list[Record], l2: float) -> None:
    runs = [run for run in records if run["l2"] == l2]
    table = Table(title=f"From files to scores, CoNLL-2000, l2 = {l2:g}")
    for heading in ("system", "threads", "wall s", "CPU s", "F1", "predict CPU s"):
        table.add_column(heading, justify="left" if heading == "system" else "right")
    for run in runs:
        times = (
            f"{run['seconds']:.2f}",
            f"{run['cpu_seconds']:.2f}",
            f"{run['f1']:.4f}",
            f"{run['predict_cpu_seconds']:.3f}",
        )
        table.add_row(run["system"], str(run["threads"]), *times)
    console = Console()
    console.print(table)
    for field, ratio in ratios(runs).items():
        console.print(f"python-crfsuite / partwise, {field.replace('_', ' ')}: {ratio:.1f}")
