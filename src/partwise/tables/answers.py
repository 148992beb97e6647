"""What a fitted model writes into a table: the columns of its answers, for data frames and files alike."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np

from partwise.io import format_tree
from partwise.model_files import kind_of
from partwise.support.arrays import Floats, Ints
from partwise.tables import TableError

#: A fitted estimator.
Estimator = Any
#: The values of a column: one per example, which is a list where there is one per word.
Values = Sequence[Any]
#: An answer with its probability or score.
Ranked = tuple[object, float]
#: The fields of a word that dependency parsers read.
WORD_FIELDS = ("form", "lemma", "upos", "xpos", "feats")


class Head(int):
    """The type of columns of heads."""


class Column(NamedTuple):
    """A column of answers: its name among the k best, what its name ends with, and the type of its values."""

    field: str
    ending: str
    kind: type


#: The index of each label in `classes_`, all examples concatenated, and the probabilities if asked for.
LabelNumbers = tuple[Ints, Floats | None]


class Answers(ABC):
    """The columns of one kind of model's answers."""

    #: All but the column of probabilities.
    columns: Sequence[Column]
    #: Whether values are lists, with an item per word.
    by_word = True
    #: The labels of `classes_` as they are written, for `predict_numbers`.
    written_labels: Values = ()
    #: Options of `predict_marginals` that give a table of probabilities per example, with a row per word.
    table_options: ClassVar[dict[str, str]] = {}

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

    def predict(self, X: object, probabilities: bool, **constraints: object) -> list[Values]:
        """Return the columns of the best answers, and a column of their probabilities if asked for."""
        answers = self.model.predict(X, **constraints)
        columns = self.values(answers)
        if probabilities:
            tables = self.model.predict_marginals(X, **self.table_options, **constraints)
            pairs = zip(tables, self._chosen(answers), strict=True)
            columns.append([table[np.arange(len(table)), row].tolist() if len(table) else [] for table, row in pairs])
        return columns

    def predict_numbers(self, X: object, probabilities: bool) -> LabelNumbers | None:
        """Return the best answers as numbers of labels, which is faster; None if the model cannot."""
        return None

    def predict_k_best(self, X: object, k: int) -> list[list[Ranked]]:
        """Return the k best answers of each example with their probabilities, or scores."""
        found: list[list[Ranked]] = self.model.predict_k_best(X, k, probabilities=self.has_probabilities)
        return found

    @abstractmethod
    def values(self, answers: Values) -> list[Values]:
        """Return answers of `predict`, one per example, as columns."""

    def _chosen(self, answers: Values) -> Values:
        """Return which column of its table of probabilities each word's answer has."""
        return self.values(answers)[0]


class LabelAnswers(Answers):
    """A label for each word of a row."""

    field = "labels"
    table_options: ClassVar[dict[str, str]] = {"output": "array"}

    def __init__(self, model: Estimator) -> None:
        super().__init__(model)
        self.labels = model.classes_.tolist()
        kind = label_type(self.labels)
        self.as_text = kind is str and not all(isinstance(label, str) for label in self.labels)
        self.columns = [Column(self.field, "", kind)]
        self.written_labels = list(map(str, self.labels)) if self.as_text else self.labels

    def check_probabilities(self) -> None:
        super().check_probabilities()
        if getattr(self.model, "scheme", "iob2") != "iob2":
            raise TableError("probabilities are those of labels in IOB2: set scheme='iob2'")

    def predict_numbers(self, X: object, probabilities: bool) -> LabelNumbers | None:
        # A template's strings are the model's own table; other inputs are Python objects already.
        return self.model._predict_numbers(X, probabilities) if self.model.template_ is not None else None

    def values(self, answers: Values) -> list[Values]:
        return [[list(map(str, row)) for row in answers] if self.as_text else answers]

    def _chosen(self, answers: Values) -> Values:
        number = {label: k for k, label in enumerate(self.labels)}
        return [[number[label] for label in row] for row in answers]


@contextmanager
def _unnamed_columns() -> Iterator[None]:
    """Ignore scikit-learn's warning that a matrix has no names of columns: they were compared when it was made."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*valid feature names")
        yield


class ClassAnswers(LabelAnswers):
    """A label for each row."""

    field = "label"
    by_word = False
    predict = _unnamed_columns()(LabelAnswers.predict)
    predict_k_best = _unnamed_columns()(LabelAnswers.predict_k_best)

    @property
    def has_probabilities(self) -> bool:
        return hasattr(self.model, "predict_proba")

    @_unnamed_columns()
    def predict_numbers(self, X: object, probabilities: bool) -> LabelNumbers | None:
        if not probabilities:
            return None
        table = self.model.predict_proba(X)
        return table.argmax(axis=1), table.max(axis=1)

    def values(self, answers: Values) -> list[Values]:
        labels = np.asarray(answers, dtype=object).tolist()
        plain = [each.item() if isinstance(each, np.generic) else each for each in labels]
        return [list(map(str, plain)) if self.as_text else plain]


class ArcAnswers(Answers):
    """The head of each word, and the name of its arc if the model names arcs."""

    def __init__(self, model: Estimator) -> None:
        super().__init__(model)
        self.named = hasattr(model, "classes_")
        self.columns = [Column("heads", "", Head), *([Column("relations", "_relations", str)] if self.named else [])]

    def values(self, answers: Values) -> list[Values]:
        if not self.named:
            return [list(map(list, answers))]
        return [[[arc[j] for arc in tree] for tree in answers] for j in range(2)]


class TreeAnswers(Answers):
    """Trees of phrases in brackets."""

    columns = (Column("tree", "", str),)
    by_word = False

    def check_probabilities(self) -> None:
        raise TableError("probabilities are not available for trees of phrases")

    def values(self, answers: Values) -> list[Values]:
        return [list(map(format_tree, answers))]


#: The columns of answers by the kind of model file (`partwise.model_files.KINDS`).
ANSWERS: dict[str, type[Answers]] = {
    "cfg": TreeAnswers,
    "dep": ArcAnswers,
    "maxent": ClassAnswers,
    "segment": LabelAnswers,
    "tagger": LabelAnswers,
}


def answers_of(model: Estimator) -> Answers:
    """Return the columns of a fitted model's answers; TableError if its kind of model cannot label tables."""
    kind = kind_of(model)
    if kind not in ANSWERS:
        raise TableError(f"tables are not available for {type(model).__name__}")
    return ANSWERS[kind](model)


def label_type(labels: Values) -> type:
    """Return the type of a column of labels: text where they are of several kinds."""
    bools = [isinstance(label, (bool, np.bool_)) for label in labels]
    if any(bools):
        return bool if all(bools) else str
    if all(isinstance(label, (int, np.integer)) for label in labels):
        return int
    return float if all(isinstance(label, (int, float, np.number)) for label in labels) else str
