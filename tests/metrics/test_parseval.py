"""PARSEVAL scores against hand-worked examples, and on random trees against an independent implementation."""

import pytest

from oracles import parseval as oracle
from partwise.datasets import make_treebank, treebank_sample
from partwise.io import parse_trees
from partwise.io.trees import flat_tree
from partwise.metrics import ParsevalScores, parseval
from partwise.models.constituents.treebank import leaves


def trees(text):
    return list(parse_trees(text))


def score(gold, predicted, **options):
    return parseval(trees(gold), trees(predicted), **options)


def figures(scores):
    return (
        scores.n_gold, scores.n_predicted, scores.n_right, scores.n_exact, scores.n_crossing, scores.n_words,
        scores.n_right_tags,
    )  # fmt: skip


GOLD = "(S (NP (PRP I)) (VP (VBD saw) (NP (DT the) (NN man)) (PP (IN with) (NP (DT a) (NN scope)))) (. .))"
# The PP attached to "the man" instead of the verb: the NP over "the man with a scope" is added, and VP stays.
OTHER = "(S (NP (PRP I)) (VP (VBD saw) (NP (NP (DT the) (NN man)) (PP (IN with) (NP (DT a) (NN scope))))) (. .))"


def test_attachment():
    """Of the brackets S NP VP NP PP NP all are found; the prediction has one NP more, so six of seven are right."""
    scores = score(GOLD, OTHER)
    assert figures(scores) == (6, 7, 6, 0, 0, 7, 7)
    assert scores.precision == 6 / 7
    assert scores.recall == 1.0
    assert scores.f1 == 12 / 13
    assert scores.labels == {"NP": (3, 4, 3), "PP": (1, 1, 1), "S": (1, 1, 1), "VP": (1, 1, 1)}


def test_crossing():
    """Gold bracket (a b) is crossed by (b c) and by (b c d); two equal predicted brackets both count."""
    gold = "(S (X (A a) (B b)) (C c) (D d))"
    scores = score(gold, "(S (A a) (Y (Y (Z (B b) (C c)) (D d))))")
    assert figures(scores) == (2, 4, 1, 0, 3, 4, 4)
    assert (scores.crossing, scores.without_crossing, scores.few_crossing) == (3.0, 0.0, 0.0)
    scores = score(gold * 2, gold + "(S (A a) (X (B b) (C c)) (D d))")
    assert (scores.crossing, scores.without_crossing, scores.few_crossing) == (0.5, 0.5, 1.0)
    assert scores.exact == 0.5
    assert score(gold, "(S (A a) (Y (Z (B b) (C c)) (D d)))").few_crossing == 1.0


def test_unary_chains_are_multisets():
    """In unary chains each bracket is matched once: two NPs over the same word count as two brackets."""
    assert figures(score("(S (NP (NP (N a))) (V b))", "(S (NP (N a)) (V b))"))[:4] == (3, 2, 2, 0)
    assert figures(score("(S (NP (N a)) (V b))", "(S (NP (NP (NP (N a)))) (V b))"))[:4] == (2, 4, 2, 0)
    assert figures(score("(A (B (A (N a) (N b))))", "(A (A (B (N a) (N b))))"))[:4] == (3, 3, 3, 1)


def test_punctuation_does_not_move_brackets():
    """Punctuation is ignored inside and outside of NP; a PRN over a comma does not count as a bracket."""
    gold = "(S (NP (N a) (, ,)) (V b) (. .))"
    assert figures(score(gold, "(S (NP (N a)) (PRN (, ,)) (V b) (. .))")) == (2, 2, 2, 1, 0, 2, 2)
    # tags are scored for words, not for punctuation
    assert figures(score(gold, "(S (NP (X a)) (N ,) (V b) (. .))"))[5:] == (2, 1)
    # gold decides what is punctuation: "b" is a word although the prediction tags it "."
    assert figures(score(gold, "(S (NP (N a)) (, ,) (. b) (: .))")) == (2, 2, 2, 1, 0, 2, 1)


def test_top_functions_traces_and_equal_labels():
    gold = "(TOP (S-1 (NP-SBJ=2 (-NONE- *)) (ADVP-TMP (RB up)) (VP (V a) (NP (-NONE- *T*)))))"
    assert figures(score(gold, "(S (PRT (RB up)) (VP (V a)))")) == (3, 3, 3, 1, 0, 2, 2)
    assert figures(score("(S (PRT (RP a)) (V b))", "(S (ADVP (RP a)) (V b))"))[:3] == (2, 2, 2)
    assert figures(score("(S (X (PRT a)) (V b))", "(S (X (ADVP a)) (V b))"))[5:] == (2, 2)
    assert figures(score("(S (X (PRT a)) (V b))", "(S (X (ADVP a)) (V b))", equal={}))[5:] == (2, 1)
    assert figures(score("(S (PRT (RP a)) (V b))", "(S (ADVP (RP a)) (V b))", equal={}))[:3] == (2, 2, 1)
    assert figures(score("(ROOT (S (V b) (V c)))", "(S (V b) (V c))"))[:3] == (2, 1, 1)
    assert figures(score("(ROOT (S (V b) (V c)))", "(S (V b) (V c))", deleted=["ROOT"]))[:3] == (1, 1, 1)
    assert figures(score("(S (-LRB- -LRB-) (V c))", "(S (V -LRB-) (V c))"))[5:] == (2, 1)


def test_gold_tags_say_which_words_are_empty_elements():
    """Gold tags decide which words are empty elements, however the prediction tags them."""
    gold = "(S (NP (DT the) (CD 0)) (VP (V a) (NP (-NONE- 0))))"
    assert figures(score(gold, "(S (NP (DT the) (-NONE- 0)) (VP (V a) (NP (CD 0))))")) == (3, 3, 3, 1, 0, 3, 2)
    flat = flat_tree(["the", "0", "a", "0"], ["DT", "CD", "V", "CD"], "S")
    assert parseval(trees(gold), [flat]).n_failed == 1


def test_failures_count():
    gold = trees(GOLD)[0]
    tagged = list(leaves(gold))
    flat = flat_tree([word for _, word in tagged], [tag for tag, _ in tagged], "S")
    for failure in (flat, None):
        scores = parseval([gold, gold], [gold, failure])
        assert figures(scores) == (12, 6, 6, 1, 0, 14, 7)
        assert (scores.n_failed, scores.precision, scores.recall, scores.exact) == (1, 1.0, 0.5, 0.5)
        assert (scores.crossing, scores.without_crossing) == (0.0, 1.0)
    # without its mark of a failed parse, the same flat tree is scored like any parse
    assert figures(parseval([gold], [tuple(flat)]))[:3] == (6, 1, 1)
    scores = parseval([gold], [None])
    assert (scores.precision, scores.recall, scores.f1, scores.crossing) == (0.0, 0.0, 0.0, 0.0)
    # a failed parse of one word is not an exact match, although one word has no brackets
    assert parseval([("N", "a")], [("N", "a")]).n_exact == 1
    assert parseval([("N", "a")], [None]).n_exact == 0


def test_short_sentences():
    scores = score("(S (A a) (B b) (, ,))" + GOLD, "(S (A a) (B b) (, ,))" + OTHER, max_length=3)
    assert figures(scores.short) == (1, 1, 1, 1, 0, 2, 2)
    assert (scores.n_sentences, scores.short.n_sentences, scores.max_length) == (2, 1, 3)
    # the length counts punctuation, but no empty elements
    assert score("(S (A a) (-NONE- *) (. .))", "(S (A a) (. .))", max_length=2).short.n_sentences == 1
    assert score("(S (A a) (. .))", "(S (A a) (. .))", max_length=1).short.n_sentences == 0


def test_table():
    text = str(score(GOLD, OTHER))
    assert text.splitlines()[7].split() == ["labelled", "F1", "92.31", "92.31"]
    assert "up to 40 words" in text
    assert "up to" not in str(score(GOLD, OTHER, max_length=2))


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ("(S (A a))" * 2, "(S (A a))", "2 gold trees, 1 predicted"),
        ("", "", "no trees to score"),
        ("(S (A a))(S (A a) (B b))", "(S (A a))(S (A a))", "sentence 1 has 2 words in gold, 1 in the prediction"),
        ("(S (A a))(S (A a) (B b))", "(S (A a))(S (A a) (B c))", "sentence 1: word 2 is 'b' in gold, 'c' in the"),
    ],
)
def test_inputs_that_do_not_match(gold, predicted, message):
    with pytest.raises(ValueError, match=message):
        score(gold, predicted)


def test_what_is_not_a_tree():
    with pytest.raises(ValueError, match=r"gold tree 0: .* is not a tree"):
        parseval(["a"], [None])
    with pytest.raises(ValueError, match=r"predicted tree 0: .* is not a tree"):
        parseval([("A", "a")], [("A", 1)])


def test_deep_trees():
    n = 5000
    deep = trees("(A " * n + "(B b) (C c)" + ")" * n)
    assert parseval(deep, deep).n_right == n


# Comparison with an independent implementation

LABELS = ["S", "NP", "VP", "PRT", "ADVP", "NP-SBJ", "X=1", "TOP", "-NONE-", ":"]
TAGS = ["N", "V", ",", ".", ":", "PRT", "ADVP", "-LRB-", "N-X"]


def random_tree(rng, words, depth=0):
    """Make a random tree over words, with some traces."""
    if len(words) == 1 and (depth > 3 or rng.random() < 0.6):
        return (str(rng.choice(TAGS)), words[0])
    label = str(rng.choice(LABELS))
    parts = rng.integers(1, min(4, len(words)) + 1)
    cuts = sorted(rng.choice(len(words) - 1, size=parts - 1, replace=False) + 1) if parts > 1 else []
    bounds = [0, *(int(cut) for cut in cuts), len(words)]
    children = [random_tree(rng, words[a:b], depth + 1) for a, b in zip(bounds, bounds[1:], strict=False)]
    if rng.random() < 0.1:
        children.insert(int(rng.integers(len(children) + 1)), ("-NONE-", "*"))
    return (label, *children)


def test_random_trees(rng):
    n_right = n_crossing = 0
    for _ in range(400):
        words = [str(k) for k in range(int(rng.integers(1, 8)))]
        gold, predicted = random_tree(rng, words), random_tree(rng, words)
        scores = parseval([gold], [predicted])
        assert figures(scores) == oracle.counts(gold, predicted), (gold, predicted)
        n_right += scores.n_right
        n_crossing += scores.n_crossing
    assert n_right > 100
    assert n_crossing > 100


def test_sums_over_sentences(rng):
    gold = make_treebank(40).trees
    words = [[word for _, word in leaves(tree)] for tree in gold]
    predicted = [random_tree(rng, each) for each in words]
    scores = parseval(gold, predicted)
    rows = [oracle.counts(*pair) for pair in zip(gold, predicted, strict=True)]
    assert figures(scores) == tuple(map(sum, zip(*rows, strict=True)))
    assert isinstance(scores, ParsevalScores)
    assert [sum(column) for column in zip(*scores.labels.values(), strict=True)] == list(figures(scores)[:3])


def test_treebank_sample(data_dir):
    """Gold trees scored against themselves without traces and function tags: all brackets are right."""
    from partwise.models.constituents.treebank import clean_tree

    gold = treebank_sample(data_dir)[:300]
    scores = parseval(gold, [clean_tree(tree) for tree in gold])
    assert scores.n_exact == 300 - sum(one[2] != one[0] for one in map(oracle.counts, gold, map(clean_tree, gold)))
    assert scores.f1 > 0.999
