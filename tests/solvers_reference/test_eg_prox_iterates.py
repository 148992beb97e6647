"""eg-prox has the iterates of transcribed online EG on the shifted problems of its proximal points."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import part_eg, soft
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import EGProx
from partwise.solvers.dual.eg_prox import settled


@pytest.mark.parametrize("penalty", [ElasticNet(0.1), ElasticNet(0.1, 0.05), L2(0.05)], ids=str)
@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "projective"])
def test_same_iterates(kind, loss, penalty):
    small = Small(kind, loss)
    problem = small.problem.with_penalty(penalty)
    solver = EGProx(proximity=0.3)
    state = solver.init_state(problem, np.random.default_rng(3), None)
    strength = penalty.strength + 0.3
    dense = replace(small.dense, l2=strength)
    scores, steps = small.case.split(state.scores.copy()), state.step_sizes.copy()
    ratio = 0.3 / penalty.strength if penalty.strength else np.inf
    center, stayed = np.zeros(dense.dim), 0

    def dual(scores):
        """The dual of the problem shifted to z, without its constant."""
        us = [e.probabilities(s) for e, s in zip(dense.examples, scores, strict=True)]
        shrunk = soft(strength * dense.weights(us) + 0.3 * center, penalty.l1)
        return (
            dense.dual(us) + 0.5 * strength * dense.weights(us) @ dense.weights(us) - shrunk @ shrunk / (2 * strength)
        )

    for _ in range(6):
        order = solver.draw_order(problem, copy.deepcopy(state.rng))
        before = dual(scores)
        solver.step(problem, state)
        options = {"max_step": 1.0, "accept": lambda g: g >= -1e-12, "l1": penalty.l1, "shift": 0.3 * center}
        scores, w, steps, _, _ = part_eg(dense, scores, steps, order, True, **options)
        np.testing.assert_allclose(state.last, w, atol=1e-8)
        np.testing.assert_allclose(state.step_sizes, steps, rtol=1e-12)
        assert state.gain == pytest.approx(dual(scores) - before, abs=1e-8)
        assert state.gain >= -1e-12
        if state.gain <= settled(state.epoch, ratio) * 0.3 * (w - center) @ (w - center):
            center = w
        else:
            stayed += 1
        np.testing.assert_allclose(state.center, center, atol=1e-8)
    assert stayed < 6
