"""Graphs agree with enumeration of all labellings, with `Chain` and with direct sums; masks, limits and invalid input.

`test_against_enumeration.py` checks, on random graphs too, what all structures can do.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from oracles.enumerate import entropy, enumeration_of
from oracles.graphs import parts_of, random_graph
from oracles.strategies import scored_structures
from partwise.structures import Chain, graph, padded_width

TEMPERATURES = st.sampled_from([0.3, 1.0, 4.0])
SEEDS = st.integers(0, 2**32 - 1)
TOLERANCE = 1e-10


def grid(rows, columns):
    """Return the edges of a grid whose vertices are numbered row by row."""
    number = np.arange(rows * columns).reshape(rows, columns)
    right = zip(number[:, :-1].ravel().tolist(), number[:, 1:].ravel().tolist(), strict=True)
    down = zip(number[:-1].ravel().tolist(), number[1:].ravel().tolist(), strict=True)
    return [*right, *down]


def only(structure, fixed, i=0):
    """Return the mask that allows these vertices only these labels: {vertex: labels}."""
    n_labels, _, _ = parts_of(structure, i)
    begins = np.concatenate([[0], np.cumsum([padded_width(n) for n in n_labels])])
    mask = np.ones(structure.num_slots(i), dtype=np.uint8)
    for v, labels in fixed.items():
        row = mask[begins[v] : begins[v + 1]]
        row[:] = 0
        row[list(labels)] = 1
    return mask


def corners(structure, i, everything):
    """Return the clique marginals of each single labelling: 1 on the entry of each clique that it uses."""
    rows = np.arange(structure.num_slots(i)) < structure.table_offsets(i)[0]
    found = np.array([structure.clique_marginals(i, 1e3 * counts * rows, 0.1) for counts in everything.counts])
    assert ((found == 0) | (found == 1)).all()
    return found


# The clique view.


@given(scored_structures(("graph",)), TEMPERATURES)
def test_clique_marginals(case, temperature):
    p = case.all.probabilities(case.scores, temperature)
    offsets = case.structure.clique_offsets(case.i)
    single = corners(case.structure, case.i, case.all)
    for a, b in itertools.pairwise(offsets):
        np.testing.assert_array_equal(single[:, a:b].sum(axis=1), 1)  # one entry per clique
    marginals = case.structure.clique_marginals(case.i, case.scores, temperature)
    assert len(marginals) == offsets[-1]
    np.testing.assert_allclose(marginals, p @ single, atol=TOLERANCE)
    slots = case.structure.slots_from_cliques(case.i, marginals)
    np.testing.assert_allclose(slots, case.all.expected(p), atol=TOLERANCE)
    value, gradient = case.structure.entropy_of_cliques(case.i, marginals)
    assert value == pytest.approx(entropy(p), abs=TOLERANCE)
    assert np.isfinite(gradient).all()


@given(scored_structures(("graph",)), st.sampled_from([0.2, 0.5, 0.8]))
def test_mixtures_of_clique_marginals(case, share):
    """A mixture need not be a Gibbs distribution of the slots. Its entropy, gradient and potentials are right."""
    single = corners(case.structure, case.i, case.all)
    p, q = case.all.probabilities(case.scores / 10), case.all.probabilities(case.direction())

    def mixed(t):
        return (t * p + (1 - t) * q) @ single

    slots = case.structure.slots_from_cliques(case.i, mixed(share))
    np.testing.assert_allclose(slots, (share * p + (1 - share) * q) @ case.all.counts, atol=TOLERANCE)
    potentials = case.structure.scores_from_cliques(case.i, mixed(share))
    assert np.isfinite(potentials).all()
    markov = np.exp(single @ potentials)
    # The potentials are conditional probabilities, so their product is normalised
    assert markov.sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(markov @ single, mixed(share), atol=TOLERANCE)
    value, gradient = case.structure.entropy_of_cliques(case.i, mixed(share))
    assert value == pytest.approx(entropy(markov), abs=1e-9)
    step = 1e-4
    up, down = (case.structure.entropy_of_cliques(case.i, mixed(share + s))[0] for s in (step, -step))
    slope = float(gradient @ (mixed(1.0) - mixed(0.0)))
    assert slope == pytest.approx((up - down) / (2 * step), abs=1e-5, rel=1e-5)


@given(scored_structures(("graph",)))
def test_a_single_labelling_as_cliques(case):
    corner = corners(case.structure, case.i, case.all)[case.rng.integers(len(case.all))]
    value, gradient = case.structure.entropy_of_cliques(case.i, corner)
    assert value == pytest.approx(0.0, abs=1e-12)
    assert not np.isnan(gradient).any()
    assert np.isfinite(case.structure.scores_from_cliques(case.i, corner)).all()


# Other structures and direct sums.


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_a_chain_as_a_graph(tied, temperature, rng):
    lengths, n_labels = [1, 2, 7, 30], 5
    chain = Chain(np.array(lengths), n_labels, tied=tied)
    edges = [[(t, t + 1) for t in range(n - 1)] for n in lengths]
    same = graph([([n_labels] * len(e) + [n_labels], e, [0] * len(e) if tied else range(len(e))) for e in edges])
    for i, length in enumerate(lengths):
        scores = rng.normal(size=chain.num_slots(i))
        own = scores[: same.num_slots(i)].copy()  # a tied chain of length 1 has a table that its labellings do not use
        value, marginals, h = chain.log_partition(i, scores, temperature)
        other = same.log_partition(i, own, temperature)
        assert other[0] == pytest.approx(value, abs=1e-11)
        np.testing.assert_allclose(other[1], marginals[: len(own)], atol=1e-11)
        assert other[2] == pytest.approx(h, abs=1e-10)
        assert same.maximize(i, own)[0] == pytest.approx(chain.maximize(i, scores)[0], abs=1e-12)
        np.testing.assert_array_equal(np.sort(same.maximize(i, own)[1]), np.sort(chain.maximize(i, scores)[1]))
        direction = rng.normal(size=len(scores))
        expected = chain.covariance_product(i, scores, temperature, direction)[: len(own)]
        got = same.covariance_product(i, own, temperature, direction[: len(own)].copy())
        np.testing.assert_allclose(got, expected, atol=1e-10)
        for one, two in zip(same.k_best(i, own, 12), chain.k_best(i, scores, 12), strict=True):
            assert one[0] == pytest.approx(two[0], abs=1e-12)
        assert same.width(i) == min(length - 1, 1)


def test_a_tree_against_direct_sums(rng):
    """Sum and maximum over a tree of 200 vertices equal a recursion from the leaves in NumPy."""
    n, n_labels = 200, 4
    parent = [0] + [int(rng.integers(v)) for v in range(1, n)]
    tree = graph([([n_labels] * n, [(v, parent[v]) for v in range(1, n)])])
    scores = 2 * rng.normal(size=tree.num_slots(0))
    rows = scores[: n * n_labels].reshape(n, n_labels)
    tables = scores[n * n_labels :].reshape(n - 1, n_labels, n_labels)
    for combine, got in (
        (np.logaddexp.reduce, tree.log_partition(0, scores)[0]),
        (np.max, tree.maximize(0, scores)[0]),
    ):
        totals = rows.copy()
        for v in range(n - 1, 0, -1):
            totals[parent[v]] += combine(totals[v][:, None] + tables[v - 1], axis=0)
        assert got == pytest.approx(float(combine(totals[0])), abs=1e-9)
    assert tree.width(0) == 1


def test_separate_graphs_add_up(rng):
    """The sums of a graph of two components are the sums of two graphs."""
    one, two = random_graph(rng, 4), random_graph(rng, 4)
    joined = graph([(one[0] + two[0], one[1] + [[v + 4 for v in c] for c in two[1]])])
    apart = graph([one[:2], two[:2]])
    a, b = (rng.normal(size=apart.num_slots(i)) for i in range(2))
    cut = [int(apart.table_offsets(i)[0]) for i in range(2)]
    scores = np.concatenate([a[: cut[0]], b[: cut[1]], a[cut[0] :], b[cut[1] :]])
    parts = [apart.log_partition(i, s) for i, s in enumerate((a, b))]
    value, _, h = joined.log_partition(0, scores)
    assert value == pytest.approx(parts[0][0] + parts[1][0], abs=1e-11)
    assert h == pytest.approx(parts[0][2] + parts[1][2], abs=1e-11)


@pytest.mark.parametrize("shape", [(3, 3), (2, 6), (7, 2)])
def test_counts_of_labellings(shape):
    """At zero scores the sum counts labellings; the numbers of proper colourings of grids are known."""
    edges = grid(*shape)
    n = shape[0] * shape[1]
    coloured = graph([([3] * n, edges, [0] * len(edges))])
    zeros = np.zeros(coloured.num_slots(0))
    assert coloured.log_partition(0, zeros)[0] == pytest.approx(n * np.log(3), abs=1e-10)
    mask = np.ones(len(zeros), dtype=np.uint8)
    begin = coloured.table_offsets(0)[0]
    mask[[begin + a * 4 + a for a in range(3)]] = 0
    coloured.set_mask(0, mask)
    known = {(3, 3): 246, (2, 6): 6 * 3**5, (7, 2): 6 * 3**6}
    assert np.exp(coloured.log_partition(0, zeros)[0]) == pytest.approx(known[shape], rel=1e-10)


def test_ties_go_to_the_lowest_labels(rng):
    for seed in range(20):
        own = graph([random_graph(np.random.default_rng(seed), 7)])
        value, slots, counts = own.maximize(0, np.zeros(own.num_slots(0)))
        assert value == 0
        assert not own.decode_of(0, slots, counts).any()
        every = own.k_best(0, np.zeros(own.num_slots(0)), 1000)
        assert len({tuple(own.decode_of(0, *labelling)) for _, *labelling in every}) == np.prod(own.n_labels)


# Extreme numbers.


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("temperature", [1.0, 1e-2, 1e-4])
def test_large_scores_and_low_temperatures(scale, temperature, rng):
    for seed in range(6):
        own = graph([random_graph(np.random.default_rng(seed), 6)])
        everything = enumeration_of(own, 0)
        scores = rng.uniform(-scale, scale, own.num_slots(0))
        value, marginals, h = own.log_partition(0, scores, temperature)
        expected = everything.smax(scores.astype(np.longdouble), temperature)
        tolerance = max(1e-10, scale / temperature * 2e-14)
        assert value == pytest.approx(float(expected[0]), rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(marginals, expected[1].astype(float), atol=tolerance)
        assert h == pytest.approx(float(expected[2]), abs=tolerance)
        assert h >= 0
        product = own.covariance_product(0, scores, temperature, rng.normal(size=len(scores)))
        assert np.isfinite(product).all()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_samples(masked, temperature, rng):
    own = graph([([2, 3, 2, 2], [(0, 1), (1, 2), (2, 0), (1, 2, 3)], [0, 1, 2, 3])])
    if masked:
        own.set_mask(0, only(own, {1: [0, 2], 3: [1]}))
    everything = enumeration_of(own, 0)
    scores = rng.normal(size=own.num_slots(0))
    observed = np.zeros(len(everything))
    for slots, counts in own.sample(0, scores, temperature, 20_000, seed=5):
        observed[everything.index_of(slots, counts)] += 1
    expected = 20_000 * everything.probabilities(scores, temperature)
    rare = expected < 8
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    assert chisquare(observed[kept], expected[kept] * (20_000 / expected[kept].sum())).pvalue > 1e-3
    first, again = (own.sample(0, scores, 1.0, 5, seed=3) for _ in range(2))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, again, strict=True))
    cold = own.sample(0, scores, 1e-4, 5, seed=1)
    assert all(set(slots) == set(own.maximize(0, scores)[1]) for slots, _ in cold)


# Masks.


def test_fixed_vertices_make_a_wide_graph_narrow(rng):
    """Vertices fixed by the mask leave the junction tree: one column of the grid remains."""
    n = 12
    own = graph([([4] * n * n, grid(n, n))], memory_limit=1e6)
    scores = rng.normal(size=own.num_slots(0))
    with pytest.raises(ValueError, match=r"example 0: its junction tree of width 1[0-9] would take"):
        own.log_partition(0, scores)
    fixed = {v: [v % 4] for v in range(n * n) if v % n != 5}
    own.set_mask(0, only(own, fixed))
    assert own.width(0) == 1
    assert own.bytes(0) < 1e5
    value, marginals, _ = own.log_partition(0, scores)
    assert marginals.sum() == pytest.approx(n * n + len(grid(n, n)), abs=1e-9)
    best, slots, counts = own.maximize(0, scores)
    labels = own.decode_of(0, slots, counts)
    assert all(labels[v] == a[0] for v, a in fixed.items())
    assert best <= value
    own.check_labelling(0, slots, counts)
    with pytest.raises(ValueError, match=r"mask of example 0 .*vertex 3 no label"):
        own.set_mask(0, only(own, fixed | {3: []}))
    assert own.width(0) == 1  # the previous mask is still in force
    own.set_mask(0, None)
    with pytest.raises(ValueError, match="junction tree"):
        own.maximize(0, scores)


def test_everything_fixed(rng):
    own = graph([([3, 2, 4], [(0, 1), (1, 2), (0, 2)], [0, 1, 2])])
    own.set_mask(0, only(own, {0: [2], 1: [1], 2: [3]}))
    scores = rng.normal(size=own.num_slots(0))
    _, slots, counts = own.encode(np.array([2, 1, 3]))
    value, marginals, h = own.log_partition(0, scores, 0.3)
    assert value == pytest.approx(scores[slots].sum(), abs=1e-12)
    assert h == 0
    np.testing.assert_array_equal(np.flatnonzero(marginals), slots)
    assert own.width(0) == 0
    assert len(own.k_best(0, scores, 5)) == 1
    np.testing.assert_array_equal(own.sample(0, scores, 1.0, 2, seed=0)[1][0], slots)
    assert not own.covariance_product(0, scores, 1.0, rng.normal(size=len(scores))).any()
    np.testing.assert_array_equal(own.slots_from_cliques(0, own.clique_marginals(0, scores, 1.0)), marginals)
    assert own.encode(np.array([2, 1, 3]))[2].tolist() == counts.tolist()


def test_contradictions_that_only_a_sum_finds():
    """With two colours, each pair of a triangle's vertices can be coloured, but not all three: a sum shows this."""
    own = graph([([2] * 3, [(0, 1), (1, 2), (0, 2)], [0, 0, 0]), ([2] * 3, [(0, 1), (1, 2), (0, 2)], [0, 0, 0])])
    mask = np.ones(own.num_slots(1), dtype=np.uint8)
    begin = own.table_offsets(1)[0]
    mask[[begin, begin + 5]] = 0
    with pytest.raises(ValueError, match="the mask of example 1 allows no labelling"):
        own.set_mask(1, mask)
    assert own.mask(1) is None


@pytest.mark.parametrize("order", [1, -1])
def test_forbidden_pairs_rule_labels_out(order):
    """A label without an allowed partner is ruled out, and so are labels that then have no partner."""
    n = 6
    own = graph([([3] * n, [(v, v + 1) for v in range(n - 1)][::order], [0] * (n - 1))])
    mask = only(own, {0: [1]})
    begin = own.table_offsets(0)[0]
    mask[begin:] = 0
    mask[[begin + a * 4 + (a + 1) % 3 for a in range(3)]] = 1  # label a is followed by a + 1
    own.set_mask(0, mask)
    assert own.clique_offsets(0).tolist() == [0]  # no vertex is left to decide
    _, slots, counts = own.maximize(0, np.zeros(own.num_slots(0)))
    assert own.decode_of(0, slots, counts).tolist() == [1, 2, 0, 1, 2, 0]


# Junction trees.


@pytest.mark.parametrize(("shape", "width"), [((5, 20), 5), ((20, 5), 5), ((6, 6), 6), ((4, 50), 4)])
def test_junction_trees_of_grids_are_narrow(shape, width):
    own = graph([([2] * shape[0] * shape[1], grid(*shape))])
    assert own.width(0) <= width + (shape == (6, 6))


def test_widths_of_known_graphs():
    n = 9
    cycle = [(v, (v + 1) % n) for v in range(n)]
    star = [(0, v) for v in range(1, n)]
    complete = list(itertools.combinations(range(n), 2))
    known = graph([([2] * n, edges) for edges in (cycle, star, complete, [], [tuple(range(n))])])
    assert [known.width(i) for i in range(5)] == [2, 1, n - 1, 0, n - 1]


def test_graphs_that_need_too_much_memory_are_refused_before_allocation():
    many = 2000
    wide = graph([([2] * 3, []), ([2] * many, list(itertools.combinations(range(70), 2)))])
    assert wide.width(0) == 0
    zeros = np.zeros(wide.num_slots(1))
    for call in (
        lambda: wide.maximize(1, zeros),
        lambda: wide.log_partition(1, zeros),
        lambda: wide.k_best(1, zeros, 2),
        lambda: wide.sample(1, zeros, 1.0, 1, seed=0),
        lambda: wide.covariance_product(1, zeros, 1.0, zeros),
        lambda: wide.clique_offsets(1),
        lambda: wide.width(1),
        lambda: wide.check_labelling(1, *wide.encode(np.zeros(many + 3, dtype=np.int64))[1:]),
    ):
        with pytest.raises(ValueError, match=r"example 1: its junction tree of width at least \d+ would take .* bytes"):
            call()
    with pytest.raises(ValueError, match=r"width 5 would take [0-9]+ bytes, more than memory_limit = 500"):
        graph([([2] * 6, [range(6)])], memory_limit=500).width(0)


def test_examples_of_one_shape_keep_their_own_masks(rng):
    own = graph([([3, 3], [(0, 1)])] * 3)
    scores = rng.normal(size=own.num_slots(0))
    own.set_mask(1, only(own, {0: [2]}))
    free, fixed = own.log_partition(0, scores)[0], own.log_partition(1, scores)[0]
    assert free > fixed
    assert own.log_partition(2, scores)[0] == free
    own.set_mask(1, None)
    assert own.log_partition(1, scores)[0] == free
