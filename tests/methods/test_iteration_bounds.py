"""Iteration bounds of a problem: the constants against enumeration, formulas of the papers, and runs within them."""

from __future__ import annotations

import numpy as np
import pytest
from smallproblems import Small

from oracles.eg_figures import kl
from oracles.excessive_gap import spread
from partwise import Problem, solve
from partwise.features import multiclass_map
from partwise.methods import constants, dcd_additions, eg_passes, excessive_gap_steps
from partwise.penalties import ElasticNet
from partwise.solvers import EG, EGBatch, ExcessiveGap


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-masked", "projective", "spanning", "python"])
def test_constants_are_those_of_enumeration(kind):
    small = Small(kind, "hinge", l2=2.0)
    found, dense = constants(small.problem), small.dense
    active = small.problem.active
    np.testing.assert_allclose(found.log_labellings, [np.log(len(dense.examples[i])) for i in active], atol=1e-9)
    np.testing.assert_allclose(found.costs, [dense.label_costs(i).max() for i in active])
    largest = np.array([(dense.psi(i) ** 2).sum(axis=1).max() for i in active])
    assert np.all(found.psi2 >= largest - 1e-9)
    assert found.psi2.max() <= 10 * largest.max()
    assert found.n_examples == len(active)
    assert found.spread == pytest.approx(spread(dense))
    assert found.smoothing == pytest.approx(dense.sample_weight.sum() * found.psi2.max() / 2.0)


class TestFormulas:
    """With weights 1 the numbers are the papers', in their own units."""

    def test_table_1_of_000(self):
        for loss in ("hinge", "log"):
            small = Small("chain-tied", loss, l2=2.0, weighted=False)
            found, n, epsilon = constants(small.problem), small.dense.n, 1e-2
            A, D = found.psi2.max() / 2.0, sum(found.log_labellings)
            uniform = [np.full(len(e), 1.0 / len(e)) for e in small.dense.examples]
            excess = small.problem.value(np.zeros(small.problem.n_weights)) - small.dense.dual(uniform)
            if loss == "hinge":
                batch, online = n**2 / epsilon * A * D, n / epsilon * (A * D + excess)
            else:
                c1, c2 = (1 + n * A) * D, (1 + A) * D + excess
                batch, online = n * (1 + n * A) * np.log(c1 / epsilon), n * (1 + A) * np.log(c2 / epsilon)
            assert n * eg_passes(small.problem, epsilon, order="batch") == pytest.approx(batch, abs=n)
            assert n * eg_passes(small.problem, epsilon, order="random") == pytest.approx(online, abs=1)

    def test_28_of_002(self):
        small = Small("chain-tied", "hinge", l2=2.0, weighted=False, n=4)
        found, n = constants(small.problem), 4
        lam, log_labels = 2.0 / n, float(found.log_labellings.mean())
        for epsilon in (1.0, 1e-3, 1e-6):
            steps = excessive_gap_steps(small.problem, n * epsilon)
            paper = 2 + np.sqrt(found.psi2.max()) * np.sqrt(6 * log_labels / (lam * epsilon))
            assert paper - 5 <= steps <= paper
            bound = [6 * log_labels * found.psi2.max() / lam / ((k + 1) * (k + 2)) for k in (steps - 1, steps)]
            assert bound[1] <= epsilon
            assert bound[0] > epsilon or steps == 1

    def test_theorem_1_of_004(self):
        small = Small("chain-tied", "squared-hinge", l2=0.5, weighted=False)
        found, C, delta = constants(small.problem), 2.0, 0.1
        R2, costs = found.psi2.max(), float((found.costs**2).sum())  # l Delta^2 where all sequences have one length
        assert dcd_additions(small.problem, delta) == pytest.approx(2 * (R2 + 1 / (2 * C)) * C * costs / delta**2)


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("weighted", [False, True])
def test_eg_is_there_in_time(kind, loss, weighted):
    """The bound is below what the start would need, which is for ever."""
    small = Small(kind, loss, l2=60.0, weighted=weighted, plain=True)
    best = solve(small.problem, "eg-batch", tol=1e-7 if loss == "log" else 1e-4, max_passes=50_000)
    uniform = [np.full(len(e), 1.0 / len(e)) for e in small.dense.examples]
    lacking = best.dual - small.dense.dual(uniform)
    divergence = kl(small.distributions(best.dual_point.scores), uniform, small.dense.sample_weight)
    for order, solver in (
        ("batch", EGBatch(step_size="theorem", start="uniform")),
        ("random", EG(step_size="theorem", start="uniform", order="random")),
    ):
        needed = eg_passes(small.problem, 0.3 * lacking, order=order)
        known = eg_passes(small.problem, 0.3 * lacking, order=order, divergence=divergence)
        assert 1 / small.dense.n <= known <= needed
        run = solve(small.problem, solver, tol=0.0, max_passes=int(np.ceil(needed)), random_state=0)
        assert best.primal - run.dual <= 0.3 * lacking + (best.primal - best.dual)


def test_excessive_gap_is_there_in_time():
    small = Small("chain-tied", "hinge", l2=3.0)
    for epsilon in (1.0, 0.1):
        steps = excessive_gap_steps(small.problem, epsilon)
        run = solve(small.problem, ExcessiveGap(smoothing="theorem", check_every=1), tol=0.0, max_passes=steps)
        assert run.gap <= epsilon < run.history["gap"][0]
        assert excessive_gap_steps(small.problem, epsilon, divergence=0.5) < steps


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_eg_without_features(loss):
    """The dual has no quadratic term: steps are as long as the solvers make them, and they arrive in time."""
    case = Small("multiclass", loss, weighted=False).case
    problem = Problem(multiclass_map(case.structure, np.zeros((case.n, 2))), case.structure, case.gold, loss, 1.0)
    for order, solver in (
        ("batch", EGBatch(step_size="theorem", start="uniform")),
        ("random", EG(step_size="theorem", start="uniform", order="random")),
    ):
        needed = eg_passes(problem, 1e-3, order=order)
        assert 0 < needed < np.inf
        best = problem.value(np.zeros(problem.n_weights))
        run = solve(problem, solver, tol=0.0, max_passes=int(np.ceil(needed)), random_state=0)
        assert best - run.dual <= 1e-3


def test_refusals():
    hinge, log, squared = (Small("chain-tied", loss).problem for loss in ("hinge", "log", "squared-hinge"))
    case = Small("chain-tied", "log").case
    sparse = Problem(case.features, case.structure, case.gold, "log", ElasticNet(0.1, 1.0))
    for bad in (0.0, -1.0, np.nan, np.inf, "small"):
        with pytest.raises(ValueError, match="epsilon must be"):
            eg_passes(log, bad)
        with pytest.raises(ValueError, match="epsilon must be"):
            excessive_gap_steps(hinge, bad)
        with pytest.raises(ValueError, match="delta must be"):
            dcd_additions(squared, bad)
    with pytest.raises(ValueError, match="divergence must be"):
        eg_passes(log, 0.1, divergence=-1.0)
    with pytest.raises(ValueError, match="order must be one of"):
        eg_passes(log, 0.1, order="cyclic")
    with pytest.raises(ValueError, match="identity link"):
        eg_passes(squared, 0.1)
    with pytest.raises(ValueError, match="temperature 0, not 'log'"):
        excessive_gap_steps(log, 0.1)
    with pytest.raises(ValueError, match="squared hinge, not 'hinge'"):
        dcd_additions(hinge, 0.1)
    with pytest.raises(ValueError, match="iteration bounds need"):
        constants(sparse)
    with pytest.raises(ValueError, match="iteration bounds need"):
        constants(log.with_penalty(0.0))
