"""Corpora: tagged and chunked sentences, named entities, dependency and constituent trees; attributes of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from partwise import io
from partwise.datasets.files import Dataset, data_file
from partwise.io.files import Path, open_bytes
from partwise.io.trees import Tree

if TYPE_CHECKING:
    from partwise.features import Template

Attributes = list[list[list[str]]]
Sentences = list[list[str]]
#: Sentences with their heads.
Trees = Dataset[io.ConlluSentences, list[list[int]]]


def read_columns(path: Path, *, separator: str | None = None) -> list[list[list[str]]]:
    """Read a file of columns as `partwise.io.read_columns` does; separator: a tab, a space, None for any run of both.

    Returns one list per sentence, which holds one list of strings per column: ``words, tags = sentence``.
    """
    table = io.read_columns(path, separator)
    columns = [table.column(j) for j in range(table.n_columns)]
    return [list(sentence) for sentence in zip(*columns, strict=True)]


def wnut17(data: Path | None = None, *, test: str = "test") -> Dataset[Sentences, Sentences]:
    """Read WNUT 17 from ``wnut17/{train,dev,test}.conll``: words and IOB2 labels of six types; test may be "dev"."""
    if test not in ("test", "dev"):
        raise ValueError(f"test must be 'test' or 'dev', got {test!r}")
    parts: list[Sentences] = []
    for name in ("train", test):
        parts += _columns(data_file("wnut17", f"{name}.conll", data), "word and label", 2, "\t")
    return Dataset(*parts)


def _columns(path: Path, what: str, n_columns: int, separator: str | None = None) -> list[Sentences]:
    """Read a file of columns: a list of sentences per column; ValueError for a wrong number of columns."""
    table = io.read_columns(path, separator)
    if len(table) and table.n_columns != n_columns:
        raise ValueError(f"{path}: {table.n_columns} columns, expected {what}")
    return [table.column(j) if len(table) else [] for j in range(n_columns)]


def brown(data: Path | None = None, *, every: int = 10, offset: int = 9) -> Dataset[Sentences, Sentences]:
    """Read the Brown corpus from ``brown/brown.txt``: words and their full tags.

    Every tenth document (`every`), counted from `offset`, is for testing, all others for training.
    """
    if every < 2 or not 0 <= offset < every:
        raise ValueError(f"every={every}, offset={offset}: expected every >= 2 and 0 <= offset < every")
    path = data_file("brown", "brown.txt", data)
    parts: tuple[tuple[Sentences, Sentences], ...] = (([], []), ([], []))
    document = -1
    with open_bytes(path) as (file, _):
        for number, raw in enumerate(file, 1):
            line = raw.decode("utf-8").strip()
            if line.startswith("# "):
                document += 1
                continue
            if not line:
                continue
            pairs = [token.rpartition("/") for token in line.split()]
            if document < 0 or not all(word and tag for word, _, tag in pairs):
                raise ValueError(f"{path}, line {number}: expected word/tag after a line with a document's name")
            X, y = parts[document % every == offset]
            X.append([word for word, _, _ in pairs])
            y.append([tag for _, _, tag in pairs])
    return Dataset(*parts[0], *parts[1])


def universal_dependencies(name: str = "ud-english-ewt", data: Path | None = None, *, test: str = "test") -> Trees:
    """Read a treebank of Universal Dependencies from ``name/{train,dev,test}.conllu``; `test` may be "dev"."""
    if test not in ("test", "dev"):
        raise ValueError(f"test must be 'test' or 'dev', got {test!r}")
    return _trees(io.read_conllu(data_file(name, f"{part}.conllu", data)) for part in ("train", test))


def conll2007_spanish(data: Path | None = None) -> Trees:
    """Read the Spanish trees of CoNLL-2007 from ``conll2007-spanish/esp.{train,test}``."""
    files = (data_file("conll2007-spanish", f"esp.{part}", data) for part in ("train", "test"))
    return _trees(map(io.read_conllx, files))


def treebank_sample(data: Path | None = None) -> list[Tree]:
    """Read the constituent trees of ``treebank-sample/wsj_sample.mrg``, with their traces and function tags."""
    return io.read_trees(data_file("treebank-sample", "wsj_sample.mrg", data))


def _trees(parts: Iterable[io.ConlluSentences]) -> Trees:
    train, test = parts
    return Dataset(train, [each.heads for each in train], test, [each.heads for each in test])


def conll2000(data: Path | None = None, *, task: str = "chunks") -> Dataset[Attributes, Sentences]:
    """Read the CoNLL-2000 data from ``conll2000/{train,test}.txt`` (or ``.gz``).

    task "chunks": X holds each token's `chunk_features`, y its chunk label in IOB2. task "pos": X holds each token's
    `pos_features`, y its part of speech.
    """
    if task not in ("chunks", "pos"):
        raise ValueError(f"task must be 'chunks' or 'pos', got {task!r}")
    parts: list[tuple[Attributes, Sentences]] = []
    for name in ("train.txt", "test.txt"):
        words, tags, chunks = _columns(data_file("conll2000", name, data), "word, part of speech and chunk", 3)
        if task == "pos":
            parts.append(([pos_features(each) for each in words], tags))
        else:
            parts.append(([chunk_features(*each) for each in zip(words, tags, strict=True)], chunks))
    return Dataset(*parts[0], *parts[1])


def pos_features(tokens: Sequence[str]) -> list[list[str]]:
    """Return attributes for part-of-speech tagging, after Ratnaparkhi 1996.

    The words up to two tokens away, prefixes and suffixes of up to four letters, and whether the word has a digit, an
    upper-case letter or a hyphen. (There the spelling is looked at for rare words only.) A tagger adds the tags before
    a token itself: ``SequenceTagger(model="maxent")``.
    """
    pad = ["__NONE__"] * 2
    w = [*pad, *tokens, *pad]
    rows = []
    for t, word in enumerate(tokens, 2):
        row = [f"w[{k}]={w[t + k]}" for k in range(-2, 3)]
        row += [f"prefix={word[:k]}" for k in range(1, min(4, len(word)) + 1)]
        row += [f"suffix={word[-k:]}" for k in range(1, min(4, len(word)) + 1)]
        spelling = {"digit": any(map(str.isdigit, word)), "upper": any(map(str.isupper, word)), "hyphen": "-" in word}
        rows.append([*row, *(name for name, there in spelling.items() if there)])
    return rows


def chunk_features(tokens: Sequence[str], pos: Sequence[str]) -> list[list[str]]:
    """Return attributes of a sentence's tokens, by the 19 templates of CRFsuite's chunking example.

    Words and parts of speech up to two tokens away, the word pairs with the neighbours, all part-of-speech pairs and
    triples inside that window. A template that reaches past the sentence gives no attribute; the first token has
    also ``__BOS__`` and the last ``__EOS__``.
    """
    if len(pos) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens but {len(pos)} parts of speech")
    return _chunk_template().attributes([zip(tokens, pos, strict=True)])[0]


@cache
def _chunk_template() -> Template:
    from partwise.features import Template

    return Template.preset("chunk")
