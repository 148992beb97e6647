"""extragradient: iterates, the theorem's bound, steps, options."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.excessive_gap import spread
from oracles.extragradient import extragradient
from oracles.problems import make_case
from partwise import ConvergenceWarning, DivergenceError, Problem, solve
from partwise.features import slot_map
from partwise.solvers import Extragradient


def states(solver, problem, steps):
    state = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(steps):
        solver.step(problem, state)
        yield state


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "projective", "graph"])
def test_the_same_iterates_as_the_figure(kind):
    small = Small(kind, "hinge", l2=2.0)
    solver = Extragradient(step_rule="theorem")
    first = solver.init_state(small.problem, np.random.default_rng(0), None)
    steps = extragradient(small.dense, first.step_size, first.prox)
    for state, (w, mean_w, mean_p) in zip(states(solver, small.problem, 25), steps, strict=False):
        np.testing.assert_allclose(state.weights, w, atol=1e-9)
        np.testing.assert_allclose(state.mean_weights, mean_w, atol=1e-9)
        np.testing.assert_allclose(state.mean_u, small.dense.direction(mean_p), atol=1e-9)
        assert state.mean_b == pytest.approx(small.dense.linear_part(mean_p), abs=1e-9)


@pytest.mark.parametrize("rule", ["theorem", "adaptive"])
@pytest.mark.parametrize("balance", [0.3, 10.0])
def test_the_gap_is_within_the_bound(rule, balance):
    """Taskar et al. 2006: P(mean w) - D(mean alpha) <= (a/2 |w(mean alpha)|^2 + sum omega log |Y|) / sum of steps."""
    small = Small("chain-tied", "hinge", l2=0.5)
    problem = small.problem
    for state in states(Extragradient(step_rule=rule, balance=balance), problem, 40):
        gap = problem.value(state.mean_weights) - problem.dual_of_plane(state.mean_u, state.mean_b)
        other = problem.weights_of_plane(state.mean_u)
        bound = (0.5 * state.prox * problem.norm2(other) + spread(small.dense)) / state.total
        assert -1e-9 <= gap <= bound + 1e-9


def test_adaptive_steps_are_longer():
    problem = Small("chain-tied", "hinge", l2=0.3, n=10).problem
    passes = [
        solve(problem, Extragradient(step_rule=rule), tol=2e-2, max_passes=20_000).passes
        for rule in ("adaptive", "theorem")
    ]
    assert passes[0] < 0.5 * passes[1]


def test_a_wrong_psi2_bound_is_reported(monkeypatch):
    problem = Small("chain-tied", "hinge", l2=0.01).problem
    monkeypatch.setattr("partwise.solvers.dual.extragradient.psi2_bounds", lambda p: np.full(p.n_examples, 1e-9))
    with pytest.raises(DivergenceError, match="psi2_bound is not a bound"):
        solve(problem, Extragradient(step_rule="theorem", balance=1e-3), tol=1e-3)


@pytest.mark.parametrize(
    "options", [{"step_rule": "fast"}, {"balance": 0.0}, {"balance": float("inf")}, {"check_every": 0}]
)
def test_bad_settings(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        Extragradient(**options)


def test_threads_do_not_change_a_bit():
    small = Small("chain-tied", "hinge", n=40)
    runs = [solve(small.problem.with_n_jobs(n), "extragradient", tol=5e-2) for n in (1, 2)]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].gap == runs[1].gap


@pytest.mark.parametrize("seed", [142, 214, 233])
def test_examples_with_one_labelling_break_no_step(seed):
    """Expected counts that differ from 1 by rounding change u, and under a tiny penalty w changes by much more."""
    case = make_case("grammar", seed, 2, plain=True)
    assert [len(example) for example in case.examples] == [1, 1]
    rows = 0.04 * np.random.default_rng(seed).normal(size=(int(case.structure.slot_offsets()[-1]), 3))
    features = slot_map(case.structure, rows, uses=3, parts=16)
    problem = Problem(features, case.structure, case.gold, "hinge", 1e-8)
    with pytest.warns(ConvergenceWarning):
        assert solve(problem, "extragradient", tol=1e-12, max_passes=30).primal <= 1e-12
