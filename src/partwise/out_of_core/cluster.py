"""Training on a Dask cluster (extra ``dask``).

    from dask.distributed import Client
    from partwise.out_of_core import cluster

    found = cluster.open("chunks.parts", Client("scheduler:8786"))
    tagger = found.estimator(C=0.5).fit(found)

The folder is one that `partitions.write` or ``partwise partition`` wrote, in a place that all workers can read under
the same name. Workers read batches from it; weights travel to them and partial sums come back.

A task gives a partial sum for each of some batches, and has no state: the scheduler can have it done again, so that
nothing is lost with a worker. Partial sums are added up in this process, in the order of the batches: no bit depends on
the workers. A walk over several batches is one task; the files that it may write into the folder are the same each
time. A worker keeps batches open up to its limit. A batch goes to the same worker while the workers stay the same.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from partwise.models.base import Model
from partwise.out_of_core.partitions.executor import parse_size
from partwise.out_of_core.partitions.folder import FileBatch, Partitions, open_folder
from partwise.problem import BatchReference, BatchSums, Executor, Loss, Walk, Work
from partwise.problem.deadline import check_deadline
from partwise.problem.executor import Blocks

T = TypeVar("T")

__all__ = ["ClusterError", "DaskExecutor", "open"]

#: A Dask client; a future result of a task.
Client = Any
Future = Any
#: A function that a worker is to call, and its arguments.
Task = tuple[Any, ...]

#: Seconds between checks of the cluster while a task is waited for.
LOOK = 0.5
#: Batches that are worked on in one task, at most: a task costs the scheduler as much as 10,000 tokens a worker. Of
#: answers with a number per weight a task holds so many numbers, or one answer.
SEVERAL, MOST_NUMBERS = 8, 4_000_000

#: Batches that are open in this worker process.
_OPEN: dict[tuple[FileBatch, Loss], BatchSums] = {}


class ClusterError(RuntimeError):
    """The scheduler, or all workers, are gone."""


class ClusterPartitions(Partitions):
    """What `fit` takes in place of X and y, to train on a cluster; `cluster.open` makes it."""

    def __init__(self, here: Partitions, client: Client, memory: int | None, patience: float) -> None:
        super().__init__(here.folder, here.manifest, None)
        self._here, self._client, self._worker_memory, self._patience = here, client, memory, patience

    @property
    def model(self) -> Model:
        return self._here.model

    def batches(self, by_features: bool | None = False) -> list[FileBatch]:
        return self._here.batches(by_features)  # workers open the folder themselves

    def executor(self, batches: list[FileBatch]) -> Executor:
        return DaskExecutor(self._client, self._worker_memory, self._patience, self._here.folder)


def open(
    folder: str | os.PathLike[str], client: Client, memory: str | float | None = None, *, patience: float = 60.0
) -> ClusterPartitions:
    """Open a partition to be trained on by the workers of a Dask client; PartitionError unless it is undamaged.

    Workers read the folder under the same (absolute) name. memory: bytes of open batches that each worker keeps, about
    ("500M"); the others are read for each pass. By default workers keep all. patience: seconds without any worker after
    which to raise `ClusterError`.
    """
    limit = None if memory is None else parse_size(memory)
    return ClusterPartitions(open_folder(os.path.abspath(os.fspath(folder))), client, limit, patience)


class DaskExecutor(Executor):
    """Does work on the workers of a Dask client; batches are `FileBatch`. folder: where workers may write files."""

    overwrites = False  # a worker that was given up may still run

    def __init__(
        self, client: Client, memory: int | None = None, patience: float = 60.0, folder: str | None = None
    ) -> None:
        if client.asynchronous:
            raise ValueError("the client must not be asynchronous")
        self._client, self._memory, self._patience, self._folder = client, memory, patience, folder
        self.roomy = memory is None

    @property
    def files(self) -> str | None:
        return self._folder if self._folder and os.access(self._folder, os.W_OK) else None

    @property
    def places(self) -> int:
        """How many workers there are at the moment."""
        return max(1, len(self._workers()))

    def _workers(self) -> list[str]:
        if self._client.status != "running":
            raise ClusterError(f"the connection to the scheduler is {self._client.status}")
        return _addresses(self._client)

    def walk(self, walks: Sequence[Walk], references: Sequence[Sequence[BatchReference]]) -> Iterator[Any]:
        known = self._workers()
        tasks = [(_walk, each, own, self._memory) for each, own in zip(walks, references, strict=True)]
        yield from self._done(tasks, range(len(tasks)), known)

    def run(self, work: Work[T], references: Sequence[BatchReference], blocks: Blocks) -> Iterator[T]:
        if not references:
            return
        known = self._workers()
        # The work, weights and all, travels once. It is a task, not scattered data: the scheduler can make it again.
        shared = self._client.submit(_given, work, pure=False)
        several = max(1, min(SEVERAL, MOST_NUMBERS // max(1, references[0].n_weights)))
        places, chosen = zip(*_tasks(len(references), max(1, len(known)), several), strict=True)
        tasks = [(_do, shared, [references[k] for k in own], [blocks[k] for k in own], self._memory) for own in chosen]
        try:
            for answers in self._done(tasks, places, known):
                yield from answers
        finally:
            _forget(self._client, [shared])

    def _done(self, tasks: Sequence[Task], places: Sequence[int], known: list[str]) -> Iterator[Any]:
        """Yield the results of tasks in their order; each is done by its worker of those known, or by another."""

        def submit(task: Task, workers: list[str] | None) -> Future:
            return self._client.submit(*task, pure=False, workers=workers, allow_other_workers=workers is not None)

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # weights are large, and travel once
            wanted = [[known[place % len(known)]] if known else None for place in places]
            futures = list(map(submit, tasks, wanted))
        try:
            yield from results(self._client, futures, self._patience, known, lambda k: submit(tasks[k], None))
        finally:
            _forget(self._client, futures)


def _tasks(n_batches: int, n_places: int, several: int) -> Iterator[tuple[int, list[int]]]:
    """Yield a place and its batches for each task: neighbours in the same place, as in walks, `several` in a task."""
    for place, own in enumerate(np.array_split(np.arange(n_batches), n_places)):
        for begin in range(0, len(own), several):
            yield place, own[begin : begin + several].tolist()


def _given(work: Work[T]) -> Work[T]:
    return work


def _do(work: Work[T], batches: Sequence[FileBatch], blocks: list[tuple[object, ...]], memory: int | None) -> list[T]:
    pairs = zip(batches, blocks, strict=True)
    return [work.on(_opened(work.loss, batch, memory), block) for batch, block in pairs]


def _walk(walk: Walk, batches: Sequence[FileBatch], memory: int | None) -> Any:
    return walk.over(lambda numbers: (_opened(walk.loss, batches[number], memory) for number in numbers))


def _opened(loss: Loss, batch: FileBatch, memory: int | None) -> BatchSums:
    """Return a batch, opened; the first batches stay open: each pass needs all, so that the oldest is needed next."""
    key = batch, loss
    if key in _OPEN:
        return _OPEN[key]
    sums = BatchSums(batch.open(), loss)
    for other in list(_OPEN):  # a worker serves one run at a time
        if other[1] != loss or other[0].partitions is not batch.partitions:
            _OPEN.pop(other, None)
    if memory is None or sum(other.opened_bytes for other, _ in [*list(_OPEN), key]) <= memory:
        _OPEN[key] = sums
    return sums


def _addresses(client: Client) -> list[str]:
    """Return the addresses of the workers, in a fixed order."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def _forget(client: Client, futures: Sequence[Future]) -> None:
    """Tell the scheduler, unless it is gone, that nobody waits for these futures any more."""
    with suppress(Exception):
        client.cancel(futures)


def results(
    client: Client, futures: list[Future], patience: float, known: Sequence[str], again: Callable[[int], Future]
) -> Iterator[Any]:
    """Yield the results of futures in their order; errors in a task are raised as they are.

    A task whose worker goes while there is no other waits for that worker for ever. So if no worker is left of those
    `known` when the tasks were submitted, `again` submits unfinished tasks, by their numbers, for any worker; the new
    futures replace the old ones in `futures`. ClusterError if the scheduler or tasks are lost, or there was no worker
    for `patience` seconds.
    """
    from dask.distributed import CancelledError, TimeoutError
    from distributed.scheduler import KilledWorker, NoWorkerError

    restricted = bool(known)
    for number in range(len(futures)):
        seen = time.monotonic()  # the last time that there was a worker
        while True:
            future = futures[number]
            try:
                value = future.result(timeout=LOOK)
                break
            except (KilledWorker, NoWorkerError) as error:
                raise ClusterError(f"workers were lost again and again while they did a task ({error})") from None
            except (CancelledError, UnboundLocalError) as error:
                # `distributed` raises UnboundLocalError if the wait itself is cancelled; a task may raise it, too.
                if isinstance(error, UnboundLocalError) and future.status == "error":
                    raise
                raise ClusterError("the scheduler has gone, or has cancelled the tasks of this run") from None
            except TimeoutError as error:
                if future.done() and future.status == "error":
                    raise ClusterError(f"a task ran out of time ({error})") from None
                check_deadline()
                now = time.monotonic()
                if client.status != "running":
                    raise ClusterError(f"the connection to the scheduler is {client.status}") from None
                present = _addresses(client)
                if present:
                    seen = now
                    if restricted and not set(known) & set(present):
                        restricted = False
                        waiting = [k for k in range(number, len(futures)) if not futures[k].done()]
                        old = [futures[k] for k in waiting]
                        for k in waiting:
                            futures[k] = again(k)
                        _forget(client, old)
                elif now - seen > patience:
                    raise ClusterError(f"there has been no worker for {patience:g} seconds") from None
        yield value
