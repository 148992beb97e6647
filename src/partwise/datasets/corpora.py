"""Corpora: tagged and chunked sentences, named entities, dependency and constituent trees; attributes of tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence

from partwise import io
from partwise.datasets.files import Dataset, data_file, open_bytes
from partwise.datasets.treebank import Tree

Path = str | os.PathLike[str]
Attributes = list[list[list[str]]]
Sentences = list[list[str]]
#: Sentences with their heads.
Trees = Dataset[io.ConlluSentences, list[list[int]]]

_WINDOW = 2


def read_columns(path: Path, *, separator: str | None = None) -> list[list[list[str]]]:
    """Read sentences from a file of columns, gzipped or plain, in UTF-8, as lists (see `partwise.io.read_columns`).

    Parameters
    ----------
    path : the file
    separator : what separates columns, a tab or a space; None: any run of spaces and tabs

    Returns
    -------
    One list per sentence, which holds one list of strings per column: ``words, tags = sentence``.

    Raises
    ------
    FormatError
        If lines have different numbers of columns, with the line's number.
    """
    table = io.read_columns(path, separator)
    columns = [table.column(j) for j in range(table.n_columns)]
    return [list(sentence) for sentence in zip(*columns, strict=True)]


def wnut17(data: Path | None = None, *, test: str = "test") -> Dataset[Sentences, Sentences]:
    """Read WNUT 17 from ``wnut17/{train,dev,test}.conll``: words and IOB2 labels of six types; test may be "dev"."""
    if test not in ("test", "dev"):
        raise ValueError(f"test must be 'test' or 'dev', got {test!r}")
    parts: list[tuple[Sentences, Sentences]] = []
    for name in ("train", test):
        path = data_file("wnut17", f"{name}.conll", data)
        sentences = read_columns(path, separator="\t")
        if sentences and len(sentences[0]) != 2:
            raise ValueError(f"{path}: {len(sentences[0])} columns, expected word and label")
        parts.append(([words for words, _ in sentences], [labels for _, labels in sentences]))
    return Dataset(*parts[0], *parts[1])


def brown(data: Path | None = None, *, every: int = 10, offset: int = 9) -> Dataset[Sentences, Sentences]:
    """Read the Brown corpus from ``brown/brown.txt``: words and their full tags.

    Every tenth document (`every`), counted from `offset`, is for testing, all others for training.
    """
    if every < 2 or not 0 <= offset < every:
        raise ValueError(f"every={every}, offset={offset}: expected every >= 2 and 0 <= offset < every")
    path = data_file("brown", "brown.txt", data)
    parts: tuple[tuple[Sentences, Sentences], ...] = (([], []), ([], []))
    document = -1
    with open_bytes(path) as file:
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
    train, held = (io.read_conllu(data_file(name, f"{part}.conllu", data)) for part in ("train", test))
    return _dataset(train, held)


def conll2007_spanish(data: Path | None = None) -> Trees:
    """Read the Spanish trees of CoNLL-2007 from ``conll2007-spanish/esp.{train,test}``."""
    train, held = (io.read_conllx(data_file("conll2007-spanish", f"esp.{part}", data)) for part in ("train", "test"))
    return _dataset(train, held)


def treebank_sample(data: Path | None = None) -> list[Tree]:
    """Read the constituent trees of ``treebank-sample/wsj_sample.mrg``, with their traces and function tags."""
    return io.read_trees(data_file("treebank-sample", "wsj_sample.mrg", data))


def _dataset(train: io.ConlluSentences, test: io.ConlluSentences) -> Trees:
    return Dataset(train, [each.heads for each in train], test, [each.heads for each in test])


def conll2000(data: Path | None = None, *, task: str = "chunks") -> Dataset[Attributes, Sentences]:
    """Read the CoNLL-2000 data from ``conll2000/{train,test}.txt`` (or ``.gz``).

    task "chunks": X holds each token's `chunk_features`, y its chunk label in IOB2. task "pos": X holds each token's
    `pos_features`, y its part of speech.
    """
    if task not in ("chunks", "pos"):
        raise ValueError(f"task must be 'chunks' or 'pos', got {task!r}")
    train, test = _read_part("train.txt", data, task), _read_part("test.txt", data, task)
    return Dataset(*train, *test)


def _read_part(name: str, data: Path | None, task: str) -> tuple[Attributes, Sentences]:
    path = data_file("conll2000", name, data)
    sentences = read_columns(path)
    if sentences and len(sentences[0]) != 3:
        raise ValueError(f"{path}: {len(sentences[0])} columns, expected word, part of speech and chunk")
    if task == "pos":
        return [pos_features(words) for words, _, _ in sentences], [tags for _, tags, _ in sentences]
    return [chunk_features(words, tags) for words, tags, _ in sentences], [labels for _, _, labels in sentences]


def pos_features(tokens: Sequence[str]) -> list[list[str]]:
    """Return attributes for part-of-speech tagging, after Ratnaparkhi 1996.

    The words up to two tokens away, prefixes and suffixes of up to four letters, and whether the word has a digit, an
    upper-case letter or a hyphen. (There the spelling is looked at for rare words only.) A tagger adds the tags before
    a token itself: ``SequenceTagger(model="maxent")``.
    """
    pad = ["__NONE__"] * _WINDOW
    w = [*pad, *tokens, *pad]
    rows = []
    for t, word in enumerate(tokens, _WINDOW):
        row = [f"w[{k}]={w[t + k]}" for k in range(-_WINDOW, _WINDOW + 1)]
        row += [f"prefix={word[:k]}" for k in range(1, min(4, len(word)) + 1)]
        row += [f"suffix={word[-k:]}" for k in range(1, min(4, len(word)) + 1)]
        spelling = {"digit": any(map(str.isdigit, word)), "upper": any(map(str.isupper, word)), "hyphen": "-" in word}
        row += [name for name, there in spelling.items() if there]
        rows.append(row)
    return rows


def chunk_features(tokens: Sequence[str], pos: Sequence[str]) -> list[list[str]]:
    """Return attributes of a sentence's tokens, by the 19 templates of CRFsuite's chunking example.

    Words and parts of speech up to two tokens away, the word pairs with the neighbours, all part-of-speech pairs and
    triples inside that window. A template that reaches past the sentence gives no attribute; the first token has
    also ``__BOS__`` and the last ``__EOS__``.
    """
    n = len(tokens)
    if len(pos) != n:
        raise ValueError(f"{n} tokens but {len(pos)} parts of speech")
    if not n:
        return []
    pad = [""] * _WINDOW
    w, p = [*pad, *tokens, *pad], [*pad, *pos, *pad]
    rows = [
        [
            f"w[-2]={w2}",
            f"w[-1]={w1}",
            f"w[0]={w0}",
            f"w[1]={v1}",
            f"w[2]={v2}",
            f"w[-1]|w[0]={w1}|{w0}",
            f"w[0]|w[1]={w0}|{v1}",
            f"pos[-2]={p2}",
            f"pos[-1]={p1}",
            f"pos[0]={p0}",
            f"pos[1]={q1}",
            f"pos[2]={q2}",
            f"pos[-2]|pos[-1]={p2}|{p1}",
            f"pos[-1]|pos[0]={p1}|{p0}",
            f"pos[0]|pos[1]={p0}|{q1}",
            f"pos[1]|pos[2]={q1}|{q2}",
            f"pos[-2]|pos[-1]|pos[0]={p2}|{p1}|{p0}",
            f"pos[-1]|pos[0]|pos[1]={p1}|{p0}|{q1}",
            f"pos[0]|pos[1]|pos[2]={p0}|{q1}|{q2}",
        ]
        for w2, w1, w0, v1, v2, p2, p1, p0, q1, q2 in zip(
            w, w[1:], w[2:], w[3:], w[4:], p, p[1:], p[2:], p[3:], p[4:], strict=False
        )
    ]
    # Templates are written out for every token, which is fast; what reached past the ends is dropped after.
    for t in {*range(min(_WINDOW, n)), *range(max(n - _WINDOW, 0), n)}:
        rows[t] = [text for text, (low, high) in zip(rows[t], _REACH, strict=True) if t + low >= 0 and t + high < n]
    rows[0].append("__BOS__")
    rows[-1].append("__EOS__")
    return rows


# The first and last offset each template looks at, in the order above.
_REACH = (
    *((k, k) for k in range(-2, 3)),
    *((-1, 0), (0, 1)),
    *((k, k) for k in range(-2, 3)),
    *((k, k + 1) for k in range(-2, 2)),
    *((k, k + 2) for k in range(-2, 1)),
)
