"""Work on batches of a partition, done by the workers of a Dask cluster.

Tasks have no state: (work, batch's reference, block) -> partial sum. The scheduler keeps what it takes to do a task
again, so that a worker that is killed loses nothing; partial sums are added up here in the order of the batches.
Which worker does what, and how many there are, changes no bit.

A walk goes over several batches, which are one task. It may write files into the partition's folder: a walk that is
done again writes the same ones.

A worker keeps batches open as far as its limit goes. A batch goes to the same worker each time while the workers are
the same; another one may take it over.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..losses import Loss
from ..problem import BatchReference, BatchSums, Executor, Walk, Work
from .cluster import ClusterError, forget, results, workers

#: Batches that are open in this worker process, and their bytes.
_OPEN: dict[tuple[BatchReference, Loss], tuple[BatchSums, int]] = {}


@dataclass(frozen=True)
class Sized:
    """A batch's reference and the bytes that it takes once it is open."""

    reference: BatchReference
    n_bytes: int


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
        client, known = self._client, self._workers()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # weights are large, and travel once
            futures = [
                client.submit(
                    _walk,
                    each,
                    [Sized(reference, self._sizes[reference]) for reference in own],
                    self._memory,
                    pure=False,
                    workers=[known[number % len(known)]] if known else None,
                    allow_other_workers=bool(known),
                )
                for number, (each, own) in enumerate(zip(walks, references, strict=True))
            ]
        try:
            yield from results(client, futures, self._patience)
        finally:
            forget(client, futures)

    def run(self, work: Work, references: Sequence[BatchReference], blocks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        client, known = self._client, self._workers()
        # The work, weights and all, travels once and is passed on between workers. It is a task, not scattered data:
        # the scheduler can make it again.
        shared = client.submit(_given, work, pure=False)
        futures = [
            client.submit(
                _do,
                shared,
                Sized(reference, self._sizes[reference]),
                block,
                self._memory,
                pure=False,
                workers=[known[number % len(known)]] if known else None,
                allow_other_workers=bool(known),
            )
            for number, (reference, block) in enumerate(zip(references, blocks, strict=True))
        ]
        try:
            yield from results(client, futures, self._patience)
        finally:
            forget(client, [shared, *futures])


def _given(work: Work) -> Work:
    return work


def _do(work: Work, batch: Sized, block: tuple[Any, ...], memory: int | None) -> Any:
    """In a worker."""
    return work.on(_opened(work.loss, batch, memory), block)


def _walk(walk: Walk, batches: list[Sized], memory: int | None) -> Any:
    """In a worker."""
    return walk.over(lambda: (_opened(walk.loss, batch, memory) for batch in batches))


def _opened(loss: Loss, batch: Sized, memory: int | None) -> BatchSums:
    key = batch.reference, loss
    if key in _OPEN:
        return _OPEN[key][0]
    sums = BatchSums(batch.reference.open(), loss)
    # The first batches stay: every pass asks for all of them in turn, so that dropping the oldest keeps none.
    _forget_other_runs(loss, batch.reference)
    if memory is None or sum(size for _, size in _OPEN.values()) + batch.n_bytes <= memory:
        _OPEN[key] = sums, batch.n_bytes
    return sums


def _forget_other_runs(loss: Loss, reference: Any) -> None:
    """Close batches of another loss or partition: a worker serves one run at a time."""
    for key in list(_OPEN):
        other: Any = key[0]
        if key[1] != loss or getattr(other, "partitions", None) is not getattr(reference, "partitions", None):
            _OPEN.pop(key, None)
