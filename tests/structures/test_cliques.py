"""The clique view of structures: marginals of cliques, their entropy, and the scores that give the marginals back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.enumerate import entropy
from oracles.strategies import WITH_CLIQUES, scored_structures

TEMPERATURES = st.sampled_from([0.3, 1.0, 4.0])
TOLERANCE = 1e-10


def mixture(case, other_scores, share):
    """Clique marginals of a mixture of two Gibbs distributions, which for tied slots is not a Gibbs distribution."""
    p = case.all.probabilities(case.scores / 10)
    q = case.all.probabilities(other_scores)
    return case.all.clique_marginals(share * p + (1 - share) * q)


def markov(case, marginals):
    """The distribution of largest entropy with these marginals: the product of edges over that of inner nodes."""
    offsets, width = case.all.clique_offsets, case.structure.width
    log_p = np.zeros(len(case.all))
    with np.errstate(divide="ignore"):
        logs = np.log(marginals)
        for c in range(case.all.cliques.shape[1]):
            log_p += logs[case.all.cliques[:, c]]
            if c > 0:
                block = marginals[offsets[c] : offsets[c + 1]].reshape(-1, width)
                log_p -= np.log(block.sum(axis=1))[case.all.labellings[:, c]]
    return np.exp(log_p)


@given(scored_structures(WITH_CLIQUES), TEMPERATURES)
def test_marginals_and_slots(case, temperature):
    np.testing.assert_array_equal(case.structure.clique_offsets(case.i), case.all.clique_offsets)
    p = case.all.probabilities(case.scores, temperature)
    marginals = case.structure.clique_marginals(case.i, case.scores, temperature)
    np.testing.assert_allclose(marginals, case.all.clique_marginals(p), atol=TOLERANCE)
    slots = case.structure.slots_from_cliques(case.i, marginals)
    np.testing.assert_allclose(slots, case.all.expected(p), atol=TOLERANCE)


@given(scored_structures(WITH_CLIQUES), st.sampled_from([0.0, 0.3, 1.0]))
def test_slots_are_linear_in_the_marginals(case, share):
    other = case.direction()
    p, q = case.all.probabilities(case.scores / 10), case.all.probabilities(other)
    slots = case.structure.slots_from_cliques(case.i, mixture(case, other, share))
    np.testing.assert_allclose(slots, share * case.all.expected(p) + (1 - share) * case.all.expected(q), atol=TOLERANCE)


@given(scored_structures(WITH_CLIQUES), TEMPERATURES)
def test_entropy_of_gibbs(case, temperature):
    p = case.all.probabilities(case.scores, temperature)
    value, gradient = case.structure.entropy_of_cliques(case.i, case.all.clique_marginals(p))
    assert value == pytest.approx(entropy(p), abs=TOLERANCE)
    assert np.isfinite(gradient).all()


@given(scored_structures(WITH_CLIQUES), st.sampled_from([0.2, 0.5, 0.8]))
def test_entropy_of_a_mixture_and_its_gradient(case, share):
    other = case.direction()
    middle = mixture(case, other, share)
    value, gradient = case.structure.entropy_of_cliques(case.i, middle)
    p = markov(case, middle)
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert value == pytest.approx(entropy(p), abs=TOLERANCE)
    # Along a direction that keeps the marginals consistent, the derivative is unique.
    direction = mixture(case, other, 1.0) - mixture(case, other, 0.0)
    step = 1e-4
    up, down = (case.structure.entropy_of_cliques(case.i, mixture(case, other, share + s))[0] for s in (step, -step))
    # Central differences of H along the segment; the third derivative is at most about |direction| / share^2.
    assert float(gradient @ direction) == pytest.approx((up - down) / (2 * step), abs=1e-5, rel=1e-5)


@given(scored_structures(WITH_CLIQUES), st.sampled_from([0.2, 1.0]))
def test_scores_reproduce_the_marginals(case, share):
    wanted = mixture(case, case.direction(), share)
    potentials = case.structure.scores_from_cliques(case.i, wanted)
    assert np.isfinite(potentials).all()
    p = case.all.gibbs_of_cliques(potentials)
    np.testing.assert_allclose(case.all.clique_marginals(p), wanted, atol=TOLERANCE)


@given(scored_structures(WITH_CLIQUES))
def test_a_single_labelling(case):
    """At one labelling (marginals with zeros) entropy is 0, nothing is NaN, and potentials give the marginals back."""
    corner = np.zeros(len(case.all))
    corner[case.rng.integers(len(case.all))] = 1.0
    marginals = case.all.clique_marginals(corner)
    value, gradient = case.structure.entropy_of_cliques(case.i, marginals)
    assert value == pytest.approx(0.0, abs=1e-12)
    assert not np.isnan(gradient).any()
    potentials = case.structure.scores_from_cliques(case.i, marginals)
    assert np.isfinite(potentials).all()
    np.testing.assert_allclose(case.all.gibbs_of_cliques(potentials), corner, atol=1e-9)


def entries_of(case) -> np.ndarray:
    """Return (labellings, cliques): the entries that the structure states for each labelling."""
    found = []
    for counts in case.all.counts:
        slots = np.flatnonzero(counts)
        found.append(case.structure.clique_entries(case.i, slots, counts[slots]))
    return np.array(found)


@given(scored_structures(WITH_CLIQUES))
def test_entries_of_labellings(case):
    np.testing.assert_array_equal(entries_of(case), case.all.cliques)
    wrong = np.full(case.structure.num_slots(case.i), 1.0)
    with pytest.raises(ValueError, match="expected exactly one label"):
        case.structure.clique_entries(case.i, np.arange(len(wrong)), wrong)


@given(scored_structures((*WITH_CLIQUES, "graph")), st.sampled_from([1, 2, 3]))
def test_the_best_labelling_in_the_support(case, kept):
    """The support of a mixture of a few labellings is all labellings that can be put together from their cliques."""
    entries = entries_of(case)
    some = case.rng.choice(len(case.all), min(kept, len(case.all)), replace=False)
    marginals = np.zeros(int(case.structure.clique_offsets(case.i)[-1]))
    for y, mass in zip(some, case.rng.dirichlet(np.ones(len(some))), strict=True):
        marginals[entries[y]] += mass
    inside = (marginals[entries] > 0).all(axis=1)
    values = np.where(inside, case.all.values(case.scores), -np.inf)
    value, slots, counts = case.structure.maximize_in_support(case.i, case.scores, marginals)
    assert value == pytest.approx(values.max(), rel=1e-12, abs=1e-9)
    assert inside[case.all.index_of(slots, counts)]
    least = 2.0
    if len(entries[0]):  # a graph with one labelling has no cliques
        with pytest.raises(ValueError, match="give no labelling a chance"):
            case.structure.maximize_in_support(case.i, case.scores, marginals, least)


@given(scored_structures(WITH_CLIQUES), st.sampled_from([0.2, 1.0]))
def test_slot_scores_reproduce_the_marginals_where_slots_are_not_tied(case, share):
    wanted = mixture(case, case.direction(), share)
    scores = case.structure.slot_scores_from_cliques(case.i, wanted)
    tied = getattr(case.structure, "tied", False) and case.structure.lengths[case.i] > 2
    assert (scores is None) == tied
    if scores is not None:
        p = case.all.probabilities(scores)
        np.testing.assert_allclose(case.all.clique_marginals(p), wanted, atol=TOLERANCE)
