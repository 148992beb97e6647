"""Dependency trees from blocks of sentences.

The first pass finds the names of arcs and which columns of words say something, by which templates are chosen; the
second counts features. Sentences whose trees the structure does not have stay, with weight 0 for the parser: the names
of their arcs are learnt too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.features import ArcIndex
from partwise.features.arcs import ARC_TEMPLATES, LABEL_TEMPLATES, PREFIX, ArcTable
from partwise.models.dependencies.features import ArcFeatures, check_features, fitted_table
from partwise.models.dependencies.inputs import ALL_CROSSING, FIELDS, Words
from partwise.models.dependencies.labels import ArcLabeller
from partwise.models.encoded import EncodedTables
from partwise.models.features import KeyCounts, PairLayout, layout_of, places_in
from partwise.models.labels import encode_flat, label_array
from partwise.models.partition import ChangedData, Partitioner
from partwise.structures import padded_width
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.dependencies.model import TreeModel

#: Bytes of an arc, and of each of its features, once they are found (`words.check_lengths`); those of an entry.
ARC, FEATURE, ENTRY = 150, 4, 16


class VariedWords:
    """A few words that differ in each column that is not constant over all blocks, and all lists of features."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, ...], None] = {}
        self._varied: set[int] = set()
        self._cells: set[str] = set()

    def add(self, words: Words) -> None:
        """Keep words of a block that differ from those kept before."""
        columns = words.columns
        if not columns[0]:
            return
        first = next(iter(self._rows), None) or self._keep(columns, 0)
        with_prefix = [*columns, [form[:PREFIX] for form in columns[0]]]
        for k, (column, value) in enumerate(zip(with_prefix, (*first, first[0][:PREFIX]), strict=True)):
            other = None if k in self._varied else next((i for i, own in enumerate(column) if own != value), None)
            if other is not None:
                self._varied.add(k)
                self._keep(columns, other)
        for cell in dict.fromkeys(columns[-1]):
            if cell not in self._cells:
                self._keep(columns, columns[-1].index(cell))

    def _keep(self, columns: list[list[str]], i: int) -> tuple[str, ...]:
        row = tuple(column[i] for column in columns)
        self._rows[row] = None
        self._cells.add(row[-1])
        return row

    def words(self) -> Words:
        columns = [list(column) for column in zip(*self._rows, strict=True)]
        return Words(np.array([len(self._rows)], dtype=np.int64), columns, [0], [None])


def frequent_features(counts: KeyCounts, min_count: int) -> ArcIndex:
    """Return the features that occur `min_count` times, the most frequent first."""
    keys, counted = counts.frequent(min_count)
    return check_features(ArcIndex(np.ascontiguousarray(keys[np.lexsort((keys, -counted))])), min_count)


def pair_layout(pairs: KeyCounts, index: ArcIndex, n_names: int) -> PairLayout:
    """Return which pairs of a feature of the index and a name have a weight: those that were counted."""
    (keys, names, _), order = pairs.frequent(1), np.argsort(index.keys)
    place = places_in(index.keys[order], keys)
    ids, names = order[place[place >= 0]], names[place >= 0]
    sorting = np.lexsort((names, ids))
    return layout_of(index.num_weights, n_names, padded_width(n_names), ids[sorting], names[sorting])


class TreePartitioner(Partitioner):
    """Learns a `TreeModel` but for the weights of its labeller."""

    def __init__(self, model: TreeModel) -> None:
        self.model = model
        self._used, self._all = VariedWords(), VariedWords()  # of the sentences that the parser learns from, of all
        self._relations: set[str] = set()
        self._bare = False  # whether some trees have no names
        self._keys, self._label_keys = KeyCounts(np.uint64), KeyCounts(np.uint64)
        self._pairs = KeyCounts(np.uint64, np.int64)
        model.n_non_projective = model.n_skipped = 0

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        trees = self.model.given(X, y, sample_weight)
        self.model.n_non_projective += trees.n_crossing
        self.model.n_skipped += int((~trees.kept).sum())
        self._used.add(trees.words.take(trees.kept))
        self._all.add(trees.words)
        self._relations.update(trees.gold.relations or ())
        self.model.check_names(self._relations)
        self._bare = self._bare or not trees.gold.relations

    def choose_vocabulary(self) -> None:
        model = self.model
        if not self._used.words().columns:
            raise ValueError(ALL_CROSSING)
        if self._bare and self._relations:
            raise ValueError("y: some words have relations and others have none")
        named = model.is_named(len(self._relations))
        self._names = label_array(sorted(self._relations))
        self._table = fitted_table(model.templates or ARC_TEMPLATES, self._used.words(), model.inputs)
        self._label_table = None
        if named:
            self._label_table = fitted_table(model.label_templates or LABEL_TEMPLATES, self._all.words(), model.inputs)
        # the estimate of memory goes by the templates; features are chosen in the end
        model.arcs = ArcFeatures(self._table, ArcIndex.hashed(1))
        model.labeller = model.label_result = None

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables:
        model, (words, gold, weight, kept, heads, _) = self.model, self.model.given(X, y, sample_weight)
        if model.features != "hashed" and kept.any():
            tokens = words.take(kept).tokens(self._table.keys)
            arcs = heads[np.repeat(kept, words.lengths)] if model.features == "gold" else None
            keys, counts = ArcIndex.counted(self._table.compiled, tokens, arcs)
            self._keys.add(keys, counts=counts)
        # a tree that the structure has, in place of one that it has not: its weight is 0
        columns: dict[str, Any] = {f"words/{name}": column for name, column in zip(FIELDS, words.columns, strict=True)}
        columns["words/heads"] = np.where(np.repeat(kept, words.lengths), heads, words.chains())
        columns["sentences/kept"] = kept.astype(np.int64)
        if self._label_table is not None:
            relations = encode_flat(gold.relations or [""] * len(heads), self._names)
            if (relations < 0).any():
                raise ChangedData
            tokens = words.tokens(self._label_table.keys)
            keys, counts = ArcIndex.counted(self._label_table.compiled, tokens, gold.heads)
            self._label_keys.add(keys, counts=counts)
            row_ptr, ids = ArcIndex(keys).attributes(self._label_table.compiled, tokens, gold.heads)
            self._pairs.add(keys[ids], np.repeat(relations, np.diff(row_ptr)))
            columns |= {"words/gold": gold.heads, "words/relations": relations}
        lengths = {"words": words.lengths, "sentences": np.ones(len(kept), dtype=np.int64)}
        return EncodedTables(lengths, columns, arc_entries(words.lengths, self._table), weight)

    def n_slots(self, encoded: EncodedTables) -> int:
        return int(self.model.make_structure(encoded.lengths["words"]).slot_offsets()[-1])

    def choose_features(self) -> None:
        model = self.model
        least = int(model.min_count)
        hashed = model.features == "hashed"
        index = ArcIndex.hashed(int(model.hash_bits)) if hashed else frequent_features(self._keys, least)
        model.arcs = ArcFeatures(self._table, index)
        if self._label_table is not None:
            features = ArcFeatures(self._label_table, frequent_features(self._label_keys, least))
            layout = pair_layout(self._pairs, features.index, len(self._names))
            model.labeller = ArcLabeller(features, layout, self._names, np.zeros(layout.core.num_weights))


def arc_entries(lengths: Ints, table: ArcTable) -> Ints:
    """Return the memory that opened sentences take, in entries: all arcs, two features per template each."""
    each = ARC + FEATURE * 2 * len(table.templates)
    found: Ints = np.ceil(lengths * (lengths + 1) * (each / ENTRY)).astype(np.int64)
    return found
