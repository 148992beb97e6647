"""L-BFGS steps have the two-loop recursion's direction and a length that the Wolfe conditions allow."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.lbfgs_reference import two_loop
from partwise.solvers import LBFGS

STEPS = 12


@pytest.mark.parametrize("memory", [1, 3, 10])
@pytest.mark.parametrize("l2", [0.02, 0.7])
@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
def test_same_directions(kind, loss, l2, memory):
    small = Small(kind, loss, l2=l2)
    dense, solver = small.dense, LBFGS(memory=memory)
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for k in range(STEPS):
        w, gradient = state.weights.copy(), dense.gradient(state.weights)
        if gradient @ gradient <= 1e-14 * dense.primal(w):  # below this, the directions are rounding errors
            assert k >= 6
            break
        solver.step(small.problem, state)
        step, direction = state.weights - w, two_loop(gradient, pairs[-memory:])
        alpha = float(step @ direction / (direction @ direction))
        assert alpha > 0
        np.testing.assert_allclose(step, alpha * direction, atol=1e-6 * np.linalg.norm(step), err_msg=f"step {k}")
        slope, after = float(gradient @ direction), dense.gradient(state.weights)
        noise = 1e-10 * dense.primal(w)
        assert dense.primal(state.weights) <= dense.primal(w) + 1e-4 * alpha * slope + noise
        assert abs(float(after @ direction)) <= 0.9 * abs(slope) + noise
        pairs.append((step, after - gradient))
