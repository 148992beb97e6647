"""Derivations under a grammar agree with enumeration, on random grammars and sentences of up to 5 words."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from oracles.enumerate import enumeration_of
from oracles.grammars import KnownGrammar, Spec, anchored, nodes_array, random_spec
from oracles.optimum import EXTENDED, LONG
from partwise.problem.rounding import EPSILON

SEEDS = st.integers(0, 2**32 - 1)
ONE = Spec(1, [(0, 0, 0)], [0], [0], {"span": [0]})


def draw(seed, n, mask=False, gold=True, tuples=False):
    """Draw a grammar with two sentences, of which the second has n words, perhaps with a mask."""
    rng = np.random.default_rng(seed)
    spec = random_spec(rng, [2, n], lexicon=rng.random() < 0.6, gold=gold and rng.random() < 0.5, tuples=tuples)
    structure = KnownGrammar([2, n], spec)
    if mask and rng.random() < 0.6:
        every = enumeration_of(structure, 1)
        kept = every.counts[rng.integers(len(every))] > 0
        allowed = (rng.random(len(kept)) < 0.75) | kept
        structure.set_mask(1, allowed.astype(np.uint8))
    return structure, enumeration_of(structure, 1), rng


@pytest.mark.skipif(not EXTENDED, reason="long doubles are doubles here")
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_log_partition_adds_no_rounding(seed, size):
    """The rounding error of log Z is that of its scores: factors that keep sums in range add no error."""
    structure, every, rng = draw(seed, 5)
    scores = size * rng.normal(size=structure.num_slots(1))
    values = every.counts.astype(LONG) @ scores.astype(LONG)
    exact = np.log(np.exp(values).sum())
    largest = float(np.abs(every.counts @ np.abs(scores)).max()) + math.log(len(every))
    assert abs(structure.log_partition(1, scores)[0] - exact) <= 4 * EPSILON * (1.0 + largest)


@given(
    SEEDS,
    st.integers(1, 5),
    st.sampled_from([0.1, 1.0, 20.0, 300.0]),
    st.sampled_from([0.3, 1.0]),
    st.booleans(),
    st.booleans(),
)
def test_everything_against_enumeration(seed, n, size, temperature, rubbish, tuples):
    """Arbitrary scores in slots that no derivation uses make sums leave the fast kernels for the chart."""
    structure, every, rng = draw(seed, n, mask=True, tuples=tuples)
    assert structure.num_slots(1) == every.counts.shape[1]
    scores = size * rng.normal(size=structure.num_slots(1))
    if rubbish:
        scores[~every.used] = 1e5 * rng.normal(size=int((~every.used).sum()))
    value, marginals, entropy = structure.log_partition(1, scores, temperature)
    expected = every.smax(scores, temperature)
    assert value == pytest.approx(expected[0], abs=1e-10, rel=1e-12)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-10)
    assert entropy == pytest.approx(expected[2], abs=1e-10)
    assert not marginals[~every.used].any()
    values = np.sort(every.values(scores))[::-1]
    best, slots, counts = structure.maximize(1, scores)
    assert best == pytest.approx(values[0], rel=1e-12, abs=1e-10)
    assert every.values(scores)[every.index_of(slots, counts)] == pytest.approx(values[0], rel=1e-12, abs=1e-10)
    ranked = structure.k_best(1, scores, len(values) + 3)
    # Derivations with the same counts are found as often as they occur.
    found = Counter(bytes(every.counts[every.index_of(slots, counts)]) for _, slots, counts in ranked)
    assert found == Counter(map(bytes, every.counts))
    np.testing.assert_allclose([each[0] for each in ranked], values, atol=1e-10, rtol=1e-12)
    direction = rng.normal(size=len(scores))
    product = structure.covariance_product(1, scores, temperature, direction)
    p = every.probabilities(scores, temperature)
    centred = every.counts - p @ every.counts
    np.testing.assert_allclose(product, centred.T @ (p * (centred @ direction)), atol=1e-9)


@given(SEEDS, st.integers(1, 5), st.booleans())
def test_encode_and_decode_are_inverse(seed, n, tuples):
    """If two derivations have the same slots, decode gives either of them."""
    structure, every, rng = draw(seed, n, mask=True, tuples=tuples)
    spec = structure.spec
    for k in rng.choice(len(every), min(len(every), 10), replace=False):
        nodes = spec.derivations(1, n)[every.labellings[k, 0]]
        first = spec.derivations(0, 2)[0]
        indptr, slots, counts = structure.encode(nodes_array([*first, *nodes]))
        own = slots[indptr[1] : indptr[2]], counts[indptr[1] : indptr[2]]
        assert bytes(every.counts[every.index_of(*own)]) == bytes(every.counts[k])
        structure.check_labelling(1, *own)
        again = structure.decode(indptr, slots, counts)
        got = [tuple(node) for node in again[3:].tolist()]
        assert Counter(spec.slots(1, n, got)) == Counter(spec.slots(1, n, nodes))
        np.testing.assert_array_equal(structure.nodes_of(1, *own), again[3:])


def test_hashed_tuples_that_are_refused():
    codes = np.arange(2)
    for options, why in [
        ({"tuple_codes": codes, "n_tuples": 3}, "n_tuples must be 0 or a power of two"),
        ({"n_tuples": 4}, "tuple_codes must have a code per word"),
        ({"tuple_codes": codes}, "tuple_codes must have a code per word"),
        ({"tuple_codes": np.arange(3), "n_tuples": 4}, r"tuple_codes must have a code per word \(2\)"),
    ]:
        with pytest.raises(ValueError, match=why):
            KnownGrammar([2], ONE, **options)


def test_slots_that_form_no_derivation_are_refused():
    structure, every, _ = draw(3, 4, gold=False)
    slots = np.flatnonzero(every.counts[0])
    counts = every.counts[0][slots]
    for wrong, why in [
        ((slots[:-1], counts[:-1]), "not those of a derivation"),
        ((np.append(slots, len(every.counts[0])), np.append(counts, 1.0)), "has no slot"),
        ((slots, counts + 1.0), "not those of a derivation"),
    ]:
        with pytest.raises(ValueError, match=why):
            structure.check_labelling(1, *wrong)
    mask = np.ones(len(every.counts[0]), dtype=np.uint8)
    other = np.flatnonzero((every.counts[1] > 0) & (every.counts[0] == 0))[0]
    mask[other] = 0
    structure.set_mask(1, mask)
    with pytest.raises(ValueError, match=f"sentence 1 has slot {other}, which its mask forbids"):
        structure.check_labelling(1, np.flatnonzero(every.counts[1]), every.counts[1][every.counts[1] > 0])


@given(SEEDS, st.integers(1, 5), st.sampled_from(["constituents", "rules"]))
def test_costs(seed, n, cost):
    """cost="rules" counts wrong rules and words; "constituents" wrong spans, weighted by column, and words."""
    rng = np.random.default_rng(seed)
    spec = random_spec(rng, [n], lexicon=False)
    n_columns = max(spec.columns.get("span", [-1])) + 1
    weights = rng.uniform(0, 2, n_columns)
    structure = KnownGrammar([n], spec, cost=cost, span_costs=weights)
    assert structure.cost_name == cost
    every = enumeration_of(structure, 0)
    gold = spec.gold[0]
    _, slots, counts = structure.encode(nodes_array(gold))
    got = every.counts @ structure.cost(0, slots, counts)

    def parts(nodes):
        words = {node for node in nodes if node[2] == node[1] + 1}
        if cost == "rules":
            return {**dict.fromkeys(words, 1.0), **dict.fromkeys(anchored(spec, nodes), 1.0)}
        columns = spec.columns.get("span", [-1] * spec.n_symbols)
        spans = {("span", columns[a], s, t): weights[columns[a]] for a, s, t in nodes if t > s + 1 and columns[a] >= 0}
        return {**dict.fromkeys(words, 1.0), **spans}

    right = parts(gold)
    expected = [sum(w for x, w in parts(nodes).items() if x not in right) for nodes in spec.derivations(0, n)]
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
def test_catalan_numbers(n):
    structure = KnownGrammar([n], ONE)
    value, marginals, entropy = structure.log_partition(0, np.zeros(structure.num_slots(0)))
    catalan = math.comb(2 * n - 2, n - 1) // n
    assert value == pytest.approx(math.log(catalan), abs=1e-11)
    assert entropy == pytest.approx(math.log(catalan), abs=1e-10)
    assert marginals[0] == pytest.approx(n - 1, abs=1e-11)
    ranked = structure.k_best(0, np.zeros(structure.num_slots(0)), 50)
    assert len(ranked) == min(50, catalan) == len({bytes(slots) for _, slots, _ in ranked})


@given(SEEDS, st.sampled_from([1000.0, 30.0]), st.sampled_from([1.0, 1e-4]))
def test_large_scores_and_low_temperatures(seed, size, temperature):
    structure, every, rng = draw(seed, 5)
    scores = size * rng.choice([-1.0, 1.0], size=structure.num_slots(1))
    value, marginals, entropy = structure.log_partition(1, scores, temperature)
    expected = every.smax(scores, temperature)
    assert value == pytest.approx(expected[0], rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-9)
    assert entropy == pytest.approx(expected[2], abs=1e-8)


@given(SEEDS, st.integers(6, 14), st.sampled_from([0.5, 3.0, 10.0]))
def test_plain_sums_agree_with_the_chart(seed, n, size):
    """Samples, covariances and k best come from the chart program, which agrees with the fast kernels. A slot that no
    derivation uses makes sums leave the fast kernels if its score is far from the others."""
    rng = np.random.default_rng(seed)
    spec = Spec(
        4, [(0, 0, 1), (0, 1, 2), (1, 1, 1), (2, 0, 3), (2, 2, 1), (3, 2, 3)], [0, 2], [1, 3, 2, 0],
        {"start": [0, 1, 2, 3], "split": [0, 0, 1, 1], "end": [1, 0, 0, 1], "span": [0, 1, 1, 2]},
    )  # fmt: skip
    fast = KnownGrammar([n], spec)
    # In both grammars a word may have any symbol except the last; the second grammar has one more rule, masked out.
    slow = KnownGrammar([n], Spec(**{**vars(spec), "rules": [*spec.rules, (3, 3, 3)]}))
    scores = size * rng.normal(size=fast.num_slots(0))
    mask = np.ones(slow.num_slots(0), dtype=np.uint8)
    mask[6] = 0  # the rule that the first grammar does not have
    slow.set_mask(0, mask)
    more = np.insert(scores, 6, 0.0)
    one = fast.log_partition(0, scores)
    two = slow.log_partition(0, more)
    assert one[0] == pytest.approx(two[0], rel=1e-13)
    np.testing.assert_allclose(np.insert(one[1], 6, 0.0), two[1], atol=1e-12)
    assert fast.maximize(0, scores)[0] == pytest.approx(fast.k_best(0, scores, 1)[0][0], rel=1e-13)
    # A word's symbol has a score so low that it leaves the kernel's range; masking the symbol must give the same.
    word = spec.table_offsets(n)["word"]
    far = scores.copy()
    far[word : word + 4] += [0, 0, -900.0, 0]
    barred = np.ones(len(far), dtype=np.uint8)
    barred[word + 2] = 0
    value, marginals, entropy = fast.log_partition(0, far)
    fast.set_mask(0, barred)
    expected = fast.log_partition(0, scores)
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-11)
    assert entropy == pytest.approx(expected[2], abs=1e-9)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_samples(temperature):
    structure, every, rng = draw(21, 5, mask=True)
    scores = rng.normal(size=structure.num_slots(1))
    rows = Counter()
    for row, p in zip(every.counts, every.probabilities(scores, temperature), strict=True):
        rows[bytes(row)] += p
    n = 20_000
    observed = Counter()
    for slots, counts in structure.sample(1, scores, temperature, n, seed=11):
        row = np.zeros(len(scores))
        row[slots] = counts
        observed[bytes(row)] += 1
    assert set(observed) <= set(rows)
    common = [row for row in rows if n * rows[row] > 8]
    assert len(common) > 3
    seen = [observed[row] for row in common]
    expected = np.array([n * rows[row] for row in common])
    rest = n - sum(seen), n - expected.sum()
    if rest[1] > 8:
        seen, expected = [*seen, rest[0]], np.append(expected, rest[1])
    assert chisquare(seen, expected * (sum(seen) / expected.sum())).pvalue > 1e-3


def test_required_and_forbidden_spans():
    """A span is forbidden by masking its row. A span is required if every span that crosses it is forbidden."""
    n, spec = 6, Spec(2, [(0, 0, 1), (0, 1, 1), (1, 1, 0)], [0], [0, 1], {"span": [0, 1]})
    structure = KnownGrammar([n], spec)
    spans = [(s, t) for s in range(n) for t in range(s + 2, n + 1)]
    first = structure.table_offsets(0)[3]
    mask = np.ones(structure.num_slots(0), dtype=np.uint8)
    for k, (s, t) in enumerate(spans):
        crosses = s < 2 < t < 5 or 2 < s < 5 < t
        if crosses or (s, t) == (3, 5):
            mask[first + 4 * k : first + 4 * k + 4] = 0
    structure.set_mask(0, mask)
    kept = [
        nodes
        for nodes in spec.derivations(0, n)
        if any(node[1:] == (2, 5) for node in nodes) and not any(node[1:] == (3, 5) for node in nodes)
    ]
    assert 0 < len(kept) < len(spec.derivations(0, n))
    value = structure.log_partition(0, np.zeros(structure.num_slots(0)))[0]
    assert value == pytest.approx(math.log(len(kept)), abs=1e-12)


def test_ties_go_to_the_first_rule_and_the_same_every_time(rng):
    spec = Spec(2, [(0, 0, 0), (0, 0, 1), (0, 1, 1)], [0], [0, 1], {"span": [0, 1]})
    structure = KnownGrammar([6], spec)
    scores = np.zeros(structure.num_slots(0))
    value, slots, counts = structure.maximize(0, scores)
    assert value == 0.0
    assert set(structure.nodes_of(0, slots, counts)[:, 0]) == {0}
    again = structure.maximize(0, scores)
    assert slots.tolist() == again[1].tolist()
    lists = [[each[1].tolist() for each in structure.k_best(0, scores, 20)] for _ in range(2)]
    assert lists[0] == lists[1]


def test_sentences_without_derivation():
    spec = Spec(3, [(0, 1, 2)], [0], [1, 2])
    structure = KnownGrammar([2, 3], spec)
    assert [structure.has_derivation(i) for i in range(2)] == [True, False]
    zeros = np.zeros(structure.num_slots(1))
    for call in (structure.maximize, structure.log_partition):
        with pytest.raises(ValueError, match="sentence 1 has no derivation"):
            call(1, zeros)
    mask = np.ones(structure.num_slots(0), dtype=np.uint8)
    mask[0] = 0
    with pytest.raises(ValueError, match="the mask of sentence 0 allows no derivation"):
        structure.set_mask(0, mask)
    assert structure.mask(0) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roots": []}, "needs a start symbol: roots is empty"),
        ({"roots": [3]}, r"roots has the symbol 3, which is not in \[0, 3\)"),
        ({"roots": [0, 0]}, "roots has the symbol 0 twice"),
        ({"words": []}, "words is empty"),
        ({"words": [1, 1]}, "words has the symbol 1 twice"),
        ({"rules": [(0, 1, 3)]}, "rule 0 has the symbol 3"),
        ({"rules": [(1, 1, 1), (0, 1, 2)]}, "rule 1 is not in the order of parents"),
        ({"rules": [(0, 1, 2), (0, 1, 2)]}, "the rule 0 -> 1 2 comes twice"),
        ({"columns": {"span": [0, 1]}}, "span_columns has 2 values for 3 symbols"),
        ({"columns": {"start": [0, 1, 5]}}, "start_columns has the column 5"),
        ({"lexicon": [[[0], [2]]]}, "sentence 0 has word 1 with the column 2"),
        ({"lexicon": [[[0], [1, 0]]]}, "sentence 0 has word 1 with columns that are not in order"),
        ({"gold": [[(0, 0, 2), (1, 0, 1)]]}, "gold has 2 nodes, 3 are needed"),
        ({"gold": [[(0, 0, 2), (2, 0, 1), (1, 1, 2)]]}, "sentence 0 has symbol 0 over .*, but the grammar has no rule"),
        ({"gold": [[(1, 0, 2), (1, 0, 1), (2, 1, 2)]]}, "not a symbol of whole sentences"),
        ({"gold": [[(0, 0, 2), (1, 0, 2), (2, 1, 2)]]}, "does not end inside its parent"),
        ({"gold": [[(0, 0, 1), (1, 0, 1), (2, 1, 2)]]}, "not the whole sentence"),
        ({"gold": [[(0, 0, 2), (1, 0, 1), (9, 1, 2)]]}, "unknown symbol 9"),
        ({"gold": [[(0, 0, 2), (1, 0, 1), (2, 1, 3)]]}, "not the rest of its parent"),
    ],
)
def test_bad_grammars(changes, message):
    spec = Spec(**{**vars(Spec(3, [(0, 1, 2)], [0], [1, 2])), **changes})
    with pytest.raises(ValueError, match=message):
        KnownGrammar([2], spec)


def test_bad_sentences_and_options():
    spec = Spec(3, [(0, 1, 2)], [0], [1, 2], lexicon=[[[0], [0]]])
    with pytest.raises(ValueError, match=r"sentence 0 has symbol 2 over the words \[1, 2\), which the lexicon"):
        KnownGrammar([2], spec).encode(nodes_array([(0, 0, 2), (1, 0, 1), (2, 1, 2)]))
    with pytest.raises(ValueError, match="not a symbol of words"):
        KnownGrammar([1], Spec(3, [(0, 1, 2)], [0], [1, 2])).encode(nodes_array([(0, 0, 1)]))
    with pytest.raises(ValueError, match="cost 'rules' needs gold derivations"):
        KnownGrammar([2], ONE, cost="rules")
    with pytest.raises(ValueError, match="cost must be 'constituents' or 'rules', got 'words'"):
        KnownGrammar([2], ONE, cost="words")
    for lengths, message in [([0], "sentence 0 is empty"), ([2, -1], "sentence 1 has a negative length")]:
        with pytest.raises(ValueError, match=message):
            KnownGrammar(lengths, ONE)
    with pytest.raises(ValueError, match=r"sentence 1 has 3000000000 words: sums .* would take .* MB, the limit is 2e"):
        KnownGrammar([2, 3_000_000_000], ONE)
    tight = KnownGrammar([30], ONE, max_bytes=15_000)  # enough for the kernels, too little for the chart
    zeros = np.zeros(tight.num_slots(0))
    assert tight.log_partition(0, zeros)[0] > 30.0
    with pytest.raises(
        ValueError, match=r"sentence 0 has 30 words: a chart of all rules would take .* MB, the limit is"
    ):
        tight.k_best(0, zeros, 2)
    with pytest.raises(ValueError, match="span_costs has 2 values for 1 columns"):
        KnownGrammar([2], ONE, span_costs=np.ones(2))
    with pytest.raises(ValueError, match="span_costs must be finite and 0 or more"):
        KnownGrammar([2], ONE, span_costs=-np.ones(1))


def test_a_part_beyond_the_range_of_doubles_may_be_in_the_best_derivation():
    """One derivation has a slot of -750, whose exponential is 0 in doubles, and the other has two slots of -400. The
    slots of score 0 belong to no derivation."""
    spec = Spec(6, [(0, 1, 2), (0, 3, 4), (5, 5, 5)], [0], [1, 2, 3, 4], {"span": [0] * 6})
    structure = KnownGrammar([2], spec)
    scores = np.zeros(structure.num_slots(0))
    scores[:2] = -750.0, -400.0
    scores[spec.table_offsets(2)["word"] + 2] = -400.0
    value, marginals, entropy = structure.log_partition(0, scores)
    every = enumeration_of(structure, 0)
    expected = every.smax(scores, 1.0)
    assert len(every) == 2
    assert value == pytest.approx(-750.0, abs=1e-9)
    np.testing.assert_allclose(marginals, expected[1], atol=1e-12)
    assert entropy == pytest.approx(expected[2], abs=1e-12)
