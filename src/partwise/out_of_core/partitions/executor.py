"""Work on batches in files: some batches stay open, as memory allows, and the others are read one ahead of the work.

Estimates of memory depend on sizes alone, so that the same partition and limit always do the same. They were measured
on CoNLL-2000 and rounded up: an opened batch with 18 attributes per position takes 350 bytes per position.
"""

import os
import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from partwise.problem import BatchReference, BatchSums, Executor, Loss, Work
from partwise.problem.executor import Blocks
from partwise.support.arrays import Ints
from partwise.support.memory import size_text

T = TypeVar("T")
Count = TypeVar("Count", int, Ints)

#: Bytes of an opened batch per example, per row and per attribute of a row; more for an attribute with a value.
EXAMPLE, ROW, ENTRY, VALUE = 64, 80, 16, 8
#: More bytes for access by features, per weight and per attribute of a row. Random rows took 27 to 33 bytes per weight,
#: where attributes have weights for 4 labels or more, and 14 per attribute.
COLUMN, COLUMN_ENTRY = 64, 16
#: More memory while a batch is read, as a share of the opened batch: the file's bytes and numbers in 64 bits.
OPENING = 2.0
#: Bytes of a process before it does anything (with pandas and pyarrow, which scikit-learn imports if installed); bytes
#: of a model, as a multiple of its file; vectors that a solver holds.
PROCESS, MODEL, VECTORS = 220_000_000, 4, 30
#: Bytes per slot that a method may hold that visits single examples; such methods need all batches open.
SLOT = 24
#: Bytes per row of methods that keep labellings (`bcfw`, `dcd`): about 16 labellings of two slots per position. If the
#: labellings of a batch in files take more, they are merged.
LABELLINGS = 512
#: Batches whose dual variables are in memory at a time, with files: one is written, one worked on, one read.
AT_A_TIME = 3

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}


def parse_size(text: str | int | float, name: str = "memory") -> int:
    """Return a number of bytes, given as 500_000_000, "500M" or "2.5G"; ValueError for anything else."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise ValueError(f"{name} must be a number of bytes, got {text!r}")
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([KMGT]?)B?\s*", str(text).upper())
    size = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if not 0 < size < 1 << 62:
        raise ValueError(f"{name} must be a number of bytes such as 500M or 2G, got {text!r}")
    return size


def opened_bytes(n_examples: Count, n_rows: Count, n_entries: Count, valued: bool, n_weights: int = 0) -> Count:
    """Return the bytes of an opened batch, or of several; n_weights: of a batch for access by features, else 0."""
    entry = ENTRY + VALUE * valued + COLUMN_ENTRY * (n_weights > 0)
    return EXAMPLE * n_examples + ROW * n_rows + entry * n_entries + COLUMN * n_weights


@dataclass(frozen=True)
class Plan:
    """The numbers of the batches that stay open; the others are opened for each piece of work.

    blocks: whether there is room for dual variables kept in files. room: bytes for those of one batch (None: any).
    """

    kept: frozenset[int]
    everything: bool
    blocks: bool = True
    room: int | None = None


def dual_bytes(n_slots: int, n_rows: int) -> int:
    """Return the bytes of dual variables, of the method that takes most."""
    return max(SLOT * n_slots, LABELLINGS * n_rows)


def plan(
    batches: Sequence[int], memory: int | None, model_bytes: int, n_weights: int, duals: int, of_a_batch: int
) -> Plan:
    """Return which batches, of so many bytes each, stay open within a limit on the memory of the process.

    duals: bytes of dual variables of all batches; of_a_batch: those of the largest batch. Work goes over all batches in
    order, again and again. Of the batches that do not fit, one is worked on and one is read ahead; the rest of the
    memory holds dual variables of three batches, and then the first batches. (To keep the last ones would be of no use:
    the batch used least recently is needed next.) ValueError, with the memory that is needed, if two do not fit.
    """
    everything = Plan(frozenset(range(len(batches))), True)
    if memory is None:
        return everything
    fixed = PROCESS + MODEL * model_bytes + VECTORS * 8 * n_weights
    largest = max(batches)
    opening = int(OPENING * largest)
    if sum(batches) + opening + fixed + duals <= memory:
        return everything
    room = memory - fixed - opening - 2 * largest
    if room < 0:
        needed = size_text(1.01 * (memory - room))
        raise ValueError(
            f"memory: {size_text(memory)} are too little: {size_text(fixed)} for the program, the model and a solver's "
            f"vectors of {n_weights} weights, {size_text(opening + 2 * largest)} for the largest batch, the next one "
            f"and reading; give at least {needed}, or write a partition of smaller batches"
        )
    in_files = AT_A_TIME * of_a_batch
    blocks = room >= in_files
    room -= in_files if blocks else 0
    kept = frozenset(np.flatnonzero(np.cumsum(batches) <= room).tolist())
    return Plan(kept, False, blocks, of_a_batch or None)


class PartitionExecutor(Executor):
    """Does work in this process, batch after batch; `plan` says which batches stay open.

    While a batch is worked on, another thread reads the next batch that is not open: at most two batches are open
    besides those that stay. An error, Ctrl-C included, waits for that thread. folder: where dual blocks may be written.
    """

    def __init__(self, references: Sequence[BatchReference], plan: Plan, folder: str) -> None:
        self._kept = {references[number] for number in plan.kept}
        self.roomy, self.block_room = plan.everything, plan.room
        self._files = folder if plan.blocks and os.access(folder, os.W_OK) else None
        self._open: dict[tuple[BatchReference, Loss], BatchSums] = {}

    @property
    def files(self) -> str | None:
        return self._files

    def run(self, work: Work[T], references: Sequence[BatchReference], blocks: Blocks) -> Iterator[T]:
        with closing(self.opened(references, work.loss)) as batches:
            for _, block in zip(references, blocks, strict=True):
                # No variable holds the batch, so that its memory is released before the next batch but one is read.
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
