"""Files: readers that say where a file is wrong, writers that leave no half-written file behind."""

from partwise._core import Sentences
from partwise.io.columns import parse_columns, read_columns, write_columns
from partwise.io.conllu import (
    ConlluReader,
    ConlluSentence,
    ConlluSentences,
    make_sentence,
    read_conllu,
    read_conllx,
    write_conllu,
    write_conllx,
)
from partwise.io.errors import FormatError
from partwise.io.files import atomic_write, read_bytes, read_text

__all__ = [
    "ConlluReader",
    "ConlluSentence",
    "ConlluSentences",
    "FormatError",
    "Sentences",
    "atomic_write",
    "make_sentence",
    "parse_columns",
    "read_bytes",
    "read_columns",
    "read_conllu",
    "read_conllx",
    "read_text",
    "write_columns",
    "write_conllu",
    "write_conllx",
]
