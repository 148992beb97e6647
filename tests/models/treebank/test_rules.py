"""Parsing with grammars that users write as text."""

import re

import numpy as np
import pytest

from partwise.io import FormatError
from partwise.models.constituents.treebank import RelativeFrequencyParser, grammar_of_rules, read_rules

TOY = """%start S
S -> NP VP [1.0]      # a sentence
NP -> D N [0.5] | NP PP [0.25] | 'I' [0.25]
VP -> V NP [0.6] | VP PP [0.4]
PP -> P NP
D -> 'the' [3] | "a" [1]
N -> 'man' [.5] | 'park' [.3] | 'telescope' [.2]
V -> 'saw'
P -> 'in' [0.5] | 'with' [0.5]
"""


def test_rules():
    grammar = grammar_of_rules(TOY)
    assert grammar.symbols == ("D", "N", "NP", "P", "PP", "S", "V", "VP")
    assert [grammar.symbols[k] for k in grammar.roots] == ["S"]
    names = {" ".join(grammar.symbols[k] for k in rule) for rule in grammar.rules}
    assert names == {"S NP VP", "NP D N", "NP NP PP", "VP V NP", "VP VP PP", "PP P NP"}
    assert grammar.words == ("I", "a", "in", "man", "park", "saw", "telescope", "the", "with")
    assert grammar.classes == ()
    parser = RelativeFrequencyParser(grammar)
    sentence = "I saw the man in the park with a telescope"
    ((tree, value),) = parser.predict_with_log_probability([sentence.split()])
    # the five derivations differ only in the attachments, and all use the verb phrase's rule of 0.4 twice
    verb = 0.25 * 0.4 * 0.4 * 0.6 * (0.5 * 0.75 * 0.5) * (0.5 * 0.5 * 0.75 * 0.3) * (0.5 * 0.5 * 0.25 * 0.2)
    assert value == pytest.approx(np.log(verb))
    assert tree[2][0] == tree[2][1][0] == "VP"
    assert tree[2][1][1][1] == ("V", "saw")


def test_lines_of_the_same_rule_add_up_and_order_does_not_matter():
    lines = TOY.splitlines()
    assert all(np.array_equal(*pair) for pair in zip(arrays(lines), arrays(lines[::-1]), strict=True))
    doubled = grammar_of_rules([*lines, *lines[1:]])
    np.testing.assert_allclose(doubled.rule_counts, 2 * grammar_of_rules(TOY).rule_counts)


def arrays(lines):
    grammar = grammar_of_rules(lines)
    return grammar.rules, grammar.rule_counts, grammar.lexical, grammar.lexical_counts, grammar.roots


def test_several_starts_and_an_argument():
    grammar = grammar_of_rules("S -> A A\nA -> 'a'", start=["A", "S"])
    parser = RelativeFrequencyParser(grammar)
    assert parser.predict([["a"], ["a", "a"]]) == [("A", "a"), ("S", ("A", "a"), ("A", "a"))]
    (flat,) = parser.predict([["a", "a", "a"]])
    assert not flat.parsed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("S -> NP", 'the rule "S -> NP" is not in Chomsky normal form'),
        ("S -> A B C", 'the rule "S -> A B C" is not in Chomsky normal form'),
        ("S -> A 'b'", "the rule \"S -> A 'b'\" is not in Chomsky normal form"),
        ("S -> 'a' 'b'", "the rule \"S -> 'a' 'b'\" is not in Chomsky normal form"),
        ("S ->", 'the rule "S -> " is not in Chomsky normal form'),
        ("S -> A B |", 'the rule "S -> " is not in Chomsky normal form'),
        ("S = A B", "is not a rule"),
        ("-> A B", "is not a rule"),
        ("S T -> A B", "is not a rule"),
        ("S -> A B [x]", "[x] is not a weight"),
        ("S -> A B [0]", "[0] is not a weight"),
        ("S -> A B [-1]", "[-1] is not a weight"),
        ("S -> A B [inf]", "[inf] is not a weight"),
        ("S -> A B [nan]", "[nan] is not a weight"),
        ("S -> A B []", "[] is not a weight"),
        ("S -> A 'b", 'unexpected "\'"'),
        ("S -> A B ]", "unexpected ']'"),
        ("S -> A B | ''", "the empty word in"),
    ],
)
def test_malformed_lines(tmp_path, line, message):
    path = tmp_path / "rules.txt"
    path.write_text(f"%start S\n\n{line}\nA -> 'a'\nB -> 'b'\n")
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        read_rules(path)
    assert (error.value.path, error.value.line) == (str(path), 3)


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("S -> A A\nA -> 'a'", None, "no start symbol"),
        ("%start\nS -> A A\nA -> 'a'", None, "no start symbol"),
        ("", "S", "no words"),
        ("S -> S S", "S", "no words"),
        ("S -> A A\nA -> 'a'", "T", "the start symbol 'T' has no rules"),
        ("S -> A B\nA -> 'a'", "S", "the rule 'S -> A B': the symbol 'B' has no rules"),
        ("S -> A S\nA -> 'a'", "S", "no sentence can be derived from the start symbol 'S'"),
        ("S -> S A\nA -> 'a'", "S", "no sentence can be derived from the start symbol 'S'"),
    ],
)
def test_grammars_that_derive_nothing(tmp_path, text, start, message):
    with pytest.raises(ValueError, match=message):
        grammar_of_rules(text, start)
    path = tmp_path / "rules.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        read_rules(path, start)
    assert error.value.path == str(path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("%start S\n# \u2028 is no line's end\nA -> 'a'\nS -> A B\n", 4),
        ("A -> 'a'\n\n%start T\n", 3),
        ("A -> 'a'\n%start S\r\nS -> S A\r\n", 2),
    ],
)
def test_contradictory_lines_are_named(tmp_path, text, line):
    path = tmp_path / "rules.txt"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(FormatError) as error:
        read_rules(path)
    assert (error.value.path, error.value.line) == (str(path), line)


def test_words_outside_the_lexicon():
    parser = RelativeFrequencyParser(grammar_of_rules(TOY))
    with pytest.raises(ValueError, match=r"sentence 101: the word 'dog' \(number 4\) is not in the grammar's lexicon"):
        parser.predict([["I", "saw", "I"]] * 101 + [["I", "saw", "the", "dog"]])
    with pytest.raises(ValueError, match="sentence 1 has no words"):
        parser.predict([["I"], []])
    for words in ("I", ["I", 3]):
        with pytest.raises(ValueError, match="sentence 0 must be a list of words"):
            parser.predict([words])
