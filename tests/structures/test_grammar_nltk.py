"""The most probable parse of a probabilistic grammar equals NLTK's, in the code of `python -m benchmarks grammar`."""

from __future__ import annotations

import pytest

from benchmarks.grammar import TOY_SENTENCES, nltk_parse, ours, read_off_grammar, same_parse, toy_grammar
from partwise.models.constituents.treebank.relative_frequency import RelativeFrequencyParser

pytest.importorskip("nltk")


@pytest.mark.parametrize("name", ["toy", "read off"])
def test_nltk_finds_the_same_parse(name):
    if name == "toy":
        pcfg, sentences = toy_grammar(), [each.split() for each in TOY_SENTENCES[:6]]
    else:
        pcfg, sentences = read_off_grammar(300)
        sentences = sentences[:200:40]
    found = RelativeFrequencyParser(ours(pcfg)).predict_with_log_probability(sentences)
    expected = [nltk_parse(pcfg, words) for words in sentences]
    assert sum(tree is not None for tree in expected) >= 4
    for own, theirs in zip(found, expected, strict=True):
        assert same_parse(own, theirs)


def test_another_tree_is_not_the_same():
    pcfg = toy_grammar()
    found = RelativeFrequencyParser(ours(pcfg)).predict_with_log_probability([["Bob", "ran"], ["Jack", "ate"]])
    assert not same_parse(found[0], nltk_parse(pcfg, ["Jack", "ate"]))
    assert not same_parse((found[0][0], found[0][1] - 1e-6), nltk_parse(pcfg, ["Bob", "ran"]))
    assert not same_parse(found[0], None)
