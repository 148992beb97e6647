"""Reading a grammar off a treebank: rules, lexicon and classes of rare words."""

import numpy as np
import pytest

from partwise.datasets import make_treebank
from partwise.io import parse_trees
from partwise.models.constituents.treebank import TreeTransform, read_off, words_of
from partwise.models.constituents.treebank.grammar import WordClasses

CATS = """(S (NP (D the) (N cat)) (VP (V sat)))
(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))
(S (NP (D the) (N cat)) (VP (V sat)))"""


def normal(text=CATS, **settings):
    return [TreeTransform(**settings).binary(tree) for tree in parse_trees(text)]


def rules_of(grammar):
    names = [" ".join(grammar.symbols[k] for k in rule) for rule in grammar.rules]
    return dict(zip(names, grammar.rule_counts.tolist(), strict=True))


def lexicon_of(grammar):
    terminals = grammar.words + grammar.classes
    names = [(grammar.symbols[a], terminals[b]) for a, b in grammar.lexical]
    return dict(zip(names, grammar.lexical_counts.tolist(), strict=True))


def test_counts():
    grammar = read_off(normal(), rare=0)
    assert grammar.symbols == ("D", "N", "NP", "S", "V", "VP", "VP+V")
    assert rules_of(grammar) == {"NP D N": 4, "S NP VP+V": 2, "S NP VP": 1, "VP V NP": 1}
    assert [grammar.symbols[k] for k in grammar.roots] == ["S"]
    assert grammar.root_counts.tolist() == [3]
    assert lexicon_of(grammar) == {
        ("D", "the"): 3, ("D", "a"): 1, ("N", "cat"): 3, ("N", "dog"): 1, ("V", "saw"): 1, ("VP+V", "sat"): 2
    }  # fmt: skip
    assert grammar.classes == ()
    assert grammar.terminals(["a", "bird", "sat"]).tolist() == [0, -1, 3]
    with pytest.raises(ValueError, match=r"sentence 4: the word 'bird' \(number 2\) is not in the grammar's lexicon"):
        grammar.check_words(["a", "bird", "sat"], "sentence 4")


def test_rare_words_count_as_their_class():
    grammar = read_off(normal(), rare=1)
    assert grammar.words == ("cat", "sat", "the")
    assert grammar.classes == ("lower", "any")
    assert lexicon_of(grammar) == {
        ("D", "the"): 3, ("N", "cat"): 3, ("VP+V", "sat"): 2,
        ("D", "lower"): 1, ("N", "lower"): 1, ("V", "lower"): 1,
        ("D", "any"): 1, ("N", "any"): 1, ("V", "any"): 1,
    }  # fmt: skip
    # "dog" is rare, and no rare word has the class of "7"
    assert grammar.terminals(["the", "dog", "bird", "7"]).tolist() == [2, 3, 3, 4]


def test_without_rare_words_all_words_make_the_classes():
    grammar = read_off(normal() * 2, rare=1)
    assert grammar.words == ("a", "cat", "dog", "sat", "saw", "the")
    assert grammar.classes == ("lower", "any")
    assert lexicon_of(grammar)["N", "lower"] == 8


def test_random_trees(rng):
    trees = [TreeTransform(horizontal=1).binary(tree) for tree in make_treebank(60).trees]
    grammar = read_off(trees, rare=2)
    assert grammar.rules.dtype == np.int64
    assert (np.diff(grammar.rules[:, 0]) >= 0).all()
    assert len(np.unique(grammar.rules, axis=0)) == len(grammar.rules)
    # Each word is one lexical entry, each inner node one rule, each tree one root; "any" repeats all other classes.
    n_words = sum(len(words_of(tree)) for tree in trees)
    again = grammar.lexical_counts[grammar.lexical[:, 1] == grammar.n_terminals - 1].sum()
    classes = grammar.lexical_counts[grammar.lexical[:, 1] >= len(grammar.words)].sum() - again
    assert again == classes
    assert grammar.lexical_counts.sum() - again == n_words
    assert grammar.rule_counts.sum() == n_words - len(trees)
    assert grammar.root_counts.sum() == len(trees)
    # the grammar has every entry and rule of the training trees
    entries, rules = {(a, b) for a, b in grammar.lexical.tolist()}, grammar.rules.tolist()
    for tree in trees:
        numbers = iter(grammar.check_words(words_of(tree)).tolist())
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            parent = grammar.symbol_numbers[node[0]]
            if isinstance(node[1], str):
                assert (parent, next(numbers)) in entries
            else:
                children = (grammar.symbol_numbers[child[0]] for child in node[1:])
                assert [parent, *children] in rules
                waiting += [node[2], node[1]]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (("S", ("A", "a"), ("B", "b"), ("C", "c")), "tree 1 is not in normal form: 'S' must have"),
        (("S", ("NP", ("A", "a"))), "tree 1 is not in normal form: 'NP' must have"),
        (("S", ("A", "a"), "b"), "tree 1 is not in normal form: 'S' must have"),
    ],
)
def test_trees_outside_normal_form(tree, message):
    with pytest.raises(ValueError, match=message):
        read_off([("S", ("A", "a"), ("B", "b")), tree])


def test_no_trees():
    with pytest.raises(ValueError, match="no trees"):
        read_off([])
    with pytest.raises(ValueError, match="rare=-1"):
        read_off(normal(), rare=-1)


@pytest.mark.parametrize(
    ("word", "first", "expected"),
    [
        ("walking", False, "lower -ing"),
        ("Walking", False, "capital -ing"),
        ("Walking", True, "first capital -ing"),
        ("IBM", True, "capitals"),
        ("I", False, "capital"),
        ("iPod", False, "mixed"),
        ("1,234.5", False, "no letters number"),
        ("1980s", False, "lower digit -s"),
        ("747-trained", False, "lower digit hyphen -ed"),
        ("self-employed", False, "lower hyphen -ed"),
        ("-", False, "no letters"),
        ("%", True, "no letters"),
        ("ing", False, "lower"),
        ("Éclairs", False, "capital -s"),
        ("", False, "no letters"),
    ],
)
def test_classes_of_words(word, first, expected):
    assert WordClasses(frozenset(("ing", "ed", "s")))(word, first) == expected


def test_the_longest_suffix_counts():
    assert WordClasses(frozenset(("ing", "g", "ng")))("walking", False) == "lower -ing"


def test_the_first_word_has_its_own_classes():
    grammar = read_off(normal("(S (N Bo) (V ran) (N Cy))"), rare=1)
    assert grammar.classes == ("capital", "first capital", "lower", "any")
    assert lexicon_of(grammar)["N", "first capital"] == 1
    assert grammar.terminals(["Di", "Ed", "Di"]).tolist() == [1, 0, 0]


def test_suffixes_are_the_frequent_ones():
    words = ["walking", "talking", "TELLING", "rocked", "a1b", "ring"]
    # "ring" is too short to end in "ing".
    assert WordClasses.of(words, 3).suffixes == {"ing", "ng", "g"}
    assert WordClasses.of(words, 4).suffixes == {"ng", "g"}
