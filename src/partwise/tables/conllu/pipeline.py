"""Models one after another on CoNLL-U: each fills its columns, which the next ones read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from partwise.io.conllu import (
    COLUMNS,
    DEPREL,
    FEATS,
    HEAD,
    Column,
    ConlluSentence,
    check_fields,
    is_blank,
    make_sentence,
)
from partwise.io.errors import FormatError
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.tables.conllu.columns import ConlluColumns

if TYPE_CHECKING:
    from partwise.estimators.base import StructuredEstimator


@dataclass(frozen=True)
class Step:
    """A model with its name for messages, the columns that it reads and fills, and the function that fills them."""

    name: str
    model: StructuredEstimator[Any]
    reads: tuple[Column, ...]
    fills: tuple[Column, ...]
    annotate: Callable[[Sequence[ConlluSentence]], list[ConlluSentence]]


def step_of(model: object, name: str) -> Step:
    """Return a model as a step; raise ValueError for a model that does not read and fill columns of CoNLL-U."""
    from partwise.estimators import DependencyParser, SegmentTagger, SequenceTagger

    if isinstance(model, DependencyParser):
        reads = tuple(map(Column.named, model.columns_))
        fills = (Column(HEAD), Column(DEPREL)) if hasattr(model, "classes_") else (Column(HEAD),)
        return Step(name, model, reads, fills, model.parse)
    if not isinstance(model, SequenceTagger | SegmentTagger):
        raise ValueError(f"{name}: a {type(model).__name__} reads and fills no columns of CoNLL-U")
    try:
        columns = ConlluColumns.of(model)
    except ValueError:
        message = "this tagger was not trained on CoNLL-U, and has no columns to read and fill"
        raise ValueError(f"{name}: {message}") from None
    fills = (columns.target.column,)
    return Step(name, model, tuple(columns.looks_at(model)), fills, partial(columns.annotate, model))


class ConlluPipeline:
    """A sequence of taggers and parsers of CoNLL-U, each of which fills columns that the next ones read.

        pipeline = ConlluPipeline([tagger, parser])
        sentences = pipeline.annotate([["the", "cat", "sat"]])
        pipeline.save("english.pw")  # one file; partwise.load reads it

    ValueError for models of other kinds, two that fill the same column, or one that reads what a later one fills.

    Parameters
    ----------
    models : list
        Fitted models in their order, or pairs (name, model): parsers (`DependencyParser`), and taggers that were
        trained on CoNLL-U (`ConlluColumns.fit`, or `partwise train tag` with such a file). Names are for messages.

    Attributes
    ----------
    steps : one per model
    inputs : columns that the input must have, since a model reads them and no model before it fills them
    """

    def __init__(self, models: Iterable[object]) -> None:
        if not isinstance(models, Iterable):
            raise ValueError(f"models must be a list of models, got {type(models).__name__}")
        self.steps: list[Step] = []
        for k, each in enumerate(models, 1):
            if isinstance(each, tuple) and len(each) != 2:
                raise ValueError(f"model {k} must be a model or a pair (name, model), got a tuple of {len(each)}")
            name, model = each if isinstance(each, tuple) else (f"model {k} ({type(each).__name__})", each)
            self.steps.append(step_of(model, str(name)))
        if not self.steps:
            raise ValueError("there are no models")
        self._check_order()

    @property
    def models(self) -> list[StructuredEstimator[Any]]:
        return [step.model for step in self.steps]

    def _check_order(self) -> None:
        for k, step in enumerate(self.steps):
            for other, column in product(self.steps[:k], step.fills):
                if any(_overlap(column, had) for had in other.fills):
                    raise ValueError(f"{other.name} and {step.name} both fill column {column.name}")
                if any(_overlap(column, need) for need in other.reads):
                    raise ValueError(
                        f"{other.name} reads column {column.name}, which {step.name} after it fills: change their order"
                    )

    def missing(self, given: Iterable[str]) -> list[tuple[Step, list[Column]]]:
        """Return the steps with the columns that they read and that neither `given` names nor an earlier step fills.

        Where a step fills a key of FEATS or MISC, the column's other keys and the column as a whole are still missing.
        """
        there = {Column(COLUMNS.index(name)) for name in given}
        found = []
        for step in self.steps:
            lacking = [column for column in step.reads if not there & {column, Column(column.number)}]
            if lacking:
                found.append((step, lacking))
            there |= set(step.fills)
        return found

    @property
    def inputs(self) -> list[str]:
        names = [column.base for _, columns in self.missing(()) for column in columns]
        return [name for name in COLUMNS if name in names]

    def why_not_text(self) -> str | None:
        """Return a sentence about the columns that models read and plain text does not have; None if text will do."""
        lacking = self.missing(("form",))
        if not lacking:
            return None
        step, columns = lacking[0]
        names = ", ".join(dict.fromkeys(column.name for column in columns))
        return f"{step.name} reads {names}, which neither text nor a model before it fills"

    def check_filled(self, sentences: Sequence[ConlluSentence]) -> None:
        """Raise FormatError if a model reads a column that is blank in all words and that every word should have."""
        for step, columns in self.missing(()) if sentences else ():
            for column in columns:
                if is_blank(sentences, column):
                    why = f"but {step.name} reads it, and no model before it fills it"
                    first = sentences[0]
                    raise FormatError(f"column {column.base.upper()} is blank (_), {why}", first.path, first.line)

    def annotate(self, X: Iterable[ConlluSentence | Sequence[str | Sequence[str]]]) -> list[ConlluSentence]:
        """Return sentences with the columns that the models fill.

        X : `ConlluSentence` objects, or lists of words: strings, or tuples (form, lemma, upos, xpos, feats) or shorter
        """
        if isinstance(X, str | ConlluSentence) or not isinstance(X, Iterable):
            raise ValueError(f"X must be a list of sentences, got {type(X).__name__}")
        sentences = [_sentence_of(each, i) for i, each in enumerate(X)]
        self.check_filled(sentences)
        return self.run(sentences)

    def run(self, sentences: list[ConlluSentence]) -> list[ConlluSentence]:
        """Do what `annotate` does without checks, for sentences in the middle of a file."""
        for step in self.steps:
            sentences = step.annotate(sentences)
        return sentences

    # model files

    def save(self, path: str | os.PathLike[str], dtype: str = "float64", format: str = "partwise") -> None:
        """Write all models to one file, which `partwise.load` reads; raise ValueError for formats of other tools."""
        from partwise import model_files

        model_files.save(self, path, dtype, format)

    def to_parts(self) -> ModelParts:
        """Return the models as parts of a model file."""
        from partwise.model_files import kind_of
        from partwise.model_files.files import to_parts

        found = [to_parts(step.model, kind_of(step.model)) for step in self.steps]
        names = [step.name for step in self.steps]
        parts = ModelParts("conllu", {"names": names}, version=max(part.version for part in found))
        for k, part in enumerate(found):
            parts.add(f"model{k}", part)
        return parts

    @classmethod
    def from_parts(cls, parts: ModelParts) -> ConlluPipeline:
        """Return the pipeline of these parts, the inverse of `to_parts`."""
        from partwise.model_files import class_of
        from partwise.model_files.files import from_parts

        names = parts.settings.get("names")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise ModelFormatError("has no list of its models")
        models = []
        for k, name in enumerate(names):
            part = parts.part(f"model{k}")
            if part.kind == "conllu":
                raise ModelFormatError("has a pipeline in a pipeline")
            models.append((name, from_parts(class_of(part.kind), part)))
        return cls(models)

    def __repr__(self) -> str:
        return f"ConlluPipeline([{', '.join(type(model).__name__ for model in self.models)}])"


def _sentence_of(given: ConlluSentence | Sequence[str | Sequence[str]], number: int) -> ConlluSentence:
    """Return a sentence of words; ValueError unless each is a form, or a tuple of the form and the columns after it."""
    if isinstance(given, str) or not isinstance(given, ConlluSentence | Sequence) or not len(given):
        raise ValueError(f"sentence {number} must be a ConlluSentence or a list of words, got {given!r:.60}")
    if isinstance(given, ConlluSentence):
        return given
    for j, word in enumerate(given):
        where = f"sentence {number}, word {j}"
        fields = [word] if isinstance(word, str) else word
        if not isinstance(fields, Sequence) or not all(isinstance(field, str) for field in fields):
            raise ValueError(f"{where}: expected a string or a tuple of strings, got {word!r:.60}")
        if not 1 <= len(fields) <= FEATS:
            raise ValueError(f"{where}: expected (form, lemma, upos, xpos, feats) or less, got {len(fields)} columns")
        if not fields[0]:
            raise ValueError(f"{where}: the form is empty")
        try:
            check_fields(fields)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    return make_sentence(given)


def _overlap(one: Column, other: Column) -> bool:
    """Return whether two columns are the same, or one is a key of the other."""
    return one.number == other.number and (one.key == other.key or None in (one.key, other.key))
