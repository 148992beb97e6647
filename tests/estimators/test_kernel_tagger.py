"""SequenceTagger with kernels: scores, inputs, paths, and models that keep their support only."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from partwise import RegularizationPathCV, SequenceTagger, load
from partwise.features.kernels import RBF, Polynomial
from partwise.solvers import ExcessiveGap


@pytest.fixture(scope="module")
def rings():
    """Make points on two circles, labelled by circle, with labels that tend to stay: no linear score separates them."""
    rng = np.random.default_rng(7)
    X, y = [], []
    for _ in range(60):
        labels = np.cumsum(rng.random(rng.integers(1, 7)) < 0.3) % 2
        angle = rng.uniform(0, 2 * np.pi, len(labels))
        radius = 1.0 + labels + 0.25 * rng.normal(size=len(labels))
        X.append(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
        y.append([f"ring{label}" for label in labels])
    return X[:40], y[:40], X[40:], y[40:]


def tagger(**options):
    return SequenceTagger(**({"loss": "hinge", "tol": 1e-2, "random_state": 0} | options))


def same_scores(one, two, X):
    for a, b in zip(one.decision_function(X), two.decision_function(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_a_kernel_sees_what_a_line_cannot(rings):
    X, y, X_test, y_test = rings
    linear = tagger(C=10.0, tol=0.05).fit(X, y).score(X_test, y_test)
    for kernel in ("rbf", "polynomial", RBF(gamma=1.0), Polynomial(degree=2)):
        model = tagger(kernel=kernel, C=10.0, tol=0.05).fit(X, y)
        assert model.result_.relative_gap <= 0.05
        assert model.score(X_test, y_test) > max(linear, 0.85)


@pytest.mark.parametrize("transition_features", [None, "all"])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("solver", ["excessive-gap", "eg", "eg-batch"])
def test_the_linear_kernel_is_the_explicit_model(rings, solver, ends, transition_features):
    X, y, X_test, _ = rings
    options = {"solver": solver, "tol": 0.0, "max_passes": 30, "ends": ends, "transition_features": transition_features}
    explicit = tagger(features="all", **options).fit(X, y)
    kernel = tagger(features="all", kernel="linear", **options).fit(X, y)
    assert kernel.result_.passes == explicit.result_.passes
    assert kernel.result_.primal == pytest.approx(explicit.result_.primal, rel=1e-9)
    assert kernel.result_.dual == pytest.approx(explicit.result_.dual, rel=1e-9)
    assert kernel.predict(X_test) == explicit.predict(X_test)
    same_scores(kernel, explicit, X_test)
    for key, weight in explicit.boundary_features_.items():
        assert kernel.boundary_features_[key] == pytest.approx(weight, abs=1e-9)
    if transition_features is None:
        for key, weight in explicit.transition_features_.items():
            assert kernel.transition_features_[key] == pytest.approx(weight, abs=1e-9)


def test_forms_of_input_agree(rings):
    X, y, X_test, _ = rings
    dense = tagger(kernel="rbf", gamma=0.5).fit(X, y)
    sparse = tagger(kernel="rbf", gamma=0.5).fit([csr_array(x) for x in X], y)
    named = tagger(kernel="rbf", gamma=0.5).fit([[{"x": a, "y": b} for a, b in x.tolist()] for x in X], y)
    same_scores(dense, sparse, X_test)
    for one, other in ((dense, [csr_array(x) for x in X_test]), (sparse, X_test)):
        same = [np.asarray(a) for a in one.decision_function(other)]
        for a, b in zip(same, dense.decision_function(X_test), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-7)
    new = [[{"x": a, "y": b, "unknown": 5.0} for a, b in x.tolist()] for x in X_test]
    for a, b in zip(named.decision_function(new), dense.decision_function(X_test), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_precomputed(rings):
    X, y, X_test, _ = rings
    rows = np.concatenate(X)

    def values(sequences):
        return [np.exp(-0.5 * ((x[:, None] - rows[None]) ** 2).sum(axis=2)) for x in sequences]

    ours = tagger(kernel="precomputed").fit(values(X), y)
    theirs = tagger(kernel="rbf", gamma=0.5).fit(X, y)
    for a, b in zip(ours.decision_function(values(X_test)), theirs.decision_function(X_test), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    bad = [-k for k in values(X)]
    with pytest.raises(ValueError, match="not positive semi-definite"):
        tagger(kernel="precomputed").fit(bad, y)
    with pytest.raises(ValueError, match="has 5 features"):
        ours.predict([np.ones((2, 5))])


def test_marginals_and_k_best(rings):
    X, y, X_test, _ = rings
    model = tagger(loss="log", kernel="rbf", C=10.0, tol=1e-3).fit(X, y)
    assert model.result_.relative_gap <= 1e-3
    for marginals in model.predict_marginals(X_test, output="array"):
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-9)
    best = model.predict_k_best(X_test, 2)
    assert [found[0][0] for found in best] == model.predict(X_test)


def test_rows_without_coefficients_are_dropped(rings):
    X, y, X_test, _ = rings
    weight = np.ones(len(X))
    model = tagger(kernel="rbf", gamma=0.5).fit(X, y, weight)
    n_rows, width = sum(map(len, X)), 4
    assert len(model.coef_) <= n_rows * width + 2 * width
    copy = pickle.loads(pickle.dumps(model))
    same_scores(copy, model, X_test)
    weight[3] = 0.0
    without = tagger(kernel="rbf", gamma=0.5).fit(X, y, weight)
    assert len(without.coef_) == len(model.coef_) - len(X[3]) * width


def test_attributes_of_a_kernel_model(rings):
    X, y, *_ = rings
    model = tagger(kernel="rbf").fit(X, y)
    assert not hasattr(model, "state_features_")
    assert set(model.transition_features_) == {(a, b) for a in model.classes_ for b in model.classes_}
    edges = tagger(kernel="rbf", transition_features="all", tol=0.1).fit(X, y)
    assert not hasattr(edges, "transition_features_")


def test_a_warm_start_from_the_last_dual_point(rings):
    X, y, *_ = rings
    model = tagger(kernel="rbf", solver=ExcessiveGap(), warm_start=True).fit(X, y)
    first = model.result_.passes
    assert model.fit(X, y).result_.passes < 0.5 * first


def test_c_by_cross_validation(rings):
    X, y, X_test, y_test = rings
    search = RegularizationPathCV(tagger(kernel="rbf", solver="excessive-gap", tol=0.1), Cs=[0.01, 10.0], cv=2).fit(
        X, y
    )
    assert search.C_ == 10.0
    assert search.score(X_test, y_test) > 0.8


def test_results_of_a_path_can_be_used_in_any_order(rings):
    X, y, X_test, _ = rings
    model = tagger(kernel="rbf", gamma=0.5)
    results = model.fit_path([1e-2, 1.0, 2.0], X, y)
    expected, sizes = [], []
    for result in results:
        expected.append(model.use(result).predict(X_test))
        sizes.append(len(model.coef_))
    assert expected[0] != expected[1]
    assert min(sizes) < len(results[0].weights)  # at least one model dropped rows without coefficients
    for k in (2, 0, 1, 2):
        assert model.use(results[k]).predict(X_test) == expected[k]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.0}, "gamma is for kernels"),
        ({"kernel_options": {"degree": 2}}, "kernel_options is for kernels"),
        ({"kernel": "rbf", "model": "maxent", "loss": "log"}, "model='crf' alone"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma must be a number > 0"),
        ({"kernel": "sigmoid"}, "unknown kernel 'sigmoid'"),
        ({"kernel": "rbf", "kernel_options": {"degree": 2}}, "'rbf' has no parameter degree"),
        ({"kernel": "rbf", "kernel_options": [1]}, "kernel_options must be a dict"),
        ({"kernel": "rbf", "kernel_options": {"memory_limit": 1e4}}, r"training rows takes .* above the memory limit"),
        ({"kernel": "rbf", "transition_features": [0]}, "None or 'all' with a kernel"),
        ({"kernel": "rbf", "solver": "bcfw"}, "'bcfw' needs explicit weights.*solvers that fit: eg"),
        ({"kernel": "rbf", "solver": "lbfgs", "loss": "log"}, "'lbfgs' needs explicit weights"),
    ],
)
def test_bad_options(rings, options, message):
    with pytest.raises(ValueError, match=message):
        tagger(**({"loss": "hinge"} | options)).fit(rings[0], rings[1])


def test_precomputed_edges_are_refused():
    with pytest.raises(ValueError, match="knows no rows of edges"):
        tagger(kernel="precomputed", transition_features="all").fit([np.eye(2)], [["a", "b"]])


@pytest.mark.parametrize("transition_features", [None, "all"])
@pytest.mark.parametrize("sparse", [False, True])
def test_kernels_by_position(sparse, transition_features, tmp_path):
    """With kernels by position, words at different positions share nothing; an unseen position adds no score."""
    X = [[["a"], ["a"]], [["b"], ["b"]]] * 3
    y = [["first", "second"], ["second", "first"]] * 3
    if not sparse:
        X = [np.array([[float(word == "a"), float(word == "b")] for (word,) in x]) for x in X]
    options = {"kernel": "linear", "transition_features": transition_features, "loss": "hinge", "tol": 1e-3}
    shared = SequenceTagger(**options, C=0.1).fit(X, y)
    placed = SequenceTagger(**options, C=0.1, kernel_options={"by_position": True}).fit(X, y)
    assert placed.score(X, y) == 1.0
    nodes = placed.decision_function(X[:1])[0]
    assert nodes[0, 0] > nodes[0, 1]
    assert nodes[1, 1] > nodes[1, 0]
    assert not np.allclose(shared.decision_function(X[:1])[0], nodes)
    longer = np.concatenate([X[0], X[0][:1]]) if not sparse else [*X[0], X[0][0]]
    assert placed.decision_function([longer])[0][2] == pytest.approx([0.0, 0.0])
    placed.save(tmp_path / "model.pw")
    for other in (load(tmp_path / "model.pw"), pickle.loads(pickle.dumps(placed))):
        same_scores(placed, other, [*X, longer])
        assert other.predict([longer]) == placed.predict([longer])
    light = placed.fit(X, y, [1.0] * 5 + [1e-3])  # makes the last example's coefficients small
    pruning = light.prune(threshold=0.01)
    assert pruning.weights_after < pruning.weights_before
    assert light.score(X, y) == 1.0
