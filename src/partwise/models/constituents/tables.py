"""Weights of rules and of (attribute, column) pairs: a grammar's feature map, and its weights table by table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.features import AttributeSegment, LinearMap, RowLayout, Segment, SharedSegment, SlotSegment
from partwise.models.constituents.features import TABLES, TEMPLATES, keys_of, span_rows
from partwise.models.constituents.words import PROPERTIES, WordCodes
from partwise.models.features import PairLayout, expand_pairs, layout_of, look_up
from partwise.structures import padded_width
from partwise.support.arrays import Booleans, Floats, Ints, pointers


@dataclass(frozen=True)
class Table:
    """One table's attributes: `keys`, ascending, and which of the columns each has a weight for."""

    keys: Ints
    layout: PairLayout

    @classmethod
    def observed(cls, keys: Ints, columns: Ints, n_columns: int, min_count: int) -> Table:
        """From the attributes of gold rows, (rows, templates), and their columns."""
        known = np.unique(keys[keys >= 0])
        row_ptr = np.arange(len(keys) + 1, dtype=np.int64) * keys.shape[1]
        layout = RowLayout.observed(
            len(known),
            n_columns,
            padded_width(n_columns),
            row_ptr,
            cls.numbers_in(known, keys).ravel(),
            columns,
            min_count,
        )
        return cls(known, PairLayout(layout, all_pairs=False))

    @staticmethod
    def numbers_in(known: Ints, keys: Ints) -> Ints:
        """The number of each key among those known; -1 for others."""
        if not len(known):
            return np.full(keys.shape, -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        found: Ints = np.where(known[place] == keys, place, -1)
        return found

    def numbers(self, keys: Ints) -> Ints:
        return self.numbers_in(self.keys, keys)

    def pairs(self) -> tuple[Ints, Ints]:
        """(attribute, column) of each weight."""
        return expand_pairs(*self.layout.core.pairs())

    def chosen(self, kept: Booleans) -> Table:
        """The table with these of its pairs."""
        attributes, columns = self.pairs()
        used, rows = np.unique(attributes[kept], return_inverse=True)
        core = self.layout.core
        return Table(self.keys[used], layout_of(len(used), core.n_columns, core.width, rows, columns[kept]))


@dataclass(frozen=True)
class Tables:
    """All weights: those of rules, then those of each table in the order of `TABLES`, then those of hashed tuples."""

    n_rules: int
    codes: WordCodes
    tables: Mapping[str, Table]
    n_tuples: int = 0

    @property
    def num_weights(self) -> int:
        return self.n_rules + sum(self.tables[name].layout.core.num_weights for name in TABLES) + self.n_tuples

    def tuple_options(self, sentences: Sequence[Sequence[str]]) -> dict[str, Any]:
        """What the structure of these sentences needs for hashed tuples: a code per word, that of its kind."""
        if not self.n_tuples:
            return {}
        ends = pointers(np.array([len(words) + 2 for words in sentences], dtype=np.int64))
        kinds = self.codes.codes(sentences)[PROPERTIES.index("kind")]
        inside = np.ones(len(kinds), dtype=bool)
        inside[ends[:-1]] = inside[ends[1:] - 1] = False
        return {"tuple_codes": kinds[inside], "n_tuples": self.n_tuples}

    def feature_map(self, sentences: Sequence[Sequence[str]], once: bool, n_gold: Ints | None = None) -> LinearMap:
        """Features of the slots of sentences. n_gold: the slots of `other` and gold rules, which have no features."""
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        segments: list[Segment] = [SharedSegment(self.n_rules, lengths - 1)]
        longest = int(lengths.max(initial=2)) - 1
        for name in TABLES:
            table = self.tables[name]
            keys = keys_of(name, self.codes, sentences)
            rows = span_rows(lengths) if name == "span" else lengths
            if name != "word" and not self.n_rules:  # trees of one word: the structure has no tables of phrases
                keys, rows = keys[:0], np.zeros_like(lengths)
            segments.append(
                AttributeSegment(
                    table.layout.core,
                    pointers(rows),
                    np.arange(len(keys) + 1, dtype=np.int64) * len(TEMPLATES[name]),
                    table.numbers(keys).ravel(),
                    None,
                    once,
                    # Several phrases may begin at a word, or end there.
                    max(longest, 1) if name in ("start", "end") else 1,
                    lengths if name == "word" else lengths - 1,
                )
            )
        if n_gold is not None:
            nothing = np.zeros(int(n_gold.sum()) + 1, dtype=np.int64)
            segments.append(SlotSegment(0, pointers(n_gold), nothing, np.empty(0, dtype=np.int64)))
        if self.n_tuples:
            segments.append(SharedSegment(self.n_tuples, lengths - 1))
        return LinearMap(segments)

    def split(self, weights: Floats) -> tuple[Floats, dict[str, Floats]]:
        """Weights of rules, and one value per pair of each table; "tuples": those of hashed tuples."""
        found, at = {}, self.n_rules
        for name in TABLES:
            core = self.tables[name].layout.core
            found[name] = core.unpack(np.ascontiguousarray(weights[at : at + core.num_weights]))
            at += core.num_weights
        found["tuples"] = weights[at:]
        return weights[: self.n_rules], found

    def joined(self, rules: Floats, pairs: Mapping[str, Floats]) -> Floats:
        """The inverse of `split`."""
        tables = [self.tables[name].layout.core.pack(pairs[name]) for name in TABLES]
        return np.concatenate([rules, *tables, pairs["tuples"]])

    def triples(self, weights: Floats) -> Iterator[tuple[str, tuple[Ints, Ints, Floats]]]:
        """Each table's name with (attribute, column, weight) of its pairs."""
        _, pairs = self.split(weights)
        for name in TABLES:
            yield name, (*self.tables[name].pairs(), pairs[name])

    def carried(self, weights: Floats, old: Tables, rules: Floats, same_rules: bool) -> Floats | None:
        """Weights of another model for the same columns, with these of rules; None if it numbers words differently.

        same_rules: whether its rules have the same numbers, which hashes of tuples are made of.
        """
        if self.codes.values != old.codes.values:
            return None
        pairs = {"tuples": np.zeros(self.n_tuples)}
        if same_rules and self.n_tuples == old.n_tuples:
            pairs["tuples"] = old.split(weights)[1]["tuples"]
        for name, (attributes, columns, values) in old.triples(weights):
            mine, own_columns = self.tables[name].pairs()
            wanted = old.tables[name].numbers(self.tables[name].keys)[mine] if len(mine) else mine
            pairs[name] = look_up((attributes, columns, values), wanted, own_columns)
        return self.joined(rules, pairs)

    def pruned(self, weights: Floats, choose: Booleans) -> tuple[Tables, Floats]:
        """Without the weights that are not chosen, of rules and tuples (which stay, with weight 0) and pairs."""
        rules, pairs = self.split(weights)
        at, kept_tables, kept_pairs = self.n_rules, {}, {}
        for name in TABLES:
            kept = choose[at : at + len(pairs[name])]
            at += len(kept)
            kept_tables[name] = self.tables[name].chosen(kept)
            kept_pairs[name] = pairs[name][kept]
        kept_pairs["tuples"] = np.where(choose[at:], pairs["tuples"], 0.0)
        fewer = Tables(self.n_rules, self.codes, kept_tables, self.n_tuples)
        return fewer, fewer.joined(np.where(choose[: self.n_rules], rules, 0.0), kept_pairs)
