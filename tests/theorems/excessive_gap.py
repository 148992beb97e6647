"""Theorems of Zhang et al. 2011 on excessive gap, and the bound of Taskar et al. 2006 for its rival, extragradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from helpers.small_problems import Small
from oracles.eg_figures import kl
from oracles.excessive_gap import smoothed, spread
from partwise.problem.dual_points import DualPoint
from partwise.solvers import ExcessiveGap, Extragradient

from .checks import Named, Theorem, a_small, at_most, best_point, of


def excessive(small: Small, steps: int, factor: float) -> Iterator[tuple[int, np.ndarray, float, float]]:
    """Yield (k, w_k, D(alpha_k), mu_k) of `excessive-gap`. The factor stretches the moves of w and alpha from k = 1."""
    solver, problem = ExcessiveGap(smoothing="theorem"), small.problem
    state = solver.init_state(problem, np.random.default_rng(0), None)
    w, alpha = state.weights.copy(), state.marginals.copy()
    for k in range(1, steps + 1):
        counts = alpha + factor * (state.marginals - alpha)
        yield k, w + factor * (state.weights - w), problem.dual_value(DualPoint.of_counts(counts)), state.mu
        solver.step(problem, state)


def theorem_4(small: Small, factor: float) -> None:
    """Zhang et al. 2011, Theorem 4: J(w_k) - D(alpha_k) <= 6 L D / (sigma (k + 1) (k + 2))."""
    first = None
    for k, w, dual, mu in excessive(small, 80, factor):
        first = mu if first is None else first
        gap, bound = small.problem.value(w) - dual, 6.0 * first * spread(small.dense) / ((k + 1) * (k + 2))
        at_most(-gap, 0.0, "weak duality")
        at_most(gap, bound, "Theorem 4")


def theorem_5(small: Small, factor: float) -> None:
    """Zhang et al. 2011, Theorem 5: J_mu(w_k) <= D(alpha_k)."""
    for _, w, dual, mu in excessive(small, 80, factor):
        at_most(smoothed(small.dense, w, mu), dual, "(11)")


def corollary_7(small: Small, factor: float) -> None:
    """Zhang et al. 2011, Corollary 7: max D - D(alpha_k) <= 6 L d(alpha*) / (sigma (k + 1) (k + 2))."""
    z, _ = best_point(small)
    uniform = [np.full(len(p), 1.0 / len(p)) for p in z]
    first, best, distance = None, small.dense.dual(z), kl(z, uniform, small.dense.sample_weight)
    for k, _, dual, mu in excessive(small, 80, factor):
        first = mu if first is None else first
        at_most(dual, best + 1e-5 * abs(best), "weak duality")
        at_most(best - dual, 6.0 * first * distance / ((k + 1) * (k + 2)), "Corollary 7")


def bound_of_extragradient(small: Small, factor: float) -> None:
    """Taskar et al. 2006: P(mean w) - D(mean alpha) <= (a/2 |w(mean alpha)|^2 + sum omega log |Y|) / sum of steps."""
    problem, solver = small.problem, Extragradient(step_rule="theorem")
    state = solver.init_state(problem, np.random.default_rng(0), None)
    solver.step(problem, state)
    first = state.mean_weights.copy(), state.mean_u.copy(), state.mean_b
    for _ in range(150):
        now = state.mean_weights, state.mean_u, state.mean_b
        w, u, b = (old + factor * (new - old) for old, new in zip(first, now, strict=True))
        gap = problem.value(w) - problem.dual_of_plane(u, b)
        at_most(-gap, 0.0, "weak duality")
        reach = 0.5 * state.prox * problem.norm2(problem.weights_of_plane(u)) + spread(small.dense)
        at_most(gap, reach / state.total, "the bound")
        solver.step(problem, state)


def theorems() -> Named:
    for kind, l2 in (("multiclass", 0.3), ("chain-tied", 4.0), ("chain-masked", 1.0)):
        hinge = a_small(kind, "hinge", l2, 6)
        for name, check in (
            ("Zhang et al. 2011, Theorem 4", theorem_4),
            ("Zhang et al. 2011, Theorem 5", theorem_5),
            ("Zhang et al. 2011, Corollary 7", corollary_7),
            ("extragradient", bound_of_extragradient),
        ):
            yield f"{name}: {kind}", Theorem(of(check, hinge), (-1.0, 3.0))
