"""Constituent trees: cleaning, Chomsky normal form and back, and the grammar of a treebank."""

from partwise.trees.cleaning import bare_label, clean_tree, common_root
from partwise.trees.grammar import TreebankGrammar, read_off
from partwise.trees.nodes import FlatTree, Tree, flat_tree, is_parsed, leaves, words_of
from partwise.trees.transform import TreeTransform
from partwise.trees.unknown import WordClasses

__all__ = [
    "FlatTree",
    "Tree",
    "TreeTransform",
    "TreebankGrammar",
    "WordClasses",
    "bare_label",
    "clean_tree",
    "common_root",
    "flat_tree",
    "is_parsed",
    "leaves",
    "read_off",
    "words_of",
]
