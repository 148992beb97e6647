"""The best labellings of sequences under a maxent tagger, by beam search.

At each position the search keeps `beam_width` histories, and the k best partial labellings that end in each: of partial
labellings with the same history the others cannot be among the k best in the end. With all histories this is Viterbi's
algorithm (k = 1) and list Viterbi. Labels after which no allowed labelling can be finished are never taken, so a beam
of any width ends with min(k, number of allowed labellings) labellings if it is at least k wide: each entry goes on,
and entries are dropped only where k others stay. (A beam narrower than k is widened.) Departure from Ratnaparkhi 1996,
whose beam is one of labellings: several of them may have the same history there, and none is dropped for that.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import log_softmax

from partwise.estimators import local_chains
from partwise.estimators.inputs import Floats, Ints
from partwise.estimators.local_chains import Batch, LocalChains, batches


def best_labels(chains: LocalChains, beam_width: int | None) -> Ints:
    """The best labels found, of all sequences end to end; beam_width None: every history is kept."""
    best = np.zeros(len(chains.scores), dtype=np.int64)
    for batch, tags, _ in _searches(chains, beam_width, 1):
        for t in range(batch.longest):
            rows = batch.rows(t)
            best[rows] = tags[t, : len(rows), 0]
    return best


def k_best_labels(chains: LocalChains, beam_width: int | None, k: int) -> list[list[tuple[Ints, float]]]:
    """For each sequence the k best labellings found (all if there are fewer) with log p, best first.

    A beam narrower than k is widened to k.
    """
    found: list[list[tuple[Ints, float]]] = [[] for _ in chains.lengths]
    for batch, tags, values in _searches(chains, beam_width, k):
        for i, (number, size) in enumerate(zip(batch.numbers.tolist(), batch.sizes.tolist(), strict=True)):
            n = int(np.isfinite(values[i]).sum())
            found[number] = [(tags[:size, i, j], float(values[i, j])) for j in range(n)]
    return found


def _searches(chains: LocalChains, beam_width: int | None, k: int) -> Iterator[tuple[Batch, Ints, Floats]]:
    if not len(chains.lengths):
        return
    k = min(k, chains.n_labels ** int(chains.lengths.max()))  # no sequence has more labellings
    width = chains.n_states
    if beam_width is not None:
        width = min(max(int(beam_width), k), width)
    each = min(width**chains.history, chains.n_states) * chains.n_labels + width * min(width, chains.tags) * k
    for batch in batches(chains.lengths, each, whole=False):
        yield batch, *_search(chains, batch, width, k)


def _search(chains: LocalChains, batch: Batch, beam_width: int, k: int) -> tuple[Ints, Floats]:
    """Labels (longest, sequences, k) and log p (sequences, k; -inf where there are fewer), best first."""
    n = len(batch.sizes)
    states = np.full((n, 1), chains.n_states - 1, dtype=np.int64)  # "before the sequence" for every tag
    values = np.full((n, 1, k), -np.inf)  # of the k best partial labellings of every history
    values[:, :, 0] = 0.0
    links: list[tuple[Ints, Ints]] = []  # of each position: entries before (n, histories, k), tags (n, histories)
    finals = np.full((n, k), -np.inf)
    entries = np.zeros((n, k), dtype=np.int64)
    for t in range(batch.longest):
        rows = batch.rows(t)
        states, values = states[: len(rows)], values[: len(rows)]
        logs = log_softmax(chains.scores[rows][:, None, :] + chains.after[states], axis=2)
        if chains.masks is not None:
            closed = ~np.isfinite(chains.scores_masked[rows])[:, None, :] | ~chains.may_follow(states)
            logs[closed] = -np.inf
        before, tags, states, values = _grow(chains, states, values, logs, beam_width)
        links.append((before, tags))
        ended = slice(batch.going(t + 1), len(rows))
        flat = values.reshape(len(rows), -1)[ended]
        order = np.argsort(-flat, axis=1, kind="stable")[:, :k]
        entries[ended, : order.shape[1]] = order
        finals[ended, : order.shape[1]] = np.take_along_axis(flat, order, axis=1)
    labels = np.zeros((batch.longest, n, k), dtype=np.int64)
    for t in range(batch.longest - 1, -1, -1):
        before, tags = links[t]
        here = entries[: len(tags)]
        labels[t, : len(tags)] = np.take_along_axis(tags, here // k, axis=1)
        entries[: len(tags)] = np.take_along_axis(before.reshape(len(tags), -1), here, axis=1)
    return labels, finals


def _grow(
    chains: LocalChains, states: Ints, values: Floats, logs: Floats, beam_width: int
) -> tuple[Ints, Ints, Ints, Floats]:
    """One step: (entries before, tags, histories, values) of the best `beam_width` histories, best first.

    states (n, h) and values (n, h, k) are those before, logs (n, h, labels) the log-probabilities of labels after them.
    Entry h * k + r is the r-th best of history h.
    """
    n, n_histories, k = values.shape
    members = _members(states, chains.tags, chains.history)  # (n, groups, size), n_histories for none
    rows = np.arange(n)[:, None, None]
    values = np.concatenate([values, np.full((n, 1, k), -np.inf)], axis=1)
    logs = np.concatenate([logs, np.zeros((n, 1, chains.n_labels))], axis=1)
    # The best of each new history, (n, groups * labels), of which the best are chosen.
    best = _best_of_groups(values[:, :, 0, None] + logs, members).reshape(n, -1)
    chosen = _largest(best, beam_width)
    chosen = chosen[:, : int((np.take_along_axis(best, chosen, axis=1) > -np.inf).sum(axis=1).max())]
    group, tags = chosen // chains.n_labels, chosen % chains.n_labels
    # The k best of each of those, from all the entries that lead to it; some at a time, as there may be many of them.
    leading = np.take_along_axis(members, group[:, :, None], axis=1)  # (n, new histories, size)
    before: Ints = np.empty((*chosen.shape, k), dtype=np.int32 if n_histories * k < 2**31 else np.int64)
    kept = np.empty((*chosen.shape, k))
    each = max(1, local_chains.ROOM // (n * leading.shape[2] * k))
    for first in range(0, chosen.shape[1], each):
        at = (slice(None), slice(first, first + each))
        grown = values[rows, leading[at]] + logs[rows, leading[at], tags[at][:, :, None]][..., None]
        grown = grown.reshape(*grown.shape[:2], -1)
        order = np.argsort(-grown, axis=2, kind="stable")[:, :, :k] if k > 1 else grown.argmax(axis=2)[:, :, None]
        before[at] = np.minimum(np.take_along_axis(leading[at], order // k, axis=2), n_histories - 1) * k + order % k
        kept[at] = np.take_along_axis(grown, order, axis=2)
    if chains.history == 2:
        last = np.append(states % chains.tags, np.zeros((n, 1), dtype=np.int64), axis=1)
        states = np.take_along_axis(last, leading[:, :, 0], axis=1) * chains.tags + tags
    else:
        states = tags
    return before, tags, states, kept


def _best_of_groups(grown: Floats, members: Ints) -> Floats:
    """The largest value of each group for each label: (n, groups, labels) from (n, histories + 1, labels)."""
    n, n_groups, _ = members.shape
    best = np.full((n, n_groups, grown.shape[2]), -np.inf)
    if n_groups == 1:
        best[:, 0] = grown.max(axis=1)
        return best
    # Groups are of unlike sizes: their members one after another, without what fills them up.
    real = members < grown.shape[1] - 1
    owner, group, place = np.nonzero(real)
    starts = np.flatnonzero(place == 0)
    best[owner[starts], group[starts]] = np.maximum.reduceat(grown[owner, members[real]], starts, axis=0)
    return best


def _largest(values: Floats, count: int) -> Ints:
    """Columns of the largest values of each row, the largest first; ties go to the lowest labels, as everywhere."""
    some: Ints = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if count < values.shape[1]:
        least = np.partition(values, -count, axis=1)[:, -count, None]
        more, tied = values > least, values == least
        room = count - more.sum(axis=1, keepdims=True)
        some = np.nonzero(more | (tied & (tied.cumsum(axis=1) <= room)))[1].reshape(len(values), count)
    order = np.argsort(-np.take_along_axis(values, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _members(states: Ints, tags: int, history: int) -> Ints:
    """Histories that lead to the same ones: (n, groups, size), filled up with the number of histories.

    With history = 1 that is all of them, with history = 2 those with the same last tag.
    """
    n, n_histories = states.shape
    if history == 1:
        return np.broadcast_to(np.arange(n_histories), (n, 1, n_histories))
    last = states % tags
    order = np.argsort(last, axis=1, kind="stable")
    ordered = np.take_along_axis(last, order, axis=1)
    new = np.ones_like(ordered, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    index = np.arange(n_histories)
    group = np.cumsum(new, axis=1) - 1
    place = index - np.maximum.accumulate(np.where(new, index, 0), axis=1)
    members = np.full((n, int(group.max()) + 1, int(place.max()) + 1), n_histories, dtype=np.int64)
    members[np.arange(n)[:, None], group, place] = order
    return members
