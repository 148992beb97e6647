"""Taggers with templates: equal to taggers of the expanded attributes, with the features of CRF++."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import partwise
from partwise import SequenceTagger
from partwise.features import Template
from partwise.io import Sentences


def make_data(seed, n):
    rng = np.random.default_rng(seed)
    words = ["the", "a", "dog", "Cats", "runs", "12", "x-y", "\u00c9t\u00e9"]
    X, y = [], []
    for _ in range(n):
        length = rng.integers(1, 8)
        sentence = [(words[k], "DET" if k < 2 else "N" if k < 4 else "X") for k in rng.integers(0, 8, length)]
        labels = ["B" if tag == "DET" or rng.random() < 0.2 else "I" if tag == "N" else "O" for _, tag in sentence]
        X.append(sentence)
        y.append(labels)
    return X, y


X, Y = make_data(0, 60)
FRESH = [*make_data(1, 20)[0], [("new", "N")]]


@pytest.mark.parametrize("options", [{}, {"features": "all"}, {"features": "all", "min_count": 3}, {"n_jobs": 2}])
@pytest.mark.parametrize("name", ["chunk", "pos"])
def test_as_with_attributes_written_out(name, options):
    template = Template.preset(name)
    options = {"solver": "lbfgs", "tol": 1e-10} | options
    ours = SequenceTagger(template=template, **options).fit(X, Y)
    plain = SequenceTagger(**options).fit(template.attributes(X), Y)
    assert ours.attributes_ == plain.attributes_
    np.testing.assert_array_equal(ours.coef_, plain.coef_)
    assert ours.predict(FRESH) == plain.predict(template.attributes(FRESH))
    assert ours.unknown_rate_ == plain.unknown_rate_ > 0
    table = Sentences.from_lists(FRESH)
    assert ours.predict(table) == ours.predict(FRESH)
    np.testing.assert_array_equal(
        ours.predict_marginals(table, output="array")[0], ours.predict_marginals(FRESH, output="array")[0]
    )


@pytest.mark.parametrize("model", ["crf", "maxent"])
def test_saved_and_loaded(tmp_path, model):
    template = Template.preset("ner", clusters={"the": "010", "a": "010", "dog": "11"}, gazetteers={"pets": ["dog"]})
    words = [[word for word, _ in sentence] for sentence in X]
    tagger = SequenceTagger(template=template, model=model).fit(words, Y)
    tagger.save(tmp_path / "model.pw")
    loaded = partwise.load(tmp_path / "model.pw")
    copy = pickle.loads(pickle.dumps(tagger))
    fresh = [[word for word, _ in sentence] for sentence in FRESH]
    assert loaded.predict(fresh) == copy.predict(fresh) == tagger.predict(fresh)
    assert loaded.template == template
    assert loaded.attributes_ == tagger.attributes_
    assert clone(loaded).fit(words, Y).predict(fresh) == tagger.predict(fresh)
    preset = SequenceTagger(template="pos", model=model).fit(words, Y)
    preset.save(tmp_path / "preset.pw")
    again = partwise.load(tmp_path / "preset.pw")
    assert again.template == "pos"
    assert again.predict(fresh) == preset.predict(fresh)


U_LINES = "U0:%x[0,0]\nU1:%x[-1,1]\n"


@pytest.mark.parametrize("features", ["observed", "all"])
def test_b_lines_are_weights_of_label_pairs(features, tmp_path):
    written = SequenceTagger(
        template=Template(U_LINES + "B\nB1:%x[0,1]\n"), features=features, solver="lbfgs", tol=1e-12
    ).fit(X, Y)
    # Compare names only: attributes with weights for label pairs but not for labels have no other notation.
    states = {name for name, _ in written.state_features_}
    assert states
    assert all(name.startswith("U") for name in states)
    pairs = written.transition_features_
    names = {key[0] for key in pairs if len(key) == 3}
    assert names == {"B1:DET", "B1:N", "B1:X"}
    assert {key for key in pairs if len(key) == 2}
    seen = {(f"B1:{s[t][1]}", y[t - 1], y[t]) for s, y in zip(X, Y, strict=True) for t in range(1, len(s))}
    found = {key for key in pairs if len(key) == 3}
    assert found == seen if features == "observed" else seen < found
    assert len(found) == len(seen) or len(found) == 3 * 9
    written.save(tmp_path / "model.pw")
    assert partwise.load(tmp_path / "model.pw").predict(FRESH) == written.predict(FRESH)
    assert clone(written).set_params(warm_start=True).fit(X, Y).fit(X, Y).transition_features_ == pytest.approx(
        pairs, abs=1e-4
    )


@pytest.mark.parametrize("features", ["observed", "all"])
def test_only_conditioned_pairs(features, tmp_path):
    # No unconditioned pairs: the tag of the pair's second token has one of three values, so they would be redundant.
    tagger = SequenceTagger(template=Template(U_LINES + "B1:%x[0,1]\n"), features=features).fit(X, Y)
    pairs = tagger.transition_features_
    assert pairs
    assert {len(key) for key in pairs} == {3}
    tagger.save(tmp_path / "model.pw")
    assert partwise.load(tmp_path / "model.pw").predict(FRESH) == tagger.predict(FRESH)


@pytest.mark.parametrize("features", ["observed", "all"])
def test_without_b_lines_label_pairs_have_no_weights(features, tmp_path):
    tagger = SequenceTagger(template=Template(U_LINES), features=features, solver="lbfgs", tol=1e-12).fit(X, Y)
    assert tagger.transition_features_ == {}
    # Without label pairs each token is classified by itself.
    written = Template(U_LINES).attributes(X)
    alone = [[token] for sentence in written for token in sentence]
    one = SequenceTagger(features=features, solver="lbfgs", tol=1e-12).fit(alone, [[label] for y in Y for label in y])
    assert tagger.state_features_ == pytest.approx(one.state_features_, abs=1e-5)
    tagger.save(tmp_path / "model.pw")
    assert partwise.load(tmp_path / "model.pw").predict(FRESH) == tagger.predict(FRESH)


def test_conditioned_pairs_are_transition_features():
    # B lines give the features of `transition_features`, without weights for single labels and with another prefix.
    template = Template("U0:%x[0,0]\nU1:%x[0,1]\nB\nB1:%x[0,1]\n")
    ours = SequenceTagger(template=template, solver="lbfgs", tol=1e-13, features="all").fit(X, Y)
    plain = SequenceTagger(solver="lbfgs", tol=1e-13, features="all", transition_features=["U1"]).fit(
        Template("U0:%x[0,0]\nU1:%x[0,1]\nB\n").attributes(X), Y
    )
    assert ours.result_.primal == pytest.approx(plain.result_.primal, rel=1e-9)
    renamed = {(key[0].replace("B1", "U1"), *key[1:]): w for key, w in ours.transition_features_.items()}
    assert renamed == pytest.approx(plain.transition_features_, abs=1e-4)


def test_sample_weights_and_empty_sentences():
    weight = np.ones(len(X))
    weight[::3] = 0
    tagger = SequenceTagger(template="chunk", solver="lbfgs").fit(Sentences.from_lists(X), Y, sample_weight=weight)
    keep = np.flatnonzero(weight)
    other = SequenceTagger(template="chunk", solver="lbfgs").fit([X[i] for i in keep], [Y[i] for i in keep])
    np.testing.assert_array_equal(tagger.coef_, other.coef_)
    assert tagger.predict([[], X[0], []])[::2] == [[], []]
    assert tagger.predict([]) == []


def test_cross_validation_takes_both_forms():
    tagger = SequenceTagger(template="chunk")
    scores = [cross_val_score(tagger, data, Y, cv=3) for data in (X, Sentences.from_lists(X))]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"template": "none"}, X, "chunk, pos, ner"),
        ({"template": 3}, X, "preset's name or a Template"),
        ({"template": "chunk"}, [[["a", 1]]], "tokens are strings"),
        ({"template": "chunk"}, [["a", "b"]], "X has 1 columns"),
        ({"template": "chunk"}, [[{"a": 1}]], "tokens are strings"),
        ({"template": Template("B1:%x[0,0]"), "model": "maxent"}, X, "B lines with macros"),
        ({"template": Template("B1:%x[0,0]"), "kernel": "linear"}, X, "B lines with macros"),
        ({"template": Template("U1:%x[0,0]"), "kernel": "linear"}, X, "with a kernel there are transitions"),
    ],
)
def test_refused(options, data, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger(**options).fit(data, [["a", "b"]] * len(data))


def test_refused_at_prediction():
    tagger = SequenceTagger(template="chunk").fit(X, Y)
    with pytest.raises(ValueError, match="tokens are strings"):
        tagger.predict([[[1, 2]]])
    plain = SequenceTagger().fit(Template.preset("chunk").attributes(X), Y)
    with pytest.raises(ValueError, match="table of strings"):
        plain.predict(Sentences.from_lists(X))


def test_inspection_without_transitions():
    tagger = SequenceTagger(template=Template("U0:%x[0,0]\n")).fit(X, Y)
    assert tagger.transition_features_ == tagger.top_features().transitions == {}
