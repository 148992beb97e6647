"""Work on batches in files: some batches stay open, the others are read one ahead of the work."""

import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from partwise.out_of_core.partitions.sizes import Plan
from partwise.problem import BatchReference, BatchSums, Executor, Work
from partwise.problem.losses import Loss

T = TypeVar("T")


class PartitionExecutor(Executor):
    """Does work in this process, batch after batch; `plan` says which batches stay open.

    While a batch is worked on, the next batch that is not open is read on another thread: at most two batches are open
    besides those that stay. Sums have the order of the batches. An error, Ctrl-C included, waits for the end of that
    thread. `folder` is where dual blocks may be written.
    """

    def __init__(self, references: Sequence[BatchReference], plan: Plan, folder: str) -> None:
        self._kept = {references[number] for number in plan.kept}
        self.roomy, self.block_room = plan.everything, plan.room
        self._files = folder if plan.blocks and os.access(folder, os.W_OK) else None
        self._open: dict[tuple[BatchReference, Loss], BatchSums] = {}

    @property
    def files(self) -> str | None:
        return self._files

    def run(
        self, work: Work[T], references: Sequence[BatchReference], blocks: Sequence[tuple[object, ...]]
    ) -> Iterator[T]:
        with closing(self.opened(references, work.loss)) as batches:
            for _, block in zip(references, blocks, strict=True):
                # The batch gets no name here: its memory is released before the next but one is read.
                yield work.on(next(batches), block)

    def opened(self, references: Sequence[BatchReference], loss: Loss) -> Generator[BatchSums]:
        waiting = iter([each for each in references if (each, loss) not in self._open])
        with ThreadPoolExecutor(1, "partwise-read-ahead") as reader:

            def read_next() -> Future[BatchSums] | None:
                reference = next(waiting, None)
                return None if reference is None else reader.submit(_open, reference, loss)

            ahead = read_next()
            for reference in references:
                sums = self._open.get((reference, loss))
                if sums is None:
                    assert ahead is not None
                    sums = ahead.result()
                    if reference in self._kept:
                        self._open[reference, loss] = sums
                    ahead = read_next()
                yield sums
                del sums

    def in_memory(self, reference: BatchReference, loss: Loss) -> BatchSums | None:
        if self.roomy and (reference, loss) not in self._open:
            self._open[reference, loss] = _open(reference, loss)
        return self._open[reference, loss] if self.roomy else None


def _open(reference: BatchReference, loss: Loss) -> BatchSums:
    return BatchSums(reference.open(), loss)
