"""Constituent trees: cleaning, Chomsky normal form and back, and grammars: of a treebank or of rules."""

from partwise.models.constituents.treebank.grammar import TreebankGrammar, WordClasses, read_off
from partwise.models.constituents.treebank.relative_frequency import (
    Lexicon,
    Probabilities,
    RelativeFrequencyParser,
    relative_frequencies,
)
from partwise.models.constituents.treebank.rules import grammar_of_rules, read_rules
from partwise.models.constituents.treebank.transform import TreeTransform
from partwise.models.constituents.treebank.trees import (
    FlatTree,
    Tree,
    bare_label,
    check_tree,
    clean_tree,
    common_root,
    flat_tree,
    is_parsed,
    leaves,
    rows_of_tree,
    tree_of_rows,
    words_of,
)

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
