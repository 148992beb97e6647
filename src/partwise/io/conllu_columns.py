"""Columns of CoNLL-U by name: what models read and what they fill.

A column has its name in the format, in upper or lower case: `form`, `lemma`, `upos`, `xpos`, `feats`, `deprel`, `misc`.
FEATS and MISC are lists of pairs, and the value of one key of them is a column, too: `feats.Case`, `misc.SpaceAfter`;
`_` where a word does not have the key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from partwise.io.conllu_sentence import COLUMNS, FEATS, LEMMA, MISC, UPOS, XPOS, ConlluSentence
from partwise.io.errors import FormatError

BLANK = "_"
#: Columns that models may look at; the others belong to a tree.
READABLE = ("form", "lemma", "upos", "xpos", "feats", "deprel", "misc")
#: The name of a feature, such as Case or Number[psor].
KEY = re.compile(r"[^\s=|.,\[\]+-]+(?:\[[^\s=|.,\[\]]+\])?")


@dataclass(frozen=True)
class Column:
    """A column by its number, or the values of one key in FEATS or MISC."""

    number: int
    key: str | None = None

    @classmethod
    def named(cls, text: str) -> Column:
        """The column of this name; ValueError if there is none, or none that a model can look at."""
        if not isinstance(text, str):
            raise ValueError(f"there is no column {text!r} to look at: columns have names")
        name, dot, key = text.strip().partition(".")
        name = name.lower()
        if name not in READABLE:
            close = difflib.get_close_matches(name, READABLE, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(READABLE)}, feats.KEY, misc.KEY"
            raise ValueError(f"there is no column {text.strip()!r} to look at: {hint}")
        number = COLUMNS.index(name)
        if not dot:
            return cls(number)
        if number not in (FEATS, MISC):
            raise ValueError(f"column {text.strip()!r}: {name} is no list of keys and values, as feats and misc are")
        if not KEY.fullmatch(key):
            raise ValueError(f"column {text.strip()!r}: {key!r} is not a key")
        return cls(number, key)

    @property
    def base(self) -> str:
        """The name of the whole column."""
        return COLUMNS[self.number]

    @property
    def name(self) -> str:
        return self.base if self.key is None else f"{self.base}.{self.key}"

    def put(self, sentence: ConlluSentence, values: Sequence[str]) -> ConlluSentence:
        """The sentence with these values, one per word; `_` takes a key away."""
        if self.key is not None:
            if len(values) != len(sentence):
                raise ValueError(f"{len(values)} values of {self.name} for a sentence of {len(sentence)} words")
            cells = sentence.column(self.number)
            values = [self._with_key(cell, value) for cell, value in zip(cells, values, strict=True)]
        return sentence.with_columns({self.number: values})

    def _with_key(self, cell: str, value: str) -> str:
        entries = [] if cell in (BLANK, "") else cell.split("|")
        own = f"{self.key}="
        rest = [entry for entry in entries if not entry.startswith(own)]
        if value != BLANK:
            rest.append(own + value)
            if self.number == FEATS:
                rest.sort(key=_feature_order)
        return "|".join(rest) or BLANK


def parse_columns_list(text: str | Iterable[str]) -> tuple[Column, ...]:
    """Columns of a list such as "form,upos,feats.Case"; ValueError for one that is none, or comes twice."""
    if not isinstance(text, Iterable):
        raise ValueError(f"columns must be names as in 'form,upos', got {text!r}")
    names = text.split(",") if isinstance(text, str) else list(text)
    found = tuple(Column.named(name) for name in names)
    for k, column in enumerate(found):
        if column in found[:k]:
            raise ValueError(f"column {column.name!r} is there twice")
    if not found:
        raise ValueError("there are no columns to look at")
    return found


def column_values(sentences: Iterable[ConlluSentence], columns: Sequence[Column]) -> list[list[tuple[str, ...]]]:
    """The values of these columns, a tuple per word, for each sentence.

    FormatError, with the line of the word, where FEATS is no list of keys and values and one of its keys is asked for.
    """
    known: dict[str, Mapping[str, str]] = {}
    found = []
    for sentence in sentences:
        rows = []
        for word, fields in enumerate(sentence.fields(), 1):
            row = []
            for column in columns:
                cell = fields[column.number]
                if column.key is not None:
                    pairs = _pairs(cell, column.number, known, sentence, word)
                    cell = pairs.get(column.key, BLANK)
                row.append(cell)
            rows.append(tuple(row))
        found.append(rows)
    return found


def _pairs(
    cell: str, number: int, known: dict[str, Mapping[str, str]], sentence: ConlluSentence, word: int
) -> Mapping[str, str]:
    if number == MISC:  # anything goes there
        return dict(entry.split("=", 1) for entry in reversed(cell.split("|")) if "=" in entry)
    if cell not in known:
        known[cell] = feats_at(cell, sentence, word)
    return known[cell]


def feats_at(cell: str, sentence: ConlluSentence, word: int) -> dict[str, str]:
    """The features of a word (counted from 1) of a sentence; FormatError with its line."""
    try:
        return split_feats(cell)
    except ValueError as error:
        raise FormatError(str(error), sentence.path, sentence.line_of(word)) from None


def split_feats(text: str) -> dict[str, str]:
    """Features by name. ValueError unless the text is `_` or a list such as ``Case=Nom|Number=Sing``."""
    if text in (BLANK, ""):
        return {}
    found: dict[str, str] = {}
    for entry in text.split("|"):
        key, equals, value = entry.partition("=")
        if not (key and equals and value):
            raise ValueError(f"FEATS {text!r} is no list of features: {entry!r} is not KEY=VALUE")
        if key in found:
            raise ValueError(f"FEATS {text!r} has {key} twice")
        found[key] = value
    return found


def join_feats(features: Mapping[str, str]) -> str:
    """FEATS of features by name, in the format's order; `_` for none."""
    return "|".join(sorted((f"{key}={value}" for key, value in features.items()), key=_feature_order)) or BLANK


def _feature_order(entry: str) -> tuple[str, str]:
    key = entry.partition("=")[0]
    return key.lower(), key


def is_blank(sentences: Iterable[ConlluSentence], column: Column) -> bool:
    """Whether a column in which every word of a tagged text has a value has none here; in others a blank may be one."""
    if column.number not in (LEMMA, UPOS, XPOS):
        return False
    return all(value == BLANK for sentence in sentences for value in sentence.column(column.number))


def has_value(sentences: Iterable[ConlluSentence], column: Column) -> bool:
    """Whether a word has something else than a blank there."""
    return any(value != BLANK for each in sentences for (value,) in column_values([each], [column])[0])
