"""`eg_qp` against Bartlett et al. 2004 (Figure 2, Theorem 1), a QP solver, and duals of small problems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import minimize

from helpers.small_problems import Small
from oracles.large_margin_figures import divergence, figure_2, gradient_range, quadratic, theorem_1
from partwise import ConvergenceWarning, DivergenceError, solve
from partwise.methods import eg_qp, explicit_dual
from partwise.solvers import EGBatch

SEEDS = range(30)
EXACT = 1e-9


def random_program(seed: int, scale: float = 1.0):
    """Make a random program: A of any rank from 1 up, blocks of 1 to 6 variables."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, rng.integers(1, 6))
    sizes[0] = max(2, sizes[0])  # at least one block has more than one point
    m = int(sizes.sum())
    factor = rng.normal(size=(m, rng.integers(1, m + 1)))
    return scale * factor @ factor.T / m, scale * rng.normal(size=m), sizes


def starts_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)])


def uniform(sizes):
    return np.repeat(1.0 / np.asarray(sizes), sizes)


def independent(A, b, sizes):
    """Solve the program by SciPy's sequential least squares."""
    ends = starts_of(sizes)
    equalities = np.zeros((len(sizes), len(b)))
    for i, (j, k) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        equalities[i, j:k] = 1.0
    answer = minimize(
        lambda x: quadratic(A, b, x),
        uniform(sizes),
        jac=lambda x: b + A @ x,
        bounds=[(0.0, 1.0)] * len(b),
        constraints={"type": "eq", "fun": lambda x: equalities @ x - 1.0, "jac": lambda x: equalities},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 2000},
    )
    assert answer.success
    return answer.x


@pytest.mark.parametrize("seed", SEEDS)
class TestRandomPrograms:
    def test_the_minimum_is_that_of_another_solver(self, seed):
        A, b, sizes = random_program(seed)
        x = independent(A, b, sizes)
        for step_size in ("theorem", "search"):
            result = eg_qp(A, b, sizes, step_size=step_size, tol=1e-7)
            assert result.converged
            assert result.value == pytest.approx(quadratic(A, b, x), abs=1e-6)
            assert result.lower_bound <= quadratic(A, b, x) + EXACT
            assert result.value == pytest.approx(quadratic(A, b, result.alpha), abs=1e-12)
            np.testing.assert_allclose(np.add.reduceat(result.alpha, starts_of(sizes)[:-1]), 1.0)
            assert (result.alpha >= 0).all()
            # strong convexity turns the gap into a bound on the distance to the minimum
            if np.linalg.eigvalsh(A)[0] > 1e-3:
                assert np.sum((result.alpha - x) ** 2) <= 2 * (result.gap + 1e-9) / np.linalg.eigvalsh(A)[0]

    def test_figure_2(self, seed):
        A, b, sizes = random_program(seed, scale=3.0)
        ours = eg_qp(A, b, sizes, tol=0.0, max_iterations=0)
        expected = figure_2(A, b, sizes, uniform(sizes), ours.step_size or 1.0, 40)
        for t in (0, 1, 7, 40):
            result = eg_qp(A, b, sizes, tol=0.0, max_iterations=t)
            if result.iterations == t:  # fewer iterations happen only if all blocks are single points
                np.testing.assert_allclose(result.alpha, expected[t], atol=1e-11)

    def test_constants(self, seed):
        A, b, sizes = random_program(seed)
        result = eg_qp(A, b, sizes, tol=0.0, max_iterations=0)
        exact = gradient_range(A, b, sizes, within_blocks=True)
        printed = 2 * (len(sizes) * np.abs(A).max() + np.abs(b).max())
        assert exact <= result.gradient_range + EXACT
        assert result.gradient_range <= printed + EXACT
        assert exact <= gradient_range(A, b, sizes) + EXACT
        assert result.largest_eigenvalue == pytest.approx(np.linalg.norm(A, 2))
        assert result.step_size == pytest.approx(0.4 / (result.gradient_range + result.largest_eigenvalue))


def iterates_of(A, b, sizes, first, eta, n_steps):
    """Return the iterates of `eg_qp` including the start, computed by one-step runs."""
    iterates = [first]
    for _ in range(n_steps):
        iterates.append(eg_qp(A, b, sizes, start=iterates[-1], step_size=eta, tol=0.0, max_iterations=1).alpha)
    return iterates


@pytest.mark.parametrize("seed", range(12))
class TestTheorem1:
    @pytest.mark.parametrize("share", [0.1, 0.4, 0.56])
    def test_at_every_iteration(self, seed, share):
        A, b, sizes = random_program(seed, scale=5.0)
        best = eg_qp(A, b, sizes, step_size="search", tol=1e-9)
        B, eigenvalue = best.gradient_range, best.largest_eigenvalue
        eta = share / (B + eigenvalue)
        first = uniform(sizes)
        others = [best.alpha, first, np.random.default_rng(seed).dirichlet(np.ones(sizes[0]))]
        others[2] = np.concatenate([others[2], first[sizes[0] :]])
        values = [quadratic(A, b, alpha) for alpha in iterates_of(A, b, sizes, first, eta, 60)]
        assert np.all(np.diff(values) <= EXACT)  # steps below 0.567 / (B + lambda) never increase Q
        # Q must fall clearly: while the bound is large, even the start satisfies the theorem.
        assert values[60] - best.value < 0.9 * (values[0] - best.value)
        for T in range(1, 61):
            f, g = theorem_1(eta, B, eigenvalue, T)
            for u in others:
                bound = quadratic(A, b, u) + f * divergence(u, first) + g * (values[0] - values[T])
                assert np.mean(values[:T]) <= bound + EXACT
                if share == 0.4:
                    simple = 2.5 * (B + eigenvalue) * divergence(u, first) + 1.5 * (values[0] - values[T])
                    assert values[T] <= np.mean(values[:T]) + EXACT
                    assert bound <= quadratic(A, b, u) + simple / T + EXACT

    def test_runs_of_the_library(self, seed):
        A, b, sizes = random_program(seed, scale=5.0)
        best = eg_qp(A, b, sizes, step_size="search", tol=1e-9)
        for T in (1, 2, 5, 30):
            result = eg_qp(A, b, sizes, tol=0.0, max_iterations=T)
            if result.iterations < T:
                continue
            eta, B, eigenvalue = result.step_size, result.gradient_range, result.largest_eigenvalue
            iterates = figure_2(A, b, sizes, uniform(sizes), eta, T)
            assert result.mean_value == pytest.approx(np.mean([quadratic(A, b, alpha) for alpha in iterates[:T]]))
            f, g = theorem_1(eta, B, eigenvalue, T)
            expected = best.value + f * divergence(best.alpha, uniform(sizes)) + g * (result.first_value - result.value)
            assert result.theorem_1(best.alpha) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert result.value <= result.mean_value + EXACT
            assert result.mean_value <= result.theorem_1(best.alpha) + EXACT


def separate(seed, n=12):
    """Make a program of independent blocks: n |A| grows with their number, and B + lambda does not."""
    rng = np.random.default_rng(seed)
    A = block_diag(*(factor @ factor.T for factor in rng.normal(size=(n, 3, 3))))
    return A, rng.normal(size=3 * n), np.full(n, 3)


@pytest.mark.parametrize("seed", range(3))
def test_theorem_1_as_a_number_of_iterations(seed):
    """Runs keep Theorem 1's number of iterations, with steps longer than those that Collins et al. 2008 cover."""
    A, b, sizes = separate(seed)
    best = eg_qp(A, b, sizes, step_size="search", tol=1e-9)
    few = eg_qp(A, b, sizes, tol=0.0, max_iterations=3)
    eta, B, largest = few.step_size, few.gradient_range, few.largest_eigenvalue
    assert eta * few.function.upper > 1
    f, g = theorem_1(eta, B, largest, 1)
    excess = few.first_value - few.lower_bound
    epsilon = 0.05 * (few.first_value - best.value)
    needed = few.iterations_for(epsilon)
    assert needed == int(np.ceil((f * len(sizes) * np.log(3.0) + g * excess) / epsilon))
    assert f * eta == pytest.approx(1.0)
    assert 1.0 < g < 1.5  # Theorem 1's excess: 2.5 (B + lambda) D / T + 1.5 (Q(alpha^1) - Q*) / T, rounded up
    run = eg_qp(A, b, sizes, tol=0.0, max_iterations=needed)
    assert run.value - best.lower_bound <= epsilon < few.value - best.value
    u = best.alpha
    expected = (f * divergence(u, uniform(sizes)) + g * (few.first_value - quadratic(A, b, u))) / 3
    assert few.bound(u) == pytest.approx(expected)
    assert few.value - quadratic(A, b, u) <= few.bound(u)
    long = eg_qp(A, b, sizes, step_size=1.0 / (B + largest), tol=0.0, max_iterations=3)
    with pytest.raises(ValueError, match="no theorem is about this run"):
        long.iterations_for(epsilon)


def swinging():
    """Return Q = K/2 (alpha_1 - alpha_2)^2 on one simplex, where too large steps jump from side to side."""
    return 50.0 * np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros(2), [2], [0.9, 0.1]


def test_larger_steps_let_q_rise():
    A, b, sizes, first = swinging()
    limit = 0.567 / (gradient_range(A, b, sizes) + np.linalg.norm(A, 2))
    values = [quadratic(A, b, alpha) for alpha in iterates_of(A, b, sizes, np.array(first), 0.99 * limit, 20)]
    assert max(np.diff(values)) <= 1e-6
    with pytest.raises(DivergenceError):
        iterates_of(A, b, sizes, np.array(first), 20.0 * limit, 20)


def test_theorem_1_speaks_of_constant_steps_only():
    A, b, sizes = random_program(3)
    eta = 1.0 / (np.linalg.norm(A, 2) + eg_qp(A, b, sizes, tol=1.0).gradient_range)
    for result in (
        eg_qp(A, b, sizes, step_size="search"),
        eg_qp(A, b, sizes, step_size=eta),
        eg_qp(A, b, sizes, temperature=0.1),
        eg_qp(A, b, sizes, tol=0.0, max_iterations=0),
    ):
        with pytest.raises(ValueError, match="Theorem 1 requires"):
            result.theorem_1(uniform(sizes))


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_with_entropy(temperature):
    for seed in range(10):
        A, b, sizes = random_program(seed)
        tau = temperature * np.random.default_rng(seed).uniform(0.5, 2.0, len(sizes))
        one = eg_qp(A, b, sizes, temperature=tau, tol=1e-9)
        two = eg_qp(A, b, sizes, temperature=tau, step_size="search", tol=1e-12)
        assert one.converged
        np.testing.assert_allclose(one.alpha, two.alpha, atol=1e-3)
        # at the minimum the gradient is constant within each block
        gradient = b + A @ two.alpha + np.repeat(tau, sizes) * np.log(two.alpha)
        for j, k in zip(starts_of(sizes)[:-1], starts_of(sizes)[1:], strict=True):
            mean = two.alpha[j:k] @ gradient[j:k]
            assert two.alpha[j:k] @ (gradient[j:k] - mean) ** 2 < 1e-9
        assert two.value <= one.value + one.gap
        entropy = np.repeat(tau, sizes) @ (two.alpha * np.log(two.alpha))
        assert two.value == pytest.approx(quadratic(A, b, two.alpha) + entropy)


class TestBadInput:
    A, b, sizes = random_program(2)

    @pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan, "fastest"])
    def test_steps(self, bad):
        with pytest.raises(ValueError, match="step_size must be"):
            eg_qp(self.A, self.b, self.sizes, step_size=bad)

    def test_matrices(self):
        m = len(self.b)
        for A, message in [
            (self.A[:-1], "shapes"),
            (self.A + np.triu(np.ones((m, m))), "symmetric"),
            (self.A - 10 * np.eye(m), "positive semi-definite, it has the eigenvalue -"),
            (-np.ones((m, m)) * 1e-3, "positive semi-definite"),
            (np.full((m, m), np.nan), "finite"),
        ]:
            with pytest.raises(ValueError, match=message):
                eg_qp(A, self.b, self.sizes)

    @pytest.mark.parametrize("blocks", [[], [1], [0, 1], [-1, 2], [0.5, 0.5], [[1]]])
    def test_blocks(self, blocks):
        with pytest.raises(ValueError, match="blocks must be"):
            eg_qp(self.A, self.b, blocks)

    def test_starts(self):
        first = uniform(self.sizes)
        for start, message in [
            (first[:-1], "components"),
            (first * 2, "sum to 1"),
            (-first, "components"),
            (np.where(np.arange(len(first)) == 0, 0.0, first), "sum to 1|interior"),
        ]:
            with pytest.raises(ValueError, match=message):
                eg_qp(self.A, self.b, self.sizes, start=start)

    def test_limits(self):
        for bad in (
            {"tol": -1.0},
            {"tol": np.nan},
            {"max_iterations": -1},
            {"temperature": -1.0},
            {"temperature": [1.0] * 50},
        ):
            with pytest.raises(ValueError, match=next(iter(bad))):
                eg_qp(self.A, self.b, self.sizes, **bad)

    def test_divergence(self):
        A, b, sizes, first = swinging()
        for step in (1.0, 1e200, 1e308):
            with pytest.raises(DivergenceError, match="step_size="):
                eg_qp(A, b, sizes, step_size=step, start=first)
        with pytest.raises(DivergenceError, match="at the end"):
            eg_qp(A, b, sizes, step_size=1.0, start=first, max_iterations=2)
        assert eg_qp(A, b, sizes, start=first).value == pytest.approx(0, abs=1e-6)

    def test_too_few_iterations(self):
        with pytest.warns(ConvergenceWarning, match="eg_qp: gap .* after 3 iterations"):
            result = eg_qp(*random_program(7), max_iterations=3)
        assert result.status == "max_iterations"


class TestExplicitDuals:
    @pytest.mark.parametrize("loss", ["log", "hinge", "softmax-margin", "smoothed-hinge"])
    @pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
    def test_their_minimum_is_the_problems_maximum(self, kind, loss):
        small = Small(kind, loss, l2=2.0)
        explicit = explicit_dual(small.problem)
        assert explicit.blocks.tolist() == [len(e) for e in small.dense.examples]
        result = eg_qp(
            explicit.A, explicit.b, explicit.blocks, temperature=explicit.temperature, step_size="search", tol=1e-7
        )
        point = explicit.point(result.alpha)
        certificate = small.problem.certificate(small.problem.weights_from_dual(point), point)
        assert certificate.dual == pytest.approx(-result.value, abs=1e-9)
        assert certificate.gap == pytest.approx(result.gap, abs=1e-9)  # the gap computed in two ways
        other = solve(small.problem, "eg-batch", tol=1e-6 if small.loss.smooth else 1e-2)
        assert other.dual <= -result.lower_bound + EXACT
        assert abs(other.primal - certificate.primal) <= max(other.gap, certificate.gap) + EXACT

    @pytest.mark.parametrize("loss", ["log", "hinge"])
    @pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
    def test_theorem_2_of_bartlett_2004(self, kind, loss):
        """EG steps on explicit distributions equal EG steps on slot scores (Theorem 2 of Bartlett et al. 2004)."""
        small = Small(kind, loss, l2=2.0, weighted=False)
        explicit = explicit_dual(small.problem)
        eta = EGBatch(step_size="theorem").step_sizes(small.problem)[0]
        solver = EGBatch(step_size=eta, start="uniform")
        state = solver.init_state(small.problem, np.random.default_rng(0), None)
        for t in range(10):
            result = eg_qp(
                explicit.A,
                explicit.b,
                explicit.blocks,
                temperature=explicit.temperature,
                step_size=eta,
                tol=0.0,
                max_iterations=t,
            )
            assert -result.value == pytest.approx(state.dual, abs=1e-10)
            marginals = explicit.point(result.alpha).counts
            expected, _ = small.problem.sums.marginals_of_scores(state.scores)
            np.testing.assert_allclose(marginals, expected, atol=1e-10)
            solver.step(small.problem, state)

    def test_problems_without_an_explicit_dual(self):
        with pytest.raises(ValueError, match="more than 20 labellings"):
            explicit_dual(Small("chain-tied", "log").problem, limit=20)
        with pytest.raises(ValueError, match="needs k_best"):
            explicit_dual(Small("python", "log").problem)
        with pytest.raises(ValueError, match="needs identity link"):
            explicit_dual(Small("chain-tied", "squared-hinge").problem)
        explicit = explicit_dual(Small("multiclass", "log").problem)
        with pytest.raises(ValueError, match="components"):
            explicit.point(np.ones(3))
