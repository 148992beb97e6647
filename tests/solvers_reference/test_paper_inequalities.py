"""The inequalities that 000 proves, at every step, on the transcriptions of its figures with the theorems' steps.

With sample weights omega the divergence is sum_i omega_i D[p_i || q_i] and the steps are those of `oracles.eg_figures`;
with omega = 1 both are the paper's.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from oracles.bcfw_reference import bcfw, start
from oracles.eg_figures import (
    batch_eg,
    batch_step,
    dual_gradient,
    eg_step,
    kl,
    online_eg,
    online_steps,
)
from oracles.problems import dense_problem

EXACT = 1e-9  # rounding; every inequality below holds in exact arithmetic
CASES = [
    (kind, loss, weighted)
    for kind in ("multiclass", "chain-tied", "chain-masked")
    for loss in ("log", "hinge", "softmax-margin", "smoothed-hinge")
    for weighted in (False, True)
]


@pytest.fixture(params=CASES, ids=["-".join(map(str, c)) for c in CASES])
def problem(request):
    kind, loss, weighted = request.param
    made = dense_problem(kind, loss, seed=21, l2=5.0, n=3, dim=4)
    return made if weighted else replace(made, sample_weight=np.ones(made.n))


def uniform(problem):
    return [np.full(len(e), 1.0 / len(e)) for e in problem.examples]


def random_point(problem, rng):
    points = [rng.dirichlet(np.full(len(e), 0.7)) + 1e-12 for e in problem.examples]
    return [p / p.sum() for p in points]


def near_optimum(problem):
    """A point whose dual is close to the best: any z will do in the theorems, a good one makes them say most."""
    if problem.temperature == 0:
        state = start(problem)
        for _ in range(40):
            bcfw(problem, state, range(problem.n))
        return state.ps
    return online_eg(problem, uniform(problem), online_steps(problem), list(range(problem.n)) * 60)[-1]


def loss_of(problem, us):
    """Q = -D."""
    return -problem.dual(us)


def bregman(problem, p, q):
    """B_Q[p || q] = Q(p) - Q(q) - grad Q(q) . (p - q)."""
    slope = sum(
        problem.sample_weight[i] * float(dual_gradient(problem, q, i) @ (p[i] - q[i])) for i in range(problem.n)
    )
    return loss_of(problem, p) - loss_of(problem, q) - slope


def test_lemmas_3_4_and_7_bound_the_bregman_divergence(problem):
    rng = np.random.default_rng(1)
    omega = problem.sample_weight
    for _ in range(10):
        p, q = random_point(problem, rng), random_point(problem, rng)
        divergence = kl(p, q, omega)
        assert bregman(problem, p, q) <= divergence / batch_step(problem) + EXACT
        assert bregman(problem, p, q) >= problem.temperature * divergence - EXACT
        for i, step in enumerate(online_steps(problem)):
            one = [*q[:i], p[i], *q[i + 1 :]]  # only example i differs
            assert bregman(problem, one, q) <= kl(one, q, omega) / step + EXACT


def test_lemma_10_is_an_identity(problem):
    rng = np.random.default_rng(2)
    omega, step = problem.sample_weight, batch_step(problem)
    now, after = batch_eg(problem, random_point(problem, rng), step, 1)
    z = random_point(problem, rng)
    left = step * (loss_of(problem, now) - loss_of(problem, z))
    right = kl(z, now, omega) - kl(z, after, omega) + kl(now, after, omega) - step * bregman(problem, z, now)
    assert left == pytest.approx(right, abs=1e-10)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_lemma_2_and_corollary_1(problem, share):
    step = share * batch_step(problem)
    iterates = batch_eg(problem, uniform(problem), step, 30)
    for now, after in pairwise(iterates):
        gain = loss_of(problem, now) - loss_of(problem, after)
        assert gain >= kl(now, after, problem.sample_weight) / step - EXACT


def test_theorem_1(problem):
    step, tau, first = batch_step(problem), problem.temperature, uniform(problem)
    iterates = batch_eg(problem, first, step, 40)
    for z in (near_optimum(problem), random_point(problem, np.random.default_rng(3))):
        start_distance = kl(z, first, problem.sample_weight)
        for t, us in enumerate(iterates[1:], start=1):
            excess = loss_of(problem, us) - loss_of(problem, z)
            assert excess <= start_distance / (step * t) + EXACT  # eq. 6, Lemma 5
            if tau > 0:  # Lemma 6 with mu = tau
                assert excess <= np.exp(-step * tau * t) / step * start_distance + EXACT


def test_theorem_1_from_below(problem):
    """Q(u*) <= Q(u): no iterate is better than minus the smallest primal value seen."""
    best_primal = problem.primal(problem.weights(near_optimum(problem)))
    for us in batch_eg(problem, uniform(problem), batch_step(problem), 40):
        assert -loss_of(problem, us) <= best_primal + EXACT


def test_equation_19_at_every_online_step(problem):
    steps = online_steps(problem)
    order = np.random.default_rng(4).integers(0, problem.n, 60)
    iterates = online_eg(problem, uniform(problem), steps, order)
    for k, now, after in zip(order, iterates[:-1], iterates[1:], strict=True):
        gain = loss_of(problem, now) - loss_of(problem, after)
        assert gain >= kl(now, after, problem.sample_weight) / steps[k] - EXACT


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_theorem_2_over_all_index_sequences(loss):
    """The expectation is taken exactly: all n^T sequences, uniform with replacement, one fixed step."""
    made = dense_problem("chain-tied", loss, seed=22, l2=5.0, n=3, dim=4)
    problem = replace(made, sample_weight=np.ones(made.n))
    step = float(online_steps(problem).min())
    first, z = uniform(problem), near_optimum(problem)
    n, level = problem.n, [uniform(problem)]
    best = -problem.primal(problem.weights(z))  # <= Q(u*)
    start_excess, start_distance = loss_of(problem, first) - loss_of(problem, z), kl(z, first)
    for t in range(1, 6):
        following = []
        for us in level:
            for k in range(n):
                new = list(us)
                new[k] = eg_step(us[k], dual_gradient(problem, us, k), step)
                following.append(new)
        level = following
        mean = float(np.mean([loss_of(problem, us) for us in level]))
        assert len(level) == n**t
        head = n / t * (loss_of(problem, first) - best)
        assert mean <= loss_of(problem, z) + n / (step * t) * start_distance + head + EXACT  # eq. 7
        if loss == "log":  # Lemma 9
            bound = np.exp(-step * t / n) * (start_distance / step + start_excess)
            assert mean <= loss_of(problem, z) + bound + EXACT


def test_far_larger_steps_break_the_inequalities():
    """The tests above can fail: at 30 times the theorem's step Lemma 2 does not hold on a problem with small l2."""
    problem = dense_problem("chain-tied", "hinge", seed=22, l2=0.05, n=3, dim=4)
    step = 30 * batch_step(problem)
    iterates = batch_eg(problem, uniform(problem), step, 10)
    gains = [
        loss_of(problem, a) - loss_of(problem, b) - kl(a, b, problem.sample_weight) / step
        for a, b in pairwise(iterates)
    ]
    assert min(gains) < -1.0
