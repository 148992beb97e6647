"""Work on batches of a partition, done by the workers of a Dask cluster.

Tasks have no state: (work, some batches' references, blocks) -> a partial sum for each of these batches. The scheduler
keeps what it takes to do a task again, so that a worker that is killed loses nothing; partial sums are added up here in
the order of the batches. Which worker does what, and how many there are, changes no bit.

A walk goes over several batches, which are one task. It may write files into the partition's folder: a walk that is
done again writes the same ones.

A worker keeps batches open as far as its limit goes. A batch goes to the same worker each time while the workers are
the same; another one may take it over.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from partwise.out_of_core.cluster.cluster import ClusterError, forget, results, workers
from partwise.problem import BatchReference, BatchSums, Executor, Walk, Work
from partwise.problem.losses import Loss

#: Batches that are worked on in one task, at most: a task costs the scheduler as much as 10,000 tokens a worker. Of
#: answers with a number per weight a task holds so many numbers, or one answer.
SEVERAL, MOST_NUMBERS = 8, 4_000_000

#: Batches that are open in this worker process, and their bytes.
_OPEN: dict[tuple[BatchReference, Loss], tuple[BatchSums, int]] = {}


@dataclass(frozen=True)
class Sized:
    """A batch's reference and the bytes that it takes once it is open."""

    reference: BatchReference
    n_bytes: int


class Task(NamedTuple):
    """What is to be done in a worker, and in which of them."""

    place: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class DaskExecutor(Executor):
    """On the workers of a client.

    Parameters
    ----------
    client : dask.distributed.Client
    sizes : bytes of each opened batch by its reference
    memory : int or None
        Bytes of batches that a worker keeps open, at most (None: all that it was given).
    patience : float
        Seconds to wait for a worker where there is none.
    folder : str, optional
        Where workers may write files.
    """

    def __init__(
        self,
        client: Any,
        sizes: dict[Any, int],
        memory: int | None = None,
        patience: float = 60.0,
        folder: str | None = None,
    ) -> None:
        if client.asynchronous:
            raise ValueError("the client must not be asynchronous")
        self._folder = folder
        self._client, self._sizes, self._memory, self._patience = client, sizes, memory, patience

    @property
    def files(self) -> str | None:
        return self._folder if self._folder and os.access(self._folder, os.W_OK) else None

    @property
    def overwrites(self) -> bool:
        return False  # a worker that was given up may still be there

    @property
    def roomy(self) -> bool:
        return self._memory is None

    @property
    def places(self) -> int:
        """The workers at the moment."""
        return max(1, len(self._workers()))

    def _workers(self) -> list[str]:
        if self._client.status != "running":
            raise ClusterError(f"the connection to the scheduler is {self._client.status}")
        return workers(self._client)

    def walk(self, walks: Sequence[Walk], references: Sequence[Sequence[BatchReference]]) -> Iterator[Any]:
        known = self._workers()
        tasks = []
        for number, (each, own) in enumerate(zip(walks, references, strict=True)):
            sized = [Sized(reference, self._sizes[reference]) for reference in own]
            tasks.append(Task(number % max(1, len(known)), _walk, (each, sized, self._memory)))
        yield from self._done(tasks, known)

    def run(self, work: Work, references: Sequence[BatchReference], blocks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        if not references:
            return
        client, known = self._client, self._workers()
        # The work, weights and all, travels once and is passed on between workers. It is a task, not scattered data:
        # the scheduler can make it again.
        shared = client.submit(_given, work, pure=False)
        several = max(1, min(SEVERAL, MOST_NUMBERS // max(1, references[0].n_weights)))
        tasks = []
        for place, numbers in _tasks(len(references), max(1, len(known)), several):
            sized = [Sized(references[number], self._sizes[references[number]]) for number in numbers]
            tasks.append(Task(place, _do, (shared, sized, [blocks[number] for number in numbers], self._memory)))
        try:
            for answers in self._done(tasks, known):
                yield from answers
        finally:
            forget(client, [shared])

    def _done(self, tasks: list[Task], known: list[str]) -> Iterator[Any]:
        """What the tasks find, in their order; each at its worker of those that are known, or elsewhere."""
        client = self._client

        def submit(task: Task, known: list[str]) -> Any:
            wanted = [known[task.place]] if known else None
            options = {"pure": False, "workers": wanted, "allow_other_workers": bool(known)}
            return client.submit(task.function, *task.arguments, **options)

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # weights are large, and travel once
            futures = [submit(task, known) for task in tasks]
        try:
            yield from results(client, futures, self._patience, known, lambda number: submit(tasks[number], []))
        finally:
            forget(client, futures)


def _tasks(n_batches: int, n_places: int, several: int) -> Iterator[tuple[int, range]]:
    """Which batches are done where: neighbours in the same place, as walks over them are, `several` in a task."""
    size, more = divmod(n_batches, n_places)
    first = 0
    for place in range(n_places):
        last = first + size + (place < more)
        for begin in range(first, last, several):
            yield place, range(begin, min(begin + several, last))
        first = last


def _given(work: Work) -> Work:
    return work


def _do(work: Work, batches: list[Sized], blocks: list[tuple[Any, ...]], memory: int | None) -> list[Any]:
    """In a worker."""
    pairs = zip(batches, blocks, strict=True)
    return [work.on(_opened(work.loss, batch, memory), block) for batch, block in pairs]


def _walk(walk: Walk, batches: list[Sized], memory: int | None) -> Any:
    """In a worker."""
    return walk.over(lambda numbers: (_opened(walk.loss, batches[number], memory) for number in numbers))


def _opened(loss: Loss, batch: Sized, memory: int | None) -> BatchSums:
    key = batch.reference, loss
    if key in _OPEN:
        return _OPEN[key][0]
    sums = BatchSums(batch.reference.open(), loss)
    # The first batches stay: every pass asks for all of them in turn, so that dropping the oldest keeps none.
    _forget_other_runs(loss, batch.reference)
    if memory is None or sum(size for _, size in list(_OPEN.values())) + batch.n_bytes <= memory:
        _OPEN[key] = sums, batch.n_bytes
    return sums


def _forget_other_runs(loss: Loss, reference: Any) -> None:
    """Close batches of another loss or partition: a worker serves one run at a time."""
    for key in list(_OPEN):
        other: Any = key[0]
        if key[1] != loss or getattr(other, "partitions", None) is not getattr(reference, "partitions", None):
            _OPEN.pop(key, None)
