"""Results for large scores, low temperatures, long chains and masks equal those in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.chain_reference import chain_best, chain_covariance, chain_sums, join_slots, split_slots
from oracles.enumerate import enumeration_of
from partwise import _core


def one_chain(length, n_labels, tied=True, ends=False):
    return _core.Chain(np.array([length], dtype=np.int64), n_labels, tied=tied, ends=ends)


def reference(chain, scores, temperature):
    shape = chain.n_labels, chain.width, chain.tied, chain.ends
    sums = chain_sums(*split_slots(scores, int(chain.lengths[0]), *shape), temperature)
    return sums, join_slots(sums, *shape)


def check(chain, scores, temperature, tolerance):
    """Compare values relative to their size, and marginals and entropy to `tolerance`."""
    value, marginals, entropy = chain.log_partition(0, scores, temperature)
    sums, expected = reference(chain, scores, temperature)
    assert value == pytest.approx(sums.value, rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(marginals, expected, atol=tolerance, rtol=tolerance)
    assert entropy == pytest.approx(sums.entropy, abs=tolerance, rel=tolerance)
    assert entropy >= 0.0
    assert marginals.min() >= 0.0


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("scale", [30.0, 300.0, 1e3])
@pytest.mark.parametrize("temperature", [1.0, 1e-2, 1e-4])
def test_large_scores_and_low_temperatures(tied, ends, scale, temperature, rng):
    chain = one_chain(12, 4, tied, ends)
    scores = rng.uniform(-scale, scale, chain.num_slots(0))
    # Scores have a relative error of 2^-53, so exponents have errors of about scale / temperature * 1e-16 per position.
    tolerance = max(1e-10, 12 * scale / temperature * 1e-15)
    check(chain, scores, temperature, tolerance)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("spread", [100.0, 280.0, 320.0, 700.0])
def test_where_scaled_probabilities_give_way_to_logs(spread, tied, rng):
    """Scores spread over a range, half of it by positions, half by transitions; blocks prefer different labels."""
    chain = one_chain(60, 5, tied)
    scores = rng.uniform(0, spread / 2, chain.num_slots(0))
    rows = scores[: 60 * chain.width].reshape(60, chain.width)
    rows[:20, 0] = rows[20:40, 3] = spread / 2
    check(chain, scores, 1.0, 1e-10)


@pytest.mark.parametrize("temperature", [1e-2, 1e-4])
def test_near_ties_at_low_temperature(temperature, rng):
    """Scores of +-1e3 that differ by multiples of the temperature: several labellings have notable probability."""
    chain = one_chain(9, 3, tied=True, ends=True)
    base = rng.choice([-1e3, 1e3], chain.num_slots(0))
    base[: 9 * chain.width] = 0.0
    # All transitions are equal, so that only the small differences decide
    base[9 * chain.width : -2 * chain.width] = 1e3
    base[-2 * chain.width :] = -1e3
    scores = base + temperature * rng.normal(size=len(base))
    value, marginals, entropy = chain.log_partition(0, scores, temperature)
    sums, expected = reference(chain, scores, temperature)
    assert sums.entropy > 1.0
    tolerance = 9 * 1e3 / temperature * 1e-15
    assert value == pytest.approx(sums.value, rel=1e-13)
    np.testing.assert_allclose(marginals, expected, atol=tolerance)
    assert entropy == pytest.approx(sums.entropy, abs=10 * tolerance)


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("temperature", [1.0, 1e-4])
def test_multiclass_extremes(scale, temperature, rng):
    multi = _core.Multiclass(1, 7)
    scores = rng.uniform(-scale, scale, multi.num_slots(0))
    scores[3] = scores[:7].max() + temperature  # close to the largest score
    value, marginals, entropy = multi.log_partition(0, scores, temperature)
    expected = enumeration_of(multi, 0).smax(scores.astype(np.longdouble), temperature)
    assert value == pytest.approx(float(expected[0]), rel=1e-13)
    tolerance = max(1e-12, scale / temperature * 1e-15)
    np.testing.assert_allclose(marginals, expected[1].astype(float), atol=tolerance)
    assert entropy == pytest.approx(expected[2], abs=10 * tolerance)


@pytest.mark.parametrize("shift", [1e3, 1e6, -1e6])
def test_a_constant_added_to_a_position_changes_nothing_but_the_value(shift, rng):
    chain = one_chain(6, 3)
    scores = rng.normal(size=chain.num_slots(0))
    value, marginals, entropy = chain.log_partition(0, scores)
    scores[2 * chain.width : 3 * chain.width] += shift
    shifted = chain.log_partition(0, scores)
    assert shifted[0] == pytest.approx(value + shift, rel=1e-14, abs=1e-11)
    np.testing.assert_allclose(shifted[1], marginals, atol=1e-15 * abs(shift) * 10)
    assert shifted[2] == pytest.approx(entropy, abs=1e-15 * abs(shift) * 10)


LONG = 100_000


@pytest.mark.parametrize("tied", [True, False])
def test_sums_over_a_chain_of_a_hundred_thousand(tied, rng):
    chain = one_chain(LONG, 3, tied, ends=True)
    check(chain, 3 * rng.normal(size=chain.num_slots(0)), 1.0, 1e-8)


@pytest.mark.parametrize("spread", [1.0, 300.0])  # scaled probabilities at 1.0, logarithms at 300.0
@pytest.mark.parametrize("tied", [True, False])
def test_covariance_of_a_long_chain(tied, spread, rng):
    chain = one_chain(3000, 3, tied, ends=True)
    scores = spread * rng.uniform(-1, 1, chain.num_slots(0))
    direction = rng.normal(size=len(scores)) + 1.0  # along a constant direction the product would be 0 for every length
    product = chain.covariance_product(0, scores, 1.0, direction)
    parts = [split_slots(x, 3000, 3, chain.width, tied, True) for x in (scores, direction)]
    expected = join_slots(chain_covariance(*parts[0], *parts[1]), 3, chain.width, tied, True)
    np.testing.assert_allclose(product, expected, atol=1e-10 * spread)


@pytest.mark.parametrize("tied", [True, False])
def test_the_best_of_a_chain_of_a_hundred_thousand(tied, rng):
    chain = one_chain(LONG, 3, tied, ends=True)
    scores = 3 * rng.normal(size=chain.num_slots(0))
    value, slots, counts = chain.maximize(0, scores)
    best, labels = chain_best(*split_slots(scores, LONG, 3, chain.width, tied, True))
    assert value == pytest.approx(best, rel=1e-12)
    np.testing.assert_array_equal(chain.decode(np.array([0, len(slots)]), slots, counts), labels)
    chain.check_labelling(0, *chain.sample(0, scores, 1.0, 1, seed=1)[0])


def test_long_chain_with_extreme_scores(rng):
    chain = one_chain(2000, 4)
    check(chain, rng.uniform(-1e3, 1e3, chain.num_slots(0)), 1.0, 1e-8)
    check(chain, rng.uniform(-1e3, 1e3, chain.num_slots(0)), 1e-4, 1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("temperature", [1.0, 1e-4])
@pytest.mark.parametrize("tied", [True, False])
def test_masks_with_extreme_scores(scale, temperature, tied, rng):
    chain = one_chain(4, 3, tied, ends=True)
    everything = enumeration_of(chain, 0)
    kept = everything.counts[[0, 41, 60]].max(axis=0) > 0  # allows 0000, 1112 and 2020
    chain.set_mask(0, ((rng.random(len(kept)) < 0.4) | kept).astype(np.uint8))
    left = enumeration_of(chain, 0)
    assert 3 <= len(left) < len(everything)
    scores = rng.uniform(-scale, scale, chain.num_slots(0))
    value, marginals, entropy = chain.log_partition(0, scores, temperature)
    expected = left.smax(scores, temperature)
    tolerance = max(1e-10, scale / temperature * 1e-14)
    assert value == pytest.approx(expected[0], abs=tolerance)
    np.testing.assert_allclose(marginals, expected[1], atol=tolerance)
    assert entropy == pytest.approx(expected[2], abs=tolerance)
    assert not marginals[~left.used].any()


def test_a_forbidden_transition_dominating_the_scores(rng):
    """The best path without the mask gains 1e3 more per step than the best allowed path."""
    chain = one_chain(50, 3)
    scores = rng.normal(size=chain.num_slots(0))
    table = slice(50 * chain.width, chain.num_slots(0))
    allowed = np.ones(chain.num_slots(0), dtype=np.uint8)
    for a in range(3):
        slot = 50 * chain.width + a * chain.width + a  # forbids equal neighbours
        scores[slot] = 1e3
        allowed[slot] = 0
    chain.set_mask(0, allowed)
    value, marginals, entropy = chain.log_partition(0, scores)
    masked = scores.copy()
    masked[table][[a * chain.width + a for a in range(3)]] = -1e4  # finite, but exp underflows to 0
    sums, expected = reference(chain, masked, 1.0)
    assert value == pytest.approx(sums.value, abs=1e-9)
    np.testing.assert_allclose(marginals, expected, atol=1e-10)
    assert entropy == pytest.approx(sums.entropy, abs=1e-9)


def test_a_dead_end_with_the_best_scores():
    """The label with the highest score has no allowed successor."""
    chain = one_chain(3, 3)
    scores = np.zeros(chain.num_slots(0))
    scores[1] = 1e3  # label 1 at position 0 ...
    allowed = np.ones(chain.num_slots(0), dtype=np.uint8)
    start = 3 * chain.width + chain.width
    allowed[start : start + 3] = 0  # ... has no successor
    chain.set_mask(0, allowed)
    left = enumeration_of(chain, 0)
    value, marginals, entropy = chain.log_partition(0, scores)
    expected = left.smax(scores, 1.0)
    assert value == pytest.approx(expected[0], abs=1e-10)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-10)
    assert entropy == pytest.approx(expected[2], abs=1e-10)
    assert chain.maximize(0, scores)[0] == left.maximum(scores)[0]
