"""Sequences under a maxent tagger: sums over their labellings, and batches of sequences side by side.

    log p(y) = sum_t log p(y_t | x_t, history_t),      log p(c | x_t, s) = scores[t, c] + after[s, c] - log Z_t[s]

The history s of a position is the tags before it: a with history = 1, b * tags + a with history = 2 (b before a), where
tags = n_labels + 1 and tag n_labels is "before the sequence". Without constraints a forward pass gives the marginals,
as what is to come sums to one whatever came before. With constraints p is conditioned on the labellings that are left
(log Z_t still runs over all labels), and what is to come is summed by a backward pass.

All sums over tags are products of matrices on a log scale, which need T S exps and not T S L, S the histories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from partwise._core import stacked_products
from partwise.estimators.inputs import Floats, Ints, pointers

Booleans = NDArray[np.bool_]

#: How many numbers an array of a batch may hold.
ROOM = 1 << 21
#: Sums below this may have lost terms that count.
TINY = 1e-250


@dataclass(frozen=True)
class Masks:
    """Which labels positions may have, (positions, n_labels), and which may follow which, (n_labels, n_labels)."""

    labels: Booleans
    follow: Booleans

    def completable(self, lengths: Ints) -> Booleans:
        """`labels` without those after which a sequence cannot be finished."""
        found = self.labels.copy()
        (batch,) = batches(lengths, 0, whole=False)
        for t in range(batch.longest - 2, -1, -1):
            rows = batch.rows(t)[: batch.going(t + 1)]
            found[rows] &= found[rows + 1] @ self.follow.T
        return found


@dataclass(frozen=True)
class Batch:
    """Sequences side by side, the longest first: position t of all of them is one step."""

    numbers: Ints  # which sequences these are
    begins: Ints  # row of their first position
    sizes: Ints

    @property
    def longest(self) -> int:
        """Length of the longest sequence."""
        return int(self.sizes[0])

    def going(self, t: int) -> int:
        """How many sequences have a position t."""
        return int(np.searchsorted(-self.sizes, -t, side="left"))

    def rows(self, t: int) -> Ints:
        """Rows of position t of the sequences that have it."""
        rows: Ints = self.begins[: self.going(t)] + t
        return rows


def batches(lengths: Ints, each: int, whole: bool) -> Iterator[Batch]:
    """All sequences that have positions, in batches.

    `each` numbers are kept for a sequence; whole: for each of its positions.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    begins = pointers(lengths)[:-1]
    filled = np.cumsum(lengths[order] if whole else np.ones_like(order)) * each
    first = 0
    while first < len(order):
        before = int(filled[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(filled, before + ROOM, side="right")))
        some = order[first:last]
        yield Batch(some, begins[some], lengths[some])
        first = last


class LogProduct:
    """log sum_k exp(x[n, a, k] + table[a, k, m]), by products of matrices."""

    def __init__(self, table: Floats, n_jobs: int = 1) -> None:
        self.table, self.n_jobs = table, n_jobs
        self.top = table.max(axis=1)  # (a, m)
        self.factor = np.ascontiguousarray(np.exp(table - _finite(self.top)[:, None, :]))

    def __call__(self, x: Floats) -> Floats:
        """(n, a, m) from x (n, a, k)."""
        top = x.max(axis=2)
        shift = _finite(top)
        sums = stacked_products(np.ascontiguousarray(np.exp(x - shift[:, :, None])), self.factor, self.n_jobs)
        with np.errstate(divide="ignore"):
            found: Floats = np.log(sums) + shift[:, :, None] + _finite(self.top)
        # The largest terms of both sides need not meet: where nothing is left of a sum, add up its logs one by one.
        lost = (sums < TINY) & np.isfinite(top)[:, :, None] & np.isfinite(self.top)
        if lost.any():
            n, a, m = np.nonzero(lost)
            step = max(1, ROOM // self.table.shape[1])
            for k in range(0, len(n), step):
                at = slice(k, k + step)
                found[n[at], a[at], m[at]] = logsumexp(x[n[at], a[at]] + self.table[a[at], :, m[at]], axis=1)
        return found


def _finite(top: Floats) -> Floats:
    return np.where(np.isfinite(top), top, 0.0)


@dataclass(frozen=True)
class HistoryScores:
    """Scores of labels after histories of two tags, without room for all: [b * tags + a] is those of a and of (b, a).

    There are as many histories as pairs of tags, and few of them have weights of their own.
    """

    first: Floats  # (tags, n_labels): after the last tag
    pairs: Ints  # the histories that have weights of their own, ascending
    second: Floats  # (pairs, n_labels): those weights

    def __len__(self) -> int:
        return len(self.first) ** 2

    def __getitem__(self, states: Ints) -> Floats:
        found: Floats = self.first[states % len(self.first)]
        self._add_own(states, found)
        return found

    def of_pairs(self, states: Ints) -> Floats:
        """Weights that these histories have of their own."""
        found = np.zeros((*states.shape, self.first.shape[1]))
        self._add_own(states, found)
        return found

    def _add_own(self, states: Ints, found: Floats) -> None:
        if len(self.pairs):
            place = np.minimum(np.searchsorted(self.pairs, states), len(self.pairs) - 1)
            own = self.pairs[place] == states
            found[own] += self.second[place[own]]

    def dense(self) -> Floats:
        """(n_states, n_labels)"""
        found = np.tile(self.first, (len(self.first), 1))
        found[self.pairs] += self.second
        return found


@dataclass(frozen=True)
class LocalChains:
    """Sequences that lie end to end, under a maxent tagger."""

    scores: Floats  # (positions, n_labels)
    after: Floats | HistoryScores  # scores of labels after each history, (n_states, n_labels)
    lengths: Ints
    history: int
    masks: Masks | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.scores.shape[1])

    @property
    def n_states(self) -> int:
        """Number of different histories."""
        return len(self.after)

    @property
    def tags(self) -> int:
        """Labels and "before the sequence"."""
        return self.n_labels + 1

    def may_follow(self, states: Ints) -> Booleans:
        """Which labels may follow these histories."""
        if self.masks is None:
            return np.ones((*states.shape, self.n_labels), dtype=bool)
        open_end = np.ones((1, self.n_labels), dtype=bool)
        return np.vstack([self.masks.follow, open_end])[states % self.tags]

    @cached_property
    def scores_masked(self) -> Floats:
        """`scores` with -inf for labels that no allowed labelling goes on from."""
        if self.masks is None or not len(self.scores):
            return self.scores
        return np.where(self.masks.completable(self.lengths), self.scores, -np.inf)

    def log_probabilities(self, labels: Ints) -> Floats:
        """log p of one labelling a sequence, from its labels end to end; constraints aside."""
        one, two = tags_before(self.lengths, labels, self.n_labels)
        states = one if self.history == 1 else two * self.tags + one
        logs = log_softmax(self.scores + self.after[states], axis=1)
        each = np.take_along_axis(logs, labels[:, None], axis=1)[:, 0]
        found = np.zeros(len(self.lengths))
        np.add.at(found, np.repeat(np.arange(len(self.lengths)), self.lengths), each)
        return found

    def sums(self, n_jobs: int = 1) -> tuple[Floats, Floats]:
        """Marginals, (positions, n_labels), and log of the probability that the constraints hold, one a sequence."""
        marginals = np.zeros_like(self.scores)
        constants = np.zeros(len(self.lengths))
        # The older tag of a history, which a step forgets, and the one that stays: (old, stay, label).
        stay = self.n_states // self.tags
        after = self.after.dense() if isinstance(self.after, HistoryScores) else self.after
        partition = LogProduct(after.T[None], n_jobs)
        if self.masks is not None:
            after = np.where(self.may_follow(np.arange(self.n_states)), after, -np.inf)
        table = after.reshape(self.tags, stay, self.n_labels)
        forward = LogProduct(table.transpose(1, 0, 2), n_jobs)
        backward = LogProduct(table.transpose(1, 2, 0), n_jobs) if self.masks is not None else None
        for batch in batches(self.lengths, self.n_states, whole=True):
            alphas, log_partitions = self._forward(batch, partition, forward)
            ends = np.zeros(len(batch.sizes))
            beta = np.empty((0, self.n_states))
            for t in range(batch.longest - 1, -1, -1):
                alpha = alphas.pop()
                new = len(alpha) - len(beta)  # sequences whose last position this is
                if new:
                    beta = np.concatenate([beta, np.zeros((new, self.n_states))])
                    ends[len(alpha) - new : len(alpha)] = logsumexp(alpha[len(alpha) - new :], axis=1)
                joint = np.exp(alpha + beta - ends[: len(alpha), None])
                found = joint.reshape(len(alpha), -1, self.tags).sum(axis=1)[:, : self.n_labels]
                rows = batch.rows(t)
                marginals[rows] = found / found.sum(axis=1, keepdims=True)
                if backward is not None:
                    to_come = beta.reshape(len(beta), stay, self.tags)[:, :, : self.n_labels]
                    back = backward(self.scores_masked[rows][:, None, :] + to_come)  # (n, stay, old)
                    beta = back.transpose(0, 2, 1).reshape(len(beta), -1) - log_partitions.pop()
            if backward is not None:
                constants[batch.numbers] = ends
        return marginals, constants

    def _forward(self, batch: Batch, partition: LogProduct, forward: LogProduct) -> tuple[list[Floats], list[Floats]]:
        """For each t, log p of the history after it (with all labels before it), and log Z_t of the one before it."""
        alphas: list[Floats] = []
        log_partitions: list[Floats] = []
        alpha = np.full((len(batch.sizes), self.n_states), -np.inf)
        alpha[:, -1] = 0.0  # "before the sequence" for every tag
        for t in range(batch.longest):
            rows = batch.rows(t)
            alpha = alpha[: len(rows)]
            log_partition = partition(self.scores[rows][:, None, :])[:, 0]
            before = (alpha - log_partition).reshape(len(rows), self.tags, -1).transpose(0, 2, 1)
            grown = forward(before) + self.scores_masked[rows][:, None, :]  # (n, stay, label)
            alpha = np.full((*grown.shape[:2], self.tags), -np.inf)
            alpha[:, :, : self.n_labels] = grown
            alpha = alpha.reshape(len(rows), -1)
            alphas.append(alpha)
            log_partitions.append(log_partition)
        return alphas, log_partitions


def tags_before(lengths: Ints, labels: Ints, none: int) -> tuple[Ints, Ints]:
    """Tags one and two positions back; `none` before the sequence's beginning."""
    place = np.arange(len(labels)) - np.repeat(pointers(lengths)[:-1], lengths)
    one = np.full(len(labels), none, dtype=np.int64)
    two = one.copy()
    one[1:] = np.where(place[1:] >= 1, labels[:-1], none)
    two[2:] = np.where(place[2:] >= 2, labels[:-2], none)
    return one, two
