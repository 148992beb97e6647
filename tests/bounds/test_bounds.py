"""Bounds on the loss of new examples: enumeration, the paper's inequalities, and data from known distributions."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from helpers.small_problems import KINDS
from oracles.problems import Case, make_case
from partwise import (
    ConstituencyParser,
    DependencyParser,
    GraphLabeler,
    MaxentClassifier,
    SegmentTagger,
    SequenceTagger,
    load,
)
from partwise.bounds import (
    GibbsClassifier,
    Margins,
    NotCovered,
    held_out_bound,
    held_out_losses,
    kl,
    kl_inverse,
    margin_bound,
)
from partwise.problem import Batch, LabelledBatch, Problem

GAMMAS = (0.01, 0.05, 0.15, 0.4, 1.0)


def labelled(case: Case) -> LabelledBatch:
    return LabelledBatch(Batch(case.structure, case.features), case.gold)


def weights_of(case: Case, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=case.features.num_weights)


def largest_by_enumeration(case: Case, weights: Any, gamma: float, older: bool = False) -> tuple[list[float], Any]:
    """Return by enumeration the largest relative cost in the set C or C' of labellings, and whether C is within C'."""
    unit = weights / np.linalg.norm(weights)
    found = []
    for i, example in enumerate(case.examples):
        matrix = case.matrices[i]
        norms = np.linalg.norm(matrix, axis=1)
        gold = case.gold_counts[i]
        indptr, slots, counts = case.gold
        own = slice(indptr[i], indptr[i + 1])
        cost = example.counts @ case.structure.cost(i, slots[own], counts[own])
        scores = example.counts @ (matrix @ unit)
        apart = np.abs(example.counts - gold) @ norms
        factor = max((a / c for a, c in zip(apart, cost, strict=True) if c > 0), default=0.0)
        largest = 0.0
        for y in range(len(example)):
            if older:
                inside = all(
                    scores[y] >= scores[z] - gamma * factor * (cost[y] + cost[z]) - 1e-9 for z in range(len(example))
                )
            else:
                inside = all(
                    scores[y] >= scores[z] - gamma * (np.abs(example.counts[y] - example.counts[z]) @ norms) - 1e-9
                    for z in range(len(example))
                )
            if inside and cost.max() > 0:
                largest = max(largest, cost[y] / cost.max())
        found.append(largest)
    return found


def test_kl_and_its_inverse() -> None:
    assert kl(0.3, 0.3) == 0
    assert kl(0.25, 0.5) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))
    assert kl(0.0, 1.0) == math.inf
    for q in (0.0, 1e-6, 0.1, 0.5, 0.97):
        for epsilon in (1e-9, 1e-3, 0.1, 2.0):
            p = kl_inverse(q, epsilon)
            assert p > q
            assert p == 1.0 or kl(q, p) == pytest.approx(epsilon, rel=1e-3, abs=1e-12)
            assert kl(q, max(p - 2e-12, q)) <= epsilon * (1 + 1e-6)
            assert p <= q + math.sqrt(2 * q * epsilon) + 2 * epsilon + 1e-12  # Bartlett et al. 2004, equation (6)
    assert kl_inverse(0.2, 0.0) == pytest.approx(0.2, abs=1e-11)
    assert kl_inverse(0.0, math.log(2)) == pytest.approx(0.5, abs=1e-11)  # -ln(1 - p) = ln 2
    for bad in (lambda: kl(1.1, 0.5), lambda: kl(0.5, -0.1), lambda: kl_inverse(2, 1), lambda: kl_inverse(0.1, -1)):
        with pytest.raises(ValueError):
            bad()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("python", "maxent")])
def test_listed_labellings_are_exact_and_the_relaxation_is_no_lower(kind: str) -> None:
    looser = 0
    for seed in range(3):
        case = make_case(kind, seed)
        weights = weights_of(case, seed)
        exact = Margins(labelled(case), weights, max_listed=10_000)
        relaxed = Margins(labelled(case), weights, max_listed=0)
        assert exact.listed.n_examples == case.n
        assert relaxed.listed.n_examples == 0
        for gamma in GAMMAS:
            expected = largest_by_enumeration(case, weights, gamma)
            np.testing.assert_allclose(exact.largest_losses(gamma), expected, atol=1e-9)
            bound = relaxed.largest_losses(gamma)
            assert (bound >= np.array(expected) - 1e-9).all()
            assert (bound <= 1.0).all()
            looser += int((bound > np.array(expected) + 1e-9).sum())
            assert (bound >= relaxed.losses_of_best() - 1e-9).all()
    assert looser < 3 * len(GAMMAS) * case.n  # the relaxation is not 1 everywhere


@pytest.mark.parametrize("kind", ["multiclass", "chain-untied", "projective"])
def test_older_set_contains_the_new_one(kind: str) -> None:
    case = make_case(kind, 1)
    weights = weights_of(case)
    for most in (10_000, 0):
        margins = Margins(labelled(case), weights, max_listed=most)
        for gamma in GAMMAS[:4]:
            older = margins.largest_losses_of_older_set(gamma)
            assert (older >= np.array(largest_by_enumeration(case, weights, gamma, older=True)) - 1e-9).all()
            if most:
                np.testing.assert_allclose(older, largest_by_enumeration(case, weights, gamma, older=True), atol=1e-6)
                assert (older >= margins.largest_losses(gamma) - 1e-9).all()


def test_zero_one_loss() -> None:
    case = make_case("chain-tied", 2)
    weights = weights_of(case)
    exact = Margins(labelled(case), weights, loss="zero-one", max_listed=10_000)
    relaxed = Margins(labelled(case), weights, loss="zero-one", max_listed=0)
    share = Margins(labelled(case), weights, max_listed=10_000)
    for gamma in GAMMAS:
        found = exact.largest_losses(gamma)
        assert set(found) <= {0.0, 1.0}
        np.testing.assert_array_equal(found > 0, share.largest_losses(gamma) > 0)
        assert (relaxed.largest_losses(gamma) >= found).all()


def small_task(rng: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
    """Make sequences of two labels in which each word shows its label, in 5 % of the cases wrongly."""
    X, y = [], []
    for _ in range(n):
        labels = rng.integers(2, size=int(rng.integers(1, 4)))
        shown = np.where(rng.random(len(labels)) < 0.05, 1 - labels, labels)
        X.append([[f"w{word}"] for word in shown])
        y.append([str(label) for label in labels])
    return X, y


def share_wrong(guesses: Any, y: Any) -> float:
    return float(
        np.mean([np.mean([a != b for a, b in zip(p, q, strict=True)]) for p, q in zip(guesses, y, strict=True)])
    )


def test_gibbs_classifier_stays_within_the_margin() -> None:
    """Bartlett et al. 2004, equation (10): L(Q(w, gamma)) <= Lmax(w, gamma) + 1 / (n gamma^2) on the sample."""
    X, y = small_task(np.random.default_rng(0), 300)
    tagger = SequenceTagger(C=10.0).fit(X, y)
    bound = margin_bound(tagger.labelled(X, y), tagger.weights_, gammas=[0.3])
    classifier = GibbsClassifier(tagger, bound, random_state=1)
    length = math.sqrt(2 * math.log(2 * bound.most_slots * 300 * 0.3**2)) / 0.3
    assert np.linalg.norm(classifier.mean) == pytest.approx(length)
    # KL(Q || P) = |mu|^2 / 2 for Gaussians
    assert bound.epsilon == pytest.approx((length**2 / 2 + math.log(300 / 0.05)) / 299)
    losses = [share_wrong(classifier.predict(X), y) for _ in range(30)]
    assert np.mean(losses) <= bound.empirical + bound.slack
    assert not np.array_equal(classifier.draw().weights_, classifier.draw().weights_)
    assert len(classifier.predict(X[:3], per_example=True)) == 3
    assert bound.value < 1
    assert bound.informative
    assert "risk of the Gibbs classifier" in str(bound)
    # the value is that of equation (7), and the smallest over the grid of gammas
    assert bound.value == pytest.approx(kl_inverse(bound.empirical + bound.slack, bound.epsilon))
    grid = margin_bound(tagger.labelled(X, y), tagger.weights_)
    assert grid.value == min(value for _, value in grid.grid)
    assert grid.value <= margin_bound(tagger.labelled(X, y), tagger.weights_, gammas=[grid.gamma]).value + 1e-12


@pytest.mark.parametrize("draws", [12, pytest.param(400, marks=pytest.mark.slow)])
def test_bound_holds_where_the_risk_is_known(draws: int) -> None:
    """At delta = 0.05 the bound holds in 95 % of the draws; the chains' true risk is estimated on a large sample."""
    rng = np.random.default_rng(3)
    fresh, truth = small_task(rng, 1000)
    words = np.eye(2)
    held = {"chain": 0, "class": 0}
    tight = []
    for _ in range(draws):
        X, y = small_task(rng, 150)
        tagger = SequenceTagger(C=10.0).fit(X, y)
        bound = margin_bound(tagger.labelled(X, y), tagger.weights_, gammas=[0.3, 0.4])
        risk = share_wrong(GibbsClassifier(tagger, bound, rng).predict(fresh), truth)
        held["chain"] += risk <= bound.value
        labels = rng.integers(2, size=300)
        shown = np.where(rng.random(300) < 0.05, 1 - labels, labels)
        classifier = MaxentClassifier(C=10.0, fit_intercept=False).fit(words[shown], labels)
        single = margin_bound(classifier.labelled(words[shown], labels), classifier.weights_, gammas=[0.3, 0.5])
        guess = GibbsClassifier(classifier, single, rng).draw().predict(words)
        right = np.mean(guess == np.arange(2))
        held["class"] += (1 - right) * 0.95 + right * 0.05 <= single.value
        tight.append((bound.value, single.value))
    assert min(held.values()) >= 0.95 * draws
    assert np.mean(tight) < 0.8  # the bounds are not trivial


def test_held_out_bound() -> None:
    from scipy.stats import binom

    losses = np.zeros(100)
    losses[:7] = 1
    bound = held_out_bound(losses, 0.05)
    # at this risk, at most 7 errors in 100 have probability delta
    assert binom.cdf(7, 100, bound) == pytest.approx(0.05)
    assert held_out_bound(np.ones(10)) == 1.0
    shares = held_out_bound(np.full(50, 0.2), 0.1)
    assert kl(0.2, shares) == pytest.approx(math.log(10) / 50, abs=1e-9)
    for bad, text in ((([0.5],), "at least 2"), (([0.5, 1.5],), "between 0 and 1"), (([0.0, 0.1], 1.0), "delta")):
        with pytest.raises(ValueError, match=text):
            held_out_bound(*bad)


def test_bad_input() -> None:
    case = make_case("chain-tied", 0)
    examples, weights = labelled(case), weights_of(case)
    for options, text in (
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"gammas": []}, "no values"),
        ({"gammas": [1.5]}, "gamma"),
        ({"gammas": [1e-9]}, "gamma"),
        ({"loss": "square"}, "loss must be one of"),
    ):
        with pytest.raises(ValueError, match=text):
            margin_bound(examples, weights, **options)
    with pytest.raises(ValueError, match="not all zero"):
        margin_bound(examples, 0 * weights)
    with pytest.raises(ValueError, match="sample weights"):
        margin_bound(LabelledBatch(examples.batch, case.gold, np.full(case.n, 2.0)), weights)
    X, y = small_task(np.random.default_rng(0), 20)
    tagger = SequenceTagger().fit(X, y)
    with pytest.raises(ValueError, match="at least 2"):
        margin_bound(tagger.labelled(X[:1], y[:1]), tagger.weights_)
    with pytest.raises(ValueError, match="example 1: the model does not have this answer"):
        tagger.labelled(X[:2], [y[0], ["other"] * len(y[1])])
    with pytest.raises(ValueError, match="weights of shape"):
        tagger.with_weights(np.zeros(3))


@pytest.mark.parametrize("options", [{}, {"history": 2, "beam_width": 2}])
def test_models_that_do_not_predict_by_a_linear_argmax_are_refused(options: Any) -> None:
    """Locally normalised models are refused: the theorem is about classifiers that maximise <w', Phi>."""
    X, y = small_task(np.random.default_rng(0), 200)
    tagger = SequenceTagger(model="maxent", **options).fit(X, y)
    with pytest.raises(
        ValueError, match=r"largest <w, Phi\(x, y\)>.*normalised at each position.*held_out_losses"
    ) as error:
        margin_bound(tagger.labelled(X, y), tagger.weights_)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)  # errors are pickled between processes
    losses = held_out_losses(tagger.labelled(X, y), tagger.weights_)
    assert losses.mean() == pytest.approx(share_wrong(tagger.predict(X), y))
    wrong = held_out_losses(tagger.labelled(X, y), tagger.weights_, loss="zero-one")
    np.testing.assert_array_equal(wrong, losses > 0)
    assert held_out_losses(tagger.labelled([], []), tagger.weights_).shape == (0,)


def test_kernels_are_refused_and_have_the_held_out_bound() -> None:
    X, y = small_task(np.random.default_rng(0), 30)
    tagger = SequenceTagger(kernel="rbf", loss="hinge", tol=0.1).fit(X, y)
    with pytest.raises(NotCovered, match=r"draws a weight for every feature.*held_out_losses"):
        margin_bound(tagger.labelled(X, y), tagger.weights_)
    losses = held_out_losses(tagger.labelled(X, y), tagger.weights_)
    assert losses.mean() == pytest.approx(share_wrong(tagger.predict(X), y))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("python", "maxent")])
def test_held_out_losses_are_those_of_the_best_labellings(kind: str) -> None:
    case = make_case(kind, 0)
    weights = weights_of(case)
    for loss in ("cost", "zero-one"):
        expected = Margins(labelled(case), weights, loss=loss, max_listed=0).losses_of_best()
        np.testing.assert_allclose(held_out_losses(labelled(case), 3.0 * weights, loss=loss), expected)
    with pytest.raises(ValueError, match="loss must be one of"):
        held_out_losses(labelled(case), weights, loss="hamming")  # type: ignore[arg-type]


def distance(head: int, other: int) -> float:
    return float(abs(head - other))


def rising(gold: str, label: str) -> float:
    return 4.0 * (gold < label)


LEAF = ("X", "a")
TREES = [("S", ("X", LEAF, LEAF), LEAF), ("S", LEAF, ("X", LEAF, ("X", LEAF, LEAF)))]
WORDS = [[["a"], ["b"]], [["b"]]]
COSTS: list[tuple[Any, Any, Any]] = [
    (MaxentClassifier(loss="hinge", cost={(0, 1): 3.0, (2, 0): 0.5}), np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 1]),
    (SequenceTagger(loss="hinge", cost=np.array([[0.0, 5.0], [1.0, 0.0]])), WORDS, [["A", "B"], ["B"]]),
    (SequenceTagger(loss="hinge", order=2, cost=rising), WORDS, [["A", "B"], ["B"]]),
    (SegmentTagger(loss="hinge", cost={("X", "O"): 7.0}), WORDS, [["B-X", "O"], ["O"]]),
    (DependencyParser(loss="hinge", cost=distance), [["a", "b", "c"], ["a", "b"]], [[2, 0, 2], [0, 1]]),
    (ConstituencyParser(loss="hinge", cost="rules"), TREES, TREES),
    (GraphLabeler(loss="hinge", cost={(0, 1): 6.0}), [(np.eye(3), np.array([[0, 1], [1, 2]]))], [np.array([0, 1, 1])]),
]


@pytest.mark.parametrize(("estimator", "X", "y"), COSTS, ids=lambda each: type(each).__name__)
def test_labelled_examples_have_the_estimators_costs(estimator: Any, X: Any, y: Any, tmp_path: Any) -> None:
    """The primal value on labelled examples equals the one that training reported, so the costs are the same."""
    fitted = clone(estimator).fit(X, y)
    trained = [fitted]
    if not callable(fitted.get_params().get("cost")) or not isinstance(fitted, DependencyParser):
        fitted.save(tmp_path / "model.pw")
        trained.append(load(tmp_path / "model.pw"))
    for each in trained:
        problem = Problem.of([each.labelled(X, y)], each.loss, each.result_.l2)
        assert problem.value(each.weights_) == pytest.approx(fitted.result_.primal)


def test_losses_are_costs_of_the_estimator() -> None:
    """Losses are the estimator's costs divided by the largest cost of the example."""
    cost = {(0, 1): 3.0, (0, 2): 1.0, (1, 0): 2.0, (1, 2): 2.0, (2, 0): 0.5, (2, 1): 1.0}
    X, y = np.eye(3)[[0, 1, 2]], [0, 1, 2]
    classifier = MaxentClassifier(loss="hinge", cost=cost).fit(X, y)
    swapped = classifier.labelled(X, [2, 0, 1])  # the model predicts 0, 1, 2
    expected = [0.5 / 1.0, 3.0 / 3.0, 2.0 / 2.0]
    np.testing.assert_allclose(held_out_losses(swapped, classifier.weights_), expected)
    np.testing.assert_allclose(Margins(swapped, classifier.weights_).losses_of_best(), expected)


def test_no_features() -> None:
    """For examples without features the bound is 1, which says nothing, as scores do not depend on the weights."""
    classifier = MaxentClassifier(fit_intercept=False).fit(np.eye(2)[[0, 1, 0, 1]], [0, 1, 0, 1])
    empty = classifier.labelled(np.zeros((4, 2)), [0, 1, 0, 1])
    bound = margin_bound(empty, classifier.weights_)
    assert bound.value == 1.0
    assert not bound.informative
    assert np.isfinite(GibbsClassifier(classifier, bound).mean).all()


def test_gibbs_classifier_counts_unknown_features() -> None:
    X, y = small_task(np.random.default_rng(0), 100)
    tagger = SequenceTagger().fit(X, y)
    classifier = GibbsClassifier(tagger, margin_bound(tagger.labelled(X, y), tagger.weights_))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict(X[:3])
    for per_example in (False, True):
        with pytest.warns(UserWarning, match="1 of 3 features of X are unknown to the model.*weights drawn"):
            classifier.predict([[["w0"], ["never"]], [["w1"]]], per_example=per_example)


def column_file(path: Any, X: Any, y: Any) -> Any:
    rows = [
        "\n".join(f"{w[0]}\t{label}" for w, label in zip(x, labels, strict=True))
        for x, labels in zip(X, y, strict=True)
    ]
    path.write_text("\n\n".join(rows) + "\n")
    return path


def test_command_for_a_model_that_the_margin_bound_does_not_cover(tmp_path: Any) -> None:
    from click.testing import CliRunner

    from partwise.cli import main

    data = column_file(tmp_path / "train.txt", *small_task(np.random.default_rng(0), 100))
    model, run = tmp_path / "model.pw", CliRunner().invoke
    assert run(main, ["train", "tag", str(data), "--model", "maxent", "-o", str(model), "-q"]).exit_code == 0
    refused = run(main, ["bound", str(model), str(data)], standalone_mode=False)
    assert "normalised at each position" in str(refused.exception)
    assert "--held-out FILE" in str(refused.exception)
    text = run(main, ["bound", str(model), str(data), "--held-out", str(data)])
    assert text.exit_code == 0, text.output
    assert "margin bound: not available" in text.output
    assert "held-out bound: risk of the model <=" in text.output
    found = json.loads(run(main, ["bound", str(model), str(data), "--held-out", str(data), "--json"]).output)
    assert found["value"] is None
    assert found["held_out"]["loss"] <= found["held_out"]["value"]


def test_command(tmp_path: Any) -> None:
    from click.testing import CliRunner

    from partwise.cli import main

    data, model = column_file(tmp_path / "train.txt", *small_task(np.random.default_rng(0), 400)), tmp_path / "model.pw"
    run = CliRunner().invoke
    assert run(main, ["train", "tag", str(data), "-o", str(model), "-q"]).exit_code == 0
    text = run(main, ["bound", str(model), str(data), "--held-out", str(data)])
    assert text.exit_code == 0, text.output
    assert "margin bound: risk of the Gibbs classifier <=" in text.output
    assert "held-out bound" in text.output
    found = json.loads(run(main, ["bound", str(model), str(data), "--json"]).output)
    assert 0 < found["value"] <= 1
    assert found["n_examples"] == 400
    wrong = run(main, ["bound", str(model), str(data), "--delta", "2"], standalone_mode=False)
    assert "--delta" in str(wrong.exception)
