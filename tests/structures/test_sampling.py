"""Samples have the right distribution: a chi-square test of frequencies, with a fixed seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from oracles.enumerate import enumeration_of
from partwise import _core

DRAWS = 20_000


def structure_of(kind):
    if kind == "multiclass":
        return _core.Multiclass(1, 6)
    if "tree" in kind:
        trees = (_core.SpanningTree if "spanning" in kind else _core.ProjectiveTree)(
            np.array([4], dtype=np.int64), single_root="roots" not in kind
        )
        if "masked" in kind:
            mask = np.ones(trees.num_slots(0), dtype=np.uint8)
            mask[[1, 3, 4, 10, 15]] = 0  # word 1 may have the heads 0 and 2
            trees.set_mask(0, mask)
        return trees
    chain = _core.Chain(np.array([3], dtype=np.int64), 3, tied="untied" not in kind, ends="ends" in kind)
    if "masked" in kind:
        mask = np.ones(chain.num_slots(0), dtype=np.uint8)
        mask[[1, chain.width, 3 * chain.width + 2]] = 0
        chain.set_mask(0, mask)
    return chain


TREES = [f"{kind}-tree{more}" for kind in ("projective", "spanning") for more in ("", "-roots", "-masked")]


@pytest.mark.parametrize("kind", ["multiclass", "chain", "chain-ends", "chain-untied", "chain-masked", *TREES])
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_frequencies(kind, temperature, rng):
    structure = structure_of(kind)
    example = enumeration_of(structure, 0)
    scores = rng.normal(size=structure.num_slots(0))
    index = {tuple(np.flatnonzero(c)) + tuple(c[c > 0]): y for y, c in enumerate(example.counts)}
    observed = np.zeros(len(example))
    for slots, counts in structure.sample(0, scores, temperature, DRAWS, seed=11):
        order = np.argsort(slots)
        observed[index[tuple(slots[order]) + tuple(counts[order])]] += 1
    expected = DRAWS * example.probabilities(scores, temperature)
    rare = expected < 8  # the test needs several draws per cell, so rare labellings share a cell
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert observed.sum() == DRAWS
    assert chisquare(observed, expected * (DRAWS / expected.sum())).pvalue > 1e-3


def test_the_seed_decides(rng):
    structure = structure_of("chain-ends")
    scores = rng.normal(size=structure.num_slots(0))
    first, again, other = (structure.sample(0, scores, 1.0, 50, seed=s) for s in (1, 1, 2))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a[0], b[0]) for a, b in zip(first, other, strict=True))
    assert structure.sample(0, scores, 1.0, 0, seed=1) == []


@pytest.mark.parametrize("kind", ["chain", *TREES])
def test_cold_samples_are_the_maximum(kind, rng):
    structure = structure_of(kind)
    scores = rng.normal(size=structure.num_slots(0))
    _, best, _ = structure.maximize(0, scores)
    assert all(set(slots) == set(best) for slots, _ in structure.sample(0, scores, 1e-4, 20, seed=3))
