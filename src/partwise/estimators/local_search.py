"""The best labellings of sequences under a maxent tagger, by beam search.

At each position the search keeps `beam_width` histories: those in which the best partial labellings end. With all
histories this is Viterbi's algorithm.

The k best labellings through the histories that were kept are found in a second pass. The best way on from each history
is known then (by a pass from the end), so that each partial labelling has a bound that some labelling which begins with
it reaches. Of all partial labellings of a position those with the k best bounds are enough, as the others have k
labellings before them. That is k entries a position, whatever the number of histories.

Labels after which no allowed labelling can be finished are never taken, so a beam that is at least k wide ends with
min(k, number of allowed labellings) labellings: histories are dropped only where k others stay, each of which goes on.
(A beam narrower than k is widened.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import log_softmax

from partwise.estimators.inputs import Floats, Ints
from partwise.estimators.local_chains import Batch, LocalChains, batches


def best_labels(chains: LocalChains, beam_width: int | None) -> Ints:
    """The best labels found, of all sequences end to end; beam_width None: every history is kept."""
    best = np.zeros(len(chains.scores), dtype=np.int64)
    for batch, width in _beams(chains, beam_width, 1):
        for t, tags in enumerate(_search(chains, batch, width)):
            best[batch.rows(t)] = tags
    return best


def k_best_labels(chains: LocalChains, beam_width: int | None, k: int) -> list[list[tuple[Ints, float]]]:
    """For each sequence the k best labellings found (all if there are fewer) with log p, best first.

    A beam narrower than k is widened to k.
    """
    found: list[list[tuple[Ints, float]]] = [[] for _ in chains.lengths]
    if not len(chains.lengths):
        return found
    k = min(k, chains.n_labels ** int(chains.lengths.max()))  # no sequence has more labellings
    for batch, width in _beams(chains, beam_width, k):
        tags, values = _search_k(chains, batch, width, k)
        for i, (number, size) in enumerate(zip(batch.numbers.tolist(), batch.sizes.tolist(), strict=True)):
            n = int(np.isfinite(values[i]).sum())
            found[number] = [(tags[:size, i, j], float(values[i, j])) for j in range(n)]
    return found


def _beams(chains: LocalChains, beam_width: int | None, k: int) -> Iterator[tuple[Batch, int]]:
    """Sequences to search side by side, and how many histories to keep."""
    width = chains.n_states
    if beam_width is not None:
        width = min(max(int(beam_width), k), width)
    each = (min(width**chains.history, chains.n_states) + (k if k > 1 else 0)) * chains.n_labels
    for batch in batches(chains.lengths, each, whole=False):
        yield batch, width


def _logs(chains: LocalChains, rows: Ints, states: Ints) -> Floats:
    """log p of each label at each of these positions after each history: (rows, histories, labels), -inf if closed."""
    logs: Floats = log_softmax(chains.scores[rows][:, None, :] + chains.after[states], axis=2)
    if chains.masks is not None:
        closed = ~np.isfinite(chains.scores_masked[rows])[:, None, :] | ~np.isfinite(chains.after_masked[states])
        logs[closed] = -np.inf
    return logs


def _start(chains: LocalChains, batch: Batch) -> Ints:
    """The history before the first position: "before the sequence" for every tag."""
    return np.full((len(batch.sizes), 1), chains.n_states - 1, dtype=np.int64)


def _grow_all(chains: LocalChains, batch: Batch, beam_width: int) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
    """`_grow` position by position, of the sequences that have it."""
    states = _start(chains, batch)
    values = np.zeros((len(states), 1))
    for t in range(batch.longest):
        rows = batch.rows(t)
        states, values = states[: len(rows)], values[: len(rows)]
        before, tags, states, values = _grow(chains, states, values, _logs(chains, rows, states), beam_width)
        yield before, tags, states, values


def _search(chains: LocalChains, batch: Batch, beam_width: int) -> list[Ints]:
    """The best labels found of each position, of the sequences that have it."""
    entries = np.zeros(len(batch.sizes), dtype=np.int64)  # which history the best labelling ends in
    links: list[tuple[Ints, Ints]] = []  # of each position: histories before, tags
    for t, (before, tags, _, values) in enumerate(_grow_all(chains, batch, beam_width)):
        links.append((before, tags))
        ended = slice(batch.going(t + 1), len(values))
        entries[ended] = values[ended].argmax(axis=1)
    labels: list[Ints] = []
    for before, tags in reversed(links):
        here = entries[: len(tags), None]
        labels.append(np.take_along_axis(tags, here, axis=1)[:, 0])
        entries[: len(tags)] = np.take_along_axis(before, here, axis=1)[:, 0]
    return labels[::-1]


def _search_k(chains: LocalChains, batch: Batch, beam_width: int, k: int) -> tuple[Ints, Floats]:
    """Labels (longest, sequences, k) and log p (sequences, k; -inf where there are fewer), best first."""
    n = len(batch.sizes)
    kept = [_start(chains, batch)]  # before position t: the histories that the beam keeps
    kept += [states for _, _, states, _ in _grow_all(chains, batch, beam_width)]
    rest = _best_rests(chains, batch, kept)
    finals = np.full((n, k), -np.inf)
    values: Floats = np.zeros((n, 1))
    histories: Ints = np.zeros((n, 1), dtype=np.int64)
    links: list[tuple[Ints, Ints]] = []  # of each position: entries before, tags
    for t in range(batch.longest):
        rows = batch.rows(t)
        values, histories = values[: len(rows)], histories[: len(rows)]
        logs, after = _ways_on(chains, rows, kept[t], kept[t + 1])
        sequence = np.arange(len(rows))[:, None]
        grown = values[:, :, None] + logs[sequence, histories]
        further: Floats = np.take_along_axis(rest[t + 1], after.reshape(len(rows), -1), axis=1).reshape(after.shape)
        bounds = (grown + further[sequence, histories]).reshape(len(rows), -1)
        chosen = _largest(bounds, min(k, bounds.shape[1]))
        chosen = chosen[:, : int((np.take_along_axis(bounds, chosen, axis=1) > -np.inf).sum(axis=1).max())]
        entries, tags = chosen // chains.n_labels, chosen % chains.n_labels
        dead = np.take_along_axis(bounds, chosen, axis=1) == -np.inf
        values = np.where(dead, -np.inf, np.take_along_axis(grown.reshape(len(rows), -1), chosen, axis=1))
        histories = after[sequence, np.take_along_axis(histories, entries, axis=1), tags]
        histories[dead] = 0
        links.append((entries.astype(np.int32), tags.astype(np.int32)))
        ended = slice(batch.going(t + 1), len(rows))
        finals[ended, : values.shape[1]] = values[ended]
    labels = np.zeros((batch.longest, n, k), dtype=np.int64)
    at = np.broadcast_to(np.arange(k), (n, k)).copy()
    for t in range(batch.longest - 1, -1, -1):
        entries, tags = links[t]
        here = np.minimum(at[: len(tags)], tags.shape[1] - 1)  # where there are fewer than k nobody looks
        labels[t, : len(tags)] = np.take_along_axis(tags, here, axis=1)
        at[: len(tags)] = np.take_along_axis(entries, here, axis=1)
    return labels, finals


def _ways_on(chains: LocalChains, rows: Ints, states: Ints, onward: Ints) -> tuple[Floats, Ints]:
    """From each history with each label: (log p, which of the histories `onward` that leads to), (rows, h, labels).

    Where it leads to none of them the log p is -inf.
    """
    states = states[: len(rows)]
    logs = _logs(chains, rows, states)
    place = np.full((len(rows), chains.n_states), -1, dtype=np.int64)
    np.put_along_axis(place, onward, np.arange(onward.shape[1])[None], axis=1)
    labels = np.arange(chains.n_labels)
    base = (states % chains.tags) * chains.tags if chains.history == 2 else np.zeros_like(states)
    after = np.take_along_axis(place, (base[:, :, None] + labels).reshape(len(rows), -1), axis=1).reshape(logs.shape)
    logs[after < 0] = -np.inf
    return logs, np.maximum(after, 0)


def _best_rests(chains: LocalChains, batch: Batch, kept: list[Ints]) -> list[Floats]:
    """For each position, and after the last one: log p of the best way from each history to the sequence's end."""
    rest: list[Floats] = [np.zeros(states.shape) for states in kept]
    for t in range(batch.longest - 1, 0, -1):
        logs, after = _ways_on(chains, batch.rows(t), kept[t], kept[t + 1])
        n = len(logs)
        further = np.take_along_axis(rest[t + 1], after.reshape(n, -1), axis=1).reshape(after.shape)
        rest[t][:n] = (logs + further).max(axis=2)
    return rest


def _grow(
    chains: LocalChains, states: Ints, values: Floats, logs: Floats, beam_width: int
) -> tuple[Ints, Ints, Ints, Floats]:
    """One step: (histories before, tags, histories, values) of the best `beam_width` histories, best first.

    states and values, (n, h), are those before, logs (n, h, labels) the log-probabilities of labels after them.
    """
    n, n_histories = values.shape
    members = _members(states, chains.tags, chains.history)  # (n, groups, size), n_histories for none
    values = np.concatenate([values, np.full((n, 1), -np.inf)], axis=1)
    logs = np.concatenate([logs, np.zeros((n, 1, chains.n_labels))], axis=1)
    # The best of each new history, (n, groups * labels), of which the best are chosen.
    best = _best_of_groups(values[:, :, None] + logs, members).reshape(n, -1)
    chosen = _largest(best, beam_width)
    chosen = chosen[:, : int((np.take_along_axis(best, chosen, axis=1) > -np.inf).sum(axis=1).max())]
    group, tags = chosen // chains.n_labels, chosen % chains.n_labels
    leading = np.take_along_axis(members, group[:, :, None], axis=1)  # (n, new histories, size)
    rows = np.arange(n)[:, None, None]
    grown = values[rows, leading] + logs[rows, leading, tags[:, :, None]]
    order = grown.argmax(axis=2)[:, :, None]
    before = np.minimum(np.take_along_axis(leading, order, axis=2)[:, :, 0], n_histories - 1)
    kept = np.take_along_axis(grown, order, axis=2)[:, :, 0]
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
