"""`HistoryChain`, the decoder of the maxent tagger, agrees with enumeration and with the first-order chain."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from partwise import Problem
from partwise._core import DenseSegment, infer
from partwise.features import LinearMap
from partwise.structures import Chain, HistoryChain

LENGTHS = np.array([4, 1, 3, 5, 2, 2])


@dataclass
class Case:
    """Sequences, concatenated: scores (positions, n_labels), after (n_states, n_labels), masks or None."""

    scores: np.ndarray
    after: np.ndarray
    lengths: np.ndarray
    history: int
    labels: np.ndarray | None = None  # (positions, n_labels)
    follow: np.ndarray | None = None  # (n_labels, n_labels)

    @property
    def n_labels(self):
        return self.scores.shape[1]

    def structure(self, beam_width=0):
        made = HistoryChain(self.lengths, self.n_labels, self.history, *split(self.after), beam_width)
        if self.follow is not None:
            made.set_follow(self.follow.astype(np.uint8).ravel())
        if self.labels is not None:
            for i, part in enumerate(self.parts()):
                made.set_mask(i, padded(self.labels[part], made.width).astype(np.uint8))
        return made

    def parts(self):
        ends = np.cumsum(self.lengths).tolist()
        return [slice(end - n, end) for end, n in zip(ends, self.lengths.tolist(), strict=True)]

    def slots(self, i):
        made = self.structure()
        return padded(self.scores[self.parts()[i]], made.width)

    def state(self, older, newer):
        return newer if self.history == 1 else older * (self.n_labels + 1) + newer

    def log_p(self, logs, tags):
        """log p of one sequence's tags, given logs (positions, n_states, n_labels)."""
        before = [self.n_labels, self.n_labels, *tags]
        return sum(logs[t, self.state(*before[t : t + 2]), tag] for t, tag in enumerate(tags))

    def allowed(self, i, tags):
        if self.labels is not None and not all(self.labels[self.parts()[i]][t, tag] for t, tag in enumerate(tags)):
            return False
        return self.follow is None or all(self.follow[pair] for pair in pairwise(tags))

    def all(self, i):
        """{labelling: log p} of the labellings that the constraints allow."""
        every = product(range(self.n_labels), repeat=int(self.lengths[i]))
        logs = self.logs(i)
        return {tags: self.log_p(logs, tags) for tags in every if self.allowed(i, tags)}

    def logs(self, i):
        """log p(label | position, history) of one sequence, as an array (positions, n_states, n_labels)."""
        return log_softmax(self.scores[self.parts()[i]][:, None, :] + self.after, axis=2)


def split(after):
    """Split scores after histories into scores after the last tag, and corrections for some pairs of tags."""
    n_states, n_labels = after.shape
    tags = n_labels + 1
    if n_states == tags:
        return after.ravel(), np.empty(0, dtype=np.int64), np.empty(0)
    first = after[:tags]  # holds the pairs whose older tag is 0
    rest = after - np.tile(first, (tags, 1))
    pairs = np.flatnonzero(rest.any(axis=1))
    return first.ravel(), pairs, rest[pairs].ravel()


def padded(rows, width):
    out = np.zeros((len(rows), width))
    out[:, : rows.shape[1]] = rows
    return out.ravel()


def make_case(rng, history, masked, n_labels=3, lengths=LENGTHS, size=2.0):
    scores = size * rng.normal(size=(lengths.sum(), n_labels))
    after = size * rng.normal(size=((n_labels + 1) ** history, n_labels))
    while True:
        masks = (rng.random(scores.shape) < 0.8, rng.random((n_labels, n_labels)) < 0.8) if masked else (None, None)
        case = Case(scores, after, lengths, history, *masks)
        if not masked or all(case.all(i) for i in range(len(lengths))):
            return case


def labels_of(structure, slots):
    return tuple((np.sort(slots) % structure.width).tolist())


CASES = pytest.mark.parametrize(("history", "masked"), [(1, False), (2, False), (1, True), (2, True)])


@CASES
@pytest.mark.parametrize("size", [0.5, 3.0, 300.0])
def test_sums_are_those_of_enumeration(rng, history, masked, size):
    """Sums equal enumeration even if weights are so large that all exponentials underflow."""
    for _ in range(5):
        case = make_case(rng, history, masked, size=size)
        structure = case.structure()
        for i in range(len(LENGTHS)):
            found = case.all(i)
            total = logsumexp(list(found.values()))
            value, marginals, entropy = structure.log_partition(i, case.slots(i))
            assert value == pytest.approx(total if masked else 0.0, rel=1e-12, abs=1e-10)
            expected = np.zeros((LENGTHS[i], structure.width))
            for tags, log_p in found.items():
                expected[np.arange(len(tags)), tags] += np.exp(log_p - total)
            np.testing.assert_allclose(marginals, expected.ravel(), atol=1e-9 if size > 100 else 1e-12)
            shares = np.array(list(found.values())) - total
            assert entropy == pytest.approx(-np.exp(shares) @ shares, abs=1e-6 if size > 100 else 1e-10)


def test_a_constraint_of_tiny_probability(rng):
    """The constraint leaves only labellings with log p <= -2000. Conditioning on it must not divide 0 by 0."""
    scores = np.zeros((4, 3))
    scores[:, 0] = 1000.0
    scores[:, 2] = -500.0
    labels, follow = np.ones((4, 3), dtype=bool), np.ones((3, 3), dtype=bool)
    labels[:, 0] = False
    follow[1, 1] = follow[2, 2] = False
    case = Case(scores, rng.normal(size=(16, 3)), np.array([4]), 2, labels, follow)
    found = case.all(0)
    assert len(found) == 2
    value, marginals, _ = case.structure().log_partition(0, case.slots(0))
    assert value == pytest.approx(logsumexp(list(found.values())), rel=1e-13)
    rows = marginals.reshape(4, -1)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    first, last = sorted(found, key=found.get)
    assert rows[0, first[0]] == pytest.approx(1 / (1 + np.exp(found[last] - found[first])), rel=1e-9)


@CASES
@pytest.mark.parametrize("k", [1, 2, 7, 1000])
def test_a_full_beam_finds_the_k_best(rng, history, masked, k):
    case = make_case(rng, history, masked)
    structure = case.structure()
    for i in range(len(LENGTHS)):
        values = case.all(i)
        ranked = structure.k_best(i, case.slots(i), k)
        order = sorted(values.values(), reverse=True)[:k]
        np.testing.assert_allclose([value for value, _, _ in ranked], order, atol=1e-11)
        assert len({labels_of(structure, slots) for _, slots, _ in ranked}) == len(order)
        for value, slots, _ in ranked:
            assert values[labels_of(structure, slots)] == pytest.approx(value, abs=1e-11)
        value, slots, _ = structure.maximize(i, case.slots(i))
        assert (value, labels_of(structure, slots)) == (ranked[0][0], labels_of(structure, ranked[0][1]))


@CASES
@pytest.mark.parametrize("beam_width", [1, 2, 3])
def test_a_narrow_beam_gives_k_allowed_labellings(rng, history, masked, beam_width):
    case = make_case(rng, history, masked)
    structure = case.structure(beam_width)
    for i in range(len(LENGTHS)):
        values = case.all(i)
        best = labels_of(structure, structure.maximize(i, case.slots(i))[1])
        assert best in values
        for k in (1, 2, 5):
            ranked = structure.k_best(i, case.slots(i), k)
            assert len(ranked) == min(k, len(values))
            got = [value for value, _, _ in ranked]
            assert got == sorted(got, reverse=True)
            assert len({labels_of(structure, slots) for _, slots, _ in ranked}) == len(ranked)
            for (value, slots, _), bound in zip(ranked, sorted(values.values(), reverse=True), strict=False):
                assert values[labels_of(structure, slots)] == pytest.approx(value, abs=1e-11)
                assert value <= bound + 1e-11
            if k <= beam_width:
                assert labels_of(structure, ranked[0][1]) == best


def beam_by_hand(case, i, width, k=1):
    """Return (log p, labels), best first. Each position keeps the `width` best histories with k labellings each."""
    none, logs, kept = case.n_labels, case.logs(i), [(0.0, ())]
    whole = case.all(i)
    prefixes = {tags[:t] for tags in whole for t in range(len(tags) + 1)}
    for t in range(int(case.lengths[i])):
        groups = {}
        for value, tags in kept:
            row = logs[t, case.state(*(none, none, *tags)[-2:])]
            for c in range(none):
                if (*tags, c) in prefixes:
                    groups.setdefault((*tags, c)[-case.history :], []).append((value + row[c], (*tags, c)))
        ranked = sorted((sorted(group, reverse=True)[:k] for group in groups.values()), reverse=True)
        kept = [entry for group in ranked[: max(width, k)] for entry in group]
    return sorted(kept, reverse=True)[:k]


@CASES
@pytest.mark.parametrize(("width", "k"), [(1, 1), (2, 1), (3, 1), (5, 1), (2, 2), (4, 3)])
def test_the_beam_keeps_the_best_histories(rng, history, masked, width, k):
    """The beam finds exactly the labellings of a simple implementation, even when both miss the best one."""
    missed = 0
    for _ in range(10):
        case = make_case(rng, history, masked, n_labels=4 - masked, lengths=np.array([5]), size=1.0)
        structure = case.structure(width)
        expected = beam_by_hand(case, 0, width, k)
        ranked = structure.k_best(0, case.slots(0), k)
        assert [labels_of(structure, slots) for _, slots, _ in ranked] == [tags for _, tags in expected]
        np.testing.assert_allclose([value for value, _, _ in ranked], [value for value, _ in expected], atol=1e-11)
        missed += ranked[0][0] < max(case.all(0).values()) - 1e-9
        if k == 1:
            assert labels_of(structure, structure.maximize(0, case.slots(0))[1]) == expected[0][1]
    assert missed or width > 1  # otherwise the cases could not tell a greedy search from an exact one


@CASES
def test_pruning_by_the_greedy_labelling_changes_nothing(rng, history, masked):
    """`maximize`, which discards what cannot beat the greedy labelling, gives the result of k_best, which does not."""
    lost = 0
    for _ in range(100):
        case = make_case(rng, history, False, n_labels=4, lengths=np.array([12]), size=1.5)
        if masked:
            case.labels = rng.random(case.scores.shape) < 0.8
            case.labels[:, 0] = True
        greedy = case.structure(1).maximize(0, case.slots(0))[0]
        for beam_width in (2, 3, 0):
            structure = case.structure(beam_width)
            value, slots, _ = structure.maximize(0, case.slots(0))
            expected = structure.k_best(0, case.slots(0), 1)[0]
            assert value == pytest.approx(expected[0], abs=1e-12)
            assert slots.tolist() == expected[1].tolist()
            lost += value < greedy - 1e-6
    assert lost or history == 1 or masked  # some beams lose the greedy labelling


@CASES
def test_scores_too_far_apart_for_doubles(rng, history, masked):
    """All exponentials of scores underflow, although sums of their logarithms are moderate."""
    case = make_case(rng, history, masked, n_labels=4 - masked)
    far = np.resize([900.0, -900.0], case.n_labels)
    case.scores += far
    case.after -= far
    structure = case.structure()
    for i in range(len(LENGTHS)):
        values = case.all(i)
        value, slots, _ = structure.maximize(i, case.slots(i))
        assert labels_of(structure, slots) == max(values, key=values.get)
        assert value == pytest.approx(max(values.values()), abs=1e-9)


@CASES
def test_scores_that_are_not_finite_are_refused(rng, history, masked):
    """Sums of weights near the largest double are infinite, so that no labelling has a value."""
    case = make_case(rng, history, masked, n_labels=4 - masked)
    case.scores += 1e308
    case.after += 1e308
    structure, slots = case.structure(), case.slots(0)
    for work in (lambda: structure.maximize(0, slots), lambda: structure.k_best(0, slots, 3)):
        with pytest.raises(ValueError, match="beyond double precision"):
            work()


@pytest.mark.parametrize("history", [1, 2])
def test_ties_go_to_the_lowest_labels(history):
    case = Case(np.zeros((3, 4)), np.zeros((5**history, 4)), np.array([3]), history)
    for beam_width in (0, 1, 2, 7):
        structure = case.structure(beam_width)
        assert labels_of(structure, structure.maximize(0, case.slots(0))[1]) == (0, 0, 0)


@pytest.mark.parametrize("history", [1, 2])
def test_asking_for_more_labellings_than_exist(rng, history):
    """Asking for 10^12 labellings needs neither time nor memory for labellings that do not exist."""
    case = make_case(rng, history, False)
    structure = case.structure(2)
    found = [len(structure.k_best(i, case.slots(i), 10**12)) for i in range(len(LENGTHS))]
    assert found == (3**LENGTHS).tolist()


def test_a_narrow_beam_does_not_run_into_a_dead_end():
    """The best first tag has no allowed continuation: a beam of width 1 must not choose it."""
    scores = np.array([[5.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    labels, follow = np.ones((3, 3), dtype=bool), np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)
    labels[2, 0] = False
    case = Case(scores, np.zeros((4, 3)), np.array([3]), 1, labels, follow)
    structure = case.structure(1)
    best = labels_of(structure, structure.maximize(0, case.slots(0))[1])
    assert best[2] == 1
    assert best[0] != 0


@pytest.mark.parametrize("masked", [False, True])
def test_one_tag_of_history_is_a_chain(rng, masked):
    """With one tag of history, results equal those of `Chain` (an independent implementation) on log-probabilities."""
    case = make_case(rng, 1, masked)
    histories, structure = case.structure(), Chain(LENGTHS, 3, tied=False)
    width = structure.width
    for i, (part, length) in enumerate(zip(case.parts(), LENGTHS.tolist(), strict=True)):
        logs = case.logs(i)
        slots = np.zeros(structure.num_slots(i))
        slots[:3] = logs[0, -1]
        slots[length * width :].reshape(length - 1, 3, width)[:, :, :3] = logs[1:, :3]
        if masked:
            mask = np.ones(len(slots), dtype=np.uint8)
            mask[: length * width].reshape(length, width)[:, :3] = case.labels[part]
            mask[length * width :].reshape(length - 1, 3, width)[:, :, :3] = case.follow
            structure.set_mask(i, mask)
        value, counts, entropy = structure.log_partition(i, slots)
        found, marginals, own_entropy = histories.log_partition(i, case.slots(i))
        assert found == pytest.approx(value, abs=1e-12)
        assert own_entropy == pytest.approx(entropy, abs=1e-12)
        np.testing.assert_allclose(marginals, counts[: length * width], atol=1e-12)
        expected = [value for value, _, _ in structure.k_best(i, slots, 4)]
        np.testing.assert_allclose([v for v, _, _ in histories.k_best(i, case.slots(i), 4)], expected, atol=1e-12)


@CASES
def test_samples_have_the_marginals(rng, history, masked):
    case = make_case(rng, history, masked, lengths=np.array([4]), size=1.0)
    structure = case.structure()
    n = 4000
    drawn = structure.sample(0, case.slots(0), 1.0, n, 7)
    counts = np.zeros(structure.num_slots(0))
    for slots, _ in drawn:
        assert case.allowed(0, labels_of(structure, slots))
        counts[slots] += 1.0 / n
    marginals = structure.log_partition(0, case.slots(0))[1]
    np.testing.assert_allclose(counts, marginals, atol=5 * 0.5 / np.sqrt(n))


def test_many_labels_have_no_table_of_all_histories(rng):
    """Sums over histories of 170 labels avoid the table of 5 million numbers, and equal those of one-tag histories."""
    n = 170
    first, pairs = rng.normal(size=(n + 1, n)), np.sort(rng.choice((n + 1) ** 2, 50, replace=False))
    structure = HistoryChain(np.array([3]), n, 2, first.ravel(), pairs, np.zeros(50 * n), 0)
    scores = padded(rng.normal(size=(3, n)), structure.width)
    one = HistoryChain(np.array([3]), n, 1, first.ravel(), np.empty(0, dtype=np.int64), np.empty(0), 0)
    features = LinearMap([DenseSegment(np.eye(3), np.array([0, 3]), n, structure.width)])
    two, same = (infer(s, features, scores, 1.0, 1, entropies=False)[0] for s in (structure, one))
    np.testing.assert_allclose(two, same, atol=1e-12)
    assert structure.maximize(0, scores)[0] == pytest.approx(one.maximize(0, scores)[0], abs=1e-10)


def test_long_sequences(rng):
    """The k best and the sums of 20,000 positions: a recursion would overflow the stack."""
    case = Case(rng.normal(size=(20_000, 3)), rng.normal(size=(16, 3)), np.array([20_000]), 2)
    structure = case.structure()
    ranked = structure.k_best(0, case.slots(0), 3)
    assert [v for v, _, _ in ranked] == sorted((v for v, _, _ in ranked), reverse=True)
    rows = structure.log_partition(0, case.slots(0))[1].reshape(20_000, -1)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)


def test_refusals(rng):
    none, empty = np.empty(0, dtype=np.int64), np.empty(0)
    after = np.zeros(4 * 3), none, empty
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        HistoryChain(np.array([2, 0]), 3, 1, *after, 0)
    with pytest.raises(ValueError, match="12 are needed"):
        HistoryChain(np.array([2]), 3, 1, np.zeros(3), none, empty, 0)
    with pytest.raises(ValueError, match="3 are needed"):
        HistoryChain(np.array([2]), 3, 2, np.zeros(12), np.array([5]), np.zeros(4), 0)
    for history, pairs in ((1, [5]), (2, [16]), (2, [-1]), (2, [5, 5]), (2, [6, 5])):
        with pytest.raises(ValueError, match="pairs must be histories of two tags, ascending"):
            HistoryChain(np.array([2]), 3, history, after[0], np.array(pairs), np.zeros(3 * len(pairs)), 0)
    with pytest.raises(ValueError, match="history must be 1 or 2"):
        HistoryChain(np.array([2]), 3, 3, *after, 0)
    with pytest.raises(ValueError, match="beam_width"):
        HistoryChain(np.array([2]), 3, 1, *after, -1)
    with pytest.raises(ValueError, match="too many labels"):
        HistoryChain(np.array([2]), 1 << 40, 2, *after, 0)
    structure = HistoryChain(np.array([2]), 3, 1, *after, 0)
    zeros = np.zeros(structure.num_slots(0))
    for temperature in (0.5, 2.0):
        with pytest.raises(ValueError, match="temperature"):
            structure.log_partition(0, zeros, temperature)
    with pytest.raises(ValueError, match="allows no labelling"):
        structure.set_mask(0, np.zeros(structure.num_slots(0), dtype=np.uint8))
    structure.set_follow(np.zeros(9, dtype=np.uint8))
    for call in (structure.maximize, structure.log_partition, lambda i, s: structure.k_best(i, s, 2)):
        with pytest.raises(ValueError, match="sequence 0 allows no labelling"):
            call(0, zeros)
    with pytest.raises(ValueError, match="9 values are needed"):
        structure.set_follow(np.ones(4, dtype=np.uint8))
    ptr = np.array([0, 2])
    features = LinearMap([DenseSegment(np.ones((2, 1)), ptr, 3, structure.width)])
    with pytest.raises(ValueError, match="for prediction"):
        Problem(features, structure, structure.encode(np.zeros(2, dtype=np.int64)), "log", 1.0)


def test_allowed_labels_without_probability_are_an_error():
    """A mask allows only a label whose probability underflows: this is an error, not a crash."""
    chain = HistoryChain(np.array([2]), 2, 1, np.zeros(6), np.zeros(0, dtype=np.int64), np.zeros(0), 0)
    scores, mask = np.zeros((2, chain.width)), np.zeros((2, chain.width), dtype=np.uint8)
    scores[:, 0], scores[:, 1], mask[:, 1] = 1e308, -1e308, 1
    chain.set_mask(0, mask.ravel())
    with pytest.raises(ValueError, match="beyond double precision"):
        chain.log_partition(0, scores.ravel())
    with pytest.raises(ValueError, match="beyond double precision"):
        chain.sample(0, scores.ravel(), 1.0, 3, 0)


def test_lengths_beyond_memory_are_refused():
    for length in (1 << 62, np.iinfo(np.int64).max):
        with pytest.raises(ValueError, match="is too large"):
            HistoryChain(np.array([length]), 2, 1, np.zeros(6), np.zeros(0, dtype=np.int64), np.zeros(0), 0)
