"""Files, vocabularies and attributes of tokens."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partwise.support.arrays import Bytes, Floats, Ints

class ParseError(ValueError):
    """A text that is not in its format; `args` is (line, column, message), counted from 1, columns in characters."""

class Sentences:
    """A table of sentences x tokens x string columns. Tables made from it share its text."""

    @staticmethod
    def parse(data: bytes, separator: str = "", n_columns: int = 0) -> Sentences:
        """Read a file of columns; separator "": runs of spaces and tabs; n_columns 0: as in the first line."""
    @staticmethod
    def from_lists(sentences: Iterable[Iterable[str | Sequence[str]]]) -> Sentences:
        """Read sentences of tokens, each a string or a tuple or list of as many strings as the others."""
    @staticmethod
    def from_packed(columns: Sequence[tuple[Bytes, Ints]], lengths: Ints) -> Sentences:
        """Read columns of UTF-8: string t of each is bytes[offsets[t]:offsets[t + 1]]."""
    def __len__(self) -> int: ...
    def __getitem__(self, i: int) -> list[Any]:
        """Return a sentence's tokens: strings if there is one column, else tuples."""
    n_columns: Final[int]
    n_tokens: Final[int]
    lengths: Final[Ints]  # the number of tokens of each sentence
    def column(self, j: int) -> list[list[str]]:
        """Return the strings of one column, one list per sentence; -1 is the last column."""
    def take(self, indices: Ints) -> Sentences: ...
    def select(self, columns: Sequence[int]) -> Sentences: ...
    def without(self, j: int) -> Sentences: ...
    def lines(self, i: int, ends: list[str]) -> str:
        """Return sentence i as text: a line per token (columns, then `ends[t]`, with tabs), then a blank line."""

class Vocabulary:
    """Distinct names and their numbers."""

    def __init__(self, bytes: Bytes, offsets: Ints) -> None:
        """Read names: name k is bytes[offsets[k]:offsets[k + 1]]. Names must be UTF-8 and distinct."""
    @staticmethod
    def learn(names: list[str], min_count: int = 1) -> tuple[Vocabulary, Ints]:
        """Return names seen min_count times, the most frequent first (ties: as seen), and the ids of `names`."""
    @staticmethod
    def learn_items(
        items: list[Any], separator: str, min_count: int = 1
    ) -> tuple[Vocabulary, tuple[Ints, Ints, Floats | None], bool] | None:
        """Learn names from items; return `read_items` of them, and whether the separator joined anything."""
    def read_items(self, items: list[Any], separator: str) -> tuple[Ints, Ints, Floats | None] | None:
        """Return each item's number of attributes, their numbers (-1: unknown) and values (None: all 1).

        Items are lists or tuples of names, and dicts from names to strings (joined by the separator), finite numbers
        (0 is left out), bools, and lists, tuples or dicts of the same. The answer is None for an item of another form.
        """
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
    def __getitem__(self, k: int) -> str: ...
    bytes: Final[Bytes]
    offsets: Final[Ints]
    def names(self) -> list[str]: ...
    def ids(self, names: list[str]) -> Ints:
        """Return the numbers of names; -1 for unknown names."""
    def packed_ids(self, bytes: Bytes, offsets: Ints, n_jobs: int = 1) -> Ints: ...
    def starts_with(self, prefixes: Sequence[str]) -> Bytes:
        """Return 1 for names that start with one of these prefixes, else 0."""

class NameCounts:
    """Counts of names over blocks of text, each with its own vocabulary."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(self, block: Vocabulary, ids: Ints) -> None:
        """Add a block's names in the order of its text, as numbers of its vocabulary; -1 is ignored."""
    def vocabulary(self, min_count: int = 1) -> Vocabulary:
        """Return the `Vocabulary.learn` of all blocks together."""

class CodedColumn:
    """A column of strings or None: each token's number in a table of distinct strings."""

    @staticmethod
    def of(sentences: Sentences, j: int) -> CodedColumn: ...
    @staticmethod
    def from_list(strings: list[str | None]) -> CodedColumn: ...
    def names(self) -> list[str]: ...
    codes: Final[NDArray[np.int32]]  # each token's number in `names`; -1 for None
    def mapped(self, names: list[str | None]) -> CodedColumn:
        """Return the column with names[k] in place of the k-th distinct string."""

class Extractor:
    """Attributes of tokens by template lines.

    A line is (edge, pieces): edge lines give nothing at a sentence's first token. A piece is literal text, ("first",)
    or ("last",), which let the line give something at such tokens only, or ("cell", column, row, outside): the string
    of a column `row` tokens away; where it is None the line gives nothing. `outside` is what lies past the sentence's
    ends: None (the line gives nothing), True (_B-1, _B-2, ... before it, _B+1, ... after it) or a string.
    """

    def __init__(self, lines: list[tuple[bool, list[Any]]], columns: Sequence[CodedColumn], lengths: Ints) -> None: ...
    def learn(self, min_count: int = 1, n_jobs: int = 1) -> tuple[Vocabulary, tuple[Ints, Ints, int]]:
        """Return the `Vocabulary.learn` of all attributes, and `look_up` with it."""
    def look_up(self, vocabulary: Vocabulary, n_jobs: int = 1) -> tuple[Ints, Ints, int]:
        """Return (row_ptr, attributes, number of unknown attributes, which have the number -1)."""
    def attributes(self, token: int) -> list[str]:
        """Return the attributes of one token, written out."""

def parse_svmlight(data: bytes, first: int = 1) -> tuple[Floats, Ints, Ints, Floats]:
    """Return (labels, row_ptr, columns, values) of rows `label index:value ...`, with indices from `first`."""
