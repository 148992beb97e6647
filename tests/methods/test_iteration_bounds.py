"""Iteration bounds of a problem: constants against enumeration, the papers' formulas, and runs within the bounds."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import kl
from oracles.excessive_gap import spread
from partwise import Problem, solve
from partwise.features import multiclass_map
from partwise.methods import Constants, constants, dcd_additions, eg_passes, excessive_gap_steps
from partwise.problem.penalties import ElasticNet
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
    """With sample weights of 1 the bounds are the papers' formulas."""

    def test_table_1_of_collins_2008(self):
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

    def test_equation_28_of_zhang_2011(self):
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

    def test_theorem_1_of_chang_2013(self):
        small = Small("chain-tied", "squared-hinge", l2=0.5, weighted=False)
        found, C, delta = constants(small.problem), 2.0, 0.1
        R2, costs = found.psi2.max(), float((found.costs**2).sum())  # l Delta^2 in the paper, for equal lengths
        assert dcd_additions(small.problem, delta) == pytest.approx(2 * (R2 + 1 / (2 * C)) * C * costs / delta**2)


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("weighted", [False, True])
def test_eg_keeps_its_bound(kind, loss, weighted):
    """Runs of eg reach the accuracy within the number of passes that the bound gives."""
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


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
@pytest.mark.parametrize("loss", ["log", "smoothed-hinge", "hinge"])
def test_dual_accuracy_bounds_primal_and_gap(kind, loss):
    """At any dual point, P - P* and P - D are at most what `dual_accuracy` gives for its dual distance."""
    small = Small(kind, loss, l2=2.0, plain=True)
    dense, found, rng = small.dense, constants(small.problem), np.random.default_rng(0)
    best = solve(small.problem, "auto", tol=1e-9 if loss != "hinge" else 1e-6, max_passes=100_000)
    tightest = np.inf
    for scale in (0.0, 0.3, 3.0, 30.0):
        for share in (0.0, 0.9, 0.999):
            scores = scale * rng.normal(size=small.problem.n_slots)
            mixed = [
                share * p + (1 - share) * q for p, q in zip(near_best(small), small.distributions(scores), strict=True)
            ]
            weights = dense.weights(mixed)
            distance = best.primal - dense.dual(mixed)
            for accuracy, left in (
                ("primal", small.problem.value(weights) - best.dual),
                ("gap", small.problem.value(weights) - dense.dual(mixed)),
            ):
                epsilon = inverse(lambda e, a=accuracy: found.dual_accuracy(e, a), distance)
                assert left <= epsilon + (best.primal - best.dual) + 1e-9
                tightest = min(tightest, epsilon / left)
    assert tightest < 100


def near_best(small):
    """Return distributions near the optimum."""
    from theorems.checks import best_point

    return best_point(small)[0]


def inverse(function, value):
    """Return the argument at which an increasing function has this value, by bisection."""
    low, high = 1e-12, 1e12
    for _ in range(200):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return high


def test_dual_accuracy_by_hand():
    """dual_accuracy by hand: G = 5 for the hinge; at temperature 1/2 the smoothness is 11 / (tau l2) = 11."""
    made = {"weights": np.array([1.0, 2.0]), "psi2": np.array([9.0, 1.0]), "l2": 2.0}
    rest = {"log_labellings": np.ones(2), "costs": np.ones(2)}
    hinge = Constants(**made, **rest, temperature=0.0)
    # a dual distance d gives a primal one of 2 G sqrt(2 d / l2) + d = 10 sqrt(d) + d, and a gap of 10 sqrt(d) + 2 d
    assert hinge.dual_accuracy(10 * 0.1 + 0.01, "primal") == pytest.approx(0.01)
    assert hinge.dual_accuracy(10 * 0.1 + 0.02, "gap") == pytest.approx(0.01)
    assert hinge.dual_accuracy(1e-12, "primal") == pytest.approx(1e-26)
    smooth = Constants(**made, **rest, temperature=0.5)
    assert smooth.dual_accuracy(1e-3, "primal") == pytest.approx(1e-3 / 12)
    assert smooth.dual_accuracy(1e-3, "gap") == pytest.approx(1e-3 / 13)
    # far from the optimum the hinge's formula is better
    assert smooth.dual_accuracy(1e3, "primal") == hinge.dual_accuracy(1e3, "primal")
    assert smooth.dual_accuracy(0.7, "dual") == 0.7
    with pytest.raises(ValueError, match="accuracy must be one of"):
        hinge.dual_accuracy(0.1, "weights")


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("accuracy", ["primal", "gap"])
@pytest.mark.parametrize("order", ["batch", "random"])
def test_eg_keeps_its_bound_of_primal_and_gap(loss, accuracy, order):
    """Runs of eg reach a primal accuracy or gap in time: Collins et al. 2008, section 9 and footnote 12."""
    small = Small("multiclass", loss, l2=20.0, n=3, plain=True)
    epsilon = (0.02 if loss == "hinge" else 5e-5) * small.problem.value(np.zeros(small.problem.n_weights))
    needed = eg_passes(small.problem, epsilon, order=order, accuracy=accuracy)
    assert needed > eg_passes(small.problem, epsilon, order=order)
    solver = {
        "batch": EGBatch(step_size="theorem", start="uniform"),
        "random": EG(step_size="theorem", start="uniform", order="random"),
    }[order]
    best = solve(small.problem, "eg-batch", tol=1e-6 if loss == "log" else 1e-4, max_passes=50_000)
    run = solve(small.problem, solver, tol=0.0, max_passes=int(np.ceil(needed)), random_state=0)
    uniform = [np.full(len(e), 1.0 / len(e)) for e in small.dense.examples]
    first, dual = small.problem.value(small.dense.weights(uniform)), small.dense.dual(uniform)
    if accuracy == "primal":
        assert run.primal - best.dual <= epsilon < first - best.primal
    else:
        assert run.gap <= epsilon < first - dual


def test_rates_of_primal_accuracy():
    """For a primal accuracy of eps, the log loss needs O(log 1/eps) passes and the hinge O(1/eps^2)."""
    passes = {
        loss: [eg_passes(Small("multiclass", loss).problem, e, accuracy="primal") for e in (1e-6, 1e-8, 1e-10)]
        for loss in ("log", "hinge")
    }
    assert passes["log"][2] - passes["log"][1] == pytest.approx(passes["log"][1] - passes["log"][0], rel=1e-3)
    assert passes["hinge"][1] / passes["hinge"][0] == pytest.approx(1e4, rel=1e-3)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_high_probability_form_of_theorem_2(loss):
    """Theorem 2: the best of log2(1 / delta) runs, each with mean accuracy epsilon / 2, rarely misses epsilon."""
    small = Small("multiclass", loss, l2=60.0, n=3, weighted=False, plain=True)
    uniform = [np.full(len(e), 1.0 / len(e)) for e in small.dense.examples]
    best = solve(small.problem, "eg-batch", tol=1e-7 if loss == "log" else 1e-4, max_passes=50_000)
    epsilon, delta = 0.3 * (best.dual - small.dense.dual(uniform)), 0.2
    needed = eg_passes(small.problem, epsilon, delta=delta)
    assert needed == pytest.approx(3 * eg_passes(small.problem, epsilon / 2))
    failed = 0
    for seed in range(40):
        solver = EG(step_size="theorem", start="uniform", order="random", delta=delta)
        run = solve(small.problem, solver, tol=0.0, max_passes=int(np.ceil(needed)), random_state=seed)
        assert run.passes <= np.ceil(needed) + 3
        failed += best.primal - run.dual > epsilon + (best.primal - best.dual)
    assert failed <= delta * 40
    with pytest.raises(ValueError, match="delta is about the draws of order='random'"):
        eg_passes(small.problem, epsilon, order="batch", delta=delta)
    for bad in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="delta must be"):
            eg_passes(small.problem, epsilon, delta=bad)


def test_excessive_gap_keeps_its_bound():
    small = Small("chain-tied", "hinge", l2=3.0)
    for epsilon in (1.0, 0.1):
        steps = excessive_gap_steps(small.problem, epsilon)
        run = solve(small.problem, ExcessiveGap(smoothing="theorem", check_every=1), tol=0.0, max_passes=steps)
        assert run.gap <= epsilon < run.history["gap"][0]
        assert excessive_gap_steps(small.problem, epsilon, divergence=0.5) < steps


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_eg_without_features(loss):
    """Without features the dual has no quadratic term; steps have the solvers' largest length, and suffice in time."""
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
