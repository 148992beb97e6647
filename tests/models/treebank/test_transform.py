"""Conversion of trees to Chomsky normal form and back."""

import itertools
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.datasets import make_treebank, treebank_sample
from partwise.io import format_tree, parse_trees
from partwise.io.trees import bare_label, common_root, flat_tree
from partwise.models.constituents.treebank import TreeTransform, clean_tree, is_parsed, leaves, words_of
from partwise.models.constituents.treebank.transform import read_symbol

HORIZONTAL = (0, 1, 2, 3, math.inf)
VERTICAL = (1, 2, 3)
ORDERS = list(itertools.product(HORIZONTAL, VERTICAL, ("right", "left")))


def exact(horizontal=2, vertical=1, binarise="right", **kwargs):
    return TreeTransform(horizontal, vertical, binarise, traces=False, functions=False, **kwargs)


def tree(text):
    (found,) = parse_trees(text)
    return found


def binary(text, *orders, **kwargs):
    return format_tree(exact(*orders, **kwargs).binary(tree(text)))


# Conversions checked by hand

FLAT = "(S (A a) (B b) (C c) (D d))"


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        ((math.inf, 1, "right"), "(S (A a) (S|A (B b) (S|A~B (C c) (D d))))"),
        ((1, 1, "right"), "(S (A a) (S|A (B b) (S|B (C c) (D d))))"),
        ((0, 1, "right"), "(S (A a) (S| (B b) (S| (C c) (D d))))"),
        ((math.inf, 1, "left"), "(S (S|D (S|D~C (A a) (B b)) (C c)) (D d))"),
        ((1, 1, "left"), "(S (S|D (S|C (A a) (B b)) (C c)) (D d))"),
        ((0, 1, "left"), "(S (S| (S| (A a) (B b)) (C c)) (D d))"),
    ],
)
def test_children(orders, expected):
    assert binary(FLAT, *orders) == expected


def test_ancestors():
    text = "(S (NP (PRP I)) (VP (V saw) (NP (NP (N x)) (PP (P of) (NP (N y))))))"
    assert binary(text, 2, 1) == "(S (NP+PRP I) (VP (V saw) (NP (NP+N x) (PP (P of) (NP+N y)))))"
    assert binary(text, 2, 2) == "(S (NP+PRP^S I) (VP^S (V saw) (NP^VP (NP+N^NP x) (PP^NP (P of) (NP+N^PP y)))))"
    assert (
        binary(text, 2, 3)
        == "(S (NP+PRP^S I) (VP^S (V saw) (NP^VP^S (NP+N^NP^VP x) (PP^NP^VP (P of) (NP+N^PP^NP y)))))"
    )


def test_chains():
    """Nodes added below a unary chain get the chain's last label, annotated with the chain's label above it."""
    text = "(S (VP (V a) (NP (N b)) (PP c)))"
    assert binary(text, 1, 1) == "(S+VP (V a) (VP|V (NP+N b) (PP c)))"
    assert binary(text, 1, 2) == "(S+VP (V a) (VP^S|V (NP+N^VP b) (PP c)))"
    assert binary(text, 1, 3) == "(S+VP (V a) (VP^S|V (NP+N^VP^S b) (PP c)))"
    assert binary("(S (NP (N x)))", 2, 3) == "(S+NP+N x)"
    assert binary("(A (A (A x) (A y)))", 2, 2) == "(A+A (A x) (A y))"


def test_words_without_tags_and_separators_in_labels():
    assert binary("(X a (Y b) c)", 2) == r"(X (\_ a) (X|\_ (Y b) (\_ c)))"
    assert binary(r"(A+B (C^D (E|F x)) (G~ y) (\_ z))", 2) == r"(A\+B (C\^D+E\|F x) (A\+B|C\^D (G\~ y) (\\_ z)))"
    assert read_symbol(r"A\\+B\^^C\||D") == (["A\\", "B^"], True)
    assert read_symbol(r"A\|^B\|") == (["A|"], False)
    assert read_symbol("") == ([""], False)


def test_root():
    with_root = exact(root="TOP")
    tops = [tree("(TOP (S (A a) (B b)))"), tree("(TOP (FRAG (A a)))")]
    assert [format_tree(with_root.binary(each)) for each in tops] == ["(S (A a) (B b))", "(FRAG+A a)"]
    assert [with_root.restore(with_root.binary(each)) for each in tops] == tops
    assert common_root(tops) == "TOP"
    assert common_root([*tops, tree("(S (A a))")]) is None
    assert common_root([tree("(S (S (A a) (B b)))")]) is None
    assert common_root([tree("(S (A a) (B b))")]) is None
    assert common_root([tree("(S a)")]) is None
    assert common_root([]) is None
    for text in ("(S (A a))", "(TOP (A a) (B b))", "(TOP a)"):
        with pytest.raises(ValueError, match="tree 3: its root should be 'TOP' above one phrase"):
            with_root.binary(tree(text), "tree 3")


# Cleaning of labels


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("NP-SBJ=1-3", "NP"),
        ("ADVP|PRT", "ADVP"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("-", "-"),
        ("=", "="),
        ("|", "|"),
        ("PRP$", "PRP$"),
        ("", ""),
        ("NP", "NP"),
    ],
)
def test_bare_labels(label, expected):
    assert bare_label(label) == expected


def test_cleaning():
    text = "(S (NP-SBJ (-NONE- *-1)) (VP (V go) (SBAR (-NONE- 0) (S (NP (-NONE- *)) (VP-X (-NONE- *)))) (-LRB- -LRB-)))"
    assert format_tree(clean_tree(tree(text))) == "(S (VP (V go) (-LRB- -LRB-)))"
    assert format_tree(clean_tree(tree(text), traces=False)).startswith("(S (NP (-NONE- *-1)) (VP (V go)")
    assert format_tree(clean_tree(tree("(S-A (NP-B (-NONE- *)) (V-C v))"), functions=False)) == "(S-A (V-C v))"
    assert clean_tree(tree("(X a (-NONE- *) b)")) == ("X", "a", "b")
    with pytest.raises(ValueError, match="tree 7: all of its words are empty elements"):
        clean_tree(tree("(S (NP (-NONE- *)))"), what="tree 7")


@pytest.mark.parametrize("bad", ["word", (), ("A",), ("A", ("B",)), ("A", 1), (1, "a"), ("A", ["B", "b"]), None])
@pytest.mark.parametrize("transform", [TreeTransform(), exact()])
def test_what_is_not_a_tree(bad, transform):
    with pytest.raises(ValueError, match=r"tree 5: .* is not a tree"):
        transform.binary(bad, "tree 5")


@pytest.mark.parametrize(
    "settings",
    [
        {"horizontal": -1},
        {"horizontal": 0.5},
        {"horizontal": math.nan},
        {"horizontal": -math.inf},
        {"horizontal": "2"},
        {"vertical": 0},
        {"vertical": 1.5},
        {"vertical": 2.0},
        {"vertical": math.inf},
        {"binarise": "up"},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        TreeTransform(**settings)


def test_a_root_without_a_label_is_taken_off_where_one_phrase_is_left():
    (tree,) = parse_trees("( (S (A a) (B b)) (X (-NONE- *)))")
    assert format_tree(clean_tree(tree)) == "(S (A a) (B b))"
    (tree,) = parse_trees("( (S (A a)) (S (B b)))")
    assert clean_tree(tree) == tree


def test_made_roots_are_refused():
    with pytest.raises(ValueError, match="cannot be the root"):
        exact().restore(("S|A", ("B", "b"), ("C", "c")))


# Conversions there and back

LABELS = st.sampled_from(["S", "NP", "", "_", "\\", "\\_", "+", "^", "|", "~", "A+B", "A^B|C~D", "\\+", "-LRB-", "N\\"])
WORDS = st.sampled_from(["a", "b", "\\_", "|", ""])
TREES = st.recursive(
    st.tuples(LABELS, WORDS),
    lambda inner: st.builds(
        lambda label, rest: (label, *rest), LABELS, st.lists(inner | WORDS, min_size=1, max_size=5)
    ),
    max_leaves=12,
)


@given(TREES)
def test_any_tree_comes_back(found):
    for orders in ORDERS:
        transform = exact(*orders)
        normal = transform.binary(found)
        assert transform.restore(normal) == found
        assert words_of(normal) == words_of(found)
        check_normal(normal)


def check_normal(normal):
    waiting = [normal]
    while waiting:
        node = waiting.pop()
        if len(node) == 3:
            waiting += node[1:]
        else:
            assert len(node) == 2
            assert isinstance(node[1], str)
        assert isinstance(node[0], str)


@given(
    st.lists(st.tuples(st.lists(LABELS, min_size=1, max_size=3), st.lists(LABELS, max_size=2)), min_size=2, max_size=2)
)
def test_symbols_differ_where_trees_do(pair):
    """Symbols of two (chain, ancestors) pairs are equal only if the pairs are."""
    from partwise.models.constituents.treebank.transform import made_symbol, phrase_symbol

    (chain, above), (other, higher) = pair
    assert (phrase_symbol(chain, above) == phrase_symbol(other, higher)) == (pair[0] == pair[1])
    if above and higher:
        same = (chain[0], above) == (other[0], higher)
        assert (made_symbol(chain[0], [], above) == made_symbol(other[0], [], higher)) == same
    assert read_symbol(phrase_symbol(chain, above)) == (chain, False)
    assert read_symbol(made_symbol(chain[0], above, other)) == ([chain[0]], True)


def test_depth_and_width_are_no_limit():
    n = 4000
    deep = tree("(A " * n + "a" + ")" * n)
    nested = tree("(A (B b) " * n + "(C c)" + ")" * n)
    wide = tree("(A " + "(B b) " * n + ")")
    for found in (deep, nested, wide):
        for transform in (TreeTransform(), exact(1, 2, "left")):
            assert format_tree(transform.restore(transform.binary(found))) == format_tree(found)


def test_generated_treebank():
    trees = make_treebank(100).trees
    for orders in ORDERS:
        transform = TreeTransform(*orders)
        assert [transform.restore(transform.binary(each)) for each in trees] == trees


def test_treebank_sample(data_dir):
    """A quarter of the sample's trees is restored exactly, with and without traces and function tags."""
    trees = treebank_sample(data_dir)
    for number, orders in enumerate(ORDERS):
        for each in trees[number :: 4 * len(ORDERS)]:
            transform = exact(*orders)
            assert transform.restore(transform.binary(each)) == each
            transform = TreeTransform(*orders)
            assert transform.restore(transform.binary(each)) == clean_tree(each)


@pytest.mark.slow
def test_treebank_sample_at_every_order(data_dir):
    trees = treebank_sample(data_dir)
    cleaned = [clean_tree(each) for each in trees]
    for orders in ORDERS:
        transform = exact(*orders)
        assert [transform.restore(transform.binary(each)) for each in trees] == trees
        assert [transform.restore(transform.binary(each)) for each in cleaned] == cleaned


def test_flat_trees():
    flat = flat_tree(["a", "b"], ["A", "B"], "S")
    assert flat == ("S", ("A", "a"), ("B", "b"))
    assert not is_parsed(flat)
    assert is_parsed(tuple(flat))
    assert list(leaves(flat)) == [("A", "a"), ("B", "b")]
    again = pickle.loads(pickle.dumps(flat))
    assert again == flat
    assert not is_parsed(again)
    with pytest.raises(ValueError, match="at least one word"):
        flat_tree([], [], "S")
