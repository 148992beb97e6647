"""The built-in treebank: heads form trees, arcs cross only on request, and words alone do not determine tags."""

from collections import defaultdict

import pytest

from partwise.datasets import make_treebank
from partwise.datasets.grammar import TOOLS, TRANSITIVE, WORN

BANK = make_treebank(1500, seed=2)


def leaves(tree):
    if isinstance(tree[1], str):
        return [(tree[1], tree[0])]
    return [leaf for child in tree[1:] for leaf in leaves(child)]


def crosses(heads):
    arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads, 1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


def reaches_root(heads, word):
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return True
    return False


def test_every_sentence_is_a_tree_of_its_words():
    for words, tags, heads, labels, tree in zip(
        BANK.words, BANK.tags, BANK.heads, BANK.labels, BANK.trees, strict=True
    ):
        assert leaves(tree) == list(zip(words, tags, strict=True))
        assert len(heads) == len(labels) == len(words)
        assert all(reaches_root(heads, word) for word in range(1, len(words) + 1))
        assert [label == "root" for label in labels] == [head == 0 for head in heads]
        assert heads.count(0) == 1


def test_arcs_cross_only_when_asked():
    assert not any(crosses(heads) for heads in BANK.heads)
    assert all(crosses(heads) for heads in make_treebank(200, nonprojective=1.0).heads)
    share = sum(crosses(heads) for heads in make_treebank(800, nonprojective=0.25).heads) / 800
    assert abs(share - 0.25) < 4 * (0.25 * 0.75 / 800) ** 0.5


def spans(tree, start=0):
    """Return (label, first word, one past the last) of all constituents, and where the tree ends."""
    if isinstance(tree[1], str):
        return [], start + 1
    found, end = [], start
    for child in tree[1:]:
        inside, end = spans(child, end)
        found += inside
    return [*found, (tree[0], start, end)], end


def test_constituents_have_one_head():
    """Exactly one word of each constituent has its head outside of it, so constituents and dependencies agree."""
    for heads, tree in zip(BANK.heads, BANK.trees, strict=True):
        for _, first, end in spans(tree)[0]:
            assert sum(not first < head <= end for head in heads[first:end]) == 1


def test_chunks_are_well_formed():
    for words, chunks in zip(BANK.words, BANK.chunks, strict=True):
        assert len(chunks) == len(words)
        for before, label in zip(["O", *chunks], chunks, strict=False):
            assert label == "O" or label[:2] == "B-" or before[2:] == label[2:]
    types = {label[2:] for chunks in BANK.chunks for label in chunks if label != "O"}
    assert types == {"NP", "VP", "PP", "SBAR"}


def test_seeds_and_prefixes():
    assert make_treebank(30, seed=5) == make_treebank(60, seed=5)[:30]
    assert make_treebank(30, seed=5) != make_treebank(30, seed=6)
    assert len(make_treebank(0)) == 0


def test_many_words_have_several_tags():
    tags = defaultdict(set)
    for words, row in zip(BANK.words, BANK.tags, strict=True):
        for word, tag in zip(words, row, strict=True):
            tags[word].add(tag)
    ambiguous = {word for word, found in tags.items() if len(found) > 1}
    assert {"saw", "can", "her", "that", "watch", "cook", "fish", "fast"} <= ambiguous


def test_some_words_are_new():
    seen = {word for words in BANK.words[:1000] for word in words}
    later = [word for words in BANK.words[1000:] for word in words]
    assert 0.01 < sum(word not in seen for word in later) / len(later) < 0.1


def test_wrong_tags():
    bank = make_treebank(200)
    right = [line.split(" ") for line in bank.columns().splitlines() if line]
    wrong = [line.split(" ") for line in bank.columns(0.1).splitlines() if line]
    assert [(a, c) for a, _, c in right] == [(a, c) for a, _, c in wrong]
    share = sum(a[1] != b[1] for a, b in zip(right, wrong, strict=True)) / len(right)
    assert 0.05 < share < 0.1


def test_words_decide_the_attachment_but_not_always():
    kind_of = {form: kind for kind, verbs in TRANSITIVE.items() for forms in verbs for form in forms}
    agree = total = 0
    for words, tags, heads, labels in zip(BANK.words, BANK.tags, BANK.heads, BANK.labels, strict=True):
        for m, (label, word) in enumerate(zip(labels, words, strict=True)):
            before = heads[m - 1] - 1 if m else -1
            if label != "prep" or word != "with" or tags[m - 1] != "NN" or labels[m - 1] != "obj":
                continue
            verb = words[before]
            noun = words[next(k for k in range(len(words)) if heads[k] == m + 1)]
            if verb not in kind_of:
                continue  # an invented verb
            expected = noun not in WORN and noun in TOOLS.get(kind_of[verb], ())
            agree += expected == (heads[m] == before + 1)
            total += 1
    assert total > 100
    assert 0.9 < agree / total < 1.0


def test_bad_numbers():
    with pytest.raises(ValueError, match="n=-1"):
        make_treebank(-1)
    with pytest.raises(ValueError, match="nonprojective"):
        make_treebank(3, nonprojective=1.5)
    with pytest.raises(TypeError, match="slices"):
        BANK[3]


def test_files():
    bank = make_treebank(3, seed=1)
    first = bank.columns().split("\n\n")
    assert len(first) == 3
    assert [line.split(" ") for line in first[0].splitlines()] == [
        list(row) for row in zip(bank.words[0], bank.tags[0], bank.chunks[0], strict=True)
    ]
    rows = [line.split("\t") for line in bank.conllu().split("\n\n")[0].splitlines()]
    assert all(len(row) == 10 for row in rows)
    assert [(row[1], int(row[6])) for row in rows] == list(zip(bank.words[0], bank.heads[0], strict=True))
    assert bank.bracketed().count("(") == bank.bracketed().count(")")
