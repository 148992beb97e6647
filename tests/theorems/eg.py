"""Theorems of Collins et al. 2008 and Bartlett et al. 2004 on exponentiated gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from helpers.small_problems import Small
from oracles.eg_figures import kl
from oracles.large_margin_figures import divergence, quadratic, theorem_1
from partwise import _core
from partwise.methods import eg_qp
from partwise.problem.dual_points import DualPoint
from partwise.solvers import EG, EGBatch, EGPrimal

from .checks import Named, Theorem, a_small, at_most, best_point, of


class Batch:
    """`eg-batch` or `eg-primal` with the theorem's step, from any x: slot scores, or z and then the cost's scale."""

    def __init__(self, solver: type[EGBatch] | type[EGPrimal], small: Small) -> None:
        self.small, self.linear = small, solver is EGPrimal
        self.solver = solver(step_size="theorem", start="uniform")
        self.eta = self.solver.step_sizes(small.problem)[0]

    def first(self) -> np.ndarray:
        problem = self.small.problem
        return np.zeros(problem.n_weights + 1 if self.linear else problem.n_slots)

    def step(self, x: np.ndarray, factor: float) -> np.ndarray:
        problem = self.small.problem
        point = DualPoint.of_linear(x[:-1].copy(), float(x[-1])) if self.linear else DualPoint.of_scores(x.copy())
        state = self.solver.init_state(problem, np.random.default_rng(0), point)
        self.solver.step(problem, state)
        new = np.append(state.z, state.cost_scale) if self.linear else state.scores
        return x + factor * (new - x)

    def distributions(self, x: np.ndarray) -> list[np.ndarray]:
        scores = self.small.problem.sums.linear_scores(x[:-1], float(x[-1])) if self.linear else x
        return self.small.distributions(scores)


def progress_of_batches(solver: Any, small: Small, factor: float) -> None:
    """Collins et al. 2008, (12) with Corollary 1: eta (Q(u') - Q(z)) <= D[z || u] - D[z || u'] at every step.

    Here eta is the length of the step that was made.
    """
    method, omega, (z, _) = Batch(solver, small), small.dense.sample_weight, best_point(small)
    x = method.first()
    for _ in range(25):
        us = method.distributions(x)
        x = method.step(x, factor)
        new = method.distributions(x)
        gain = kl(z, us, omega) - kl(z, new, omega)
        eta = method.eta * max(factor, 1.0)
        at_most(eta * (small.dense.dual(z) - small.dense.dual(new)), gain, "Corollary 1 in (12)")


def theorem_1_of_collins_2008(solver: Any, small: Small, linear: bool, factor: float) -> None:
    """Collins et al. 2008, Theorem 1 after T steps. T is so large that the starting point would violate the bound."""
    method, omega, (z, _) = Batch(solver, small), small.dense.sample_weight, best_point(small)
    tau, T, x = small.loss.temperature, 60, method.first()
    start, first = kl(z, method.distributions(x), omega), small.dense.dual(method.distributions(x))
    for _ in range(T):
        x = method.step(x, factor)
    bound = np.exp(-method.eta * tau * T) / method.eta * start if linear else start / (method.eta * T)
    assert bound < 0.9 * (small.dense.dual(z) - first)
    at_most(small.dense.dual(z) - small.dense.dual(method.distributions(x)), bound, "Theorem 1")


def visited(small: Small, scores: np.ndarray, k: int, eta: float, factor: float) -> np.ndarray:
    """Return the slot scores after `eg` visits example k with step `eta`."""
    solver = EG(step_size=eta)
    state = solver.init_state(small.problem, np.random.default_rng(0), DualPoint.of_scores(scores.copy()))
    names = ("weights", "scores", "marginals", "entropies", "step_sizes")
    _core.eg_epoch(
        _core.EgState(small.problem.sums.in_memory()[0].native, **{name: getattr(state, name) for name in names}),
        np.array([k], dtype=np.int64),
        _core.EgOptions(l2=small.problem.l2, adaptive=False, max_step=np.inf),
    )
    return scores + factor * (state.scores - scores)


def progress_of_visits(small: Small, factor: float) -> None:
    """Collins et al. 2008, equation (20), where r(u, i) is u after a visit of example i.

    Q(u) <= Q(z) + sum_i (D[z || u] - D[z || r(u, i)]) / eta + sum_i (Q(u) - Q(r(u, i))).
    """
    n, eta, (z, _) = small.dense.n, float(EG(step_size="theorem").step_sizes(small.problem).min()), best_point(small)
    rng, scores = np.random.default_rng(0), np.zeros(small.problem.n_slots)
    for k in rng.integers(0, n, 12):
        us, total = small.distributions(scores), 0.0
        for i in range(n):
            new = small.distributions(visited(small, scores, i, eta, factor))
            total += (kl(z, us) - kl(z, new)) / eta + small.dense.dual(new) - small.dense.dual(us)
        at_most(small.dense.dual(z) - small.dense.dual(us), total, "(20)")
        scores = visited(small, scores, int(k), eta, factor)


def theorem_2_of_collins_2008(small: Small, linear: bool, factor: float) -> None:
    """Collins et al. 2008, Theorem 2, by the mean over all n^T sequences of visits (uniform, with replacement)."""
    n, T, (z, _) = small.dense.n, 8, best_point(small)
    eta = float(EG(step_size="theorem").step_sizes(small.problem).min())
    level = [np.zeros(small.problem.n_slots)]
    us = small.distributions(level[0])
    lacking, start = small.dense.dual(z) - small.dense.dual(us), kl(z, us)
    for _ in range(T):
        level = [visited(small, scores, k, eta, factor) for scores in level for k in range(n)]
    mean = float(np.mean([small.dense.dual(small.distributions(scores)) for scores in level]))
    tau = small.loss.temperature
    bound = np.exp(-eta * tau * T / n) * (start / eta + lacking) if linear else n / T * (start / eta + lacking)
    assert bound < 0.9 * lacking
    at_most(small.dense.dual(z) - mean, bound, "Theorem 2")


def theorem_1_of_bartlett_2004(seed: int, factor: float) -> None:
    """Bartlett et al. 2004, Theorem 1 with the step 0.4 / (B + lambda).

    The check makes so many steps that standing still would violate the bound.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([3, 2, 4])
    matrix = rng.normal(size=(9, 4))
    A, b = 2.0 * matrix @ matrix.T / 9, 0.3 * rng.normal(size=9)
    best = eg_qp(A, b, sizes, step_size="search", tol=1e-8)
    x = np.repeat(1.0 / sizes, sizes)
    start, logs = x, np.log(x)
    B, largest = best.gradient_range, best.largest_eigenvalue
    eta = 0.4 / (B + largest)
    lacking, D = quadratic(A, b, x) - best.value, divergence(best.alpha, x)
    T = int(2.0 * D / (eta * lacking)) + 1
    values = [quadratic(A, b, x)]
    for _ in range(T):
        new = eg_qp(A, b, sizes, start=x, tol=0.0, max_iterations=1).alpha
        logs = logs + factor * (np.log(np.maximum(new, 1e-300)) - logs)
        logs = np.maximum(logs - logs.max(), -500.0)
        x = np.exp(logs)
        x /= np.repeat(np.add.reduceat(x, np.cumsum([0, *sizes[:-1]])), sizes)
        logs = np.log(x)
        values.append(quadratic(A, b, x))
    f, g = theorem_1(eta, B, largest, T)
    bound = best.value + f * divergence(best.alpha, start) + g * (values[0] - values[T])
    at_most(float(np.mean(values[:T])), bound, "Theorem 1")
    at_most(values[T], float(np.mean(values[:T])), "the last value against the mean")


def theorems() -> Named:
    far = (-1.0, 1000.0)
    for kind, loss, seed, weighted in (
        ("multiclass", "log", 1, True),
        ("chain-tied", "hinge", 2, False),
        ("chain-untied", "softmax-margin", 3, True),
        ("chain-masked", "smoothed-hinge", 4, True),
    ):
        weak, firm = (a_small(kind, loss, l2, seed, weighted) for l2 in (0.2, 50.0))
        for cls in (EGBatch, EGPrimal):
            name = f"{cls.name}, {kind}, {loss}"
            yield f"Collins et al. 2008, Corollary 1: {name}", Theorem(of(progress_of_batches, cls, weak), far)
            yield (
                f"Collins et al. 2008, Theorem 1: {name}",
                Theorem(of(theorem_1_of_collins_2008, cls, firm, False), (-1.0, 0.005)),
            )
            if loss != "hinge":
                yield (
                    f"Collins et al. 2008, Theorem 1, linear: {name}",
                    Theorem(of(theorem_1_of_collins_2008, cls, firm, True), (-1.0, 0.005)),
                )
    for loss in ("log", "hinge"):
        three, two = a_small("chain-tied", loss, 3.0, 5, False, 3), a_small("chain-tied", loss, 100.0, 5, False, 2)
        yield f"Collins et al. 2008, equation 20: {loss}", Theorem(of(progress_of_visits, three), far)
        yield f"Collins et al. 2008, Theorem 2: {loss}", Theorem(of(theorem_2_of_collins_2008, two, False), (-1.0,))
        if loss == "log":
            yield (
                f"Collins et al. 2008, Theorem 2, linear: {loss}",
                Theorem(of(theorem_2_of_collins_2008, two, True), (-1.0,)),
            )
    for seed in range(3):
        yield f"Bartlett et al. 2004, Theorem 1: {seed}", Theorem(of(theorem_1_of_bartlett_2004, seed), (-1.0, 0.05))
