"""Relative frequencies of a treebank's grammar: a probabilistic context-free grammar.

With n(A) the number of A's in the treebank, m(A) of those above a word, and t the tag at the end of A's chain:

    P(A)           = roots A / trees
    P(A -> B C)    = n(A -> B C) / n(A)
    P(A -> word w) = m(A) / n(A) * (n(A -> w) + k P(w | t)) / (m(A) + k),
    P(w | t)       = n(t -> w) / n(t), over all symbols that end in t

so that a word that was seen as a noun can be a noun phrase of its own (NP+NN) though it never was one. Rare words
count as their class of unknown words, whose words have the class's probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partwise.models.constituents.treebank.grammar import TreebankGrammar
from partwise.models.constituents.treebank.symbols import tag_of

#: k above.
TAG_WEIGHT = 10.0


@dataclass(frozen=True)
class Lexicon:
    """The symbols that each terminal can have, ascending: `symbols[indptr[w]:indptr[w + 1]]`, and their scores."""

    indptr: NDArray[np.int64]
    symbols: NDArray[np.int64]
    log_probabilities: NDArray[np.float64]

    def of(self, terminals: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The same three for a sequence of terminals."""
        counts = self.indptr[terminals + 1] - self.indptr[terminals]
        indptr = np.concatenate(([0], np.cumsum(counts)))
        where = np.arange(indptr[-1]) + np.repeat(self.indptr[terminals] - indptr[:-1], counts)
        return indptr, self.symbols[where], self.log_probabilities[where]


@dataclass(frozen=True)
class Probabilities:
    """Logarithms of the probabilities of roots and rules, in the grammar's order, and of the lexicon."""

    roots: NDArray[np.float64]
    rules: NDArray[np.float64]
    lexicon: Lexicon


def relative_frequencies(grammar: TreebankGrammar, tag_weight: float = TAG_WEIGHT) -> Probabilities:
    """The grammar's probabilities; with `tag_weight` 0 a symbol has only the words that were seen under it."""
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


def _lexicon(
    grammar: TreebankGrammar, above_words: NDArray[np.float64], total: NDArray[np.float64], k: float
) -> Lexicon:
    names, tags = np.unique([tag_of(name) for name in grammar.symbols], return_inverse=True)
    lexical = np.flatnonzero(above_words)  # the symbols of words
    n_tag = _sums(tags, above_words, len(names))
    by_tag = [lexical[tags[lexical] == tag] for tag in range(len(names))]
    rows = np.split(np.lexsort((grammar.lexical[:, 0], grammar.lexical[:, 1])), _ends(grammar)[1:-1])
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
    indptr = np.concatenate(([0], np.cumsum([len(own) for own in symbols])))
    return Lexicon(indptr, np.concatenate(symbols), np.concatenate(values))


def _sums(keys: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.bincount(keys, values, size).astype(np.float64, copy=False)


def _ends(grammar: TreebankGrammar) -> NDArray[np.int64]:
    """Where the entries of each terminal begin when they are sorted by terminals."""
    return np.concatenate(([0], np.cumsum(np.bincount(grammar.lexical[:, 1], minlength=grammar.n_terminals))))
