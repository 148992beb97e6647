"""Files: readers that say where a file is wrong, writers that leave no half-written file behind."""

from partwise.io.coded import CodedSequences, Sentences
from partwise.io.columns import parse_columns, read_columns, write_columns
from partwise.io.conllu import (
    ConlluReader,
    ConlluSentence,
    ConlluSentences,
    make_sentence,
    parse_conllu,
    read_conllu,
    read_conllx,
    write_conllu,
    write_conllx,
)
from partwise.io.costs import read_costs
from partwise.io.errors import FormatError
from partwise.io.files import atomic_write, read_bytes, read_text, unpack_limit
from partwise.io.items import parse_items, read_items, write_items
from partwise.io.svmlight import parse_svmlight, read_svmlight, write_svmlight
from partwise.io.trees import format_tree, iterate_trees, parse_trees, read_trees, write_trees

__all__ = [
    "CodedSequences", "ConlluReader", "ConlluSentence", "ConlluSentences", "FormatError", "Sentences", "atomic_write",
    "format_tree", "iterate_trees", "make_sentence", "parse_columns", "parse_conllu", "parse_items", "parse_svmlight",
    "parse_trees", "read_bytes", "read_columns", "read_conllu", "read_conllx", "read_costs", "read_items",
    "read_svmlight", "read_text", "read_trees", "unpack_limit", "write_columns", "write_conllu", "write_conllx",
    "write_items", "write_svmlight", "write_trees",
]  # fmt: skip
