"""`legal`: the answers are exactly those of the unrestricted model that follow the chunk scheme."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import partwise
from helpers.model_cases import remade
from partwise import SequenceTagger
from partwise.callbacks import TrainingCallback
from partwise.model_files import ModelFormatError
from partwise.models import ConstraintError
from partwise.models.sequences.constraints import rule_of, scheme_of

LABELS = ["B-x", "B-y", "I-x", "I-y", "O"]
IOBES = ["B-x", "E-x", "I-x", "O", "S-x"]


def is_legal(labels, scheme="iob2"):
    before = "O"
    for label in labels:
        head, kind, opened = label[0], label[2:], before[0] in "BI"
        if scheme == "iob2" and head == "I" and not (opened and before[2:] == kind):
            return False
        if scheme == "iobes" and (head in "IE") != opened:
            return False
        before = label
    return scheme == "iob2" or before[0] not in "BI"


def data(labels=LABELS, scheme="iob2", n=60, seed=0, smallest=1):
    """Make sequences of chunks whose attributes are noise: only neighbouring labels are informative."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    while len(y) < n:
        found = [str(label) for label in rng.choice(labels, size=rng.integers(smallest, 4))]
        if scheme is None or is_legal(found, scheme):
            y.append(found)
            X.append([[f"a{labels.index(label)}", f"r{rng.integers(3)}"] for label in found])
    noise = rng.random(size=n)
    return [[row[1:] if noise[i] < 0.5 else row for row in x] for i, x in enumerate(X)], y


MODELS = {
    "chain": {},
    "ends": {"ends": True},
    "conditioned": {"transition_features": "all"},
    "kernel": {"kernel": "linear"},
    "maxent": {"model": "maxent", "beam_width": None},
    "maxent, one tag": {"model": "maxent", "history": 1, "beam_width": None},
}


@pytest.fixture(params=MODELS)
def tagger(request):
    return SequenceTagger(tol=1e-2, **MODELS[request.param]).fit(*data())


NEW = data(scheme=None, n=6, seed=1)[0]


def enumerated(tagger, X, scheme="iob2"):
    """Enumerate the unrestricted answers, drop illegal ones, and renormalise the probabilities."""
    free = copied(tagger, legal=False)
    found = []
    for answers in free.predict_k_best(X, 5**4, probabilities=True):
        left = [(tuple(a), p) for a, p in answers if is_legal(a, scheme)]
        total = sum(p for _, p in left)
        found.append({a: p / total for a, p in left})
    return found


def copied(tagger, **parameters):
    return copy.deepcopy(tagger).set_params(**parameters)


def test_every_answer_is_that_of_legal_labels(tagger):
    assert tagger.scheme_ == "iob2"
    expected = enumerated(tagger, NEW)
    ranked = tagger.predict_k_best(NEW, 5**4, probabilities=True)
    entropies = tagger.entropy(NEW)
    rows = tagger.predict_marginals(NEW, output="array")
    drawn = tagger.sample(NEW, 300, random_state=0)
    labels = tagger.classes_.tolist()
    for i, every in enumerate(expected):
        assert {tuple(a): p for a, p in ranked[i]} == pytest.approx(every, abs=1e-9)
        p = np.array(list(every.values()))
        assert entropies[i] == pytest.approx(-(p @ np.log(p)), abs=1e-8)
        table = np.zeros_like(rows[i])
        for answer, q in every.items():
            table[np.arange(len(answer)), [labels.index(label) for label in answer]] += q
        np.testing.assert_allclose(rows[i], table, atol=1e-9)
        assert all(tuple(answer) in every for answer in drawn[i])
        best = tagger.predict(NEW)[i]
        assert every[tuple(best)] == pytest.approx(max(every.values()))
        some = list(every)
        found = tagger.log_probability([NEW[i]] * len(some), [list(a) for a in some])
        np.testing.assert_allclose(found, np.log(p), atol=1e-8)


def test_illegal_answers_have_no_probability(tagger):
    illegal = [["I-x"] * len(x) for x in NEW]
    assert (tagger.log_probability(NEW, illegal) == -np.inf).all()
    assert np.isfinite(copied(tagger, legal=False).log_probability(NEW, illegal)).all()


def test_together_with_constraints(tagger):
    X = [NEW[i] for i in range(len(NEW)) if len(NEW[i]) > 1]
    allowed = [[None, ["I-x", "I-y"], *[None] * (len(x) - 2)] for x in X]
    pairs = np.ones((5, 5), dtype=bool)
    pairs[LABELS.index("B-y")] = False
    for options, fits in (
        ({"allowed": allowed}, lambda a: a[1][0] == "I"),
        ({"allowed": allowed, "allowed_transitions": pairs}, lambda a: a[1] == "I-x" and "B-y" not in a[:-1]),
    ):
        ranked = tagger.predict_k_best(X, 5**4, probabilities=True, **options)
        for every, answers, best in zip(enumerated(tagger, X), ranked, tagger.predict(X, **options), strict=True):
            left = {a: p for a, p in every.items() if fits(a)}
            total = sum(left.values())
            assert {tuple(a): p for a, p in answers} == pytest.approx({a: p / total for a, p in left.items()})
            assert best == answers[0][0]
        some = [answers[-1] for answers in ranked]
        found = tagger.log_probability(X, [a for a, _ in some], **options)
        np.testing.assert_allclose(found, np.log([p for _, p in some]), atol=1e-8)
        assert (tagger.log_probability(X, [["O"] * len(x) for x in X], **options) == -np.inf).all()


def test_contradictions_name_the_sentence(tagger):
    X = [NEW[0], NEW[0][:1] * 2]
    with pytest.raises(ConstraintError, match=r"sequence 1: no labelling is allowed .* unless legal=False") as error:
        tagger.predict(X, allowed=[None, [["O"], ["I-x"]]])
    assert error.value.sequence == 1
    free = copied(tagger, legal=False)
    assert free.predict(X, allowed=[None, [["O"], ["I-x"]]])[1] == ["O", "I-x"]
    with pytest.raises(ConstraintError, match="sequence 0"):
        tagger.predict(X[1:], allowed=[[["I-x"], None]])


def test_iobes():
    tagger = SequenceTagger(tol=1e-2).fit(*data(IOBES, "iobes"))
    assert tagger.scheme_ == "iobes"
    X = data(IOBES, None, n=5, seed=2)[0]
    ranked = tagger.predict_k_best(X, 5**4, probabilities=True)
    for answers, every in zip(ranked, enumerated(tagger, X, "iobes"), strict=True):
        assert {tuple(a): p for a, p in answers} == pytest.approx(every, abs=1e-9)


def test_training_is_the_same():
    X, y = data()
    on, off = SequenceTagger(tol=1e-6).fit(X, y), SequenceTagger(tol=1e-6, legal=False).fit(X, y)
    np.testing.assert_array_equal(on.coef_, off.coef_)
    assert on.result_.primal == off.result_.primal


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (LABELS, "iob2"),
        (IOBES, "iobes"),
        (["B", "I", "O"], "iob2"),
        (["B-x", "I-x"], "iob2"),
        (["B-x", "O"], None),  # the scheme forbids nothing here
        (["I-x", "O"], None),  # IOB1 in which no chunks touch
        (["B-x", "I-x", "E-x"], None),  # no sentence has a single token, so no S label occurs
        (["B-x", "I-x", "NN"], None),
        (["B-x", "I-x", "O-x"], None),
        (["B-", "I-", "O"], None),
        ([1, 2, 3], None),
        ([("B", "x"), ("I", "x")], None),
    ],
)
def test_schemes_by_labels(labels, scheme):
    assert scheme_of(tuple(labels)) == scheme


def test_auto_is_off_where_the_data_break_the_rule():
    X, y = data()
    y[3] = ["I-x", *y[3][1:]]
    with pytest.warns(UserWarning, match="y: sequence 3, position 0: the label 'I-x' is not allowed there in iob2"):
        tagger = SequenceTagger(tol=1e-2).fit(X, y)
    assert tagger.scheme_ is None
    assert any(not is_legal(a) for samples in tagger.sample(NEW, 50, random_state=0) for a in samples)
    tagger.legal = True
    assert tagger.scheme_ == "iob2"
    assert all(is_legal(a) for samples in tagger.sample(NEW, 50, random_state=0) for a in samples)


def test_labels_outside_every_scheme():
    X, y = data()
    y = [[label.lower() for label in labels] for labels in y]
    assert SequenceTagger(tol=1e-2).fit(X, y).scheme_ is None
    with pytest.raises(ValueError, match="legal=True: the labels are not O, B-x, I-x"):
        SequenceTagger(legal=True).fit(X, y)
    for wrong in ("yes", None, 1, 0.0):
        with pytest.raises(ValueError, match="legal must be 'auto', True or False"):
            SequenceTagger(legal=wrong).fit(X, y)


def test_files_keep_legal_and_older_files_turn_it_off(tagger, tmp_path):
    path = tmp_path / "model.pw"
    tagger.save(path)
    loaded = partwise.load(path)
    assert loaded.scheme_ == "iob2"
    assert loaded.predict_k_best(NEW, 9) == tagger.predict_k_best(NEW, 9)

    def older(metadata, settings, arrays):
        del settings["label_scheme"], settings["parameters"]["legal"]

    path.write_bytes(remade(path.read_bytes(), older))
    old = partwise.load(path)
    assert old.scheme_ is None
    assert old.predict_k_best(NEW, 9) == copied(tagger, legal=False).predict_k_best(NEW, 9)
    off = tmp_path / "off.pw"
    copied(tagger, legal=False).save(off)
    assert partwise.load(off).scheme_ is None


@pytest.mark.parametrize("scheme", ["iobes", "iob1", "", 7])
def test_files_that_say_another_scheme(scheme, tmp_path):
    path = tmp_path / "model.pw"
    SequenceTagger(tol=1e-2).fit(*data()).save(path)

    def change(metadata, settings, arrays):
        settings["label_scheme"] = scheme

    path.write_bytes(remade(path.read_bytes(), change))
    with pytest.raises(ModelFormatError):
        partwise.load(path)


def test_rules_say_which_sequences_keep_to_them():
    rule = rule_of("iob2", tuple(LABELS))
    codes = [LABELS.index(label) for label in ["O", "I-x", "B-x", "I-x", "I-x", "B-y"]]
    assert rule.allows(np.array(codes), np.array([2, 2, 1, 1])).tolist() == [False, True, False, True]
    assert rule.allows(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)).tolist() == []


def test_empty_sequences():
    tagger = SequenceTagger(tol=1e-2).fit(*data())
    assert tagger.predict([[], NEW[0], []])[::2] == [[], []]
    assert tagger.log_probability([[], NEW[0]], [[], ["I-x"] * len(NEW[0])]).tolist() == [0.0, -np.inf]


class Answers(TrainingCallback):
    """Callback that keeps the model's answers for its training data, computed without reading the data again."""

    def end(self, session, result):
        self.found = session.answers(result.weights, np.arange(60))
        return result


def test_answers_for_training_data():
    X, y = data(seed=4)
    X = [[[f"b{label == 'O'}"] for label in labels] for labels in y]  # the attributes do not tell where a chunk begins
    answers = Answers()
    tagger = SequenceTagger(loss="hinge", C=0.01, tol=1e-3, callbacks=answers).fit(X, y)
    assert answers.found == tagger.predict(X)
    assert all(map(is_legal, answers.found))
    assert not all(map(is_legal, copied(tagger, legal=False).predict(X)))
