"""Options of online EG: calibration of the first step, annealed penalties, several runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import part_eg
from partwise import ConvergenceWarning, Problem, solve
from partwise._core import EgOptions, EgState, eg_epoch
from partwise.problem.dual_points import DualPoint
from partwise.solvers import EG
from partwise.solvers.dual.base import MONOTONE, calibrate, draw_sample, improving_share


def fresh(problem: Problem, **options):
    solver = EG(**options)
    return solver, solver.init_state(problem, np.random.default_rng(3), None)


def kernel_state(small: Small, state, copy=False):
    """The arrays of a solver's state (or copies) in the form that the core takes."""
    names = ("weights", "scores", "marginals", "entropies", "step_sizes")
    arrays = {name: getattr(state, name) for name in names}
    copies = {name: array.copy() for name, array in arrays.items()}
    return EgState(small.problem.sums.in_memory()[0].native, **(copies if copy else arrays))


class TestCalibration:
    @pytest.mark.parametrize("loss", ["log", "hinge"])
    def test_the_share_is_that_of_the_transcription(self, loss):
        """The share of sampled examples whose first trial raises the dual is that of Figure 3 with this one step."""
        small = Small("chain-tied", loss, l2=0.05, n=12, plain=True)
        sample = np.array([7, 2, 9, 0, 4, 11])
        _, state = fresh(small.problem, sharpness=6.0)
        part = replace(
            small.dense,
            **{
                name: [getattr(small.dense, name)[i] for i in sample]
                for name in ("examples", "matrices", "gold", "cost")
            },
            sample_weight=small.dense.sample_weight[sample],
        )
        start = [small.case.split(state.scores)[i] for i in sample]
        us = [e.probabilities(s) for e, s in zip(part.examples, start, strict=True)]
        shares = []
        for step in (10.0, 1.0, 0.3, 0.1):
            _, _, steps, visits, _ = part_eg(
                part, start, np.full(6, step), range(6), adaptive=True, growth=1.0, accept=lambda gain: gain >= -1e-12
            )
            expected = float(np.mean(steps == step))
            before = state.scores.copy(), state.marginals.copy(), state.entropies.copy()
            plane = small.problem.plane_of_weights(part.weights(us))
            share, visited = improving_share(
                small.problem, sample, step, plane, state.scores, state.marginals, state.entropies
            )
            assert (share, visited) == (expected, visits)
            for now, then in zip((state.scores, state.marginals, state.entropies), before, strict=True):
                np.testing.assert_array_equal(now, then)
            shares.append(share)
        assert min(shares) < max(shares)  # the steps tried include good and bad ones

    @pytest.mark.parametrize("loss", ["log", "hinge", "smoothed-hinge"])
    def test_calibration_finds_the_first_step_that_is_good_enough(self, loss):
        small = Small("chain-tied", loss, l2=0.02, n=60)
        solver, state = fresh(small.problem, sharpness=1.0)
        least = solver.least_step(small.problem)
        arrays = state.scores, state.marginals, state.entropies
        step, visits = calibrate(small.problem, *arrays, least, np.random.default_rng(1))
        sample = draw_sample(small.problem, np.random.default_rng(1))
        assert len(sample) == 20  # at least 20 examples, although a tenth of 60 is 6
        us = small.distributions(state.scores)
        rows = [small.dense.sample_weight[i] * (us[i] @ small.dense.psi(i)) for i in sample]
        plane = sum(rows)
        trials, tried = [], min(max(1.0, least), 1 / small.loss.temperature if small.loss.smooth else 1e3)
        while tried >= step:
            trials.append(improving_share(small.problem, sample, tried, plane, *arrays))
            tried /= 2
        assert [share >= MONOTONE for share, _ in trials] == [False] * (len(trials) - 1) + [True]
        assert len(trials) > 1
        assert visits == sum(visited for _, visited in trials)

    def test_calibration_stops_at_a_step_that_all_examples_accept(self):
        small = Small("chain-tied", "hinge", l2=1e-3, n=30)
        solver, state = fresh(small.problem, start="uniform")
        arrays = state.scores, state.marginals, state.entropies
        least = solver.least_step(small.problem)
        plane = small.problem.plane_of_weights(state.weights)
        share, _ = improving_share(small.problem, small.problem.active, least, plane, *arrays)
        assert share == 1.0
        step, _ = calibrate(small.problem, *arrays, 0.9, np.random.default_rng(0))
        assert step >= 0.9

    def test_calibration_visits_count_and_the_run_converges(self):
        small = Small("chain-tied", "log", n=60)
        _, state = fresh(small.problem, initial_step="calibrate")
        assert state.visits >= 20
        assert np.all(state.step_sizes == state.step_sizes[0])
        result = solve(small.problem, EG(initial_step="calibrate"), tol=1e-6, random_state=0)
        assert result.converged

    def test_examples_of_weight_zero_are_not_sampled(self):
        small = Small("chain-tied", "log", n=40)
        omega = np.where(np.arange(40) % 2, 1.0, 0.0)
        problem = Problem(small.case.features, small.structure, small.case.gold, "log", 0.7, sample_weight=omega)
        sample = draw_sample(problem, np.random.default_rng(0))
        assert sorted(sample) == list(range(1, 40, 2))


class TestAnnealing:
    def test_the_papers_schedule(self):
        """Collins et al. 2008, section 7.1.1: C = 10 for t <= 5 and 1 + 9 * 0.7^(t - 5) after, with target 1."""
        solver = EG(anneal=10.0)
        assert [1 + solver.excess(t) for t in range(1, 6)] == [10.0] * 5
        assert [1 + solver.excess(t) for t in (6, 9, 20)] == pytest.approx([1 + 9 * 0.7 ** (t - 5) for t in (6, 9, 20)])
        assert solver.excess(60) == 0.0  # exactly, not only nearly
        assert EG().excess(1) == 0.0

    @pytest.mark.parametrize("loss", ["log", "hinge"])
    def test_the_first_passes_equal_a_run_with_the_larger_penalty(self, loss):
        small, larger = Small("chain-tied", loss, l2=0.1), Small("chain-tied", loss, l2=1.0)
        one, annealed = fresh(small.problem, anneal=10.0, anneal_hold=3)
        two, plain = fresh(larger.problem)
        for _ in range(3):
            one.step(small.problem, annealed)
            two.step(larger.problem, plain)
            np.testing.assert_allclose(annealed.scores, plain.scores, rtol=1e-12)
            assert annealed.dual == pytest.approx(plain.dual, rel=1e-12)
        # The next pass after `anneal_hold` passes has a smaller penalty.
        one.step(small.problem, annealed)
        assert annealed.excess == pytest.approx(9 * 0.7)

    @pytest.mark.parametrize("hold", [0, 1, 5])
    def test_anneal_hold_is_the_number_of_passes_before_the_fall(self, hold):
        small = Small("chain-tied", "log", l2=0.1)
        solver, state = fresh(small.problem, anneal=10.0, anneal_hold=hold, anneal_rate=0.5)
        seen = []
        for _ in range(hold + 2):
            solver.step(small.problem, state)
            seen.append(state.excess)
        assert seen == [9.0] * hold + [4.5, 2.25]

    @pytest.mark.parametrize("loss", ["log", "hinge"])
    def test_weights_and_dual_follow_the_penalty(self, loss):
        small = Small("chain-tied", loss, l2=0.1)
        solver, state = fresh(small.problem, anneal=10.0, anneal_hold=2, anneal_rate=0.5)
        for epoch in range(16):
            solver.step(small.problem, state)
            l2 = 0.1 * (1 + (9 * 0.5 ** max(0, epoch - 1) if epoch <= 14 else 0.0))
            us = small.distributions(state.scores)
            dense = replace(small.dense, l2=l2)
            np.testing.assert_allclose(state.weights, dense.weights(us), atol=1e-10)
            assert state.dual == pytest.approx(dense.dual(us), abs=1e-9)
            # Certificates and callbacks are about the problem's own l2.
            np.testing.assert_allclose(solver.weights(small.problem, state), small.dense.weights(us), atol=1e-10)
            certificate, weights, _ = solver.certificate(small.problem, state)
            assert certificate.dual == pytest.approx(small.dense.dual(us), abs=1e-9)
            assert certificate.primal == pytest.approx(small.dense.primal(weights), rel=1e-10)

    @pytest.mark.parametrize("step_size", ["adaptive", "theorem"])
    def test_annealing_converges_to_the_same_optimum(self, step_size):
        small = Small("chain-tied", "log", l2=0.5)
        result = solve(small.problem, EG(anneal=10.0, step_size=step_size), tol=1e-6, random_state=0, max_passes=5000)
        other = solve(small.problem, "lbfgs", tol=1e-10)
        assert result.converged
        assert abs(result.primal - other.primal) <= result.gap + other.gap

    def test_annealing_saves_passes_from_the_uniform_start(self):
        small = Small("chain-tied", "log", l2=0.005, n=40)
        passes = {}
        for anneal in (1.0, 30.0):
            solver = EG(anneal=anneal, start="uniform")
            passes[anneal] = solve(small.problem, solver, tol=1e-3, random_state=0, max_passes=20_000).passes
        assert passes[30.0] < 0.9 * passes[1.0]


class TestRuns:
    @pytest.mark.parametrize(("delta", "runs"), [(1.0, 1), (0.5, 1), (0.25, 2), (0.1, 4), (2.0**-7, 7)])
    def test_delta_sets_the_number_of_runs(self, delta, runs):
        assert EG(delta=delta).runs == runs

    @pytest.mark.parametrize("order", ["random", "permuted"])
    def test_runs_are_independent_and_the_best_counts(self, order):
        small = Small("chain-tied", "log", l2=0.3)
        options = {"order": order, "start": "uniform", "step_size": "theorem"}
        solver, state = fresh(small.problem, delta=0.1, **options)
        single = EG(**options)
        chains = [single.init_state(small.problem, np.random.default_rng(0), None) for _ in range(4)]
        rng = np.random.default_rng(3)
        for _ in range(7):
            solver.step(small.problem, state)
            for chain in chains:
                order = single.draw_order(small.problem, rng)
                eg_epoch(kernel_state(small, chain), order, EgOptions(l2=small.problem.l2, adaptive=False))
        np.testing.assert_array_equal(state.scores, np.concatenate([chain.scores for chain in chains]))
        duals = [small.problem.dual_value(DualPoint.of_scores(chain.scores)) for chain in chains]
        assert len(set(duals)) == 4
        np.testing.assert_allclose(state.duals, duals, atol=1e-10)
        certificate, weights, point = solver.certificate(small.problem, state)
        assert certificate.dual == pytest.approx(max(duals), abs=1e-10)
        assert small.problem.dual_value(point) == pytest.approx(max(duals), abs=1e-10)
        np.testing.assert_allclose(weights, solver.weights(small.problem, state), atol=1e-10)
        assert state.visits == 7 * 4 * len(small.problem.active)

    def test_with_everything_else(self, tmp_path):
        """Calibration, annealing, several runs and recomputed weights together: a resumed run has the same bits."""
        small = Small("chain-tied", "log", l2=0.2, n=30)
        solver, path = EG(delta=0.25, anneal=5.0, initial_step="calibrate"), tmp_path / "run.ckpt"
        whole = solve(small.problem, solver, tol=1e-6, random_state=0)
        with pytest.warns(ConvergenceWarning):
            solve(small.problem, solver, tol=1e-6, random_state=0, max_passes=30, checkpoint=path)
        resumed = solve(small.problem, solver, tol=1e-6, checkpoint=path)
        np.testing.assert_array_equal(resumed.weights, whole.weights)
        assert resumed.converged


@pytest.mark.parametrize(
    "options",
    [
        {"initial_step": 0.0},
        {"initial_step": -1.0},
        {"initial_step": "guess"},
        {"anneal": 0.5},
        {"anneal": np.inf},
        {"anneal_hold": -1},
        {"anneal_rate": 1.0},
        {"delta": 0.0},
        {"delta": 1.5},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        EG(**options)


def test_every_trial_is_a_visit():
    """Passes are effective iterations: visits are the examples of each pass plus the refused steps."""
    small = Small("chain-tied", "log", l2=0.05)
    solver, state = fresh(small.problem, initial_step=1.0, sharpness=1.0)
    refused = 0
    for _ in range(5):
        copies = kernel_state(small, state, copy=True)
        rng = np.random.default_rng()
        rng.bit_generator.state = state.rng.bit_generator.state
        order = solver.draw_order(small.problem, rng)
        refused += eg_epoch(copies, order, EgOptions(l2=0.05, adaptive=True, max_step=1.0)).rejected
        solver.step(small.problem, state)
        assert state.visits == (state.epoch) * len(small.problem.active) + refused
    assert refused > 0
