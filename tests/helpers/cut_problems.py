"""Small problems cut into batches, and references of these batches that can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context

from helpers.small_problems import Listed
from oracles.problems import make_case
from partwise.problem import Batch, BatchSums, Executor, LabelledBatch, Work


@dataclass(frozen=True)
class Drawn:
    """A reference to a part of a random case, which is generated again whenever the reference is opened."""

    kind: str
    seed: int
    n: int
    part: tuple[int, int]
    n_examples: int
    n_slots: int
    n_weights: int

    def open(self) -> LabelledBatch:
        return drawn(self.kind, self.seed, self.n, self.part)


def drawn(kind: str, seed: int, n: int, part: tuple[int, int] | None = None) -> LabelledBatch:
    case = make_case("chain-tied-ends" if kind == "python" else kind, seed, n, part=part)
    structure = Listed(case.structure) if kind == "python" else case.structure
    return LabelledBatch(Batch(structure, case.features), case.gold, case.sample_weight)


def cut(kind: str, seed: int, sizes: Sequence[int]) -> list[LabelledBatch]:
    """Make a random case of sum(sizes) examples in batches of these sizes."""
    return [reference.open() for reference in references(kind, seed, sizes)]


def references(kind: str, seed: int, sizes: Sequence[int]) -> list[Drawn]:
    found, first, n = [], 0, sum(sizes)
    for size in sizes:
        part = (first, first + size)
        batch = drawn(kind, seed, n, part)
        found.append(Drawn(kind, seed, n, part, batch.n_examples, batch.n_slots, batch.n_weights))
        first += size
    return found


def perform(work: Work, reference: Drawn, block: tuple) -> object:
    """Do the work on a batch that is opened for this call only."""
    return work.on(BatchSums(reference.open(), work.loss), block)


class ElsewhereExecutor(Executor):
    """Does the work on every batch in another process, so that work and results are pickled."""

    def __init__(self, workers: int = 2) -> None:
        self.pool = ProcessPoolExecutor(workers, get_context("spawn"))
        self.tasks: set[Callable] = set()

    def run(self, work, references, blocks):
        self.tasks.add(work.task)
        return self.pool.map(perform, repeat(work), references, blocks)

    def close(self) -> None:
        self.pool.shutdown()
