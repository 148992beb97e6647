"""Online EG: starts, steps, orders, divergence."""

from __future__ import annotations

import numpy as np
import pytest
from smallproblems import Small

from partwise import EG, ConvergenceWarning, DivergenceError, DualPoint, SequenceTagger, solve
from partwise.datasets import make_treebank


def test_a_constant_step_that_is_too_large_is_an_error():
    small = Small("chain-tied", "hinge", l2=0.01)
    with pytest.raises(DivergenceError, match=r"step_size=50\.0; take a smaller one"):
        solve(small.problem, EG(step_size=50.0), tol=1e-3, random_state=0)


def test_a_constant_step_that_is_small_enough_converges():
    small = Small("chain-tied", "log", l2=2.0)
    step = float(EG(step_size="theorem").step_sizes(small.problem).min())
    result = solve(small.problem, EG(step_size=step), tol=1e-4, random_state=0, max_passes=5000)
    assert result.status == "converged"


def test_numbers_that_run_away_are_an_error():
    small = Small("multiclass", "log", l2=1e-3)
    with pytest.raises(DivergenceError):
        solve(small.problem, EG(step_size=1e200, order="cyclic"), tol=1e-3, max_passes=50)


@pytest.mark.parametrize("order", ["random", "permuted", "cyclic"])
@pytest.mark.parametrize("step_size", ["adaptive", "theorem"])
@pytest.mark.parametrize("start", ["gold", "uniform"])
def test_every_combination_converges(order, step_size, start):
    small = Small("chain-tied", "log", l2=5.0)
    solver = EG(order=order, step_size=step_size, start=start)
    assert solve(small.problem, solver, tol=1e-5, random_state=0, max_passes=4000).status == "converged"


def test_orders():
    problem = Small("multiclass", "log", n=50, plain=True).problem
    rng = np.random.default_rng(0)
    assert EG(order="cyclic").draw_order(problem, rng).tolist() == list(range(50))
    permuted = EG(order="permuted").draw_order(problem, rng)
    assert sorted(permuted) == list(range(50))
    assert permuted.tolist() != list(range(50))
    drawn = EG(order="random").draw_order(problem, rng)
    assert len(drawn) == 50
    assert len(set(drawn.tolist())) < 50  # with replacement


def test_starts():
    small = Small("chain-tied", "log")
    rng = np.random.default_rng(0)
    uniform = EG(start="uniform").init_state(small.problem, rng, None)
    for p in small.distributions(uniform.scores):
        np.testing.assert_allclose(p, 1 / len(p))
    sharp = EG(sharpness=30.0).init_state(small.problem, rng, None)
    for p, e, g in zip(small.distributions(sharp.scores), small.dense.examples, small.dense.gold, strict=True):
        assert p[np.all(e.counts == g, axis=1)].sum() > 1 - 1e-9
    assert np.abs(sharp.weights).max() < 1e-9  # near the gold labelling w = 0


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
def test_warm_starts_save_passes(loss):
    small = Small("chain-tied", loss)
    cold = solve(small.problem, "eg", tol=1e-6, random_state=0)
    for warm in (cold, cold.dual_point, cold.weights, solve(small.problem, "lbfgs", tol=1e-9)):
        again = solve(small.problem, "eg", tol=1e-6, random_state=0, warm_start=warm)
        assert again.passes <= 0.5 * cold.passes
        assert again.status == "converged"


def test_warm_starts_that_do_not_fit():
    small, other = Small("chain-tied", "hinge"), Small("chain-tied", "hinge", n=4)
    with pytest.raises(ValueError, match="starts from slot scores"):
        solve(small.problem, "eg", warm_start=np.zeros(small.problem.n_weights))
    with pytest.raises(ValueError, match="slots"):
        solve(small.problem, "eg", warm_start=DualPoint.of_scores(np.zeros(3)))
    with pytest.raises(ValueError, match="slots"):
        solve(small.problem, "eg", tol=0.1, warm_start=solve(other.problem, "eg", tol=0.1))
    smooth = Small("chain-tied", "log").problem
    with pytest.raises(ValueError, match="weights of shape"):
        solve(smooth, "eg", warm_start=np.zeros(2))
    with pytest.raises(ValueError, match="not finite"):
        solve(smooth, "eg", warm_start=np.full(smooth.n_weights, np.nan))


@pytest.mark.parametrize(
    "options",
    [
        {"step_size": "large"},
        {"step_size": 0.0},
        {"step_size": np.inf},
        {"order": "sorted"},
        {"start": "warm"},
        {"growth": 0.9},
        {"sharpness": -1.0},
        {"check_every": 0},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        EG(**options)


def test_passes_count_every_trial():
    small = Small("chain-tied", "log", l2=0.05)
    solver = EG(initial_step=1.0, sharpness=1.0)
    with pytest.warns(ConvergenceWarning):
        result = solve(small.problem, solver, tol=1e-12, max_passes=3, random_state=0)
    # three epochs would be 3 passes; halved steps are visits too
    assert result.passes >= 3
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    solver.step(small.problem, state)
    assert state.visits > small.dense.n


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_weak_penalties_do_not_bring_examples_to_a_standstill(n_jobs):
    """Early steps put examples on a single labelling; rounding once shrank their next steps to 1e-17."""
    bank = make_treebank(300, seed=0)
    sentences = [list(zip(words, tags, strict=True)) for words, tags in zip(bank.words, bank.tags, strict=True)]
    tagger = SequenceTagger(template="chunk", solver="eg", C=1e4, tol=1e-6, n_jobs=n_jobs, random_state=0)
    run = tagger.fit(sentences, bank.chunks).result_
    assert run.status == "converged"
    assert run.passes < 250
