"""Products with the Hessian agree with enumeration and with differences of gradients, on any number of threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.small_problems import Listed
from oracles.problems import make_case
from partwise import Problem, _core
from partwise.problem.losses import Loss

SMOOTH = {
    "log": Loss("log", 1.0, 0.0),
    "softmax-margin": Loss("softmax-margin", 1.0, 1.0),
    "smoothed-hinge": Loss("smoothed-hinge", 0.3, 1.0),
    "squared softmax-margin": Loss("squared softmax-margin", 0.7, 1.0, "squared"),
}
L2 = 0.4


def both(case, loss: Loss):
    """Return the library's problem and the enumerated one."""
    dense = case.dense("log", L2)
    dense = replace(dense, temperature=loss.temperature, cost_scale=loss.cost_scale, link=loss.link)
    problem = Problem(case.features, case.structure, case.gold, loss, L2, sample_weight=case.sample_weight)
    return problem, dense


@pytest.mark.parametrize("scale", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("loss", SMOOTH)
def test_product_with_the_enumerated_matrix(random_case, loss, scale, rng):
    problem, dense = both(random_case, SMOOTH[loss])
    w, v = rng.normal(size=(2, problem.n_weights))
    w *= scale
    np.testing.assert_allclose(problem.hessian(w)(v), dense.hessian(w) @ v, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", SMOOTH)
def test_product_is_the_derivative_of_the_gradient(random_case, loss, rng):
    problem, _ = both(random_case, SMOOTH[loss])
    w, v = rng.normal(size=(2, problem.n_weights))
    step = 1e-5
    up, down = (problem.value_and_gradient(w + s * v)[1] for s in (step, -step))
    np.testing.assert_allclose(problem.hessian(w)(v), (up - down) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", SMOOTH)
def test_symmetric_and_positive(random_case, loss, rng):
    problem, _ = both(random_case, SMOOTH[loss])
    w, v, z = rng.normal(size=(3, problem.n_weights))
    product = problem.hessian(w)
    assert float(z @ product(v)) == pytest.approx(float(v @ product(z)), rel=1e-9, abs=1e-9)
    assert float(v @ product(v)) >= L2 * float(v @ v) - 1e-9


def test_the_same_bits_for_any_number_of_threads(rng):
    case = make_case("chain-tied", seed=52, n=30)
    problem, _ = both(case, SMOOTH["log"])
    w, v = rng.normal(size=(2, problem.n_weights))
    one, three = (problem.with_n_jobs(n).hessian(w)(v) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_a_structure_written_in_python(rng):
    case = make_case("chain-tied", seed=8)

    class WithCovariance(Listed):
        def covariance_product(self, i, scores, temperature, direction):
            example = self.examples[i]
            return example.covariance(example.probabilities(scores, temperature)) @ direction

    problem = Problem(case.features, WithCovariance(case.structure), case.gold, "log", L2, n_jobs=2)
    same = Problem(case.features, case.structure, case.gold, "log", L2)
    w, v = rng.normal(size=(2, problem.n_weights))
    np.testing.assert_allclose(problem.hessian(w)(v), same.hessian(w)(v), atol=1e-9)


def test_bad_input():
    case = make_case("chain-tied", seed=8)
    weights = np.zeros(case.features.num_weights)
    hessian = _core.Hessian(case.objective("log"), weights)
    for wrong in (weights[:-1], np.full_like(weights, np.nan)):
        with pytest.raises(ValueError, match="direction"):
            hessian.product(wrong)
        with pytest.raises(ValueError, match="weights"):
            _core.Hessian(case.objective("log"), wrong)
    with pytest.raises(ValueError, match="temperature above 0"):
        _core.Hessian(case.objective("hinge"), weights)
    with pytest.raises(ValueError, match="'covariance'"):
        _core.Hessian(case.objective("log", Listed(case.structure)), weights)


def test_the_objective_lives_as_long_as_its_hessian(rng):
    case = make_case("multiclass", seed=8)
    v = rng.normal(size=case.features.num_weights)
    expected = _core.Hessian(case.objective("log"), v).product(v)
    hessian = _core.Hessian(case.objective("log"), v)  # only `hessian` refers to this objective
    other = [case.objective("hinge") for _ in range(20)]
    np.testing.assert_array_equal(hessian.product(v), expected)
    assert other
