"""cutting-plane (one slack per example): iterates, constraints, memory, options."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles import cutting_planes as figures
from partwise import ConvergenceWarning, MaxentClassifier, solve
from partwise.solvers import CuttingPlane


def states(solver, problem, steps):
    state = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(steps):
        solver.step(problem, state)
        yield state


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "spanning"])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_the_same_iterates_as_the_figure(kind, epsilon):
    small = Small(kind, "hinge", ties=False, l2=2.0)
    solver = CuttingPlane(epsilon=epsilon, accuracy=1e-12, max_rounds=5000, idle=10_000)
    for state, expected in zip(
        states(solver, small.problem, 5), figures.n_slack(small.dense, epsilon + 1e-9), strict=False
    ):
        np.testing.assert_allclose(state.weights, expected.weights, atol=2e-5)
        assert state.violation == pytest.approx(expected.violation, abs=1e-4)
        assert state.sets.num_atoms == sum(map(len, expected.sets))


def test_violations_within_epsilon_add_nothing():
    small = Small("chain-tied", "hinge", n=10)
    solver = CuttingPlane(epsilon=0.5, accuracy=1e-9, max_rounds=5000)
    *_, state = states(solver, small.problem, 60)
    kept = state.sets.num_atoms
    assert state.violation <= 0.5
    solver.step(small.problem, state)
    assert state.sets.num_atoms == kept
    # Tsochantaridis et al. 2005, after Algorithm 1: slacks, and so the objective, are accurate to epsilon per example.
    certificate = solver.certificate(small.problem, state).certificate
    assert certificate.gap <= 0.5 * small.case.sample_weight.sum() + 1e-6


def test_the_dual_never_falls():
    problem = Small("chain-tied", "hinge", n=10, l2=0.2).problem
    result = solve(problem, CuttingPlane(check_every=1), tol=1e-3)
    assert result.converged
    assert np.all(np.diff(result.history["dual"]) >= -1e-9)
    assert set(result.history) >= {"violation", "constraints"}
    # The best weights so far are returned.
    assert np.all(np.diff(result.history["primal"]) <= 1e-9)


def test_little_memory():
    problem = Small("chain-tied", "hinge", n=20).problem
    result = solve(problem, CuttingPlane(memory_mb=0.01), tol=2e-2, max_passes=3000)
    assert result.converged
    assert "times merged to stay within memory_mb" in result.message


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"accuracy": 0.0},
        {"max_rounds": 0},
        {"steps": 0},
        {"idle": 0},
        {"memory_mb": -1.0},
        {"check_every": 0},
    ],
)
def test_bad_settings(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        CuttingPlane(**options)


def test_a_warm_start_from_another_solvers_labellings_saves_passes():
    problem = Small("chain-tied", "hinge", n=20, l2=0.1).problem
    cold = solve(problem, "cutting-plane", tol=1e-2)
    warm = solve(problem, "cutting-plane", tol=1e-2, warm_start=solve(problem, "bcfw", tol=1e-2))
    assert warm.converged
    assert warm.passes < cold.passes


@pytest.mark.parametrize("seed", [2, 12, 47, 61])
def test_steps_do_not_change_the_mass_of_an_example(seed):
    """After thousands of small steps (equal rows with different labels), the mass of each example is still 1."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(1, 2)), 3, axis=0) if seed % 2 else np.ones((3, 1))
    problem = MaxentClassifier(loss="hinge", C=1 / 9e-5).prepare(X, rng.permutation(4)[:3]).problem
    result = solve(problem, "cutting-plane", tol=1e-4)
    _, mass = result.dual_point.active.expected_counts(problem.slot_offsets)
    np.testing.assert_allclose(mass, 1.0, rtol=0.0, atol=2e-15)


def test_it_stops_at_its_own_criterion():
    """A pass that adds no constraint and hardly raises the dual ends the run. It used to go on to max_passes."""
    rng = np.random.default_rng(0)
    problem = MaxentClassifier(loss="hinge").prepare(rng.normal(size=(20, 4)), rng.integers(0, 3, 20)).problem
    with pytest.warns(ConvergenceWarning, match=r"no constraint is violated by more than epsilon=0.1"):
        result = solve(problem, CuttingPlane(epsilon=0.1), tol=1e-9)
    assert result.status == "stalled"
    assert result.passes <= 10
    assert result.history["violation"][-1] <= 0.1
    # Tsochantaridis et al. 2005, after Algorithm 1: slacks, and so the objective, are accurate to epsilon per example.
    assert result.gap <= 0.1 * problem.n_examples
