"""Chart programs agree with enumeration, and the chain's fast kernels agree with its chart program."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from oracles.enumerate import Enumeration
from partwise.structures import Chain, Grammar

# Symbol 0 is the start. Symbol 3 has no rule, and symbol 1 has a rule with itself on the right twice.
RULES = np.array([(0, 0, 1), (0, 1, 2), (0, 3, 0), (1, 1, 1), (2, 0, 3), (2, 2, 1)])


def trees(symbol, s, t, n_symbols):
    """Yield the slots of every derivation of a symbol over the words [s, t)."""
    if t == s + 1:
        yield [len(RULES) + s * n_symbols + symbol]
        return
    for r, (parent, left, right) in enumerate(RULES.tolist()):
        if parent != symbol:
            continue
        for q in range(s + 1, t):
            for one, two in itertools.product(trees(left, s, q, n_symbols), trees(right, q, t, n_symbols)):
                yield [r, *one, *two]


@dataclass
class Toy:
    structure: Any
    every: list[list[int]]

    def enumeration(self, allowed=None):
        counts = np.zeros((len(self.every), self.structure.num_slots(0)))
        for row, slots in zip(counts, self.every, strict=True):
            np.add.at(row, slots, 1.0)
        if allowed is not None:
            counts = counts[(counts[:, ~allowed] == 0).all(axis=1)]
        none = np.zeros((len(counts), 0), dtype=np.int64)
        return Enumeration(none, counts, none, np.zeros(1, dtype=np.int64))


def grammar(n):
    structure = Grammar(np.array([n]), 4, RULES, np.zeros(1, dtype=np.int64), np.arange(4))
    return Toy(structure, list(trees(0, 0, n, 4)))


TOYS = {
    "grammar of 1 word": lambda: grammar(1),
    "grammar of 2 words": lambda: grammar(2),
    "grammar of 5 words": lambda: grammar(5),
}


@pytest.fixture(params=TOYS, ids=str)
def toy(request):
    return TOYS[request.param]()


@pytest.mark.parametrize("size", [1.0, 300.0])
def test_sums_are_those_of_enumeration(toy, size, rng):
    every = toy.enumeration()
    for temperature in (1.0, 0.3):
        scores = size * rng.normal(size=toy.structure.num_slots(0))
        value, marginals, entropy = toy.structure.log_partition(0, scores, temperature)
        expected = every.smax(scores, temperature)
        assert value == pytest.approx(expected[0], abs=1e-10, rel=1e-13)
        np.testing.assert_allclose(marginals, expected[1], atol=1e-10)
        assert entropy == pytest.approx(expected[2], abs=1e-9)
        direction = rng.normal(size=len(scores))
        product = toy.structure.covariance_product(0, scores, temperature, direction)
        p = every.probabilities(scores, temperature)
        centred = every.counts - p @ every.counts
        np.testing.assert_allclose(product, centred.T @ (p * (centred @ direction)), atol=1e-9)


def test_the_best_and_the_k_best(toy, rng):
    every = toy.enumeration()
    scores = rng.normal(size=toy.structure.num_slots(0))
    values = np.sort(every.values(scores))[::-1]
    value, slots, counts = toy.structure.maximize(0, scores)
    assert value == pytest.approx(values[0], abs=1e-12)
    assert every.index_of(slots, counts) == every.maximum(scores)[1]
    assert toy.structure.log_partition(0, scores, 0.0)[0] == value
    ranked = toy.structure.k_best(0, scores, len(values) + 3)
    # Trees that use the same rules equally often have the same counts: counts are found as often as there are trees.
    found = Counter(every.index_of(slots, counts) for _, slots, counts in ranked)
    rows = Counter(map(bytes, every.counts))
    assert {bytes(every.counts[row]): n for row, n in found.items()} == rows
    np.testing.assert_allclose([value for value, _, _ in ranked], values, atol=1e-12)


def test_samples_have_the_marginals(toy, rng):
    scores = rng.normal(size=toy.structure.num_slots(0))
    marginals = toy.structure.log_partition(0, scores, 1.0)[1]
    n = 4000
    counts = np.zeros(len(marginals))
    for slots, used in toy.structure.sample(0, scores, 1.0, n, seed=5):
        counts[slots] += used
    np.testing.assert_allclose(counts / n, marginals, atol=5 * 2.5 / np.sqrt(n))


def test_masks(toy, rng):
    """No labelling uses forbidden slots; a mask that allows no labelling is refused."""
    allowed = np.ones(toy.structure.num_slots(0), dtype=bool)
    allowed[toy.every[-1][0]] = False
    every = toy.enumeration(allowed)
    if not len(every):
        with pytest.raises(ValueError, match=r"the mask of (example|sentence) 0 allows no (labelling|derivation)"):
            toy.structure.set_mask(0, allowed.astype(np.uint8))
        return
    toy.structure.set_mask(0, allowed.astype(np.uint8))
    scores = rng.normal(size=len(allowed))
    value, marginals, _ = toy.structure.log_partition(0, scores, 1.0)
    expected = every.smax(scores, 1.0)
    assert value == pytest.approx(expected[0], abs=1e-11)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-11)
    assert len(toy.structure.k_best(0, scores, len(every) + 1)) == len(every)


@pytest.mark.parametrize(("tied", "ends"), [(True, False), (True, True), (False, False), (False, True)])
@pytest.mark.parametrize(("n_labels", "length"), [(2, 1), (3, 2), (7, 12), (22, 30), (50, 6)])
def test_fast_chain_kernels_agree_with_the_chart(n_labels, length, tied, ends, rng):
    """Two chains have the same labellings, but one has an extra label that a mask forbids. Masked transitions make that
    chain use the chart instead of its fast kernels."""
    fast = Chain(np.array([length]), n_labels, tied=tied, ends=ends)
    slow = Chain(np.array([length]), n_labels + 1, tied=tied, ends=ends)
    blocks = 1 if tied else length - 1
    rows = length + blocks * n_labels + 2 * ends
    more_rows = length + blocks * (n_labels + 1) + 2 * ends
    kept = np.ones(more_rows, dtype=bool)  # rows of the larger table that the smaller one has too
    kept[length : length + blocks * (n_labels + 1)][n_labels :: n_labels + 1] = False

    def widened(slots, rest):
        out = np.full((more_rows, slow.width), rest, dtype=slots.dtype)
        out[np.ix_(kept, np.arange(n_labels))] = slots.reshape(rows, fast.width)[:, :n_labels]
        return out.ravel()

    slow.set_mask(0, widened(np.ones(rows * fast.width, dtype=np.uint8), 0))
    scores, direction = (rng.normal(size=rows * fast.width) for _ in range(2))
    wide_scores, wide_direction = (widened(x, 0.7) for x in (scores, direction))
    one = fast.log_partition(0, scores, 0.8)
    two = slow.log_partition(0, wide_scores, 0.8)
    assert one[0] == pytest.approx(two[0], rel=1e-13)
    assert one[2] == pytest.approx(two[2], abs=1e-11)
    used = widened(np.ones(rows * fast.width, dtype=np.uint8), 0) > 0
    np.testing.assert_allclose(two[1], widened(one[1], 0.0), atol=1e-12)
    assert not two[1][~used].any()
    products = [s.covariance_product(0, x, 0.8, d) for s, x, d in
                ((fast, scores, direction), (slow, wide_scores, wide_direction))]  # fmt: skip
    np.testing.assert_allclose(products[1], widened(products[0], 0.0), atol=1e-11)
    value, slots, counts = fast.maximize(0, scores)
    ((best, best_slots, best_counts),) = fast.k_best(0, scores, 1)  # k_best uses the chart
    assert (value, slots.tolist(), counts.tolist()) == (best, best_slots.tolist(), best_counts.tolist())
