"""Contexts of section 5.1 of Huang et al. 2010: positions of sentences with OpenNLP's 0/1 attributes, and their tags.

Attributes are those of OpenNLP's taggers by default (Ratnaparkhi 1998). Some contain the tags before a position: the
gold tags in training, predicted tags in a beam search. Attributes that occur fewer than `CUTOFF` times are left out; a
feature ties an attribute to a label that occurs with it. Equal contexts with equal labels are one example.

An attribute is the value of a template, which is a tuple of columns; a column has one number per position, or -1 if the
attribute is absent there. "p1" and "p2" are the tags one and two positions back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from partwise.datasets import data_file, read_columns
from partwise.features import Attributes, RowLayout, maxent_map, merge_contexts
from partwise.io import read_text
from partwise.problem import Problem
from partwise.structures import Multiclass, padded_width
from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.lazy import cached_property

#: OpenNLP's default.
CUTOFF = 5
Template = tuple[str, ...]
Sentences = Sequence[Sequence[str]]

_WORDS: tuple[Template, ...] = (("w-2",), ("w-1",), ("w",), ("w+1",), ("w+2",))
_PAIRS: tuple[Template, ...] = (("w-1", "w"), ("w", "w+1"))
_TAGS: tuple[Template, ...] = (
    ("t-2",), ("t-1",), ("t",), ("t+1",), ("t+2",), ("t-2", "t-1"), ("t-1", "t"), ("t", "t+1"), ("t+1", "t+2"),
    ("t-2", "t-1", "t"), ("t-1", "t", "t+1"), ("t", "t+1", "t+2"),
)  # fmt: skip
_AFFIXES = tuple(f"{side}{k}" for side in ("prefix", "suffix") for k in range(1, 5))
POS: tuple[Template, ...] = (
    ("always",), *_WORDS, *((name,) for name in (*_AFFIXES, "hyphen", "capital", "digit")), ("p1",), ("p2", "p1"),
)  # fmt: skip
CHUNKS: tuple[Template, ...] = (
    *_WORDS, *_PAIRS, *_TAGS, ("p2",), ("p1",), ("p2", "p1"), *(("p1", *t) for t in (*_TAGS, *_WORDS, *_PAIRS)),
)  # fmt: skip
#: The files cut Brown's tags after ten letters: "t" and "n" are the cut forms of "tl" and "nc".
_MODIFIERS = {"fw", "tl", "nc", "hl", "t", "n"}


@dataclass(frozen=True)
class Text:
    """Sentences with columns of attributes; the first `n_train` are for training. tags: gold tags of each sentence."""

    columns: dict[str, Ints]
    lengths: Ints
    tags: list[list[str]]
    n_train: int
    templates: tuple[Template, ...]
    beam: int
    edge: int  # number of a tag before the sentence: n_labels + 1, or -1 for none
    chunks: bool = False  # whether the labels are chunk tags
    whole: Ints | None = None  # for each word, how many of its prefixes (as of its suffixes) equal the word

    @cached_property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(tag for sentence in self.tags[: self.n_train] for tag in sentence))

    @cached_property
    def y(self) -> Ints:
        """Labels of all positions; a label that does not occur in the training data has the number n_labels."""
        number = {label: k for k, label in enumerate(self.labels)}
        return np.array([number.get(tag, len(number)) for sentence in self.tags for tag in sentence], dtype=np.int64)

    @cached_property
    def split(self) -> int:
        """Number of positions for training."""
        return int(self.lengths[: self.n_train].sum())

    def tags_before(self) -> dict[str, Ints]:
        """Return the gold tags one and two positions back, as columns."""
        place = np.arange(len(self.y)) - np.repeat(pointers(self.lengths)[:-1], self.lengths)
        return {f"p{k}": np.where(place >= k, np.roll(self.y, k), self.edge) for k in (1, 2)}

    @cached_property
    def sizes(self) -> dict[str, int]:
        found = {name: int(column.max(initial=0)) + 1 for name, column in self.columns.items()}
        return found | dict.fromkeys(("p1", "p2"), len(self.labels) + 2)

    def keys(self, template: Template, columns: dict[str, Ints]) -> Ints:
        """Return one number for each value of a template, -1 where the template is absent."""
        key: Ints = np.zeros(1, dtype=np.int64)
        absent: NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        for name in template:
            key, absent = key * self.sizes[name] + columns[name], absent | (columns[name] < 0)
        return np.where(absent, -1, key)

    def occurrences(self, template: Template) -> Ints:
        """Return how often OpenNLP counts a template's value at each training position: for "the" it counts the
        suffixes "e", "he", "the" and "the".
        """
        ones = np.ones(self.split, dtype=np.int64)
        if self.whole is None or template[0] not in _AFFIXES:
            return ones
        whole = self.whole[: self.split]
        return np.where(int(template[0][-1]) == 5 - whole, whole, ones)


class Contexts:
    """The training problem of a text, and the prediction of its test sentences."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.n_labels = n_labels = len(text.labels)
        columns = {name: column[: text.split] for name, column in (text.columns | text.tags_before()).items()}
        self._kept: list[Ints] = []  # keys of each template's attributes, ascending
        self._begin: list[int] = []  # number of each template's first attribute
        table: list[Ints] = []
        total = 0
        for template in text.templates:
            key = text.keys(template, columns)
            values, place = np.unique(key[key >= 0], return_inverse=True)
            counts = np.bincount(place, weights=text.occurrences(template)[key >= 0])
            self._kept.append(values[counts >= CUTOFF])
            self._begin.append(total)
            total += len(self._kept[-1])
            table.append(self.numbers(len(table), key))
        self.n_attributes = total
        rows = np.stack(table, axis=1)
        row_ptr = pointers((rows >= 0).sum(axis=1))
        attributes, labels = rows[rows >= 0], text.y[: text.split]
        self.layout = RowLayout.observed(total, n_labels, padded_width(n_labels), row_ptr, attributes, labels, 1)
        merged = merge_contexts(Attributes(row_ptr, attributes, total), labels)
        self.labels, self.weight, self.rows = merged.labels, merged.sample_weight, merged.rows

    def numbers(self, k: int, key: Ints) -> Ints:
        """Return the attribute numbers of template k for these keys; -1 for keys that were left out."""
        kept = self._kept[k]
        if not len(kept):
            return np.full(key.shape, -1)
        place = np.minimum(np.searchsorted(kept, key), len(kept) - 1)
        return np.where(kept[place] == key, place + self._begin[k], -1)

    def statistics(self) -> dict[str, int]:
        """Return X, Y, n and #nz of Table 3, and the number of positions."""
        pair_ptr, pairs = self.layout.pairs()
        nonzeros = int(np.diff(pair_ptr)[self.rows.attributes].sum())
        return {
            "positions": self.text.split, "X": len(self.labels), "Y": self.n_labels, "n": len(pairs), "nz": nonzeros,
        }  # fmt: skip

    def problem(self, l2: float) -> Problem:
        """Make the problem l2/2 |w|^2 + sum of log losses over all positions."""
        structure = Multiclass(len(self.labels), self.n_labels)
        features = maxent_map(structure, self.rows, layout=self.layout)
        gold = structure.encode(self.labels)
        return Problem(features, structure, gold, "log", l2, sample_weight=self.weight)

    def predict(self, weights: Floats) -> list[list[str]]:
        """Tag the test sentences by beam search, which keeps the most probable tag sequences up to each position."""
        text, n_labels = self.text, self.n_labels
        dense = np.zeros((self.n_attributes + 1, n_labels))  # the last row is for absent attributes
        pair_ptr, pairs = self.layout.pairs()
        dense[np.repeat(np.arange(self.n_attributes), np.diff(pair_ptr)), pairs] = self.layout.unpack(weights)
        own, after, local = self._scores(dense)
        lengths = text.lengths[text.n_train :]
        begins = pointers(lengths)[:-1]
        n, width, edge = len(lengths), text.beam, text.edge % (n_labels + 2)
        one, two = np.full((n, 1), edge), np.full((n, 1), edge)
        value = np.zeros((n, 1))
        steps: list[tuple[Ints, Ints, Ints]] = []  # (sentences, labels, the hypotheses they extend)
        for t in range(int(lengths.max(initial=0))):
            alive = np.flatnonzero(lengths > t)
            place = begins[alive] + t
            a, b = one[alive], two[alive]
            scores = own[place][:, None] + after[b, a]
            if local is not None:
                scores += local[place[:, None], a]
            scores += value[alive][..., None] - logsumexp(scores, axis=-1, keepdims=True)
            flat = scores.reshape(len(alive), -1)
            best = np.argsort(-flat, axis=1, kind="stable")[:, :width]
            before, label = np.divmod(best, n_labels)
            if best.shape[1] > one.shape[1]:  # the beam grows to its full width
                one, two, value = (np.repeat(x[:, :1], best.shape[1], axis=1) for x in (one, two, value))
            one[alive], two[alive] = label, np.take_along_axis(a, before, axis=1)
            value[alive] = np.take_along_axis(flat, best, axis=1)
            steps.append((alive, label, before))
        found = [[0] * length for length in lengths.tolist()]
        at = np.zeros(n, dtype=np.int64)  # follow back the best hypothesis, which is the first
        for t in reversed(range(len(steps))):
            alive, label, before = steps[t]
            chosen = at[alive]
            at[alive] = before[np.arange(len(alive)), chosen]
            for i, tag in zip(alive.tolist(), label[np.arange(len(alive)), chosen].tolist(), strict=True):
                found[i][t] = tag
        return [[text.labels[tag] for tag in sentence] for sentence in found]

    def _scores(self, dense: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Return label scores by position; by tags (two back, one back); and by (position, tag before) or None.

        The last are those of attributes that join the tag before with other columns.
        """
        text, tags = self.text, np.arange(self.n_labels + 2)
        columns = {name: column[text.split :] for name, column in text.columns.items()}
        own = np.zeros((len(text.y) - text.split, self.n_labels))
        after = np.zeros((len(tags), len(tags), self.n_labels))
        local = None
        given = tags if text.edge >= 0 else np.where(tags < self.n_labels, tags, -1)
        for k, template in enumerate(text.templates):
            if set(template) <= {"p1", "p2"}:
                both = dict(zip(("p2", "p1"), np.meshgrid(given, given, indexing="ij"), strict=True))
                after += dense[self.numbers(k, text.keys(template, both))]
            elif "p1" in template:
                spread = {name: column[:, None] for name, column in columns.items()} | {"p1": given}
                local = np.zeros((len(own), *after.shape[1:])) if local is None else local
                local += dense[self.numbers(k, text.keys(template, spread))]
            else:
                own += dense[self.numbers(k, text.keys(template, columns))]
        return own, after, local

    def gold(self) -> list[list[str]]:
        return self.text.tags[self.text.n_train :]


def window(sequences: Sentences, lengths: Ints, offset: int, *, pad: bool) -> Ints:
    """Return numbers of the values `offset` further; outside the sentence a mark (-1 if far, unless `pad`)."""
    names: dict[str, int] = {}
    flat = np.array([names.setdefault(x, len(names)) for sequence in sequences for x in sequence], dtype=np.int64)
    begin = np.repeat(pointers(lengths)[:-1], lengths)
    place = np.arange(len(flat)) + offset
    outside = np.maximum(begin - place, place - (begin + np.repeat(lengths, lengths) - 1))
    inside = flat[np.clip(place, 0, len(flat) - 1)]
    return np.where(outside <= 0, inside, np.where(pad | (outside == 1), len(names), -1))


def _windows(kind: str, sequences: Sentences, lengths: Ints, *, pad: bool) -> dict[str, Ints]:
    return {f"{kind}{k:+d}" if k else kind: window(sequences, lengths, k, pad=pad) for k in range(-2, 3)}


def _spelling(words: Sentences) -> dict[str, Ints]:
    """Return columns of prefixes and suffixes of up to four letters, and of the kinds of characters in words."""
    number: dict[str, int] = {}
    flat = np.array([number.setdefault(word, len(number)) for sentence in words for word in sentence], dtype=np.int64)
    rows = []
    parts: dict[str, int] = {}
    for word in number:
        affixes = [word[:k] for k in range(1, 5)] + [word[-k:] for k in range(1, 5)]
        row = [parts.setdefault(x, len(parts)) if len(x) == k % 4 + 1 else -1 for k, x in enumerate(affixes)]
        found = ("-" in word, re.search("[A-Z]", word), re.search("[0-9]", word))
        rows.append([*row, *(0 if there else -1 for there in found)])
    table = np.array(rows, dtype=np.int64)[flat]
    return dict(zip((*_AFFIXES, "hyphen", "capital", "digit"), table.T, strict=True))


def pos_text(words: Sentences, tags: list[list[str]], n_train: int) -> Text:
    """Make the text for parts of speech."""
    lengths = np.array([len(sentence) for sentence in words], dtype=np.int64)
    columns = _windows("w", words, lengths, pad=False) | _spelling(words)
    columns["always"] = np.zeros(int(lengths.sum()), dtype=np.int64)
    whole = np.array([max(5 - len(word), 0) for sentence in words for word in sentence], dtype=np.int64)
    return Text(columns, lengths, tags, n_train, POS, beam=3, edge=-1, whole=whole)


def chunk_text(words: Sentences, pos: Sentences, tags: list[list[str]], n_train: int) -> Text:
    """Make the text for chunk tags."""
    lengths = np.array([len(sentence) for sentence in words], dtype=np.int64)
    columns = _windows("w", words, lengths, pad=True) | _windows("t", pos, lengths, pad=True)
    edge = len({tag for sentence in tags[:n_train] for tag in sentence}) + 1  # n_labels is for unknown tags
    return Text(columns, lengths, tags, n_train, CHUNKS, beam=10, edge=edge, chunks=True)


def plain_tag(tag: str) -> str:
    """Return a Brown tag without its suffixes for foreign words, titles, citations and headlines."""
    kept = [part for part in re.split(r"(?<=.)-", tag) if part not in _MODIFIERS]
    return "-".join(kept) or tag


def _conll(data: str | None, limit: int | None, held: int) -> tuple[list[list[list[str]]], int]:
    parts = [
        read_columns(data_file("conll2000", f"{name}.txt", data))[:size]
        for name, size in (("train", limit), ("test", held))
    ]
    sentences = [*parts[0], *parts[1]]
    return [[list(sentence[k]) for sentence in sentences] for k in range(3)], len(parts[0])


def _brown(data: str | None, limit: int | None, held: int) -> Text:
    articles: list[list[list[tuple[str, str, str]]]] = []
    for line in read_text(data_file("brown", "brown.txt", data)).split("\n"):
        if line.startswith("# "):
            articles.append([])
        elif line.strip():
            articles[-1].append([token.rpartition("/") for token in line.split()])
    order = np.random.default_rng(0).permutation(len(articles))[:limit]
    cut = max(len(order) * 4 // 5, 1)
    train, test = ([sentence for k in some for sentence in articles[k]] for some in (order[:cut], order[cut:]))
    sentences = [*train, *test[:held]]
    words = [[word for word, _, _ in sentence] for sentence in sentences]
    return pos_text(words, [[plain_tag(tag) for _, _, tag in sentence] for sentence in sentences], len(train))


@lru_cache(maxsize=1)
def contexts(name: str, data: str | None, limit: int | None, held: int) -> Contexts:
    """Read CoNLL2000-P, CoNLL2000-C or BROWN; limit: training sentences, or articles in all; held: test sentences."""
    if name == "BROWN":
        return Contexts(_brown(data, limit, held))
    (words, pos, chunks), n_train = _conll(data, limit, held)
    if name == "CoNLL2000-P":
        return Contexts(pos_text(words, pos, n_train))
    return Contexts(chunk_text(words, pos, chunks, n_train))
