"""Batch exponentiated gradient (EG), both forms: step sizes and their search, divergence, warm starts, memory use."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import batch_step
from partwise import DivergenceError, Problem, solve
from partwise.problem.dual_points import DualPoint
from partwise.solvers import EG, EGBatch, EGPrimal
from partwise.solvers.engine.state import pack

BOTH = [EGBatch, EGPrimal]
LOSSES = ("log", "hinge", "softmax-margin", "smoothed-hinge")


def start(solver, small: Small):
    return solver.init_state(small.problem, np.random.default_rng(0), None)


@pytest.mark.parametrize("solver", BOTH)
class TestSteps:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_search_never_lets_the_dual_fall(self, solver, loss):
        small = Small("chain-tied", loss, l2=0.3, plain=True)
        made = solver()
        state = start(made, small)
        duals, steps, trials = [state.dual], [], []
        for _ in range(60):
            before = state.visits
            made.step(small.problem, state)
            duals.append(state.dual)
            steps.append(state.step_size)
            trials.append((state.visits - before) // small.dense.n)
        assert np.all(np.diff(duals) >= -1e-10)
        assert max(steps) > 3 * state.safe_step  # the search finds that the theorem's step is cautious
        assert state.visits == small.dense.n * (1 + sum(trials))  # the start and every trial count

    @pytest.mark.parametrize("loss", ["log", "hinge"])
    def test_refused_steps_are_counted_and_halved(self, solver, loss):
        small = Small("chain-tied", loss, l2=0.3, plain=True)
        made = solver()
        state = start(made, small)
        state.step_size, state.safe_step = (1.0 if loss == "log" else 1e3), 1e-3
        first, dual = state.step_size, state.dual
        made.step(small.problem, state)
        trials = state.visits // small.dense.n - 1
        assert trials > 1
        assert not state.doubling
        assert state.step_size == pytest.approx(first * 0.5 ** (trials - 1) * made.growth)
        assert state.dual >= dual

    def test_steps_that_theory_allows_are_not_refused(self, solver):
        """Rounding may make the dual seem to fall at the optimum. Steps within the theorem's bound are accepted."""
        small = Small("chain-tied", "log", plain=True)
        result = solve(small.problem, solver(), tol=0.0, max_passes=1500)
        assert result.status == "max_passes"
        assert result.relative_gap < 1e-12

    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_theorems_step_is_within_its_bound(self, solver, loss):
        small = Small("chain-tied", loss, plain=True)
        step, safe = solver(step_size="theorem").step_sizes(small.problem)
        assert batch_step(small.dense) / 10 <= step <= batch_step(small.dense) * (1 + 1e-12)
        assert step <= safe

    def test_examples_of_weight_zero_have_no_influence(self, solver):
        small = Small("chain-tied", "log", plain=True)
        omega = np.array([0.0, 1.0, 2.0, 0.0, 0.5])
        loud = int(np.argmax(small.problem.sums.psi2_bounds(np.arange(5))))
        omega[loud] = 0.0
        problem = Problem(small.case.features, small.structure, small.case.gold, "log", 0.7, sample_weight=omega)
        bounds = problem.sums.psi2_bounds(problem.active)
        assert solver(step_size="theorem").step_sizes(problem)[0] == pytest.approx(
            1 / (1 + omega.sum() * max(bounds) / 0.7)
        )
        result = solve(problem, solver(), tol=1e-6)
        assert problem.dual_value(result.dual_point) == pytest.approx(result.dual, abs=1e-9)

    @pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan, "large", "adaptive"])
    def test_bad_steps(self, solver, bad):
        with pytest.raises(ValueError, match="step_size must be"):
            solver(step_size=bad)

    @pytest.mark.parametrize("bad", [{"start": "warm"}, {"sharpness": -1.0}, {"growth": 0.5}, {"check_every": 0}])
    def test_bad_options(self, solver, bad):
        with pytest.raises(ValueError, match=next(iter(bad))):
            solver(**bad)


@pytest.mark.parametrize("solver", [*BOTH, EG])
class TestDivergence:
    def test_a_constant_step_that_is_too_large(self, solver):
        small = Small("chain-tied", "hinge", l2=0.01)
        with pytest.raises(DivergenceError, match=r"step_size=50\.0; take a smaller one"):
            solve(small.problem, solver(step_size=50.0), tol=1e-3, random_state=0)

    @pytest.mark.parametrize("limit", [{"max_passes": 3}, {"callback": lambda progress: progress.epoch == 2}])
    def test_a_diverging_run_that_ends_early_is_an_error(self, solver, limit):
        small = Small("chain-tied", "hinge", l2=0.01)
        with pytest.raises(DivergenceError, match="has not come back at the end"):
            solve(small.problem, solver(step_size=50.0), tol=1e-3, random_state=0, **limit)

    @pytest.mark.parametrize(("loss", "step"), [("log", 1e200), ("log", 1e308), ("hinge", 1e308)])
    def test_overflow_is_an_error(self, solver, loss, step):
        small = Small("multiclass", loss, l2=1e-3)
        with pytest.raises(DivergenceError):
            solve(small.problem, solver(step_size=step), tol=1e-3, max_passes=50, random_state=0)

    def test_a_constant_step_that_is_small_enough(self, solver):
        small = Small("chain-tied", "log", l2=2.0)
        step = EGBatch(step_size="theorem").step_sizes(small.problem)[0]
        assert solve(small.problem, solver(step_size=step), tol=1e-4, random_state=0, max_passes=5000).converged


@pytest.mark.parametrize("loss", LOSSES)
class TestWarmStarts:
    def test_from_another_form(self, loss):
        """A result of one form starts the other: slot scores, or z and k, are converted without loss where possible."""
        small = Small("chain-tied", loss)
        tol = 1e-6 if small.loss.smooth else 1e-2
        cold = solve(small.problem, EGPrimal(), tol=tol)
        for solver in (EG(), EGBatch(), EGPrimal()):
            again = solve(small.problem, solver, tol=tol * 1.01, random_state=0, warm_start=cold)
            assert again.passes <= 3
            state = solver.init_state(small.problem, np.random.default_rng(0), cold.dual_point)
            assert state.dual == pytest.approx(cold.dual, abs=1e-9)

    def test_from_weights(self, loss):
        small = Small("chain-tied", loss)
        weights = solve(small.problem, tol=1e-2, random_state=0).weights
        for solver in (EGBatch(), EGPrimal()):
            if small.loss.smooth:
                state = solver.init_state(small.problem, np.random.default_rng(0), weights)
                assert state.dual == pytest.approx(small.problem.dual_value(small.problem.oracle_point(weights)))
            else:
                with pytest.raises(ValueError, match="temperature 0 starts from"):
                    solve(small.problem, solver, warm_start=weights)
        if small.loss.smooth:
            with pytest.raises(ValueError, match="weights of shape"):
                solve(small.problem, EGPrimal(), warm_start=DualPoint.of_linear(np.zeros(2), 0.0))


class TestLinearPoints:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("kind", ["multiclass", "chain-untied", "python"])
    def test_their_dual_is_that_of_their_scores(self, kind, loss, rng):
        small = Small(kind, loss)
        z = rng.normal(size=small.problem.n_weights)
        for k in (0.0, -3.0, 0.7):
            scores = small.problem.sums.linear_scores(z, k)
            expected = np.concatenate(
                [m @ z + k * c for m, c in zip(small.dense.matrices, small.dense.cost, strict=True)]
            )
            for one, two, example in zip(
                small.case.split(scores), small.case.split(expected), small.dense.examples, strict=True
            ):
                np.testing.assert_allclose(example.counts @ one, example.counts @ two, atol=1e-12)
            point = DualPoint.of_linear(z, k)
            assert small.problem.dual_value(point) == pytest.approx(
                small.dense.dual(small.distributions(scores)), abs=1e-10
            )
            assert small.problem.dual_value(point) == pytest.approx(
                small.problem.dual_value(DualPoint.of_scores(scores)), abs=1e-12
            )

    def test_without_their_arrays(self):
        with pytest.raises(ValueError, match="lacks"):
            Small("multiclass", "log").problem.dual_terms(DualPoint("linear"))


def test_the_memory_of_the_primal_form_does_not_grow_with_the_data():
    small = Small("chain-tied", "log", n=5)
    arrays, _ = pack(start(EGPrimal(), small))
    assert all(len(array) == small.problem.n_weights for array in arrays.values())


_MEMORY = """
import sys
from pathlib import Path

import numpy as np
from partwise import Problem, get_solver
from partwise.features import multiclass_map
from partwise.structures import Multiclass
from partwise.cli.output import peak_memory

rng = np.random.default_rng(0)
n, labels = 20_000, 320
structure = Multiclass(n, labels)
gold = structure.encode(rng.integers(labels, size=n))
problem = Problem(multiclass_map(structure, rng.normal(size=(n, 2))), structure, gold, "log", 10.0)
solver = get_solver(sys.argv[1])
Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
before = peak_memory()
state = solver.init_state(problem, rng, None)
for _ in range(2):
    solver.step(problem, state)
solver.certificate(problem, state)
print((peak_memory() - before) / (8 * structure.slot_offsets()[-1]))
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="memory is read from /proc")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer takes memory of its own")
@pytest.mark.parametrize(("solver", "least", "most"), [("eg-primal", 0.0, 0.2), ("eg-batch", 1.0, 3.5)])
def test_memory_in_numbers_a_slot(solver, least, most):
    """Measured by the system, so that the core's memory counts. The limit is in numbers per slot."""
    command = [sys.executable, "-W", "ignore", "-c", _MEMORY, solver]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert least <= float(done.stdout) <= most
