"""What `block_dual` does on batches, wherever they lie: walks that read and write dual blocks.

Dual blocks are in files, and where there is room also kept by the process that worked on them last. Then files are
written now and then only: what was done since is known by the weights that each round began with (`Past`), and whoever
has not kept the blocks makes these rounds again, from the files, to the same bits. So a process may die at any time.

While a batch is worked on, the next one's file is read on a thread, and that of the one before is written on another.
"""

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from partwise.out_of_core.block_files import Block, check_plane, read_block, write_block
from partwise.problem import BatchSums, Problem, Walk
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.block_steps import BlockSolver
from partwise.solvers.engine.point_conversions import check_point
from partwise.support.arrays import Floats

#: Blocks that this process keeps: by folder and group the attempt that they are of, and a block per batch.
_KEPT: dict[tuple[str, int], tuple[int, list[Block | None]]] = {}

T = TypeVar("T")
_END = object()

#: Goes over those of a walk's batches that have these numbers.
Batches = Callable[[Iterable[int]], Generator[BatchSums]]


class Visit(NamedTuple):
    """A batch to be visited: the file of its dual variables (None: it was never written), its digest, its sizes.

    new: where its dual variables are to be written, spare: over which file. seed: of the batch's own random numbers.
    """

    path: str | None
    digest: bytes
    n_examples: int
    n_weights: int
    new: str = ""
    spare: str = ""
    seed: tuple[int, int] = (0, 0)

    def read(self, inner: BlockSolver[Any]) -> Block | None:
        """Its dual variables; None: those of the gold labellings."""
        if self.path is None:
            return None
        return read_block(self.path, self.digest, inner, self.n_examples, self.n_weights)


class Past(NamedTuple):
    """A round: its number, the weights that it began with, l2, steps on each batch, and the weights of a warm start.

    seed: of the order in which batches are visited; None: that of their numbers.
    """

    attempt: int
    weights: Floats
    l2: float
    passes: int
    warm_start: WarmStart | None = None
    seed: int | None = None

    def order(self, walk: "BlockWalk") -> list[int]:
        """The walk's batches as they are visited."""
        numbers = np.arange(len(walk.visits))
        if self.seed is not None:
            numbers = np.random.default_rng((self.seed, self.attempt, walk.group)).permutation(numbers)
        return numbers.tolist()


class Moved(NamedTuple):
    """After a walk: how far the weights moved, the gain of the walk's own dual, sums over the batches, new digests.

    measure: of the inner solver's own measure of progress. A batch that was not written has the digest b"".
    """

    moved: Floats
    gain: float
    measure: float
    visits: int
    digests: list[bytes]


class Spent(NamedTuple):
    """Seconds of a walk in all, and those of them that it waited for batches, for blocks, and for files to be written.

    again: in which rounds were made again. processor: seconds of the processor, all threads.
    """

    total: float = 0.0
    opening: float = 0.0
    reading: float = 0.0
    writing: float = 0.0
    again: float = 0.0
    processor: float = 0.0


class Plane(NamedTuple):
    """Losses at some weights, and the plane (u, b) of the dual variables."""

    losses: float
    u: Floats
    b: float


@dataclass(frozen=True, kw_only=True)
class BlockWalk(Walk):
    """A walk over the batches of one group.

    last: the round that the blocks are to be of (0: none was made). since: the rounds from the files to that one, None
    if they are to be asked for by those who need them: then the walk's answer is None. keep: whether blocks are kept.
    """

    loss: Loss
    inner: BlockSolver[Any]
    n_jobs: int
    folder: str
    group: int
    visits: Sequence[Visit]
    last: int
    since: tuple[Past, ...] | None
    keep: bool

    def over(self, batches: Batches) -> tuple[Any, Spent]:
        """What `work` finds (None: the rounds since are needed), and where the time went."""
        clock = Clock()
        found = self._over(batches, clock)
        return found, clock.spent()

    def _over(self, batches: Batches, clock: "Clock") -> Any:
        for folder in {folder for folder, _ in list(_KEPT) if not os.path.isdir(folder)}:
            forget(folder)  # a run that has ended, perhaps in another process
        known = _KEPT.get((self.folder, self.group))
        blocks = known[1] if known is not None and known[0] == self.last else None
        if blocks is None and self.since is None:
            return None
        if blocks is None and self.since:
            with clock.during("again"):
                blocks = self._made_again(batches)
        order = self.order()
        with ThreadPoolExecutor(1, "partwise-read") as reader, closing(batches(order)) as opened:
            given = (blocks[k] for k in order) if blocks is not None else self._read_ahead(reader, order)
            return self.work(clock.waiting("opening", opened), clock.waiting("reading", given), clock)

    def order(self) -> list[int]:
        """The numbers of its batches as they are visited."""
        return list(range(len(self.visits)))

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None], clock: "Clock") -> Any:
        """What is to be done, with each batch's block, in that order."""
        raise NotImplementedError

    def _read_ahead(self, reader: ThreadPoolExecutor, order: list[int]) -> Iterator[Block | None]:
        ahead: Future[Block | None] | None = None
        for visit in (*(self.visits[k] for k in order), None):
            following = None if visit is None else reader.submit(visit.read, self.inner)
            if ahead is not None:
                yield ahead.result()
            ahead = following

    def _made_again(self, batches: Batches) -> list[Block | None]:
        """The blocks of the last round, from the files and the rounds since."""
        blocks = [visit.read(self.inner) for visit in self.visits]
        for past in self.since or ():
            order = past.order(self)
            with closing(batches(order)) as opened:
                for k, (block, _) in zip(order, _visited(self, past, opened, (blocks[k] for k in order)), strict=True):
                    blocks[k] = block
        return blocks


@dataclass(frozen=True, kw_only=True)
class Round(BlockWalk):
    """Steps of the inner solver on each batch in turn, as `now` says; `write`: to files, too."""

    now: Past
    write: bool

    def order(self) -> list[int]:
        return self.now.order(self)

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None], clock: "Clock") -> Moved:
        _KEPT.pop((self.folder, self.group), None)  # they are changed in place
        weights, gain, measure, made = self.now.weights, 0.0, 0.0, 0
        kept: list[Block | None] = [None] * len(self.visits)
        digests = [b""] * len(self.visits)
        with ThreadPoolExecutor(1, "partwise-write") as writer:
            writing: tuple[int, Future[bytes]] | None = None
            for k, (block, step) in zip(self.order(), _visited(self, self.now, batches, blocks), strict=True):
                weights = step.weights
                gain, measure, made = gain + step.gain, measure + step.measure, made + step.visits
                with clock.during("writing"):
                    _finish(writing, digests)  # no more than one is held while it is written
                writing = None
                if self.write and block is not None:
                    visit = self.visits[k]
                    writing = k, writer.submit(write_block, visit.new, self.inner, block, visit.spare)
                if self.keep:
                    kept[k] = block
                del block, step
            with clock.during("writing"):
                _finish(writing, digests)
        if self.keep:
            _KEPT[self.folder, self.group] = self.now.attempt, kept
        return Moved(weights - self.now.weights, gain, measure, made, digests)


@dataclass(frozen=True, kw_only=True)
class Save(BlockWalk):
    """Blocks as they are, written to files: their digests."""

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None], clock: "Clock") -> list[bytes]:
        found = []
        for visit, block in zip(self.visits, blocks, strict=True):
            with clock.during("writing"):
                found.append(b"" if block is None else write_block(visit.new, self.inner, block))
        return found


@dataclass(frozen=True, kw_only=True)
class Certify(BlockWalk):
    """The losses at some weights, and the plane of the dual variables, all summed anew.

    check: whether the blocks' own planes are compared with those of their dual variables (blocks from a checkpoint).
    """

    weights: Floats
    check: bool = False

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None], clock: "Clock") -> Plane:
        value, u, b = 0.0, np.zeros_like(self.weights), 0.0
        for visit in self.visits:
            part, block = Problem.on(next(batches), L2(1.0), self.n_jobs), next(blocks)
            value += part.losses(self.weights)
            if block is not None:
                point = self.inner.dual_point(part, block.state)
                own_u, own_b = part.dual_terms(point)
                if self.check:
                    check_point(part, point)
                    check_plane(block.plane, own_u, f"{visit.path}: has a plane that is not that of its dual variables")
                u += own_u
                b += own_b
            del part, block
        return Plane(value, u, b)


class Clock:
    """Where a walk's time goes."""

    def __init__(self) -> None:
        self._began, self._processor = time.perf_counter(), time.process_time()
        self._parts: dict[str, float] = {}

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        before = time.perf_counter()
        yield
        self._parts[part] = self._parts.get(part, 0.0) + time.perf_counter() - before

    def waiting(self, part: str, things: Iterator[T]) -> Iterator[T]:
        """The things; what they take to come is that part's."""
        while True:
            with self.during(part):
                thing = next(things, _END)
            if thing is _END:
                return
            yield thing  # type: ignore[misc]
            del thing

    def spent(self) -> Spent:
        total, processor = time.perf_counter() - self._began, time.process_time() - self._processor
        return Spent(total, processor=processor, **self._parts)


def forget(folder: str) -> None:
    """Drop what this process keeps of the blocks whose files are in this folder."""
    for key in [key for key in list(_KEPT) if key[0] == folder]:
        _KEPT.pop(key, None)


class _Step(NamedTuple):
    """After a visit: the weights that go on to the next batch, the gain of the dual, and what `Moved` adds up."""

    weights: Floats
    gain: float = 0.0
    measure: float = 0.0
    visits: int = 0


def _finish(writing: tuple[int, Future[bytes]] | None, digests: list[bytes]) -> None:
    """Wait for the file that is being written."""
    if writing is not None:
        digests[writing[0]] = writing[1].result()


def _visited(
    walk: BlockWalk, round_: Past, batches: Iterator[BatchSums], blocks: Iterator[Block | None]
) -> Iterator[tuple[Block | None, _Step]]:
    """The batches' blocks after the steps of a round, one after the other; they are changed in place, as are weights.

    With u_k the plane of batch k and w the weights that all blocks together have by now, the batch sees the dual
    b_k - |u_k + v|^2 / (2 l2), v = l2 w - u_k: it begins at w and takes it to (u_k + v) / l2.
    """
    weights = round_.weights.copy()
    shift = np.empty_like(weights)  # vectors are large: new ones for each batch would take as long as some of its steps
    for k in round_.order(walk):
        visit, sums, block = walk.visits[k], next(batches), next(blocks)
        if not sums.sample_weight.any():
            yield None, _Step(weights)
            continue
        part, gain = Problem.on(sums, L2(round_.l2), walk.n_jobs), 0.0
        if block is None:
            block, gain = _begun(walk, round_, part, visit, weights)
            weights = block.state.weights
        state, plane = block
        before, raised = state.visits, state.raised
        np.multiply(round_.l2, weights, out=shift)
        shift -= plane
        part = part.with_shift(shift)
        state.weights = weights
        for _ in range(round_.passes):
            walk.inner.step(part, state)
        weights, state.weights = state.weights, np.zeros(0)
        step = _Step(weights, gain + state.raised - raised, state.gain, state.visits - before)
        np.multiply(round_.l2, weights, out=plane)  # u_k = l2 w - v
        plane -= shift
        yield block, step
        del sums, part, block, state, plane


def _begun(walk: BlockWalk, round_: Past, part: Problem, visit: Visit, weights: Floats) -> tuple[Block, float]:
    """A batch's first dual variables, and what the step to them from the gold labellings, (0, 0), gains."""
    part = part.with_shift(round_.l2 * weights)
    state = walk.inner.init_state(part, np.random.default_rng(visit.seed), round_.warm_start)
    u, b = part.dual_terms(walk.inner.dual_point(part, state))
    state.weights = part.weights_of_plane(u)
    return Block(state, u), part.dual_of_plane(u, b) - part.dual_of_plane(np.zeros_like(u), 0.0)
