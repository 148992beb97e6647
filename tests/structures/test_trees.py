"""Dependency trees: all trees of up to six words, counts, masks, ties, and relations between the two kinds of trees."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.enumerate import enumeration_of
from oracles.trees import all_heads
from partwise.structures import ProjectiveTree, SpanningTree

KINDS = (ProjectiveTree, SpanningTree)
both_kinds = pytest.mark.parametrize("kind", KINDS)
both_rules = pytest.mark.parametrize("single_root", [True, False])


def one(kind, n, single_root=True):
    return kind(np.array([n], dtype=np.int64), single_root=single_root)


def heads_of(structure, slots, counts):
    return structure.decode(np.array([0, len(slots)]), slots, counts).tolist()


@both_kinds
@both_rules
def test_six_words(kind, single_root, rng):
    trees = one(kind, 6, single_root)
    everything = enumeration_of(trees, 0)
    scores, direction = 2 * rng.normal(size=42), rng.normal(size=42)
    value, slots, counts = trees.maximize(0, scores)
    best, first = everything.maximum(scores)
    assert value == pytest.approx(best, abs=1e-12)
    assert heads_of(trees, slots, counts) == everything.labellings[first].tolist()
    for temperature in (0.2, 1.0):
        p = everything.probabilities(scores, temperature)
        expected = everything.smax(scores, temperature)
        value, marginals, entropy = trees.log_partition(0, scores, temperature)
        assert value == pytest.approx(expected[0], abs=1e-11)
        assert entropy == pytest.approx(expected[2], abs=1e-11)
        np.testing.assert_allclose(marginals, expected[1], atol=1e-12)
        product = trees.covariance_product(0, scores, temperature, direction)
        mean = p @ everything.counts
        centred = everything.counts - mean
        np.testing.assert_allclose(product, (centred * p[:, None]).T @ (centred @ direction), atol=1e-11)
    found = trees.k_best(0, scores, 300)
    wanted = everything.k_best(scores, 300)
    np.testing.assert_allclose([v for v, _, _ in found], everything.values(scores)[wanted], atol=1e-12)
    assert [heads_of(trees, s, c) for _, s, c in found] == everything.labellings[wanted].tolist()


@pytest.mark.parametrize("n", range(1, 9))
def test_numbers_of_spanning_trees(n):
    zeros = np.zeros(n * (n + 1))
    several, _, _ = one(SpanningTree, n, single_root=False).log_partition(0, zeros)
    single, _, entropy = one(SpanningTree, n).log_partition(0, zeros)
    assert several == pytest.approx((n - 1) * log(n + 1), abs=1e-11)  # Cayley's formula
    assert single == pytest.approx((n - 1) * log(n), abs=1e-11)
    assert entropy == pytest.approx(single, abs=1e-11)


@both_rules
def test_numbers_of_projective_trees(single_root):
    counts = [len(all_heads(n, True, single_root)) for n in range(1, 7)]
    # With several roots there are C(3n, n) / (2n + 1) trees.
    assert counts == ([1, 2, 7, 30, 143, 728] if single_root else [1, 3, 12, 55, 273, 1428])
    for n, count in enumerate(counts, start=1):
        trees = one(ProjectiveTree, n, single_root)
        value, _, entropy = trees.log_partition(0, np.zeros(n * (n + 1)))
        assert value == pytest.approx(log(count), abs=1e-11)
        assert entropy == pytest.approx(log(count), abs=1e-11)
        assert len(trees.k_best(0, np.zeros(n * (n + 1)), count + 1)) == count


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.booleans(), st.sampled_from([0.1, 1.0]))
def test_projective_trees_are_a_subset_of_all_trees(seed, n, single_root, temperature):
    scores = np.random.default_rng(seed).normal(size=n * (n + 1))
    projective, spanning = (one(kind, n, single_root) for kind in KINDS)
    less, more = (trees.log_partition(0, scores, temperature)[0] for trees in (projective, spanning))
    assert less <= more + 1e-10
    assert projective.maximize(0, scores)[0] <= spanning.maximize(0, scores)[0] + 1e-12
    if n <= 2:  # two arcs cannot cross
        assert less == pytest.approx(more, abs=1e-11)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.sampled_from(KINDS))
def test_one_root_is_the_limit_of_costly_roots(seed, n, kind):
    """If all arcs from the root cost the same large constant, only trees with one such arc remain."""
    scores = np.random.default_rng(seed).normal(size=n * (n + 1))
    dear = scores.copy()
    dear[:: n + 1] -= 60.0
    value, marginals, entropy = one(kind, n).log_partition(0, scores)
    limit = one(kind, n, single_root=False).log_partition(0, dear)
    assert value == pytest.approx(limit[0] + 60.0, abs=1e-9)
    np.testing.assert_allclose(marginals, limit[1], atol=1e-9)
    assert entropy == pytest.approx(limit[2], abs=1e-9)
    assert marginals[:: n + 1].sum() == pytest.approx(1.0, abs=1e-12)
    best = [one(kind, n, rule).maximize(0, x)[1].tolist() for rule, x in ((True, scores), (False, dear))]
    assert best[0] == best[1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans(), st.sampled_from(KINDS))
def test_few_arcs_left(seed, n, single_root, kind):
    """Masks that leave most words one or two heads, and some words only the root."""
    rng = np.random.default_rng(seed)
    trees = one(kind, n, single_root)
    kept = enumeration_of(trees, 0).counts[rng.integers(len(enumeration_of(trees, 0)))] > 0
    trees.set_mask(0, ((rng.random(len(kept)) < 0.25) | kept).astype(np.uint8))
    everything = enumeration_of(trees, 0)
    scores, direction = rng.normal(size=(2, len(kept)))
    value, marginals, entropy = trees.log_partition(0, scores)
    expected = everything.smax(scores, 1.0)
    assert value == pytest.approx(expected[0], abs=1e-11)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-12)
    assert not marginals[~everything.used].any()
    assert entropy == pytest.approx(expected[2], abs=1e-11)
    covariance = everything.covariance(everything.probabilities(scores))
    np.testing.assert_allclose(trees.covariance_product(0, scores, 1.0, direction), covariance @ direction, atol=1e-11)
    drawn = {everything.index_of(*tree) for tree in trees.sample(0, scores, 50.0, 30, seed)}
    assert -1 not in drawn
    assert len(trees.k_best(0, scores, 10_000)) == len(everything)


@both_kinds
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_covariance_by_differences(kind, temperature, rng):
    n, step = 12, 1e-5
    trees, scores, direction = one(kind, n), rng.normal(size=n * (n + 1)), rng.normal(size=n * (n + 1))
    up, down = (trees.log_partition(0, scores + s * direction, temperature)[1] for s in (step, -step))
    product = trees.covariance_product(0, scores, temperature, direction)
    np.testing.assert_allclose(temperature * (up - down) / (2 * step), product, atol=1e-7)


@both_kinds
def test_a_required_arc(kind, rng):
    n = 8
    trees, scores = one(kind, n), rng.normal(size=n * (n + 1))
    mask = np.ones(n * (n + 1), dtype=np.uint8)
    mask[4 * (n + 1) : 5 * (n + 1)] = 0
    mask[4 * (n + 1) + 7] = 1  # word 5 below word 7
    trees.set_mask(0, mask)
    assert heads_of(trees, *trees.maximize(0, scores)[1:])[4] == 7
    assert trees.log_partition(0, scores)[1][4 * (n + 1) + 7] == pytest.approx(1.0, abs=1e-13)
    assert all(heads_of(trees, *tree)[4] == 7 for tree in trees.sample(0, scores, 1.0, 20, seed=1))
    assert all(heads_of(trees, s, c)[4] == 7 for _, s, c in trees.k_best(0, scores, 20))


@both_kinds
def test_ties_go_to_the_lowest_heads(kind):
    zeros = np.zeros(42)
    assert heads_of(one(kind, 6), *one(kind, 6).maximize(0, zeros)[1:]) == [0, 1, 1, 1, 1, 1]
    assert heads_of(one(kind, 6), *one(kind, 6, False).maximize(0, zeros)[1:]) == [0] * 6


def test_crossing_arcs_win_only_if_allowed():
    scores = np.zeros(20)
    crossing = [2, 0, 4, 2]  # word 4 below 2 and 3 below 4. Word 1 below 3 would cross nothing, so its head is 2.
    crossing[2] = 1
    for m, h in enumerate(crossing):
        scores[m * 5 + h] = 1.0
    assert heads_of(one(SpanningTree, 4), *one(SpanningTree, 4).maximize(0, scores)[1:]) == crossing
    assert one(SpanningTree, 4).maximize(0, scores)[0] == 4.0
    assert one(ProjectiveTree, 4).maximize(0, scores)[0] == 3.0


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans(), st.sampled_from(KINDS))
def test_equal_trees(seed, n, single_root, kind):
    """Integer scores tie often: among equal trees the one with the smallest sum of heads is returned."""
    scores = np.random.default_rng(seed).integers(0, 3, n * (n + 1)).astype(float)
    trees = one(kind, n, single_root)
    value, slots, counts = trees.maximize(0, scores)
    everything = enumeration_of(trees, 0)
    best = everything.labellings[everything.values(scores) == value]
    assert len(best)
    assert value == everything.maximum(scores)[0]
    assert sum(heads_of(trees, slots, counts)) == best.sum(axis=1).min()
