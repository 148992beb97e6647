"""Dask workers that are killed during a run, and clusters that are shut down during a run."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from helpers.partition_cases import TEMPLATE, words
from partwise import SequenceTagger
from partwise.features import Template
from partwise.out_of_core import cluster as distributed
from partwise.out_of_core import partitions
from partwise.solvers import BlockDual, Checkpoint

from .rows import Row

#: Parameters of estimators whose runs take about a dozen rounds.
RUNS: dict[str, dict[str, Any]] = {
    "lbfgs": {"solver": "lbfgs", "tol": 1e-30, "max_passes": 15},
    "block-dual, eg-prox": {"solver": BlockDual(inner="eg-prox", groups=2), "tol": 1e-30, "max_passes": 12},
    "block-dual, bcfw": {"solver": BlockDual(inner="bcfw", groups=2), "loss": "hinge", "tol": 1e-30, "max_passes": 12},
}
#: Seconds without a worker after which a run must raise an error; seconds by which a killed worker may delay a run;
#: seconds by which the error may be late, because Dask takes some time to notice broken connections.
PATIENCE, EXTRA, LATE = 5.0, 60.0, 30.0


def estimator(name: str, **more: Any) -> Any:
    return SequenceTagger(template=Template(TEMPLATE), C=0.03, random_state=0, **RUNS[name], **more)


@cache
def folder() -> str:
    """Return a partition that lasts as long as this process."""
    made = tempfile.TemporaryDirectory(prefix="faults-")
    KEPT.append(made)
    X, y = words(400)
    blocks = [(X[k : k + 50], y[k : k + 50]) for k in range(0, 400, 50)]
    path = os.path.join(made.name, "parts")
    partitions.write(path, estimator("lbfgs"), blocks, batch_size=60_000)
    return path


KEPT: list[Any] = []


@cache
def uninterrupted(name: str) -> tuple[np.ndarray, int]:
    """Return the weights and the number of steps of a run in this process, without a cluster."""
    steps: list[int] = []
    found = estimator(name, callbacks=lambda progress: steps.append(1)).fit(partitions.open(folder()))
    return found.result_.weights, len(steps)


def make_cluster() -> Any:
    from dask.distributed import LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "processes": True, "silence_logs": 50}
    return LocalCluster(n_workers=2, **options)


@cache
def cluster() -> Any:
    """Return a client of a cluster that serves many trials: Dask restarts a worker that was killed."""
    from dask.distributed import Client

    made = make_cluster()
    client = Client(made, set_as_default=False)
    KEPT.extend([client, made])
    return client


def whole_cluster() -> Any:
    """Return a client whose two workers run. Dask sometimes does not restart a worker: then make another cluster."""
    with suppress(TimeoutError):
        cluster().wait_for_workers(2, timeout=20)
        return cluster()
    cluster.cache_clear()
    for each in (KEPT.pop(-2), KEPT.pop()):
        each.close(timeout=5)
    cluster().wait_for_workers(2, timeout=60)
    return cluster()


@cache
def seconds_alone(name: str) -> float:
    """Return the seconds that a run takes on the cluster without a fault."""
    # The first run includes imports and reading in the workers
    estimator(name).fit(distributed.open(folder(), cluster()))
    begin = time.monotonic()
    estimator(name).fit(distributed.open(folder(), cluster()))
    return time.monotonic() - begin


class At:
    """A callback that starts `work` on another thread `wait` seconds after a step, during the next step."""

    def __init__(self, step: int, wait: float, work: Callable[[], Any]) -> None:
        self.left, self.wait, self.work = step, wait, work
        self.began_at = self.done_at = float("inf")
        self.thread = threading.Thread(target=self._later)

    def __call__(self, progress: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.thread.start()

    def _later(self) -> None:
        time.sleep(self.wait)
        self.began_at = time.monotonic()
        self.work()
        self.done_at = time.monotonic()

    def join(self) -> None:
        if self.left <= 0:
            self.thread.join()


def worker_killed(number: int, _: Path) -> tuple[str, str]:
    name, rng = list(RUNS)[number % len(RUNS)], random.Random(number)
    expected, n_steps = uninterrupted(name)
    alone = seconds_alone(name)
    for _attempt in range(5):
        client = whole_cluster()
        # A worker of an earlier trial may still be missing
        pid = rng.choice(sorted(client.run(os.getpid, on_error="ignore").values()))
        kill = At(rng.randint(1, n_steps - 2), rng.random() * alone / n_steps, lambda pid=pid: kill_and_wait(pid))
        begin = time.monotonic()
        found = estimator(name, callbacks=kill).fit(distributed.open(folder(), client)).result_.weights
        end = time.monotonic()
        kill.join()
        if not np.array_equal(found, expected):
            return "other weights", name
        if kill.done_at < end:
            late = end - begin > alone + EXTRA
            return ("late" if late else "bit-identical"), f"{name}: {end - begin:.1f} s, alone {alone:.1f} s"
    return "had ended", name


def kill_and_wait(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.001)


def cluster_gone(number: int, folder_: Path) -> tuple[str, str]:
    """Kill all workers or close the scheduler during a run; then resume the run in this process."""
    name, workers = list(RUNS)[number // 2 % len(RUNS)], number % 2 == 1
    expected, n_steps = uninterrupted(name)
    rng = random.Random(number)
    for attempt in range(5):
        path = folder_ / f"{attempt}.ckpt"
        seconds = run_until_gone(name, workers, rng.randint(2, n_steps - 2), path)
        if seconds is not None:
            break
    else:
        return "had ended", name
    detail = f"{name}: {'workers' if workers else 'scheduler'} gone, {seconds:.1f} s later"
    if seconds > PATIENCE + LATE:
        return "late", detail
    if not path.exists():
        return "no checkpoint", detail
    steps: list[int] = []
    run = estimator(name, callbacks=lambda progress: steps.append(1))
    found = run.fit(partitions.open(folder()), checkpoint=Checkpoint(path)).result_.weights
    if len(steps) >= n_steps:
        return "not continued", f"{detail}; {len(steps)} steps, uninterrupted {n_steps}"
    if not np.array_equal(found, expected):
        return "other weights after it was continued", detail
    return "ClusterError", f"{detail}; then {len(steps)} of {n_steps} steps"


def run_until_gone(name: str, workers: bool, step: int, path: Path) -> float | None:
    """Return the seconds from the end of the cluster to the error; None if the run had ended before."""
    from dask.distributed import Client

    with make_cluster() as made:
        client = Client(made, set_as_default=False)
        pids = sorted(client.run(os.getpid).values())

        def kill_workers() -> None:
            for nanny in made.workers.values():
                nanny.close_gracefully()  # the nanny must not restart its worker
            for pid in pids:
                kill_and_wait(pid)

        gone = At(step, 0.0, kill_workers if workers else lambda: made.close(timeout=5))
        seconds = None
        try:
            run = distributed.open(folder(), client, patience=PATIENCE)
            estimator(name, callbacks=gone).fit(run, checkpoint=Checkpoint(path, every_seconds=0.0))
        except distributed.ClusterError:
            seconds = time.monotonic() - gone.began_at
        gone.join()
        with suppress(Exception):
            client.close(timeout=5)
    return seconds


ROWS = [
    Row(
        "worker-killed",
        f"Dask worker killed in the midst of a run ({'; '.join(RUNS)})",
        f"completes, bit-identical, < {EXTRA:.0f} s more",
        30,
        0,  # tests/distributed checks this in the normal tests
        worker_killed,
        ("bit-identical",),
        300,
        alone=True,
    ),
    Row(
        "cluster-gone",
        f"all workers killed or the scheduler closed in the midst of a run ({'; '.join(RUNS)}), "
        f"patience {PATIENCE:.0f} s",
        f"error within the patience and {LATE:.0f} s, checkpoint kept, continued in fewer steps to the same bits",
        10,
        0,
        cluster_gone,
        ("ClusterError",),
        300,
        alone=True,
    ),
] * (importlib.util.find_spec("distributed") is not None)
