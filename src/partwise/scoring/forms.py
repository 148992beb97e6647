"""Which columns of a table a model reads, and which columns its answers are: one class per kind of model.

`FORMS` lists them by the kind of model file (`partwise.model_files.KINDS`).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from partwise.model_files import kind_of

from . import arrays
from .errors import ScoringError

#: A dependency parser's columns by name.
WORD_COLUMNS = ("form", "lemma", "upos", "xpos", "feats")


class Form(ABC):
    """How a fitted model reads tables.

    Parameters
    ----------
    model : a fitted estimator
    columns : names of the columns that it reads, in its order; None: those that fit, where that leaves no choice
    """

    #: What the columns may be, for messages.
    wanted: str

    def __init__(self, model: Any, columns: Sequence[str] | None) -> None:
        self.model = model
        self.columns = None if columns is None else list(columns)

    def choose(self, schema: Any) -> list[str]:
        """The columns of a table that are read; ScoringError if they are missing or of a type that cannot be read."""
        names = self.columns
        if names is None:
            names = self._find(schema)
        for name in names:
            count = schema.names.count(name)
            if count != 1:
                there = ", ".join(map(repr, schema.names[:20])) or "no columns"
                raise ScoringError(
                    f"there is no such column; there are {there}" if not count else "two columns of this name", name
                )
        kinds = [schema.field(name).type for name in names]
        if pa.null() not in kinds:  # a column of nulls, or of an empty frame
            self._check(names, kinds)
        return names

    def _only(self, schema: Any, fits: Callable[[pa.DataType], bool], count: int) -> list[str] | None:
        """The columns of fitting types, if there are as many as needed."""
        found = [field.name for field in schema if fits(field.type)]
        return found if len(found) == count else None

    def _find(self, schema: Any) -> list[str]:
        """Columns where none were named."""
        found = self._guess(schema)
        if found is None:
            there = ", ".join(f"{field.name!r} ({field.type})" for field in list(schema)[:20]) or "none"
            raise ScoringError(f"name the columns that the model reads ({self.wanted}); there are {there}")
        return found

    @abstractmethod
    def _guess(self, schema: Any) -> list[str] | None:
        """The columns, where types or names leave no choice."""

    @abstractmethod
    def _check(self, names: list[str], kinds: list[Any]) -> None:
        """ScoringError for columns that cannot be read."""

    @abstractmethod
    def read(self, names: list[str], columns: list[Any]) -> Any:
        """X of `predict`, from arrays without null rows."""

    @abstractmethod
    def fields(self, probabilities: bool) -> list[Any]:
        """(suffix of the name, type) of each column of answers."""

    @abstractmethod
    def answers(self, X: Any, probabilities: bool) -> list[Any]:
        """These columns."""

    def _refuse(self, name: str, kind: Any) -> None:
        raise ScoringError(f"is of type {kind}, expected {self.wanted}", name)

    def _needs_probabilities(self, method: str) -> None:
        if not hasattr(self.model, method):
            raise ScoringError(f"the loss {self.model.loss!r} gives no probabilities (log and softmax-margin do)")


def label_type(labels: Sequence[Any]) -> Any:
    """The Arrow type of labels; text where they are of several kinds."""
    try:
        kind = pa.array(labels).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.string()
    return kind if arrays.is_text(kind) or arrays.is_number(kind) else pa.string()


class LabelForm(Form):
    """Models that answer with labels out of `classes_`."""

    def __init__(self, model: Any, columns: Sequence[str] | None) -> None:
        super().__init__(model, columns)
        labels = model.classes_.tolist()
        self.kind = label_type(labels)
        self.as_text = arrays.is_text(self.kind) and not all(isinstance(each, str) for each in labels)
        self.number = {label: k for k, label in enumerate(labels)}


class TaggerForm(LabelForm):
    """Labels for every position of a row."""

    def __init__(self, model: Any, columns: Sequence[str] | None) -> None:
        super().__init__(model, columns)
        self.template = model.template_
        self.named = model.attributes_ is not None
        if self.template is not None:
            self.wanted = "list of strings" + (", or a string of words" if self.template.n_columns == 1 else "")
        else:
            self.wanted = (
                "list of lists of strings, of maps or of structs"
                if self.named
                else f"list of lists of {model.n_features_in_} numbers"
            )

    def _guess(self, schema: Any) -> list[str] | None:
        if self.template is None:
            return self._only(schema, self._fits, 1)
        n = self.template.n_columns
        found = self._only(schema, arrays.is_words, n)
        return self._only(schema, arrays.is_text, 1) if found is None and n == 1 else found

    def _fits(self, kind: Any) -> bool:
        if not arrays.is_list(kind):
            return False
        inner = kind.value_type
        if not self.named:
            return arrays.is_list(inner) and arrays.is_number(inner.value_type)
        return _is_item(inner)

    def _check(self, names: list[str], kinds: list[Any]) -> None:
        n = 1 if self.template is None else self.template.n_columns
        if len(names) < n or (self.template is None and len(names) > 1):
            raise ScoringError(f"the model reads {n} columns ({self.wanted}), got {len(names)}: {', '.join(names)}")
        for name, kind in zip(names, kinds, strict=True):
            if self.template is None:
                fits = self._fits(kind)
            else:
                fits = arrays.is_words(kind) or (n == 1 and arrays.is_text(kind))
            if not fits:
                self._refuse(name, kind)

    def read(self, names: list[str], columns: list[Any]) -> Any:
        if self.template is not None:
            n = self.template.n_columns
            return arrays.sentences(names[:n], columns[:n])
        if self.named:
            return arrays.named_items(names[0], columns[0])
        return arrays.matrices(names[0], columns[0], self.model.n_features_in_)

    def fields(self, probabilities: bool) -> list[Any]:
        found = [("", pa.list_(self.kind))]
        if probabilities:
            self._needs_probabilities("predict_marginals")
            found.append(("_probability", pa.list_(pa.float64())))
        return found

    def answers(self, X: Any, probabilities: bool) -> list[Any]:
        best = self.model.predict(X)
        shown = [[str(label) for label in row] for row in best] if self.as_text else best
        found = [pa.array(shown, type=pa.list_(self.kind))]
        if probabilities:
            rows = self.model.predict_marginals(X, output="array")
            place = self.number
            likely = [
                row[np.arange(len(row)), [place[label] for label in labels]] if len(row) else []
                for row, labels in zip(rows, best, strict=True)
            ]
            found.append(pa.array(likely, type=pa.list_(pa.float64())))
        return found


class ClassifierForm(LabelForm):
    """One label per row: a column per feature, or one column of lists or of maps; of named attributes, one column."""

    def __init__(self, model: Any, columns: Sequence[str] | None) -> None:
        super().__init__(model, columns)
        self.width = int(model.n_features_in_)
        self.wanted = f"{self.width} columns of numbers, or one of lists of {self.width} numbers or maps index: number"
        self.named = model._model.reader is not None
        if self.named:
            self.wanted = "list of strings, map or struct"
        # A model of svmlight rows counts as its training file did, others as matrices do.
        settings = getattr(model, "input_settings_", None)
        self.first = 0 if settings is None or settings.get("zero_based") else 1

    def _guess(self, schema: Any) -> list[str] | None:
        if self.named:
            return self._only(schema, _is_item, 1)
        named = getattr(self.model, "feature_names_in_", None)
        if named is not None and set(named) <= set(schema.names):
            return [str(name) for name in named]
        return self._only(schema, _is_vector, 1) or self._only(schema, arrays.is_number, self.width)

    def _check(self, names: list[str], kinds: list[Any]) -> None:
        if self.named:
            if len(names) != 1:
                raise ScoringError(f"the model reads one column ({self.wanted}), got {len(names)}: {', '.join(names)}")
            if not _is_item(kinds[0]):
                self._refuse(names[0], kinds[0])
            return
        if len(names) == 1 and _is_vector(kinds[0]):
            return
        for name, kind in zip(names, kinds, strict=True):
            if not arrays.is_number(kind):
                self._refuse(name, kind)
        if len(names) != self.width:
            raise ScoringError(f"the model has {self.width} features, got {len(names)} columns of numbers")

    def read(self, names: list[str], columns: list[Any]) -> Any:
        kind = columns[0].type
        if self.named:
            return arrays.items(names[0], columns[0])
        if pa.types.is_map(kind):
            return arrays.sparse_matrix(names[0], columns[0], self.width, self.first)
        if arrays.is_list(kind):
            return arrays.matrix(names[0], columns[0], self.width)
        rows = [arrays.numbers(name, column) for name, column in zip(names, columns, strict=True)]
        return np.column_stack(rows)

    def fields(self, probabilities: bool) -> list[Any]:
        found = [("", self.kind)]
        if probabilities:
            self._needs_probabilities("predict_proba")
            found.append(("_probability", pa.float64()))
        return found

    def answers(self, X: Any, probabilities: bool) -> list[Any]:
        labels = self.model.classes_.tolist()
        with warnings.catch_warnings():
            # The matrix has no names of columns: they were looked at when it was made.
            warnings.filterwarnings("ignore", message=".*valid feature names")
            if probabilities:
                likely = self.model.predict_proba(X)
                best = [labels[k] for k in likely.argmax(axis=1).tolist()]
            else:
                best = self.model.predict(X).tolist()
        shown = list(map(str, best)) if self.as_text else best
        found = [pa.array(shown, type=self.kind)]
        return [*found, pa.array(likely.max(axis=1))] if probabilities else found


def _is_item(kind: Any) -> bool:
    return arrays.is_words(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind)


def _is_vector(kind: Any) -> bool:
    if pa.types.is_map(kind):
        return pa.types.is_integer(kind.key_type) and arrays.is_number(kind.item_type)
    return arrays.is_list(kind) and arrays.is_number(kind.value_type)


class ParserForm(Form):
    """Heads of words, and names of the arcs."""

    wanted = "columns form, lemma, upos, xpos, feats of lists of strings, or one of lists of words or of structs"

    def _guess(self, schema: Any) -> list[str] | None:
        named = [name for name in WORD_COLUMNS if name in schema.names]
        return named if "form" in named else self._only(schema, _is_sentence, 1)

    def _check(self, names: list[str], kinds: list[Any]) -> None:
        several = len(names) > 1
        for name, kind in zip(names, kinds, strict=True):
            if several and name not in WORD_COLUMNS:
                raise ScoringError(f"is not one of {', '.join(WORD_COLUMNS)}", name)
            if not (arrays.is_words(kind) if several else _is_sentence(kind)):
                self._refuse(name, kind)

    def read(self, names: list[str], columns: list[Any]) -> Any:
        if len(names) == 1:
            if arrays.is_words(columns[0].type):
                return arrays.word_lists(names[0], columns[0])
            return arrays.named_items(names[0], columns[0])
        table = arrays.sentences(names, columns)  # which compares lengths
        return [[dict(zip(names, word, strict=True)) for word in table[i]] for i in range(len(table))]

    def fields(self, probabilities: bool) -> list[Any]:
        found = [("", pa.list_(pa.int32()))]
        if hasattr(self.model, "classes_"):
            found.append(("_relations", pa.list_(pa.string())))
        if probabilities:
            self._needs_probabilities("predict_marginals")
            found.append(("_probability", pa.list_(pa.float64())))
        return found

    def answers(self, X: Any, probabilities: bool) -> list[Any]:
        trees, named = self.model.predict(X), hasattr(self.model, "classes_")
        heads = [[word[0] for word in tree] for tree in trees] if named else [list(tree) for tree in trees]
        found = [pa.array(heads, type=pa.list_(pa.int32()))]
        if named:
            found.append(pa.array([[word[1] for word in tree] for tree in trees], type=pa.list_(pa.string())))
        if probabilities:
            rows = self.model.predict_marginals(X)
            likely = [row[np.arange(len(row)), own] if own else [] for row, own in zip(rows, heads, strict=True)]
            found.append(pa.array(likely, type=pa.list_(pa.float64())))
        return found


def _is_sentence(kind: Any) -> bool:
    return arrays.is_words(kind) or (arrays.is_list(kind) and pa.types.is_struct(kind.value_type))


class TreeForm(Form):
    """Trees of phrases in brackets."""

    wanted = "list of strings, or a string of words"

    def _guess(self, schema: Any) -> list[str] | None:
        return self._only(schema, arrays.is_words, 1) or self._only(schema, arrays.is_text, 1)

    def _check(self, names: list[str], kinds: list[Any]) -> None:
        if len(names) != 1:
            raise ScoringError(f"the model reads one column, got {len(names)}: {', '.join(names)}")
        if not (arrays.is_words(kinds[0]) or arrays.is_text(kinds[0])):
            self._refuse(names[0], kinds[0])

    def read(self, names: list[str], columns: list[Any]) -> Any:
        from partwise.io.trees import BRACKETS

        found = arrays.word_lists(names[0], columns[0])
        return [[word.translate(BRACKETS) for word in words] for words in found]

    def fields(self, probabilities: bool) -> list[Any]:
        if probabilities:
            raise ScoringError("probabilities are not available for trees of phrases")
        return [("", pa.string())]

    def answers(self, X: Any, probabilities: bool) -> list[Any]:
        from partwise.io import format_tree

        return [pa.array([format_tree(tree) for tree in self.model.predict(X)], type=pa.string())]


#: Forms by the kind of model file.
FORMS: dict[str, type[Form]] = {
    "cfg": TreeForm,
    "dep": ParserForm,
    "maxent": ClassifierForm,
    "segment": TaggerForm,
    "tagger": TaggerForm,
}


def form_of(model: Any, columns: Sequence[str] | None) -> Form:
    """The form of a fitted model."""
    kind = kind_of(model)
    if kind not in FORMS:
        raise ScoringError(f"tables are not available for {type(model).__name__}")
    return FORMS[kind](model, columns)
