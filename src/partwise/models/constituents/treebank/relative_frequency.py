"""Parsing by the relative frequencies of a treebank's grammar: what trained parsers are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.models.constituents.treebank.derivations import tree_of_rows
from partwise.models.constituents.treebank.grammar import TreebankGrammar, read_off
from partwise.models.constituents.treebank.nodes import FlatTree, Tree, flat_tree
from partwise.models.constituents.treebank.pcfg import TAG_WEIGHT, relative_frequencies
from partwise.models.constituents.treebank.symbols import read_symbol
from partwise.models.constituents.treebank.transform import TreeTransform
from partwise.structures import Grammar

#: Sentences of one structure.
_BATCH = 100


class RelativeFrequencyParser:
    """The most probable tree under a probabilistic context-free grammar.

    Parameters
    ----------
    grammar : with counts, or with the probabilities that a user gives (`grammar_of_rules`)
    transform : how the grammar's trees become trees again; None for a user's grammar, whose trees are in normal form
    tag_weight : see `partwise.models.constituents.treebank.pcfg`; 0 for a user's grammar
    """

    def __init__(
        self, grammar: TreebankGrammar, transform: TreeTransform | None = None, tag_weight: float | None = None
    ) -> None:
        self.grammar = grammar
        self.transform = transform
        if tag_weight is None:
            tag_weight = 0.0 if transform is None else TAG_WEIGHT
        self.probabilities = relative_frequencies(grammar, tag_weight)
        self._words = np.unique(self.probabilities.lexicon.symbols)
        self._column = np.full(grammar.n_symbols, -1, dtype=np.int64)
        self._column[self._words] = np.arange(len(self._words))
        # A root's probability lies in the slot of its span.
        self._roots = np.full(grammar.n_symbols, -1, dtype=np.int64)
        self._roots[grammar.roots] = np.arange(len(grammar.roots))

    @classmethod
    def of(
        cls, trees: Iterable[Tree], transform: TreeTransform | None = None, **options: Any
    ) -> RelativeFrequencyParser:
        """Count a treebank's rules; `options` are those of `read_off`."""
        transform = TreeTransform() if transform is None else transform
        normal = (transform.binary(tree, f"tree {i}") for i, tree in enumerate(trees))
        return cls(read_off(normal, **options), transform)

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """The best tree of each sentence (a list of words); where there is none, a `FlatTree`."""
        return [tree for tree, _ in self.predict_with_log_probability(sentences)]

    def predict_with_log_probability(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Tree, float]]:
        """The best trees and the logarithms of their probabilities; minus infinity where there is no tree.

        Raises
        ------
        ValueError
            If a sentence has no words, or a word that the grammar does not know; the message names it.
        """
        found: list[tuple[Tree, float]] = []
        for begin in range(0, len(sentences), _BATCH):
            found += self._batch(sentences[begin : begin + _BATCH], begin)
        return found

    def _batch(self, sentences: Sequence[Sequence[str]], first: int) -> list[tuple[Tree, float]]:
        entries = []
        for i, words in enumerate(sentences, first):
            if isinstance(words, str) or not all(isinstance(word, str) for word in words):
                raise ValueError(f"sentence {i} must be a list of words, got {words!r:.80}")
            if not words:
                raise ValueError(f"sentence {i} has no words")
            entries.append(self.probabilities.lexicon.of(self.grammar.check_words(words, f"sentence {i}")))
        counts = np.concatenate([np.diff(indptr) for indptr, _, _ in entries])
        structure = Grammar(
            np.array([len(words) for words in sentences], dtype=np.int64),
            self.grammar.n_symbols,
            self.grammar.rules,
            self.grammar.roots,
            self._words,
            span_columns=self._roots,
            word_ptr=np.concatenate(([0], np.cumsum(counts))),
            word_columns=self._column[np.concatenate([symbols for _, symbols, _ in entries])],
        )
        return [self._best(structure, i, words, *entries[i]) for i, words in enumerate(sentences)]

    def _best(
        self,
        structure: Grammar,
        i: int,
        words: Sequence[str],
        indptr: NDArray[np.int64],
        symbols: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> tuple[Tree, float]:
        if not structure.has_derivation(i):
            return self._flat(words, indptr, symbols, values), -np.inf
        scores = np.zeros(structure.num_slots(i))
        scores[: len(self.grammar.rules)] = self.probabilities.rules
        *_, spans, lexical, _ = structure.table_offsets(i)
        width = structure.widths[4]
        n = len(words)
        rows = np.repeat(np.arange(n), np.diff(indptr))
        scores[lexical + rows * width + self._column[symbols]] = values
        if n > 1:
            whole = spans + (n - 2) * structure.widths[3]  # the span of all words is the last of those from the first
            scores[whole : whole + len(self.grammar.roots)] = self.probabilities.roots
        else:
            above = self._column[self.grammar.roots]
            scores[lexical + above[above >= 0]] += self.probabilities.roots[above >= 0]
        value, slots, counts = structure.maximize(i, scores)
        tree = tree_of_rows(structure.nodes_of(i, slots, counts), self.grammar.symbols, words)
        return (tree if self.transform is None else self.transform.restore(tree)), value

    def _flat(
        self, words: Sequence[str], indptr: NDArray[np.int64], symbols: NDArray[np.int64], values: NDArray[np.float64]
    ) -> FlatTree:
        names = self.grammar.symbols
        best = [symbols[a + int(np.argmax(values[a:b]))] for a, b in zip(indptr[:-1], indptr[1:], strict=True)]
        root = names[self.grammar.roots[int(np.argmax(self.grammar.root_counts))]]
        if self.transform is None:
            return flat_tree(words, [names[k] for k in best], root)
        label = self.transform.root or read_symbol(root)[0][0] or ""
        return flat_tree(words, [read_symbol(names[k])[0][-1] or label for k in best], label)
