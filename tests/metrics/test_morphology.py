"""Scores of morphological features against counts by hand and against a simple count."""

import random

import pytest

from partwise.metrics import feats_scores

GOLD = [["Case=Nom|Number=Sing", "_"], ["Number=Plur|Typo=Yes", "Case=Acc"]]
GUESS = [["Number=Sing|Case=Nom", "Case=Nom"], ["Number=Plur", "Case=Nom"]]


def test_counts_by_hand():
    found = feats_scores(GOLD, GUESS, known=["Case=Nom|Number=Sing", "_", "Case=Acc"])
    assert (found.n_words, found.n_right, found.n_right_universal) == (4, 1, 2)  # Typo is not a universal feature
    assert (found.n_unknown, found.n_unknown_right, found.unknown_share) == (1, 0, 0.25)
    case = found.by_feature["Case"]
    assert (case.n_gold, case.n_predicted, case.n_right, case.n_same) == (2, 3, 1, 2)
    assert (case.precision, case.recall, case.f1, case.accuracy) == (1 / 3, 0.5, 0.4, 0.5)
    assert found.by_feature["Typo"].precision == found.by_feature["Typo"].f1 == 0
    assert list(found.by_feature) == ["Case", "Number", "Typo"]
    both = found.all_features
    assert (both.n_gold, both.n_predicted, both.n_right) == (5, 5, 3)
    assert found.accuracy == 0.25
    assert found.ufeats == 0.5


def test_pairs_counted_naively():
    rng = random.Random(1)

    def cell():
        return "|".join(f"{key}={rng.choice('xy')}" for key in "ABC" if rng.random() < 0.6) or "_"

    gold, guess = ([[cell() for _ in range(5)] for _ in range(40)] for _ in range(2))
    found = feats_scores(gold, guess)
    pairs = [(a, b) for one, other in zip(gold, guess, strict=True) for a, b in zip(one, other, strict=True)]
    assert found.n_right == sum(a == b for a, b in pairs)
    sets = [({*a.split("|")} - {"_"}, {*b.split("|")} - {"_"}) for a, b in pairs]
    total = found.all_features
    assert total.n_right == sum(len(a & b) for a, b in sets)
    assert (total.n_gold, total.n_predicted) == (sum(len(a) for a, _ in sets), sum(len(b) for _, b in sets))
    for key, row in found.by_feature.items():
        own = [tuple(next((e for e in each if e[0] == key), None) for each in pair) for pair in sets]
        assert row.n_same == sum(a == b for a, b in own)
        assert row.n_right == sum(a == b and a is not None for a, b in own)


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="1 sentences of gold features, 2"):
        feats_scores(GOLD[:1], GUESS)
    with pytest.raises(ValueError, match="sentence 0: 1 words with gold features, 2"):
        feats_scores([["_"]], GUESS[:1])
    with pytest.raises(ValueError, match="'Nom' is not KEY=VALUE"):
        feats_scores([["Nom"]], [["_"]])
    with pytest.raises(ValueError, match="no words"):
        feats_scores([], [])
