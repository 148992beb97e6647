"""Rows of labels of every width with a kernel compiled for it, of neighbouring widths, and of the generic kernel."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.chain_reference import chain_best, chain_covariance, chain_sums, join_slots, split_slots
from oracles.enumerate import enumeration_of
from partwise import _core

LABELS = [1, 2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 24, 25, 32, 33, 48, 49, 60, 130]


@pytest.mark.parametrize("n_labels", LABELS)
def test_width(n_labels):
    width = _core.padded_width(n_labels)
    assert width >= n_labels
    assert width % 4 == 0
    assert _core.Multiclass(1, n_labels).width == width
    assert _core.Chain(np.ones(1, dtype=np.int64), n_labels).width == width


@pytest.mark.parametrize("scale", [1.0, 400.0])  # at 1.0 sums use scaled probabilities, at 400.0 logarithms
@pytest.mark.parametrize(("tied", "ends"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("n_labels", LABELS)
def test_chain(n_labels, tied, ends, scale, rng):
    length = 4
    chain = _core.Chain(np.array([length], dtype=np.int64), n_labels, tied=tied, ends=ends)
    scores = scale * rng.normal(size=chain.num_slots(0))
    nodes, edges = split_slots(scores, length, n_labels, chain.width, tied, ends)
    sums = chain_sums(nodes, edges)
    value, marginals, entropy = chain.log_partition(0, scores)
    tolerance = 1e-12 * max(1.0, scale)
    assert value == pytest.approx(sums.value, abs=tolerance)
    np.testing.assert_allclose(marginals, join_slots(sums, n_labels, chain.width, tied, ends), atol=tolerance)
    assert entropy == pytest.approx(sums.entropy, abs=tolerance)
    cliques = chain.clique_marginals(0, scores, 1.0).reshape(length - 1, n_labels, chain.width)
    np.testing.assert_allclose(cliques[:, :, :n_labels], sums.edges.astype(float), atol=tolerance)
    assert not cliques[:, :, n_labels:].any()
    best, labels = chain_best(nodes, edges)
    value, slots, counts = chain.maximize(0, scores)
    assert value == pytest.approx(best, rel=1e-13)
    np.testing.assert_array_equal(chain.decode(np.array([0, len(slots)]), slots, counts), labels)
    first = chain.k_best(0, scores, 3)
    assert first[0][0] == pytest.approx(best, rel=1e-13)
    assert len(first) == (1 if n_labels == 1 else 3)


@pytest.mark.parametrize("scale", [1.0, 400.0])
@pytest.mark.parametrize(("tied", "ends"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("n_labels", LABELS)
def test_covariance(n_labels, tied, ends, scale, rng):
    length = 4
    chain = _core.Chain(np.array([length], dtype=np.int64), n_labels, tied=tied, ends=ends)
    scores, direction = rng.normal(size=(2, chain.num_slots(0)))
    scores *= scale
    product = chain.covariance_product(0, scores, 1.0, direction)
    parts = [split_slots(x, length, n_labels, chain.width, tied, ends) for x in (scores, direction)]
    expected = join_slots(chain_covariance(*parts[0], *parts[1]), n_labels, chain.width, tied, ends)
    np.testing.assert_allclose(product, expected, atol=1e-12 * max(1.0, scale))


@pytest.mark.parametrize("n_labels", LABELS)
def test_multiclass(n_labels, rng):
    multi = _core.Multiclass(3, n_labels)
    labellings = enumeration_of(multi, 2)
    scores = 3 * rng.normal(size=multi.num_slots(2))
    value, marginals, entropy = multi.log_partition(2, scores, 0.7)
    expected = labellings.smax(scores, 0.7)
    assert value == pytest.approx(expected[0], abs=1e-12)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-13)
    assert entropy == pytest.approx(expected[2], abs=1e-12)
    assert multi.maximize(2, scores)[0] == labellings.maximum(scores)[0]
