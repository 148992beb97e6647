"""Theorems of Chang and Yih 2013 on dual coordinate descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from helpers.small_problems import Small
from partwise import _core, solve
from partwise.methods import dcd_additions
from partwise.solvers import DCD

from .checks import Broken, Named, Theorem, a_small, at_most, contracts, grows_at_most, of


def theorem_1(small: Small, factor: float) -> None:
    """Chang and Yih 2013, Theorem 1: in 60 passes, violations of at least delta are no more than the bound allows."""
    problem, n = small.problem, small.dense.n
    delta = 0.4 * float(np.max([small.dense.label_costs(i).max() for i in range(n)]))
    sets, weights, met = _core.WorkingSets(n), np.zeros(problem.n_weights), 0
    for seed in range(60):
        for i in np.random.default_rng(seed).permutation(n):
            kept = sets.to_arrays()
            mass = kept["coefficients"][kept["example_ptr"][i] : kept["example_ptr"][i + 1]].sum()
            violation = float((small.dense.label_costs(i) - small.dense.psi(i) @ weights).max() - mass / 2.0)
            met += violation >= delta and small.dense.sample_weight[i] > 0
            old = weights.copy()
            _core.dcd_epoch(
                _core.DcdState(problem.sums.in_memory()[0].native, weights=weights, sets=sets),
                np.array([i]),
                _core.DcdOptions(l2=problem.l2, search=True, update=factor != 0, delta=delta, seed=seed),
            )
            weights[:] = old + factor * (weights - old)
    assert met > 0
    at_most(met, dcd_additions(problem, delta), "Theorem 1")


def theorem_2(small: Small, factor: float) -> None:
    """Chang and Yih 2013, Theorem 2: on fixed working sets, the objective F_S approaches its minimum linearly."""
    problem = small.problem
    solver = DCD(rounds=0)
    state = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(3):
        solver.step(problem, state)

    def sweep(weights: np.ndarray, sets: Any, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(small.dense.n)
        options = _core.DcdOptions(l2=problem.l2, search=False, update=True, delta=1e-6, seed=seed)
        _core.dcd_epoch(_core.DcdState(problem.sums.in_memory()[0].native, weights=weights, sets=sets), order, options)

    # The solver forgets labellings whose coefficients become 0; the labellings that remain are the fixed sets.
    weights, sets, planes = state.weights, state.sets, []
    for seed in range(400):
        planes.append(problem.dual_terms(sets.point()))
        for part, _ in sets.limited(1024.0):
            sweep(weights, part, seed)
    best = problem.dual_of_plane(*planes[-1])
    (u, b), distances = planes[0], []
    for other_u, other_b in planes[:25]:
        value = problem.dual_of_plane(u + factor * (other_u - u), b + factor * (other_b - b))
        distances.append(best - value)
    contracts(distances, 0.9, "Theorem 2")


def theorem_3(small: Small, factor: float) -> None:
    """Chang and Yih 2013, Theorem 3: from goal to goal, passes to accuracy eps grow at most like log(1/eps) / eps^2."""
    problem, solver = small.problem, DCD(delta=1e-9)
    state = solver.init_state(problem, np.random.default_rng(0), None)
    best = solve(problem, "dcd", tol=1e-10, max_passes=20_000, random_state=0).primal
    goals, passes = [best * 2.0**-k for k in range(1, 12)], []
    for k in range(1, 400):
        before = state.weights.copy()
        solver.step(problem, state)
        state.weights[:] = before + factor * (state.weights - before)
        while len(passes) < len(goals) and problem.value(state.weights) - best <= goals[len(passes)]:
            passes.append(k)
    grows_at_most(passes, goals, bound_of_theorem_3, "Theorem 3")
    if len(passes) < len(goals):
        raise Broken(f"Theorem 3: after 400 passes {problem.value(state.weights)}, the optimum is {best}")


def bound_of_theorem_3(eps: float) -> float:
    """The bound up to a constant factor. The 2 keeps the logarithm positive where eps is above 1."""
    return float(np.log(1.0 / eps + 2.0) / eps**2)


def theorems() -> Named:
    for kind in ("multiclass", "chain-tied"):
        strong, weak = (a_small(kind, "squared-hinge", l2, 7) for l2 in (40.0, 1.0))
        yield f"Chang and Yih 2013, Theorem 1: {kind}", Theorem(of(theorem_1, strong), (-3.0,))
        yield f"Chang and Yih 2013, Theorem 2: {kind}", Theorem(of(theorem_2, weak), (-1.0, 3.0))
        yield f"Chang and Yih 2013, Theorem 3: {kind}", Theorem(of(theorem_3, weak), (-1.0, 3.0))
