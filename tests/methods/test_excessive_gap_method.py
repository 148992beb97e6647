"""Algorithm 1 of Zhang et al. 2011 on user-defined functions: iterates, the result's certificate, errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

from partwise import ConvergenceWarning
from partwise.methods import EntropyProx, ExcessiveGapMethod, LinearTerm, SquaredNorm


@dataclass(frozen=True)
class Box:
    """A prox function on the box [0, 1]^size: d = |alpha - 1/2|^2 / 2, in the 2-norm."""

    size: int
    modulus: float = 1.0

    @property
    def centre(self):
        return np.full(self.size, 0.5)

    @property
    def diameter(self):
        return self.size / 8.0

    def value(self, alpha):
        return 0.5 * float(((alpha - 0.5) ** 2).sum())

    def respond(self, v, mu):
        return np.clip(0.5 + v / mu, 0.0, 1.0)

    def support(self, v):
        return float(np.maximum(v, 0.0).sum())

    def project(self, alpha, direction):
        return np.clip(alpha - direction, 0.0, 1.0)


@dataclass(frozen=True)
class Quadratic:
    """g = <alpha, curvature * alpha> / 2 - <gains, alpha> on a box, where each coordinate has a closed form."""

    curvature: np.ndarray
    gains: np.ndarray

    @property
    def lipschitz(self):
        return float(self.curvature.max())

    def value(self, alpha):
        return 0.5 * float((self.curvature * alpha) @ alpha) - float(self.gains @ alpha)

    def gradient(self, alpha):
        return self.curvature * alpha - self.gains

    def respond(self, v, mu, prox):
        return np.clip((v + self.gains + 0.5 * mu) / (self.curvature + mu), 0.0, 1.0)

    def conjugate(self, v, prox):
        alpha = np.clip((v + self.gains) / self.curvature, 0.0, 1.0)
        return float(v @ alpha) - self.value(alpha)


@pytest.mark.parametrize("seed", range(3))
def test_algorithm_1_with_another_prox_function(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(7, 3))
    g = Quadratic(rng.uniform(0.1, 2.0, 7), rng.normal(size=7))
    method = ExcessiveGapMethod(SquaredNorm(0.4), g, matrix, Box(7), float(np.linalg.norm(matrix, 2)))
    for iterate in islice(method.iterates(), 200):
        primal, dual = method.primal(iterate.w), method.dual(iterate.alpha)
        assert method.smoothed(iterate.w, iterate.mu) <= dual + 1e-9  # equation (11)
        assert -1e-9 <= primal - dual <= method.bound(iterate.k) + 1e-9  # equation (17)
    best = minimize(method.primal, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    found = method.minimize(tol=1e-3)
    assert best.fun - 1e-6 <= method.primal(found.w) <= best.fun + 1.1e-3 * abs(best.fun)


def game(rng=0) -> ExcessiveGapMethod:
    """Make a matrix game with a strongly convex term: |w|^2 / 2 + max over two distributions of <Aw + c, alpha>."""
    rng = np.random.default_rng(rng)
    matrix = rng.normal(size=(7, 4))
    prox = EntropyProx([3, 4], [1.0, 2.0])
    norm = float(np.sqrt((matrix**2).sum(axis=1).max()))
    return ExcessiveGapMethod(SquaredNorm(1.0), LinearTerm(rng.normal(size=7)), matrix, prox, norm)


class TestResult:
    def test_its_numbers(self):
        method = game()
        result = method.minimize(tol=1e-4)
        assert result.converged
        assert result.primal == method.primal(result.w)
        assert result.dual == method.dual(result.alpha)
        assert result.margin == pytest.approx(result.dual - method.smoothed(result.w, result.mu))
        assert result.margin >= -1e-12
        assert 0 <= result.gap <= 1e-4 * abs(result.primal)
        assert result.gap <= result.bound == method.bound(result.steps)
        assert len(result.gaps) == result.steps > 3
        best = minimize(method.primal, result.w, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        assert result.dual <= best.fun <= result.primal + 1e-12

    def test_it_stops(self):
        method = game()
        assert method.minimize(tol=0.0, max_steps=7).steps == 7
        assert method.minimize(tol=1e3).steps == 1
        with pytest.warns(ConvergenceWarning, match="gap .* after 3 steps"):
            assert method.minimize(tol=1e-9, max_steps=3).status == "max_steps"

    @pytest.mark.parametrize("wrap", [csr_array, aslinearoperator, np.asarray])
    def test_operators(self, wrap):
        method = game()
        other = replace(method, matrix=wrap(method.matrix)).minimize(tol=1e-3)
        assert other.steps == method.minimize(tol=1e-3).steps
        assert other.primal == pytest.approx(method.minimize(tol=1e-3).primal, rel=1e-12)

    @pytest.mark.parametrize(
        ("change", "broken"),
        [
            (lambda m: {"norm": m.norm / 10}, "eq. 11"),
            (lambda m: {"f": Stiff(1.0)}, "eq. 11"),
            (lambda m: {"prox": Narrow([3, 4], [1.0, 2.0])}, "eq. 17"),
            (lambda m: {"prox": Careless([3, 4], [1.0, 2.0])}, r"D\(alpha\) <= J\(w\)"),
        ],
        ids=["norm", "modulus", "diameter", "support"],
    )
    def test_wrong_constants_and_responses_are_found_out(self, change, broken):
        method = game()
        method = replace(method, matrix=10 * method.matrix, norm=10 * method.norm)
        method.minimize(tol=0.0, max_steps=100)
        with pytest.raises(ValueError, match=f"step \\d+ breaks .*{broken}"):
            replace(method, **change(method)).minimize(tol=0.0, max_steps=100)


class Stiff(SquaredNorm):
    """|w|^2 / 2 with a wrong (too large) modulus of convexity."""

    def __init__(self, modulus):
        object.__setattr__(self, "modulus", 400.0 * modulus)

    def value(self, w):
        return 0.5 * float(w @ w)

    def respond(self, v):
        return v


class Narrow(EntropyProx):
    """An entropy prox function with a wrong (too small) diameter."""

    def __init__(self, sizes, masses):
        super().__init__(sizes, masses)
        self.diameter /= 1e4


class Careless(EntropyProx):
    """An entropy prox function whose support function returns less than the maximum."""

    def support(self, v):
        return float(self.masses @ self.simplices.least(v))


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"norm": 0.0}, "norm must be"),
            ({"norm": np.nan}, "norm must be"),
            ({"matrix": np.ones((3, 4))}, "matrix must have"),
            ({"matrix": "A"}, "matrix must have"),
            ({"matrix": np.full((7, 4), np.nan)}, "not finite"),
            ({"f": type("F", (), {"modulus": -1.0})()}, "the modulus of f must be"),
            ({"g": type("G", (), {"lipschitz": np.inf})()}, "Lipschitz constant of g"),
        ],
    )
    def test_parts(self, change, message):
        with pytest.raises(ValueError, match=message):
            replace(game(), **change)

    def test_limits(self):
        with pytest.raises(ValueError, match="max_steps"):
            game().minimize(max_steps=0)
        for tol in (-1.0, np.nan):
            with pytest.raises(ValueError, match="tol must be"):
                game().minimize(tol=tol)

    def test_values_that_are_not_finite(self):
        with pytest.raises(ValueError, match="are not finite"):
            replace(game(), g=LinearTerm(np.full(7, np.nan))).minimize()


@pytest.mark.parametrize(("sizes", "masses"), [([2], [1.0, 1.0]), ([0], [1.0]), ([2], [0.0]), ([], [])])
def test_bad_simplices(sizes, masses):
    with pytest.raises(ValueError, match="sizes"):
        EntropyProx(sizes, masses)


def test_bad_modulus():
    with pytest.raises(ValueError, match="modulus"):
        SquaredNorm(0.0)
