"""Maxent problems of section 5 of Huang et al. 2010: contexts with their labels, as arrays.

Text: a context is a position with its words, spelling and the two (gold) tags before it, as 0/1 features. A feature
ties an attribute to one label, and is kept if the pair occurs at least `CUTOFF` times in the training data. (OpenNLP
counts attributes, not pairs, and has others for chunks: `papers.maxent_contexts` has the features of the paper's Table
3.) Labels are those of the training data (Brown has 188 without modifiers, some of them in very few articles).
Documents: 20news counts, rows of length 1, a feature for every (word, label).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CUTOFF = 5
_TEST = 20_000  # the most contexts that accuracy is measured on


@dataclass
class Contexts:
    """Training and test rows. values: empty if all are 1. pair_ptr, pair_labels: labels of attributes; empty: all."""

    row_ptr: Ints
    attributes: Ints
    values: Floats
    labels: Ints
    test_row_ptr: Ints
    test_attributes: Ints
    test_values: Floats
    test_labels: Ints
    pair_ptr: Ints
    pair_labels: Ints
    sizes: Ints  # numbers of attributes and labels

    def save(self, path: str) -> None:
        np.savez(path, **vars(self))

    @classmethod
    def load(cls, path: str) -> Contexts:
        with np.load(path) as arrays:
            return cls(**arrays)


def conll_pos(data: str | None, limit: int | None) -> Contexts:
    """Return parts of speech of CoNLL-2000."""
    (words, tags, _), (test_words, test_tags, _) = _conll(data, limit)
    return _contexts([*words, *test_words], [*tags, *test_tags], len(words))


def conll_chunks(data: str | None, limit: int | None) -> Contexts:
    """Return chunk labels of CoNLL-2000, with the attributes of CRFsuite's example."""
    from partwise.datasets import chunk_features

    (words, pos, chunks), (test_words, test_pos, test_chunks) = _conll(data, limit)
    sentences = [*zip([*words, *test_words], [*pos, *test_pos], strict=True)]
    number: dict[str, int] = {}
    rows = [
        [number.setdefault(name, len(number)) for name in row] for pair in sentences for row in chunk_features(*pair)
    ]
    widest = max(map(len, rows))
    table = np.array([row + [-1] * (widest - len(row)) for row in rows], dtype=np.int64)
    return _contexts([*words, *test_words], [*chunks, *test_chunks], len(words), table)


def brown(data: str | None, limit: int | None) -> Contexts:
    """Return parts of speech of the Brown corpus; a random four fifths of the articles are for training."""
    from partwise.datasets import data_file
    from partwise.io import read_text

    articles: list[list[list[tuple[str, str]]]] = []
    for line in read_text(data_file("brown", "brown.txt", data)).split("\n"):
        if line.startswith("# "):
            articles.append([])
        elif line.strip():
            articles[-1].append([_word_and_tag(token) for token in line.split()])
    order = np.random.default_rng(0).permutation(len(articles))[:limit]
    cut = max(len(order) * 4 // 5, 1)
    parts = [[sentence for k in some for sentence in articles[k]] for some in (order[:cut], order[cut:])]
    sentences = [*parts[0], *parts[1]]
    words, tags = ([[token[k] for token in sentence] for sentence in sentences] for k in (0, 1))
    return _contexts(words, tags, len(parts[0]))


def documents(data: str | None, limit: int | None, *, bias: bool = False) -> Contexts:
    """Return 20news, each row of counts divided by its length."""
    import scipy.sparse as sp
    from sklearn.preprocessing import normalize

    from benchmarks.maxent import load

    shared = load(data, None, "20news")
    some = slice(None, None, 1 if limit is None else -(-len(shared.y_train) // limit))  # documents are sorted by label
    shared = shared._replace(X_train=shared.X_train[some], y_train=shared.y_train[some])
    seen = np.flatnonzero(np.bincount(shared.X_train.indices, minlength=shared.X_train.shape[1]))
    parts = []
    for X in (shared.X_train, shared.X_test):
        X = normalize(sp.csr_array(X)[:, seen])
        X = sp.csr_array(sp.hstack([X, np.ones((X.shape[0], 1))])) if bias else X
        parts.append((X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data))
    none = np.zeros(0, dtype=np.int64)
    y, test = (labels.astype(np.int64) for labels in (shared.y_train, shared.y_test))
    sizes = np.array([X.shape[1], int(y.max()) + 1])
    return Contexts(*parts[0], y, *parts[1], test, none, none, sizes)


def documents_with_bias(data: str | None, limit: int | None) -> Contexts:
    """Return `documents` with a column of ones added."""
    return documents(data, limit, bias=True)


# Data set: (function that makes it, l2, whether all features are 0/1).
DATASETS: dict[str, tuple[Callable[[str | None, int | None], Contexts], float, bool]] = {
    "conll-pos": (conll_pos, 0.1, True),
    "conll-chunks": (conll_chunks, 0.1, True),
    "20news": (documents, 0.125, False),
    "20news-bias": (documents_with_bias, 0.125, False),
    "brown": (brown, 0.1, True),
}


def _word_and_tag(token: str) -> tuple[str, str]:
    from papers.maxent_contexts import plain_tag

    word, _, tag = token.rpartition("/")
    return word, plain_tag(tag)


def _conll(data: str | os.PathLike[str] | None, limit: int | None) -> list[tuple[list[list[str]], ...]]:
    from partwise.datasets import data_file, read_columns

    found = []
    for name in ("train.txt", "test.txt"):
        sentences = read_columns(data_file("conll2000", name, data))[:limit]
        found.append(tuple([list(column) for column in columns] for columns in zip(*sentences, strict=True)))
    return found


def _contexts(
    words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]], n_train: int, table: Ints | None = None
) -> Contexts:
    """Make contexts of all positions; the first n_train sentences are for training. table: attributes (-1: absent)."""
    from partwise._core import padded_width
    from partwise.features import RowLayout

    lengths = np.array([len(sentence) for sentence in words])
    names: dict[str, int] = {}
    for tag in (tag for sentence in tags[:n_train] for tag in sentence):
        names.setdefault(tag, len(names))
    n_labels = len(names)
    labels = np.array([names.get(tag, n_labels) for sentence in tags for tag in sentence])
    table = _spelling(words, lengths) if table is None else table
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    place = np.arange(len(labels)) - begins
    one = np.where(place > 0, np.roll(labels, 1), n_labels)
    two = np.where(place > 1, np.roll(labels, 2), n_labels)
    last = int(table.max()) + 1
    history = np.stack([last + one, last + n_labels + 1 + two * (n_labels + 1) + one], axis=1)
    table = np.concatenate([table, history], axis=1)
    split = int(lengths[:n_train].sum())
    # Use only the attributes that occur in the training data.
    seen = np.unique(table[:split])
    seen = seen[seen >= 0]
    number = np.full(int(table.max()) + 2, -1, dtype=np.int64)  # the last entry is for -1
    number[seen] = np.arange(len(seen))
    train, test = (_rows(number[part]) for part in (table[:split], table[split : split + _TEST]))
    layout = RowLayout.observed(len(seen), n_labels, padded_width(n_labels), *train, labels[:split], CUTOFF)
    none = np.zeros(0)
    sizes = np.array([len(seen), n_labels])
    return Contexts(*train, none, labels[:split], *test, none, labels[split : split + _TEST], *layout.pairs(), sizes)


def _rows(table: Ints) -> tuple[Ints, Ints]:
    there = table >= 0
    row_ptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    return row_ptr, table[there]


def _spelling(words: Sequence[Sequence[str]], lengths: Ints) -> Ints:
    """Return the attributes of `partwise.datasets.pos_features` as numbers, one column each; -1 if absent."""
    from partwise.datasets import pos_features

    numbers: dict[str, int] = {}
    flat = np.array([numbers.setdefault(word, len(numbers)) for sentence in words for word in sentence])
    n_words, n = len(numbers), len(flat)
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    ends = begins + np.repeat(lengths, lengths)
    columns = []
    for k, offset in enumerate(range(-2, 3)):
        place = np.arange(n) + offset
        inside = (place >= begins) & (place < ends)
        near = np.where(inside, flat[np.clip(place, 0, n - 1)], n_words)
        columns.append(k * (n_words + 1) + near)
    # Spelling does not depend on the neighbours: compute it once per distinct word.
    parts: dict[str, int] = {}
    own = [[parts.setdefault(name, len(parts)) for name in pos_features([word])[0][5:]] for word in numbers]
    widest = max(map(len, own))
    spelled = np.array([row + [-1] * (widest - len(row)) for row in own], dtype=np.int64)
    spelled = np.where(spelled >= 0, spelled + 5 * (n_words + 1), -1)
    return np.concatenate([np.stack(columns, axis=1), spelled[flat]], axis=1)
