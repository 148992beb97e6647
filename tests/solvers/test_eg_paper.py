"""The compiled online EG agrees with the figures and lemmas of Collins et al. 2008 (theorems: `test_theorems`)."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.eg_figures import kl, online_eg, online_steps, part_eg
from partwise._core import EgOptions, EgState, eg_epoch
from partwise.solvers import EG

LOSSES = ("log", "hinge", "softmax-margin", "smoothed-hinge")
EXACT = 1e-10


def start(small: Small, solver: EG):
    return solver.init_state(small.problem, np.random.default_rng(0), None)


def visit(small: Small, state, order, adaptive=False, max_step=np.inf):
    names = ("weights", "scores", "marginals", "entropies", "step_sizes")
    return eg_epoch(
        EgState(small.problem.sums.in_memory()[0].native, **{name: getattr(state, name) for name in names}),
        np.asarray(order, dtype=np.int64),
        EgOptions(l2=small.problem.l2, adaptive=adaptive, max_step=max_step),
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "chain-masked"])
class TestFigures:
    def test_figures_2_and_3_with_the_theorems_step(self, kind, loss, rng):
        small = Small(kind, loss, l2=2.0, plain=True)
        state = start(small, EG(step_size="theorem", start="uniform"))
        order = rng.integers(0, small.dense.n, 25)
        parts, w, *_ = part_eg(small.dense, small.case.split(state.scores.copy()), state.step_sizes, order)
        us = online_eg(small.dense, small.distributions(state.scores), state.step_sizes, order)[-1]
        report = visit(small, state, order)
        np.testing.assert_allclose(state.scores, np.concatenate(parts), atol=1e-11)
        np.testing.assert_allclose(state.weights, w, atol=1e-12)
        np.testing.assert_allclose(state.marginals, small.dense.slots(us), atol=1e-12)
        np.testing.assert_allclose(state.entropies, small.dense.entropies(us), atol=1e-12)
        assert (report.visits, report.rejected) == (len(order), 0)

    def test_section_7_with_adaptive_steps(self, kind, loss, rng):
        small = Small(kind, loss, l2=0.1, plain=True)
        state = start(small, EG(sharpness=2.0, initial_step=4.0))
        state.step_sizes[:] = 4.0
        order = rng.integers(0, small.dense.n, 25)
        parts, w, steps, visits, rejected = part_eg(
            small.dense, small.case.split(state.scores.copy()), state.step_sizes, order, adaptive=True
        )
        before = small.dense.dual(small.distributions(state.scores))
        report = visit(small, state, order, adaptive=True)
        np.testing.assert_allclose(state.scores, np.concatenate(parts), atol=1e-8)
        np.testing.assert_allclose(state.weights, w, atol=1e-8)
        np.testing.assert_allclose(state.step_sizes, steps, rtol=1e-12)
        assert (report.visits, report.rejected) == (visits, rejected)
        assert rejected > 0
        after = small.dense.dual(small.distributions(state.scores))
        assert report.dual_gain == pytest.approx(after - before, abs=1e-8)
        assert after > before

    def test_equation_19_at_every_step(self, kind, loss, rng):
        """D[u_i || u_i'] / eta <= Q(u) - Q(u') (Lemma 2 on one block), with the example's weight on both sides."""
        small = Small(kind, loss, l2=2.0, plain=True)
        state = start(small, EG(step_size="theorem", start="uniform"))
        furthest = 0.0
        for k in rng.integers(0, small.dense.n, 40):
            us = small.distributions(state.scores)
            eta = state.step_sizes[k]
            gain = visit(small, state, [k]).dual_gain
            new = small.distributions(state.scores)
            assert gain == pytest.approx(small.dense.dual(new) - small.dense.dual(us), abs=EXACT)
            moved = kl(us, new, small.dense.sample_weight)
            assert gain >= moved / eta - EXACT
            furthest = max(furthest, moved)
        assert furthest > 1e-3  # a solver that stands still would satisfy the inequality too

    def test_the_theorems_step_is_within_its_bound(self, kind, loss):
        small = Small(kind, loss, l2=2.0, plain=True)
        steps = EG(step_size="theorem").step_sizes(small.problem)
        assert np.all(steps <= online_steps(small.dense) * (1 + 1e-12))
        assert np.all(steps >= online_steps(small.dense) / 10)  # the bound of |psi|^2 is not much too large


def test_larger_steps_break_equation_19(rng):
    """The inequality of equation 19 can fail: with a far larger step the dual falls."""
    small = Small("chain-tied", "hinge", l2=0.05, plain=True)
    state = start(small, EG(step_size="theorem", start="uniform"))
    state.step_sizes *= 1000
    gains = [visit(small, state, [k]).dual_gain for k in rng.integers(0, small.dense.n, 40)]
    assert min(gains) < -1e-3
