"""Files, vocabularies and attributes of tokens."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .support import Bytes, Floats, Ints

class ParseError(ValueError):
    """A text that is not in its format; `args` is (line, column, message), counted from 1, columns in characters."""

class Sentences:
    """A table of sentences x tokens x string columns, held once as UTF-8. Tables made from it share its text."""

    @staticmethod
    def parse(data: bytes, separator: str = "", n_columns: int = 0) -> Sentences:
        """A file of columns. separator "": runs of spaces and tabs; n_columns 0: as in the first line. ParseError."""
    @staticmethod
    def from_lists(sentences: Iterable[Iterable[str | Sequence[str]]]) -> Sentences:
        """Sentences of tokens, each a string or a tuple or list of as many strings as the others."""
    @staticmethod
    def from_packed(columns: Sequence[tuple[Bytes, Ints]], lengths: Ints) -> Sentences:
        """Columns of UTF-8 strings end to end, string t of each is bytes[offsets[t]:offsets[t + 1]]; ValueError."""
    def __len__(self) -> int: ...
    def __getitem__(self, i: int) -> list[Any]:
        """A sentence's tokens: strings if there is one column, else tuples."""
    @property
    def n_columns(self) -> int: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def lengths(self) -> Ints:
        """Number of tokens of each sentence."""
    def column(self, j: int) -> list[list[str]]:
        """The strings of one column, one list per sentence; -1 is the last column."""
    def take(self, indices: Ints) -> Sentences:
        """Some of the sentences, in this order."""
    def select(self, columns: Sequence[int]) -> Sentences:
        """Some of the columns, in this order."""
    def without(self, j: int) -> Sentences:
        """The same without one column."""
    def lines(self, i: int, ends: list[str]) -> str:
        """Sentence i as text: a line per token, its columns and `ends[t]` with tabs between, then a blank line."""

class Vocabulary:
    """Distinct names and their numbers. Names are kept as UTF-8, end to end; pickles by them."""

    def __init__(self, bytes: Bytes, offsets: Ints) -> None:
        """Name k is bytes[offsets[k]:offsets[k + 1]]. ValueError unless they are UTF-8 and distinct."""
    @staticmethod
    def learn(names: list[str], min_count: int = 1) -> tuple[Vocabulary, Ints]:
        """The names seen at least min_count times, the most frequent first (ties: as seen), and the ids of `names`."""
    @staticmethod
    def learn_items(
        items: list[Any], separator: str, min_count: int = 1
    ) -> tuple[Vocabulary, tuple[Ints, Ints, Floats | None], bool] | None:
        """The same from items, what `read_items` gives for them, and whether the separator joined anything."""
    def read_items(self, items: list[Any], separator: str) -> tuple[Ints, Ints, Floats | None] | None:
        """How many attributes each item has, their numbers (-1: unknown) and their values (None: all 1).

        Items are lists or tuples of names, and dicts from names to strings (joined by the separator), finite numbers
        (0 is left out), bools, and lists, tuples or dicts of the same. None if one is of another form.
        """
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
    def __getitem__(self, k: int) -> str: ...
    @property
    def bytes(self) -> Bytes: ...
    @property
    def offsets(self) -> Ints: ...
    def names(self) -> list[str]: ...
    def ids(self, names: list[str]) -> Ints:
        """Their numbers; -1 for unknown names."""
    def packed_ids(self, bytes: Bytes, offsets: Ints, n_jobs: int = 1) -> Ints:
        """The same for names that lie end to end."""
    def starts_with(self, prefixes: Sequence[str]) -> Bytes:
        """1 for the names that start with one of these."""

class NameCounts:
    """Counts names over blocks of text, each of which has a vocabulary of its own."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, block: Vocabulary, ids: Ints) -> None:
        """ids: the block's names in the order of the text, as numbers of its vocabulary; -1 is none."""
    def vocabulary(self, min_count: int = 1) -> Vocabulary:
        """The names counted min_count times, as `Vocabulary.learn` of all blocks at once would have them."""

class CodedColumn:
    """A column of strings or None: each token's number in a table of distinct strings."""

    @staticmethod
    def of(sentences: Sentences, j: int) -> CodedColumn: ...
    @staticmethod
    def from_list(strings: list[str | None]) -> CodedColumn:
        """One string or None per token."""
    def names(self) -> list[str]:
        """The distinct strings."""
    @property
    def codes(self) -> NDArray[np.int32]:
        """Each token's number in `names`; -1 for None."""
    def mapped(self, names: list[str | None]) -> CodedColumn:
        """The column with names[k] in place of the k-th distinct string."""

class Extractor:
    """Attributes of tokens by template lines.

    A line is (edge, pieces): edge lines give nothing at a sentence's first token. A piece is literal text, ("first",)
    or ("last",), which let the line give something at such tokens only, or ("cell", column, row, outside): the string
    of a column `row` tokens away; where it is None the line gives nothing. `outside` is what lies past the sentence's
    ends: None (the line gives nothing), True (_B-1, _B-2, ... before it, _B+1, ... after it) or a string.
    """

    def __init__(self, lines: list[tuple[bool, list[Any]]], columns: Sequence[CodedColumn], lengths: Ints) -> None: ...
    def learn(self, min_count: int = 1, n_jobs: int = 1) -> tuple[Vocabulary, tuple[Ints, Ints, int]]:
        """The attributes seen at least min_count times, as `Vocabulary.learn` orders them, and `look_up` with it."""
    def look_up(self, vocabulary: Vocabulary, n_jobs: int = 1) -> tuple[Ints, Ints, int]:
        """(row_ptr, attributes, number of unknown ones): token t has attributes[row_ptr[t]:row_ptr[t + 1]]; -1 is an
        unknown one."""
    def attributes(self, token: int) -> list[str]:
        """The attributes of one token, written out."""

def parse_svmlight(data: bytes, first: int = 1) -> tuple[Floats, Ints, Ints, Floats]:
    """(labels, row_ptr, columns, values) of rows `label index:value ...`, with indices from `first`. ParseError."""
