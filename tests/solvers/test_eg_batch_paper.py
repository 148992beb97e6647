"""The compiled batch EG, in both forms, has the iterates of the papers' figures (theorems: `test_theorems`).

The papers are Collins et al. 2008 and Bartlett et al. 2004.
"""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import batch_eg, kl
from oracles.large_margin_figures import figure_3, figure_5, figure_5_weights, log_loss_twin
from partwise import solve
from partwise.solvers import EGBatch, EGPrimal

LOSSES = ("log", "hinge", "softmax-margin", "smoothed-hinge")
KINDS = ("multiclass", "chain-tied", "chain-untied", "python")
EXACT = 1e-9  # allowance for rounding: every inequality below holds in exact arithmetic


def start(small: Small, solver):
    return solver.init_state(small.problem, np.random.default_rng(0), None)


def walk(small: Small, solver, n_steps: int):
    """Yield the solver's states, beginning with the first. Each must be read before the next step."""
    state = start(small, solver)
    yield state
    for _ in range(n_steps):
        solver.step(small.problem, state)
        yield state


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
class TestFigures:
    def test_figure_1_of_collins_2008(self, kind, loss):
        small = Small(kind, loss, l2=2.0, plain=True)
        solver = EGBatch(step_size="theorem", start="uniform")
        step, _ = solver.step_sizes(small.problem)
        expected = batch_eg(small.dense, small.distributions(start(small, solver).scores), 5 * step, 25)
        faster = EGBatch(step_size=5 * step, start="uniform")
        for state, us in zip(walk(small, faster, 25), expected, strict=True):
            for p, u in zip(small.distributions(state.scores), us, strict=True):
                np.testing.assert_allclose(p, u, atol=1e-11)
            np.testing.assert_allclose(state.u, small.dense.direction(us), atol=1e-10)
            assert state.b == pytest.approx(small.dense.linear_part(us), abs=1e-10)
            assert state.dual == pytest.approx(small.dense.dual(us), abs=1e-10)

    @pytest.mark.parametrize("step_size", ["theorem", "search"])
    @pytest.mark.parametrize("first", ["uniform", "gold"])
    def test_both_forms_have_the_same_iterates(self, kind, loss, step_size, first):
        small = Small(kind, loss, l2=1.0, plain=True)
        options = {"step_size": step_size, "start": first, "sharpness": 2.0}
        batch, primal = EGBatch(**options), EGPrimal(**options)
        # The search takes steps that make the scores of the hinge large, and with them their rounding.
        n_steps = 50 if step_size == "theorem" else 20
        for one, two in zip(walk(small, batch, n_steps), walk(small, primal, n_steps), strict=True):
            np.testing.assert_allclose(
                small.distributions(small.problem.sums.linear_scores(two.z, two.cost_scale))[0],
                small.distributions(one.scores)[0],
                atol=1e-9,
            )
            np.testing.assert_allclose(two.u, one.u, atol=1e-9)
            assert two.b == pytest.approx(one.b, abs=1e-9)
            assert (two.step_size, two.visits) == (one.step_size, one.visits)
        a, b = batch.certificate(small.problem, one), primal.certificate(small.problem, two)
        assert b.certificate.gap == pytest.approx(a.certificate.gap, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
class TestFiguresOfBartlett2004:
    """Bartlett et al. 2004: the paper's C is 1 / l2, its step times C is the solvers' step, all weights are 1."""

    def test_figure_3(self, kind):
        small = Small(kind, "hinge", l2=2.0, weighted=False, plain=True)
        eta = 0.3
        solver = EGBatch(step_size=eta / 2.0, start="uniform")
        expected = figure_3(small.dense, small.case.split(start(small, solver).scores), eta, 20)
        for state, scores in zip(walk(small, solver, 20), expected, strict=True):
            np.testing.assert_allclose(state.scores, np.concatenate(scores), atol=1e-11)

    def test_figure_5(self, kind):
        small = Small(kind, "hinge", l2=2.0, weighted=False, plain=True)
        eta, l2 = 0.3, 2.0
        zs = figure_5(small.dense, eta, 21)
        weights = figure_5_weights(small.dense, eta, zs)
        for t, state in enumerate(walk(small, EGPrimal(step_size=eta / l2, start="uniform"), 20)):
            np.testing.assert_allclose(state.z, eta / l2**2 * zs[t], atol=1e-11)
            assert state.cost_scale == pytest.approx(eta / l2 * t)
            np.testing.assert_allclose(state.u / l2, weights[t], atol=1e-11)

    def test_figure_5_as_printed_is_another_method(self, kind):
        small = Small(kind, "hinge", l2=2.0, weighted=False, plain=True)
        right, printed = (figure_5(small.dense, 0.3, 200, as_printed=wrong) for wrong in (False, True))
        ends = [small.dense.primal(figure_5_weights(small.dense, 0.3, zs)[-1]) for zs in (right, printed)]
        best = solve(small.problem, "bcfw", tol=1e-3, random_state=0)
        assert ends[0] <= best.dual * 1.05
        assert ends[1] > best.primal * 1.1

    def test_the_log_loss_twin(self, kind):
        small = Small(kind, "log", l2=2.0, plain=True)
        zs = log_loss_twin(small.dense, 0.05, 30)
        for state, z in zip(walk(small, EGPrimal(step_size=0.05, start="uniform"), 30), zs, strict=True):
            np.testing.assert_allclose(state.z, z, atol=1e-11)
            assert state.cost_scale == 0


@pytest.mark.parametrize("solver", [EGBatch, EGPrimal])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("kind", "seed", "weighted"),
    [("multiclass", 1, True), ("chain-tied", 2, False), ("chain-untied", 3, True), ("chain-masked", 4, True)],
)
class TestSearch:
    """Steps that were found by search satisfy Corollary 1 and Theorem 1 too (the theorem's step: `test_theorems`)."""

    @staticmethod
    def distributions(small: Small, state):
        scores = (
            state.scores if hasattr(state, "scores") else small.problem.sums.linear_scores(state.z, state.cost_scale)
        )
        return small.distributions(scores)

    def test_searched_steps_satisfy_theorem_1(self, solver, loss, kind, seed, weighted):
        """KL(z || u^1) / (eta_1 + ... + eta_T) bounds D of the optimum minus D, and is below that of the start."""
        small = Small(kind, loss, l2=0.5, seed=seed, weighted=weighted, plain=True)
        best = solve(small.problem, "eg", tol=1e-7 if small.loss.smooth else 1e-2, max_passes=20_000, random_state=0)
        omega, made = small.dense.sample_weight, solver(sharpness=2.0)
        z = small.distributions(best.dual_point.scores)
        state = start(small, made)
        us, total = self.distributions(small, state), 0.0
        start_divergence, lacking = kl(z, us, omega), small.dense.dual(z) - small.dense.dual(us)
        for _ in range(60):
            tried = state.visits
            before, step = us, state.step_size
            made.step(small.problem, state)
            step *= 0.5 ** ((state.visits - tried) // small.dense.n - 1)  # each further trial had half the step
            total += step
            us = self.distributions(small, state)
            gain = small.dense.dual(us) - small.dense.dual(before)
            assert gain >= kl(before, us, omega) / step - EXACT
            assert small.dense.dual(z) - small.dense.dual(us) <= start_divergence / total + EXACT
        assert total > 60 * state.safe_step
        assert start_divergence / total < 0.9 * lacking
