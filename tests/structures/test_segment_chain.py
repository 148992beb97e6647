"""SegmentChain agrees with enumeration of all segmentations, and with Chain where segments have one position."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.enumerate import enumeration_of
from oracles.segments import without_joints
from oracles.strategies import Scored
from partwise._core import Chain, SegmentChain

TOLERANCE = 1e-10
TEMPERATURES = st.sampled_from([0.3, 1.0, 4.0])
# Length, number of labels, maximum length, maximum length of each label.
SHAPES = [
    (1, 1, 1, None),
    (1, 3, 2, None),
    (3, 2, 2, None),
    (4, 2, 4, [1, 4]),
    (5, 1, 3, None),
    (4, 3, 3, [1, 3, 2]),
    (5, 2, 2, [2, 1]),
]


def some_list(rng, length, max_length):
    """List random segments of two sequences, of which the first has length 2."""
    ptr, begins, ends = [0], [], []
    for n in (2, length):
        every = [(e, s) for e in range(1, n + 1) for s in range(max(0, e - max_length), e)]
        for end, begin in every:
            if rng.random() < 0.4:
                begins.append(begin)
                ends.append(end)
        ptr.append(len(begins))
    return tuple(np.array(x, dtype=np.int64) for x in (ptr, begins, ends))


@st.composite
def cases(draw, masks=True):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    length, n_labels, max_length, longest = draw(st.sampled_from(SHAPES))
    structure = SegmentChain(
        np.array([2, length]),
        n_labels,
        max_length,
        None if longest is None else np.array(longest),
        some_list(rng, length, max_length) if draw(st.booleans()) else None,
        segment_cost=draw(st.booleans()),
    )
    everything = enumeration_of(structure, 1)
    ignored = ~everything.used
    if masks and draw(st.booleans()):
        kept = everything.counts[rng.integers(len(everything))] > 0
        allowed = (rng.random(len(kept)) < 0.75) | kept
        structure.set_mask(1, allowed.astype(np.uint8))
        ignored |= ~allowed
    scores = draw(st.sampled_from([0.1, 1.0, 20.0])) * rng.normal(size=structure.num_slots(1))
    scores[ignored] = 1e6 * rng.normal(size=int(ignored.sum()))
    return Scored(structure, 1, enumeration_of(structure, 1), scores, rng)


@given(cases())
def test_maximize(case):
    value, slots, counts = case.structure.maximize(1, case.scores)
    best, _ = case.all.maximum(case.scores)
    assert value == pytest.approx(best, abs=TOLERANCE)
    found = case.all.index_of(slots, counts)
    assert found >= 0
    assert case.all.values(case.scores)[found] == pytest.approx(best, abs=TOLERANCE)
    assert len(set(slots.tolist())) == len(slots)
    zero = case.structure.log_partition(1, case.scores, 0.0)
    assert zero[0] == value
    assert zero[2] == 0.0
    np.testing.assert_array_equal(zero[1], case.all.counts[found])


@given(cases(), TEMPERATURES)
def test_log_partition_expected_counts_and_entropy(case, temperature):
    value, marginals, entropy = case.structure.log_partition(1, case.scores, temperature)
    expected = case.all.smax(case.scores, temperature)
    assert value == pytest.approx(expected[0], abs=TOLERANCE)
    np.testing.assert_allclose(marginals, expected[1], atol=TOLERANCE)
    assert entropy == pytest.approx(expected[2], abs=TOLERANCE)
    assert not marginals[~case.all.used].any()


@given(cases(), st.integers(1, 60))
def test_k_best(case, k):
    found = case.structure.k_best(1, case.scores, k)
    values = case.all.values(case.scores)
    wanted = values[case.all.k_best(case.scores, k)]
    np.testing.assert_allclose([value for value, _, _ in found], wanted, atol=TOLERANCE)
    indices = [case.all.index_of(slots, counts) for _, slots, counts in found]
    assert min(indices) >= 0
    assert len(set(indices)) == len(found) == min(k, len(case.all))


@given(cases(), TEMPERATURES)
def test_covariance_product(case, temperature):
    direction = case.direction()
    p = case.all.probabilities(case.scores, temperature)
    got = case.structure.covariance_product(1, case.scores, temperature, direction)
    np.testing.assert_allclose(got, case.all.covariance(p) @ direction, atol=TOLERANCE)


@given(cases())
def test_segment_probabilities(case):
    """A segment's probability is the sum over all segmentations that contain it."""
    length = int(case.structure.lengths[1])
    asked = [
        (s, t, b)
        for t in range(1, length + 1)
        for s in range(t)
        for b, longest in enumerate(case.structure.max_lengths.tolist())
        if t - s <= longest
    ]
    begins, ends, labels = np.array(asked, dtype=np.int64).T.copy()
    got = case.structure.segment_probabilities(1, case.scores, begins, ends, labels, 0.7)
    p = case.all.probabilities(case.scores, 0.7)
    codes = case.all.labellings
    for (s, t, b), value in zip(asked, got, strict=True):
        has = (codes[:, s] == 2 * b) & np.all(codes[:, s + 1 : t] == 2 * b + 1, axis=1)
        has &= (codes[:, t] % 2 == 0) if t < length else True
        assert value == pytest.approx(p[has].sum(), abs=TOLERANCE)


@given(cases())
def test_cost(case):
    gold = int(case.rng.integers(len(case.all)))
    slots = np.flatnonzero(case.all.counts[gold])
    cost = case.structure.cost(1, slots, case.all.counts[gold][slots])
    codes, right = case.all.labellings, case.all.labellings[gold]
    wanted = (codes // 2 != right // 2).sum(axis=1)
    if case.structure.segment_cost:
        starts = (codes % 2 == 0) & (codes != right)  # segments that begin where gold has none with that label
        ends, gold_end = (
            np.hstack([x[:, 1:] % 2 == 0, np.ones((len(x), 1), dtype=bool)]) for x in (codes, right[None])
        )
        wrong_ends = ends & ~(gold_end & (codes // 2 == right // 2))
        wanted = wanted + 0.5 * (starts.sum(axis=1) + wrong_ends.sum(axis=1))
    np.testing.assert_allclose(case.all.counts @ cost, wanted, atol=0)
    assert cost.min() >= 0.0


@given(cases())
def test_encode_and_decode_are_inverse(case):
    codes = np.concatenate([[0, 0], case.all.labellings[case.rng.integers(len(case.all))]])
    labels, begins = codes // 2, (codes % 2 == 0).astype(np.uint8)
    indptr, slots, counts = case.structure.encode(labels, begins)
    own = slice(indptr[1], indptr[2])
    assert case.all.labellings[case.all.index_of(slots[own], counts[own])].tolist() == codes[2:].tolist()
    back = case.structure.decode(indptr, slots, counts)
    np.testing.assert_array_equal(back[0], labels)
    np.testing.assert_array_equal(back[1], begins)
    case.structure.check_labelling(1, slots[own], counts[own])


@given(cases())
def test_check_labelling_knows_the_mask(case):
    mask = case.structure.mask(1)
    case.structure.set_mask(1, None)
    everything = enumeration_of(case.structure, 1)
    case.structure.set_mask(1, mask)
    for counts in everything.counts:
        slots = np.flatnonzero(counts)
        if case.all.index_of(slots, counts[slots]) >= 0:
            case.structure.check_labelling(1, slots, counts[slots])
        else:
            with pytest.raises(ValueError, match="mask"):
                case.structure.check_labelling(1, slots, counts[slots])


@pytest.mark.parametrize("masked", [False, True])
def test_samples_have_the_probabilities(masked, rng):
    structure = SegmentChain(np.array([4]), 2, 3, listed=tuple(np.array(x) for x in ([0, 2], [0, 1], [2, 4])))
    if masked:
        allowed = np.ones(structure.num_slots(0), dtype=np.uint8)
        allowed[(3 * 4) * structure.width] = 0  # forbids segments of one position with label 0
        structure.set_mask(0, allowed)
    every = enumeration_of(structure, 0)
    scores = rng.normal(size=structure.num_slots(0))
    n = 6000
    found = np.zeros(len(every))
    for slots, counts in structure.sample(0, scores, 0.8, n, seed=3):
        found[every.index_of(slots, counts)] += 1
    p = every.probabilities(scores, 0.8)
    chi2 = ((found - n * p) ** 2 / (n * p))[n * p > 5].sum()
    assert chi2 < len(every) + 5 * np.sqrt(2 * len(every))
    assert (
        structure.sample(0, scores, 0.8, 3, seed=9)[2][0].tolist()
        == structure.sample(0, scores, 0.8, 3, seed=9)[2][0].tolist()
    )


@pytest.mark.parametrize(
    ("length", "n_labels", "max_length"), [(1, 3, 4), (6, 1, 6), (6, 1, 2), (9, 3, 4), (30, 11, 8)]
)
def test_counts_at_zero_scores(length, n_labels, max_length):
    """At zero scores sums count segmentations: N(t) = L (N(t - 1) + ... + N(t - D)), or 2^(T - 1) for one label."""
    structure = SegmentChain(np.array([length]), n_labels, max_length)
    ways = [1]
    for t in range(1, length + 1):
        ways.append(n_labels * sum(ways[max(0, t - max_length) :]))
    if n_labels == 1 and max_length >= length:
        assert ways[-1] == 2 ** (length - 1)
    value, marginals, entropy = structure.log_partition(0, np.zeros(structure.num_slots(0)))
    assert value == pytest.approx(np.log(float(ways[-1])), abs=1e-10)
    assert entropy == pytest.approx(value, abs=1e-9)
    inside = marginals[: length * structure.width].reshape(length, -1)
    np.testing.assert_allclose(inside[:, :n_labels], 1 / n_labels, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 400.0])
@pytest.mark.parametrize(("length", "n_labels"), [(1, 2), (7, 3), (40, 9)])
def test_segments_of_one_position_are_a_chain(length, n_labels, scale, rng):
    segments = SegmentChain(np.array([length]), n_labels, 1)
    chain = Chain(np.array([length]), n_labels)
    width, rows = chain.width, length * chain.width
    scores, direction = (scale * rng.normal(size=segments.num_slots(0)) for _ in range(2))

    def folded(x):
        """Add the scores inside, first, last and of length one to the score of the position."""
        tables = x[: 3 * rows].reshape(3, length, width).sum(axis=0) + x[3 * rows : 3 * rows + width]
        return np.concatenate([tables.ravel(), x[3 * rows + width :]])

    tolerance = 1e-10 * scale
    value, marginals, entropy = segments.log_partition(0, scores, 1.3)
    wanted = chain.log_partition(0, folded(scores), 1.3)
    assert value == pytest.approx(wanted[0], abs=tolerance)
    assert entropy == pytest.approx(wanted[2], abs=tolerance)
    nodes = marginals[: 3 * rows].reshape(3, -1)
    for table in nodes:
        np.testing.assert_allclose(table, wanted[1][:rows], atol=tolerance)
    np.testing.assert_allclose(marginals[3 * rows + width :], wanted[1][rows:], atol=tolerance)
    assert segments.maximize(0, scores)[0] == pytest.approx(chain.maximize(0, folded(scores))[0], abs=tolerance)
    got = segments.covariance_product(0, scores, 1.3, direction)
    wanted = chain.covariance_product(0, folded(scores), 1.3, folded(direction))
    np.testing.assert_allclose(got[:rows], wanted[:rows], atol=tolerance)
    np.testing.assert_allclose(got[3 * rows + width :], wanted[rows:], atol=tolerance)
    ranked, other = segments.k_best(0, scores, 5), chain.k_best(0, folded(scores), 5)
    np.testing.assert_allclose([v for v, _, _ in ranked], [v for v, _, _ in other], atol=tolerance)


@pytest.mark.parametrize("inside", [1.0, 50.0, 1000.0])
@pytest.mark.parametrize(("length", "n_labels", "max_length"), [(3, 2, 5), (40, 9, 4), (25, 24, 8), (12, 50, 3)])
def test_fast_kernels_agree_with_logs(length, n_labels, max_length, inside, rng):
    """Fast kernels and logarithms give the same sums. A continuation mask makes a chain use logarithms."""
    every = [(e, s) for e in range(1, length + 1) for s in range(max(0, e - max_length), e) if rng.random() < 0.2]
    ends, begins = (np.array([pair[k] for pair in every], dtype=np.int64) for k in (0, 1))
    listed = (np.array([0, len(every)]), begins, ends)
    structure = SegmentChain(np.array([length]), n_labels, max_length, listed=listed)
    width = structure.width
    scores = 2 * rng.normal(size=structure.num_slots(0))
    scores[: length * width] *= inside
    allowed = np.ones(structure.num_slots(0), dtype=np.uint8)
    allowed[: length * width] = rng.random(length * width) < 0.8
    allowed[: length * width : width] = 1
    structure.set_mask(0, allowed)
    fast = structure.log_partition(0, scores, 0.9)
    structure.set_continuation(0, np.ones(length * width, dtype=np.uint8))
    logs = structure.log_partition(0, scores, 0.9)
    assert fast[0] == pytest.approx(logs[0], rel=1e-12)
    np.testing.assert_allclose(fast[1], logs[1], atol=1e-11 * max(1.0, inside))
    assert fast[2] == pytest.approx(logs[2], abs=1e-10 * max(1.0, inside))


@pytest.mark.parametrize("temperature", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("scale", [1.0, 100.0, 1000.0])
def test_large_scores_and_low_temperatures(scale, temperature, rng):
    structure = SegmentChain(np.array([5]), 3, 3, listed=tuple(np.array(x) for x in ([0, 2], [0, 1], [2, 4])))
    every = enumeration_of(structure, 0)
    scores = scale * rng.uniform(-1, 1, structure.num_slots(0))
    value, marginals, entropy = structure.log_partition(0, scores, temperature)
    expected = every.smax(scores.astype(np.longdouble), temperature)
    tolerance = max(1e-10, 30 * scale / temperature * 1e-15)
    assert value == pytest.approx(float(expected[0]), rel=1e-13)
    np.testing.assert_allclose(marginals, expected[1].astype(float), atol=tolerance)
    assert entropy == pytest.approx(float(expected[2]), abs=tolerance)


def test_long_sequences_lose_no_digits(rng):
    """In a periodic sequence, marginals of a period in the middle do not depend on the number of periods."""
    period, n_labels = 40, 3
    results = []
    rows = rng.normal(size=(3, period, 4))
    tail = 2 * rng.normal(size=(4 + 3) * 4)
    for copies in (10, 1000):
        length = copies * period
        structure = SegmentChain(np.array([length]), n_labels, 4)
        scores = np.concatenate([np.tile(table, (copies, 1)).ravel() for table in rows] + [tail])
        _, marginals, _ = structure.log_partition(0, scores)
        assert marginals[: length * 4].reshape(length, 4).sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        start = (copies // 2) * period
        results.append(marginals[: 3 * length * 4].reshape(3, length, 4)[:, start : start + period])
        product = structure.covariance_product(0, scores, 1.0, np.ones_like(scores))
        results.append(product[: 3 * length * 4].reshape(3, length, 4)[:, start : start + period])
    np.testing.assert_allclose(results[0], results[2], atol=1e-12)
    np.testing.assert_allclose(results[1], results[3], atol=1e-11)


@given(cases(), TEMPERATURES)
def test_continuation(case, temperature):
    """Every operation respects positions that must begin a segment."""
    structure, width = case.structure, case.structure.width
    allowed = (case.rng.random(int(structure.lengths[1]) * width) < 0.6).astype(np.uint8)
    every = without_joints(case.all, allowed, width)
    if not len(every):
        with pytest.raises(ValueError, match="the mask of sequence 1 allows no labelling"):
            structure.set_continuation(1, allowed)
        assert structure.log_partition(1, case.scores)[0] == pytest.approx(
            case.all.smax(case.scores, 1.0)[0], abs=1e-10
        )
        return
    structure.set_continuation(1, allowed)
    value, marginals, entropy = structure.log_partition(1, case.scores, temperature)
    expected = every.smax(case.scores, temperature)
    assert value == pytest.approx(expected[0], abs=TOLERANCE)
    np.testing.assert_allclose(marginals, expected[1], atol=TOLERANCE)
    assert entropy == pytest.approx(expected[2], abs=TOLERANCE)
    best, slots, counts = structure.maximize(1, case.scores)
    assert best == pytest.approx(every.maximum(case.scores)[0], abs=TOLERANCE)
    structure.check_labelling(1, slots, counts)
    ranked = structure.k_best(1, case.scores, 20)
    np.testing.assert_allclose(
        [v for v, _, _ in ranked], every.values(case.scores)[every.k_best(case.scores, 20)], atol=TOLERANCE
    )
    assert all(every.index_of(*drawn) >= 0 for drawn in structure.sample(1, case.scores, temperature, 20, seed=1))
    p, direction = every.probabilities(case.scores, temperature), case.direction()
    product = structure.covariance_product(1, case.scores, temperature, direction)
    np.testing.assert_allclose(product, every.covariance(p) @ direction, atol=TOLERANCE)
    for other in case.all.counts:
        own = np.flatnonzero(other)
        if every.index_of(own, other[own]) < 0:
            with pytest.raises(ValueError, match="the mask wants a segment to begin here"):
                structure.check_labelling(1, own, other[own])
    structure.set_continuation(1, None)
    assert structure.log_partition(1, case.scores)[0] == pytest.approx(case.all.smax(case.scores, 1.0)[0], abs=1e-10)


def test_masks_fix_and_forbid_segments(rng):
    """Masks of label, begin, end and continuation fix a segment; a mask can also forbid a listed segment."""
    listed = tuple(np.array(x, dtype=np.int64) for x in ([0, 1], [1], [4]))
    structure = SegmentChain(np.array([6]), 2, 4, listed=listed)
    width, scores = structure.width, rng.normal(size=structure.num_slots(0))
    asked = [np.array([x]) for x in (1, 4, 1)]
    fixed = np.ones((structure.num_slots(0) // width, width), dtype=np.uint8)
    fixed[1:4, 0] = 0  # inside positions 1 to 3 only label 1
    fixed[6 + 2 : 6 + 4] = 0  # no segment begins at position 2 or 3
    structure.set_mask(0, fixed.ravel())
    joined = np.ones((6, width), dtype=np.uint8)
    joined[[1, 4]] = 0  # segments begin at 1 and at 4
    structure.set_continuation(0, joined.ravel())
    assert structure.segment_probabilities(0, scores, *asked)[0] == pytest.approx(1.0, abs=1e-12)
    structure.set_continuation(0, None)
    forbidden = np.ones_like(fixed)
    forbidden[-1] = 0
    structure.set_mask(0, forbidden.ravel())
    assert structure.segment_probabilities(0, scores, *asked)[0] == 0.0
    nothing = np.ones_like(fixed)
    nothing[2] = 0
    with pytest.raises(ValueError, match="the mask of sequence 0 allows no labelling"):
        structure.set_mask(0, nothing.ravel())
    with pytest.raises(ValueError, match="the continuation mask has 3 values, 24 are needed"):
        structure.set_continuation(0, np.ones(3, dtype=np.uint8))


def test_bad_input():
    lengths = np.array([3, 6])
    structure = SegmentChain(lengths, 2, 3, np.array([1, 3]))
    labels, begins = np.zeros(9, dtype=np.int64), np.ones(9, dtype=np.uint8)
    labels[4:8], begins[5:8] = 1, 0
    with pytest.raises(
        ValueError, match=r"sequence 1: segment \[1, 5\) with label 1 has 4 positions, the maximum is 3"
    ):
        structure.encode(labels, begins)
    labels[4:8], begins[6:8] = 0, 1
    with pytest.raises(
        ValueError, match=r"sequence 1: segment \[1, 3\) with label 0 has 2 positions, the maximum is 1"
    ):
        structure.encode(labels, begins)
    begins[:] = 1
    begins[3] = 0
    with pytest.raises(ValueError, match="sequence 1: no segment begins at position 0"):
        structure.encode(labels, begins)
    labels[2] = 1
    begins[2:4] = [0, 1]
    with pytest.raises(ValueError, match="sequence 0, position 2: its label is not that of the segment"):
        structure.encode(labels, begins)
    labels[2] = 7
    with pytest.raises(ValueError, match="sequence 0: label 7 is not in"):
        structure.encode(labels, begins)
    with pytest.raises(ValueError, match="have 8 and 9 values"):
        structure.encode(labels[:8], begins)
    good = structure.encode(np.zeros(9, dtype=np.int64), np.ones(9, dtype=np.uint8))
    wrong = good[2].copy()
    wrong[3] = 2
    with pytest.raises(ValueError, match="sequence 0, position 0: expected exactly one label"):
        structure.check_labelling(0, good[1][: good[0][1]], wrong[: good[0][1]])
    with pytest.raises(ValueError, match="sequence 0: slot"):
        structure.check_labelling(0, good[1][: good[0][1] - 1], good[2][: good[0][1] - 1])
    for arguments, message in [
        ((np.array([3, 0]), 2, 3), "sequence 1 is empty"),
        ((lengths, 0, 3), "at least one label"),
        ((lengths, 2, 0), "max_length must be at least 1"),
        ((lengths, 2, 3, np.array([1])), "max_lengths has 1 values for 2 labels"),
        ((lengths, 2, 3, np.array([1, 4])), "the maximum length of label 1 is 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            SegmentChain(*arguments)
    for listed, message in [
        (([0, 0, 1], [0], [7]), r"sequence 1: segment \[0, 7\) is listed, but the sequence has 6 positions"),
        (([0, 0, 1], [0], [5]), r"sequence 1: segment \[0, 5\) is listed, but the maximum length is 3"),
        (([0, 0, 2], [0, 1], [3, 2]), "in the order of"),
        (([0, 0, 2], [0, 0], [3, 3]), "in the order of"),
        (([0, 1], [0], [3]), "does not fit the sequences"),
        (([0, 2, 1], [0], [3]), "does not fit the sequences"),
    ]:
        with pytest.raises(ValueError, match=message):
            SegmentChain(lengths, 2, 3, listed=tuple(np.array(x, dtype=np.int64) for x in listed))
    with pytest.raises(ValueError, match="not in the sequence"):
        structure.segment_probabilities(0, np.zeros(structure.num_slots(0)), *(np.array([x]) for x in (2, 9, 1)))


MEMORY = """
import resource, sys
import numpy as np
from partwise._core import SegmentChain
rng = np.random.default_rng(0)
structure = SegmentChain(np.array([int(sys.argv[1])]), 24, int(sys.argv[2]))
scores = rng.normal(size=structure.num_slots(0))
value, marginals, entropy = structure.log_partition(0, scores)
assert abs(value - marginals @ scores - entropy) < 1e-6 * abs(value), (value, marginals @ scores, entropy)
inside = marginals[: 24 * int(sys.argv[1])].reshape(-1, 24).sum(axis=1)
assert abs(inside - 1).max() < 1e-10
structure.maximize(0, scores)
structure.sample(0, scores, 1.0, 1, 0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(length, max_length):
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(length), str(max_length)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024


@pytest.mark.slow
def test_a_hundred_thousand_positions_take_less_than_a_gigabyte():
    assert peak(100_000, 100) < 1e9


def test_memory_does_not_grow_with_the_maximum_length():
    assert peak(20_000, 32) < peak(20_000, 1) + 4e6
