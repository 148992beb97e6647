"""Which columns of a table a model reads, and which columns its answers are: one class per kind of model.

`FORMS` lists them by the kind of model file (`partwise.model_files.KINDS`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from partwise.model_files import kind_of
from partwise.tables.files import arrays
from partwise.tables.files.errors import ScoringError
from partwise.tables.files.form import Form
from partwise.tables.files.parser_forms import ParserForm, TreeForm


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
        self.labels = pa.array(list(map(str, labels)) if self.as_text else labels, type=self.kind)


class TaggerForm(LabelForm):
    """Labels for every position of a row."""

    names = ("labels",)

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

    def answer_fields(self) -> list[Any]:
        return [("", pa.list_(self.kind))]

    def likely_kind(self) -> Any:
        self._needs_probabilities("predict_marginals")
        if getattr(self.model, "scheme", "iob2") != "iob2":
            raise ScoringError("probabilities are those of labels in IOB2: set scheme='iob2'")
        return pa.list_(pa.float64())

    def columns(self, answers: Any) -> list[Any]:
        shown = [[str(label) for label in row] for row in answers] if self.as_text else answers
        return [pa.array(shown, type=pa.list_(self.kind))]

    def best(self, X: Any, probabilities: bool) -> list[Any]:
        # A template's strings are the model's own table; other inputs are Python objects already.
        numbers = self.model._predict_numbers(X, probabilities) if self.template is not None else None
        if numbers is not None:
            flat = [self.labels.take(pa.array(numbers[0])), *([pa.array(numbers[1])] if probabilities else [])]
            return [arrays.list_array(column, X.lengths) for column in flat]
        best = self.model.predict(X)
        found = self.columns(best)
        if probabilities:
            rows = self.model.predict_marginals(X, output="array")
            likely = [
                row[np.arange(len(row)), [self.number[label] for label in labels]] if len(row) else []
                for row, labels in zip(rows, best, strict=True)
            ]
            found.append(pa.array(likely, type=pa.list_(pa.float64())))
        return found


class ClassifierForm(LabelForm):
    """One label per row: a column per feature, or one column of lists or of maps; of named attributes, one column."""

    names = ("label",)

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

    def answer_fields(self) -> list[Any]:
        return [("", self.kind)]

    def likely_kind(self) -> Any:
        self._needs_probabilities("predict_proba")
        return pa.float64()

    def columns(self, answers: Any) -> list[Any]:
        plain = [each.item() if isinstance(each, np.generic) else each for each in answers]
        return [pa.array(list(map(str, plain)) if self.as_text else plain, type=self.kind)]

    def best(self, X: Any, probabilities: bool) -> list[Any]:
        with _unnamed():
            if not probabilities:
                return self.columns(self.model.predict(X).tolist())
            likely = self.model.predict_proba(X)
        return [self.labels.take(pa.array(likely.argmax(axis=1))), pa.array(likely.max(axis=1))]

    def _k_best(self, X: Any, k: int) -> Any:
        with _unnamed():
            return super()._k_best(X, k)


@contextmanager
def _unnamed() -> Iterator[None]:
    """The matrix has no names of columns: they were looked at when it was made."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*valid feature names")
        yield


def _is_item(kind: Any) -> bool:
    return arrays.is_words(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind)


def _is_vector(kind: Any) -> bool:
    if pa.types.is_map(kind):
        return pa.types.is_integer(kind.key_type) and arrays.is_number(kind.item_type)
    return arrays.is_list(kind) and arrays.is_number(kind.value_type)


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
