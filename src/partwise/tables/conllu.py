"""CoNLL-U: columns by name, several models one after another, predicted tags for training.

The target of a tagger says what its labels are:

upos, xpos              the column's values
feats                   the whole list of features as one label, features in the format's order
feats.KEY, misc.KEY     the value of one key, `_` where there is none
lemma-rule              the rule that makes the lemma of the form (`partwise.tables.lemma_rules`)
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.io import conllu
from partwise.io.coded import CodedSequences, Sentences
from partwise.io.conllu import Column, ConlluSentence
from partwise.io.errors import FormatError
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.tables.lemma_rules import apply_lemma_rule, lemma_rule

if TYPE_CHECKING:
    from partwise.estimators import SegmentTagger, SequenceTagger
    from partwise.estimators.base import StructuredEstimator

__all__ = ["ConlluColumns", "ConlluPipeline", "jackknife"]

#: Rules of lemmas are learnt if they occur this often; words with rarer rules are taken for their own lemmas.
RARE = 2

LEMMA_RULE = "lemma-rule"


class Target:
    """A target, with its name, in lower case except for keys, and the column (or key of a column) of its values."""

    def __init__(self, name: str, column: Column) -> None:
        self.name, self.column = name, column

    def labels(self, sentence: ConlluSentence) -> list[str]:
        return [value for (value,) in conllu.column_values([sentence], [self.column])[0]]

    def values(self, sentence: ConlluSentence, labels: Sequence[str]) -> list[str]:
        """Return what these labels stand for in the column, one value per word of the sentence."""
        return list(labels)

    def put(self, sentence: ConlluSentence, labels: Sequence[str]) -> ConlluSentence:
        """Return a copy of the sentence whose column has the values that these labels stand for."""
        return self.column.put(sentence, self.values(sentence, labels))

    def check(self, sentences: Sequence[ConlluSentence], path: str) -> None:
        """Raise FormatError if the column is blank in every word."""
        if not conllu.has_value(sentences, self.column):
            raise _blank_error(self.column, "the target", path)

    def training_labels(self, sentences: Sequence[ConlluSentence]) -> list[list[str]]:
        return [self.labels(sentence) for sentence in sentences]


class FeatsTarget(Target):
    """The target whose labels are whole values of FEATS."""

    def labels(self, sentence: ConlluSentence) -> list[str]:
        cells = sentence.column(conllu.FEATS)
        return [conllu.join_feats(conllu.feats_at(cell, sentence, word)) for word, cell in enumerate(cells, 1)]


class LemmaTarget(Target):
    """The target whose labels are rules that make lemmas of forms."""

    def labels(self, sentence: ConlluSentence) -> list[str]:
        return list(map(lemma_rule, sentence.forms, sentence.column(conllu.LEMMA)))

    def values(self, sentence: ConlluSentence, labels: Sequence[str]) -> list[str]:
        return list(map(apply_lemma_rule, labels, sentence.forms))

    def training_labels(self, sentences: Sequence[ConlluSentence]) -> list[list[str]]:
        rules = super().training_labels(sentences)
        seen = Counter(chain.from_iterable(rules))
        return [
            [rule if seen[rule] >= RARE else lemma_rule(form, form) for rule, form in zip(own, each.forms, strict=True)]
            for own, each in zip(rules, sentences, strict=True)
        ]


def _blank_error(column: Column, role: str, path: str) -> FormatError:
    """Return the error for a target or an input that no word has."""
    base = column.base.upper()
    if column.key is None:
        return FormatError(f"column {base}, {role}, is blank (_) in every word", path)
    return FormatError(f"no word has {column.key} in {base}, {role}", path)


def get_target(text: str) -> Target:
    """Return a target by its name, in upper or lower case; raise ValueError for an unknown name."""
    name = text.strip() if isinstance(text, str) else ""
    if name.lower() == LEMMA_RULE:
        return LemmaTarget(LEMMA_RULE, Column(conllu.LEMMA))
    if name.lower() == "lemma":
        raise ValueError("target 'lemma': lemmas are learnt as rules, which is target 'lemma-rule'")
    with suppress(ValueError):
        column = Column.named(name)
        if column == Column(conllu.FEATS):
            return FeatsTarget(column.name, column)
        if column.key is not None or column.number in (conllu.UPOS, conllu.XPOS):
            return Target(column.name, column)
    raise ValueError(f"there is no target {text!r}: take UPOS, XPOS, FEATS, LEMMA-rule, FEATS.KEY or MISC.KEY")


class ConlluColumns:
    """The columns of CoNLL-U that a tagger reads, and the column that it fills.

        columns = ConlluColumns(inputs="form,upos", target="FEATS")
        tagger = columns.fit(SequenceTagger(template="morph"), read_conllu("train.conllu"))
        sentences = columns.annotate(tagger, read_conllu("test.conllu"))

    A tagger that was trained this way, or by `partwise train tag` on a CoNLL-U file, remembers its columns in its
    model file; `ConlluColumns.of(tagger)` gives them again.

    Parameters
    ----------
    inputs : names of columns, which are columns 0, 1, ... of a template: `form` first, then any of lemma, upos, xpos,
        feats, deprel, misc, feats.KEY, misc.KEY
    target : UPOS, XPOS, FEATS, LEMMA-rule, FEATS.KEY or MISC.KEY, in upper or lower case
    """

    def __init__(self, inputs: str | Iterable[str] = "form", target: str = "upos") -> None:
        self.inputs: tuple[Column, ...] = conllu.parse_columns_list(inputs)
        self.target: Target = get_target(target)
        if self.inputs[0].number != conllu.FORM:
            raise ValueError(f"the first input column must be form, got {self.inputs[0].name!r}")
        for column in self.inputs:
            if column.number == self.target.column.number and self.target.column.key in (None, column.key):
                raise ValueError(f"column {column.name} is the target {self.target.name}: it cannot be an input, too")

    @classmethod
    def of_settings(cls, settings: Mapping[str, object]) -> ConlluColumns:
        """Return the columns that a model file or flags name; by default words are read and UPOS is filled."""
        inputs, target = settings.get("inputs"), settings.get("target")
        return cls("form" if inputs is None else str(inputs), "upos" if target is None else str(target))

    @classmethod
    def of(cls, tagger: SequenceTagger | SegmentTagger) -> ConlluColumns:
        """Return the columns of a tagger that was trained on CoNLL-U; raise ValueError for other taggers."""
        settings = getattr(tagger, "input_settings_", {})
        if settings.get("format") != "conllu":
            raise ValueError(f"this {type(tagger).__name__} was not trained on columns of CoNLL-U")
        return cls.of_settings(settings)

    def settings(self) -> dict[str, str | int]:
        """Return what a model file keeps of the columns: JSON values."""
        return {"inputs": ",".join(self.names), "target": self.target.name, "n_columns": len(self.inputs)}

    @property
    def names(self) -> list[str]:
        """The names of the inputs, which templates may use."""
        return [column.name for column in self.inputs]

    def table(self, sentences: Sequence[ConlluSentence]) -> Sentences:
        """Return the inputs, as `SequenceTagger` with a template takes them.

        FormatError, with the line, where FEATS is an input and not a list of keys and values.
        """
        rows = conllu.column_values(sentences, self.inputs)
        if Column(conllu.FEATS) in self.inputs:
            at, known = self.inputs.index(Column(conllu.FEATS)), set[str]()
            for sentence, row in zip(sentences, rows, strict=True):
                for word, cells in enumerate(row, 1):
                    if cells[at] not in known:
                        conllu.feats_at(cells[at], sentence, word)
                        known.add(cells[at])
        return Sentences.from_lists(rows)

    def check(self, sentences: Sequence[ConlluSentence], path: str, learn: bool = False) -> None:
        """Raise FormatError if the target, or an input in which every word should have a value, is blank everywhere.

        learn: also raise it if no word has a key that is an input; data to be labelled may lack such a key.
        """
        self.target.check(sentences, path)
        for column in self.inputs:
            lacking = learn and column.key is not None and not conllu.has_value(sentences, column)
            if lacking or conllu.is_blank(sentences, column):
                raise _blank_error(column, "an input", path)

    def labels(self, sentences: Sequence[ConlluSentence]) -> CodedSequences:
        """Return the labels that the sentences have."""
        return CodedSequences.from_lists([self.target.labels(sentence) for sentence in sentences])

    def training_labels(self, sentences: Sequence[ConlluSentence]) -> CodedSequences:
        """Return the labels to learn: rules of lemmas that occur once are left out."""
        return CodedSequences.from_lists(self.target.training_labels(sentences))

    def fit(self, tagger: SequenceTagger, sentences: Sequence[ConlluSentence]) -> SequenceTagger:
        """Train a tagger that has a template on these sentences, and note the columns in it; return the tagger."""
        if not sentences:
            raise FormatError("there are no sentences")
        self.check(sentences, sentences[0].path, learn=True)
        tagger.fit(self.table(sentences), self.training_labels(sentences))
        tagger.input_settings_ = {"format": "conllu", **self.settings()}
        return tagger

    def annotate(
        self, tagger: SequenceTagger | SegmentTagger, sentences: Sequence[ConlluSentence]
    ) -> list[ConlluSentence]:
        """Return the sentences with predictions in the target's column."""
        found = tagger.predict(self.table(sentences)) if sentences else []
        return list(map(self.target.put, sentences, found))

    def looks_at(self, tagger: SequenceTagger | SegmentTagger) -> list[Column]:
        """Return the inputs that a tagger's template reads."""
        template = tagger.template_
        return [self.inputs[k] for k in template.columns if k < len(self.inputs)] if template else list(self.inputs)

    def __repr__(self) -> str:
        return f"ConlluColumns(inputs={','.join(self.names)!r}, target={self.target.name!r})"


def jackknife(
    columns: ConlluColumns,
    make: Callable[[], SequenceTagger],
    sentences: Sequence[ConlluSentence],
    folds: int,
    seed: int = 0,
) -> list[ConlluSentence]:
    """Return the sentences with the target's column filled by taggers that were trained on the other folds.

    A parser that is trained on these tags learns from tags as good as those that it will see. columns: what the taggers
    read and fill. make: returns a tagger that is not fitted. folds: their number, from 2 to that of the sentences. The
    same seed gives the same folds.
    """
    n = len(sentences)
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or not 2 <= folds <= n:
        raise ValueError(f"folds must be a number from 2 to that of the sentences, {n}; got {folds!r}")
    order = np.random.default_rng(seed).permutation(n)
    found: dict[int, ConlluSentence] = {}
    for part in np.array_split(order, folds):
        chosen = np.sort(part).tolist()
        tagger = columns.fit(make(), [sentences[i] for i in np.setdiff1d(order, part).tolist()])
        found |= zip(chosen, columns.annotate(tagger, [sentences[i] for i in chosen]), strict=True)
    return [found[i] for i in range(n)]


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
        fills = (Column(conllu.HEAD), Column(conllu.DEPREL)) if hasattr(model, "classes_") else (Column(conllu.HEAD),)
        return Step(name, model, reads, fills, model.parse)
    if not isinstance(model, SequenceTagger | SegmentTagger):
        raise ValueError(f"{name}: a {type(model).__name__} reads and fills no columns of CoNLL-U")
    try:
        columns = ConlluColumns.of(model)
    except ValueError:
        why = "this tagger was not trained on CoNLL-U, and has no columns to read and fill"
        raise ValueError(f"{name}: {why}") from None
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
        for k, step in enumerate(self.steps):
            for other, column in product(self.steps[:k], step.fills):
                if any(_overlap(column, had) for had in other.fills):
                    raise ValueError(f"{other.name} and {step.name} both fill column {column.name}")
                if any(_overlap(column, need) for need in other.reads):
                    late = f"which {step.name} after it fills: change their order"
                    raise ValueError(f"{other.name} reads column {column.name}, {late}")

    @property
    def models(self) -> list[StructuredEstimator[Any]]:
        return [step.model for step in self.steps]

    def missing(self, given: Iterable[str]) -> list[tuple[Step, list[Column]]]:
        """Return the steps with the columns that they read and that neither `given` names nor an earlier step fills.

        Where a step fills a key of FEATS or MISC, the column's other keys and the column as a whole are still missing.
        """
        there = {Column(conllu.COLUMNS.index(name)) for name in given}
        found = []
        for step in self.steps:
            lacking = [column for column in step.reads if not there & {column, Column(column.number)}]
            if lacking:
                found.append((step, lacking))
            there |= set(step.fills)
        return found

    @property
    def inputs(self) -> list[str]:
        """The columns that the input must have: a model reads them, and no model before it fills them."""
        names = [column.base for _, columns in self.missing(()) for column in columns]
        return [name for name in conllu.COLUMNS if name in names]

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
                if conllu.is_blank(sentences, column):
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

    def save(self, path: str | os.PathLike[str], dtype: str = "float64", format: str = "partwise") -> None:
        """Write all models to one file, which `partwise.load` reads; raise ValueError for formats of other tools."""
        from partwise import model_files

        model_files.save(self, path, dtype, format)

    def to_parts(self) -> ModelParts:
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
        from partwise.model_files import class_of
        from partwise.model_files.files import from_parts

        names = parts.settings.get("names")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise ModelFormatError("has no list of its models")
        found = [parts.part(f"model{k}") for k in range(len(names))]
        if any(part.kind == "conllu" for part in found):
            raise ModelFormatError("has a pipeline in a pipeline")
        return cls([(name, from_parts(class_of(part.kind), part)) for name, part in zip(names, found, strict=True)])

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
        if not 1 <= len(fields) <= conllu.FEATS:
            raise ValueError(f"{where}: expected (form, lemma, upos, xpos, feats) or less, got {len(fields)} columns")
        if not fields[0]:
            raise ValueError(f"{where}: the form is empty")
        try:
            conllu.check_fields(fields)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    return conllu.make_sentence(given)


def _overlap(one: Column, other: Column) -> bool:
    """Return whether two columns are the same, or one is a key of the other."""
    return one.number == other.number and (one.key == other.key or None in (one.key, other.key))
