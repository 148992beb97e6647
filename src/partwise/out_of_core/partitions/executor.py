"""Work on batches in files: some batches stay open, the others are read one ahead of the work."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from threading import Thread
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
        ahead = self._ahead(waiting, loss)
        try:
            for reference in references:
                sums = self._open.get((reference, loss))
                if sums is None:
                    assert ahead is not None
                    sums = ahead.result()
                    if reference in self._kept:
                        self._open[reference, loss] = sums
                    ahead = self._ahead(waiting, loss)
                yield sums
                del sums
        finally:
            if ahead is not None:
                ahead.join()

    def in_memory(self, reference: BatchReference, loss: Loss) -> BatchSums | None:
        if not self.roomy:
            return None
        if (reference, loss) not in self._open:
            self._open[reference, loss] = BatchSums(reference.open(), loss)
        return self._open[reference, loss]

    @staticmethod
    def _ahead(waiting: Iterator[BatchReference], loss: Loss) -> Ahead | None:
        reference = next(waiting, None)
        return None if reference is None else Ahead(reference, loss)


class Ahead(Thread):
    """A thread that reads a batch."""

    def __init__(self, reference: BatchReference, loss: Loss) -> None:
        super().__init__(name="partwise-read-ahead", daemon=True)
        self._reference, self._loss = reference, loss
        self._found: BatchSums | BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._found = BatchSums(self._reference.open(), self._loss)
        except BaseException as error:  # raised where the batch is asked for
            self._found = error

    def result(self) -> BatchSums:
        """Return the batch; raise the error of reading it if there was one."""
        self.join()
        found, self._found = self._found, None
        if isinstance(found, BaseException):
            raise found
        assert found is not None
        return found
