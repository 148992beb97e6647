"""Which columns of an Arrow table a fitted model reads, and how: `input_of` chooses the class for a model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from partwise.io.trees import BRACKETS
from partwise.model_files import kind_of
from partwise.tables import TableError, arrow_columns
from partwise.tables.answers import WORD_FIELDS, Estimator
from partwise.tables.arrow_columns import is_list, is_number, is_text, is_words

#: A test of a column's type.
Test = Callable[[pa.DataType], bool]


class Input(ABC):
    """The columns that a model reads: those given, or those that fit; `wanted` says what they may be."""

    def __init__(self, columns: Sequence[str] | None, wanted: str) -> None:
        self.given = None if columns is None else list(columns)
        self.wanted = wanted

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
        kinds = {name: schema.field(name).type for name in names}
        if pa.null() not in kinds.values():  # a column of nulls, or of an empty frame
            self._check(names, kinds)
        return names

    @abstractmethod
    def _guess(self, schema: pa.Schema) -> list[str] | None:
        """Return the columns, where types or names leave no choice."""

    @abstractmethod
    def _check(self, names: list[str], kinds: dict[str, pa.DataType]) -> None:
        """Raise TableError for columns that cannot be read."""

    @abstractmethod
    def read(self, names: list[str], columns: list[pa.Array]) -> object:
        """Return X of `predict`, from arrays without null rows."""

    def _check_types(self, kinds: dict[str, pa.DataType], *tests: Test) -> None:
        for name, kind in kinds.items():
            if not any(test(kind) for test in tests):
                raise TableError(f"is of type {kind}, expected {self.wanted}", name)


class ColumnInput(Input):
    """One column whose type passes one of the tests; by default the only column that passes the first of them."""

    count = 1

    def __init__(
        self, columns: Sequence[str] | None, wanted: str, tests: Sequence[Test], read: Callable[[str, pa.Array], object]
    ) -> None:
        super().__init__(columns, wanted)
        self.tests, self.read_column = tests, read

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        return next(filter(None, (_only(schema, test, self.count) for test in self.tests)), None)

    def _check(self, names: list[str], kinds: dict[str, pa.DataType]) -> None:
        if len(names) != 1:
            raise TableError(f"the model reads one column ({self.wanted}), got {len(names)}: {', '.join(names)}")
        self._check_types(kinds, *self.tests)

    def read(self, names: list[str], columns: list[pa.Array]) -> object:
        return self.read_column(names[0], columns[0])


class TemplateInput(ColumnInput):
    """A list of strings per column of a tagger's template."""

    def __init__(self, columns: Sequence[str] | None, count: int) -> None:
        wanted = "list of strings" + (", or a string of words" if count == 1 else "")
        super().__init__(columns, wanted, (is_words, is_text)[: 2 if count == 1 else 1], arrow_columns.word_lists)
        self.count = count

    def _check(self, names: list[str], kinds: dict[str, pa.DataType]) -> None:
        if len(names) < self.count:
            what = f"the model reads {self.count} columns ({self.wanted})"
            raise TableError(f"{what}, got {len(names)}: {', '.join(names)}")
        self._check_types(kinds, *self.tests)

    def read(self, names: list[str], columns: list[pa.Array]) -> object:
        return arrow_columns.sentences(names[: self.count], columns[: self.count])


class NumbersInput(Input):
    """A column per feature, or one column of lists of numbers or of maps, for classifiers."""

    def __init__(self, model: Estimator, columns: Sequence[str] | None) -> None:
        n = self.width = int(model.n_features_in_)
        super().__init__(columns, f"{n} columns of numbers, or one of lists of {n} numbers or maps index: number")
        self.feature_names = getattr(model, "feature_names_in_", None)
        # A model trained on an svmlight file counts columns as the file does, other models from 0.
        settings = getattr(model, "input_settings_", None)
        self.first = 0 if settings is None or settings.get("zero_based") else 1

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        if self.feature_names is not None and set(self.feature_names) <= set(schema.names):
            return list(map(str, self.feature_names))
        return _only(schema, _is_vector, 1) or _only(schema, is_number, self.width)

    def _check(self, names: list[str], kinds: dict[str, pa.DataType]) -> None:
        if len(names) == 1 and _is_vector(kinds[names[0]]):
            return
        self._check_types(kinds, is_number)
        if len(names) != self.width:
            raise TableError(f"the model has {self.width} features, got {len(names)} columns of numbers")

    def read(self, names: list[str], columns: list[pa.Array]) -> object:
        if pa.types.is_map(columns[0].type):
            return arrow_columns.sparse_matrix(names[0], columns[0], self.width, self.first)
        if is_list(columns[0].type):
            return arrow_columns.matrix(names[0], columns[0], self.width)
        return np.column_stack(list(map(arrow_columns.numbers, names, columns)))


class WordsInput(Input):
    """A dependency parser's fields of words."""

    def _guess(self, schema: pa.Schema) -> list[str] | None:
        named = [name for name in WORD_FIELDS if name in schema.names]
        return named if "form" in named else _only(schema, _is_sentence, 1)

    def _check(self, names: list[str], kinds: dict[str, pa.DataType]) -> None:
        odd = [name for name in names if name not in WORD_FIELDS] if len(names) > 1 else []
        if odd:
            raise TableError(f"is not one of {', '.join(WORD_FIELDS)}", odd[0])
        self._check_types(kinds, _is_sentence if len(names) == 1 else is_words)

    def read(self, names: list[str], columns: list[pa.Array]) -> object:
        if len(names) == 1:
            words = is_words(columns[0].type)
            return (arrow_columns.word_lists if words else arrow_columns.named_items)(names[0], columns[0])
        table = arrow_columns.sentences(names, columns)  # which compares lengths
        return [[dict(zip(names, word, strict=True)) for word in table[i]] for i in range(len(table))]


def _only(schema: pa.Schema, test: Test, count: int) -> list[str] | None:
    """Return the columns whose types pass a test, if there are as many as needed."""
    found = [field.name for field in schema if test(field.type)]
    return found if len(found) == count else None


def _is_item(kind: pa.DataType) -> bool:
    return is_words(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind)


def _is_vector(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return pa.types.is_integer(kind.key_type) and is_number(kind.item_type)
    return _is_list_of(is_number)(kind)


def _is_sentence(kind: pa.DataType) -> bool:
    return is_words(kind) or _is_list_of(pa.types.is_struct)(kind)


def _is_list_of(test: Test) -> Test:
    return lambda kind: is_list(kind) and test(kind.value_type)


def _phrase_words(column: str, array: pa.Array) -> list[list[str]]:
    """Return the words of each row as trees have them, without brackets."""
    return [[word.translate(BRACKETS) for word in words] for words in arrow_columns.word_lists(column, array)]


def missing_column(names: Sequence[str]) -> str:
    """Say that a column is missing, and which there are."""
    return f"there is no such column; there are {', '.join(map(repr, names[:20])) or 'no columns'}"


def input_of(model: Estimator, columns: Sequence[str] | None) -> Input:
    """Return the input of a fitted model, of a kind that `answers_of` knows."""
    kind = kind_of(model)
    if kind == "dep":
        fields = "columns form, lemma, upos, xpos, feats of lists of strings, or one of lists of words or of structs"
        return WordsInput(columns, fields)
    if kind == "cfg":
        return ColumnInput(columns, "list of strings, or a string of words", (is_words, is_text), _phrase_words)
    if kind == "maxent":
        if model._model.reader is None:
            return NumbersInput(model, columns)
        return ColumnInput(columns, "list of strings, map or struct", [_is_item], arrow_columns.items)
    if model.template_ is not None:
        return TemplateInput(columns, model.template_.n_columns)
    if model.attributes_ is not None:
        wanted = "list of lists of strings, of maps or of structs"
        return ColumnInput(columns, wanted, [_is_list_of(_is_item)], arrow_columns.named_items)
    n = model.n_features_in_
    tests, read = [_is_list_of(_is_list_of(is_number))], partial(arrow_columns.matrices, width=n)
    return ColumnInput(columns, f"list of lists of {n} numbers", tests, read)
