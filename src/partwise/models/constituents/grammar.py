"""The grammar of training trees as the structure takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from partwise.arrays import Ints, pointers
from partwise.structures import Grammar
from partwise.trees import Tree, TreebankGrammar
from partwise.trees.symbols import read_symbol


@dataclass(frozen=True)
class ParsingGrammar:
    """A treebank's grammar with columns of its symbols.

    Symbols that are a phrase of the same label share a column of words' and spans' tables: phrases by the first label of
    their chain, and those that binarisation made by the label that they are part of.
    """

    read_off: TreebankGrammar

    @cached_property
    def lexical(self) -> Ints:
        """The symbols of words, ascending: their numbers here are their columns."""
        return np.unique(self.read_off.lexical[:, 0])

    @cached_property
    def columns(self) -> tuple[Ints, list[str]]:
        """The column of each symbol that has rules (-1 for others), and the columns' names."""
        names = {}
        for a in np.unique(self.read_off.rules[:, 0]).tolist():
            chain, made = read_symbol(self.read_off.symbols[a])
            names[a] = f"{chain[-1]}|" if made else "+".join(map(str, chain))
        known = sorted(set(names.values()))
        number = {name: k for k, name in enumerate(known)}
        columns = [number[names[a]] if a in names else -1 for a in range(self.read_off.n_symbols)]
        return np.array(columns, dtype=np.int64), known

    @cached_property
    def _entries(self) -> list[Ints]:
        """The columns of each terminal."""
        lexical = self.read_off.lexical
        order = np.argsort(lexical[:, 1], kind="stable")
        columns = np.searchsorted(self.lexical, lexical[order, 0])
        ends = np.searchsorted(lexical[order, 1], np.arange(self.read_off.n_terminals + 1))
        return [np.sort(columns[a:b]) for a, b in zip(ends, ends[1:], strict=False)]

    def word_columns(self, sentences: Sequence[Sequence[str]]) -> tuple[Ints, Ints]:
        """Which columns each word may have: pointers and columns, all sentences end to end."""
        none = np.empty(0, dtype=np.int64)
        each = [self._entries[k] if k >= 0 else none for words in sentences for k in self.read_off.terminals(words)]
        return pointers([len(own) for own in each]), np.concatenate([none, *each])

    def nodes(self, tree: Tree, what: str) -> list[tuple[int, int, int]]:
        """(symbol, begin, end) of a tree in normal form, in pre-order; ValueError names a symbol that is unknown."""
        numbers = self.read_off.symbol_numbers
        out: list[Any] = []
        waiting: list[tuple[Any, int]] = [(tree, -1)]
        word = 0
        while waiting:
            node, at = waiting.pop()
            if at >= 0:
                out[at] = (*out[at], word)
                continue
            if node[0] not in numbers:
                raise ValueError(f"{what}: the grammar has no symbol {node[0]!r}")
            if isinstance(node[1], str):
                out.append((numbers[node[0]], word, word + 1))
                word += 1
            else:
                waiting += [(node, len(out)), (node[2], -1), (node[1], -1)]
                out.append((numbers[node[0]], word))
        return out

    def tree(self, nodes: Ints, words: Sequence[str]) -> Tree:
        """The inverse of `nodes`."""
        done: list[Any] = []
        for symbol, begin, end in reversed(nodes.tolist()):
            name = self.read_off.symbols[symbol]
            done.append((name, words[begin]) if end == begin + 1 else (name, done.pop(), done.pop()))
        (tree,) = done
        return tuple(tree)

    def structure(self, sentences: Sequence[Sequence[str]], **options: Any) -> Grammar:
        """The derivations of sentences."""
        columns, _ = self.columns
        word_ptr, word_columns = self.word_columns(sentences)
        return Grammar(
            np.array([len(words) for words in sentences], dtype=np.int64),
            self.read_off.n_symbols,
            np.ascontiguousarray(self.read_off.rules),
            np.ascontiguousarray(self.read_off.roots),
            self.lexical,
            start_columns=columns,
            split_columns=columns,
            end_columns=columns,
            span_columns=columns,
            word_ptr=word_ptr,
            word_columns=word_columns,
            **options,
        )
