"""Constituency parsers from blocks of trees.

The first pass reads the grammar and the lexicon off the trees, with and without the node that all trees may begin with
(whether they all do is known in the end), and what numbers words get; the second counts attributes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.models.constituents.features import TABLES, TEMPLATES, span_rows
from partwise.models.constituents.grammar import ParsingGrammar
from partwise.models.constituents.sentences import read_gold
from partwise.models.constituents.tables import Table, Tables
from partwise.models.constituents.treebank import common_root, words_of
from partwise.models.constituents.treebank.derivations import rows_of_tree
from partwise.models.constituents.treebank.grammar import GrammarCounts
from partwise.models.constituents.treebank.unknown import WordClasses
from partwise.models.constituents.words import WordCodes, WordCounts
from partwise.models.encoded import EncodedTables, Text, Whole
from partwise.models.features import layout_of
from partwise.models.labels import check_distinct, given_labels
from partwise.models.partition import ChangedData, KeyPairCounts, Partitioner
from partwise.structures import padded_width
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import check_sample_weight

if TYPE_CHECKING:
    from partwise.model_files.parts import ModelParts
    from partwise.models.constituents.model import ConstituencyModel


class ConstituencyPartitioner(Partitioner):
    """Learns a `ConstituencyModel`."""

    def __init__(self, model: ConstituencyModel) -> None:
        self.model = model
        self._root: str | None = None
        self._counts: dict[str | None, GrammarCounts] = {}
        self._labels: set[str] = set()
        self._words = WordCounts()
        self._pairs = {name: KeyPairCounts() for name in TABLES}

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[Any], Floats | None]:
        trees = read_gold(X, y, self.model.make_transform(None), int(self.model.max_length))
        weight = check_sample_weight(sample_weight, len(trees), "sentence")
        if weight is not None:
            trees = [tree for tree, w in zip(trees, weight.tolist(), strict=True) if w > 0]
            weight = weight[weight > 0]
        return trees, weight

    def _binary(self, trees: list[Any], root: str | None) -> list[Any]:
        bare = replace(self.model.make_transform(root), traces=False, functions=False)  # they are cleaned already
        return [bare.binary(tree, f"y: tree {i}") for i, tree in enumerate(trees)]

    def look(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> None:
        self._labels.update(given_labels(X, y))
        check_distinct(self._labels)
        trees, _ = self._read(X, y, sample_weight)
        root = common_root(trees)
        if not self._counts:
            self._root = root
            self._counts = {each: GrammarCounts() for each in dict.fromkeys((root, None))}
        elif root != self._root and self._root is not None:
            del self._counts[self._root]
            self._root = None
        for each, counts in self._counts.items():
            counts.add(self._binary(trees, each))
        self._words.add([words_of(tree) for tree in trees])

    def settle(self) -> None:
        model = self.model
        model.transform = model.make_transform(self._root)
        model.grammar = ParsingGrammar(self._counts[self._root].grammar(rare=int(model.rare)))
        self._counts = {}  # their memory
        own = model.grammar.read_off
        self._codes: WordCodes = self._words.codes(own.word_classes or WordClasses())

    def encode(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> EncodedTables | None:
        trees, weight = self._read(X, y, sample_weight)
        if not trees:
            return None
        model, sentences = self.model, [words_of(tree) for tree in trees]
        normal = self._binary(trees, self._root)
        try:
            nodes = np.concatenate([rows_of_tree(tree, model.grammar.read_off.symbol_numbers) for tree in normal])
        except (KeyError, ValueError):
            raise ChangedData from None
        for name, (keys, columns) in model.gold_attributes(sentences, nodes, self._codes).items():
            rows = np.repeat(columns, keys.shape[1])
            self._pairs[name].add(keys.ravel()[keys.ravel() >= 0], rows[keys.ravel() >= 0])
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        columns_: dict[str, Any] = {"words/form": [word for words in sentences for word in words], "nodes/rows": nodes}
        return EncodedTables({"words": lengths, "nodes": 2 * lengths - 1}, columns_, entries_of(lengths), weight)

    def n_slots(self, encoded: EncodedTables) -> int:
        sentences = sentences_of(encoded)
        return int(self.model.grammar.structure(sentences).slot_offsets()[-1]) + len(sentences) * self.model.n_tuples

    def finish(self) -> None:
        model = self.model
        found = {}
        for name in TABLES:
            n_columns = max(len(model.grammar.lexical if name == "word" else model.grammar.columns), 1)
            known = self._pairs[name].keys()
            keys, columns = self._pairs[name].pairs(int(model.min_count))
            ids = np.searchsorted(known, keys)
            found[name] = Table(known, layout_of(len(known), n_columns, padded_width(n_columns), ids, columns))
        model.tables = Tables(len(model.grammar.read_off.rules), self._codes, found, model.n_tuples)


def entries_of(lengths: Ints) -> Ints:
    """What sentences take once they are open: the attributes of all places and spans."""
    spans = len(TEMPLATES["span"]) * span_rows(lengths)
    found: Ints = spans + lengths * sum(len(TEMPLATES[name]) for name in TABLES if name != "span")
    return found


def sentences_of(encoded: EncodedTables) -> list[list[str]]:
    """The words of encoded trees."""
    flat, ends = encoded.columns["words/form"], encoded.starts("words").tolist()
    return [flat[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def read_encoded(model: ConstituencyModel, parts: ModelParts) -> EncodedTables:
    """From a file, checked; whether the nodes are those of trees is seen when they are used."""
    kinds: dict[str, Any] = {"words/form": Text(), "nodes/rows": Whole(0, 1 << 40, 3)}
    found = EncodedTables.read(parts, ("words", "nodes"), kinds)
    lengths, nodes = found.lengths["words"], found.columns["nodes/rows"]
    n = np.repeat(lengths, found.lengths["nodes"])
    wrong = (nodes[:, 0] >= model.grammar.read_off.n_symbols) | (nodes[:, 1] >= nodes[:, 2]) | (nodes[:, 2] > n)
    if not lengths.all() or (found.lengths["nodes"] != 2 * lengths - 1).any() or wrong.any():
        raise ModelFormatError("has nodes that make no trees")
    return EncodedTables(found.lengths, found.columns, entries_of(lengths), found.weight)
