"""Files of labelled tokens: columns, CRFsuite's items, CoNLL-U; which one a file is, and how predictions join it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import Flags
from partwise.cli.tasks import Data, NoExamples
from partwise.cli.tasks.inputs import TextGuess, blocks_or_text, text_sentences
from partwise.cli.tasks.labels import are_chunks
from partwise.features import Template
from partwise.features.presets import FEW_TAGS
from partwise.io.blocks import after_blank_lines, after_empty_lines, before_sentences
from partwise.io.coded import CodedSequences, Sentences
from partwise.io.columns import parse_columns, read_columns
from partwise.io.conllu import ConlluSentence, make_sentence, parse_conllu, read_conllu
from partwise.io.errors import FormatError
from partwise.io.items import Item, parse_items, read_items
from partwise.models.labels import FEW_LABELS
from partwise.tables.conllu import ConlluColumns

Conllu: TypeAlias = Sequence[ConlluSentence]

FORMATS = ("auto", "columns", "items", "conllu")
#: Where a file of each format may be cut.
CUTS = {"columns": after_blank_lines, "items": after_empty_lines, "conllu": before_sentences}
SEPARATORS = {"any": None, "tab": "\t", "space": " "}


@dataclass(frozen=True)
class Source:
    """Sentences as read, to be written with labels: columns and CoNLL-U as they were, of items only the labels."""

    format: str
    table: Sentences | None = None
    items: Sequence[Sequence[Item]] = ()
    conllu: Sequence[ConlluSentence] | None = None
    columns: ConlluColumns | None = None

    @property
    def target(self) -> str | None:
        """The name of what is learnt from CoNLL-U."""
        return None if self.columns is None else self.columns.target.name

    def values(self, labels: Iterable[Sequence[str]]) -> list[list[str]]:
        """Return labels of all sentences as the output has them: lemmas for rules of lemmas."""
        return [self.answer(i, each) for i, each in enumerate(labels)]

    def answer(self, i: int, labels: Sequence[Any]) -> list[Any]:
        """Return the labels of sentence i as the output has them."""
        if self.columns is None or self.conllu is None:
            return list(labels)
        return self.columns.target.values(self.conllu[i], labels)

    def first_column(self) -> CodedSequences:
        """Return the word of each token; for items its first attribute."""
        if self.table is not None:
            return CodedSequences.of(self.table, 0)
        return CodedSequences.from_lists([[str(next(iter(item), "")) for item in each] for each in self.items])

    def take(self, indices: Sequence[int]) -> Source:
        if self.table is None:
            return replace(self, items=[self.items[i] for i in indices])
        conllu = None if self.conllu is None else [self.conllu[i] for i in indices]
        return replace(self, table=self.table.take(np.asarray(indices)), conllu=conllu)

    def version(self, i: int, ends: list[str], comment: str, first: bool, last: bool) -> Iterable[str]:
        """Return sentence i with labels, under a comment, as one of several labellings of the sentence."""
        if self.conllu is not None:
            return self._with_labels(i, ends).lines_under(comment, first, last)
        return [f"# {comment}\n", *self.lines(i, ends)]

    def lines(self, i: int, ends: list[str]) -> Iterable[str]:
        """Return sentence i, with a text after each token."""
        if self.conllu is not None:
            return self._with_labels(i, ends).lines
        return [*(f"{end}\n" for end in ends), "\n"] if self.table is None else [self.table.lines(i, ends)]

    def _with_labels(self, i: int, ends: Sequence[str]) -> ConlluSentence:
        """Return a sentence with other labels; texts after a label (TAG/probability, ...) go to MISC, by key."""
        assert self.conllu is not None
        assert self.columns is not None
        parts = [end.split("\t") for end in ends]
        changed = self.columns.target.put(self.conllu[i], [label for label, *_ in parts])
        if all(len(part) == 1 for part in parts):
            return changed
        return changed.with_entries(map(_as_pair, more) for _, *more in parts)


@dataclass(frozen=True)
class Choice:
    """The features of a tagger; `name`: of a preset or a template's file, or "items"; `columns`: counted from 1."""

    template: Template | None
    name: str
    columns: tuple[int, ...] = ()


@dataclass
class TaggedData(Data):
    """Sentences for taggers; `chosen`: the features that were chosen by looking at them, so that they are read once."""

    y: CodedSequences
    source: Source
    chosen: Choice | None = None


def read_tagged(path: str, settings: Flags, labelled: bool) -> TaggedData:
    """Read sentences for the tagger, in the format that the settings name or the file's name tells."""
    kind = _kind(path, settings)
    if kind == "items":
        found = _items(*read_items(path), labelled)
    elif kind == "conllu":
        # a model knows how many columns it reads; training does not
        sentences = read_conllu(path)
        learn = not settings.get("n_columns")
        if labelled and sentences:
            conllu_columns(settings).check(sentences, path, learn)
        found = _conllu(sentences, settings, labelled, learn)
    else:
        table = read_columns(path, SEPARATORS[settings.get("separator") or "any"])
        found = _table(table, path, settings, labelled)
    if found is None:
        raise NoExamples("there are no sentences", path)
    return found


def tagged_blocks(path: str, settings: Flags, size: int, labelled: bool = False) -> Iterator[TaggedData]:
    """Read sentences as `read_tagged` does, in blocks of about `size` bytes, or plain text (see `blocks_or_text`)."""
    kind = _kind(path, settings)
    first, n_columns = 0, 0
    guess = TextGuess(kind, int(settings.get("n_columns") or 1) + 1, CUTS[kind], settings.get("text", False), path)
    for block, is_text in blocks_or_text(path, guess, size, settings):
        if is_text:
            found = _text(text_sentences(block, path), kind, settings)
        elif kind == "items":
            found = _items(*parse_items(block.data, path, line=block.line), labelled)
        elif kind == "conllu":
            found = _conllu(parse_conllu(block.data, path, line=block.line), settings, labelled)
        else:
            separator = SEPARATORS[settings.get("separator") or "any"]
            table = parse_columns(block.data, path, separator, line=block.line, n_columns=n_columns)
            n_columns = table.n_columns
            found = _table(table, path, settings, labelled)
        if found is not None:
            yield replace(found, first=first)
            first += found.n_examples
    if not first:
        raise NoExamples("there are no sentences", path)


def _kind(path: str, settings: Flags) -> str:
    """Return the file's format, after checks of the settings, which may be a model file's."""
    kind = settings.get("format") or "auto"
    width, separator = settings.get("n_columns"), settings.get("separator") or "any"
    if kind not in FORMATS or separator not in SEPARATORS or (width is not None and not 0 < int(width) < 10**6):
        raise ValueError(f"invalid input settings: {dict(settings)!r}")  # of a model file that was tampered with
    found = detect(path) if kind == "auto" else str(kind)
    for flag in ("inputs", "target"):
        if settings.get(flag) is not None and found != "conllu":
            raise UserError(f"--{flag} is for CoNLL-U; {path} is read as {found} (--format conllu says otherwise)")
    return found


def detect(path: str) -> str:
    """Return a format by a file's name; columns unless the name says otherwise."""
    name = path.removesuffix(".gz").lower()
    if name.endswith((".conllu", ".conllx", ".conll-u")):
        return "conllu"
    return "items" if name.endswith((".crfsuite", ".items")) else "columns"


def chosen_columns(settings: Flags) -> list[int] | None:
    """Return the numbers from 0 of the columns that --columns names, or None for all."""
    text = settings.get("columns")
    if not text:
        return None
    try:
        numbers = [int(part) - 1 for part in str(text).split(",")]  # a model file may have a number here
    except ValueError:
        raise UserError(f"--columns: expected numbers as in 1,2,4, got {text!r}") from None
    if len(numbers) < 2 or min(numbers) < 0 or len(set(numbers)) != len(numbers):
        raise UserError(f"--columns: expected different numbers from 1, the label's last, got {text!r}")
    return numbers


def file_columns(settings: Flags, data: TaggedData) -> list[int]:
    """Return the numbers from 1 that the columns of `data.X` have in their file."""
    if data.source.columns is not None:
        return [column.number + 1 for column in data.source.columns.inputs]
    numbers = chosen_columns(settings)
    return [k + 1 for k in (range(data.X.n_columns) if numbers is None else numbers[:-1])]


def _table(table: Sentences, path: str, settings: Flags, labelled: bool) -> TaggedData | None:
    """Return features and labels of a table of columns; None for an empty table."""
    if not len(table):
        return None
    numbers = chosen_columns(settings)
    n_features = settings.get("n_columns")  # what a model remembers
    if numbers is None:
        numbers = list(range(table.n_columns if n_features is None else int(n_features) + 1))
    *features, label = numbers
    if not features:
        raise FormatError("one column is not enough: expected features and, in the last one, the label", path, 1)
    if max(features) >= table.n_columns:
        raise FormatError(f"expected at least {max(features) + 1} columns, found {table.n_columns}", path, 1)
    if labelled and label >= table.n_columns:
        raise FormatError(f"expected labels in column {label + 1}, found {table.n_columns} columns", path, 1)
    y = CodedSequences.of(table, label) if labelled else None
    if y is not None and settings.get("columns") is None and n_features is None:
        _warn_of_first_column(CodedSequences.of(table, 0), y, path)
    return _data(table.select(features), y, Source("columns", table))


def _warn_of_first_column(first: CodedSequences, last: CodedSequences, path: str) -> None:
    """Warn if the first column looks like labels, and the last one, which is learnt, does not."""
    chunks = are_chunks(first.names) and not are_chunks(last.names)
    rare = 2 * int((np.bincount(last.codes) == 1).sum()) > len(last.names) > FEW_LABELS
    if chunks or (rare and 1 < len(first.names) <= FEW_TAGS):
        message = (
            f"{path}: labels are read from the last column, but the first one looks like them "
            f"({', '.join(first.names[:3])}, ...): give --columns 2,...,1 if it has the labels"
        )
        warnings.warn(message, UserWarning, stacklevel=2)


def _data(X: Sentences, y: CodedSequences | None, source: Source) -> TaggedData:
    return TaggedData(X, y, len(X), int(X.n_tokens), source)  # type: ignore[arg-type]  # y is there when it is used


def _items(X: list[list[Item]], y: list[list[str]], labelled: bool) -> TaggedData | None:
    labels: Any = CodedSequences.from_lists(y) if labelled else None
    return TaggedData(X, labels, len(X), sum(map(len, X)), Source("items", None, X)) if X else None


def _text(words: list[list[str]], kind: str, settings: Flags) -> TaggedData | None:
    """Return words without labels, for output in the format of the training data."""
    if not words:
        return None
    if kind == "conllu":
        return _conllu(list(map(make_sentence, words)), settings, labelled=False)
    table = Sentences.from_lists(words)
    return _data(table, None, Source(kind, table))


def _conllu(sentences: Conllu, settings: Flags, labelled: bool, learn: bool = False) -> TaggedData | None:
    """Return the columns that are read; learn: labels to train on (see `ConlluColumns.training_labels`)."""
    if not sentences:
        return None
    columns = conllu_columns(settings)
    table, y = columns.table(sentences), None
    if labelled:
        y = columns.training_labels(sentences) if learn else columns.labels(sentences)
    return _data(table, y, Source("conllu", table, conllu=sentences, columns=columns))


def conllu_data(given: Conllu, gold: Conllu, settings: Flags, path: str) -> TaggedData:
    """Return columns of sentences that may have predictions in them, with the labels of `gold`."""
    columns = conllu_columns(settings)
    columns.target.check(gold, path)
    table = columns.table(given)
    return _data(table, columns.labels(gold), Source("conllu", table, conllu=gold, columns=columns))


def conllu_columns(settings: Flags) -> ConlluColumns:
    """Return the columns that flags name, or a model remembers."""
    if settings.get("columns"):
        raise UserError("--columns: those of CoNLL-U have names: use --inputs and --target")
    try:
        return ConlluColumns.of_settings(settings)
    except ValueError as error:
        raise UserError(f"--inputs, --target: {error}") from None


def _as_pair(text: str) -> str:
    """Return a tag with its probability as an entry of MISC, in which | and = separate entries and keys."""
    tag, _, value = text.rpartition("/")
    return f"Probability[{tag.replace('|', '%7C').replace('=', '%3D')}]={value}"
