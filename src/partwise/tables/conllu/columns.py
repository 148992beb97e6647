"""Columns of CoNLL-U that taggers read and fill: inputs and targets by name, predicted tags for training data.

A target is what a tagger learns, and what its labels become in the file:

upos, xpos              the column's values
feats                   the whole list of features as one label, features in the format's order
feats.KEY, misc.KEY     the value of one key, `_` where there is none
lemma-rule              the rule that makes the lemma of the form (`partwise.tables.conllu.lemma_rules`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from partwise.io.coded import CodedSequences, Sentences
from partwise.io.conllu import (
    FEATS,
    FORM,
    LEMMA,
    UPOS,
    XPOS,
    Column,
    ConlluSentence,
    column_values,
    feats_at,
    has_value,
    is_blank,
    join_feats,
    parse_columns_list,
)
from partwise.io.errors import FormatError
from partwise.tables.conllu.lemma_rules import apply_lemma_rule, lemma_rule

if TYPE_CHECKING:
    from partwise.estimators import SegmentTagger, SequenceTagger

#: Rules of lemmas that are learnt occur this often; words with rarer rules are taken for their own lemmas.
RARE = 2

LEMMA_RULE = "lemma-rule"


class Target:
    """A target whose labels are the values of a column, or of a key of FEATS or MISC.

    name: the target's name, in lower case except for keys. column: the column that predictions fill.
    """

    def __init__(self, name: str, column: Column) -> None:
        self.name = name
        self.column = column

    def labels(self, sentence: ConlluSentence) -> list[str]:
        """Return the label of each word."""
        return [value for (value,) in column_values([sentence], [self.column])[0]]

    def values(self, sentence: ConlluSentence, labels: Sequence[str]) -> list[str]:
        """Return the values that the column has for these labels of the sentence's words."""
        return list(labels)

    def put(self, sentence: ConlluSentence, labels: Sequence[str]) -> ConlluSentence:
        """Return the sentence with the values of these labels in their column."""
        return self.column.put(sentence, self.values(sentence, labels))

    def check(self, sentences: Sequence[ConlluSentence], path: str) -> None:
        """Raise FormatError if the column is blank in every word."""
        if not has_value(sentences, self.column):
            raise _blank_error(self.column, "the target", path)

    def training_labels(self, sentences: Sequence[ConlluSentence]) -> list[list[str]]:
        """Return the labels to learn."""
        return [self.labels(sentence) for sentence in sentences]


class FeatsTarget(Target):
    """The target whose labels are whole values of FEATS."""

    def labels(self, sentence: ConlluSentence) -> list[str]:
        cells = sentence.column(FEATS)
        return [join_feats(feats_at(cell, sentence, word)) for word, cell in enumerate(cells, 1)]


class LemmaTarget(Target):
    """The target whose labels are rules that make lemmas of forms."""

    def labels(self, sentence: ConlluSentence) -> list[str]:
        return list(map(lemma_rule, sentence.forms, sentence.column(LEMMA)))

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
        return LemmaTarget(LEMMA_RULE, Column(LEMMA))
    if name.lower() == "lemma":
        raise ValueError("target 'lemma': lemmas are learnt as rules, which is target 'lemma-rule'")
    with suppress(ValueError):
        column = Column.named(name)
        if column == Column(FEATS):
            return FeatsTarget(column.name, column)
        if column.key is not None or column.number in (UPOS, XPOS):
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
    inputs : str or list of str
        Names of columns: `form` first, then any of lemma, upos, xpos, feats, deprel, misc, feats.KEY, misc.KEY. They
        are columns 0, 1, ... of a template.
    target : str
        UPOS, XPOS, FEATS, LEMMA-rule, FEATS.KEY or MISC.KEY, in upper or lower case.
    """

    def __init__(self, inputs: str | Iterable[str] = "form", target: str = "upos") -> None:
        self.inputs: tuple[Column, ...] = parse_columns_list(inputs)
        self.target: Target = get_target(target)
        if self.inputs[0].number != FORM:
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
        rows = column_values(sentences, self.inputs)
        if Column(FEATS) in self.inputs:
            at, known = self.inputs.index(Column(FEATS)), set[str]()
            for sentence, row in zip(sentences, rows, strict=True):
                for word, cells in enumerate(row, 1):
                    if cells[at] not in known:
                        feats_at(cells[at], sentence, word)
                        known.add(cells[at])
        return Sentences.from_lists(rows)

    def check(self, sentences: Sequence[ConlluSentence], path: str, learn: bool = False) -> None:
        """Raise FormatError if the target, or an input in which every word should have a value, is blank everywhere.

        learn: also raise it if no word has a key that is an input; data to be labelled may lack such a key.
        """
        self.target.check(sentences, path)
        for column in self.inputs:
            lacking = learn and column.key is not None and not has_value(sentences, column)
            if lacking or is_blank(sentences, column):
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

    A parser that is trained on these tags learns from tags as good as those that it will see. The same seed gives the
    same folds.

    Parameters
    ----------
    columns : the columns that the taggers read and fill
    make : returns a tagger that is not fitted
    sentences : sentences that have the target's column
    folds : the number of folds, from 2 to the number of sentences
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
