"""Warm starts: weights and dual points of an earlier fit are reused where they apply, and results are certified."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from partwise import MaxentClassifier, SequenceTagger
from partwise.estimators.partial_fit import grown_model
from partwise.models import NotAvailable
from partwise.problem.losses import get_loss
from partwise.solvers import get_solver, solve
from partwise.solvers.engine.point_conversions import extended
from partwise.solvers.engine.registry import SOLVERS, fitting_solvers

WORDS = [["the", "cat", "sat"], ["a", "dog", "ran"], ["the", "dog", "sat"], ["she", "ran"], ["a", "cat", "ran"]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V"], ["N", "V"], ["D", "N", "V"]]
MORE = [["the", "old", "dog", "sat"], ["she", "sat"], ["old", "cats", "ran"]]
MORE_TAGS = [["D", "N", "N", "V"], ["N", "V"], ["N", "N", "V"]]


def attributes(sentences):
    return [[[f"w={w}", f"last={w[-1]}"] for w in words] for words in sentences]


OLD, NEW = attributes(WORDS), attributes(WORDS + MORE)
OLD_Y, NEW_Y = TAGS, TAGS + MORE_TAGS


def certified(loss):
    """Return the solvers of chains that end with a certificate."""
    return [name for name in fitting_solvers(get_loss(loss)) if SOLVERS[name].certified]


@pytest.mark.parametrize(
    ("loss", "solver"), [(loss, name) for loss in ("log", "hinge", "squared-hinge") for name in certified(loss)]
)
def test_more_data_with_every_solver(loss, solver):
    """Every solver reaches the certified optimum from its own earlier result, on the same data and on more data."""
    options = {"loss": loss, "solver": solver, "C": 0.5, "tol": 1e-2, "max_passes": 20000, "random_state": 0}
    model = SequenceTagger(warm_start=True, **options).fit(OLD, OLD_Y)
    assert model.fit(OLD, OLD_Y).result_.relative_gap <= 1e-2
    found = model.fit(NEW, NEW_Y).result_
    best = SequenceTagger(**{**options, "solver": "auto", "tol": 1e-6}).fit(NEW, NEW_Y).result_
    assert found.status == "converged"
    assert found.dual <= best.primal + 1e-9
    assert best.dual <= found.primal + 1e-9
    assert found.primal - best.primal <= found.gap + best.gap


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "bcfw"), ("squared-hinge", "dcd"), ("hinge", "excessive-gap")])
def test_new_examples_leave_the_dual_value_as_it_is(loss, solver):
    """New examples start at their gold labellings, so they add nothing to the plane (u, b) and the dual value stays."""
    make = {"loss": loss, "solver": solver, "C": 0.5, "tol": 1e-3, "features": "all"}
    old = SequenceTagger(**make).fit(OLD, OLD_Y).result_
    problem = SequenceTagger(**make).prepare(NEW, NEW_Y).problem
    point = extended(problem, old.dual_point, len(OLD))
    assert point is not None
    assert problem.dual_value(point) == pytest.approx(
        old.dual, rel=1e-9 if loss != "hinge" or solver == "bcfw" else 1e-2
    )


@pytest.mark.parametrize("solver", ["eg", "sdca"])
def test_distributions_of_new_examples_are_near_their_answers(solver):
    make = {"solver": solver, "tol": 1e-6, "features": "all"}  # features="all": the slots of old examples do not change
    old = SequenceTagger(**make).fit(OLD, OLD_Y).result_
    problem = SequenceTagger(**make).prepare(NEW, NEW_Y).problem
    point = extended(problem, old.dual_point, len(OLD))
    assert problem.dual_value(point) == pytest.approx(old.dual, rel=1e-3)
    assert extended(problem, old.dual_point, -1) is old.dual_point
    assert solve(problem, solver, tol=1e-9, warm_start=point).status == "converged"


def test_duals_are_kept_for_the_same_answers_alone():
    model = SequenceTagger(solver="eg", tol=1e-6, warm_start=True).fit(OLD, OLD_Y)

    def starts(X, y):
        start = model._prepare_fit(X, y, None).options["warm_start"]
        return getattr(start, "dual_point", None)

    assert starts(OLD, OLD_Y) is model.result_.dual_point
    longer = starts(NEW, NEW_Y)
    assert len(longer.scores) > len(model.result_.dual_point.scores)
    assert np.array_equal(longer.scores[: len(model.result_.dual_point.scores)], model.result_.dual_point.scores)
    assert starts(NEW[1:], NEW_Y[1:]) is None  # the old examples are not the first ones
    assert starts(OLD, [["V", "N", "D"], *OLD_Y[1:]]) is None  # an answer changed
    assert starts(OLD[:3], OLD_Y[:3]) is None  # fewer examples
    assert starts(NEW, [*OLD_Y, ["X"] * 4, *MORE_TAGS[1:]]) is None  # a new label changes the slots
    model.set_params(C=2.0)
    assert starts(OLD, OLD_Y) is None  # another C: no dual point is reused, the weights are the better start
    loaded = pickle.loads(pickle.dumps(model.set_params(C=1.0)))  # pickles have no dual point
    weights = loaded._prepare_fit(NEW, NEW_Y, None).options["warm_start"]
    assert isinstance(weights, np.ndarray)
    assert np.count_nonzero(weights) == np.count_nonzero(model.coef_)


def test_eg_resumes_from_its_distributions():
    """A warm start of eg resumes from its distributions; from the weights alone it would need more passes."""
    model = SequenceTagger(solver="eg", tol=1e-8, warm_start=True).fit(OLD, OLD_Y)
    assert model.fit(OLD, OLD_Y).result_.passes == 0


@pytest.mark.parametrize("solver", ["perceptron", "sgd", "mira"])
def test_online_solvers_start_from_weights_of_any_loss(solver):
    model = SequenceTagger("hinge", solver=solver, max_passes=30, tol=1.0, warm_start=True).fit(OLD, OLD_Y)
    start = pickle.loads(pickle.dumps(model))._prepare_fit(NEW, NEW_Y, None).options["warm_start"]
    assert np.count_nonzero(start) == np.count_nonzero(model.coef_)
    assert get_solver(solver).incremental


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 1], [1, 2]])
@pytest.mark.parametrize("intercept", [True, False])
def test_classifiers_grow_labels_and_columns(labels, intercept, rng):
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    some = np.isin(y, labels)
    options = {"solver": "lbfgs", "tol": 1e-10, "fit_intercept": intercept}
    model = MaxentClassifier(warm_start=True, **options).fit(X[some][:, :3], y[some])
    old = model.predict_proba(X[:, :3])
    start = model._prepare_fit(*model._check_data(model._make_model(), X, y), None)
    begun = start.options["warm_start"]
    first = start.model.with_weights(getattr(begun, "weights", begun))
    scores = first.scores(X)[:, labels]
    assert np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) == pytest.approx(old, abs=1e-9)
    cold = MaxentClassifier(**options).fit(X, y)
    assert model.fit(X, y).coef_ == pytest.approx(cold.coef_, abs=1e-4)


@pytest.mark.parametrize("solver", ["sgd", "perceptron", "mira"])
@pytest.mark.parametrize("template", [None, "pos"])
def test_partial_fit_grows_a_tagger(solver, template):
    """Growing keeps old weights by name, adds weights for new names, and keeps labels that no longer occur."""
    first, more = (OLD, attributes(MORE)) if template is None else (WORDS, MORE)
    options = {"template": template, "solver": solver, "loss": "log" if solver == "sgd" else "hinge"}
    model = SequenceTagger(**options).partial_fit(first, OLD_Y).partial_fit(first, OLD_Y)
    labels = [["X", "N", "N", "V"], ["Y", "V"], ["X", "N", "V"]]
    with pytest.raises(ValueError, match="an answer that this model cannot give"):
        model.partial_fit(more, labels)
    before = pickle.loads(pickle.dumps(model))
    joined = grown_model(model, replace(model._check_training(), classes=["Z"]), more, labels, None)[0]
    tables = ("state_features", "transition_weights")
    for table in tables:
        old, new = getattr(before._model, table)(), getattr(joined, table)()
        assert set(old) < set(new)
        assert new == {key: old.get(key, 0.0) for key in new}
    model.partial_fit(more, labels, classes=["Z"], grow=True)
    assert model.classes_.tolist() == ["D", "N", "V", "X", "Y", "Z"]
    assert model.result_.passes == 3  # the solver's state was kept
    for _ in range(30):
        model.partial_fit(first + more, OLD_Y + labels, grow=True)
    assert len(model.coef_) >= len(joined.weights)
    assert model.score(first + more, OLD_Y + labels) > 0.8


def test_growing_without_new_names_equals_partial_fit():
    one = SequenceTagger(solver="sgd").partial_fit(NEW, NEW_Y)
    two = pickle.loads(pickle.dumps(one)).partial_fit(NEW, NEW_Y, grow=True)
    one.partial_fit(NEW, NEW_Y)
    assert two.state_features_ == pytest.approx(one.state_features_)


def test_partial_fit_grows_a_classifier(rng):
    X, y = rng.normal(size=(80, 4)), rng.integers(0, 3, 80)
    some = y < 2
    model = MaxentClassifier(solver="sgd").partial_fit(X[some], y[some])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="label 2, which is not among"):
        model.partial_fit(X, y)
    grown = grown_model(model, model._check_training(), X, y, None)[0]
    scores = np.exp(grown.scores(X)[:, :2])
    assert scores / scores.sum(axis=1, keepdims=True) == pytest.approx(before)
    for _ in range(20):
        model.partial_fit(X, y, grow=True)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) >= MaxentClassifier().fit(X, y).score(X, y) - 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 2}, "not available with order=2"),
        ({"transition_features": ["w="]}, "not available with transitions conditioned on attributes"),
    ],
)
def test_growth_that_is_refused(options, message):
    model = SequenceTagger(solver="perceptron", loss="hinge", **options).partial_fit(OLD, OLD_Y)
    with pytest.raises(NotAvailable, match=message):
        model.partial_fit(NEW, NEW_Y, grow=True)
    arrays = [np.ones((len(words), 2)) for words in WORDS]
    model = SequenceTagger(solver="perceptron", loss="hinge").partial_fit(arrays, OLD_Y)
    with pytest.raises(NotAvailable, match="attributes need names"):
        model.partial_fit(arrays, OLD_Y, grow=True)


@pytest.mark.parametrize("solver", ["perceptron", "sgd", "mira"])
def test_growing_with_as_many_weights_as_before(solver):
    """Growing moves weights to their new places even if the padded number of weights stays the same."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    items = [{"word": f"w{label}{rng.integers(4)}", "bias": True} for label in labels]
    named = MaxentClassifier(loss="hinge" if solver != "sgd" else "log", solver=solver)
    y = np.array(["a", "b", "c"])[labels]
    for _ in range(5):
        named.partial_fit(items, y, classes=["a", "b", "c"])
    before = named.score(items, y)
    named.partial_fit(items[:1], y[:1], grow=True)
    assert before > 0.9
    assert named.score(items, y) > before - 0.05
    rows = np.eye(3)[labels] + 0.1 * rng.normal(size=(300, 3))
    numbered = MaxentClassifier(loss="hinge" if solver != "sgd" else "log", solver=solver)
    for _ in range(5):
        numbered.partial_fit(rows, labels, classes=[0, 1, 2])
    numbered.partial_fit(rows[:1], [-1], grow=True)
    assert numbered.score(rows, labels) > 0.8
    with pytest.raises(ValueError, match="strings and labels that are not"):
        numbered.partial_fit(rows[:1], ["x"], grow=True)
