"""Walks of `block_dual` over batches, which read and write dual blocks.

Dual blocks are in files. If there is room, the process that worked on them last also keeps them, and files are written
only from time to time. A process that has not kept the blocks makes the rounds since then again, to the same bits, from
the files and from the weights that each round began with (`Past`). So a process may die at any time. While a batch is
worked on, one thread reads the next batch's file and another one writes the last batch's file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from partwise.out_of_core.block_files import Block, check_plane, read_block, write_block
from partwise.problem import L2, BatchSums, Loss, Problem, Walk
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.point_conversions import check_point
from partwise.solvers.online.base import BlockSolver
from partwise.support.arrays import Floats

#: Blocks that this process keeps: by folder and group the attempt that made them, and a block per batch.
_KEPT: dict[tuple[str, int], tuple[int, list[Block | None]]] = {}

A = TypeVar("A")

#: A function that yields those of a walk's batches that have these numbers.
Batches = Callable[[Iterable[int]], Generator[BatchSums]]


class Visit(NamedTuple):
    """A batch to be visited: the file of its dual variables (None: not written yet), the file's digest, sizes.

    new: the file to write dual variables to, spare: a file to overwrite. seed: that of the batch's random numbers.
    """

    path: str | None
    digest: bytes
    n_examples: int
    n_weights: int
    new: str = ""
    spare: str = ""
    seed: tuple[int, int] = (0, 0)

    def read(self, inner: BlockSolver[Any]) -> Block | None:
        """Read the batch's dual variables; None: those of the gold labellings."""
        if self.path is None:
            return None
        return read_block(self.path, self.digest, inner, self.n_examples, self.n_weights)


class Past(NamedTuple):
    """A round: its number, its first weights, l2, steps on each batch, and the weights of a warm start.

    seed: that of the order in which batches are visited; None: the order of their numbers.
    """

    attempt: int
    weights: Floats
    l2: float
    passes: int
    warm_start: WarmStart | None = None
    seed: int | None = None

    def order(self, walk: BlockWalk[Any]) -> list[int]:
        """Return the numbers of a walk's batches in the order of visits."""
        numbers = np.arange(len(walk.visits))
        if self.seed is not None:
            numbers = np.random.default_rng((self.seed, self.attempt, walk.group)).permutation(numbers)
        return numbers.tolist()


class Moved(NamedTuple):
    """The result of a round in a group: how far the weights moved, the gain of the group's dual, sums, new digests.

    measure: the sum of the inner solver's measure of progress. A batch that was not written has the digest b"".
    """

    moved: Floats
    gain: float
    measure: float
    visits: int
    digests: list[bytes]


@dataclass(frozen=True, kw_only=True)
class BlockWalk(Walk, Generic[A]):
    """A walk over the batches of one group.

    last: the round that made the blocks (0: no round). since: the rounds from the files to that round; with None a walk
    that needs them has the answer None. keep: whether blocks are kept in memory.
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

    def over(self, batches: Batches) -> A | None:
        """Return the answer of `work`; None: the rounds since are needed."""
        for folder in {folder for folder, _ in list(_KEPT) if not os.path.isdir(folder)}:
            forget(folder)  # a run that has ended, perhaps in another process
        attempt, blocks = _KEPT.get((self.folder, self.group), (-1, None))
        if attempt != self.last:
            if self.since is None:
                return None
            blocks = self._made_again(batches, self.since) if self.since else None
        order = self.order()
        with ThreadPoolExecutor(1, "partwise-read") as reader, closing(batches(order)) as opened:
            return self.work(opened, (blocks[k] for k in order) if blocks else self._read_ahead(reader, order))

    def order(self) -> list[int]:
        """Return the numbers of its batches in the order of visits."""
        return list(range(len(self.visits)))

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None]) -> A:
        """Do the walk's work with the batches and their blocks, in that order."""
        raise NotImplementedError

    def _read_ahead(self, reader: ThreadPoolExecutor, order: list[int]) -> Iterator[Block | None]:
        ahead: Future[Block | None] | None = None
        for visit in (*(self.visits[k] for k in order), None):
            following = None if visit is None else reader.submit(visit.read, self.inner)
            if ahead is not None:
                yield ahead.result()
            ahead = following

    def _made_again(self, batches: Batches, since: tuple[Past, ...]) -> list[Block | None]:
        """Return the blocks of the last round, made again from the files and the rounds since."""
        blocks = [visit.read(self.inner) for visit in self.visits]
        for past in since:
            order = past.order(self)
            with closing(batches(order)) as opened:
                for k, (block, _) in zip(order, _visited(self, past, opened, (blocks[k] for k in order)), strict=True):
                    blocks[k] = block
        return blocks


@dataclass(frozen=True, kw_only=True)
class Round(BlockWalk[Moved]):
    """Makes the steps of the round `now` on each batch in turn; write: whether blocks are written to files."""

    now: Past
    write: bool

    def order(self) -> list[int]:
        return self.now.order(self)

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None]) -> Moved:
        _KEPT.pop((self.folder, self.group), None)  # they are changed in place
        weights, gain, measure, made = self.now.weights, 0.0, 0.0, 0
        kept: list[Block | None] = [None] * len(self.visits)
        digests = [b""] * len(self.visits)
        writing: list[tuple[int, Future[bytes]]] = []
        with ThreadPoolExecutor(1, "partwise-write") as writer:
            for k, (block, step) in zip(self.order(), _visited(self, self.now, batches, blocks), strict=True):
                weights = step.weights
                gain, measure, made = gain + step.gain, measure + step.measure, made + step.visits
                _finish(writing, digests)  # no more than one block is held while it is written
                if self.write and block is not None:
                    visit = self.visits[k]
                    writing.append((k, writer.submit(write_block, visit.new, self.inner, block, visit.spare)))
                if self.keep:
                    kept[k] = block
                del block, step
            _finish(writing, digests)
        if self.keep:
            _KEPT[self.folder, self.group] = self.now.attempt, kept
        return Moved(weights - self.now.weights, gain, measure, made, digests)


@dataclass(frozen=True, kw_only=True)
class Save(BlockWalk[list[bytes]]):
    """Writes blocks to files and returns the digests."""

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None]) -> list[bytes]:
        pairs = zip(self.visits, blocks, strict=True)
        return [b"" if block is None else write_block(visit.new, self.inner, block) for visit, block in pairs]


@dataclass(frozen=True, kw_only=True)
class Certify(BlockWalk[tuple[float, Floats, float]]):
    """Sums the losses at some weights, and the plane (u, b) of the dual variables.

    check: whether this plane is compared with the blocks' own, which may come from a checkpoint.
    """

    weights: Floats
    check: bool = False

    def work(self, batches: Iterator[BatchSums], blocks: Iterator[Block | None]) -> tuple[float, Floats, float]:
        value, u, b = 0.0, np.zeros_like(self.weights), 0.0
        for visit in self.visits:
            part, block = Problem.on(next(batches), L2(1.0), self.n_jobs), next(blocks)
            value += part.sums.value(self.weights)
            if block is not None:
                point = self.inner.dual_point(part, block.state)
                own_u, own_b = part.dual_terms(point)
                if self.check:
                    check_point(part, point)
                    check_plane(block.plane, own_u, f"{visit.path}: has a plane that is not that of its dual variables")
                u += own_u
                b += own_b
            del part, block
        return value, u, b


def forget(folder: str) -> None:
    """Drop the blocks that this process keeps of files in a folder."""
    for key in [key for key in list(_KEPT) if key[0] == folder]:
        _KEPT.pop(key, None)


class _Step(NamedTuple):
    """The result of a visit: the weights for the next batch, the gain of the dual, and numbers that `Moved` sums."""

    weights: Floats
    gain: float = 0.0
    measure: float = 0.0
    visits: int = 0


def _finish(writing: list[tuple[int, Future[bytes]]], digests: list[bytes]) -> None:
    """Wait until the files are written."""
    while writing:
        number, digest = writing.pop()
        digests[number] = digest.result()


def _visited(
    walk: BlockWalk[Any], round_: Past, batches: Iterator[BatchSums], blocks: Iterator[Block | None]
) -> Iterator[tuple[Block | None, _Step]]:
    """Yield the batches' blocks after the steps of a round; blocks and weights are changed in place.

    With u_k the plane of batch k and w the weights that all blocks together have by now, the batch sees the dual
    b_k - |u_k + v|^2 / (2 l2), v = l2 w - u_k: it begins at w and takes it to (u_k + v) / l2.
    """
    weights = round_.weights.copy()
    shift = np.empty_like(weights)  # reused: a new vector for each batch would take as long as some of its steps
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


def _begun(walk: BlockWalk[Any], round_: Past, part: Problem, visit: Visit, weights: Floats) -> tuple[Block, float]:
    """Return a batch's first dual variables, and the gain of the dual from the gold labellings, (0, 0), to them."""
    part = part.with_shift(round_.l2 * weights)
    state = walk.inner.init_state(part, np.random.default_rng(visit.seed), round_.warm_start)
    u, b = part.dual_terms(walk.inner.dual_point(part, state))
    state.weights = part.weights_of_plane(u)
    return Block(state, u), part.dual_of_plane(u, b) - part.dual_of_plane(np.zeros_like(u), 0.0)
