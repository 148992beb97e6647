"""What `block_dual` does on batches, wherever they lie: walks that read and write files of dual blocks.

While a batch is worked on, the next one's dual variables are read on a thread, and those of the one before are written
on another. Whoever does a walk again writes the same bytes under the same names.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats
from ..losses import Loss
from ..penalties import L2
from ..problem import BatchSums, Problem, Walk
from .base import WarmStart
from .block_files import Block, read_block, write_block
from .block_solver import BlockSolver


class Visit(NamedTuple):
    """A batch to be visited: the file of its dual variables (None: it was never visited), its digest, its sizes.

    new: where its dual variables are to be written. seed: of the batch's own random numbers.
    """

    path: str | None
    digest: bytes
    n_examples: int
    n_weights: int
    new: str = ""
    seed: tuple[int, int] = (0, 0)

    def read(self, inner: BlockSolver[Any]) -> Block | None:
        """Its dual variables; None: those of the gold labellings."""
        if self.path is None:
            return None
        return read_block(self.path, self.digest, inner, self.n_examples, self.n_weights)


class Moved(NamedTuple):
    """After a walk: how far the weights moved, the gain of the walk's own dual, sums over the batches, new digests.

    measure: of the inner solver's own measure of progress. A batch without examples of positive weight has no digest.
    """

    moved: Floats
    gain: float
    measure: float
    visits: int
    digests: list[bytes]


class Blocks:
    """Dual variables of one batch after the other, the next ones read ahead."""

    def __init__(self, pool: ThreadPoolExecutor, inner: BlockSolver[Any], visits: Sequence[Visit]) -> None:
        self._pool, self._inner, self._visits = pool, inner, iter(visits)
        self._ahead = self._next()

    def take(self) -> Block | None:
        """Those of the next batch."""
        found = None if self._ahead is None else self._ahead.result()
        self._ahead = self._next()
        return found

    def _next(self) -> "Future[Block | None] | None":
        visit = next(self._visits, None)
        return None if visit is None else self._pool.submit(visit.read, self._inner)


@dataclass(frozen=True)
class Round(Walk):
    """Steps of the inner solver on each batch in turn, from these weights on.

    With u_k the plane of batch k and w the weights that all blocks together have by now, the batch sees the dual
    b_k - |u_k + v|^2 / (2 l2), v = l2 w - u_k: it begins at w and takes it to (u_k + v) / l2.
    """

    loss: Loss
    inner: BlockSolver[Any]
    l2: float
    n_jobs: int
    weights: Floats
    visits: Sequence[Visit]
    passes: int
    warm_start: WarmStart | None = None

    def over(self, batches: Iterator[BatchSums]) -> Moved:
        weights, gain, measure, made = self.weights, 0.0, 0.0, 0
        written: list[Future[bytes] | None] = []
        with ThreadPoolExecutor(1, "partwise-read") as reader, ThreadPoolExecutor(1, "partwise-write") as writer:
            blocks = Blocks(reader, self.inner, self.visits)
            for visit in self.visits:
                sums, block = next(batches), blocks.take()
                if not sums.sample_weight.any():
                    written.append(None)
                    continue
                part = Problem.on(sums, L2(self.l2), self.n_jobs)
                if block is None:
                    block, first = self._begin(part, visit, weights)
                    gain += first
                    weights = block.state.weights
                state = block.state
                before, raised = state.visits, state.raised
                part = part.with_shift(self.l2 * weights - block.plane)
                state.weights = weights.copy()
                for _ in range(self.passes):
                    self.inner.step(part, state)
                weights = state.weights
                gain += state.raised - raised
                measure += state.gain
                made += state.visits - before
                if written and written[-1] is not None:
                    written[-1].result()  # no more than one is held while it is written
                new = Block(state, part.plane_of_weights(weights))
                written.append(writer.submit(write_block, visit.new, self.inner, new))
                del sums, part, block, state, new
            digests = [b"" if each is None else each.result() for each in written]
        return Moved(weights - self.weights, gain, measure, made, digests)

    def _begin(self, part: Problem, visit: Visit, weights: Floats) -> tuple[Block, float]:
        """A batch's first dual variables, and what the step to them from the gold labellings (0, 0) gains."""
        part = part.with_shift(self.l2 * weights)
        state = self.inner.init_state(part, np.random.default_rng(visit.seed), self.warm_start)
        u, b = part.dual_terms(self.inner.dual_point(part, state))
        state.weights = part.weights_of_plane(u)
        return Block(state, u), part.dual_of_plane(u, b) - part.dual_of_plane(np.zeros_like(u), 0.0)


@dataclass(frozen=True)
class Certify(Walk):
    """The losses at some weights, and the plane of the dual variables, all summed anew."""

    loss: Loss
    inner: BlockSolver[Any]
    n_jobs: int
    weights: Floats
    visits: Sequence[Visit]

    def over(self, batches: Iterator[BatchSums]) -> tuple[float, Floats, float]:
        value, u, b = 0.0, np.zeros_like(self.weights), 0.0
        with ThreadPoolExecutor(1, "partwise-read") as reader:
            blocks = Blocks(reader, self.inner, self.visits)
            for _ in self.visits:
                part, block = Problem.on(next(batches), L2(1.0), self.n_jobs), blocks.take()
                value += part.losses(self.weights)
                if block is not None:
                    own_u, own_b = part.dual_terms(self.inner.dual_point(part, block.state))
                    u += own_u
                    b += own_b
                del part, block
        return value, u, b
