"""Taggers of CoNLL-U: which columns they read, and which one they fill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from partwise.conllu.targets import Target, get_target
from partwise.io import CodedSequences, ConlluSentence, Sentences
from partwise.io.conllu import FEATS, FORM, Column, column_values, feats_at, has_value, is_blank, parse_columns_list
from partwise.io.errors import FormatError


class ConlluColumns:
    """The columns of CoNLL-U that a tagger reads, and the one that it fills.

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
    def of_settings(cls, settings: Mapping[str, Any]) -> ConlluColumns:
        """Those that a model remembers, or flags name; words and UPOS where nothing is said."""
        inputs, target = settings.get("inputs"), settings.get("target")
        return cls("form" if inputs is None else str(inputs), "upos" if target is None else str(target))

    @classmethod
    def of(cls, tagger: Any) -> ConlluColumns:
        """Those of a tagger that was trained on CoNLL-U. ValueError for another."""
        settings = getattr(tagger, "input_settings_", {})
        if settings.get("format") != "conllu":
            raise ValueError(f"this {type(tagger).__name__} was not trained on columns of CoNLL-U")
        return cls.of_settings(settings)

    def settings(self) -> dict[str, Any]:
        """What a model remembers: JSON values."""
        return {"inputs": ",".join(self.names), "target": self.target.name, "n_columns": len(self.inputs)}

    @property
    def names(self) -> list[str]:
        """Names of the inputs, by which templates may call them."""
        return [column.name for column in self.inputs]

    def table(self, sentences: Sequence[ConlluSentence]) -> Sentences:
        """The inputs, as `SequenceTagger` with a template takes them.

        FormatError, with the line, where FEATS is an input and no list of keys and values.
        """
        rows = column_values(sentences, self.inputs)
        known: set[str] = set()
        for at in [k for k, column in enumerate(self.inputs) if column == Column(FEATS)]:
            for sentence, row in zip(sentences, rows, strict=True):
                for word, cells in enumerate(row, 1):
                    if cells[at] not in known:
                        feats_at(cells[at], sentence, word)
                        known.add(cells[at])
        return Sentences.from_lists(rows)

    def check(self, sentences: Sequence[ConlluSentence], path: str, learn: bool = False) -> None:
        """FormatError if the target, or an input in which every word has a value, is blank everywhere.

        learn: also if a key that is an input is nowhere, which may be so in other data than those to learn from
        """
        self.target.check(sentences, path)
        for column in self.inputs:
            if is_blank(sentences, column):
                raise FormatError(f"column {column.base.upper()}, an input, is blank (_) in every word", path)
            if learn and column.key is not None and not has_value(sentences, column):
                raise FormatError(f"no word has {column.key} in {column.base.upper()}, an input", path)

    def labels(self, sentences: Sequence[ConlluSentence]) -> CodedSequences:
        """The labels that the sentences have."""
        return CodedSequences.from_lists([self.target.labels(sentence) for sentence in sentences])

    def training_labels(self, sentences: Sequence[ConlluSentence]) -> CodedSequences:
        """The labels to learn: rules of lemmas that occur once are not."""
        return CodedSequences.from_lists(self.target.training_labels(sentences))

    def fit(self, tagger: Any, sentences: Sequence[ConlluSentence]) -> Any:
        """Train a tagger that has a template on these sentences; it remembers the columns."""
        if not sentences:
            raise FormatError("there are no sentences")
        self.check(sentences, sentences[0].path, learn=True)
        tagger.fit(self.table(sentences), self.training_labels(sentences))
        tagger.input_settings_ = {"format": "conllu", **self.settings()}
        return tagger

    def annotate(self, tagger: Any, sentences: Sequence[ConlluSentence]) -> list[ConlluSentence]:
        """The sentences with predictions in the target's column."""
        found = tagger.predict(self.table(sentences)) if sentences else []
        return [self.target.put(sentence, labels) for sentence, labels in zip(sentences, found, strict=True)]

    def looks_at(self, tagger: Any) -> list[Column]:
        """The inputs that a tagger's template looks at."""
        template = tagger.template_
        return [self.inputs[k] for k in template.columns if k < len(self.inputs)] if template else list(self.inputs)

    def __repr__(self) -> str:
        return f"ConlluColumns(inputs={','.join(self.names)!r}, target={self.target.name!r})"
