"""Where the sums over examples are done.

A problem asks its executor to do a piece of work on every batch and adds up what comes back in the order of the
batches. The work is stateless and can be pickled, as can the references of batches that do not lie in memory, so that
an executor may do it in another process or on another machine, where `Work.on` is called. The same partition into
batches gives the same bits wherever the work is done and in whatever order.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from ..losses import Loss
from .batch import LabelledBatch
from .tasks import TASKS, BatchSums


class BatchReference(Protocol):
    """A batch that may lie elsewhere: its sizes are known before it is opened."""

    @property
    def n_examples(self) -> int: ...
    @property
    def n_slots(self) -> int: ...
    @property
    def n_weights(self) -> int: ...
    def open(self) -> LabelledBatch:
        """The batch in this process's memory."""


@dataclass(frozen=True)
class Work:
    """A task by name, the loss, what is the same for every batch (weights, numbers), and threads to use for a batch."""

    task: str
    loss: Loss
    shared: tuple[Any, ...] = ()
    n_jobs: int = 1

    def on(self, sums: BatchSums, block: tuple[Any, ...]) -> Any:
        """Do it for one batch; block: that batch's part of what is not shared."""
        return TASKS[self.task](sums, self.n_jobs, *self.shared, *block)


class Executor(ABC):
    """Does work on batches."""

    @abstractmethod
    def run(self, work: Work, references: Sequence[BatchReference], blocks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """What the work gives for each batch, in the order of the references."""

    def in_memory(self, reference: BatchReference, loss: Loss) -> BatchSums | None:
        """The sums of a batch in this process's memory, for work on single examples; None if it lies elsewhere."""
        return None


class ThreadExecutor(Executor):
    """In this process, batch after batch, each with the core's threads; batches are opened once and kept."""

    def __init__(self) -> None:
        self._opened: WeakKeyDictionary[BatchReference, dict[Loss, BatchSums]] = WeakKeyDictionary()

    def run(self, work: Work, references: Sequence[BatchReference], blocks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        for reference, block in zip(references, blocks, strict=True):
            yield work.on(self.in_memory(reference, work.loss), block)

    def in_memory(self, reference: BatchReference, loss: Loss) -> BatchSums:
        by_loss = self._opened.setdefault(reference, {})
        if loss not in by_loss:
            by_loss[loss] = BatchSums(reference.open(), loss)
        return by_loss[loss]
