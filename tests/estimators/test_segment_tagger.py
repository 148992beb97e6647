"""SegmentTagger: labels and segments, features of whole segments, spans, constraints, bad input."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import partwise
from helpers.model_cases import remade
from partwise import ModelFormatError, SegmentTagger
from partwise.features import Template
from partwise.io import CodedSequences, Sentences
from partwise.metrics import chunk_f1, chunk_spans
from partwise.models import ConstraintError

CITIES = ["new york", "old town", "san juan", "port royal"]
WORDS = ["we", "saw", "the", "river", "near", "Ann", "Bob", "Cy"]


def sentences(seed, n=60):
    """Make sentences with names of people and of cities; "new" by itself is not a name."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words, labels = [], []
        for _ in range(int(rng.integers(2, 6))):
            kind = rng.random()
            if kind < 0.3:
                words += CITIES[rng.integers(4)].split()
                labels += ["B-loc", "I-loc"]
            elif kind < 0.5:
                size = int(rng.integers(1, 3))
                words += [WORDS[5 + int(rng.integers(3))] for _ in range(size)]
                labels += ["B-per", "I-per"][:size]
            else:
                words.append([*WORDS[:5], "new", "old", "york"][rng.integers(8)])
                labels.append("O")
        X.append(words)
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    return SegmentTagger(template="ner", tol=1e-3).fit(*sentences(0))


def test_it_learns(fitted):
    X, y = sentences(1)
    assert fitted.result_.status == "converged"
    assert fitted.types_ == ["O", "loc", "per"]
    assert fitted.max_length_ == 2
    assert fitted.classes_.tolist() == ["B-loc", "B-per", "I-loc", "I-per", "O"]
    assert chunk_f1(y, fitted.predict(X)) > 0.9  # not 1: "Bob Bob" can be one name or two
    assert fitted.score(X, y) > 0.9


def test_spans_and_their_probabilities(fitted):
    X, _ = sentences(2, 8)
    every = fitted.predict_k_best(X, 100_000, probabilities=True)
    found = fitted.predict_spans(X)
    for spans, answers, labels in zip(found, every, fitted.predict(X), strict=True):
        assert [(s.label, s.begin, s.end) for s in spans] == chunk_spans(labels)
        for span in spans:
            has = [p for other, p in answers if tuple(span[:3]) in chunk_spans(other)]
            assert span.probability == pytest.approx(sum(has), abs=1e-9)
    asked = [[("loc", 0, 2), ("per", 1, 2), ("nobody", 0, 1), ("O", 0, 1), ("loc", 0, len(words))] for words in X]
    for words, values, answers in zip(X, fitted.span_probabilities(X, asked), every, strict=True):
        for (label, begin, end), value in zip(asked[0][:2], values, strict=False):
            has = [p for other, p in answers if (label, begin, end) in chunk_spans(other)]
            assert value == pytest.approx(sum(has), abs=1e-9)
        assert values[2] == 0.0
        assert values[3] == pytest.approx(sum(p for other, p in answers if other[0] == "O"), abs=1e-9)
        assert values[4] == 0.0 or len(words) <= 2
    with pytest.raises(ValueError, match=r"spans: sequence 0 has \d+ positions, no segment \[1, 99\)"):
        fitted.span_probabilities(X[:1], [[("loc", 1, 99)]])
    with pytest.raises(ValueError, match="X has 1 sequences but spans has 2"):
        fitted.span_probabilities(X[:1], [[], []])


def test_hinge_losses_have_spans_without_probabilities():
    model = SegmentTagger("hinge", template="ner", tol=0.05).fit(*sentences(0, 30))
    assert model.predict_spans([["we", "saw", "new", "york"]]) == [[("loc", 2, 4, None)]]
    with pytest.raises(AttributeError, match="has no attribute"):
        _ = model.span_probabilities


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes"])
def test_schemes_go_in_and_out(fitted, scheme):
    """Labels in any scheme describe the same segments: training gives the same model, which answers in that scheme."""
    X, y = sentences(0)
    spans = [chunk_spans(labels) for labels in y]
    written = []
    for words, own in zip(X, spans, strict=True):
        labels = ["O"] * len(words)
        for k, (name, begin, end) in enumerate(own):
            after = k > 0 and own[k - 1][2] == begin and own[k - 1][0] == name
            first = {"iob1": "B" if after else "I", "iob2": "B", "iobes": "S" if end - begin == 1 else "B"}[scheme]
            labels[begin:end] = [f"I-{name}"] * (end - begin)
            labels[begin] = f"{first}-{name}"
            if scheme == "iobes" and end - begin > 1:
                labels[end - 1] = f"E-{name}"
        written.append(labels)
    model = SegmentTagger(template="ner", tol=1e-3, scheme=scheme).fit(X, written)
    np.testing.assert_array_equal(model.coef_, fitted.coef_)
    assert model.classes_.tolist() == fitted.classes_.tolist()
    fresh, _ = sentences(3)
    assert [chunk_spans(a) for a in model.predict(fresh)] == [chunk_spans(a) for a in fitted.predict(fresh)]
    prefixes = {label[0] for labels in model.predict(X) for label in labels}
    wanted = {"iob1": "IO", "iob2": "BIO", "iobes": "BOES"}[scheme]
    assert set(wanted) <= prefixes <= set("BIO" if scheme == "iob1" else wanted)
    assert model.score(X, y) == model.score(X, written)
    np.testing.assert_allclose(model.log_probability(X[:5], y[:5]), model.log_probability(X[:5], written[:5]))


def test_coded_input_is_the_same(fitted):
    X, y = sentences(0)
    coded = SegmentTagger(template="ner", tol=1e-3).fit(Sentences.from_lists(X), CodedSequences.from_lists(y))
    np.testing.assert_array_equal(coded.coef_, fitted.coef_)


def test_features_of_whole_segments():
    """A city name consists of two words that are not names by themselves: whole-segment features must recognise it."""
    X, y = sentences(0)
    model = SegmentTagger(template="ner", tol=1e-3, lists={"cities": CITIES, "people": ["Ann"]}).fit(X, y)
    names = {name for table, name, _ in model.state_features_ if table == "whole"}
    assert {"text=new york", "text=Ann Bob", "shape=x x", "shape=Xx Xx", "list=cities", "list=people"} <= names
    assert model.state_features_["whole", "list=cities", "loc"] > 0.2
    assert model.state_features_["whole", "text=new york", "loc"] > 0
    # The list recognises the name in upper case too, although its shape is new.
    likely = model.span_probabilities([["we", "saw", "PORT", "ROYAL"]], [[("loc", 2, 4)]])[0][0]
    plain = SegmentTagger(template="ner", tol=1e-3).fit(X, y)
    assert likely > plain.span_probabilities([["we", "saw", "PORT", "ROYAL"]], [[("loc", 2, 4)]])[0][0]
    bare = SegmentTagger(template="ner", tol=1e-3, segment_features=()).fit(X, y)
    assert not any(table == "whole" for table, _, _ in bare.state_features_)
    only = SegmentTagger(template="ner", tol=1e-3, segment_features=["shape"]).fit(X, y)
    assert {name.split("=")[0] for table, name, _ in only.state_features_ if table == "whole"} == {"shape"}


def test_features_that_no_segment_has_twice():
    X, y = sentences(0)
    model = SegmentTagger(template="ner", tol=1e-2, min_count=1000, features="all").fit(X, y)
    assert not any(table == "whole" for table, _, _ in model.state_features_)


def test_files_and_pickles(tmp_path):
    X, _ = sentences(4)
    model = SegmentTagger(template="ner", tol=1e-2, lists={"cities": CITIES}, borders="both").fit(*sentences(0))
    path = tmp_path / "model.pw"
    model.save(path)
    for other in (partwise.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert other.predict(X) == model.predict(X)
        assert other.predict_spans(X[:3]) == model.predict_spans(X[:3])
        assert other.state_features_ == model.state_features_
        assert other.set_params(scheme="iobes").predict([["new", "york"]]) == [["B-loc", "E-loc"]]
    before = model.state_features_
    pruning = model.prune(keep=0.2, X=X, y=sentences(4)[1])
    after = {name: weight for name, weight in model.state_features_.items() if weight}
    assert after == {name: before[name] for name in after}
    assert len(after) <= pruning.weights_after < 0.21 * pruning.weights_before
    model.save(path)
    assert partwise.load(path).predict(X) == model.predict(X)


def test_lists_in_files_are_not_read_when_a_model_is(tmp_path):
    """Loading a model does not read the files named by lists=: they can be missing, or forged, on another machine."""
    listed, path = tmp_path / "cities.txt", tmp_path / "model.pw"
    listed.write_text("\n".join(CITIES))
    model = SegmentTagger(template="ner", tol=1e-2, lists=str(listed)).fit(*sentences(0))
    model.save(path)
    listed.unlink()
    again = partwise.load(path)
    assert again.predict(sentences(4)[0]) == model.predict(sentences(4)[0])
    assert again.lists == {"cities": [city.lower() for city in CITIES]}
    listed.write_text("secret")
    for wrong in (str(listed), [str(listed)], {"tuple": [str(listed)]}):
        data = remade(path.read_bytes(), lambda m, s, a, wrong=wrong: s["parameters"].update(lists=wrong))
        (tmp_path / "forged.pw").write_bytes(data)
        with pytest.raises(ModelFormatError, match="has no phrases in its parameter lists"):
            partwise.load(tmp_path / "forged.pw")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, a: s["model"].update(types=["loc", "per"]), "other labels than its types"),
        (lambda s, a: s["model"].update(types=[None, "loc", "loc"]), "twice"),
        (lambda s, a: s["model"].update(types=7), "no list of its types"),
        (lambda s, a: s["model"].update(max_length=0), "max_length = 0"),
        (lambda s, a: s["model"].update(max_length=3), "expected shape"),
        (lambda s, a: s["model"]["features"].update(families=["smell"]), "unknown features"),
        (lambda s, a: s["model"]["features"].update(lists=[1]), "no list of its lists"),
        (lambda s, a: a["model.features.text.keys"].fill(1), "in order"),
        (lambda s, a: s["model"]["whole"].update(n_attributes=1), "offsets|attributes|weights"),
        (lambda s, a: a["model.transitions"].fill(2), "neither 0 nor 1"),
        (lambda s, a: a.pop("model.length_weights"), "lacks its array"),
    ],
)
def test_damaged_files(fitted, tmp_path, change, message):
    path = tmp_path / "model.pw"
    fitted.save(path)

    def damage(metadata, settings, arrays):
        change(settings, arrays)

    path.write_bytes(remade(path.read_bytes(), damage))
    with pytest.raises(partwise.ModelFormatError, match=message):
        partwise.load(path)


def test_explanations_add_up(fitted):
    X, _ = sentences(5, 6)
    for words in X:
        why = fitted.explain(words)
        assert sum(each.amount for each in why.contributions) == pytest.approx(why.difference, abs=1e-9)
        assert why.best == fitted.predict([words])[0]
    kinds = {each.kind for words in X for each in fitted.explain(words).contributions}
    assert {"attribute", "length", "transition", "segment"} <= kinds
    top = fitted.top_features(4)
    assert set(top.labels) == {"O", "loc", "per"}
    assert all(len(rows) == 4 for rows in top.labels.values())


def test_warm_starts(fitted):
    X, y = sentences(0)
    model = pickle.loads(pickle.dumps(fitted)).set_params(warm_start=True)
    model.fit(X, y)
    np.testing.assert_array_equal(model._model.carried(fitted._model), fitted.coef_)
    extra = [[*words, "zebra"] for words in X], [[*labels, "B-new"] for labels in y]
    model.fit(*extra)
    assert model.types_ == ["O", "loc", "new", "per"]
    old, new = fitted.transition_features_, model._model.carried(fitted._model)
    carried = model._model.with_weights(new).transition_weights()
    assert {pair: w for pair, w in carried.items() if "new" not in pair} == pytest.approx(
        {pair: w for pair, w in old.items() if pair in carried}
    )


def test_constraints(fitted):
    X = [["we", "saw", "new", "york", "old", "town"]]
    labels = fitted.classes_.tolist()
    every = fitted.predict_k_best(X, 10_000, probabilities=True)[0]

    def check(test, **given):
        ranked = fitted.predict_k_best(X, 10_000, probabilities=True, **given)[0]
        left = {tuple(a): p for a, p in every if test(a)}
        total = sum(left.values())
        assert {tuple(a): p for a, p in ranked} == pytest.approx({a: p / total for a, p in left.items()})

    check(lambda a: a[3] == "B-loc", allowed=[[None, None, None, ["B-loc"], None, None]])
    check(lambda a: a[3] == "I-loc", allowed=[[None, None, None, ["I-loc"], None, None]])
    check(lambda a: a[2] in ("B-per", "I-loc", "O"), allowed=[[None, None, ["B-per", "I-loc", "O"], None, None, None]])
    follow = np.ones((5, 5), dtype=bool)
    follow[[labels.index("B-loc"), labels.index("I-loc")], labels.index("B-loc")] = False
    check(
        lambda a: all(not (s[2:] == "loc" and t == "B-loc") for s, t in itertools.pairwise(a)),
        allowed_transitions=follow,
    )
    follow[:] = True
    follow[labels.index("B-loc"), labels.index("I-loc")] = False
    check(lambda a: "I-loc" not in a, allowed_transitions=follow)
    follow[labels.index("B-loc"), labels.index("O")] = False
    with pytest.raises(ValueError, match="B-loc and I-loc differ before O"):
        fitted.predict(X, allowed_transitions=follow)
    with pytest.raises(ConstraintError, match="sequence 0: no labelling is allowed"):
        fitted.predict(X, allowed=[[["I-loc"], None, None, None, None, None]])


def test_other_forms_of_input():
    X, y = sentences(0)
    names = [[[f"w={word}", f"low={word.lower()}"] for word in words] for words in X]
    one = SegmentTagger(tol=1e-2).fit(names, y)
    assert one.score(names, y) > 0.8
    assert one.attributes_ is not None
    vocabulary = {word: k for k, word in enumerate(sorted({w for words in X for w in words}))}
    arrays = [np.eye(len(vocabulary))[[vocabulary[w] for w in words]] for words in X]
    two = SegmentTagger(tol=1e-2, borders="none").fit(arrays, y)
    assert two.n_features_in_ == len(vocabulary)
    assert [len(a) for a in two.predict([arrays[0], np.empty((0, len(vocabulary)))])] == [len(X[0]), 0]
    assert two.predict_spans([np.empty((0, len(vocabulary)))]) == [[]]


def test_bad_input():
    X, y = sentences(0, 10)
    long = [["O", "O"], ["O", "B-a", "I-a", "I-a", "B-a"]]
    words = [["x", "y"], ["v", "w", "x", "y", "z"]]
    message = "sequence 1: the segment 'a' at positions 1 to 3 has 3 positions, max_length is 2"
    with pytest.raises(ValueError, match=message):
        SegmentTagger(template="ner", max_length=2).fit(words, long)
    with pytest.raises(ValueError, match="sequence 2: the segment 'a' at positions 1 to 3"):
        weight = [1.0, 0.0, 1.0]
        SegmentTagger(template="ner", max_length=2).fit([*words[:1], *words], [*long[:1], *long], sample_weight=weight)
    with pytest.raises(ValueError, match="label 'NN' is not O or one of B, I, E, S"):
        SegmentTagger(template="ner").fit([["a", "b"]], [["NN", "O"]])
    names = [[[word] for word in sentence] for sentence in X]
    with pytest.raises(ValueError, match="features of whole segments need words"):
        SegmentTagger(segment_features=["text"]).fit(names, y)
    for options, message in [
        ({"max_length": 0}, "max_length"),
        ({"borders": "left"}, "borders must be"),
        ({"scheme": "bilou"}, "scheme must be"),
        ({"segment_features": "texts"}, "segment_features must be"),
        ({"segment_features": ["size"]}, "segment_features must be"),
        ({"lists": {"cities": []}}, "lists: 'cities' has no phrases"),
        ({"template": Template("U0:%x[0,0]\nB0:%x[0,0]\n")}, "B lines with macros"),
    ]:
        with pytest.raises(ValueError, match=message):
            SegmentTagger(**{"template": "ner", **options}).fit(X, y)
    model = SegmentTagger(template="ner", tol=1e-2).fit(X, y)
    found = model.log_probability(
        [["new", "york", "a"]] * 3, [["B-loc", "I-loc", "I-loc"], ["B-x", "O", "O"], ["O"] * 3]
    )
    assert np.isneginf(found[:2]).all()
    assert np.isfinite(found[2])
    with pytest.raises(ValueError, match="sequence 0 has 3 positions but 2 labels"):
        model.log_probability([["new", "york", "a"]], [["O", "O"]])


def test_invalid_sizes_types_and_features():
    X, y = [[["a"], ["b"]], [["c"]]], [["B-X", "I-X"], ["O"]]
    for options, message in (
        ({"max_length": 10**9}, "max_length must be at most 1048576, got 1000000000"),
        ({"segment_features": 5}, "segment_features must be 'auto' or some of text, shape, got 5"),
        ({"segment_features": None}, "segment_features must be"),
    ):
        with pytest.raises(ValueError, match=message):
            SegmentTagger(template="ner", **options).fit(X, y)
    with pytest.raises(ValueError, match="label 'B-O': the type O is that of positions outside"):
        SegmentTagger(template="ner").fit(X, [["B-O", "O"], ["B-X"]])
    assert SegmentTagger(template="ner").fit(X, y).predict([[], []]) == [[], []]
    with pytest.raises(ValueError, match="allowed must hold one entry"):
        SegmentTagger(template="ner").fit(X, y).predict(X, allowed=3)
