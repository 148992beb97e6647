"""excessive-gap has the iterates of transcribed Algorithms 1 and 2 of Zhang et al. 2011.

The inequalities that the paper proves for these iterates are checked too.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import batch_eg, batch_step
from oracles.excessive_gap import algorithm_1, algorithm_2, smoothed, spread
from oracles.problems import KINDS, dense_problem, make_case
from partwise import Problem
from partwise.methods import EntropyProx, ExcessiveGapMethod, LinearTerm, SquaredNorm
from partwise.solvers import ExcessiveGap

EXACT = 1e-9
SMALL_KINDS = ("multiclass", "chain-tied", "chain-masked")


def weighted_and_not(problem):
    return [problem, replace(problem, sample_weight=np.ones(problem.n))]


def as_general(problem) -> ExcessiveGapMethod:
    """Write the enumerated problem in the form of section 3, where the rows of A are -psi."""
    psi = np.concatenate([problem.psi(i) for i in range(problem.n)])
    gains = np.concatenate([problem.label_costs(i) for i in range(problem.n)])
    prox = EntropyProx([len(e) for e in problem.examples], problem.sample_weight)
    norm = float(np.sqrt((psi**2).sum(axis=1).max()))
    return ExcessiveGapMethod(SquaredNorm(problem.l2), LinearTerm(gains), -psi, prox, norm)


def flat(problem, alpha):
    """Concatenate omega_i p_i of all examples."""
    return np.concatenate([o * p for o, p in zip(problem.sample_weight, alpha, strict=True)])


@pytest.mark.parametrize("kind", SMALL_KINDS)
def test_the_two_listings_agree(kind):
    for problem in weighted_and_not(dense_problem(kind, "hinge", seed=41)):
        for one, two in islice(zip(algorithm_1(problem), algorithm_2(problem), strict=True), 40):
            np.testing.assert_allclose(one[0], two[0], atol=EXACT)
            np.testing.assert_allclose(problem.slots(one[1]), np.concatenate(two[1]), atol=EXACT)
            assert one[2] == two[2]


@pytest.mark.parametrize("kind", SMALL_KINDS)
def test_algorithm_1_on_objects(kind):
    for problem in weighted_and_not(dense_problem(kind, "hinge", seed=42)):
        method = as_general(problem)
        for iterate, (w, alpha, mu) in islice(zip(method.iterates(), algorithm_1(problem), strict=True), 40):
            np.testing.assert_allclose(iterate.w, w, atol=EXACT)
            np.testing.assert_allclose(iterate.alpha, flat(problem, alpha), atol=EXACT)
            assert iterate.mu == pytest.approx(mu, rel=1e-12)
            assert method.primal(w) == pytest.approx(problem.primal(w), rel=1e-12)
            assert method.dual(iterate.alpha) == pytest.approx(problem.dual(alpha), abs=EXACT)
            assert method.smoothed(w, mu) == pytest.approx(smoothed(problem, w, mu), abs=EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_the_solver_is_algorithm_2(kind):
    case, l2 = make_case(kind, seed=43, plain=True), 0.8
    dense = case.dense("hinge", l2)
    problem = Problem(case.features, case.structure, case.gold, "hinge", l2, sample_weight=case.sample_weight)
    solver = ExcessiveGap(smoothing="theorem")
    state = solver.init_state(problem, np.random.default_rng(0), None)
    psi2 = max(case.features.psi2_bound(i) for i in range(case.n))
    for k, (w, marginals, mu) in enumerate(islice(algorithm_2(dense, psi2), 50), start=1):
        np.testing.assert_allclose(state.weights, w, atol=EXACT)
        np.testing.assert_allclose(state.marginals, np.concatenate(marginals), atol=EXACT)
        assert state.mu == pytest.approx(mu, rel=1e-12)
        assert state.visits == k * case.n  # one inference per step, although the paper's listing makes two
        certified = solver.certificate(problem, state)
        assert certified.certificate.primal == pytest.approx(dense.primal(w), rel=1e-10)
        solver.step(problem, state)


# Equations 11 and 17


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", SMALL_KINDS)
def test_excessive_gap_and_rate_of_the_listing(kind, seed):
    for problem in weighted_and_not(dense_problem(kind, "hinge", seed=seed, l2=[0.3, 3.0][seed % 2])):
        method = as_general(problem)
        for iterate in islice(method.iterates(), 60):
            primal, dual = method.primal(iterate.w), method.dual(iterate.alpha)
            assert method.smoothed(iterate.w, iterate.mu) <= dual + EXACT  # eq. 11
            assert -EXACT <= primal - dual <= iterate.mu * method.prox.diameter + EXACT  # eq. 12
            assert primal - dual <= method.bound(iterate.k) + EXACT  # eq. 17
            assert iterate.mu * method.prox.diameter == pytest.approx(method.bound(iterate.k), rel=1e-9)


@pytest.mark.parametrize("smoothing", ["theorem", "adaptive"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "python"])
def test_excessive_gap_and_rate_of_the_solver(kind, smoothing):
    for seed, l2 in ((5, 0.1), (6, 4.0)):
        small = Small(kind, "hinge", l2=l2, seed=seed)
        solver, problem = ExcessiveGap(smoothing=smoothing), small.problem
        state = solver.init_state(problem, np.random.default_rng(0), None)
        first = state.mu
        for k in range(1, 60):
            certificate = solver.certificate(problem, state).certificate
            j = smoothed(small.dense, state.weights, state.mu)
            noise = EXACT * (1.0 + abs(j))
            assert j <= certificate.dual + noise  # eq. 11
            assert certificate.gap <= state.mu * spread(small.dense) + noise  # eq. 12
            if smoothing == "theorem":
                assert state.mu == pytest.approx(6.0 * first / ((k + 1) * (k + 2)), rel=1e-9)  # eq. 17
            solver.step(problem, state)
        assert state.mu < first / 100


def test_too_little_smoothing_breaks_equation_11():
    """The tests above can fail: with a hundredth of the theorem's smoothing, equation 11 does not hold."""
    problem = dense_problem("chain-tied", "hinge", seed=44, l2=0.3)
    method = replace(as_general(problem), norm=as_general(problem).norm / 10)
    excess = [method.smoothed(it.w, it.mu) - method.dual(it.alpha) for it in islice(method.iterates(), 30)]
    assert max(excess) > 0.1


@pytest.fixture(
    scope="module", params=[("chain-tied", 0.7, 1), ("chain-tied", 5.0, 2), ("multiclass", 0.7, 2)], ids=str
)
def gaps(request):
    """Return the gaps of excessive gap (after 1, 2, ... steps) and of batch EG (after 0, 1, ...)."""
    kind, l2, seed = request.param
    problem = dense_problem(kind, "hinge", seed, l2=l2)
    ours = [problem.primal(w) - problem.dual(alpha) for w, alpha, _ in islice(algorithm_1(problem), 500)]
    uniform = [np.full(len(e), 1.0 / len(e)) for e in problem.examples]
    batch = batch_eg(problem, uniform, batch_step(problem), 500)
    return np.array(ours), np.array([problem.primal(problem.weights(us)) - problem.dual(us) for us in batch])


class TestRates:
    """Rates of both methods, with the theorems' steps from a uniform start (Zhang et al. 2011 has no experiments)."""

    def test_the_gap_falls_like_one_over_k_squared(self, gaps):
        k = np.arange(1, 501)
        late = k >= 20
        slope = np.polyfit(np.log(k[late]), np.log(gaps[0][late]), 1)[0]
        assert slope <= -1.7

    @pytest.mark.parametrize("step", [50, 150, 500])
    def test_fewer_steps_than_batch_eg_to_the_same_gap(self, gaps, step):
        ours, theirs = gaps
        assert theirs[step] < 0.5 * theirs[0]  # batch EG makes progress too
        assert (ours <= theirs[step]).any()
        assert np.argmax(ours <= theirs[step]) + 1 < step
