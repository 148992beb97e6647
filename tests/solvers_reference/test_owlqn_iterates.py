"""owlqn has the iterates of Algorithm 1 of Andrew and Gao 2007."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.owlqn_reference import owlqn
from partwise.problem.penalties import ElasticNet
from partwise.solvers import OWLQN

STEPS = 8


@pytest.mark.parametrize("memory", [1, 10])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "projective"])
def test_same_iterates(kind, loss, l2, memory):
    small, l1 = Small(kind, loss, l2=l2), 0.15
    problem = small.problem.with_penalty(ElasticNet(l1, l2))
    dense = small.dense

    def smooth(w):
        return dense.primal(w), dense.gradient(w)

    expected, evaluations = owlqn(smooth, dense.dim, l1, memory, STEPS)
    solver = OWLQN(memory=memory)
    state = solver.init_state(problem, np.random.default_rng(0), None)
    signs = set()
    for k in range(STEPS):
        assert state.primal == pytest.approx(dense.primal(state.weights) + l1 * np.abs(state.weights).sum(), rel=1e-12)
        np.testing.assert_allclose(state.weights, expected[k], atol=1e-7, err_msg=f"step {k}")
        signs.add(tuple(np.sign(state.weights)))
        solver.step(problem, state)
    np.testing.assert_allclose(state.weights, expected[-1], atol=1e-7)
    assert state.visits == evaluations * len(problem.active)
    assert len(signs) > (1 if kind == "multiclass" else 2)  # weights became zero and non-zero on the way
