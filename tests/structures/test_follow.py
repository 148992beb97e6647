"""A rule about neighbouring labels for all sequences of a structure leaves just the allowed labellings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partwise.models.sequences.constraints import LabelRule, rule_of
from partwise.structures import Chain, HistoryChain, SecondOrderChain

LABELS = ("O", "B-x", "I-x", "B-y", "I-y")
IOB2 = rule_of("iob2", tuple(LABELS))
L = len(LABELS)


def random_rule(rng):
    """Forbid some pairs, first labels and last labels; the sequence of labels 0 is always allowed."""
    pairs, first, last = rng.random((L, L)) < 0.6, rng.random(L) < 0.7, rng.random(L) < 0.7
    pairs[0, 0] = first[0] = last[0] = True
    return LabelRule(pairs, first, last)


def rules(rng):
    return [IOB2, *(random_rule(rng) for _ in range(6))]


def allowed_by(rule, n, row_mask=None):
    found = []
    for y in product(range(L), repeat=n):
        fits = rule.first[y[0]] and rule.last[y[-1]] and all(rule.pairs[a, b] for a, b in zip(y, y[1:], strict=False))
        if fits and (row_mask is None or all(row_mask[t, a] for t, a in enumerate(y))):
            found.append(y)
    return found


def put(rule, structure):
    rule.put_on(structure)
    return structure


def counts_of(structure, labellings, n):
    """The labellings of sequences of n labels, as rows of counts."""
    table = []
    for y in labellings:
        _, slots, counts = type(structure)(np.array([n]), L, tied=structure.tied, ends=structure.ends).encode(
            np.array(y, dtype=np.int64)
        )
        row = np.zeros(structure.num_slots(0))
        row[slots] = counts
        table.append(row)
    return np.array(table)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_chains(tied, ends, n, rng):
    for number, rule in enumerate(rules(rng)):
        structure = put(rule, Chain(np.array([n]), L, tied=tied, ends=ends))
        row_mask = rng.random((n, L)) < 0.8
        row_mask[:, 0] = True
        for masked in (False, True):
            if masked:
                mask = np.ones(structure.num_slots(0), dtype=np.uint8)
                mask[: n * structure.width].reshape(n, -1)[:, :L] = row_mask
                structure.set_mask(0, mask)
            labellings = allowed_by(rule, n, row_mask if masked else None)
            counts = counts_of(structure, labellings, n)
            for scale in (1.0, 400.0):  # at 400, probabilities underflow unless logarithms are used
                scores = scale * rng.normal(size=counts.shape[1])
                values = counts @ scores
                value, slots, used = structure.maximize(0, scores)
                assert value == pytest.approx(values.max(), rel=1e-12), number
                assert scores[slots] @ used == pytest.approx(value)
                for temperature in (1.0, 0.5):
                    z, marginals, entropy = structure.log_partition(0, scores, temperature)
                    p = np.exp((values - values.max()) / temperature)
                    log_z = values.max() / temperature + np.log(p.sum())
                    p /= p.sum()
                    assert z == pytest.approx(temperature * log_z, rel=1e-10)
                    np.testing.assert_allclose(marginals, p @ counts, atol=1e-9)
                    assert entropy == pytest.approx(-(p @ np.log(np.maximum(p, 1e-300))), abs=1e-9)
                    direction = rng.normal(size=len(scores))
                    centred = counts - p @ counts
                    expected = (centred * p[:, None]).T @ (centred @ direction)
                    found = structure.covariance_product(0, scores, temperature, direction)
                    np.testing.assert_allclose(found, expected, atol=1e-8)
                ranked = structure.k_best(0, scores, len(labellings) + 3)
                assert len(ranked) == len(labellings)
                np.testing.assert_allclose([v for v, _, _ in ranked], np.sort(values)[::-1], rtol=1e-10)
                allowed = {tuple(np.flatnonzero(row)) for row in counts}
                drawn = structure.sample(0, scores, 1.0, 20, 3)
                assert all(tuple(sorted(slots.tolist())) in allowed for slots, _ in drawn)


def test_sums_without_logarithms_agree_with_sums_of_logarithms(rng):
    """Under IOB2 sums need no logarithms, because every label has an allowed successor. A mask forces the slow sums."""
    lengths = np.array([40, 3])
    fast, slow = (put(IOB2, Chain(lengths, L)) for _ in range(2))
    slow.set_mask(0, np.ones(slow.num_slots(0), dtype=np.uint8))
    for scale in (0.1, 1.0, 10.0, 30.0):
        scores = scale * rng.normal(size=fast.num_slots(0))
        for one, two in zip(fast.log_partition(0, scores), slow.log_partition(0, scores), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


def test_far_more_likely_chunks_that_cannot_end():
    """The last label is I-x and needs a B-x before it, which is 1e-60 times as likely as the other labels."""
    n = 30
    structure, exact = (put(IOB2, Chain(np.array([n]), L)) for _ in range(2))
    exact.set_mask(0, np.ones(exact.num_slots(0), dtype=np.uint8))
    scores = np.zeros(structure.num_slots(0))
    rows = scores[: n * structure.width].reshape(n, -1)
    rows[:, 1] = -140.0  # B-x
    rows[-1, :] = -140.0
    rows[-1, 2] = 0.0  # I-x at the end
    for one, two in zip(structure.log_partition(0, scores), exact.log_partition(0, scores), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


def test_long_improbable_sequences_need_logarithms():
    """Label k > 0 may only follow label k - 1: each step towards the last label has a weight of 1e-64."""
    labels, n = 7, 12
    pairs = np.zeros((labels, labels), dtype=bool)
    pairs[np.arange(labels - 1), np.arange(1, labels)] = True
    pairs[:, 0] = True
    last = np.arange(labels) == labels - 1
    structure = Chain(np.array([n]), labels)
    LabelRule(pairs, np.ones(labels, dtype=bool), last).put_on(structure)
    scores = np.zeros(structure.num_slots(0))
    rows = scores[: n * structure.width].reshape(n, -1)
    rows[:, 1:] = -148.0
    log_z, marginals, entropy = structure.log_partition(0, scores)
    assert log_z == pytest.approx(-148.0 * (labels - 1))
    assert marginals[(n - 1) * structure.width + labels - 1] == pytest.approx(1.0)
    assert entropy == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("history", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_chains_of_histories(history, n, rng):
    def make():
        first = rng.normal(size=(L + 1) * L)
        return HistoryChain(np.array([n]), L, history, first, np.empty(0, dtype=np.int64), np.empty(0), 0)

    for rule in rules(rng):
        structure = make()
        scores = rng.normal(size=structure.num_slots(0))
        every = structure.k_best(0, scores, L**n)
        labels = {tuple(slots % structure.width): value for value, slots, _ in every}
        rule.put_on(structure)
        left = {y: labels[y] for y in allowed_by(rule, n)}
        value, slots, _ = structure.maximize(0, scores)
        assert value == pytest.approx(max(left.values()))
        assert tuple(slots % structure.width) in left
        log_z, marginals, entropy = structure.log_partition(0, scores)
        p = np.exp(list(left.values()))
        assert log_z == pytest.approx(np.log(p.sum()))
        p /= p.sum()
        assert entropy == pytest.approx(-(p @ np.log(p)))
        expected = np.zeros(structure.num_slots(0))
        for y, q in zip(left, p, strict=True):
            expected[np.arange(n) * structure.width + y] += q
        np.testing.assert_allclose(marginals, expected, atol=1e-9)
        ranked = structure.k_best(0, scores, L**n)
        assert {tuple(slots % structure.width) for _, slots, _ in ranked} == set(left)
        drawn = structure.sample(0, scores, 1.0, 10, 1)
        assert all(tuple(slots % structure.width) in left for slots, _ in drawn)


def nothing():
    """A rule under which sequences of two labels have no labelling."""
    return LabelRule(np.zeros((L, L), dtype=bool), np.ones(L, dtype=bool), np.ones(L, dtype=bool))


@pytest.mark.parametrize("kind", ["chain", "histories"])
def test_a_rule_that_allows_no_labelling_is_refused(kind):
    lengths = np.array([1, 2])
    if kind == "chain":
        structure = Chain(lengths, L)
    else:
        structure = HistoryChain(lengths, L, 1, np.zeros((L + 1) * L), np.empty(0, dtype=np.int64), np.empty(0), 0)
    nothing().put_on(structure)
    scores = np.zeros(structure.num_slots(1))
    structure.maximize(0, np.zeros(structure.num_slots(0)))
    for ask in (
        lambda: structure.maximize(1, scores),
        lambda: structure.log_partition(1, scores),
        lambda: structure.k_best(1, scores, 2),
        lambda: structure.sample(1, scores, 1.0, 2, 0),
        lambda: structure.set_mask(1, np.ones(structure.num_slots(1), dtype=np.uint8)),
    ):
        with pytest.raises(ValueError, match="sequence 1 allows no labelling"):
            ask()
    structure.set_follow(None)
    structure.maximize(1, scores)


def test_rules_of_the_wrong_size():
    structure = Chain(np.array([2]), L)
    for pairs, first, last in (
        (np.ones(3, np.uint8), None, None),
        (None, np.ones(L + 1, np.uint8), None),
        (None, None, np.ones(2, np.uint8)),
    ):
        with pytest.raises(ValueError, match="values are needed"):
            structure.set_follow(pairs, first, last)


def test_gold_labellings_that_the_rule_forbids():
    structure = put(IOB2, Chain(np.array([2]), L))
    free = Chain(np.array([2]), L)
    for labels in ([2, 0], [0, 2]):
        _, slots, counts = free.encode(np.array(labels))
        with pytest.raises(ValueError, match=r"sequence 0, position .: a rule for all sequences forbids the label"):
            structure.check_labelling(0, slots, counts)
    _, slots, counts = free.encode(np.array([1, 2]))
    structure.check_labelling(0, slots, counts)


def test_masks_that_leave_only_improbable_labellings():
    """The mask allows only insides of chunks, and the weight of I-x is 1e-60 at every position."""
    n = 12
    structure = put(IOB2, Chain(np.array([n]), L))
    mask = np.ones(structure.num_slots(0), dtype=np.uint8)
    rows = mask[: n * structure.width].reshape(n, -1)
    rows[1:] = 0
    rows[1:, [LABELS.index("I-x"), LABELS.index("I-y")]] = 1
    rows[-1, LABELS.index("I-y")] = 0
    structure.set_mask(0, mask)
    scores = np.zeros(structure.num_slots(0))
    scores[: n * structure.width].reshape(n, -1)[:, LABELS.index("I-x")] = -140.0
    log_z, marginals, entropy = structure.log_partition(0, scores)
    assert log_z == pytest.approx(-140.0 * (n - 1))
    assert marginals[LABELS.index("B-x")] == pytest.approx(1.0)
    assert entropy == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("masked", [False, True])
def test_second_order_chains(n, masked, rng):
    for rule in rules(rng):
        structure = put(rule, SecondOrderChain(np.array([n]), L))
        mask = np.ones(structure.num_slots(0), dtype=np.uint8)
        row_mask = np.ones((n, L), dtype=bool)
        if masked:
            row_mask[-1] = rng.random(L) < 0.8
            row_mask[-1, 0] = True
            mask[: n * structure.width].reshape(n, -1)[:, :L] = row_mask
            structure.set_mask(0, mask)
        labellings = allowed_by(rule, n, row_mask)
        plain = SecondOrderChain(np.array([n]), L)
        counts = np.zeros((len(labellings), structure.num_slots(0)))
        for row, y in zip(counts, labellings, strict=True):
            _, slots, times = plain.encode(np.array(y, dtype=np.int64))
            row[slots] = times
        scores = rng.normal(size=structure.num_slots(0))
        values = counts @ scores
        value, slots, times = structure.maximize(0, scores)
        assert value == pytest.approx(values.max())
        assert scores[slots] @ times == pytest.approx(values.max())
        log_z, marginals, entropy = structure.log_partition(0, scores)
        p = np.exp(values - np.logaddexp.reduce(values))
        assert log_z == pytest.approx(np.logaddexp.reduce(values))
        np.testing.assert_allclose(marginals, p @ counts, atol=1e-10)
        assert entropy == pytest.approx(-(p @ np.log(p)), abs=1e-10)
        best = structure.k_best(0, scores, 5)
        np.testing.assert_allclose([each[0] for each in best], np.sort(values)[::-1][:5], atol=1e-10)
        direction = rng.normal(size=len(scores))
        expected = counts.T @ (p * (counts @ direction)) - (p @ counts) * (p @ counts @ direction)
        np.testing.assert_allclose(structure.covariance_product(0, scores, 1.0, direction), expected, atol=1e-10)
        known = {tuple(np.flatnonzero(row)) for row in counts}
        for slots, _ in structure.sample(0, scores, 1.0, 20, 0):
            assert tuple(np.sort(slots)) in known


def test_second_order_chains_without_an_allowed_labelling():
    never = LabelRule(np.zeros((L, L), dtype=bool), np.ones(L, dtype=bool), np.ones(L, dtype=bool))
    structure = put(never, SecondOrderChain(np.array([3]), L))
    scores = np.zeros(structure.num_slots(0))
    for ask in (
        lambda: structure.maximize(0, scores),
        lambda: structure.log_partition(0, scores),
        lambda: structure.k_best(0, scores, 2),
        lambda: structure.sample(0, scores, 1.0, 2, 0),
    ):
        with pytest.raises(ValueError, match="sequence 0 allows no labelling"):
            ask()
    with pytest.raises(ValueError, match="a rule for all sequences forbids the label"):
        structure.check_labelling(0, *SecondOrderChain(np.array([3]), L).encode(np.array([0, 0, 0]))[1:])
