"""Inequalities of Collins et al. 2008 about the dual at any two points.

They are checked with the library's dual values, gradients, steps and updates. `solvers/test_theorems` checks what the
paper proves about iterates. With sample weights omega the divergence is sum_i omega_i D[p_i || q_i].
"""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import kl
from partwise.problem.dual_points import DualPoint
from partwise.solvers import EG, EGBatch

EXACT = 1e-9  # allowance for rounding: every inequality below holds in exact arithmetic
CASES = [
    (kind, loss, weighted)
    for kind in ("multiclass", "chain-tied", "chain-masked", "projective")
    for loss in ("log", "hinge", "softmax-margin", "smoothed-hinge")
    for weighted in (False, True)
]


@pytest.fixture(params=CASES, ids=["-".join(map(str, c)) for c in CASES])
def small(request):
    kind, loss, weighted = request.param
    return Small(kind, loss, l2=5.0, seed=21, n=3, weighted=weighted)


def random_scores(small, rng):
    return rng.normal(size=int(small.structure.slot_offsets()[-1]))


def loss_of(small, scores):
    """The paper's objective Q = -D."""
    return -small.problem.dual_value(DualPoint.of_scores(scores))


def divergence(small, p, q):
    return kl(small.distributions(p), small.distributions(q), small.problem.sample_weight)


def expected_counts(small, scores):
    parts = small.case.split(scores)
    return [small.structure.log_partition(i, part.copy())[1] for i, part in enumerate(parts)]


def bregman(small, p, q):
    """The Bregman divergence B_Q[p || q] = Q(p) - Q(q) - grad Q(q) . (p - q), with the gradient of docs/math.md."""
    problem = small.problem
    weights = problem.weights_from_dual(DualPoint.of_scores(q))
    gradient = problem.loss.temperature * q - problem.sums.linear_scores(weights, problem.loss.cost_scale)
    parts = zip(small.case.split(gradient), expected_counts(small, p), expected_counts(small, q), strict=True)
    slopes = [float(g @ (a - b)) for g, a, b in parts]
    return loss_of(small, p) - loss_of(small, q) - float(problem.sample_weight @ slopes)


def test_lemmas_3_4_and_7_bound_the_bregman_divergence(small):
    rng = np.random.default_rng(1)
    offsets = small.structure.slot_offsets()
    batch, online = (solver(step_size="theorem").step_sizes(small.problem) for solver in (EGBatch, EG))
    for _ in range(10):
        p, q = random_scores(small, rng), random_scores(small, rng)
        assert bregman(small, p, q) <= divergence(small, p, q) / batch[0] + EXACT
        assert bregman(small, p, q) >= small.loss.temperature * divergence(small, p, q) - EXACT
        for i, step in enumerate(online):
            one = q.copy()  # differs from q in example i only
            one[offsets[i] : offsets[i + 1]] = p[offsets[i] : offsets[i + 1]]
            assert bregman(small, one, q) <= divergence(small, one, q) / step + EXACT


def test_lemma_10_is_an_identity(small):
    """Lemma 10 holds for a step of the solver from any point and for any z. It would fail if no step were made."""
    rng = np.random.default_rng(2)
    now, z = random_scores(small, rng), random_scores(small, rng)
    solver = EGBatch(step_size="theorem")
    state = solver.init_state(small.problem, rng, DualPoint.of_scores(now.copy()))
    step = state.step_size
    solver.step(small.problem, state)
    after = state.scores
    left = step * (loss_of(small, now) - loss_of(small, z))
    right = divergence(small, z, now) - divergence(small, z, after) + divergence(small, now, after)
    assert left == pytest.approx(right - step * bregman(small, z, now), abs=1e-10)
    assert divergence(small, now, after) > 1e-6


def test_far_larger_steps_break_lemma_3():
    """The inequality of Lemma 3 can fail: it does with 1000 times the theorem's step."""
    small = Small("chain-tied", "hinge", l2=0.05, seed=22, n=3)
    rng = np.random.default_rng(3)
    step = 1000 * EGBatch(step_size="theorem").step_sizes(small.problem)[0]
    p, q = random_scores(small, rng), random_scores(small, rng)
    assert bregman(small, p, q) > 2.0 * divergence(small, p, q) / step
