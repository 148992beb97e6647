"""Relative frequencies of a treebank's grammar, and parsing by them: what trained parsers are compared with.

With n(A) the number of A's in the treebank, m(A) of those above a word, and t the tag at the end of A's chain:

    P(A)           = roots A / trees
    P(A -> B C)    = n(A -> B C) / n(A)
    P(A -> word w) = m(A) / n(A) * (n(A -> w) + k P(w | t)) / (m(A) + k),
    P(w | t)       = n(t -> w) / n(t), over all symbols that end in t

so that a word seen as a noun can also be a noun phrase (NP+NN). Rare words have the probability of their class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from partwise.io.trees import FlatTree, Tree, flat_tree, tree_of_rows
from partwise.models.constituents.treebank.grammar import TreebankGrammar, read_off
from partwise.models.constituents.treebank.transform import TreeTransform, read_symbol, tag_of
from partwise.models.features import places_in
from partwise.structures import Grammar
from partwise.support.arrays import Floats, Ints, pointers

#: k above.
TAG_WEIGHT = 10.0
#: Sentences of one structure.
_BATCH = 100

#: Pointers, symbols and scores of the words of a sentence, as in `Lexicon`.
Entry = tuple[Ints, Ints, Floats]


@dataclass(frozen=True)
class Lexicon:
    """The symbols that each terminal can have, ascending: `symbols[indptr[w]:indptr[w + 1]]`, and their scores."""

    indptr: Ints
    symbols: Ints
    log_probabilities: Floats

    def of(self, terminals: Ints) -> Entry:
        """Return pointers, symbols and scores for a sequence of terminals."""
        counts = self.indptr[terminals + 1] - self.indptr[terminals]
        indptr = pointers(counts)
        where = np.arange(indptr[-1]) + np.repeat(self.indptr[terminals] - indptr[:-1], counts)
        return indptr, self.symbols[where], self.log_probabilities[where]


@dataclass(frozen=True)
class Probabilities:
    """Logarithms of the probabilities of roots and rules, in the grammar's order, and of the lexicon."""

    roots: Floats
    rules: Floats
    lexicon: Lexicon


def relative_frequencies(grammar: TreebankGrammar, tag_weight: float = TAG_WEIGHT) -> Probabilities:
    """Return the grammar's probabilities; with `tag_weight` 0 a symbol has only the words that were seen under it."""
    if not tag_weight >= 0:
        raise ValueError(f"tag_weight={tag_weight} must be 0 or more")
    size, symbol, terminal = grammar.n_symbols, grammar.lexical[:, 0], grammar.lexical[:, 1]
    # The last class counts what the others do once more.
    once = terminal < grammar.n_terminals - 1 if grammar.classes else np.ones(len(terminal), dtype=bool)
    above_words = _sums(symbol[once], grammar.lexical_counts[once], size)
    total = above_words + _sums(grammar.rules[:, 0], grammar.rule_counts, size)
    return Probabilities(
        roots=np.log(grammar.root_counts / grammar.root_counts.sum()),
        rules=np.log(grammar.rule_counts / total[grammar.rules[:, 0]]),
        lexicon=_lexicon(grammar, above_words, total, tag_weight),
    )


def _lexicon(grammar: TreebankGrammar, above_words: Floats, total: Floats, k: float) -> Lexicon:
    names, tags = np.unique([tag_of(name) for name in grammar.symbols], return_inverse=True)
    lexical = np.flatnonzero(above_words)  # the symbols of words
    n_tag = _sums(tags, above_words, len(names))
    by_tag = [lexical[tags[lexical] == tag] for tag in range(len(names))]
    ends = np.cumsum(np.bincount(grammar.lexical[:, 1], minlength=grammar.n_terminals))
    rows = np.split(np.lexsort((grammar.lexical[:, 0], grammar.lexical[:, 1])), ends[:-1])
    symbols, values = [], []
    for own in rows:
        seen, counts = grammar.lexical[own, 0], grammar.lexical_counts[own]
        if k > 0:
            word_tags = _sums(tags[seen], counts, len(names))
            allowed = np.sort(np.concatenate([by_tag[tag] for tag in np.flatnonzero(word_tags)]))
            dense = np.zeros(grammar.n_symbols)
            dense[seen] = counts
            shared = word_tags[tags[allowed]] / n_tag[tags[allowed]]
            chosen = (dense[allowed] + k * shared) / (above_words[allowed] + k)
        else:
            allowed, chosen = seen, counts / above_words[seen]
        symbols.append(allowed)
        values.append(np.log(chosen * above_words[allowed] / total[allowed]))
    return Lexicon(pointers([len(own) for own in symbols]), np.concatenate(symbols), np.concatenate(values))


def _sums(keys: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(keys, values, size).astype(np.float64, copy=False)


class RelativeFrequencyParser:
    """The most probable tree under a probabilistic context-free grammar.

    Parameters
    ----------
    grammar : with counts, or with the probabilities that a user gives (`grammar_of_rules`)
    transform : how the grammar's trees become trees again; None for a user's grammar, whose trees are in normal form
    tag_weight : k above; 0 for a user's grammar
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
        every = np.arange(grammar.n_symbols)
        self._column = places_in(self._words, every)
        self._roots = places_in(grammar.roots, every)  # a root's probability lies in the slot of its span

    @classmethod
    def of(cls, trees: Iterable[Tree], transform: TreeTransform | None = None, **options: int) -> Self:
        """Count a treebank's rules; `options` are those of `read_off`."""
        transform = TreeTransform() if transform is None else transform
        normal = (transform.binary(tree, f"tree {i}") for i, tree in enumerate(trees))
        return cls(read_off(normal, **options), transform)

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[Tree]:
        """Return the best tree of each sentence (a list of words); where there is none, a `FlatTree`."""
        return [tree for tree, _ in self.predict_with_log_probability(sentences)]

    def predict_with_log_probability(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Tree, float]]:
        """Return the best trees and the logarithms of their probabilities; minus infinity where there is no tree.

        ValueError names a sentence without words, or with a word that the grammar does not know.
        """
        return [found for k in range(0, len(sentences), _BATCH) for found in self._batch(sentences[k : k + _BATCH], k)]

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
            word_ptr=pointers(counts),
            word_columns=self._column[np.concatenate([symbols for _, symbols, _ in entries])],
        )
        return [self._best(structure, i, words, entries[i]) for i, words in enumerate(sentences)]

    def _best(self, structure: Grammar, i: int, words: Sequence[str], entry: Entry) -> tuple[Tree, float]:
        if not structure.has_derivation(i):
            return self._flat(words, entry), -np.inf
        (indptr, symbols, values), n = entry, len(words)
        scores = np.zeros(structure.num_slots(i))
        scores[: len(self.grammar.rules)] = self.probabilities.rules
        *_, spans, lexical, _ = structure.table_offsets(i)
        rows = np.repeat(np.arange(n), np.diff(indptr))
        scores[lexical + rows * structure.widths[4] + self._column[symbols]] = values
        if n > 1:
            whole = spans + (n - 2) * structure.widths[3]  # the span of all words is the last of those from the first
            scores[whole : whole + len(self.grammar.roots)] = self.probabilities.roots
        else:
            above = self._column[self.grammar.roots]
            scores[lexical + above[above >= 0]] += self.probabilities.roots[above >= 0]
        value, slots, counts = structure.maximize(i, scores)
        tree = tree_of_rows(structure.nodes_of(i, slots, counts), self.grammar.symbols, words)
        return (tree if self.transform is None else self.transform.restore(tree)), value

    def _flat(self, words: Sequence[str], entry: Entry) -> FlatTree:
        names, (indptr, symbols, values) = self.grammar.symbols, entry
        best = [symbols[a + int(np.argmax(values[a:b]))] for a, b in zip(indptr[:-1], indptr[1:], strict=True)]
        root = self.grammar.usual_root
        if self.transform is None:
            return flat_tree(words, [names[k] for k in best], root)
        label = self.transform.root or read_symbol(root)[0][0] or ""
        return flat_tree(words, [read_symbol(names[k])[0][-1] or label for k in best], label)
