"""`eg` on user-defined functions and quadratics: Collins et al. 2008's figures and definitions, errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers.small_problems import Small
from oracles.eg_figures import batch_eg, kl, online_eg
from partwise import ConvergenceWarning, DivergenceError
from partwise.methods import SimplexFunction, eg, explicit_dual, quadratic

EXACT = 1e-9
SIZES = (3, 2, 4)
RULES = [(order, rule) for order in ("batch", "random", "cyclic") for rule in ("adaptive", "theorem")]
RULES.append(("batch", "search"))


def mixture(seed: int = 0) -> SimplexFunction:
    """Make Q = -sum_k log <m_k, alpha> + 0.3 sum of alpha log alpha: not quadratic, and without gradients per block.

    Second derivatives of -log <m, alpha> are at most (m_i / m_min)^2 / n^2 in every entry, as <m, alpha> >= n m_min.
    """
    rng = np.random.default_rng(seed)
    table, n = rng.uniform(0.5, 2.0, (12, sum(SIZES))), len(SIZES)
    most = float((table.max(axis=1) ** 2 / (n * table.min(axis=1)) ** 2).sum())
    return SimplexFunction(
        SIZES,
        lambda a: -float(np.log(table @ a).sum()) + 0.3 * float(a @ np.log(a)),
        lambda a: -(table / (table @ a)[:, None]).sum(axis=0) + 0.3 * (1.0 + np.log(a)),
        upper=0.3 + n * most,
        block_upper=0.3 + most,
        lower=0.3,
    )


def program(seed: int, temperature: float = 0.0):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(sum(SIZES), 5))
    return quadratic(factor @ factor.T, rng.normal(size=sum(SIZES)), SIZES, temperature)


def independent(function: SimplexFunction) -> float:
    """Return the minimum found by SciPy's sequential least squares."""
    equalities = (np.arange(len(SIZES))[:, None] == np.repeat(np.arange(len(SIZES)), SIZES)).astype(float)
    answer = minimize(
        function.value,
        np.exp(function.simplices.check_start(None)),
        jac=function.gradient,
        bounds=[(1e-12, 1.0)] * sum(SIZES),
        constraints={"type": "eq", "fun": lambda x: equalities @ x - 1.0, "jac": lambda x: equalities},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert answer.success
    return float(answer.fun)


@pytest.mark.parametrize(("order", "rule"), RULES)
@pytest.mark.parametrize("name", ["mixture", "hinge", "log"])
def test_the_minimum_is_that_of_another_solver(name, order, rule):
    function = {"mixture": mixture(), "hinge": program(1), "log": program(2, 0.5)}[name]
    tol = 1e-3 if name == "hinge" else 1e-6
    result = eg(function, order=order, step_size=rule, tol=tol, max_iterations=200_000)
    least = independent(function)
    assert result.converged
    assert 0 <= result.gap <= tol * (1 + abs(result.value))
    assert result.lower_bound - EXACT <= least <= result.value + 1e-7
    assert result.value == pytest.approx(function.value(result.alpha), abs=1e-12)
    np.testing.assert_allclose(function.simplices.sums(result.alpha), 1.0)
    assert result.trials >= result.iterations
    if rule != "theorem":
        assert (np.diff(result.values) <= EXACT).all()


def test_the_gap_is_the_frank_wolfe_gap_or_less():
    rng = np.random.default_rng(0)
    for function in (mixture(), program(3), program(4, 0.7)):
        plain = SimplexFunction(SIZES, function.value, function.gradient)
        least = independent(function)
        for _ in range(20):
            logs = function.simplices.normalised(2.0 * rng.normal(size=sum(SIZES)))
            gradient, alpha = function.gradient(np.exp(logs)), np.exp(logs)
            corners = [gradient[function.simplices.block(i)].min() for i in range(len(SIZES))]
            assert plain.gap(logs, gradient) == pytest.approx(gradient @ alpha - sum(corners))
            assert function.value(alpha) - least - 1e-7 <= function.gap(logs, gradient)
            assert function.gap(logs, gradient) <= plain.gap(logs, gradient) + EXACT
            if function.mu.any():  # the entropy's curvature makes the gap strictly smaller
                assert function.gap(logs, gradient) < 0.99 * plain.gap(logs, gradient)


@pytest.mark.parametrize("name", ["mixture", "hinge", "log"])
def test_definitions_5_1_and_5_2(name):
    """The constants of Definitions 5.1 and 5.2 bound B_Q by divergences, and are of the right order."""
    function = {"mixture": mixture(), "hinge": program(1), "log": program(2, 0.5)}[name]
    rng, simplices = np.random.default_rng(1), function.simplices
    ratios, block_ratios = [], []
    for _ in range(200):
        p, q = (simplices.normalised(rng.choice([0.3, 3.0]) * rng.normal(size=sum(SIZES))) for _ in range(2))
        one = q.copy()
        i = int(rng.integers(len(SIZES)))
        one[simplices.block(i)] = p[simplices.block(i)]
        for other, kept in ((p, ratios), (one, block_ratios)):
            a, b = np.exp(other), np.exp(q)
            bregman = function.value(a) - function.value(b) - function.gradient(b) @ (a - b)
            divergences = simplices.sums(np.exp(other) * (other - q))
            assert bregman >= float(function.mu @ divergences) - EXACT
            limit = function.upper if other is p else float(function.block_tau[i])
            assert bregman <= limit * divergences.sum() + EXACT
            kept.append(bregman / (limit * divergences.sum()))
            if function.bregman is not None:
                assert function.bregman(a, b) == pytest.approx(bregman, abs=1e-9)
    assert max(ratios) > 0.005  # n |A| is a loose bound
    assert max(block_ratios) > 0.02


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
class TestFigures:
    """`eg` follows Figures 1 and 2 of Collins et al. 2008 on a problem's dual, with the same random draws."""

    def both(self, kind, loss):
        small = Small(kind, loss, l2=2.0, n=3, weighted=False, plain=True)
        explicit = explicit_dual(small.problem)
        uniform = [np.full(size, 1.0 / size) for size in explicit.blocks]
        return small.dense, quadratic(explicit.A, explicit.b, explicit.blocks, explicit.temperature), uniform

    def test_figure_1(self, kind, loss):
        dense, function, first = self.both(kind, loss)
        for t, us in enumerate(batch_eg(dense, first, 0.1, 15)):
            found = eg(function, step_size=0.1, tol=0.0, max_iterations=t)
            assert found.value == pytest.approx(-dense.dual(us), abs=1e-10)
            assert found.iterations == t

    def test_figure_2(self, kind, loss):
        dense, function, first = self.both(kind, loss)
        steps = np.full(3, 0.2)
        drawn = np.random.default_rng(5)
        order = np.concatenate([drawn.integers(0, 3, 3) for _ in range(5)])
        iterates = online_eg(dense, first, steps, order)
        for t in (3, 6, 15):  # whole rounds, as a run draws a round of blocks at a time
            found = eg(function, order="random", step_size=0.2, tol=0.0, max_iterations=t, random_state=5)
            assert found.value == pytest.approx(-dense.dual(iterates[t]), abs=1e-10)
        found = eg(function, order="cyclic", step_size=0.2, tol=0.0, max_iterations=7)
        turns = online_eg(dense, first, steps, [0, 1, 2, 0, 1, 2, 0])[-1]
        assert found.value == pytest.approx(-dense.dual(turns), abs=1e-10)


class TestBounds:
    def test_theorem_1(self):
        """Runs keep the bound of Theorem 1, and reach an accuracy within the promised iterations."""
        for function in (program(5), program(6, 0.5), mixture()):
            least = eg(function, step_size="search", tol=1e-7)
            lacking = float(function.value(np.exp(function.simplices.check_start(None)))) - least.value
            epsilon = 0.3 * lacking
            few = eg(function, step_size="theorem", tol=0.0, max_iterations=1)
            needed = few.iterations_for(epsilon)
            for rule in ("theorem", "search"):
                result = eg(function, step_size=rule, tol=0.0, max_iterations=needed)
                assert result.value - least.value <= result.bound(least.alpha) + EXACT
                assert result.bound(least.alpha) <= epsilon < lacking
                assert result.value - least.lower_bound <= epsilon

    def test_theorem_2_on_the_mean_of_runs(self):
        for function in (program(5), program(6, 0.5)):
            least = eg(function, step_size="search", tol=1e-7)
            lacking = float(function.value(np.exp(function.simplices.check_start(None)))) - least.value
            T = eg(function, order="random", step_size="theorem", tol=0.0, max_iterations=3).iterations_for(
                0.5 * lacking
            )
            T = min(T, 900)
            runs = [
                eg(function, order="random", step_size="theorem", tol=0.0, max_iterations=T, random_state=seed)
                for seed in range(5)
            ]
            bound = runs[0].bound(least.alpha)
            assert np.mean([run.value for run in runs]) - least.value <= bound + EXACT
            assert bound < lacking

    @pytest.mark.parametrize("T", [30, 900])
    def test_the_formulas(self, T):
        """For few steps the sublinear bound is the smaller one, for many steps the linear bound."""
        function = program(6, 0.5)
        z = eg(function, step_size="search", tol=1e-7).alpha
        first, n = np.exp(function.simplices.check_start(None)), len(SIZES)
        divergences = [kl([z[function.simplices.block(i)]], [first[function.simplices.block(i)]]) for i in range(n)]
        batch = eg(function, step_size="theorem", tol=0.0, max_iterations=T)
        eta, made = 1.0 / function.upper, batch.iterations
        bounds = sum(divergences) / (eta * made), np.exp(-eta * 0.5 * made) / eta * sum(divergences)
        assert (bounds[0] < bounds[1]) == (T == 30)
        assert batch.bound(z) == pytest.approx(min(bounds))
        assert batch.step_sum == pytest.approx(eta * made)
        online = eg(function, order="random", step_size="theorem", tol=0.0, max_iterations=T)
        steps, made = 1.0 / function.block_tau, online.iterations
        reach = float(np.sum(divergences / steps)) + function.value(first) - function.value(z)
        bounds = n * reach / made, np.exp(-float((0.5 * steps).min()) * made / n) * reach
        assert online.bound(z) == pytest.approx(min(bounds))

    def test_rules_without_a_theorem(self):
        function = program(5)
        for options in (
            {"order": "cyclic", "step_size": "theorem"},
            {"step_size": "adaptive"},
            {"step_size": 2.0 / function.upper},
            {"order": "random", "step_size": "adaptive"},
            {"step_size": "theorem", "max_iterations": 0},
        ):
            result = eg(function, **{"tol": 0.0, "max_iterations": 4, **options})
            with pytest.raises(ValueError, match="no theorem is about"):
                result.bound(result.start)
            with pytest.raises(ValueError, match="no theorem is about"):
                result.iterations_for(0.1)
        searched = eg(function, step_size="search", tol=0.0, max_iterations=4)
        # the bound uses the lengths of past steps; lengths of future steps are unknown
        assert searched.bound(searched.alpha) > 0
        with pytest.raises(ValueError, match="no theorem tells how long the steps of a search"):
            searched.iterations_for(0.1)
        with pytest.raises(ValueError, match="epsilon must be"):
            eg(function, step_size="theorem", tol=1.0).iterations_for(0.0)


class TestBadInput:
    def made(self, **changes) -> SimplexFunction:
        A = np.diag(np.arange(1.0, 10.0))
        parts = {"blocks": SIZES, "value": lambda a: 0.5 * a @ A @ a, "gradient": lambda a: A @ a, **changes}
        return SimplexFunction(**parts)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"gradient": lambda a: a[:-1]}, r"gradient must have shape \(9,\), got \(8,\)"),
            ({"gradient": lambda a: a * np.nan}, "gradient has components that are not finite"),
            ({"gradient": lambda a: -np.diag(np.arange(1.0, 10.0)) @ a}, "gradient does not belong to value"),
            ({"gradient": lambda a: 1.01 * np.diag(np.arange(1.0, 10.0)) @ a}, "gradient does not belong to value"),
            ({"value": lambda a: np.nan}, "value gave NaN"),
            ({"value": 3.0}, "value must be a function"),
            ({"block_gradient": lambda a, i: a[:1]}, r"block_gradient of block \d must have shape"),
            ({"upper": -1.0}, "upper must be"),
            ({"upper": np.nan}, "upper must be"),
            ({"block_upper": [1.0, 2.0]}, "block_upper must be"),
            ({"lower": -0.5}, "lower must be"),
            ({"lower": 2.0, "upper": 1.0}, "lower must not exceed upper"),
            ({"blocks": [3, 0]}, "blocks must be"),
            ({"blocks": []}, "blocks must be"),
            ({"blocks": [1.5]}, "blocks must be"),
            ({"lower": 50.0}, "Q is .*, below the bound .*not convex"),
        ],
    )
    def test_functions(self, changes, message):
        order = "random" if "block_gradient" in changes else "batch"
        with pytest.raises(ValueError, match=message):
            eg(self.made(**changes), order=order)

    def test_a_function_that_is_not_convex(self):
        hill = self.made(
            value=lambda a: -10.0 * (a[0] - 0.3) ** 2, gradient=lambda a: np.r_[-20.0 * (a[0] - 0.3), np.zeros(8)]
        )
        with pytest.raises(ValueError, match="not convex"):
            eg(hill)

    @pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
    def test_convex_functions_with_a_kink_are_accepted(self, size):
        """Convex functions are accepted although their curvature or slope jumps at the start."""
        curved = self.made(
            blocks=[3],
            value=lambda a: size * max(0.0, a[0] - 1 / 3) ** 2,
            gradient=lambda a: np.array([2 * size * max(0.0, a[0] - 1 / 3), 0.0, 0.0]),
        )
        assert eg(curved).value <= 1e-6
        for subgradient in (0.0, 0.4, 1.0):
            bent = self.made(
                blocks=[3],
                value=lambda a: size * max(0.0, a[0] - 1 / 3),
                gradient=lambda a, s=subgradient: np.array(
                    [size * (s if abs(a[0] - 1 / 3) < 1e-12 else float(a[0] > 1 / 3)), 0.0, 0.0]
                ),
            )
            assert eg(bent, max_iterations=1, tol=1e9).value == 0.0

    @pytest.mark.parametrize("size", [1e7, 1e10, 1e14])
    def test_large_programs_are_accepted(self, size):
        """Large terms that cancel pass the check of convexity, which allows for the rounding of the terms."""
        b = np.array([size, 0.3, 0.1, -size])
        result = eg(quadratic(np.zeros((4, 4)), b, [1, 2, 1]), step_size=1.0, tol=0.0, max_iterations=60)
        assert result.alpha[2] > 0.99

    @pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan, "fast", True])
    def test_steps(self, bad):
        with pytest.raises(ValueError, match="step_size must be"):
            eg(self.made(), step_size=bad)

    def test_steps_that_need_a_constant(self):
        with pytest.raises(ValueError, match="needs the function's constant upper"):
            eg(self.made(), step_size="theorem")
        with pytest.raises(ValueError, match="needs the function's constant block_upper"):
            eg(self.made(), step_size="theorem", order="cyclic")
        with pytest.raises(ValueError, match="step_size must be theorem, adaptive or a number with order='random'"):
            eg(self.made(), step_size="search", order="random")

    def test_other_bad_options(self):
        for options, message in [
            ({"order": "permuted"}, "order must be one of"),
            ({"tol": -1.0}, "tol must be"),
            ({"tol": np.nan}, "tol must be"),
            ({"max_iterations": -1}, "max_iterations must be"),
            ({"start": np.ones(4)}, "components"),
            ({"start": np.ones(9)}, "sum to 1"),
        ]:
            with pytest.raises(ValueError, match=message):
                eg(self.made(), **options)
        with pytest.raises(ValueError, match="components"):
            eg(program(5), step_size="theorem").bound(np.ones(2))

    def test_steps_that_diverge(self):
        A = 50.0 * np.array([[1.0, -1.0], [-1.0, 1.0]])
        swinging = quadratic(A, np.zeros(2), [2])
        for step in (1.0, 1e200, 1e308):
            with pytest.raises(DivergenceError, match=r"eg: Q is .*step_size="):
                eg(swinging, step_size=step, start=[0.9, 0.1], order="batch")

    def test_too_few_iterations(self):
        with pytest.warns(ConvergenceWarning, match="eg: gap .* after 3 iterations"):
            assert eg(program(5), max_iterations=3, tol=1e-9).status == "max_iterations"


@pytest.mark.parametrize(("size", "order"), [(100.0, "random"), (1e4, "cyclic"), (1e4, "batch")])
def test_terms_that_cancel(size, order):
    """Where Q is a small difference of large terms, steps are accepted within the rounding of the terms."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(3, 10))
    linear = np.concatenate([np.full(5, size), np.full(5, -size)]) + 0.1 * rng.normal(size=10)
    result = eg(quadratic(rows.T @ rows, linear, [5, 5]), order=order, max_iterations=2000)
    assert result.converged
    assert result.trials < 2 * result.iterations
