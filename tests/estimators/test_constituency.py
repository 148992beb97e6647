"""ConstituencyParser: answers against enumeration, sentences without a parse, constraints, files, bad input."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter

import numpy as np
import pytest

import partwise
from helpers.model_cases import remade
from partwise import ConstituencyParser, ModelFormatError, Problem, load
from partwise.datasets import make_treebank
from partwise.io import format_tree
from partwise.io.trees import is_leaf
from partwise.models import ConstraintError
from partwise.models.constituents.treebank import is_parsed, words_of

MANY = 3000
TREES = make_treebank(60, 0).trees


def spans_of(tree):
    """Return (label, begin, end) of all nodes."""
    found = []

    def walk(node, at):
        if is_leaf(node):
            found.append((node[0], at, at + 1))
            return at + 1
        end = at
        for child in node[1:]:
            end = walk(child, end)
        found.append((node[0], at, end))
        return end

    walk(tree, 0)
    return found


@pytest.fixture(scope="module")
def parser():
    return ConstituencyParser(tol=1e-4, n_jobs=1).fit(TREES)


@pytest.fixture(scope="module")
def some(parser):
    """Return short sentences with several parses, and all parses with their probabilities."""
    X = [words_of(tree) for tree in TREES if 3 <= len(words_of(tree)) <= 6]
    every = parser.predict_k_best(X, MANY, probabilities=True)
    kept = [i for i, answers in enumerate(every) if 2 <= len(answers) < MANY][:6]
    assert len(kept) >= 3
    return [X[i] for i in kept], [every[i] for i in kept]


def test_it_learns_its_trees(parser):
    assert parser.score(TREES) > 0.95
    assert parser.result_.gap <= 1e-4 * parser.result_.primal
    assert {"NP", "VP", "S"} <= set(parser.labels_)
    assert len(parser.coef_) > len(parser.grammar_.rules)
    sentences = [words_of(tree) for tree in TREES]
    assert parser.predict(TREES) == parser.predict(sentences)
    assert parser.score(sentences, TREES, np.ones(len(TREES))) == pytest.approx(parser.score(TREES), abs=1e-12)
    same = ConstituencyParser(tol=1e-4, n_jobs=1).fit(sentences, TREES)
    np.testing.assert_array_equal(same.coef_, parser.coef_)


def test_answers_against_enumeration(parser, some):
    X, every = some
    marginals = parser.predict_marginals(X, least=0.0)
    samples = parser.sample(X, 3000, random_state=0)
    for answers, best, table, drawn in zip(every, parser.predict(X), marginals, samples, strict=True):
        assert len({tree for tree, _ in answers}) == len(answers)
        assert sum(p for _, p in answers) == pytest.approx(1.0, abs=1e-9)
        assert best == answers[0][0]
        expected = Counter()
        for tree, p in answers:
            for span in spans_of(tree):
                expected[span] += p
        assert table == pytest.approx(dict(expected), abs=1e-9)
        counts = Counter(drawn)
        for tree, p in answers:
            assert counts[tree] / 3000 == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / 3000) + 1e-9)
    for rank in (0, 1):
        found = parser.log_probability(X, [answers[rank][0] for answers in every])
        np.testing.assert_allclose(found, np.log([answers[rank][1] for answers in every]), atol=1e-9)


def test_constraints_against_enumeration(parser, some):
    X, every = some
    for name in ("required", "forbidden"):
        for labelled in (True, False):
            given = []
            for answers in every:
                spans = {s if labelled else s[1:] for tree, _ in answers for s in spans_of(tree) if s[2] > s[1] + 1}
                odds = {s: sum(_has(tree, s) for tree, _ in answers) / len(answers) for s in sorted(spans)}
                choice = min(odds, key=lambda s, odds=odds: abs(odds[s] - 0.5))
                given.append([choice] if 0 < odds[choice] < 1 else None)
            assert sum(spans is not None for spans in given) >= 2
            asked = parser.predict_k_best(X, MANY, probabilities=True, **{name: given})
            for spans, answers, found in zip(given, every, asked, strict=True):
                if spans is None:
                    continue
                (span,) = spans
                left = {tree: p for tree, p in answers if _has(tree, span) == (name == "required")}
                total = sum(left.values())
                assert dict(found) == pytest.approx({tree: p / total for tree, p in left.items()}, abs=1e-9)


def _has(tree, span):
    return any(own == span or own[1:] == span for own in spans_of(tree))


def test_constraints_of_words(parser, some):
    X, every = some
    tags = [{span[0] for tree, _ in answers for span in spans_of(tree) if span[1:] == (0, 1)} for answers in every]
    for words, found, answers in zip(X, tags, every, strict=True):
        for label in sorted(found):
            asked = parser.predict_k_best([words], MANY, required=[[(label, 0, 1)]])[0]
            assert {tree for tree, _ in asked} == {tree for tree, _ in answers if _has(tree, (label, 0, 1))}
            left = {tree for tree, _ in answers if not _has(tree, (label, 0, 1))}
            if left:
                asked = parser.predict_k_best([words], MANY, forbidden=[[(label, 0, 1)]])[0]
                assert {tree for tree, _ in asked} == left


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"required": [None]}, "required must hold one entry for each of 2 sentences"),
        ({"forbidden": [None, 3]}, "sentence 1 needs None or a list of spans"),
        ({"required": [[(0, 9)], None]}, r"there is no span \(0, 9\) in 3 words"),
        ({"required": [[(1, 1)], None]}, r"there is no span \(1, 1\)"),
        ({"required": [[("NP", 0)], None]}, "is not a span"),
        ({"required": [[(1, 0, 2)], None]}, "is not a span"),
        ({"required": [None, ["NP"]]}, "is not a span"),
        ({"required": 3}, "required must hold one entry for each of 2 sentences"),
        ({"required": [[("NO", 0, 2)], None]}, "required: sentence 0: the model has no label 'NO'"),
        ({"forbidden": [None, [("NO", 0, 2)]]}, "forbidden: sentence 1: the model has no label 'NO'"),
    ],
)
def test_invalid_constraints(parser, constraints, message):
    words = [words_of(tree) for tree in TREES if len(words_of(tree)) == 3][:2]
    with pytest.raises(ValueError, match=message):
        parser.predict(words, **constraints)


def test_constraints_of_sentences_without_a_parse_are_checked(parser):
    bad = [words_of(TREES[0])[-1]] * 5
    assert not is_parsed(parser.predict([bad], required=[[(0, 2)]])[0])
    for words in (bad, []):
        with pytest.raises(ValueError, match=rf"sentence 0: there is no span \(0, 9\) in {len(words)} words"):
            parser.predict([words], required=[[(0, 9)]])


def test_constraints_that_forbid_every_parse(parser, some):
    X, _ = some
    for constraints in ({"required": [[(0, 2), (1, 3)]]}, {"required": [[(0, 2)]], "forbidden": [[(0, 2)]]}):
        with pytest.raises(ConstraintError, match="sentence 0: no tree is left") as error:
            parser.predict(X[:1], **constraints)
        assert error.value.sequence == 0
        again = pickle.loads(pickle.dumps(error.value))  # errors are pickled between processes
        assert (str(again), again.sequence, again.position) == (str(error.value), 0, error.value.position)


def test_sentences_without_a_parse(parser):
    good = words_of(TREES[0])
    bad = [good[-1]] * 5
    found = parser.predict([good, bad, []])
    assert is_parsed(found[0])
    assert not is_parsed(found[1])
    assert words_of(found[1]) == bad
    assert all(is_leaf(child) for child in found[1][1:])
    assert found[2] == ()
    assert parser.predict_k_best([bad, []], 2) == [[], [((), 0.0)]]
    assert [is_parsed(tree) for tree in parser.sample([bad], 2)[0]] == [False, False]
    assert parser.predict_marginals([bad, good, []])[::2] == [{}, {}]
    flat = ("S", *(("NN", word) for word in bad))
    log_probability = parser.log_probability([bad, good, []], [flat, TREES[0], ()])
    assert log_probability[[0, 2]].tolist() == [-math.inf, 0.0]
    assert -1.0 < log_probability[1] < 0.0
    # A sentence without a parse lowers the score.
    alone, both = parser.score([good], [TREES[0]]), parser.score([good, bad], [TREES[0], flat])
    assert both < alone
    assert pickle.loads(pickle.dumps(found[1])).parsed is False
    strict = pickle.loads(pickle.dumps(parser)).set_params(no_parse="raise")
    with pytest.raises(ValueError, match="sentence 1 has no parse under the grammar"):
        strict.predict([good, bad])
    with pytest.raises(ValueError, match="the sentence has no parse"):
        parser.explain(bad)


def test_words_outside_the_lexicon():
    closed = ConstituencyParser(rare=0, tol=0.1, no_parse="raise").fit(TREES[:20])
    with pytest.raises(ValueError, match=r"sentence 0: the word 'xyzzy' \(number 1\) is not in the grammar's lexicon"):
        closed.predict([["xyzzy", *words_of(TREES[0])[1:]]])
    open_words = ConstituencyParser(rare=1, tol=0.1).fit(TREES)
    words = words_of(TREES[0])
    found = [open_words.predict([[*words[:k], "xyzzy", *words[k + 1 :]]])[0] for k in range(len(words))]
    assert any(map(is_parsed, found))


def test_explanations_add_up(parser, some):
    X, every = some
    for words, answers in zip(X, every, strict=True):
        why = parser.explain(words)
        assert (why.best, why.second) == (answers[0][0], answers[1][0])
        assert why.difference == pytest.approx(math.log(answers[0][1] / answers[1][1]), abs=1e-8)
        assert sum(each.amount for each in why.contributions) == pytest.approx(why.difference, abs=1e-8)
    top = parser.top_features(3)
    assert all(len(rows) <= 3 for rows in top.labels.values())
    assert {"rules", "NP", "VP"} <= set(top.labels)


def test_files(parser, some, tmp_path):
    X, _ = some
    parser.save(tmp_path / "model.pw")
    again = partwise.load(tmp_path / "model.pw")
    assert again.predict_k_best(X, 3) == parser.predict_k_best(X, 3)
    np.testing.assert_array_equal(again.coef_, parser.coef_)
    pruned = pickle.loads(pickle.dumps(parser))
    outcome = pruned.prune(keep=0.3)
    assert outcome.weights_after < 0.31 * outcome.weights_before
    assert len(pruned.coef_) < 0.7 * len(parser.coef_)
    pruned.save(tmp_path / "pruned.pw")
    assert partwise.load(tmp_path / "pruned.pw").predict_k_best(X, 3) == pruned.predict_k_best(X, 3)
    assert (tmp_path / "pruned.pw").stat().st_size < (tmp_path / "model.pw").stat().st_size
    whole = pickle.loads(pickle.dumps(parser))
    whole.prune(keep=1.0)
    for one, two in zip(whole.predict_k_best(X, 3), parser.predict_k_best(X, 3), strict=True):
        np.testing.assert_allclose([v for _, v in one], [v for _, v in two], atol=1e-9)


def _change(name, index, value):
    def change(metadata, settings, arrays):
        arrays[name].reshape(-1)[index] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _change("rules", 1, 10**6),
        _change("rules", 0, -1),
        _change("lexical", 0, 10**6),
        _change("lexical", 1, 10**6),
        _change("roots", 0, 10**6),
        _change("span_keys", 0, 2**60),
        _change("span_indptr", 1, 10**6),
        _change("word_columns", 0, 60000),
        _change("rule_weights", 0, np.nan),
        lambda m, s, a: a.pop("start_keys"),
        lambda m, s, a: s.update(root=3),
        lambda m, s, a: s.pop("symbols"),
        lambda m, s, a: a.update(roots=a["roots"][:0], root_counts=a["root_counts"][:0]),
        lambda m, s, a: a.update(rules=a["rules"][::-1].copy()),
        lambda m, s, a: a.update(split_keys=a["split_keys"][::-1].copy()),
    ],
)
def test_damaged_files(parser, tmp_path, change):
    parser.save(tmp_path / "model.pw")
    (tmp_path / "wrong.pw").write_bytes(remade((tmp_path / "model.pw").read_bytes(), change))
    with pytest.raises(ModelFormatError):
        partwise.load(tmp_path / "wrong.pw")


def test_warm_starts_and_paths(parser):
    again = pickle.loads(pickle.dumps(parser)).set_params(warm_start=True)
    again.fit(TREES)
    assert again.result_.passes < 0.6 * parser.result_.passes
    np.testing.assert_array_equal(again._model.carried(parser._model), parser.coef_)
    other = ConstituencyParser(tol=0.1).fit(TREES[:10])
    assert other._model.carried(parser._model) is None or len(other._model.carried(parser._model)) == len(other.coef_)
    results = ConstituencyParser(tol=1e-3).fit_path([0.1, 1.0], list(map(words_of, TREES)), TREES)
    assert results[1].primal == pytest.approx(parser.result_.primal, rel=2e-3)


@pytest.mark.parametrize(
    ("loss", "cost"), [("hinge", "rules"), ("squared-hinge", "constituents"), ("softmax-margin", "rules")]
)
def test_margins(loss, cost):
    parser = ConstituencyParser(loss, cost=cost, tol=0.1, C=0.5).fit(TREES[:25])
    assert parser.result_.gap <= 0.1 * parser.result_.primal
    assert parser.score(TREES[:25]) > 0.9


def test_binarisations_and_weights():
    """Trees keep their shape under every binarisation, and sentences of weight 0 do not count in training."""
    for options in ({"horizontal": math.inf}, {"horizontal": 0, "binarise": "left"}, {"vertical": 2}):
        parser = ConstituencyParser(tol=0.05, C=10.0, **options).fit(TREES[:30])
        assert parser.score(TREES[:30]) > 0.95
    weight = np.ones(30)
    weight[10:] = 0
    light = ConstituencyParser(tol=0.05).fit(TREES[:30], sample_weight=weight)
    np.testing.assert_array_equal(light.coef_, ConstituencyParser(tol=0.05).fit(TREES[:10]).coef_)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ("words", None, "X must be a list of sentences, got str"),
        ([["a", "b"]], None, "sentence 0 has no tree: give y"),
        ([["a", "b"]], [("S", ("A", "a"), ("B", "c"))], "the tree of sentence 0 does not have the sentence's words"),
        ([["a", "b"]], [("S", ("A", "a"))], "does not have the sentence's words: it has 1 words"),
        ([["a"]], [], "X has 1 sentences, y has 0 trees"),
        ([["a", 3]], [("S", ("A", "a"), ("B", "b"))], "sentence 0, word 2: a word must be a string"),
        ([["a", ""]], [("S", ("A", "a"), ("B", "b"))], "sentence 0, word 2: a word must be a string, not empty"),
        (["ab"], [("S", ("A", "a"))], "sentence 0 must be a list of words, got str"),
        ([["a"]], ["S"], "y: tree 0"),
        ([], None, "there are no trees to learn from"),
        ([("S", ("-NONE-", "*"), ("X", ("-NONE-", "*")))], None, "all of its words are empty elements"),
        ([["a"] * 300], [("S", *[("A", "a")] * 300)], "sentence 0 has 300 words, more than max_length = 200"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        ConstituencyParser().fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_parse": "skip"}, "no_parse must be one of 'flat', 'raise'"),
        ({"cost": "words"}, "cost must be one of"),
        ({"horizontal": -1}, "horizontal"),
        ({"horizontal": 1.5}, "horizontal=1.5 must be a whole number"),
        ({"horizontal": "2"}, "horizontal='2' must be a whole number"),
        ({"vertical": 0}, "vertical"),
        ({"vertical": None}, "vertical=None must be a whole number"),
        ({"binarise": "middle"}, "binarise"),
        ({"rare": -1}, "rare must be an integer from 0"),
        ({"max_length": 0}, "max_length must be an integer from 1"),
        ({"traces": 1}, "traces must be one of"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        ConstituencyParser(**options).fit(TREES[:3])


def test_single_words_and_common_roots():
    """Check sentences of one word, and trees that all have the same root label."""
    trees = [("TOP", ("X", ("A", "a"))), ("TOP", ("S", ("X", ("A", "a")), ("B", "b"))), ("TOP", ("Y", ("B", "b")))]
    trees += [("TOP", ("S", ("X", ("B", "a")), ("A", "c"))), ("TOP", ("S", ("A", "a"), ("B", "c")))]
    parser = ConstituencyParser(C=2.0, tol=1e-2, rare=0).fit(trees)
    assert parser.predict([["a"], ["a", "b"], ["b"]]) == trees[:3]
    assert parser.score(trees[:3]) == 1.0


def test_trees_of_one_word_alone():
    """A treebank whose trees have a single word each gives a grammar without rules; training still works."""
    trees = [("N", "dog"), ("N", "dog"), ("V", "dog"), ("V", "runs")] * 3
    parser = ConstituencyParser().fit([[word] for _, word in trees], trees)
    assert parser.predict([["dog"], ["runs"]]) == [("N", "dog"), ("V", "runs")]
    assert not is_parsed(parser.predict([["dog", "runs"]])[0])
    assert [len(found) for found in parser.predict_k_best([["dog"], ["dog", "runs"]], 5)] == [2, 0]


def test_flat_trees_of_words_without_tags_can_be_written():
    trees = [("S", "the", "cat"), ("S", ("NP", "the", "cat"), "sat"), ("S", "the", ("NP", "cat", "sat"))] * 3
    parser = ConstituencyParser().fit([words_of(tree) for tree in trees], trees)
    assert [format_tree(tree) for tree in parser.predict([["the"]])] == ["(S (S the))"]


def test_log_probability_of_invalid_trees(parser):
    words = words_of(TREES[0])
    with pytest.raises(ValueError, match="y: tree 0: 5 is not a tree"):
        parser.log_probability([words], [5])
    with pytest.raises(ValueError, match="y: the tree of sentence 0 does not have the sentence's words"):
        parser.log_probability([words], [("S", ("NN", "other"))])
    assert parser.log_probability([words], [("S", *(("NN", word) for word in words))]).tolist() == [-math.inf]


@pytest.mark.slow
def test_the_treebank_sample(data_dir):
    """On part of the treebank sample, training beats relative frequencies of the same grammar by far."""
    from partwise.datasets import treebank_sample
    from partwise.metrics import parseval
    from partwise.models.constituents.treebank import TreeTransform
    from partwise.models.constituents.treebank.relative_frequency import RelativeFrequencyParser

    transform = TreeTransform(1)
    trees = [tree for tree in map(transform.cleaned, treebank_sample(data_dir)) if len(words_of(tree)) <= 25]
    train, test = trees[:800], trees[-200:]
    parser = ConstituencyParser(tol=0.02).fit(train)
    baseline = parseval(test, RelativeFrequencyParser.of(train, transform, rare=2).predict(list(map(words_of, test))))
    assert parser.score(test) > baseline.f1 + 0.05


def three_way(n=4):
    """Make trees whose branching depends on the parity of three words: no two of the words determine it."""
    X, y = [], []
    for words in itertools.product("ab", "cd", "ef"):
        one, two, three = (("L", word) for word in words)
        even = sum(word in "bdf" for word in words) % 2 == 0
        tree = ("S", ("X", one, two), three) if even else ("S", one, ("X", two, three))
        X += [list(words)] * n
        y += [tree] * n
    return X, y


def test_hashed_tuples_see_three_words_together(tmp_path):
    X, y = three_way()
    options = {"C": 100.0, "tol": 1e-3, "solver": "lbfgs"}
    assert ConstituencyParser(**options).fit(X, y).score(X, y) < 0.95
    parser = ConstituencyParser(tuple_bits=10, **options).fit(X, y)
    assert parser.score(X, y) == 1.0
    assert parser.result_.status == "converged"
    parser.save(tmp_path / "model.pw")
    for other in (load(tmp_path / "model.pw"), pickle.loads(pickle.dumps(parser))):
        assert other.predict(X) == parser.predict(X)
        np.testing.assert_allclose(other.log_probability(X, y), parser.log_probability(X, y), rtol=1e-12)
    found = parser.explain(X[0])
    assert any(each.kind == "tuple" for each in found.contributions)
    assert sum(each.amount for each in found.contributions) == pytest.approx(found.difference)
    parser.prune(keep=200)
    assert parser.score(X, y) > 0.9
    assert parser.prune(keep=10).weights_after == np.count_nonzero(parser.weights_) == 10
    margins = ConstituencyParser(tuple_bits=6, loss="hinge", cost="rules", C=1.0).fit(X, y)
    assert margins.result_.status == "converged"
    assert Problem.of([margins.labelled(X, y)], "hinge", margins.result_.l2).value(margins.weights_) == pytest.approx(
        margins.result_.primal
    )
    for bad in (-1, 25, 1.5):
        with pytest.raises(ValueError, match="tuple_bits must be an integer from 0 to 24"):
            ConstituencyParser(tuple_bits=bad).fit(X, y)


def test_hashed_tuples_are_carried_where_rules_have_the_same_numbers():
    X, y = three_way()
    parser = ConstituencyParser(tuple_bits=8, C=10.0, tol=1e-3, solver="lbfgs", warm_start=True).fit(X, y)
    passes = parser.result_.passes
    assert parser.fit(X, y).result_.passes < passes
    more = [*y, ("S", ("Y", ("L", "a"), ("L", "c")), ("L", "e"))]
    assert parser.fit([*X, ["a", "c", "e"]], more).result_.status == "converged"
