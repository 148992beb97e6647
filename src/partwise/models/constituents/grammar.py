"""The grammar of training trees as the structure takes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.models.constituents.inputs import Span, chart_bytes
from partwise.models.constituents.treebank.grammar import TreebankGrammar
from partwise.models.constituents.treebank.relative_frequency import Lexicon, relative_frequencies
from partwise.models.constituents.treebank.transform import read_symbol
from partwise.structures import Grammar
from partwise.support.arrays import Bytes, Ints, pointers
from partwise.support.lazy import cached_property
from partwise.support.memory import check_room


@dataclass(frozen=True)
class Column:
    """A column of tables of phrases: its labels from the top, and whether it is a part that binarisation made."""

    labels: tuple[str, ...]
    made: bool

    def __str__(self) -> str:
        return "+".join(self.labels) + ("|" if self.made else "")


@dataclass(frozen=True)
class ParsingGrammar:
    """A treebank's grammar, with a column of phrases' tables for all symbols of the same labels.

    Ancestors and siblings make no difference. Symbols that binarisation made have a column per label.
    """

    treebank: TreebankGrammar

    @cached_property
    def lexical(self) -> Ints:
        """The symbols of words, ascending: the place of a symbol here is its column."""
        return np.unique(self.treebank.lexical[:, 0])

    @cached_property
    def word_labels(self) -> list[tuple[str, ...]]:
        """The labels above a word, from the top, of each lexical column; the last one is the tag."""
        chains = [read_symbol(self.treebank.symbols[a])[0] for a in self.lexical.tolist()]
        return [tuple(label for label in chain if label is not None) for chain in chains]

    @cached_property
    def _phrases(self) -> dict[int, Column]:
        symbols = {a: read_symbol(self.treebank.symbols[a]) for a in np.unique(self.treebank.rules[:, 0]).tolist()}
        return {a: Column(tuple(map(str, chain)), made) for a, (chain, made) in symbols.items()}

    @cached_property
    def columns(self) -> list[Column]:
        return sorted(set(self._phrases.values()), key=str)

    @cached_property
    def column_of(self) -> Ints:
        """The column of each symbol that has rules; -1 for others."""
        number = {column: k for k, column in enumerate(self.columns)}
        found = np.full(self.treebank.n_symbols, -1, dtype=np.int64)
        found[[*self._phrases]] = [number[column] for column in self._phrases.values()]
        return found

    def n_columns(self, table: str) -> int:
        return max(len(self.lexical if table == "word" else self.columns), 1)

    def column_names(self, table: str) -> list[str]:
        return [self.treebank.symbols[a] for a in self.lexical] if table == "word" else list(map(str, self.columns))

    def rule_name(self, rule: int) -> str:
        parent, left, right = (self.treebank.symbols[a] for a in self.treebank.rules[rule].tolist())
        return f"{parent} -> {left} {right}"

    @cached_property
    def _lexicon(self) -> Lexicon:
        """The symbols that each terminal may have: all that end in a tag that it was seen with."""
        return relative_frequencies(self.treebank).lexicon

    def tags(self, words: Sequence[str]) -> list[str]:
        usual = int(np.bincount(self.treebank.lexical[:, 0], self.treebank.lexical_counts).argmax())
        found = []
        for k in self.treebank.terminals(words).tolist():
            own = slice(*self._lexicon.indptr[k : k + 2].tolist()) if k >= 0 else slice(0)
            odds = self._lexicon.log_probabilities[own]
            symbol = int(self._lexicon.symbols[own][odds.argmax()]) if len(odds) else usual
            labels = self.word_labels[int(np.searchsorted(self.lexical, symbol))]
            found.append(labels[-1] if labels else "")
        return found

    def _word_columns(self, sentences: Sequence[Sequence[str]]) -> tuple[Ints, Ints]:
        """Return (pointers, columns): which columns each word may have, sentences concatenated."""
        terminals = np.concatenate([np.empty(0, dtype=np.int64), *map(self.treebank.terminals, sentences)])
        known = terminals >= 0
        counts = np.zeros(len(terminals), dtype=np.int64)
        indptr, symbols, _ = self._lexicon.of(terminals[known])
        counts[known] = np.diff(indptr)
        return pointers(counts), np.searchsorted(self.lexical, symbols)

    def structure(self, sentences: Sequence[Sequence[str]], **options: Any) -> Grammar:
        longest, n_symbols = max(map(len, sentences), default=0), self.treebank.n_symbols
        check_room(chart_bytes(longest, n_symbols), f"the chart of {longest:,} words and {n_symbols:,} symbols")
        word_ptr, word_columns = self._word_columns(sentences)
        rules, roots = (np.ascontiguousarray(own) for own in (self.treebank.rules, self.treebank.roots))
        options |= {f"{table}_columns": self.column_of for table in ("start", "split", "end", "span")}
        options |= {"word_ptr": word_ptr, "word_columns": word_columns}
        # What binarisation made counts too: online EG starts near gold derivations, which it finds by the costs.
        options["span_costs"] = np.array([float(len(column.labels)) for column in self.columns])
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        return Grammar(lengths, n_symbols, rules, roots, self.lexical, **options)

    def mask(self, structure: Grammar, i: int, required: list[Span], forbidden: list[Span]) -> Bytes:
        """Return which slots are allowed, a byte per slot.

        A required span must have its label, or be a constituent; forbidding all spans that cross it makes it a node of
        every binary tree. Every word is a span: only its labels can be required or forbidden.
        """
        n = int(structure.lengths[i])
        mask = np.ones(structure.num_slots(i), dtype=np.uint8)
        *_, spans, words, other = structure.table_offsets(i)
        *_, span_width, word_width = structure.widths
        begins, ends = np.triu_indices(n + 1, 2)
        rows = mask[spans:words].reshape(len(begins), span_width or 1)
        lexical = mask[words:other].reshape(n, word_width)

        def columns(label: str | None, word: bool) -> list[int]:
            """Return the columns in which a span is a constituent with this label."""
            if word:
                return [k for k, labels in enumerate(self.word_labels) if label is None or label in labels]
            return [k for k, c in enumerate(self.columns) if not c.made and (label is None or label in c.labels)]

        def row(begin: int, end: int) -> Bytes:
            own: Bytes = lexical[begin] if end == begin + 1 else rows[((begins == begin) & (ends == end)).argmax()]
            return own

        for label, begin, end in required:
            left = (begins < begin) & (begin < ends) & (ends < end)
            rows[left | ((begin < begins) & (begins < end) & (end < ends))] = 0
            own = row(begin, end)
            own[np.setdiff1d(np.arange(len(own)), columns(label, end == begin + 1))] = 0
        for label, begin, end in forbidden:
            row(begin, end)[columns(label, end == begin + 1)] = 0
        return mask
