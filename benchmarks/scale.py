"""What does training on partitions and on a Dask cluster cost, compared with training in memory? CoNLL-2000, repeated.

Four ways to train on the same partition, each in its own process: with all batches open, one thread; within a memory
limit, one thread; on a local cluster of one and of two workers, a thread each. All run to the same relative gap, by the
solver that `auto` chooses. Time is wall time of `fit` (without imports and starting workers): nothing else should run
on the machine.

For `block-dual` the parts of that time are shown: its rounds and its certificates in the slowest group, the waiting in
them for batches and files of dual variables to be opened, and the rest: the start, the master's sums, data transfer.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.measure import clock, peak_mb, run_apart
from benchmarks.report import machine, print_table, save


def write_partition(data: str, folder: str, tokens: int, batch: str) -> dict[str, Any]:
    """Write the training data, repeated up to about this many tokens, as a partition."""
    import numpy as np

    from partwise import SequenceTagger, io
    from partwise.out_of_core import partitions

    table = io.read_columns(Path(data) / "conll2000" / "train.txt.gz")
    X, y, n = table.without(-1), table.column(-1), table.n_tokens
    wanted = max(1, round(tokens / n))

    def blocks() -> Iterator[Any]:
        for _ in range(wanted):
            for first in range(0, len(y), 1000):
                last = min(first + 1000, len(y))
                yield X.take(np.arange(first, last)), y[first:last]

    made = partitions.write(folder, SequenceTagger(template="chunk"), blocks, batch_size=batch)
    return {"tokens": wanted * n, "batches": made.n_batches, "weights": made.n_weights, "mb": peak_mb()}


def train(folder: str, l2: float, tol: float, memory: str | None, solver: str) -> dict[str, Any]:
    """Train in this process."""
    from partwise.out_of_core import partitions

    _imported()
    found = partitions.open(folder, memory)
    estimator = found.estimator(C=1.0 / l2, tol=tol, n_jobs=1, solver=solver)
    with clock() as time:
        fitted = estimator.fit(found)
    return _answer(fitted.result_, time.wall, time.cpu, peak_mb())


def train_on_cluster(folder: str, l2: float, tol: float, workers: int, solver: str) -> dict[str, Any]:
    """Train on a local cluster."""
    from dask.distributed import Client, LocalCluster

    from partwise.out_of_core import cluster as distributed

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        _imported()
        client.run(_imported)
        found = distributed.open(folder, client)
        estimator = found.estimator(C=1.0 / l2, tol=tol, n_jobs=1, solver=solver)
        with clock() as time:
            fitted = estimator.fit(found)
        largest = max(client.run(peak_mb).values())
    return _answer(fitted.result_, time.wall, time.cpu, largest)


def _imported() -> None:
    """Import the modules that a run needs, here and in workers."""
    for name in ("partwise.solvers", "partwise.estimators", "partwise.out_of_core.partitions"):
        importlib.import_module(name)


def _answer(result: Any, wall: float, cpu: float, mb: float) -> dict[str, Any]:
    gap = result.gap / abs(result.primal)
    shown = {"solver": result.solver, "status": result.status, "primal": result.primal, "dual": result.dual}
    return {**shown, "gap": gap, "passes": result.passes, "wall": wall, "cpu": cpu, "mb": mb, "message": result.message}


@click.command("scale")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--tokens", default=2_000_000, show_default=True, type=click.IntRange(min=1), help="Tokens, about.")
@click.option("--batch-size", default="8M", show_default=True, help="Bytes of an opened batch.")
@click.option("--memory", default="500M", show_default=True, help="The limit of the run within a limit.")
@click.option("--l2", default=2.0, show_default=True, help="Strength of the penalty.")
@click.option("--tol", default=1e-2, show_default=True, help="Relative gap to reach.")
@click.option("--solver", default="auto", show_default=True, help="The solver of all runs.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(min=1), help="Runs of each, in turn.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
def command(
    data: str | None,
    tokens: int,
    batch_size: str,
    memory: str,
    l2: float,
    tol: float,
    solver: str,
    repeat: int,
    quick: bool,
    json_file: str | None,
) -> None:
    """What do partitions and Dask cost, compared with training in memory?"""
    if quick:
        tokens, batch_size, repeat = 20_000, "1M", 1
    data = data or os.environ.get("PARTWISE_DATA") or str(Path(__file__).resolve().parents[2] / "shared" / "data")
    common = {"l2": l2, "tol": tol, "solver": solver}
    systems = {
        "in memory": ("train", {"memory": None}),
        f"within {memory}": ("train", {"memory": memory}),
        "1 worker": ("train_on_cluster", {"workers": 1}),
        "2 workers": ("train_on_cluster", {"workers": 2}),
    }
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "data.parts")
        size = run_apart(
            "benchmarks.scale:write_partition", 1, data=data, folder=folder, tokens=tokens, batch=batch_size
        )
        click.echo(f"{size['tokens']:,} tokens, {size['batches']} batches, {size['weights']:,} weights")
        for _ in range(repeat):
            for name, (function, own) in systems.items():
                found = run_apart(f"benchmarks.scale:{function}", 1, folder=folder, **common, **own)
                runs[name].append(found)
                click.echo(f"{name}: {found['wall']:.1f} s; {found['message']}")
    walls = {name: median(each["wall"] for each in found) for name, found in runs.items()}
    base = walls["in memory"]
    rows, records = [], []
    for name, found in runs.items():
        last, largest = found[-1], max(each["mb"] for each in found)
        ratio = walls[name] / base
        cells = [name, last["solver"], f"{last['passes']:.1f}", f"{walls[name]:.1f}", f"{ratio:.2f}"]
        rows.append([*cells, f"{last['gap']:.2g}", f"{largest:.0f}"])
        records.append({"question": "scale", "system": name, **size, **last, "wall": walls[name], "ratio": ratio})
    headings = ["", "solver", "passes", "wall s", "over in memory", "relative gap", "peak MB"]
    print_table(f"CoNLL-2000 repeated to {size['tokens']:,} tokens, log loss, l2 = {l2:g}", headings, rows)
    low, high = max(each[-1]["dual"] for each in runs.values()), min(each[-1]["primal"] for each in runs.values())
    click.echo(f"2 workers against 1: {walls['1 worker'] / walls['2 workers']:.2f}x; agree to the gap: {low <= high}")
    save(json_file, [{**record, **machine()} for record in records])
