"""What a fitted model writes into a table: the columns of its answers, for data frames and files alike.

`ANSWERS` lists the descriptions by the kind of model file (`partwise.model_files.KINDS`).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from partwise.io import format_tree
from partwise.model_files import kind_of
from partwise.support.arrays import Floats, Ints
from partwise.tables.errors import TableError

#: A fitted estimator.
Estimator = Any
#: The values of a column: one per example, which is a list where there is one per word.
Values = Sequence[Any]
#: The fields of a word that dependency parsers read.
WORD_FIELDS = ("form", "lemma", "upos", "xpos", "feats")


class Head(int):
    """The type of columns of heads."""


class Column(NamedTuple):
    """A column of answers: its name among the k best, what its name ends with, and the type of its values."""

    field: str
    ending: str
    kind: type


class LabelNumbers(NamedTuple):
    """Labels by their numbers in `classes_`, of all examples end to end, and their probabilities if asked for."""

    numbers: Ints
    probabilities: Floats | None


class Answers(ABC):
    """The columns of one kind of model's answers.

    Attributes
    ----------
    columns : list of Column
        Without that of probabilities.
    by_word : bool
        Whether values are lists, with an item per word.
    written_labels : sequence
        The labels of `classes_` as they are written, for `predict_numbers`.
    """

    columns: Sequence[Column]
    by_word = True
    written_labels: Values = ()

    def __init__(self, model: Estimator) -> None:
        self.model = model

    @property
    def has_probabilities(self) -> bool:
        """Whether the loss gives probabilities of whole answers."""
        return hasattr(self.model, "predict_marginals")

    def check_probabilities(self) -> None:
        """Raise TableError if the model gives no probabilities of its answers."""
        if not self.has_probabilities:
            raise TableError(f"the loss {self.model.loss!r} gives no probabilities (log and softmax-margin do)")

    def predict(self, X: Any, probabilities: bool, **constraints: Any) -> list[Values]:
        """Return the columns of the best answers, and of their probabilities if these are asked for."""
        answers = self.model.predict(X, **constraints)
        found = self.values(answers)
        return [*found, self._probabilities(X, answers, **constraints)] if probabilities else found

    def predict_numbers(self, X: Any, probabilities: bool) -> LabelNumbers | None:
        """Return the same as numbers of labels, without Python objects; None if the model cannot."""
        return None

    def predict_k_best(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return the k best answers of each example with their probabilities, or scores."""
        found: list[list[tuple[Any, float]]] = self.model.predict_k_best(X, k, probabilities=self.has_probabilities)
        return found

    @abstractmethod
    def values(self, answers: Values) -> list[Values]:
        """Return answers of `predict`, one per example, as columns."""

    @abstractmethod
    def _probabilities(self, X: Any, answers: Values, **constraints: Any) -> Values:
        """Return the column of probabilities of these answers."""


class LabelAnswers(Answers):
    """A label for each word of a row."""

    field = "labels"

    def __init__(self, model: Estimator) -> None:
        super().__init__(model)
        self.labels = model.classes_.tolist()
        self.kind = label_type(self.labels)
        self.as_text = self.kind is str and not all(isinstance(label, str) for label in self.labels)
        self.columns = [Column(self.field, "", self.kind)]
        self.written_labels = list(map(str, self.labels)) if self.as_text else self.labels

    def check_probabilities(self) -> None:
        super().check_probabilities()
        if getattr(self.model, "scheme", "iob2") != "iob2":
            raise TableError("probabilities are those of labels in IOB2: set scheme='iob2'")

    def predict_numbers(self, X: Any, probabilities: bool) -> LabelNumbers | None:
        # A template's strings are the model's own table; other inputs are Python objects already.
        numbers = self.model._predict_numbers(X, probabilities) if self.model.template_ is not None else None
        return None if numbers is None else LabelNumbers(*numbers)

    def values(self, answers: Values) -> list[Values]:
        return [[[str(label) for label in row] for row in answers] if self.as_text else answers]

    def _probabilities(self, X: Any, answers: Values, **constraints: Any) -> Values:
        number = {label: k for k, label in enumerate(self.labels)}
        tables = self.model.predict_marginals(X, output="array", **constraints)
        return _chosen(tables, [[number[label] for label in row] for row in answers])


class ClassAnswers(LabelAnswers):
    """A label for each row."""

    field = "label"
    by_word = False

    @property
    def has_probabilities(self) -> bool:
        return hasattr(self.model, "predict_proba")

    def predict(self, X: Any, probabilities: bool, **constraints: Any) -> list[Values]:
        with _unnamed_columns():
            return super().predict(X, probabilities, **constraints)

    def predict_numbers(self, X: Any, probabilities: bool) -> LabelNumbers | None:
        if not probabilities:
            return None
        with _unnamed_columns():
            table = self.model.predict_proba(X)
        return LabelNumbers(table.argmax(axis=1), table.max(axis=1))

    def predict_k_best(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        with _unnamed_columns():
            return super().predict_k_best(X, k)

    def values(self, answers: Values) -> list[Values]:
        listed = answers.tolist() if hasattr(answers, "tolist") else answers
        plain = [each.item() if isinstance(each, np.generic) else each for each in listed]
        return [list(map(str, plain)) if self.as_text else plain]

    def _probabilities(self, X: Any, answers: Values, **constraints: Any) -> Values:
        raise NotImplementedError("labels with probabilities are written by their numbers")


class ArcAnswers(Answers):
    """The head of each word, and the name of its arc if the model names arcs."""

    def __init__(self, model: Estimator) -> None:
        super().__init__(model)
        self.named = hasattr(model, "classes_")
        self.columns = [Column("heads", "", Head), *([Column("relations", "_relations", str)] if self.named else [])]

    def values(self, answers: Values) -> list[Values]:
        if not self.named:
            return [[list(tree) for tree in answers]]
        return [[[arc[j] for arc in tree] for tree in answers] for j in range(2)]

    def _probabilities(self, X: Any, answers: Values, **constraints: Any) -> Values:
        return _chosen(self.model.predict_marginals(X, **constraints), self.values(answers)[0])


class TreeAnswers(Answers):
    """Trees of phrases in brackets."""

    columns = (Column("tree", "", str),)
    by_word = False

    def check_probabilities(self) -> None:
        raise TableError("probabilities are not available for trees of phrases")

    def values(self, answers: Values) -> list[Values]:
        return [[format_tree(tree) for tree in answers]]

    def _probabilities(self, X: Any, answers: Values, **constraints: Any) -> Values:
        raise NotImplementedError("probabilities are refused before")


#: Descriptions by the kind of model file.
ANSWERS: dict[str, type[Answers]] = {
    "cfg": TreeAnswers,
    "dep": ArcAnswers,
    "maxent": ClassAnswers,
    "segment": LabelAnswers,
    "tagger": LabelAnswers,
}


def answers_of(model: Estimator) -> Answers:
    """Return the description of a fitted model's answers."""
    kind = kind_of(model)
    if kind not in ANSWERS:
        raise TableError(f"tables are not available for {type(model).__name__}")
    return ANSWERS[kind](model)


def label_type(labels: Values) -> type:
    """Return the type of a column of labels: text where they are of several kinds."""
    if all(isinstance(label, (bool, np.bool_)) for label in labels):
        return bool
    if any(isinstance(label, (bool, np.bool_)) for label in labels):
        return str
    if all(isinstance(label, (int, np.integer)) for label in labels):
        return int
    return float if all(isinstance(label, (int, float, np.number)) for label in labels) else str


def _chosen(tables: Sequence[Floats], chosen: Sequence[Sequence[int]]) -> Values:
    """Return the numbers of the chosen columns: one per row of each table."""
    pairs = zip(tables, chosen, strict=True)
    return [table[np.arange(len(table)), columns].tolist() if len(table) else [] for table, columns in pairs]


@contextmanager
def _unnamed_columns() -> Iterator[None]:
    """Ignore scikit-learn's warning that a matrix has no names of columns: they were compared when it was made."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*valid feature names")
        yield
