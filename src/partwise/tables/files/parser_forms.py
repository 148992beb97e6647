"""How parsers read tables: columns of words, and columns of heads or of trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from partwise.tables.files import arrays
from partwise.tables.files.errors import ScoringError
from partwise.tables.files.form import Form

#: A dependency parser's columns by name.
WORD_COLUMNS = ("form", "lemma", "upos", "xpos", "feats")
#: Types of a head and of an arc's name.
_KINDS = (pa.int32(), pa.string())


class ParserForm(Form):
    """Heads of words, and names of the arcs."""

    wanted = "columns form, lemma, upos, xpos, feats of lists of strings, or one of lists of words or of structs"

    def __init__(self, model: Any, columns: Sequence[str] | None) -> None:
        super().__init__(model, columns)
        self.n = 2 if hasattr(model, "classes_") else 1  # columns of answers: arcs may have no names
        self.names = ("heads", "relations")[: self.n]

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

    def answer_fields(self) -> list[Any]:
        return [(suffix, pa.list_(kind)) for suffix, kind in zip(("", "_relations"), _KINDS, strict=True)][: self.n]

    def likely_kind(self) -> Any:
        self._needs_probabilities("predict_marginals")
        return pa.list_(pa.float64())

    def columns(self, answers: Any) -> list[Any]:
        if self.n == 1:
            return [pa.array([list(tree) for tree in answers], type=pa.list_(_KINDS[0]))]
        return [
            pa.array([[word[j] for word in tree] for tree in answers], type=pa.list_(kind))
            for j, kind in enumerate(_KINDS)
        ]

    def best(self, X: Any, probabilities: bool) -> list[Any]:
        found = self.columns(self.model.predict(X))
        if probabilities:
            rows, heads = self.model.predict_marginals(X), found[0].to_pylist()
            likely = [row[np.arange(len(row)), own] if own else [] for row, own in zip(rows, heads, strict=True)]
            found.append(pa.array(likely, type=pa.list_(pa.float64())))
        return found


def _is_sentence(kind: Any) -> bool:
    return arrays.is_words(kind) or (arrays.is_list(kind) and pa.types.is_struct(kind.value_type))


class TreeForm(Form):
    """Trees of phrases in brackets."""

    wanted = "list of strings, or a string of words"
    names = ("tree",)

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

    def answer_fields(self) -> list[Any]:
        return [("", pa.string())]

    def likely_kind(self) -> Any:
        raise ScoringError("probabilities are not available for trees of phrases")

    def columns(self, answers: Any) -> list[Any]:
        from partwise.io import format_tree

        return [pa.array([format_tree(tree) for tree in answers], type=pa.string())]

    def best(self, X: Any, probabilities: bool) -> list[Any]:
        return self.columns(self.model.predict(X))
