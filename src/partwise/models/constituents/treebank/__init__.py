"""Constituent trees: cleaning, Chomsky normal form and back, and grammars: of a treebank or of rules."""

from partwise.models.constituents.treebank.cleaning import bare_label, clean_tree, common_root
from partwise.models.constituents.treebank.derivations import rows_of_tree, tree_of_rows
from partwise.models.constituents.treebank.grammar import TreebankGrammar, read_off
from partwise.models.constituents.treebank.nodes import (
    FlatTree,
    Tree,
    check_tree,
    flat_tree,
    is_parsed,
    leaves,
    words_of,
)
from partwise.models.constituents.treebank.pcfg import Lexicon, Probabilities, relative_frequencies
from partwise.models.constituents.treebank.relative_frequency import RelativeFrequencyParser
from partwise.models.constituents.treebank.rules import grammar_of_rules, read_rules
from partwise.models.constituents.treebank.transform import TreeTransform
from partwise.models.constituents.treebank.unknown import WordClasses

__all__ = [
    "FlatTree",
    "Lexicon",
    "Probabilities",
    "RelativeFrequencyParser",
    "Tree",
    "TreeTransform",
    "TreebankGrammar",
    "WordClasses",
    "bare_label",
    "check_tree",
    "clean_tree",
    "common_root",
    "flat_tree",
    "grammar_of_rules",
    "is_parsed",
    "leaves",
    "read_off",
    "read_rules",
    "relative_frequencies",
    "rows_of_tree",
    "tree_of_rows",
    "words_of",
]
