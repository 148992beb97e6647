"""Executors, which do the sums over examples.

A problem asks its executor to do a piece of work on every batch and adds up the answers in the order of the batches.
The work is stateless and can be pickled, as can the references of batches that are not in memory: an executor may do it
in another process or on another machine, by `Work.on`. The same batches give the same bits wherever the work is done.

A walk is work that goes from batch to batch and carries results from one to the next. Several walks, each over its
batches, may be done at the same time in several places.
"""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from partwise.problem.batch import LabelledBatch
from partwise.problem.losses import Loss
from partwise.problem.tasks import BatchSums

T = TypeVar("T")
#: Each batch's part of what is not shared.
Blocks = Sequence[tuple[object, ...]]


class BatchReference(Protocol):
    """A batch that may be in another process, with sizes that are known before it is opened."""

    @property
    def n_examples(self) -> int: ...
    @property
    def n_slots(self) -> int: ...
    @property
    def n_weights(self) -> int: ...
    def open(self) -> LabelledBatch:
        """Return the batch, in this process's memory."""


@dataclass(frozen=True)
class Work(Generic[T]):
    """A task, the loss, arguments that all batches share (weights, numbers), and threads to use for a batch."""

    task: Callable[..., T]
    loss: Loss
    shared: tuple[object, ...] = ()
    n_jobs: int = 1

    def on(self, batch: BatchSums, block: tuple[object, ...]) -> T:
        """Do the task for one batch; block: the batch's own arguments."""
        return self.task(batch, self.n_jobs, *block, *self.shared)


class Walk(ABC):
    """Work that goes from batch to batch. It can be pickled, and the same walk gives the same answer each time."""

    loss: Loss

    @abstractmethod
    def over(self, batches: Callable[[Iterable[int]], Generator[BatchSums]]) -> Any:
        """Return what the walk finds; `batches` yields batches of these numbers, opened as they are asked for."""


class Executor(ABC):
    """Does work on batches."""

    #: Whether files may be in any folder, not only in `files`: the work is done on this machine.
    files_anywhere: bool = False
    #: Whether files may be overwritten: no other process does the same work at the same time.
    overwrites: bool = True
    #: The bytes that a walk may keep of one batch's dual variables; None: any number.
    block_room: int | None = None
    #: Whether there is memory for everything that walks find on all batches.
    roomy: bool = False

    @property
    def files(self) -> str | None:
        """A folder in which all workers can write files and read each other's; None without such a folder."""
        return None

    @property
    def places(self) -> int:
        """The number of walks that are done at the same time."""
        return 1

    def walk(self, walks: Sequence[Walk], references: Sequence[Sequence[BatchReference]]) -> Iterator[Any]:
        """Yield what each walk finds on its batches, in the order of the walks."""
        for each, own in zip(walks, references, strict=True):
            yield each.over(partial(self._some, own, each.loss))

    def _some(self, references: Sequence[BatchReference], loss: Loss, numbers: Iterable[int]) -> Generator[BatchSums]:
        return self.opened([references[number] for number in numbers], loss)

    def opened(self, references: Sequence[BatchReference], loss: Loss) -> Generator[BatchSums]:
        """Open these batches in this process's memory, one after the other."""
        for reference in references:
            yield self.in_memory(reference, loss) or BatchSums(reference.open(), loss)

    @abstractmethod
    def run(self, work: Work[T], references: Sequence[BatchReference], blocks: Blocks) -> Iterator[T]:
        """Yield what the work gives for each batch, in the order of the references."""

    def in_memory(self, reference: BatchReference, loss: Loss) -> BatchSums | None:
        """Return a batch in this process's memory, for work on single examples; None if it lies elsewhere."""
        return None


class ThreadExecutor(Executor):
    """In this process, batch after batch, each with the core's threads; batches are opened once and kept (`opened`)."""

    files_anywhere = roomy = True

    def __init__(self, opened: Mapping[BatchReference, BatchSums] | None = None) -> None:
        self._opened: WeakKeyDictionary[BatchReference, dict[Loss, BatchSums]] = WeakKeyDictionary()
        for reference, sums in (opened or {}).items():
            self._opened[reference] = {sums.loss: sums}

    @property
    def files(self) -> str:
        return tempfile.gettempdir()

    def run(self, work: Work[T], references: Sequence[BatchReference], blocks: Blocks) -> Iterator[T]:
        for reference, block in zip(references, blocks, strict=True):
            yield work.task(self.in_memory(reference, work.loss), work.n_jobs, *block, *work.shared)

    def in_memory(self, reference: BatchReference, loss: Loss) -> BatchSums:
        by_loss = self._opened.setdefault(reference, {})
        if loss not in by_loss:
            by_loss[loss] = BatchSums(reference.open(), loss)
        return by_loss[loss]
