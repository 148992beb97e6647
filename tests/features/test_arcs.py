"""Arc features equal those of a simple reader of the templates, in which every feature is a tuple of strings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from oracles.features import check_shrunk, check_slot_rows
from partwise.features.arcs import (
    ARC_TEMPLATES,
    COLUMNS,
    LABEL_TEMPLATES,
    ArcTable,
    ArcTemplate,
    arc_tokens,
    parse_templates,
)

TABLE = """
form |
| form upos
upos-1 upos |
form upos | form upos
upos | upos
upos upos+1 | upos-1 upos
prefix | lemma
feats | feats
upos | upos | upos
xpos | upos | xpos
"""


class Bank:
    """Random sentences with few different words, so that features repeat within a sentence."""

    def __init__(self, seed: int, lengths: list[int], words: int = 4):
        rng = np.random.default_rng(seed)
        self.lengths = np.array(lengths)
        total = int(self.lengths.sum())
        sizes = (words, words, 3, 4, 2)
        self.columns = [[f"longer{c}{rng.integers(size)}" for _ in range(total)] for c, size in enumerate(sizes)]
        self.heads = np.concatenate([self._tree(rng, n) for n in lengths])
        self.tokens = arc_tokens(self.lengths, self.columns)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])

    @staticmethod
    def _tree(rng: np.random.Generator, n: int) -> np.ndarray:
        order = rng.permutation(n) + 1
        heads = np.zeros(n, dtype=np.int64)
        for k in range(1, n):
            heads[order[k] - 1] = order[rng.integers(k)]
        return heads

    def value(self, i: int, name: str, position: int) -> str:
        if position == 0:
            return "ROOT"
        if not 1 <= position <= self.lengths[i]:
            return "OUTSIDE"
        at = self.offsets[i] + position - 1
        return self.columns[0][at][:5] if name == "prefix" else self.columns[COLUMNS.index(name)][at]

    def features(self, i: int, templates: list[ArcTemplate], h: int, m: int) -> list[tuple]:
        distance = abs(h - m)
        lows = [low for low in (1, 2, 3, 4, 5, 7, 11) if low <= distance]
        found: list[tuple] = []
        for t in templates:
            values = [
                tuple((name, offset, self.value(i, name, at + offset)) for name, offset in side)
                for at, side in ((h, t.head), (m, t.modifier))
            ]
            middles: list[str | None] = [None]
            if t.between:
                middles = sorted({self.value(i, t.between, p) for p in range(min(h, m) + 1, max(h, m))})
            for middle in middles:
                plain = (t, *values, middle)
                if t.head:
                    found.append((*plain, None))
                found.append((*plain, (h < m, lows[-1])))
        return found


def slots_of(n: int) -> list[tuple[int, int]]:
    return [(h, m) for m in range(1, n + 1) for h in range(n + 1)]


@pytest.mark.parametrize("gold", [True, False], ids=["gold", "all"])
@pytest.mark.parametrize("memory", [1e9, 0.0, 8e3], ids=["kept", "recomputed", "some"])
def test_gram_matrix_against_naive_features(gold, memory):
    bank = Bank(3, [1, 2, 6, 13, 5, 1])
    table = ArcTable.from_text(TABLE)
    index = table.index(bank.tokens, bank.heads if gold else None)
    features = table.map(bank.tokens, index, memory)
    assert (0 < features.num_cached < 6) == (memory == 8e3)
    known = set()
    vectors: list[list[Counter]] = []
    for i, n in enumerate(bank.lengths):
        heads = bank.heads[bank.offsets[i] : bank.offsets[i + 1]]
        rows = []
        for h, m in slots_of(n):
            names = bank.features(i, table.templates, h, m) if h != m else []
            rows.append(Counter(names))
            if h != m and (not gold or heads[m - 1] == h):
                known.update(names)
        vectors.append(rows)
    assert index.num_weights == len(known)
    for rows in vectors:
        for row in rows:
            for name in [name for name in row if name not in known]:
                del row[name]

    rng = np.random.default_rng(0)
    sums, projected = [], []
    for i, rows in enumerate(vectors):
        slots = rng.normal(size=len(rows))
        total: Counter = Counter()
        for row, value in zip(rows, slots, strict=True):
            for name, count in row.items():
                total[name] += value * count
        v = features.project(i, slots)
        assert np.all(np.diff(v.indices) > 0)
        assert v.norm2() == pytest.approx(sum(x * x for x in total.values()))
        assert features.transpose_norm2(i, slots) == pytest.approx(v.norm2())
        matrix = np.zeros((len(rows), index.num_weights))
        for unit, into in zip(np.eye(len(rows)), matrix, strict=True):
            features.project(i, unit).axpy(1.0, into)
        check_slot_rows(features, i, np.arange(len(rows)), matrix)
        sums.append(total)
        projected.append(v)
    for a, x in zip(sums, projected, strict=True):
        for b, y in zip(sums, projected, strict=True):
            assert x.dot(y) == pytest.approx(sum(value * b[name] for name, value in a.items()), abs=1e-9)

    w = np.zeros(index.num_weights)
    for i, v in enumerate(projected):
        slots = rng.normal(size=features.num_slots(i))
        before = w.copy()
        features.add_transpose(i, slots, 0.3, w)
        change = np.zeros_like(w)
        features.project(i, slots).axpy(0.3, change)
        np.testing.assert_allclose(w - before, change, atol=1e-12)
        check_shrunk(features, i, slots, change / 0.3, rng)
        # scores is the transpose of project
        assert features.scores(i, w, 2.0) @ slots == pytest.approx(2.0 * features.project(i, slots).dot(w))
        np.testing.assert_allclose(features.scores(i, w)[np.array([h == m for h, m in slots_of(bank.lengths[i])])], 0)
        assert v.norm2() >= 0


def test_bound_holds_for_all_pairs_of_trees():
    bank = Bank(5, [4, 3], words=1)
    for index_of in (lambda table: table.index(bank.tokens, None), lambda table: table.index(bank.tokens, bank.heads)):
        table = ArcTable.from_text(TABLE)
        features = table.map(bank.tokens, index_of(table))
        rng = np.random.default_rng(1)
        for i, n in enumerate(bank.lengths):
            largest = 0.0
            for _ in range(300):
                d = np.zeros(n * (n + 1))
                for m in range(1, n + 1):
                    d[(m - 1) * (n + 1) + rng.choice([h for h in range(n + 1) if h != m])] += 1
                    d[(m - 1) * (n + 1) + rng.choice([h for h in range(n + 1) if h != m])] -= 1
                largest = max(largest, features.transpose_norm2(i, d))
            assert largest <= features.psi2_bound(i) + 1e-9
            assert features.psi2_bound(i) <= 20 * largest
            heads = [int(rng.choice([h for h in range(n + 1) if h != m])) for m in range(1, n + 1)]
            tree = np.zeros(n * (n + 1))
            tree[[(m - 1) * (n + 1) + h for m, h in enumerate(heads, start=1)]] = 1
            assert features.transpose_norm2(i, tree) <= features.reach(i) ** 2 <= 200 * largest


def test_hashed_features():
    from partwise._core import ArcIndex

    bank = Bank(7, [5, 9, 12])
    table = ArcTable.from_text(TABLE)
    few, many = ArcIndex.hashed(4), ArcIndex.hashed(22)
    exact = table.map(bank.tokens, table.index(bank.tokens, None))
    for bits, index in ((4, few), (22, many)):
        assert (index.num_weights, index.bits) == (2**bits, bits)
        features = table.map(bank.tokens, index, 1e9)
        rng = np.random.default_rng(bits)
        for i in range(3):
            slots = rng.normal(size=features.num_slots(i))
            v = features.project(i, slots)
            w = rng.normal(size=index.num_weights)
            assert features.scores(i, w) @ slots == pytest.approx(v.dot(w))
            if bits == 22:  # so many bits that collisions hardly occur
                assert v.norm2() == pytest.approx(exact.transpose_norm2(i, slots), rel=1e-2)
    with pytest.raises(ValueError, match="between 1 and 31"):
        ArcIndex.hashed(40)


def test_min_count_and_model_round_trip():
    from partwise._core import ArcIndex

    bank = Bank(9, [6] * 20)
    table = ArcTable.fitted(ARC_TEMPLATES, bank.tokens)
    full, frequent = table.index(bank.tokens, bank.heads), table.index(bank.tokens, bank.heads, 5)
    assert frequent.num_weights < full.num_weights
    assert set(frequent.keys) < set(full.keys)
    np.testing.assert_array_equal(frequent.keys, full.keys[: frequent.num_weights])  # the most frequent come first
    again = ArcIndex(full.keys)
    w = np.random.default_rng(0).normal(size=full.num_weights)
    for i in range(20):
        a, b = table.map(bank.tokens, full), table.map(bank.tokens, again, 1e9)
        np.testing.assert_allclose(a.scores(i, w), b.scores(i, w), atol=1e-12)


def test_attributes_are_the_rows_of_the_map():
    bank = Bank(11, [3, 8])
    table = ArcTable.from_text(LABEL_TEMPLATES)
    index = table.index(bank.tokens, bank.heads)
    features = table.map(bank.tokens, index)
    row_ptr, attributes = table.attributes(bank.tokens, index, bank.heads)
    assert len(row_ptr) == 12
    for i, n in enumerate(bank.lengths):
        for m in range(1, n + 1):
            word = bank.offsets[i] + m - 1
            unit = np.zeros(n * (n + 1))
            unit[(m - 1) * (n + 1) + bank.heads[word]] = 1
            v = features.project(i, unit)
            found = Counter(attributes[row_ptr[word] : row_ptr[word + 1]].tolist())
            assert found == dict(zip(v.indices.tolist(), v.values.tolist(), strict=True))
    with pytest.raises(ValueError, match="sentence 0: word 1 cannot have the head 1"):
        table.attributes(bank.tokens, index, np.ones(11, dtype=np.int64))


def test_table_is_read_and_reduced():
    assert [str(t) for t in parse_templates("form upos-1 | upos | xpos\n\n# no\n| form")] == [
        "form upos-1 | upos | xpos",
        "| form",
    ]
    for line, message in {
        "form": "expected 'head",
        "|": "expected 'head",
        "form | word": "'word' is none of",
        "form | upos+99": "16 words",
        "form | | upos": "needs both words",
        "": "no template",
    }.items():
        with pytest.raises(ValueError, match=message):
            parse_templates(line)
    tokens = arc_tokens(np.array([2]), [["a", "b"], ["_", "_"], ["X", "Y"], ["_", "_"], ["_", "_"]])
    table = ArcTable.fitted("form xpos | form\nform | form\nlemma | lemma\nupos|upos|feats\nxpos|", tokens)
    assert table.text == "form | form"
    with pytest.raises(ValueError, match="no template is left"):
        ArcTable.fitted("lemma |", tokens)


def test_core_refuses_bad_input():
    from partwise._core import ArcMap, ArcTokens

    bank = Bank(1, [2, 3])
    table = ArcTable.from_text(TABLE)
    with pytest.raises(ValueError, match="one head per word"):
        table.index(bank.tokens, np.zeros(3, dtype=np.int64))
    with pytest.raises(ValueError, match="sentence 1: word 2 cannot have the head 4"):
        table.index(bank.tokens, np.array([0, 1, 0, 4, 1]))
    with pytest.raises(ValueError, match="sentence 0 has no words"):
        ArcTokens(np.array([0]), [b""])
    with pytest.raises(ValueError, match="has 1 values"):
        ArcTokens(np.array([2]), [b"a\0"])
    with pytest.raises(ValueError, match="zero byte"):
        ArcTokens(np.array([1]), [b"a"])
    with pytest.raises(ValueError, match="column 9"):
        ArcMap([([(9, 0)], [], -1)], bank.tokens, table.index(bank.tokens, None))


def test_a_single_morphological_feature_acts_as_a_column():
    """feats.A gives the same features as a column that holds only the values of A."""
    bank = Bank(3, [4, 1, 6, 5])
    rng = np.random.default_rng(0)
    values = [[str(rng.integers(3)) if rng.random() < 0.7 else None for _ in bank.columns[4]] for _ in "AB"]
    bank.columns[4] = [
        "|".join(f"{key}={v}" for key, v in zip(("A", "B[x]"), pair, strict=True) if v) or "_"
        for pair in zip(*values, strict=True)
    ]
    for key, column in zip(("A", "B[x]"), values, strict=True):
        text = "form feats.K | upos\nfeats.K-1 | feats.K+1\nupos | upos | feats.K"
        table = ArcTable.from_text(text.replace("feats.K", f"feats.{key}"))
        assert table.keys == (key,)
        assert table.columns == ["form", "upos", "feats"]
        assert ArcTable.from_text(table.text).templates == table.templates
        tokens = arc_tokens(bank.lengths, bank.columns, table.keys)
        plain = ArcTable.from_text(text.replace("feats.K", "feats"))
        cells = [value or "_" for value in column]
        other = arc_tokens(bank.lengths, [*bank.columns[:4], cells])
        index, same = table.index(tokens, bank.heads), plain.index(other, bank.heads)
        (rows, one), (other_rows, two) = (
            table.attributes(tokens, index, bank.heads),
            plain.attributes(other, same, bank.heads),
        )
        np.testing.assert_array_equal(rows, other_rows)
        assert index.num_weights == same.num_weights == len(set(zip(one.tolist(), two.tolist(), strict=True)))
    tokens = arc_tokens(bank.lengths, bank.columns, ("A", "B[x]", "None"))
    both = ArcTable.fitted("feats.A | feats.B[x]\nfeats.None | form\nform |", tokens)
    assert both.text == "feats.A | feats.B[x]\nform |"
    assert both.keys == ("A", "B[x]")
    with pytest.raises(ValueError, match=r"'xpos\.A' is none of form, .*, feats\.KEY"):
        parse_templates("xpos.A | form")
    with pytest.raises(ValueError, match="FEATS 'x' is no list"):
        arc_tokens(np.array([1]), [["a"], ["_"], ["_"], ["_"], ["x"]], ("A",))
