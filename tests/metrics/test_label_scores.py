"""Token accuracy, confusion matrices, calibration and schemes, on cases small enough to count by hand."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as sklearn_matrix

from partwise.metrics import calibration, chunk_f1, chunk_scores, confusion_matrix, token_accuracy

GOLD = [["a", "b", "a"], [], ["c"]]
GUESS = [["a", "a", "b"], [], ["c"]]


def test_accuracy():
    assert token_accuracy(GOLD, GUESS) == 0.5
    assert token_accuracy([], []) == 0.0
    assert token_accuracy([np.array([1, 2])], [(1, 3)]) == 0.5


def test_confusion_matrix():
    found = confusion_matrix(GOLD, GUESS)
    assert found.labels == ("a", "b", "c")
    assert found.counts.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert found.accuracy == 0.5
    assert found.most_confused() == [("a", "b", 1), ("b", "a", 1)]
    assert found.most_confused(1) == [("a", "b", 1)]
    assert str(found).splitlines() == ["   a  b  c", "a  1  1  0", "b  1  0  0", "c  0  0  1"]
    ordered = confusion_matrix(GOLD, GUESS, labels=["c", "d", "b", "a"])
    assert ordered.counts.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]]
    assert confusion_matrix([], []).counts.shape == (0, 0)
    assert confusion_matrix([], []).accuracy == 0.0
    assert confusion_matrix([[1, "x"]], [["x", "x"]]).labels == (1, "x")


def test_confusion_matrix_is_scikit_learns():
    rng = np.random.default_rng(0)
    gold, guess = rng.integers(0, 5, (2, 30, 4))
    np.testing.assert_array_equal(confusion_matrix(gold, guess).counts, sklearn_matrix(gold.ravel(), guess.ravel()))


@pytest.mark.parametrize("score", [token_accuracy, confusion_matrix])
@pytest.mark.parametrize(
    ("gold", "guess", "message"),
    [
        ([["a"]], [], "y_true has 1 sentences, y_pred has 0"),
        ([["a"], ["b"]], [["a"], ["b", "c"]], "sentence 1: y_true has 1 labels, y_pred has 2"),
        (["ab"], [["a", "b"]], "sentence 0: expected a sequence"),
    ],
)
def test_shapes(score, gold, guess, message):
    with pytest.raises(ValueError, match=message):
        score(gold, guess)


def test_labels_must_occur_once():
    with pytest.raises(ValueError, match="'c' is not in labels"):
        confusion_matrix(GOLD, GUESS, labels=["a", "b"])
    with pytest.raises(ValueError, match="twice"):
        confusion_matrix(GOLD, GUESS, labels=["a", "b", "a", "c"])


# Expected counts by conlleval's rules: (gold, predicted, n_gold, n_predicted, n_right).
@pytest.mark.parametrize("scheme", [None, "iob1", "iob2", "iobes"])
@pytest.mark.parametrize(
    ("gold", "guess", "counts"),
    [
        ("B-NP I-NP O B-VP", "B-NP I-NP O B-VP", (2, 2, 2)),
        ("B-NP I-NP O", "I-NP I-NP O", (1, 1, 1)),  # an I at the beginning, or after O, begins a chunk
        ("B-NP I-NP I-VP", "B-NP I-NP B-VP", (2, 2, 2)),  # an I of another type begins a chunk too
        ("B-NP I-NP", "B-NP B-NP", (1, 2, 0)),  # B always begins a chunk
        ("I-NP B-NP", "I-NP I-NP", (2, 1, 0)),
        ("B-NP I-NP", "B-VP I-VP", (1, 1, 0)),  # wrong type
        ("B-NP I-NP I-NP", "B-NP I-NP O", (1, 1, 0)),  # wrong end
        ("O B-NP", "B-NP I-NP", (1, 1, 0)),  # wrong beginning
        ("B-NP I-VP I-NP", "B-NP I-NP I-NP", (3, 1, 0)),
        ("O O", "O O", (0, 0, 0)),
    ],
)
def test_iob_by_conlleval(gold, guess, counts, scheme):
    scores = chunk_scores([gold.split()], [guess.split()], scheme=scheme)
    assert (scores.n_gold, scores.n_predicted, scores.n_right) == counts
    n = counts[0] + counts[1]
    assert chunk_f1([gold.split()], [guess.split()], scheme=scheme) == (2 * counts[2] / n if n else 0)


@pytest.mark.parametrize(
    ("gold", "guess", "counts"),
    [
        ("S-NP B-VP E-VP", "S-NP B-VP E-VP", (2, 2, 2)),
        ("B-NP E-NP B-NP E-NP", "B-NP I-NP I-NP E-NP", (2, 1, 0)),
        ("S-NP S-NP", "B-NP E-NP", (2, 1, 0)),
        ("B-NP I-NP E-NP", "I-NP I-NP I-NP", (1, 1, 1)),
        ("S-NP O", "B-NP O", (1, 1, 1)),
    ],
)
def test_iobes(gold, guess, counts):
    scores = chunk_scores([gold.split()], [guess.split()], scheme="iobes")
    assert (scores.n_gold, scores.n_predicted, scores.n_right) == counts


@pytest.mark.parametrize("scheme", ["iob1", "iob2"])
@pytest.mark.parametrize("label", ["E-NP", "S-NP", "X", "", "BI-NP"])
def test_labels_of_other_schemes(scheme, label):
    for sides in (([[label]], [["O"]]), ([["O"]], [[label]])):
        with pytest.raises(ValueError, match="not in the scheme"):
            chunk_scores(*sides, scheme=scheme)
    with pytest.raises(ValueError, match="scheme must be"):
        chunk_scores([["O"]], [["O"]], scheme="bio")


def test_table():
    gold = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-PP"]]
    guess = [["B-NP", "I-NP", "O", "B-NP"], ["I-NP", "O"]]
    rows = {row.pop("label"): row for row in chunk_scores(gold, guess).table()}
    assert list(rows) == ["NP", "PP", "VP", "all"]
    assert rows["NP"] == {
        "precision": 2 / 3, "recall": 1.0, "f1": 0.8, "true": 2, "predicted": 3, "correct": 2,
    }  # fmt: skip
    assert rows["all"]["f1"] == pytest.approx(4 / 7)
    assert rows["VP"]["recall"] == 0


# Calibration


def test_calibration_by_hand():
    gold = [["a", "b"], ["a", "a"]]
    marginals = [
        [{"a": 0.9, "b": 0.1}, {"a": 0.8, "b": 0.2}],
        [{"a": 0.6, "b": 0.4}, {"a": 0.9, "b": 0.1}],
    ]
    found = calibration(gold, marginals, n_bins=5)
    assert found.edges == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    # bins include their upper edges: 0.6 is right, 0.8 is wrong, and both predictions at 0.9 are right
    assert found.count.tolist() == [0, 0, 1, 1, 2]
    assert found.confidence[2:] == pytest.approx([0.6, 0.8, 0.9])
    assert found.accuracy[2:] == pytest.approx([1, 0, 1])
    assert np.isnan(found.accuracy[:2]).all()
    assert found.ece == pytest.approx((0.4 + 0.8 + 2 * 0.1) / 4)
    assert found.brier == pytest.approx((0.02 + 1.28 + 0.32 + 0.02) / 4)
    assert str(found).splitlines()[-1] == f"expected calibration error {found.ece:.4f}; Brier score {found.brier:.4f}"
    assert len(str(found).splitlines()) == 5

    arrays = [np.array([[token[label] for label in "ba"] for token in sentence]) for sentence in marginals]
    same = calibration([*gold, []], [*arrays, np.empty((0, 2))], labels=["b", "a"], n_bins=5)
    assert (same.ece, same.brier) == pytest.approx((found.ece, found.brier))


def test_extremes():
    sure = calibration([["a", "a"]], [np.array([[1.0, 0.0], [1.0, 0.0]])], labels=["a", "b"])
    assert (sure.ece, sure.brier) == (0, 0)
    wrong = calibration([["b", "new"]], [np.array([[1.0, 0.0], [1.0, 0.0]])], labels=["a", "b"])
    assert (wrong.ece, wrong.brier) == (1, 2)


def test_probabilities_that_are_right_are_calibrated():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=40000)
    y = (rng.random((len(p), 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    honest, boastful = (calibration([y], [q], labels=range(3)) for q in (p, p**3 / (p**3).sum(axis=1, keepdims=True)))
    assert honest.ece < 0.01
    assert boastful.ece > 0.1
    assert honest.brier < boastful.brier
    assert honest.brier == pytest.approx(np.mean(np.sum((p - np.eye(3)[y]) ** 2, axis=1)))


@pytest.mark.parametrize(
    ("gold", "marginals", "options", "message"),
    [
        ([["a"]], [], {}, "1 sentences, marginals has 0"),
        ([["a"]], [[{"a": 1.0}, {"a": 1.0}]], {}, "sentence 0: y_true has 1"),
        ([["a"]], [np.ones((1, 1))], {}, "labels are needed"),
        ([["a"]], [[{"a": 1.5}]], {}, "between 0 and 1"),
        ([["a"]], [[{"a": float("nan")}]], {}, "between 0 and 1"),
        ([["a"]], [[{"a": 1.0}]], {"n_bins": 0}, "n_bins"),
        ([], [], {}, "no token"),
        ([[]], [[]], {}, "no token"),
    ],
)
def test_refused(gold, marginals, options, message):
    with pytest.raises(ValueError, match=message):
        calibration(gold, marginals, **options)
