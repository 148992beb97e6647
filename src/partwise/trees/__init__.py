"""Constituent trees: cleaning, Chomsky normal form and back, and grammars: of a treebank or of rules."""

from partwise.trees.cleaning import bare_label, clean_tree, common_root
from partwise.trees.derivations import rows_of_tree, tree_of_rows
from partwise.trees.grammar import TreebankGrammar, read_off
from partwise.trees.nodes import FlatTree, Tree, check_tree, flat_tree, is_parsed, leaves, words_of
from partwise.trees.pcfg import Lexicon, Probabilities, relative_frequencies
from partwise.trees.relative_frequency import RelativeFrequencyParser
from partwise.trees.rules import grammar_of_rules, read_rules
from partwise.trees.transform import TreeTransform
from partwise.trees.unknown import WordClasses

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
