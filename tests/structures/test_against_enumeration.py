"""Multiclass, Chain, both kinds of trees and Graph agree with brute-force enumeration to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.enumerate import chain_num_slots
from oracles.strategies import scored_structures

TEMPERATURES = st.sampled_from([0.3, 1.0, 4.0])
TOLERANCE = 1e-10


@given(scored_structures())
def test_maximize(case):
    value, slots, counts = case.structure.maximize(case.i, case.scores)
    best, _ = case.all.maximum(case.scores)
    assert value == pytest.approx(best, abs=TOLERANCE)
    found = case.all.index_of(slots, counts)
    assert found >= 0
    assert case.all.values(case.scores)[found] == pytest.approx(best, abs=TOLERANCE)
    assert len(set(slots.tolist())) == len(slots)  # repetitions are merged: each slot is listed once


@given(scored_structures(), TEMPERATURES)
def test_log_partition_expected_counts_and_entropy(case, temperature):
    value, marginals, entropy = case.structure.log_partition(case.i, case.scores, temperature)
    expected = case.all.smax(case.scores, temperature)
    assert value == pytest.approx(expected[0], abs=TOLERANCE)
    np.testing.assert_allclose(marginals, expected[1], atol=TOLERANCE)
    assert entropy == pytest.approx(expected[2], abs=TOLERANCE)
    # Exactly zero, not only small, outside the labellings: values of padding and masked slots must not reach weights.
    assert not marginals[~case.all.used].any()


@given(scored_structures())
def test_temperature_zero_is_the_maximum(case):
    value, marginals, entropy = case.structure.log_partition(case.i, case.scores, 0.0)
    best, first = case.all.maximum(case.scores)
    assert value == pytest.approx(best, abs=TOLERANCE)
    assert entropy == 0.0
    np.testing.assert_array_equal(marginals, case.all.counts[first])


@given(scored_structures())
def test_falling_temperature_reaches_the_maximum(case):
    best, _ = case.all.maximum(case.scores)
    log_count = np.log(len(case.all))
    for temperature in (1.0, 1e-2, 1e-4):
        value, _, _ = case.structure.log_partition(case.i, case.scores, temperature)
        # max <= smax <= max + temperature * log |Y|
        assert -1e-9 <= value - best <= temperature * log_count + 1e-9


@given(scored_structures(), TEMPERATURES)
def test_expected_counts_are_the_gradient(case, temperature):
    _, marginals, _ = case.structure.log_partition(case.i, case.scores, temperature)
    direction, step = case.direction(), 1e-5
    direction[~case.all.used] = 0.0
    up, down = (
        case.structure.log_partition(case.i, case.scores + s * direction, temperature)[0] for s in (step, -step)
    )
    numeric = (up - down) / (2 * step)
    assert numeric == pytest.approx(float(marginals @ direction), abs=1e-5, rel=1e-6)


@given(scored_structures(), TEMPERATURES)
def test_value_is_energy_plus_temperature_times_entropy(case, temperature):
    value, marginals, entropy = case.structure.log_partition(case.i, case.scores, temperature)
    used = case.all.used
    assert value == pytest.approx(float(marginals[used] @ case.scores[used]) + temperature * entropy, abs=1e-9)


@given(scored_structures(), st.integers(1, 100))
def test_k_best(case, k):
    found = case.structure.k_best(case.i, case.scores, k)
    values = case.all.values(case.scores)
    wanted = values[case.all.k_best(case.scores, k)]
    np.testing.assert_allclose([value for value, _, _ in found], wanted, atol=TOLERANCE)
    indices = [case.all.index_of(slots, counts) for _, slots, counts in found]
    assert min(indices) >= 0
    assert len(set(indices)) == len(found) == min(k, len(case.all))
    np.testing.assert_allclose(values[indices], wanted, atol=TOLERANCE)


@given(scored_structures(), TEMPERATURES)
def test_covariance_product(case, temperature):
    direction = case.direction()
    p = case.all.probabilities(case.scores, temperature)
    got = case.structure.covariance_product(case.i, case.scores, temperature, direction)
    np.testing.assert_allclose(got, case.all.covariance(p) @ direction, atol=TOLERANCE)


@given(scored_structures())
def test_cost_counts_wrong_labels(case):
    gold = int(case.rng.integers(len(case.all)))
    slots = np.flatnonzero(case.all.counts[gold])
    cost = case.structure.cost(case.i, slots, case.all.counts[gold][slots])
    wrong = (case.all.labellings != case.all.labellings[gold]).sum(axis=1)
    np.testing.assert_allclose(case.all.counts @ cost, wrong, atol=0)


@given(scored_structures())
def test_encode_and_decode_are_inverse(case):
    gold = case.all.labellings[case.rng.integers(len(case.all))]
    kind = type(case.structure).__name__
    first = np.array([0] if kind == "Multiclass" else [0, 1] if kind.endswith("Tree") else [0, 0], dtype=np.int64)
    labels = np.concatenate([first, gold])
    indptr, slots, counts = case.structure.encode(labels)
    mine = slice(indptr[1], indptr[2])
    assert case.all.labellings[case.all.index_of(slots[mine], counts[mine])].tolist() == gold.tolist()
    np.testing.assert_array_equal(case.structure.decode(indptr, slots, counts), labels)
    case.structure.check_labelling(1, slots[mine], counts[mine])


@given(scored_structures())
def test_check_labelling_knows_the_mask(case):
    from oracles.enumerate import enumeration_of

    mask = case.structure.mask(case.i)
    case.structure.set_mask(case.i, None)
    everything = enumeration_of(case.structure, case.i)
    case.structure.set_mask(case.i, mask)
    for counts in everything.counts:
        slots = np.flatnonzero(counts)
        if case.all.index_of(slots, counts[slots]) >= 0:
            case.structure.check_labelling(case.i, slots, counts[slots])
        else:
            with pytest.raises(ValueError, match=r"mask|allowed"):
                case.structure.check_labelling(case.i, slots, counts[slots])


@given(scored_structures())
def test_slot_offsets(case):
    offsets = case.structure.slot_offsets()
    sizes = [case.structure.num_slots(i) for i in range(case.structure.num_examples)]
    np.testing.assert_array_equal(offsets, np.concatenate([[0], np.cumsum(sizes)]))
    kind = type(case.structure).__name__
    cliques = {"cliques", "clique support"}
    more = {"Multiclass": {"one part"} | cliques, "Chain": cliques, "Graph": cliques}.get(kind, set())
    assert case.structure.capabilities() == {"covariance", "k_best", "sample"} | more


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize(("length", "n_labels"), [(1, 5), (2, 3), (7, 4), (30, 9)])
def test_uniform_at_zero_scores(tied, ends, length, n_labels):
    from partwise import _core

    chain = _core.Chain(np.array([length], dtype=np.int64), n_labels, tied=tied, ends=ends)
    size = chain_num_slots(length, n_labels, chain.width, tied, ends)
    assert chain.num_slots(0) == size
    value, marginals, entropy = chain.log_partition(0, np.zeros(size))
    assert value == pytest.approx(length * np.log(n_labels), abs=1e-10)
    assert entropy == pytest.approx(length * np.log(n_labels), abs=1e-10)
    rows = marginals[: length * chain.width].reshape(length, chain.width)
    np.testing.assert_allclose(rows[:, :n_labels], 1.0 / n_labels, atol=1e-12)
    tables = 1 if tied else length - 1
    start = length * chain.width
    edges = marginals[start : start + tables * n_labels * chain.width].reshape(-1, chain.width)[:, :n_labels]
    np.testing.assert_allclose(edges, (length - 1) / max(tables, 1) / n_labels**2, atol=1e-11)
    value, slots, counts = chain.maximize(0, np.zeros(size))
    assert value == 0.0
    labels = chain.decode(np.array([0, len(slots)], dtype=np.int64), slots, counts)
    np.testing.assert_array_equal(labels, 0)  # ties go to the lowest labels


@given(st.integers(0, 2**32 - 1), st.integers(1, 13), st.booleans(), TEMPERATURES)
def test_a_chain_of_length_one_is_multiclass(seed, n_labels, tied, temperature):
    from partwise import _core

    rng = np.random.default_rng(seed)
    chain = _core.Chain(np.ones(1, dtype=np.int64), n_labels, tied=tied)
    multi = _core.Multiclass(1, n_labels)
    assert chain.width == multi.width
    scores = np.zeros(chain.num_slots(0))
    scores[:n_labels] = 5 * rng.normal(size=n_labels)
    short = scores[: multi.width].copy()
    value, marginals, entropy = chain.log_partition(0, scores, temperature)
    expected = multi.log_partition(0, short, temperature)
    assert value == pytest.approx(expected[0], abs=1e-12)
    assert entropy == pytest.approx(expected[2], abs=1e-12)
    np.testing.assert_allclose(marginals[: multi.width], expected[1], atol=1e-13)
    assert not marginals[multi.width :].any()
    best, other = chain.maximize(0, scores), multi.maximize(0, short)
    assert best[0] == other[0]
    np.testing.assert_array_equal(best[1], other[1])
    for one, two in zip(chain.k_best(0, scores, 4), multi.k_best(0, short, 4), strict=True):
        assert one[0] == pytest.approx(two[0], abs=1e-12)
        np.testing.assert_array_equal(one[1], two[1])
    marginals = chain.clique_marginals(0, scores, temperature)
    np.testing.assert_allclose(marginals, multi.clique_marginals(0, short, temperature), atol=1e-13)
