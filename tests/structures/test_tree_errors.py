"""Invalid trees, masks and arguments raise a ValueError that names the sentence."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import Problem
from partwise._core import DenseSegment
from partwise.features import LinearMap
from partwise.structures import ProjectiveTree, SpanningTree

KINDS = (ProjectiveTree, SpanningTree)
both_kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(params=KINDS)
def trees(request):
    """Make structures of two sentences, with two and four words."""
    return request.param(np.array([2, 4], dtype=np.int64))


GOOD = [0, 1]
WRONG = {
    "a cycle": ([2, 3, 1, 0], "sentence 1 has a cycle through word 1"),
    "a word under itself": ([0, 2, 1, 1], "sentence 1 has a cycle through word 2"),
    "no root at all": ([2, 1, 4, 3], "sentence 1 has a cycle"),
    "a head after the end": ([0, 1, 5, 1], r"sentence 1 has the head 5 for word 3, which is not in \[0, 4\]"),
    "a negative head": ([0, 1, -1, 1], "sentence 1 has the head -1 for word 3"),
    "two roots": ([0, 1, 0, 3], "sentence 1 has 2 words with the head 0, and the single-root rule allows one"),
}


@pytest.mark.parametrize("what", WRONG)
def test_gold_heads_that_form_no_tree_are_refused(trees, what):
    heads, message = WRONG[what]
    with pytest.raises(ValueError, match=message):
        trees.encode(np.array(GOOD + heads))
    with pytest.raises(ValueError, match=message):
        trees.check_heads(1, np.array(heads))


def test_gold_labellings_given_by_slots_are_checked(trees):
    """A problem checks gold labellings that were given as slots, not made by `encode`."""
    slots = np.array([0, 4, 2, 8, 11, 15])  # the second sentence has a cycle of the words 1, 2 and 3
    features = LinearMap([DenseSegment(np.zeros((2, 1)), np.array([0, 1, 2]), 4, 4)])
    with pytest.raises(ValueError):
        Problem(features, trees, (np.array([0, 2, 6]), slots, np.ones(6)), "log", 1.0)
    with pytest.raises(ValueError, match="sentence 1 has a cycle"):
        trees.check_labelling(1, slots[2:], np.ones(4))


def test_several_roots_are_accepted_if_allowed():
    heads = np.array([0, 0, 2])
    for kind in KINDS:
        trees = kind(np.array([3], dtype=np.int64), single_root=False)
        np.testing.assert_array_equal(trees.decode(*trees.encode(heads)), heads)


@pytest.mark.parametrize("heads", [[3, 0, 2, 1], [2, 0, 1, 2], [0, 4, 1, 1], [3, 4, 0, 3]])
def test_crossing_arcs(heads):
    lengths = np.array([1, 4], dtype=np.int64)
    gold = np.array([0, *heads])
    np.testing.assert_array_equal(SpanningTree(lengths).decode(*SpanningTree(lengths).encode(gold)), gold)
    with pytest.raises(ValueError, match=r"sentence 1 is not projective: the arc between \d and \d crosses"):
        ProjectiveTree(lengths).encode(gold)


def test_an_arc_over_the_root_word():
    """The arc from the root to word 2 crosses the arc between words 1 and 3; the arcs between words do not cross."""
    with pytest.raises(ValueError, match="not projective"):
        ProjectiveTree(np.array([3], dtype=np.int64)).encode(np.array([3, 0, 2]))


@both_kinds
def test_lengths(kind):
    with pytest.raises(ValueError, match="sentence 1 is empty"):
        kind(np.array([2, 0], dtype=np.int64))
    with pytest.raises(ValueError, match="sentence 0 has a negative length"):
        kind(np.array([-3], dtype=np.int64))
    with pytest.raises((ValueError, TypeError)):
        kind(np.array([2.5]))
    with pytest.raises(ValueError, match="max_length"):
        kind(np.array([2], dtype=np.int64), max_length=0)
    assert kind(np.array([], dtype=np.int64)).num_examples == 0
    with pytest.raises(ValueError, match="heads has 3 values, 2 are needed"):
        kind(np.array([2], dtype=np.int64)).encode(np.array([0, 1, 1]))


def test_invalid_labellings_are_refused(trees):
    with pytest.raises(ValueError, match="sentence 0 has no head for word 2"):
        trees.check_labelling(0, np.array([0]), np.ones(1))
    with pytest.raises(ValueError, match="sentence 0 does not have one head for word 1"):
        trees.check_labelling(0, np.array([0, 2]), np.ones(2))
    with pytest.raises(ValueError, match="one head"):
        trees.check_labelling(0, np.array([0, 4]), np.array([1.0, 0.5]))
    for slot in (-1, 6, 10**12):
        with pytest.raises(ValueError, match=f"sentence 0 has no slot {slot}"):
            trees.check_labelling(0, np.array([0, slot]), np.ones(2))
    indptr, slots, counts = trees.encode(np.array([0, 1, 0, 1, 1, 1]))
    with pytest.raises(ValueError):
        trees.decode(indptr[:-1], slots, counts)
    with pytest.raises(ValueError):
        trees.decode(indptr, slots[:-1], counts[:-1])
    with pytest.raises(ValueError, match="one head"):
        trees.decode(indptr, np.zeros_like(slots), counts)


def test_scores_and_arguments(trees):
    good = np.zeros(20)
    for call in (
        trees.maximize,
        trees.log_partition,
        lambda i, s: trees.k_best(i, s, 2),
        lambda i, s: trees.sample(i, s, 1.0, 1, 0),
        lambda i, s: trees.covariance_product(i, s, 1.0, good),
    ):
        with pytest.raises(ValueError, match="scores has"):
            call(1, np.zeros(19))
        with pytest.raises(ValueError, match="no example 2"):
            call(2, good)
        for bad in (np.nan, np.inf, -np.inf):
            with pytest.raises(ValueError, match="NaN or infinity"):
                call(1, np.where(np.arange(20) == 3, bad, 0.0))
    with pytest.raises(ValueError, match="k must be"):
        trees.k_best(1, good, 0)
    for temperature in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="temperature"):
            trees.log_partition(1, good, temperature)
    with pytest.raises(ValueError, match="'cliques'"):
        trees.clique_marginals(1, good, 1.0)


def allow(n, *arcs):
    """Make a mask that allows only these arcs (head, modifier)."""
    mask = np.zeros(n * (n + 1), dtype=np.uint8)
    for h, m in arcs:
        mask[(m - 1) * (n + 1) + h] = 1
    return mask


def test_masks_that_allow_no_tree_are_refused(trees):
    for mask in (
        np.zeros(20, dtype=np.uint8),
        allow(4, (1, 1), (2, 2), (3, 3), (4, 4)),  # every word is its own head
        allow(4, (2, 1), (1, 2), (0, 3), (3, 4)),  # a cycle apart from the rest
        allow(4, (0, 1), (1, 2), (2, 3)),  # a word without a head
        allow(4, (0, 1), (0, 2), (1, 3), (2, 4)),  # two roots
    ):
        with pytest.raises(ValueError, match="the mask of sentence 1 allows no tree"):
            trees.set_mask(1, mask)
        assert trees.mask(1) is None
    several = type(trees)(np.array([2, 4], dtype=np.int64), single_root=False)
    several.set_mask(1, allow(4, (0, 1), (0, 2), (2, 3), (2, 4)))
    crossing = allow(4, (0, 2), (2, 4), (1, 3), (2, 1))
    if isinstance(trees, SpanningTree):
        trees.set_mask(1, crossing)
    else:
        with pytest.raises(ValueError, match="allows no tree"):
            trees.set_mask(1, crossing)


def test_gold_that_the_mask_forbids(trees):
    trees.set_mask(1, allow(4, (0, 1), (1, 2), (2, 3), (3, 4), (1, 4)))
    _, slots, counts = trees.encode(np.array([0, 1, 0, 1, 1, 1]))
    with pytest.raises(ValueError, match="sentence 1 has the head 1 for word 3, which its mask forbids"):
        trees.check_labelling(1, slots[2:], counts[2:])


def test_cost_is_the_number_of_wrong_heads(trees):
    _, slots, counts = trees.encode(np.array([0, 1, 0, 1, 1, 1]))
    cost = trees.cost(1, slots[2:], counts[2:])
    assert set(cost) == {0.0, 1.0}
    other = trees.encode(np.array([0, 1, 2, 0, 2, 3]))[1][2:]
    assert cost[other].sum() == 4.0
    assert cost[slots[2:]].sum() == 0.0
    assert not cost[[1, 7, 13, 19]].any()  # a word cannot be its own head


@both_kinds
def test_scores_whose_sums_overflow(kind):
    """Scores with infinite sums give a tree or an error, never heads that form no tree."""
    trees = kind(np.array([2]), single_root=True)
    scores = np.full(6, -1e308)
    if kind is ProjectiveTree:
        with pytest.raises(ValueError, match="beyond double precision"):
            trees.maximize(0, scores)
    else:
        _, slots, counts = trees.maximize(0, scores)
        trees.check_labelling(0, slots, counts)
