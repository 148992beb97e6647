"""Attachment scores of a small example counted by hand."""

from __future__ import annotations

import pytest

from partwise.io import make_sentence
from partwise.metrics import attachment_scores

GOLD = make_sentence(
    [("the",), ("dogs",), ("had",), ("barked",), ("at",), ("me",), (".",)],
    [2, 4, 4, 0, 6, 4, 4],
    ["det", "nsubj", "aux:tense", "root", "case", "obl", "punct"],
)
# the: wrong head; dogs: wrong relation; had: only the subtype differs; me: predicted as a function word
GUESS = make_sentence(
    [("the",), ("dogs",), ("had",), ("barked",), ("at",), ("me",), (".",)],
    [4, 4, 4, 0, 6, 4, 5],
    ["det", "obj", "aux", "root", "case", "mark", "punct"],
)


def test_counts_by_hand():
    scores = attachment_scores([GOLD], [GUESS])
    assert (scores.n_words, scores.n_right_heads, scores.n_right) == (7, 5, 3)
    assert scores.uas == 5 / 7
    assert scores.las == 3 / 7  # right: had, barked, at
    # content words in gold: dogs, barked, me; predicted: dogs, barked; right: barked
    assert scores.clas == pytest.approx(2 * 1 / (3 + 2))
    bare = scores.without_punctuation
    assert bare is not None
    assert (bare.n_words, bare.uas, bare.las) == (6, 5 / 6, 3 / 6)
    assert bare.clas == scores.clas


def test_perfect_and_plain_lists():
    perfect = attachment_scores([GOLD], [GOLD])
    assert (perfect.uas, perfect.las, perfect.clas) == (1.0, 1.0, 1.0)
    plain = attachment_scores([[2, 0], [0]], [[2, 0], [0]])
    assert (plain.uas, plain.las, plain.clas) == (1.0, None, None)
    pairs = attachment_scores([[(2, "nsubj"), (0, "root"), (2, "punct")]], [[(2, "nsubj"), (0, "root"), (1, "punct")]])
    assert pairs.uas == 2 / 3
    assert pairs.without_punctuation is not None
    assert pairs.without_punctuation.uas == 1.0


def test_blank_relations_are_none():
    bare = GOLD.with_tree(GOLD.heads, ["_"] * 7)
    for gold, guess in ((bare, GUESS), (GOLD, bare), (bare, bare)):
        scores = attachment_scores([gold], [guess])
        assert (scores.las, scores.clas) == (None, None)
        assert scores.without_punctuation is not None
        assert scores.without_punctuation.las is None
    half = GOLD.with_tree(GOLD.heads, ["_"] * 6 + ["punct"])
    assert attachment_scores([GOLD], [half]).las == 1 / 7


def test_pairs_may_be_lists():
    pairs = [[(2, "nsubj"), (0, "root")]]
    assert attachment_scores([[[2, "nsubj"], [0, "root"]]], pairs).las == 1.0
    for wrong in ([["a", "b"]], [[[1], [0]]], [[None, 0]]):
        with pytest.raises(ValueError, match="gold sentence 0 must be a list of heads"):
            attachment_scores(wrong, pairs)


def test_given_punctuation_and_text():
    scores = attachment_scores([GOLD], [GUESS], punctuation=[[True] * 6 + [False]])
    assert scores.without_punctuation is not None
    assert scores.without_punctuation.n_words == 1
    assert "UAS" in str(scores)
    assert "71.43" in str(scores)


def test_refusals():
    with pytest.raises(ValueError, match="1 gold sentences, 0 predicted"):
        attachment_scores([GOLD], [])
    with pytest.raises(ValueError, match="sentence 0 has 2 words in gold, 1"):
        attachment_scores([[2, 0]], [[0]])
    with pytest.raises(ValueError, match="no words"):
        attachment_scores([], [])
    with pytest.raises(ValueError, match="predicted sentence 0 has no heads"):
        attachment_scores([[0]], [make_sentence([("a",)])])
