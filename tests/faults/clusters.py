"""Dask workers that are killed, and schedulers that are gone."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from partitioncases import TEMPLATE, words

from partwise import SequenceTagger, distributed, partitions
from partwise.features import Template
from partwise.solvers import Checkpoint

from .rows import Row

MAKE: dict[str, Any] = {"solver": "lbfgs", "tol": 1e-7, "max_passes": 10_000}


def estimator() -> Any:
    return SequenceTagger(template=Template(TEMPLATE), **MAKE)


def written(folder: Path) -> Any:
    X, y = words(400)
    blocks = [(X[k : k + 50], y[k : k + 50]) for k in range(0, 400, 50)]
    return partitions.write(folder / "dir", estimator(), blocks, batch_size=20_000)


def worker_killed(number: int, folder: Path) -> tuple[str, str]:
    from dask.distributed import Client, LocalCluster

    rng, here = random.Random(number), written(folder)
    begin = time.monotonic()
    expected = estimator().fit(here).result_.weights
    alone = time.monotonic() - begin
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        pids = sorted(client.run(os.getpid).values())

        def kill() -> None:
            time.sleep(rng.random() * 2 * alone)
            os.kill(pids[number % 2], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        begin = time.monotonic()
        found = estimator().fit(distributed.open(folder / "dir", client)).result_.weights
        seconds = time.monotonic() - begin
        thread.join()
    if not np.array_equal(found, expected):
        return "other weights", ""
    return ("bit-identical" if seconds < alone + 60 else "late"), f"{seconds:.1f} s, alone {alone:.1f} s"


def cluster_gone(number: int, folder: Path) -> tuple[str, str]:
    from dask.distributed import Client, LocalCluster

    written(folder)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": True}
    with LocalCluster(**options) as cluster:
        client = Client(cluster, set_as_default=False)

        def leave() -> None:
            time.sleep(0.2 + number % 5 / 5)
            if number % 2:
                cluster.close(timeout=5)
            else:
                cluster.scale(0)

        thread = threading.Thread(target=leave)
        thread.start()
        begin = time.monotonic()
        try:
            estimator().fit(
                distributed.open(folder / "dir", client, patience=5.0), checkpoint=Checkpoint(folder / "ckpt", 0.0)
            )
        except distributed.ClusterError:
            outcome = "ClusterError"
        else:
            outcome = "had ended"
        seconds = time.monotonic() - begin
        thread.join()
        client.close(timeout=5)
    if outcome == "ClusterError" and not (folder / "ckpt").exists():
        return "no checkpoint", f"{seconds:.1f} s"
    return (outcome if seconds < 90 else "late"), f"{seconds:.1f} s"


ROWS = [
    Row(
        "worker-killed",
        "Dask worker killed in a run",
        "completes, bit-identical, < 60 s more",
        30,
        0,  # tests/distributed has it
        worker_killed,
        ("bit-identical",),
        300,
    ),
    Row(
        "cluster-gone",
        "all workers or the scheduler gone",
        "error within the timeout, checkpoint kept",
        10,
        0,
        cluster_gone,
        ("ClusterError", "had ended"),
        300,
    ),
] * (importlib.util.find_spec("distributed") is not None)
