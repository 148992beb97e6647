"""Relative frequencies of a treebank as a probabilistic grammar, and parsing with it."""

import math

import numpy as np
import pytest

from partwise.datasets import make_treebank, treebank_sample
from partwise.io import parse_trees
from partwise.io.trees import rows_of_tree, tree_of_rows
from partwise.metrics import parseval
from partwise.models.constituents.treebank import (
    RelativeFrequencyParser,
    TreeTransform,
    is_parsed,
    read_off,
    relative_frequencies,
    words_of,
)

CATS = """(S (NP (D the) (N cat)) (VP (V sat)))
(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))
(S (NP (N cat)) (VP (V sat)))
(NP (D the) (N cat))"""


def grammar_of(text, rare=0, **settings):
    transform = TreeTransform(**settings)
    return read_off([transform.binary(tree) for tree in parse_trees(text)], rare=rare)


def lexicon_of(grammar, word, tag_weight):
    indptr, symbols, values = relative_frequencies(grammar, tag_weight).lexicon.of(grammar.terminals([word]))
    assert indptr.tolist() == [0, len(symbols)]
    return {grammar.symbols[k]: math.exp(value) for k, value in zip(symbols, values, strict=True)}


def test_frequencies():
    grammar = grammar_of(CATS)
    found = relative_frequencies(grammar)
    rules = {" ".join(grammar.symbols[k] for k in rule): p for rule, p in zip(grammar.rules, found.rules, strict=True)}
    # three S, each with its own rule; four NP over two words
    assert rules == pytest.approx({"S NP VP+V": -np.log(3), "S NP VP": -np.log(3), "S NP+N VP+V": -np.log(3),
                                   "NP D N": 0.0, "VP V NP": 0.0})  # fmt: skip
    assert np.exp(found.roots).tolist() == pytest.approx([0.25, 0.75])


def test_lexicon():
    grammar = grammar_of(CATS)
    # Counts as N: cat 3, dog 1; as NP+N: cat 1. Counts as a noun under any parent: cat 4 of 5, dog 1 of 5.
    assert lexicon_of(grammar, "cat", 0.0) == pytest.approx({"N": 3 / 4, "NP+N": 1.0})
    assert lexicon_of(grammar, "dog", 0.0) == pytest.approx({"N": 1 / 4})
    assert lexicon_of(grammar, "cat", 2.0) == pytest.approx({"N": (3 + 2 * 0.8) / 6, "NP+N": (1 + 2 * 0.8) / 3})
    assert lexicon_of(grammar, "dog", 2.0) == pytest.approx({"N": (1 + 2 * 0.2) / 6, "NP+N": 2 * 0.2 / 3})
    with pytest.raises(ValueError, match="tag_weight=-1"):
        relative_frequencies(grammar, -1.0)


def test_classes_of_unknown_words():
    grammar = grammar_of(CATS, rare=1)
    # Rare: dog (N), saw (V), a (D). "sat" occurs twice, but as VP+V, so that "saw" is the only V.
    assert lexicon_of(grammar, "bird", 0.0) == pytest.approx({"D": 1 / 4, "N": 1 / 4, "V": 1.0})
    assert lexicon_of(grammar, "7", 0.0) == lexicon_of(grammar, "bird", 0.0)


@pytest.mark.parametrize("rare", [0, 1, 3])
@pytest.mark.parametrize("tag_weight", [0.0, 1.0, 10.0])
def test_probabilities_of_a_symbol_sum_to_one(rare, tag_weight):
    transform = TreeTransform(horizontal=1, vertical=2)
    grammar = read_off([transform.binary(tree) for tree in make_treebank(80).trees], rare=rare)
    found = relative_frequencies(grammar, tag_weight)
    total = np.bincount(grammar.rules[:, 0], np.exp(found.rules), grammar.n_symbols)
    # exclude the class of all rare words, whose probabilities repeat those of the words
    end = found.lexicon.indptr[-2] if rare else None
    total += np.bincount(found.lexicon.symbols[:end], np.exp(found.lexicon.log_probabilities[:end]), grammar.n_symbols)
    np.testing.assert_allclose(total, 1.0)
    assert np.exp(found.roots).sum() == pytest.approx(1.0)
    for begin, stop in zip(found.lexicon.indptr[:-1], found.lexicon.indptr[1:], strict=True):
        assert (np.diff(found.lexicon.symbols[begin:stop]) > 0).all()


# Parsing


def best_by_hand(grammar, found, words):
    """Compute the log-probability of the best tree by a table of all symbols over all spans."""
    n = len(words)
    table = np.full((n, n + 1, grammar.n_symbols), -np.inf)
    indptr, symbols, values = found.lexicon.of(grammar.terminals(words))
    for k in range(n):
        table[k, k + 1, symbols[indptr[k] : indptr[k + 1]]] = values[indptr[k] : indptr[k + 1]]
    for width in range(2, n + 1):
        for begin in range(n - width + 1):
            end = begin + width
            for split in range(begin + 1, end):
                for (a, b, c), p in zip(grammar.rules, found.rules, strict=True):
                    value = p + table[begin, split, b] + table[split, end, c]
                    table[begin, end, a] = max(table[begin, end, a], value)
    return max(table[0, n, grammar.roots] + found.roots)


def log_probability(grammar, found, tree):
    """Return the log-probability of a tree in normal form."""
    rows = rows_of_tree(tree, grammar.symbol_numbers)
    indptr, symbols, values = found.lexicon.of(grammar.terminals(words_of(tree)))
    total = found.roots[grammar.roots.tolist().index(rows[0, 0])]
    waiting = [tree]
    at = 0
    while waiting:
        node = waiting.pop()
        own = grammar.symbol_numbers[node[0]]
        if isinstance(node[1], str):
            ((k,),) = np.nonzero(symbols[indptr[at] : indptr[at + 1]] == own)
            total += values[indptr[at] + k]
            at += 1
        else:
            pair = [grammar.symbol_numbers[child[0]] for child in node[1:]]
            total += found.rules[grammar.rules.tolist().index([own, *pair])]
            waiting += [node[2], node[1]]
    return total


def test_best_trees():
    trees = make_treebank(60, seed=3).trees
    transform = TreeTransform(horizontal=1)
    parser = RelativeFrequencyParser.of(trees[:40], transform, rare=1)
    sentences = [words_of(tree)[:7] for tree in trees[40:]] + [["Ada"], ["ran"]]
    answers = parser.predict_with_log_probability(sentences)
    n_parsed = 0
    for words, (tree, value) in zip(sentences, answers, strict=True):
        assert words_of(tree) == words
        expected = best_by_hand(parser.grammar, parser.probabilities, words)
        assert is_parsed(tree) == (expected > -np.inf) == (value > -np.inf)
        if is_parsed(tree):
            n_parsed += 1
            assert value == pytest.approx(expected)
            again = log_probability(parser.grammar, parser.probabilities, transform.binary(tree))
            assert again == pytest.approx(value)
    assert 0 < n_parsed < len(sentences)
    assert [tree for tree, _ in answers] == parser.predict(sentences)


def test_roots_have_probabilities():
    """Between trees that differ in the root's label only, the more frequent root wins, over one word and over two."""
    text = "(B (A a) (A b)) (C (A a) (A b)) (C (A a) (A b)) (D c) (E c) (E c)"
    parser = RelativeFrequencyParser.of(parse_trees(text), rare=0)
    (first, p), (second, q) = parser.predict_with_log_probability([["a", "b"], ["c"]])
    assert (first[0], second[0]) == ("C", "E")
    assert (p, q) == pytest.approx((np.log(1 / 3 / 4), np.log(1 / 3)))


def test_flat_trees_have_the_best_tags():
    text = "(S (A a) (A a) (C c)) (S (B a) (A d) (B b))"
    (tree,) = RelativeFrequencyParser.of(parse_trees(text), rare=0).predict([["c", "a", "a"]])
    assert tree == ("S", ("C", "c"), ("A", "a"), ("A", "a"))
    assert not is_parsed(tree)


def test_sentences_without_a_parse():
    parser = RelativeFrequencyParser.of(parse_trees("(TOP (S (A a) (B b)))"), TreeTransform(root="TOP"), rare=0)
    trees = parser.predict([["b", "a"], ["a", "b"], ["a"]])
    assert trees == [("TOP", ("B", "b"), ("A", "a")), ("TOP", ("S", ("A", "a"), ("B", "b"))), ("TOP", ("A", "a"))]
    assert [is_parsed(tree) for tree in trees] == [False, True, False]


def test_rows():
    tree = ("S", ("A", "a"), ("S", ("A", "a"), ("B", "b")))
    rows = rows_of_tree(tree, {"S": 2, "A": 0, "B": 1})
    assert rows.tolist() == [[2, 0, 3], [0, 0, 1], [2, 1, 3], [0, 1, 2], [1, 2, 3]]
    assert tree_of_rows(rows, ["A", "B", "S"], ["a", "a", "b"]) == tree
    assert rows_of_tree(tree, {}).tolist()[0] == [-1, 0, 3]


def test_generated_treebank():
    bank = make_treebank(400)
    parser = RelativeFrequencyParser.of(bank.trees[:300])
    scores = parseval(bank.trees[300:], parser.predict(bank.words[300:]))
    assert scores.f1 > 0.8


@pytest.mark.slow
def test_treebank_sample(data_dir):
    trees = [tree for tree in treebank_sample(data_dir) if len(words_of(TreeTransform().cleaned(tree))) <= 40]
    parser = RelativeFrequencyParser.of(trees[:-400], TreeTransform(horizontal=1))
    gold = [parser.transform.cleaned(tree) for tree in trees[-400:]]
    scores = parseval(gold, parser.predict([words_of(tree) for tree in gold]))
    assert 0.70 < scores.f1 < 0.80
