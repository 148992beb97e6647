"""Every derivation of a short sentence under a grammar in Chomsky normal form, by trying all rules at all splits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.structures import Grammar, padded_width

from .enumerate import Enumeration, _allowed, enumerator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Node = tuple[int, int, int]

TABLES = ("start", "split", "end", "span")


@dataclass(frozen=True)
class Spec:
    """The parts of a grammar. columns: for each table the column of each symbol, or -1. words: symbols of lexical
    columns. lexicon: the columns that each word of each sentence may have (None: all). gold: the nodes of a
    derivation of each sentence. codes: the codes of each sentence's words; with codes there are n_tuples slots of
    hashed tuples."""

    n_symbols: int
    rules: list[tuple[int, int, int]]
    roots: list[int]
    words: list[int]
    columns: dict[str, list[int]] = field(default_factory=dict)
    lexicon: list[list[list[int]]] | None = None
    gold: list[list[Node]] | None = None
    codes: list[list[int]] | None = None
    n_tuples: int = 0

    def width(self, table: str) -> int:
        count = max(self.columns.get(table, [-1])) + 1
        return padded_width(count) if count else 0

    def table_offsets(self, n: int) -> dict[str, int]:
        """The first slot of each table."""
        rows = {"start": n, "split": n, "end": n, "span": n * (n - 1) // 2}
        sizes = [len(self.rules), *(rows[table] * self.width(table) for table in TABLES)]
        sizes.append(n * padded_width(len(self.words)))
        return dict(zip(("rule", *TABLES, "word", "other"), np.cumsum([0, *sizes]).tolist(), strict=True))

    def num_slots(self, n: int) -> int:
        return self.first_tuple(n) + self.n_tuples

    def first_tuple(self, n: int) -> int:
        return self.table_offsets(n)["other"] + (n if self.gold is not None else 0)

    def tuple_slot(self, i: int, n: int, rule: int, s: int, q: int, t: int) -> int:
        """The slot shared by the rule and the words at its begin, split and end."""
        assert self.codes is not None
        words = self.codes[i]
        return self.first_tuple(n) + mix(mix(mix(rule ^ words[s]) ^ words[t - 1]) ^ words[q]) % self.n_tuples

    def derivations(self, i: int, n: int) -> list[list[Node]]:
        """The nodes of every derivation, in pre-order."""

        def under(symbol: int, s: int, t: int):
            if t == s + 1:
                allowed = range(len(self.words)) if self.lexicon is None else self.lexicon[i][s]
                if symbol in [self.words[c] for c in allowed]:
                    yield [(symbol, s, t)]
                return
            for parent, left, right in self.rules:
                if parent != symbol:
                    continue
                for q in range(s + 1, t):
                    for one, two in itertools.product(under(left, s, q), under(right, q, t)):
                        yield [(symbol, s, t), *one, *two]

        return [nodes for root in self.roots for nodes in under(root, 0, n)]

    def slots(self, i: int, n: int, nodes: list[Node]) -> list[int]:
        """The slots of a derivation. A slot that is used k times is listed k times."""
        first, out = self.table_offsets(n), []
        spans = list(itertools.combinations(range(n + 1), 2))
        rows = {span: k for k, span in enumerate(span for span in spans if span[1] - span[0] > 1)}
        gold = {} if self.gold is None else anchored(self, self.gold[i])
        numbers = {rule: k for k, rule in enumerate(sorted(gold, key=lambda x: (x[1], x[3])))}
        for rule, s, q, t in anchored(self, nodes):
            out.append(rule)
            places = {"start": s, "split": q, "end": t - 1, "span": rows[s, t]}
            for table, columns in self.columns.items():
                if columns[self.rules[rule][0]] >= 0:
                    out.append(first[table] + places[table] * self.width(table) + columns[self.rules[rule][0]])
            if self.n_tuples:
                out.append(self.tuple_slot(i, n, rule, s, q, t))
            if self.gold is not None:
                k = numbers.get((rule, s, q, t))
                out.append(first["other"] + (0 if k is None else 1 + k))
        for symbol, s, t in nodes:
            if t == s + 1:
                out.append(first["word"] + s * padded_width(len(self.words)) + self.words.index(symbol))
        return out


def mix(x: int) -> int:
    """A hash function for 64 bits."""
    for _ in range(2):
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93 % 2**64
    return x ^ (x >> 32)


def anchored(spec: Spec, nodes: list[Node]) -> dict[tuple[int, int, int, int], None]:
    """The anchored rules (rule, s, q, t) of a derivation, in pre-order."""
    out = {}
    for k, (symbol, s, t) in enumerate(nodes):
        if t > s + 1:
            left = nodes[k + 1]
            right = next(node for node in nodes[k + 2 :] if node[1:] == (left[2], t))
            out[spec.rules.index((symbol, left[0], right[0])), s, left[2], t] = None
    return out


def wrong_constituents(spec: Spec, gold: Floats, n: int) -> Floats:
    """1 on the slots of spans and words that the gold derivation does not use; 0 elsewhere."""
    first, cost = spec.table_offsets(n), np.zeros(len(gold))
    for table, end, count in [
        ("span", first["word"], max(spec.columns.get("span", [-1])) + 1),
        ("word", first["other"], len(spec.words)),
    ]:
        rows = cost[first[table] : end].reshape(-1, padded_width(count) if count else 1)
        rows[:, :count] = 1.0
    return cost * (gold == 0)


class KnownGrammar(Grammar):
    """A grammar of the library that also stores its `Spec`."""

    def __init__(self, lengths: list[int], spec: Spec, **options: Any) -> None:
        self.spec = spec
        words: dict[str, Any] = {}
        if spec.lexicon is not None:
            each = [columns for sentence in spec.lexicon for columns in sentence]
            words["word_ptr"] = np.cumsum([0, *map(len, each)]).astype(np.int64)
            words["word_columns"] = np.array([c for columns in each for c in columns], dtype=np.int64)
        if spec.codes is not None:
            codes = np.array([code for own in spec.codes for code in own], dtype=np.int64)
            words |= {"tuple_codes": codes, "n_tuples": spec.n_tuples}
        if spec.gold is not None:
            words["gold"] = nodes_array([node for nodes in spec.gold for node in nodes])
        super().__init__(
            np.array(lengths, dtype=np.int64),
            spec.n_symbols,
            np.array(spec.rules, dtype=np.int64).reshape(-1, 3),
            np.array(spec.roots, dtype=np.int64),
            np.array(spec.words, dtype=np.int64),
            **{f"{table}_columns": np.array(own, dtype=np.int64) for table, own in spec.columns.items()},
            **words,
            **options,
        )


def nodes_array(nodes: list[Node]) -> Ints:
    return np.array(nodes, dtype=np.int64).reshape(-1, 3)


def random_spec(
    rng: np.random.Generator, lengths: list[int], lexicon: bool = True, gold: bool = True, tuples: bool = False
) -> Spec:
    """A random grammar under which each sentence has at least one derivation, and not too many."""
    while True:
        n_symbols = int(rng.integers(1, 6))
        every = list(itertools.product(range(n_symbols), repeat=3))
        chosen = rng.choice(len(every), min(len(every), int(rng.integers(1, 12))), replace=False)
        rules = sorted(every[k] for k in chosen)
        roots = rng.permutation(n_symbols)[: rng.integers(1, n_symbols + 1)].tolist()
        words = rng.permutation(n_symbols)[: rng.integers(1, n_symbols + 1)].tolist()
        columns = {}
        for table in TABLES:
            if rng.random() < 0.75:
                columns[table] = rng.integers(-1 if rng.random() < 0.3 else 0, n_symbols, n_symbols).tolist()
        own = None
        if lexicon:
            own = [[np.flatnonzero(rng.random(len(words)) < 0.7).tolist() for _ in range(n)] for n in lengths]
        spec = Spec(n_symbols, rules, roots, words, columns, own)
        if all(1 <= len(spec.derivations(i, n)) <= 300 for i, n in enumerate(lengths)):
            break
    if gold:
        some = [spec.derivations(i, n) for i, n in enumerate(lengths)]
        spec = replace(spec, gold=[each[rng.integers(len(each))] for each in some])
    if tuples:  # few slots, so that many tuples have the same slot
        codes = [rng.integers(3, size=n).tolist() for n in lengths]
        spec = replace(spec, codes=codes, n_tuples=int(2 ** rng.integers(0, 5)))
    return spec


@enumerator("KnownGrammar")
def _grammar_of(structure: Any, i: int) -> Enumeration:
    """All derivations that no mask forbids. `labellings` are their numbers among all derivations."""
    spec, n = structure.spec, int(structure.lengths[i])
    every = spec.derivations(i, n)
    counts = np.zeros((len(every), spec.num_slots(n)))
    for row, nodes in zip(counts, every, strict=True):
        np.add.at(row, spec.slots(i, n, nodes), 1.0)
    keep = _allowed(counts, structure.mask(i))
    none = np.zeros((int(keep.sum()), 0), dtype=np.int64)
    return Enumeration(np.flatnonzero(keep)[:, None], counts[keep], none, np.zeros(1, dtype=np.int64))
