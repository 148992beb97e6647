"""User-defined costs: for every model, the minimised objective is that of docs/math.md, computed by enumeration."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import partwise
from partwise import (
    ConstituencyParser,
    DependencyParser,
    GraphLabeler,
    MaxentClassifier,
    SegmentTagger,
    SequenceTagger,
)

LABELS = ["X", "Y", "Z"]
# not symmetric; predicting label 0 for gold label 2 costs nothing
TABLE = np.array([[0.0, 3.0, 0.5], [1.0, 0.0, 2.0], [0.0, 0.25, 0.0]])
RNG = np.random.default_rng(4)
WORDS = [[[f"w{RNG.integers(4)}", "one"] for _ in range(n)] for n in (3, 2, 3, 1, 2)]
TAGS = [[LABELS[RNG.integers(3)] for _ in row] for row in WORDS]
CHUNKS = [["B-X", "I-X", "O"], ["B-Z", "B-X"], ["O", "B-Z", "I-Z"], ["B-X"], ["O", "O"]]
TREES = [[2, 0, 2], [0, 1], [0, 1, 1], [0], [2, 0]]
GRAPHS = [(row, [(k, k + 1) for k in range(len(row) - 1)]) for row in WORDS]


def each_labelling(indptr, slots, counts):
    return [(slots[a:b], counts[a:b]) for a, b in itertools.pairwise(indptr.tolist())]


def of_labels(gold, label):
    return TABLE[LABELS.index(gold), LABELS.index(label)]


def of_heads(gold, head):
    return abs(gold - head) / 2.0


def hamming(answer, gold, cost):
    return sum(cost(a, b) for a, b in zip(gold, answer, strict=True))


CASES = {
    "classifier": (MaxentClassifier, {}, np.eye(8)[RNG.integers(8, size=12)], [*LABELS, *LABELS, *LABELS, *LABELS]),
    "tagger": (SequenceTagger, {"transitions": "all"}, WORDS, TAGS),
    "tagger with ends, on observations": (SequenceTagger, {"ends": True, "transition_features": "all"}, WORDS, TAGS),
    "second order": (SequenceTagger, {"order": 2}, WORDS, TAGS),
    "kernel": (SequenceTagger, {"kernel": "linear"}, WORDS, TAGS),
    "graphs": (GraphLabeler, {}, GRAPHS, TAGS),
}


def objective_by_enumeration(estimator, X, y, cost_of):
    """Return the hinge objective: sum over examples of max over y of (score + cost), minus the gold score."""
    prepared = estimator._prepare_fit(X, y, None)
    weights = np.random.default_rng(0).normal(size=prepared.problem.n_weights)
    model = prepared.model.with_weights(weights)
    reading = prepared.reading or model.read(X)
    batch, total = reading.batch, 0.0
    structure = batch.structure
    labels = model.classes.tolist()
    for i, gold in enumerate(y):
        gold = [gold] if isinstance(gold, str) else gold
        scores = batch.features.scores(i, weights)
        best = -np.inf
        for answer in itertools.product(labels, repeat=len(gold)):
            slots, counts = _labelling(structure, model, reading, y, i, answer)
            value = float(counts @ scores[slots])
            best = max(best, value + hamming(answer, gold, cost_of))
            if list(answer) == list(gold):
                right = value
        total += best - right
    return prepared.problem.sums.value(weights), total


def _labelling(structure, model, reading, y, i, answer):
    other = [list(row) if not isinstance(row, str) else row for row in y]
    other[i] = answer[0] if isinstance(y[i], str) else list(answer)
    labellings, _ = model.encode(reading, other)
    return each_labelling(*labellings)[i]


@pytest.mark.parametrize("name", [name for name in CASES if name != "kernel"])
def test_losses_are_those_of_an_enumeration(name):
    cls, options, X, y = CASES[name]
    estimator = cls("hinge", cost=TABLE, **options)
    ours, theirs = objective_by_enumeration(estimator, X, y, of_labels)
    assert ours == pytest.approx(theirs, rel=1e-12)
    plain, theirs = objective_by_enumeration(clone(estimator).set_params(cost=None), X, y, lambda a, b: a != b)
    assert plain == pytest.approx(theirs, rel=1e-12)
    assert abs(plain - ours) > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_forms_of_costs_are_the_same(name):
    cls, options, X, y = CASES[name]
    pairs = {(a, b): of_labels(a, b) for a in LABELS for b in LABELS}
    nested = {a: {b: of_labels(a, b) for b in LABELS if b != a} for a in LABELS}
    found = [
        cls("hinge", cost=cost, tol=1e-3, **options).fit(X, y).result_
        for cost in (TABLE, TABLE.tolist(), pairs, nested, of_labels)
    ]
    assert all(result.converged for result in found)
    assert len({result.primal for result in found}) == 1
    assert cls("hinge", tol=1e-3, **options).fit(X, y).result_.primal != found[0].primal


def test_pairs_that_are_not_named_cost_one():
    model = MaxentClassifier("hinge", cost={("X", "Y"): 3.0})
    X, y = CASES["classifier"][2:]
    model.fit(X, y)
    expected = 1.0 - np.eye(3)
    expected[0, 1] = 3.0
    np.testing.assert_array_equal(model._model.cost_table.values, expected)


def test_segments_have_costs_of_positions_and_of_borders():
    def of_types(gold, label):
        return TABLE["OXZ".index(gold), "OXZ".index(label)]

    for borders in (True, False):
        tagger = SegmentTagger("hinge", cost=of_types, segment_cost=borders, max_length=3)
        prepared = tagger._prepare_fit(WORDS, CHUNKS, None)
        structure, gold = prepared.reading.batch.structure, prepared.problem.gold
        plain = np.concatenate([structure.cost(i, *each) for i, each in enumerate(each_labelling(*gold))])
        found, width = prepared.problem.sums.slot_costs(), structure.width
        offsets = structure.slot_offsets()
        for i, labels in enumerate(CHUNKS):
            own, other = found[offsets[i] : offsets[i + 1]], plain[offsets[i] : offsets[i + 1]]
            rows = own[: len(labels) * width].reshape(-1, width)[:, :3]
            types = [label[-1] for label in labels]
            np.testing.assert_array_equal(rows, [[of_types(a, b) for b in "OXZ"] for a in types])
            np.testing.assert_array_equal(own[len(labels) * width :], other[len(labels) * width :])
            assert borders == bool(other[len(labels) * width :].any())
    assert tagger.set_params(tol=1e-2).fit(WORDS, CHUNKS).result_.converged


@pytest.mark.parametrize("structure", ["projective", "spanning"])
def test_heads_have_costs_by_a_function(structure):
    words = [[f"w{k}" for k in range(len(tree))] for tree in TREES]
    parser = DependencyParser("hinge", structure=structure, cost=of_heads, tol=1e-2)
    prepared = parser._prepare_fit(words, TREES, None)
    found, offsets = prepared.problem.sums.slot_costs(), prepared.problem.slot_offsets
    for i, tree in enumerate(TREES):
        n = len(tree)
        expected = [[0.0 if h == m + 1 else of_heads(tree[m], h) for h in range(n + 1)] for m in range(n)]
        np.testing.assert_array_equal(found[offsets[i] : offsets[i + 1]].reshape(n, n + 1), expected)
    assert parser.fit(words, TREES).result_.converged
    with pytest.raises(ValueError, match="cost of a parser must be a function"):
        DependencyParser("hinge", cost=TABLE).fit(words, TREES)


WRONG = [
    (-TABLE, "cost of label number 1 where number 0 is right is -3: costs must be finite and not negative"),
    (TABLE + np.eye(3), "cost of label number 0 where number 0 is right is 1: the right answer must cost nothing"),
    (np.where(TABLE > 2, np.nan, TABLE), "is nan: costs must be finite"),
    (np.where(TABLE > 2, np.inf, TABLE), "is inf: costs must be finite"),
    (TABLE[:2], r"cost has shape \(2, 3\)"),
    (np.zeros(3), r"cost has shape \(3,\)"),
    ("hamming", "cost must be an array, a mapping or a function"),
    (3, r"cost has shape \(\)"),
    ({("X", "Y"): -1.0}, "cost of label 'Y' where 'X' is right is -1"),
    ({("X", "X"): 1.0}, "cost of label 'X' where 'X' is right is 1: the right answer"),
    ({("X", "Y"): "much"}, "must be a number, got 'much'"),
    ({"X": 1.0}, "keys are pairs"),
    ({"X": {"Y": float("nan")}}, "is nan"),
]


@pytest.mark.parametrize("cls", [MaxentClassifier, SequenceTagger, SegmentTagger, GraphLabeler])
@pytest.mark.parametrize(("cost", "message"), WRONG)
def test_refused_before_any_work(cls, cost, message):
    with pytest.raises(ValueError, match=message):
        cls("hinge", cost=cost)._make_model()


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (np.zeros((2, 2)), "cost is of 2 labels, there are 3"),
        ({("X", "W"): 1.0}, "cost: label 'W' was not in the training data"),
        ({"W": {"X": 1.0}}, "cost: label 'W' was not in the training data"),
        (lambda gold, label: -1.0, "is -1: costs must be finite and not negative"),
        (lambda gold, label: 1.0, "the right answer must cost nothing"),
        (lambda gold, label: None, "must be a number, got None"),
    ],
)
@pytest.mark.parametrize("name", ["classifier", "tagger", "graphs"])
def test_refused_once_the_labels_are_known(name, cost, message):
    cls, options, X, y = CASES[name]
    with pytest.raises(ValueError, match=message):
        cls("hinge", cost=cost, **options).fit(X, y)


def test_a_loss_without_costs_refuses_them():
    for cls in (MaxentClassifier, SequenceTagger, SegmentTagger, GraphLabeler):
        with pytest.raises(ValueError, match="cost is not used by loss='log', whose cost_scale is 0"):
            cls(cost=TABLE).fit(object(), object()) if cls is not MaxentClassifier else cls(cost=TABLE).fit(
                np.eye(3), LABELS
            )
    with pytest.raises(ValueError, match="cost must be one of 'constituents', 'rules'"):
        ConstituencyParser("hinge", cost=TABLE).fit([("S", ("A", "a"), ("B", "b"))])


@pytest.mark.parametrize("cost", [TABLE, of_labels, {("X", "Y"): 3.0}])
def test_files_pickles_and_clones_keep_costs(cost, tmp_path):
    cls, options, X, y = CASES["tagger"]
    tagger = cls("hinge", cost=cost, **options).fit(X, y)
    assert clone(tagger).cost is cost or isinstance(cost, (np.ndarray, dict))
    tagger.save(tmp_path / "m.pw")
    loaded = partwise.load(tmp_path / "m.pw")
    assert loaded.predict(X) == tagger.predict(X) == pickle.loads(pickle.dumps(tagger)).predict(X)
    again = clone(loaded).fit(X, y)
    assert again.result_.primal == tagger.result_.primal
    loaded.save(tmp_path / "again.pw")
    assert partwise.load(tmp_path / "again.pw").cost == loaded.cost


def test_a_parsers_function_is_not_in_its_file(tmp_path):
    words = [[f"w{k}" for k in range(len(tree))] for tree in TREES]
    parser = DependencyParser("hinge", cost=of_heads, tol=1e-2).fit(words, TREES)
    parser.save(tmp_path / "m.pw")
    loaded = partwise.load(tmp_path / "m.pw")
    assert loaded.cost is None
    assert loaded.predict(words) == parser.predict(words)
