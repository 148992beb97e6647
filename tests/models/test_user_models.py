"""A user-defined model (tests/helpers/matching.py) against an enumeration of all answers."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest
from sklearn.base import clone

import partwise
from helpers.matching import N_NUMBERS, Matcher, data
from partwise import RegularizationPathCV
from partwise.callbacks import EarlyStopping
from partwise.models import ConstraintError


@pytest.fixture(scope="module")
def fitted():
    return Matcher(C=10.0, tol=1e-8).fit(*data())


def every(x, weights):
    """Return all matchings with their scores and probabilities, best first."""
    found = [(list(p), float(sum(x[i, j] @ weights for i, j in enumerate(p)))) for p in permutations(range(len(x)))]
    values = np.array([value for _, value in found])
    p = np.exp(values) / np.exp(values).sum()
    return [(*found[k], p[k]) for k in np.argsort(-values, kind="stable")]


@pytest.mark.parametrize("smallest", [0, 1])
def test_answers_are_those_of_enumeration(fitted, smallest):
    X, y = data(1, 12, smallest)
    rows = [every(x, fitted.coef_) for x in X]
    assert fitted.predict(X) == [own[0][0] for own in rows]
    assert fitted.score(X, y) == np.mean([own[0][0] == jobs for own, jobs in zip(rows, y, strict=True)])
    for own, best, likely in zip(
        rows, fitted.predict_k_best(X, 3), fitted.predict_k_best(X, 3, probabilities=True), strict=True
    ):
        assert [jobs for jobs, _ in best] == [jobs for jobs, _ in likely] == [jobs for jobs, _, _ in own[:3]]
        np.testing.assert_allclose([v for _, v in best], [v for _, v, _ in own[:3]])
        np.testing.assert_allclose([v for _, v in likely], [p for _, _, p in own[:3]])
    found = [{tuple(jobs): p for jobs, _, p in own}[tuple(jobs)] for own, jobs in zip(rows, y, strict=True)]
    np.testing.assert_allclose(fitted.log_probability(X, y), np.log(found), atol=1e-12)
    for x, own, table in zip(X, rows, fitted.predict_marginals(X), strict=True):
        expected = sum(p * np.eye(len(x))[jobs] for jobs, _, p in own) if len(x) else np.empty((0, 0))
        np.testing.assert_allclose(table, expected, atol=1e-12)


def test_samples(fitted):
    X = data(2, 3, 3)[0]
    drawn = fitted.sample(X, 4000, random_state=0)
    for x, samples in zip(X, drawn, strict=True):
        for jobs, _, p in every(x, fitted.coef_)[:5]:
            assert samples.count(jobs) / 4000 == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / 4000))


def test_constraints(fitted):
    X = data(3, 10, 2)[0]
    best = fitted.predict(X)
    answers = fitted.predict(X, forbidden=[[(0, jobs[0])] for jobs in best])
    for x, jobs, first in zip(X, answers, best, strict=True):
        assert jobs == next(own for own, _, _ in every(x, fitted.coef_) if own[0] != first[0])
    with pytest.raises(ConstraintError, match="leaves example 1 no matching"):
        fitted.predict(X[:2], forbidden=[[], [(0, j) for j in range(len(X[1]))]])


def test_losses_and_solvers_agree():
    X, y = data()
    for loss, solvers in {"log": ("lbfgs", "eg"), "hinge": ("bcfw", "eg"), "squared-hinge": ("dcd", "bcfw")}.items():
        one, two = (Matcher(loss=loss, solver=solver).fit(X, y).result_ for solver in solvers)
        assert one.status == two.status == "converged"
        assert max(one.dual, two.dual) <= min(one.primal, two.primal)
    with pytest.raises(ValueError, match="'newton' needs covariance"):
        Matcher(solver="newton").fit(X, y)


def test_inspection(fitted):
    why = fitted.explain(data(4, 1, 4)[0][0])
    assert sum(each.amount for each in why.contributions) == pytest.approx(why.difference)
    assert [name for name, _ in fitted.top_features().labels["pairs"]] == ["x0", "x1", "x2"]
    pruning = pickle.loads(pickle.dumps(fitted)).prune(keep=2, X=data()[0], y=data()[1])
    assert (pruning.weights_before, pruning.weights_after) == (3, 2)


def test_files_pickles_and_clones(fitted, tmp_path):
    X = data(5)[0]
    fitted.save(tmp_path / "model.pw")
    for other in (partwise.load(tmp_path / "model.pw"), pickle.loads(pickle.dumps(fitted))):
        assert type(other) is Matcher
        assert other.predict(X) == fitted.predict(X)
    assert clone(fitted).get_params() == fitted.get_params()


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_warm_starts(loss):
    X, y = data(smallest=1)
    model = Matcher(loss=loss, warm_start=True).fit(X, y)
    passes = model.result_.passes
    assert model.fit(X, y).result_.passes < passes
    other = data(6, smallest=1)  # the same number of examples with other sizes, so that the dual point does not fit
    cold = Matcher(loss=loss).fit(*other).result_
    assert model.fit(*other).result_.primal == pytest.approx(cold.primal, rel=2e-3)


def test_paths_and_callbacks():
    X, y = data()
    search = RegularizationPathCV(Matcher(), Cs=[0.01, 1.0], cv=3).fit(X, y)
    assert search.C_ == 1.0
    stopped = Matcher(tol=1e-12, callbacks=[EarlyStopping(*data(7), patience=1)]).fit(X, y)
    assert stopped.result_.status == "stopped"


def test_empty_inputs(fitted):
    nothing = [np.empty((0, 0, N_NUMBERS))]
    assert fitted.predict([]) == fitted.predict_k_best([], 2) == fitted.sample([]) == []
    assert fitted.predict(nothing) == [[]]
    assert fitted.sample(nothing, 2) == [[[], []]]
    assert fitted.predict_k_best(nothing, 2, probabilities=True) == [[([], 1.0)]]
    assert fitted.log_probability(nothing, [[]]).tolist() == [0.0]
    assert fitted.predict_marginals(nothing)[0].shape == (0, 0)


def test_weights_of_examples():
    X, y = data(n_examples=10)
    twice = Matcher(tol=1e-9).fit(X + X[:5], y + y[:5])
    weighted = Matcher(tol=1e-9).fit(X, y, sample_weight=[2] * 5 + [1] * 5)
    np.testing.assert_allclose(weighted.coef_, twice.coef_, rtol=1e-3)
    with pytest.raises(ValueError, match="sample_weight has 3 entries, expected one for each of 10 examples"):
        Matcher().fit(X, y, sample_weight=[1, 2, 3])
