"""Constituency parsers from blocks of trees.

The first pass reads the grammar and the lexicon off the trees, with and without the node that all trees may begin with
(whether they all do is known in the end), and what numbers words get; the second counts attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partwise.io.trees import Tree, common_root, rows_of_tree, words_of
from partwise.models.constituents.features import TABLES, TEMPLATES, Table, Tables, WordCodes, WordCounts, span_rows
from partwise.models.constituents.grammar import ParsingGrammar
from partwise.models.constituents.treebank.grammar import GrammarCounts, WordClasses
from partwise.models.encoded import EncodedTables
from partwise.models.features import KeyCounts, layout_of
from partwise.models.labels import check_distinct, given_labels
from partwise.models.partition import ChangedData, Partitioner
from partwise.structures import padded_width
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.constituents.model import ConstituencyModel


class ConstituencyPartitioner(Partitioner):
    """Learns a `ConstituencyModel`."""

    def __init__(self, model: ConstituencyModel) -> None:
        self.model = model
        self._root: str | None = None
        self._counts: dict[str | None, GrammarCounts] = {}
        self._labels: set[str] = set()
        self._words = WordCounts()
        self._pairs = {name: KeyCounts(np.int64, np.int64) for name in TABLES}

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        self._labels.update(given_labels(X, y))
        check_distinct(self._labels)
        trees, _ = self.model.given(X, y, sample_weight)
        root = common_root(trees)
        if not self._counts:
            self._root = root
            self._counts = {each: GrammarCounts() for each in dict.fromkeys((root, None))}
        elif root != self._root and self._root is not None:
            del self._counts[self._root]
            self._root = None
        for each, counts in self._counts.items():
            counts.add(self.model.binary(trees, each))
        self._words.add(map(words_of, trees))

    def learn(self, trees: list[Tree], weight: Floats | None) -> EncodedTables:
        """Learn from one block alone, and return its examples."""
        self._root = common_root(trees)
        normal = self.model.binary(trees, self._root)
        self._counts = {self._root: GrammarCounts()}
        self._counts[self._root].add(normal)
        self._words.add(map(words_of, normal))
        self.choose_vocabulary()
        encoded = self._encode(normal, weight)
        self.choose_features()
        return encoded

    def choose_vocabulary(self) -> None:
        model = self.model
        model.transform = model.make_transform(self._root)
        model.grammar = ParsingGrammar(self._counts[self._root].grammar(rare=int(model.rare)))
        self._counts = {}  # their memory
        own = model.grammar.treebank
        self._codes: WordCodes = self._words.codes(own.word_classes or WordClasses())

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables | None:
        trees, weight = self.model.given(X, y, sample_weight)
        return self._encode(self.model.binary(trees, self._root), weight) if trees else None

    def _encode(self, normal: list[Tree], weight: Floats | None) -> EncodedTables:
        model, sentences = self.model, [words_of(tree) for tree in normal]
        try:
            nodes = np.concatenate([rows_of_tree(tree, model.grammar.treebank.symbol_numbers) for tree in normal])
        except (KeyError, ValueError):
            raise ChangedData from None
        for name, (keys, columns) in model.gold_attributes(sentences, nodes, self._codes).items():
            rows, known = np.repeat(columns, keys.shape[1]), keys.ravel() >= 0
            self._pairs[name].add(keys.ravel()[known], rows[known])
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        stored = {"words/form": [word for words in sentences for word in words], "nodes/rows": nodes}
        return EncodedTables({"words": lengths, "nodes": 2 * lengths - 1}, stored, tree_entries(lengths), weight)

    def n_slots(self, encoded: EncodedTables) -> int:
        sentences = self.model.encoded_sentences(encoded)
        return int(self.model.grammar.structure(sentences).slot_offsets()[-1]) + len(sentences) * self.model.n_tuples

    def choose_features(self) -> None:
        model = self.model
        found = {}
        for name in TABLES:
            n_columns = model.grammar.n_columns(name)
            known = np.unique(self._pairs[name].frequent(1)[0])
            keys, columns, _ = self._pairs[name].frequent(int(model.min_count))
            ids = np.searchsorted(known, keys)
            found[name] = Table(known, layout_of(len(known), n_columns, padded_width(n_columns), ids, columns))
        model.tables = Tables(len(model.grammar.treebank.rules), self._codes, found, model.n_tuples)


def tree_entries(lengths: Ints) -> Ints:
    """Return the memory that opened sentences take, in entries: the attributes of all places and spans."""
    spans = len(TEMPLATES["span"]) * span_rows(lengths)
    return spans + lengths * sum(len(TEMPLATES[name]) for name in TABLES if name != "span")
