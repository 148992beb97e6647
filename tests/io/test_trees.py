"""Reading and writing trees in brackets."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.odd_strings import ODD_STRINGS
from partwise.io import FormatError, format_tree, iterate_trees, parse_trees, read_trees, write_trees

CAT = ("S", ("NP", ("DT", "the"), ("NN", "cat")), ("VP", ("VBD", "sat")))
FLAT = "(S (NP (DT the) (NN cat)) (VP (VBD sat)))"


def written(tmp_path, text):
    path = tmp_path / "trees"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_trees(tmp_path):
    penn = "( (S\r\n    (NP (DT the)\t(NN cat) )\n  (VP (VBD sat))) )\n" + FLAT + FLAT
    assert read_trees(written(tmp_path, penn)) == [CAT] * 3
    assert format_tree(CAT) == FLAT
    assert list(parse_trees("")) == []
    assert list(parse_trees(" \n")) == []


def test_empty_elements_and_function_tags_are_kept():
    text = "(S (NP-SBJ-1 (-NONE- *T*-2)) (VP=3 (VB go)))"
    (tree,) = parse_trees(text)
    assert tree == ("S", ("NP-SBJ-1", ("-NONE-", "*T*-2")), ("VP=3", ("VB", "go")))
    assert format_tree(tree) == text


def test_brackets_around_several_trees():
    (tree,) = parse_trees("( (A a) (B b) )")
    assert tree == ("", ("A", "a"), ("B", "b"))
    assert list(parse_trees(format_tree(tree))) == [tree]


def test_one_tree_after_the_other(tmp_path):
    found = iterate_trees(written(tmp_path, FLAT + "(S"))
    assert next(found) == CAT
    with pytest.raises(FormatError):
        next(found)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("(S (NP a)", 1, 1, "opening bracket without a closing"),
        ("(A a)\n (S (NP a)", 2, 2, "opening bracket without a closing"),
        ("(A a))\n", 1, 6, "closing bracket without an opening"),
        ("(A a)\nb (A a)", 2, 1, "expected an opening bracket"),
        ("(A a)\n(A\n (B))", 3, 2, "without children"),
        ("()", 1, 1, "without children"),
        ("(A)", 1, 1, "without children"),
        ("(A ((B b)))", 1, 5, "a label is missing"),
        ("( ((A a)))", 1, 4, "a label is missing"),
        ("(A a)\n( (A a) b)", 2, 1, "a label is missing: a word follows a phrase"),
        (b"(A a)\n(A \xff)", 2, 4, "not UTF-8"),
    ],
)
def test_malformed(tmp_path, text, line, column, message):
    path = written(tmp_path, text)
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        read_trees(path)
    assert (error.value.path, error.value.line, error.value.column) == (str(path), line, column)


@pytest.mark.parametrize("name", ["trees", "trees.gz"])
def test_odd_strings_come_back(tmp_path, name):
    texts = [text for text in ODD_STRINGS if not set(text) & set("() \t\n")]
    assert len(texts) >= 196
    trees = [("X", text, (text, text, ("Y", "z"))) for text in texts]
    write_trees(tmp_path / name, trees)
    assert read_trees(tmp_path / name) == trees


@pytest.mark.parametrize(
    "tree",
    [
        "word",
        (),
        ("A",),
        ("A", ""),
        ("A", "a b"),
        ("A", "("),
        ("A", "a\nb"),
        ("A B", "a"),
        ("", "a"),
        ("A", ("", "a", "b")),
        ("A", ["B", "b"]),
        ("A", 1),
        (1, "a"),
        ("A", "\ud800"),
    ],
)
def test_unwritable_trees(tmp_path, tree):
    with pytest.raises(ValueError):
        write_trees(tmp_path / "trees", [CAT, tree])
    assert list(tmp_path.iterdir()) == []


def test_depth_is_no_limit(tmp_path):
    depth = 20000
    text = "(A " * depth + "a" + ")" * depth
    (tree,) = parse_trees(text)
    assert format_tree(tree) == text


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="() \t\n"), min_size=1, max_size=4)
TREES = st.recursive(
    st.tuples(WORDS, WORDS), lambda inner: st.lists(inner | WORDS, min_size=1, max_size=3).map(lambda x: ("N", *x))
)


@given(st.lists(TREES, max_size=4))
def test_any_trees_come_back(tmp_path_factory, trees):
    path = tmp_path_factory.getbasetemp() / "any_trees"
    write_trees(path, trees)
    assert read_trees(path) == trees


@given(st.text(st.sampled_from("()ab \n\r"), max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        trees = list(parse_trees(text))
    except FormatError as refusal:
        line = refusal.line
    else:
        line = 1
        assert list(parse_trees(" ".join(map(format_tree, trees)))) == trees
    assert 1 <= line <= text.count("\n") + 1
