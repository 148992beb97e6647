"""Trust-region Newton has the iterates of the published pseudo-code on explicit Hessians."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.tron_reference import tron
from partwise.solvers import Newton

STEPS = 6


def trail_of(small: Small, start: np.ndarray, solver: Newton):
    state = solver.init_state(small.problem, np.random.default_rng(0), start)
    n = len(small.problem.active)
    for _ in range(STEPS):
        epoch = state.epoch
        solver.step(small.problem, state)
        # one pass at the start and one per trial step; all other passes are products with the Hessian
        yield state.weights.copy(), state.radius, state.visits // n - 2 - epoch


# Far from the optimum, steps end at the boundary and some are rejected
@pytest.mark.parametrize("scale", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("l2", [0.02, 0.7])
@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
def test_same_iterates(kind, loss, l2, scale):
    small = Small(kind, loss, l2=l2)
    start = scale * np.random.default_rng(1).normal(size=small.problem.n_weights)
    expected = tron(small.dense, start, STEPS)
    for k, ((w, radius, products), mine) in enumerate(zip(expected, trail_of(small, start, Newton()), strict=True)):
        assert mine[2] == products, f"step {k}"
        np.testing.assert_allclose(mine[0], w, atol=1e-7, err_msg=f"step {k}")
        assert mine[1] == pytest.approx(radius, rel=1e-6), f"step {k}"


def test_the_starts_cover_all_cases():
    """The starts lead to steps inside the trust region, steps to its boundary, and rejected steps."""
    small = Small("chain-tied", "smoothed-hinge", l2=0.02)
    start = 8.0 * np.random.default_rng(1).normal(size=small.problem.n_weights)
    trail = [(start, np.inf, 0), *tron(small.dense, start, STEPS)]
    moves = [float(np.linalg.norm(b[0] - a[0])) for a, b in zip(trail, trail[1:], strict=False)]
    radii = [radius for _, radius, _ in trail]
    on_boundary = [abs(m - r) < 1e-9 * m for m, r in zip(moves, radii, strict=False)]
    assert any(on_boundary)
    assert not all(on_boundary[1:])
    assert 0.0 in moves
