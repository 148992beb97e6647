"""The dependency parser: certificates, predictions against enumeration of trees, bad input, model files."""

from __future__ import annotations

import itertools
import pickle
import time

import numpy as np
import pytest
from sklearn.base import clone

import partwise
from partwise import DependencyParser
from partwise._core import ArcIndex
from partwise.datasets import make_treebank
from partwise.io import make_sentence, read_conllu
from partwise.metrics import attachment_scores
from partwise.models.dependencies.inputs import lift
from partwise.structures import ProjectiveTree


def bank(n: int, seed: int = 0, **options):
    drawn = make_treebank(n, seed, **options)
    return [
        make_sentence([(w, "_", t) for w, t in zip(words, tags, strict=True)], heads, labels)
        for words, tags, heads, labels in zip(drawn.words, drawn.tags, drawn.heads, drawn.labels, strict=True)
    ]


TRAIN, DEV = bank(150), bank(60, 1)


@pytest.fixture(scope="module")
def parser() -> DependencyParser:
    return DependencyParser(C=1.0, random_state=0).fit(TRAIN)


def test_learns_trees_and_names(parser):
    assert parser.result_.status == parser.label_result_.status == "converged"
    assert 0 <= parser.result_.gap <= 1e-2 * parser.result_.primal
    scores = attachment_scores(DEV, parser.predict(DEV))
    assert scores.uas > 0.9
    assert scores.las > 0.88
    assert parser.score(DEV) == scores.uas
    assert set(parser.classes_) == {name for s in TRAIN for name in s.deprels}
    parsed = parser.parse(DEV)
    assert attachment_scores(DEV, parsed) == scores
    assert parsed[0].forms == DEV[0].forms


def test_unknown_features_of_the_arcs_that_were_found(parser):
    model = pickle.loads(pickle.dumps(parser))
    assert model.unknown_counts_ == (0, 0)
    trees = model.predict(DEV)
    heads = np.array([head for tree in trees for head, _ in tree])
    arcs = model._model.arcs
    tokens = arcs.tokens(model._model.read(DEV).source)
    known = len(arcs.index.attributes(arcs.table.compiled, tokens, heads)[1])
    # hashed features: none is unknown
    total = len(ArcIndex.hashed(20).attributes(arcs.table.compiled, tokens, heads)[1])
    assert model.unknown_counts_ == (total - known, total)
    assert 0 < model.unknown_rate_ == (total - known) / total < 1
    model.predict_k_best(DEV, 2)
    assert model.unknown_counts_ == (total - known, total)
    pickle.loads(pickle.dumps(model))
    model.predict([])
    assert (model.unknown_counts_, model.unknown_rate_, model.blank_columns_) == ((0, 0), 0.0, [])
    model.predict([["the", "sailor"]])
    assert model.blank_columns_ == ["upos"]  # all other columns are blank in training too
    counts = model.unknown_counts_
    model.predict_marginals(DEV)  # predict_marginals finds no arcs, but reports blank columns
    assert (model.unknown_counts_, model.blank_columns_) == (counts, [])


def test_max_seconds_is_for_trees_and_names_together():
    """max_seconds is split: relations get a quarter and at least one pass, heads get the rest."""
    model = DependencyParser(tol=0.0, max_seconds=1e-9, random_state=0).fit(TRAIN)
    assert model.result_.status == model.label_result_.status == "max_seconds"
    assert model.label_result_.passes <= 1
    assert np.abs(model._model.labeller.weights).max() > 0
    model = DependencyParser(tol=0.0, max_seconds=1.2, max_passes=10**7, random_state=0).fit(TRAIN)
    names, trees = model.label_result_, model.result_
    assert names.status == trees.status == "max_seconds"
    assert names.seconds < 0.9
    assert trees.passes > 1


def test_parameters_set_after_fit_are_checked(parser):
    changed = pickle.loads(pickle.dumps(parser)).set_params(structure="rubbish")
    for call in (changed.predict, changed.predict_marginals, lambda X: changed.predict_k_best(X, 2)):
        with pytest.raises(ValueError, match="structure must be one of 'projective', 'spanning'; got 'rubbish'"):
            call(DEV[:2])


@pytest.mark.parametrize("structure", ["projective", "spanning"])
@pytest.mark.parametrize(
    ("loss", "solver"), [("log", "eg"), ("hinge", "bcfw"), ("squared-hinge", "dcd"), ("softmax-margin", "lbfgs")]
)
def test_every_loss_is_certified(structure, loss, solver):
    model = DependencyParser(
        loss=loss, C=0.1, structure=structure, solver=solver, tol=0.1, labels=False, random_state=0
    )
    model.fit(TRAIN[:60])
    assert model.result_.gap <= 0.1 * model.result_.primal
    assert model.score(DEV) > 0.75
    assert hasattr(model, "predict_marginals") == (loss in ("log", "softmax-margin"))
    assert model.label_result_ is None
    assert isinstance(model.predict(DEV[:1])[0][0], int)


def all_trees(n: int):
    for heads in itertools.product(range(n + 1), repeat=n):
        try:
            ProjectiveTree(np.array([n])).check_heads(0, np.array(heads))
        except ValueError:
            continue
        yield heads


def test_predictions_are_those_of_all_trees(parser):
    sentence = [("the", "DT"), ("baker", "NN"), ("slept", "VBD"), (".", ".")]
    arcs = parser._model.arcs.map(_tokens([sentence])).scores(0, parser.coef_).reshape(4, 5)
    trees = list(all_trees(4))
    scores = np.array([sum(arcs[m, h] for m, h in enumerate(heads)) for heads in trees])
    order = np.argsort(-scores)
    assert [h for h, _ in parser.predict([sentence])[0]] == list(trees[order[0]])
    best = parser.predict_k_best([sentence], 3)[0]
    assert [[h for h, _ in tree] for tree, _ in best] == [list(trees[k]) for k in order[:3]]
    np.testing.assert_allclose([value for _, value in best], scores[order[:3]])
    p = np.exp(scores - scores.max())
    p /= p.sum()
    found = [value for _, value in parser.predict_k_best([sentence, []], 1000, probabilities=True)[0]]
    np.testing.assert_allclose(found, p[order], atol=1e-12)
    assert parser.predict_k_best([[]], 2, probabilities=True) == [[([], 1.0)]]
    expected = np.zeros((4, 5))
    for heads, share in zip(trees, p, strict=True):
        expected[np.arange(4), heads] += share
    np.testing.assert_allclose(parser.predict_marginals([sentence])[0], expected, atol=1e-9)


def _tokens(sentences):
    from partwise.models.dependencies.inputs import read_words

    return read_words(sentences, range(len(sentences)), 100).tokens()


def test_constraints(parser):
    sentence = DEV[0]
    n = len(sentence)
    free = [head for head, _ in parser.predict([sentence])[0]]
    word = 1
    other = next(h for h in range(1, n + 1) if h not in (word, free[word - 1]))
    for allowed in ({word: other}, {word: [other]}, {word: {other}}, {word: np.array([other])}):
        forced = [head for head, _ in parser.predict([sentence], allowed=[allowed])[0]]
        assert forced[word - 1] == other
    mask = np.ones((n, n + 1), dtype=bool)
    mask[word - 1, free[word - 1]] = False
    assert parser.predict([sentence, DEV[1]], allowed=[mask, None])[0][word - 1][0] != free[word - 1]
    marginals = parser.predict_marginals([sentence], allowed=[mask])[0]
    assert marginals[word - 1, free[word - 1]] == 0
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    best = parser.predict_k_best([DEV[1], sentence], 4, allowed=[None, {word: other}])
    assert best[0] == parser.predict_k_best([DEV[1]], 4)[0]
    assert best[1][0][0] == parser.predict([sentence], allowed=[{word: other}])[0]
    assert all(tree[word - 1][0] == other for tree, _ in best[1])
    for wrong, message in [
        ([None, None], "one entry for each of 1"),
        (iter([None]), "one entry for each of 1"),
        ([{99: 1}], "are not numbers of words"),
        ([{0: 1}], "the root has no head"),
        ([{1: []}], "word 1 has no head left"),
        ([{1: 2, 2: 1}], "no tree is allowed"),
        ([np.ones((2, 2))], "boolean array of shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            parser.predict([sentence], allowed=wrong)


def test_explanations_add_up_to_the_arcs_score(parser):
    sentence = DEV[2]
    n = len(sentence)
    arcs = parser._model.arcs.map(_tokens([sentence])).scores(0, parser.coef_).reshape(n, n + 1)
    for word, head in ((1, 2), (2, 0), (n, 1), (3, n)):
        found = parser.explain(sentence, word, head)
        assert sum(weight for _, weight in found) == pytest.approx(arcs[word - 1, head])
        sizes = [abs(weight) for _, weight in found]
        assert sizes == sorted(sizes, reverse=True)
    top = dict(parser.explain(sentence, 1))
    assert any(text.endswith(f"form={sentence.forms[0]}") for text in top)
    assert parser.explain([("Ada", "PROPN")], 1, 0)
    for word, head in ((0, 1), (1, 1), (1, n + 1), (n + 1, 1), (n + 1, None), (0, None)):
        with pytest.raises(ValueError, match="there is no"):
            parser.explain(sentence, word, head)
    with pytest.raises(ValueError, match="no word 1 in a sentence of 0"):
        parser.explain([], 1)


def test_input_forms_agree(parser):
    source = DEV[3]
    forms, tags = source.forms, source.column("upos")
    expected = parser.predict([source])
    assert parser.predict([list(zip(forms, tags, strict=True))]) == expected
    assert parser.predict([[{"form": f, "upos": t} for f, t in zip(forms, tags, strict=True)]]) == expected
    assert parser.predict([[(f, "_", t, "_", "_") for f, t in zip(forms, tags, strict=True)]]) == expected
    heads = [list(zip(s.heads, s.deprels, strict=True)) for s in TRAIN[:30]]
    plain = [list(zip(s.forms, s.column("upos"), strict=True)) for s in TRAIN[:30]]
    options = {"tol": 0.1, "random_state": 0}
    a = DependencyParser(**options).fit(plain, heads)
    b = DependencyParser(**options).fit(TRAIN[:30])
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert parser.predict([[]]) == [[]]
    assert [len(tree) for tree in parser.predict([DEV[0], [], DEV[1]])] == [len(DEV[0]), 0, len(DEV[1])]


def test_features_hashed_all_or_recomputed():
    options = {"tol": 1e-2, "labels": False, "random_state": 0}
    gold = DependencyParser(**options).fit(TRAIN[:50])
    again = DependencyParser(memory_limit=0, **options).fit(TRAIN[:50])
    np.testing.assert_array_equal(gold.coef_, again.coef_)
    part = DependencyParser(memory_limit=3e4, n_jobs=2, **options).fit(TRAIN[:50])
    np.testing.assert_array_equal(gold.coef_, part.coef_)
    every = DependencyParser(features="all", **options).fit(TRAIN[:50])
    assert len(every.coef_) > 2 * len(gold.coef_)
    assert every.result_.primal < gold.result_.primal  # more features fit the training data better
    hashed = DependencyParser(features="hashed", hash_bits=18, **options).fit(TRAIN[:50])
    assert len(hashed.coef_) == 2**18
    assert hashed.score(DEV) > 0.8
    rare = DependencyParser(min_count=3, **options).fit(TRAIN[:50])
    assert len(rare.coef_) < len(gold.coef_)


def test_faults_of_the_second_classifier_come_before_the_first_is_trained(monkeypatch):
    monkeypatch.setattr("partwise.estimators.base.solve", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(ValueError, match="no feature occurs 100000 times"):
        DependencyParser(features="hashed", hash_bits=12, min_count=100000).fit(TRAIN[:20])
    with pytest.raises(ValueError, match="no template is left"):
        DependencyParser(label_templates="lemma |").fit(TRAIN[:20])


def test_score_takes_what_fit_takes(parser):
    heads = [list(zip(s.heads, s.deprels, strict=True)) for s in DEV]
    expected = parser.score(DEV)
    assert parser.score(DEV, [[list(arc) for arc in tree] for tree in heads]) == expected
    assert parser.score(DEV, [s.heads for s in DEV]) == expected
    weight = [*np.ones(len(DEV)), 5.0]
    assert parser.score([*DEV, []], [*heads, []], sample_weight=weight) == pytest.approx(expected)
    with pytest.raises(ValueError, match="sentence 0 has no tree"):
        parser.score([["a", "b"]])
    with pytest.raises(ValueError, match="X has 1 sentences, y has 2"):
        parser.score(DEV[:1], heads[:2], sample_weight=[1.0])
    with pytest.raises(ValueError, match="no words to score"):
        parser.score([[]], [[]], sample_weight=[1.0])


def test_own_templates():
    model = DependencyParser(templates="upos | upos\nupos | upos | upos", labels=False).fit(TRAIN[:40])
    assert len(model.coef_) < 1000
    assert model.score(DEV) > 0.6
    with pytest.raises(ValueError, match="'tag' is none of"):
        DependencyParser(templates="tag | tag").fit(TRAIN)


CROSSING = make_sentence(
    [("a", "_", "A"), ("b", "_", "B"), ("c", "_", "C"), ("d", "_", "D")], [3, 4, 0, 3], list("xyzx")
)


def test_crossing_arcs():
    data = [*TRAIN[:20], CROSSING]
    skipped = DependencyParser(labels=False, tol=0.1).fit(data)
    assert (skipped.n_non_projective_, skipped.n_skipped_) == (1, 1)
    lifted = DependencyParser(labels=False, tol=0.1, non_projective="lift").fit(data)
    assert (lifted.n_non_projective_, lifted.n_skipped_) == (1, 0)
    assert len(lifted.coef_) > len(skipped.coef_)
    spanning = DependencyParser(labels=False, tol=1e-3, structure="spanning", C=10.0).fit(data)
    assert spanning.n_non_projective_ == 0
    assert spanning.predict([CROSSING])[0] == CROSSING.heads
    with pytest.raises(ValueError, match=r"sentence 20 \(<sentence>:1\) has a tree with crossing arcs, and 0 more"):
        DependencyParser(non_projective="error").fit(data)
    with pytest.raises(ValueError, match="all gold trees have crossing arcs"):
        DependencyParser().fit([CROSSING])


def test_lifting_ends_in_a_projective_tree():
    rng = np.random.default_rng(0)
    for n in (2, 4, 7, 12):
        for _ in range(30):
            order = rng.permutation(n) + 1
            heads = np.zeros(n, dtype=np.int64)
            for k in range(1, n):
                heads[order[k] - 1] = order[rng.integers(k)]
            structure = ProjectiveTree(np.array([n]))
            lifted = lift(heads)
            structure.check_heads(0, lifted)
            try:
                structure.check_heads(0, heads)
            except ValueError:
                assert (lifted != heads).any()
            else:
                np.testing.assert_array_equal(lifted, heads)
    np.testing.assert_array_equal(lift(np.array(CROSSING.heads)), [3, 3, 0, 3])


WORDS = [("a", "A"), ("b", "B"), ("c", "C")]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([2, 3, 2], "sentence 1: the heads make a cycle through word 2"),
        ([0, 0, 1], "sentence 1 has 2 roots \\(words 1, 2\\): single_root=False"),
        ([0, 1, 4], "sentence 1: head 4 of word 3 is out of range: there are 3 words"),
        ([0, -1, 1], "sentence 1: head -1 of word 2 is out of range"),
        ([0, 1], "y: sentence 1 needs a list of 3 heads"),
        ([0, "x", 1], "word 2: the head must be a number"),
        ([(0, "a"), (1, "b"), 1], "some words have relations"),
    ],
)
def test_bad_trees(tree, message):
    with pytest.raises(ValueError, match=message):
        DependencyParser(tol=0.5).fit([WORDS, WORDS], [[0, 1, 1], tree])


def test_two_roots_when_allowed():
    model = DependencyParser(single_root=False, C=10.0, labels=False).fit([WORDS] * 3, [[0, 0, 2]] * 3)
    assert model.predict([WORDS]) == [[0, 0, 2]]


def test_bad_sentences(parser, tmp_path):
    for X, y, message in [
        ([WORDS, []], [[0, 1, 1], []], "sentence 1 has no words"),
        ([], [], "no sentences"),
        ([WORDS], [[0, 1, 1]] * 2, "1 sentences, y has 2"),
        ([WORDS], None, "sentence 0 has no tree"),
        ("text", None, "list of sentences"),
        ([[1]], [[0]], "sentence 0, word 1: expected a string"),
        ([[{"word": "a"}]], [[0]], "needs the key 'form'"),
        ([[("a", None)]], [[0]], "columns must be strings"),
    ]:
        with pytest.raises(ValueError, match=message):
            DependencyParser().fit(X, y)
    path = tmp_path / "long.conllu"
    path.write_text("".join(f"{k}\tw\t_\t_\t_\t_\t{k - 1}\tx\t_\t_\n" for k in range(1, 2001)) + "\n")
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"sentence 0 \(.*long.conllu:1\) has 2000 words, more than max_length = 500"):
        parser.predict(read_conllu(path))
    assert time.process_time() - begin < 1.0
    for name, value in [("structure", "graph"), ("features", "some"), ("max_length", 0), ("hash_bits", 60), ("C", -1)]:
        with pytest.raises(ValueError, match=name):
            DependencyParser(**{name: value}).fit(TRAIN[:2])
    with pytest.raises(ValueError, match="at least two names"):
        DependencyParser(labels=True).fit([WORDS], [[0, 1, 1]])
    with pytest.raises(AttributeError):
        _ = DependencyParser(loss="hinge").predict_marginals


def test_failed_fit_changes_nothing(parser):
    before = pickle.dumps(parser)
    with pytest.raises(ValueError, match="cycle"):
        parser.fit([WORDS], [[2, 1, 0]])
    assert pickle.dumps(parser) == before


def test_sample_weight_and_clone():
    copy = clone(DependencyParser(C=0.3, structure="spanning"))
    assert copy.get_params()["C"] == 0.3
    options = {"tol": 1e-3, "random_state": 0}
    weight = np.ones(40)
    weight[20:] = 0
    a = DependencyParser(**options).fit(TRAIN[:40], sample_weight=weight)
    b = DependencyParser(**options).fit(TRAIN[:20])
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert a.score(DEV) == b.score(DEV)
    assert b.score(DEV, sample_weight=np.full(len(DEV), 2.0)) == pytest.approx(b.score(DEV))


def test_warm_start_goes_on():
    model = DependencyParser(solver="lbfgs", tol=1e-3, warm_start=True, labels=False).fit(TRAIN[:40])
    passes = model.result_.passes
    model.fit(TRAIN[:40])
    assert model.result_.passes < passes


@pytest.mark.parametrize("options", [{}, {"labels": False}, {"features": "hashed", "hash_bits": 12}])
def test_save_load_pickle(tmp_path, options):
    model = DependencyParser(tol=0.1, random_state=0, **options).fit(TRAIN[:40])
    expected = model.predict(DEV)
    path = tmp_path / "model.pw"
    model.save(path)
    loaded = partwise.load(path)
    assert loaded.predict(DEV) == expected
    assert loaded.get_params() == model.get_params()
    assert loaded.result_.primal == model.result_.primal
    assert (loaded.label_result_ is None) == (model.label_result_ is None)
    if model.label_result_ is not None:
        assert loaded.label_result_.dual == model.label_result_.dual
    copy = pickle.loads(pickle.dumps(model))
    assert copy.predict(DEV) == expected
    for name in ("result_", "label_result_"):  # dual points are as large as the training data, so files leave them out
        result = getattr(model, name)
        assert result is None or (result.dual_point is not None and getattr(copy, name).dual_point is None)
    model.save(path, dtype="float32")
    assert partwise.load(path).score(DEV) == pytest.approx(model.score(DEV), abs=0.02)


def test_damaged_model_parts(parser):
    from partwise.model_files import ModelFormatError
    from partwise.model_files.files import from_parts, to_parts

    def broken(change) -> None:
        parts = to_parts(parser, "dep")
        change(parts)
        with pytest.raises((ModelFormatError, ValueError)):
            from_parts(DependencyParser, parts)

    broken(lambda p: p.arrays.update(weights=p.arrays["weights"][:-1]))
    broken(lambda p: p.arrays.pop("arcs.keys"))
    broken(lambda p: p.settings["arcs"].update(templates="nothing | here"))
    broken(lambda p: p.settings["arcs"].update(bits=40))
    broken(lambda p: p.settings.pop("labels"))
    broken(lambda p: p.settings.update(labels={"dtype": "int64", "values": list(range(len(parser.classes_)))}))
    broken(lambda p: p.settings.pop("label_history"))
    broken(lambda p: p.arrays.update({"labeller.arcs.keys": p.arrays["labeller.arcs.keys"][:-1]}))


def test_nonprojective_data_prefers_spanning_trees():
    train, dev = bank(250, 5, nonprojective=0.5), bank(100, 6, nonprojective=0.5)
    found = {}
    for structure in ("projective", "spanning"):
        model = DependencyParser(structure=structure, C=1.0, labels=False, random_state=0).fit(train)
        found[structure] = model.score(dev)
        assert (model.n_non_projective_ > 50) == (structure == "projective")
    assert found["spanning"] > found["projective"]
