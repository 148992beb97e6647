"""SecondOrderChain equals Chain and the chart program, at extreme scores too (see also test_against_enumeration.py)."""

from __future__ import annotations

import numpy as np
import pytest

import oracles.segments  # noqa: F401 - registers the enumeration
from oracles.enumerate import enumeration_of
from partwise._core import Chain, SecondOrderChain

SHAPES = [(1, 2), (2, 3), (3, 2), (12, 7), (20, 22), (6, 50)]


def both(length, n_labels):
    return Chain(np.array([length]), n_labels), SecondOrderChain(np.array([length]), n_labels)


def widened(chain, second, scores):
    """Return second-order scores for first-order scores: those of triples are 0."""
    return np.concatenate([scores, np.zeros(second.num_slots(0) - chain.num_slots(0))])


@pytest.mark.parametrize("scale", [1.0, 400.0])  # scaled probabilities at 1.0, logarithms at 400.0
@pytest.mark.parametrize(("length", "n_labels"), SHAPES)
def test_first_order_weights_give_a_chain(length, n_labels, scale, rng):
    chain, second = both(length, n_labels)
    scores, direction = (scale * rng.normal(size=chain.num_slots(0)) for _ in range(2))
    wide, n = widened(chain, second, scores), chain.num_slots(0)
    one, two = chain.log_partition(0, scores, 1.2), second.log_partition(0, wide, 1.2)
    tolerance = 1e-10 * scale
    assert two[0] == pytest.approx(one[0], abs=tolerance)
    np.testing.assert_allclose(two[1][:n], one[1], atol=tolerance)
    assert two[2] == pytest.approx(one[2], abs=tolerance)
    assert second.maximize(0, wide)[0] == pytest.approx(chain.maximize(0, scores)[0], abs=tolerance)
    own = chain.covariance_product(0, scores, 1.2, direction)
    product = second.covariance_product(0, wide, 1.2, widened(chain, second, direction))
    np.testing.assert_allclose(product[:n], own, atol=tolerance)
    ranked, other = second.k_best(0, wide, 4), chain.k_best(0, scores, 4)
    np.testing.assert_allclose([v for v, _, _ in ranked], [v for v, _, _ in other], atol=tolerance)


@pytest.mark.parametrize(("length", "n_labels"), SHAPES)
def test_fast_kernels_agree_with_the_chart(length, n_labels, rng):
    """An extra label that a mask forbids, with its transitions, makes the chain use the chart, not its fast kernels."""
    fast, slow = (SecondOrderChain(np.array([length]), n) for n in (n_labels, n_labels + 1))
    scores = rng.normal(size=fast.num_slots(0))
    one = fast.log_partition(0, scores, 0.8)
    rows = np.zeros((slow.num_slots(0) // slow.width, slow.width))
    allowed = np.zeros_like(rows, dtype=np.uint8)
    source = scores.reshape(-1, fast.width)[:, :n_labels]
    triples = length + n_labels + 1 + np.add.outer(np.arange(n_labels) * (n_labels + 1), np.arange(n_labels)).ravel()
    kept = np.concatenate([np.arange(length + n_labels), triples])
    rows[kept, :n_labels], allowed[kept, :n_labels] = source, 1
    slow.set_mask(0, allowed.ravel())
    two = slow.log_partition(0, rows.ravel(), 0.8)
    assert two[0] == pytest.approx(one[0], rel=1e-13)
    assert two[2] == pytest.approx(one[2], abs=1e-10)
    marginals = two[1].reshape(rows.shape)
    np.testing.assert_allclose(marginals[kept, :n_labels], one[1].reshape(-1, fast.width)[:, :n_labels], atol=1e-12)
    assert not marginals[allowed == 0].any()
    assert slow.maximize(0, rows.ravel())[0] == pytest.approx(fast.maximize(0, scores)[0], abs=1e-10)


@pytest.mark.parametrize("temperature", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("scale", [40.0, 1000.0])
def test_large_scores_and_low_temperatures(scale, temperature, rng):
    structure = SecondOrderChain(np.array([5]), 3)
    every = enumeration_of(structure, 0)
    scores = scale * rng.uniform(-1, 1, structure.num_slots(0))
    value, marginals, entropy = structure.log_partition(0, scores, temperature)
    expected = every.smax(scores.astype(np.longdouble), temperature)
    tolerance = max(1e-10, 30 * scale / temperature * 1e-15)
    assert value == pytest.approx(float(expected[0]), rel=1e-13)
    np.testing.assert_allclose(marginals, expected[1].astype(float), atol=tolerance)
    assert entropy == pytest.approx(float(expected[2]), abs=tolerance)


def test_uniform_at_zero_scores_over_a_long_sequence():
    structure = SecondOrderChain(np.array([20_000]), 3)
    value, marginals, entropy = structure.log_partition(0, np.zeros(structure.num_slots(0)))
    assert value == pytest.approx(20_000 * np.log(3), rel=1e-12)
    assert entropy == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(marginals[: 20_000 * 4].reshape(-1, 4)[:, :3], 1 / 3, atol=1e-12)


def test_samples_have_the_probabilities(rng):
    structure = SecondOrderChain(np.array([4]), 2)
    every = enumeration_of(structure, 0)
    scores, n = rng.normal(size=structure.num_slots(0)), 4000
    found = np.zeros(len(every))
    for slots, counts in structure.sample(0, scores, 0.8, n, seed=3):
        found[every.index_of(slots, counts)] += 1
    p = every.probabilities(scores, 0.8)
    assert ((found - n * p) ** 2 / (n * p)).sum() < len(every) + 5 * np.sqrt(2 * len(every))


def test_bad_input():
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        SecondOrderChain(np.array([2, 0]), 2)
    structure = SecondOrderChain(np.array([3]), 2)
    slots, counts = structure.encode(np.array([0, 1, 0]))[1:]
    wrong = counts.copy()
    wrong[-1] = 2
    with pytest.raises(ValueError, match="sequence 0: slot"):
        structure.check_labelling(0, slots, wrong)
    with pytest.raises(ValueError, match="label 2 is not in"):
        structure.encode(np.array([0, 2, 0]))
    allowed = np.ones(structure.num_slots(0), dtype=np.uint8)
    allowed[structure.width * 3 : structure.width * 5] = 0  # forbids all pairs
    with pytest.raises(ValueError, match="the mask of sequence 0 allows no labelling"):
        structure.set_mask(0, allowed)
