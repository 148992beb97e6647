"""Constituent trees: cleaning, Chomsky normal form and back, and grammars: of a treebank or of rules."""

from partwise.io.trees import FlatTree, clean_tree, is_parsed, leaves, words_of
from partwise.models.constituents.treebank.grammar import TreebankGrammar, read_off
from partwise.models.constituents.treebank.relative_frequency import RelativeFrequencyParser, relative_frequencies
from partwise.models.constituents.treebank.rules import grammar_of_rules, read_rules
from partwise.models.constituents.treebank.transform import TreeTransform

__all__ = [
    "FlatTree",
    "RelativeFrequencyParser",
    "TreeTransform",
    "TreebankGrammar",
    "clean_tree",
    "grammar_of_rules",
    "is_parsed",
    "leaves",
    "read_off",
    "read_rules",
    "relative_frequencies",
    "words_of",
]
