"""Which columns of an Arrow table a fitted model reads, and how: one class per kind of model.

`INPUTS` lists the classes by the kind of model file (`partwise.model_files.KINDS`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from partwise.io.trees import BRACKETS
from partwise.model_files import kind_of
from partwise.tables import arrow_columns
from partwise.tables.answers import WORD_FIELDS, Estimator
from partwise.tables.arrow_columns import is_list, is_number, is_text, is_words
from partwise.tables.errors import TableError


class Input(ABC):
    """The columns that a model reads.

    Parameters
    ----------
    model : a fitted estimator
    columns : their names, in the model's order; None: those that fit, where that leaves no choice
    """

    #: What the columns may be, for messages.
    wanted: str

    def __init__(self, model: Estimator, columns: Sequence[str] | None) -> None:
        self.model = model
        self.given = None if columns is None else list(columns)

    def choose(self, schema: pa.Schema) -> list[str]:
        """Return the columns of a table that are read; TableError if they are missing or of an unsupported type."""
        names = self._guess(schema) if self.given is None else self.given
        if names is None:
            there = ", ".join(f"{field.name!r} ({field.type})" for field in list(schema)[:20]) or "none"
            raise TableError(f"name the columns that the model reads ({self.wanted}); there are {there}")
        for name in names:
            count = schema.names.count(name)
            if count != 1:
                raise TableError("two columns of this name" if count else missing_column(schema.names), name)
        kinds = [schema.field(name).type for name in names]
        if pa.null() not in kinds:  # a column of nulls, or of an empty frame
            self._check(names, kinds)
        return names

    @staticmethod
    def _only(schema: pa.Schema, fits: Callable[[pa.DataType], bool], count: int) -> list[str] | None:
        """Return the columns of fitting types, if there are as many as needed."""
        found = [field.name for field in schema if fits(field.type)]
        return found if len(found) == count else None

    @abstractmethod
    def _guess(self, schema: pa.Schema) -> list[str] | None:
        """Return the columns, where types or names leave no choice."""

    @abstractmethod
    def _check(self, names: list[str], kinds: list[pa.DataType]) -> None:
        """Raise TableError for columns that cannot be read."""

    @abstractmethod
    def read(self, names: list[str], columns: list[pa.Array]) -> Any:
        """Return X of `predict`, from arrays without null rows."""

    def _check_one(self, names: list[str]) -> None:
        if len(names) != 1:
            raise TableError(f"the model reads one column ({self.wanted}), got {len(names)}: {', '.join(names)}")

    def _check_types(self, names: list[str], kinds: list[pa.DataType], fits: Callable[[pa.DataType], bool]) -> None:
        for name, kind in zip(names, kinds, strict=True):
            if not fits(kind):
                raise TableError(f"is of type {kind}, expected {self.wanted}", name)


class TemplateInput(Input):
    """A list of strings per column of a tagger's template."""

    def __init__(self, model: Estimator, columns: Sequence[str] | None) -> None:
        super().__init__(model, columns)
        self.n_columns: int = model.template_.n_columns
        self.wanted = "list of strings" + (", or a string of words" if self.n_columns == 1 else "")

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        found = self._only(schema, is_words, self.n_columns)
        return self._only(schema, is_text, 1) if found is None and self.n_columns == 1 else found

    def _check(self, names: list[str], kinds: list[pa.DataType]) -> None:
        n = self.n_columns
        if len(names) < n:
            raise TableError(f"the model reads {n} columns ({self.wanted}), got {len(names)}: {', '.join(names)}")
        self._check_types(names, kinds, lambda kind: is_words(kind) or (n == 1 and is_text(kind)))

    def read(self, names: list[str], columns: list[pa.Array]) -> Any:
        return arrow_columns.sentences(names[: self.n_columns], columns[: self.n_columns])


class ItemsInput(Input):
    """A list per row: of attributes, or of numbers, for each position of a tagger without a template."""

    def __init__(self, model: Estimator, columns: Sequence[str] | None) -> None:
        super().__init__(model, columns)
        self.named = model.attributes_ is not None
        self.wanted = "list of lists of strings, of maps or of structs"
        if not self.named:
            self.wanted = f"list of lists of {model.n_features_in_} numbers"

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        return self._only(schema, self._fits, 1)

    def _fits(self, kind: pa.DataType) -> bool:
        if not is_list(kind):
            return False
        inner = kind.value_type
        return _is_item(inner) if self.named else is_list(inner) and is_number(inner.value_type)

    def _check(self, names: list[str], kinds: list[pa.DataType]) -> None:
        self._check_one(names)
        self._check_types(names, kinds, self._fits)

    def read(self, names: list[str], columns: list[pa.Array]) -> Any:
        if self.named:
            return arrow_columns.named_items(names[0], columns[0])
        return arrow_columns.matrices(names[0], columns[0], self.model.n_features_in_)


class AttributesInput(Input):
    """One column of named attributes, for classifiers."""

    wanted = "list of strings, map or struct"

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        return self._only(schema, _is_item, 1)

    def _check(self, names: list[str], kinds: list[pa.DataType]) -> None:
        self._check_one(names)
        self._check_types(names, kinds, _is_item)

    def read(self, names: list[str], columns: list[pa.Array]) -> Any:
        return arrow_columns.items(names[0], columns[0])


class NumbersInput(Input):
    """A column per feature, or one column of lists of numbers or of maps, for classifiers."""

    def __init__(self, model: Estimator, columns: Sequence[str] | None) -> None:
        super().__init__(model, columns)
        self.width = int(model.n_features_in_)
        self.wanted = f"{self.width} columns of numbers, or one of lists of {self.width} numbers or maps index: number"
        # A model of svmlight rows counts as its training file did, others as matrices do.
        settings = getattr(model, "input_settings_", None)
        self.first = 0 if settings is None or settings.get("zero_based") else 1

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        named = getattr(self.model, "feature_names_in_", None)
        if named is not None and set(named) <= set(schema.names):
            return [str(name) for name in named]
        return self._only(schema, _is_vector, 1) or self._only(schema, is_number, self.width)

    def _check(self, names: list[str], kinds: list[pa.DataType]) -> None:
        if len(names) == 1 and _is_vector(kinds[0]):
            return
        self._check_types(names, kinds, is_number)
        if len(names) != self.width:
            raise TableError(f"the model has {self.width} features, got {len(names)} columns of numbers")

    def read(self, names: list[str], columns: list[pa.Array]) -> Any:
        if pa.types.is_map(columns[0].type):
            return arrow_columns.sparse_matrix(names[0], columns[0], self.width, self.first)
        if is_list(columns[0].type):
            return arrow_columns.matrix(names[0], columns[0], self.width)
        rows = [arrow_columns.numbers(name, column) for name, column in zip(names, columns, strict=True)]
        return np.column_stack(rows)


class WordsInput(Input):
    """A dependency parser's fields of words."""

    wanted = "columns form, lemma, upos, xpos, feats of lists of strings, or one of lists of words or of structs"

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        named = [name for name in WORD_FIELDS if name in schema.names]
        return named if "form" in named else self._only(schema, _is_sentence, 1)

    def _check(self, names: list[str], kinds: list[pa.DataType]) -> None:
        if len(names) == 1:
            self._check_types(names, kinds, _is_sentence)
            return
        for name, kind in zip(names, kinds, strict=True):
            if name not in WORD_FIELDS:
                raise TableError(f"is not one of {', '.join(WORD_FIELDS)}", name)
            self._check_types([name], [kind], is_words)

    def read(self, names: list[str], columns: list[pa.Array]) -> Any:
        if len(names) == 1:
            words = is_words(columns[0].type)
            return (arrow_columns.word_lists if words else arrow_columns.named_items)(names[0], columns[0])
        table = arrow_columns.sentences(names, columns)  # which compares lengths
        return [[dict(zip(names, word, strict=True)) for word in table[i]] for i in range(len(table))]


class PhraseInput(Input):
    """One column of words, for parsers of phrases."""

    wanted = "list of strings, or a string of words"

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        return self._only(schema, is_words, 1) or self._only(schema, is_text, 1)

    def _check(self, names: list[str], kinds: list[pa.DataType]) -> None:
        self._check_one(names)
        self._check_types(names, kinds, lambda kind: is_words(kind) or is_text(kind))

    def read(self, names: list[str], columns: list[pa.Array]) -> Any:
        found = arrow_columns.word_lists(names[0], columns[0])
        return [[word.translate(BRACKETS) for word in words] for words in found]


def _is_item(kind: pa.DataType) -> bool:
    return is_words(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind)


def _is_vector(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return pa.types.is_integer(kind.key_type) and is_number(kind.item_type)
    return is_list(kind) and is_number(kind.value_type)


def _is_sentence(kind: pa.DataType) -> bool:
    return is_words(kind) or (is_list(kind) and pa.types.is_struct(kind.value_type))


def missing_column(names: Sequence[str]) -> str:
    """Say that a column is missing, and which there are."""
    return f"there is no such column; there are {', '.join(map(repr, names[:20])) or 'no columns'}"


def input_of(model: Estimator, columns: Sequence[str] | None) -> Input:
    """Return the input of a fitted model, of a kind that `answers_of` knows."""
    kind = kind_of(model)
    if kind in ("tagger", "segment"):
        return (ItemsInput if model.template_ is None else TemplateInput)(model, columns)
    if kind == "maxent":
        return (NumbersInput if model._model.reader is None else AttributesInput)(model, columns)
    return (WordsInput if kind == "dep" else PhraseInput)(model, columns)
