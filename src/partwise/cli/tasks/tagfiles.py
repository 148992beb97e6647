"""Files of labelled tokens: columns, CRFsuite's items, CoNLL-U; which one a file is, and how predictions join it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.tasks import Data, NoExamples
from partwise.cli.tasks.labels import are_chunks
from partwise.cli.tasks.tagtext import TextGuess, text_sentences
from partwise.conllu import ConlluColumns
from partwise.features.presets import FEW_TAGS
from partwise.io import (
    CodedSequences,
    ConlluSentence,
    FormatError,
    Sentences,
    make_sentence,
    parse_columns,
    parse_conllu,
    parse_items,
    read_columns,
    read_conllu,
    read_items,
)
from partwise.io.blocks import after_blank_lines, after_empty_lines, before_sentences, text_blocks
from partwise.io.conllu import MISC
from partwise.models.labels import FEW_LABELS

FORMATS = ("auto", "columns", "items", "conllu")
#: Where a file of each format may be cut.
CUTS = {"columns": after_blank_lines, "items": after_empty_lines, "conllu": before_sentences}
SEPARATORS = {"any": None, "tab": "\t", "space": " "}


@dataclass(frozen=True)
class Source:
    """What was read, for writing it again with labels: the input's columns, or just the labels for items.

    CoNLL-U is written as it was read, with the labels in the column of their target.
    """

    format: str
    table: Sentences | None = None
    items: Sequence[Any] | None = None
    conllu: Sequence[ConlluSentence] | None = None
    columns: ConlluColumns | None = None

    @property
    def target(self) -> str | None:
        """The name of what is learnt from CoNLL-U."""
        return None if self.columns is None else self.columns.target.name

    def values(self, labels: Iterable[Sequence[str]]) -> list[list[str]]:
        """Labels of all sentences as the output has them: lemmas for rules of lemmas."""
        if self.columns is None or self.conllu is None:
            return [list(map(str, each)) for each in labels]
        return [self.columns.target.values(*pair) for pair in zip(self.conllu, labels, strict=True)]

    def answer(self, i: int, labels: Sequence[Any]) -> list[Any]:
        """The same of one sentence, for JSON output."""
        if self.columns is None or self.conllu is None:
            return list(labels)
        return self.columns.target.values(self.conllu[i], labels)

    def first_column(self) -> CodedSequences:
        """The word of each token; for items its first attribute."""
        if self.table is not None:
            return CodedSequences.of(self.table, 0)
        assert self.items is not None
        return CodedSequences.from_lists([[str(next(iter(item), "")) for item in each] for each in self.items])

    def take(self, indices: Sequence[int]) -> Source:
        import numpy as np

        if self.table is not None:
            conllu = None if self.conllu is None else [self.conllu[i] for i in indices]
            return Source(self.format, self.table.take(np.asarray(indices)), conllu=conllu, columns=self.columns)
        assert self.items is not None
        return Source(self.format, None, [self.items[i] for i in indices])

    def version(self, i: int, ends: list[str], comment: str, first: bool, last: bool) -> Iterable[str]:
        """The same under a comment, as one of several labellings of the sentence."""
        if self.conllu is not None:
            return self._with_labels(i, ends).lines_under(comment, first, last)
        return [f"# {comment}\n", *self.lines(i, ends)]

    def lines(self, i: int, ends: list[str]) -> Iterable[str]:
        """Sentence i, with a text after each token."""
        if self.conllu is not None:
            return self._with_labels(i, ends).lines
        if self.table is None:
            return [*(f"{end}\n" for end in ends), "\n"]
        return [self.table.lines(i, ends)]

    def _with_labels(self, i: int, ends: Sequence[str]) -> ConlluSentence:
        """A sentence with other labels; what follows a label (TAG/probability, ...) goes to the last column, by key."""
        assert self.conllu is not None
        assert self.columns is not None
        parts = [end.split("\t") for end in ends]
        changed = self.columns.target.put(self.conllu[i], [label for label, *_ in parts])
        if all(len(part) == 1 for part in parts):
            return changed
        return changed.with_misc(
            [
                "|".join([*([] if was in ("_", "") else [was]), *map(_as_pair, more)])
                for was, (_, *more) in zip(changed.column(MISC), parts, strict=True)
            ]
        )


def read_tagged(path: str, settings: Mapping[str, Any], labelled: bool) -> Data:
    """Read sentences for the tagger, in the format that the settings name or the file's name tells."""
    kind = _kind(path, settings)
    if kind == "items":
        found = _items(*read_items(path), labelled)
    elif kind == "conllu":
        # a model knows how many columns it reads; what is yet to be learnt does not
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


def tagged_blocks(path: str, settings: Mapping[str, Any], size: int, labelled: bool = False) -> Iterator[Data]:
    """Read sentences as `read_tagged` does, in blocks of about `size` bytes.

    `settings["text"]`: whether they are plain text; None: look (see `tagtext`).
    """
    kind = _kind(path, settings)
    first, n_columns = 0, 0
    guess = TextGuess(kind, int(settings.get("n_columns") or 1) + 1, CUTS[kind], settings.get("text", False), path)
    for block in text_blocks(path, guess.cut, size):
        if guess.look(block.data):
            if settings.get("why_not_text"):
                raise UserError(f"{path}: is plain text: {settings['why_not_text']}")
            if first == 0 and settings.get("text") is None:
                click.echo(f"{path}: read as plain text, one sentence per line", err=True)
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


def _kind(path: str, settings: Mapping[str, Any]) -> str:
    """The file's format; the settings, which may be a model file's, are checked."""
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
    """A format by a file's name; columns unless it says otherwise."""
    name = path.removesuffix(".gz").lower()
    if name.endswith((".conllu", ".conllx", ".conll-u")):
        return "conllu"
    return "items" if name.endswith((".crfsuite", ".items")) else "columns"


def chosen_columns(settings: Mapping[str, Any], n_columns: int | None, path: str) -> list[int] | None:
    """Numbers from 0 of the columns that --columns names, or None for all."""
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


def file_columns(settings: Mapping[str, Any], data: Data) -> list[int]:
    """The numbers from 1 that the columns of `data.X` have in their file."""
    if data.source.format == "conllu":
        return [column.number + 1 for column in data.source.columns.inputs]
    numbers = chosen_columns(settings, None, "")
    return [k + 1 for k in (range(data.X.n_columns) if numbers is None else numbers[:-1])]


def _split(table: Sentences, path: str, settings: Mapping[str, Any], labelled: bool) -> Data:
    """Features and labels of a table of columns."""
    numbers = chosen_columns(settings, table.n_columns, path)
    n_features = settings.get("n_columns")  # what a model remembers
    if numbers is None:
        width = table.n_columns if n_features is None else int(n_features) + 1
        numbers = list(range(width))
    *features, label = numbers
    if not features:
        raise FormatError("one column is not enough: expected features and, in the last one, the label", path, 1)
    if max(features) >= table.n_columns:
        raise FormatError(f"expected at least {max(features) + 1} columns, found {table.n_columns}", path, 1)
    there = label < table.n_columns
    if labelled and not there:
        raise FormatError(f"expected labels in column {label + 1}, found {table.n_columns} columns", path, 1)
    y = CodedSequences.of(table, label) if labelled else None
    if y is not None and settings.get("columns") is None and n_features is None:
        _warn_of_first_column(CodedSequences.of(table, 0), y, path)
    return Data(table.select(features), y, len(table), int(table.n_tokens))


def _warn_of_first_column(first: CodedSequences, last: CodedSequences, path: str) -> None:
    """Warn where the first column looks like labels, and the last one, which is learnt, does not."""
    chunks = are_chunks(first.names) and not are_chunks(last.names)
    rare = 2 * int((np.bincount(last.codes) == 1).sum()) > len(last.names) > FEW_LABELS
    if chunks or (rare and 1 < len(first.names) <= FEW_TAGS):
        warnings.warn(
            f"{path}: labels are read from the last column, but the first one looks like them "
            f"({', '.join(first.names[:3])}, ...): give --columns 2,...,1 if it has the labels",
            UserWarning,
            stacklevel=2,
        )


def _items(X: list[Any], y: list[list[str]], labelled: bool) -> Data | None:
    labels = CodedSequences.from_lists(y) if labelled else None
    return Data(X, labels, len(X), sum(map(len, X)), Source("items", None, X)) if X else None


def _text(words: list[list[str]], kind: str, settings: Mapping[str, Any]) -> Data | None:
    """Words without labels, for output in the format of the training data."""
    if not words:
        return None
    if kind == "conllu":
        return _conllu(list(map(make_sentence, words)), settings, labelled=False)
    table = Sentences.from_lists(words)
    return Data(table, None, len(table), int(table.n_tokens), Source(kind, table))


def _table(table: Sentences, path: str, settings: Mapping[str, Any], labelled: bool) -> Data | None:
    """A table with what it was read from; None if it is empty."""
    if not len(table):
        return None
    data = _split(table, path, settings, labelled)
    data.source = Source("columns", table)
    return data


def _conllu(
    sentences: Sequence[ConlluSentence], settings: Mapping[str, Any], labelled: bool, learn: bool = False
) -> Data | None:
    """Sentences with the columns that are read; labels to `learn` are fewer (see `ConlluColumns.training_labels`)."""
    if not sentences:
        return None
    columns = conllu_columns(settings)
    table, y = columns.table(sentences), None
    if labelled:
        y = columns.training_labels(sentences) if learn else columns.labels(sentences)
    source = Source("conllu", table, conllu=sentences, columns=columns)
    return Data(table, y, len(table), int(table.n_tokens), source)


def conllu_data(
    given: Sequence[ConlluSentence], gold: Sequence[ConlluSentence], settings: Mapping[str, Any], path: str
) -> Data:
    """Columns of sentences that may have predictions in them, with the labels of other versions of them."""
    columns = conllu_columns(settings)
    columns.target.check(gold, path)
    table, y = columns.table(given), columns.labels(gold)
    return Data(table, y, len(table), int(table.n_tokens), Source("conllu", table, conllu=gold, columns=columns))


def conllu_columns(settings: Mapping[str, Any]) -> ConlluColumns:
    """The columns that flags name, or a model remembers."""
    if settings.get("columns"):
        raise UserError("--columns: those of CoNLL-U have names: use --inputs and --target")
    try:
        return ConlluColumns.of_settings(settings)
    except ValueError as error:
        raise UserError(f"--inputs, --target: {error}") from None


def _as_pair(text: str) -> str:
    """A tag with its probability as an entry of the last column, where | and = part entries and keys."""
    tag, _, value = text.rpartition("/")
    return f"Probability[{tag.replace('|', '%7C').replace('=', '%3D')}]={value}"
