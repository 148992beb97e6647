"""The core's line searches over clique marginals have the iterates of enumeration, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from oracles.problems import make_case
from oracles.sdca_reference import Lines
from partwise import _core

LOSSES = ["log", "softmax-margin", "smoothed-hinge"]
CHAINS = ["chain-tied", "chain-tied-ends", "chain-untied", "chain-masked"]


class State:
    """The arrays that sdca_line_epoch updates in place."""

    def __init__(self, case, loss, scores, l2, line_tol=1e-9):
        self.objective, self.structure = case.objective(loss), case.structure
        self.cliques = _core.cliques_of_scores(self.structure, scores)
        self.counts, self.entropies = _core.read_cliques(self.structure, self.cliques)
        self.weights = self.objective.dual_terms_slots(self.counts, None, self.entropies)[0] / l2
        self.gaps, self.steps = np.zeros(case.n), np.full(case.n, 0.5)
        self.options, self.l2 = _core.SdcaLineOptions(l2=l2, line_tol=line_tol), l2

    def run(self, order):
        names = ("weights", "cliques", "counts", "entropies", "gaps", "steps")
        state = _core.SdcaLineState(self.objective, **{name: getattr(self, name) for name in names})
        return _core.sdca_line_epoch(state, np.array(order, dtype=np.int64), self.options)

    def dual(self):
        u, b = self.objective.dual_terms_slots(*_read(self.structure, self.cliques))
        return b - u @ u / (2 * self.l2)


def _read(structure, cliques):
    counts, entropies = _core.read_cliques(structure, cliques)
    return counts, None, entropies


def start(case, scale, rng):
    return np.concatenate([scale * rng.normal(size=e.counts.shape[1]) * e.used for e in case.examples])


@pytest.mark.parametrize("l2", [0.01, 0.5, 100.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", CHAINS)
def test_iterates(kind, loss, l2, rng):
    case = make_case(kind, seed=41, n=4)
    scores = start(case, 1.5, rng)
    state = State(case, loss, scores, l2)
    problem = case.dense(loss, l2)
    gibbs = [e.probabilities(s) for e, s in zip(case.examples, case.split(scores), strict=True)]
    lines = Lines(problem, [Lines.marginals_of(e, p) for e, p in zip(case.examples, gibbs, strict=True)])
    np.testing.assert_allclose(state.cliques, np.concatenate(lines.marginals), atol=1e-12)
    visits = [0, 3, 1, 0, 3, 1, 3]  # example 2 has no weight
    for i in visits:
        before = state.dual()
        report = state.run([i])
        lines.visit(i)
        assert report.visits == 1
        assert report.dual_gain == pytest.approx(state.dual() - before, rel=1e-6, abs=1e-10)
        if not lines.gaps[-1] < 1e-4:  # otherwise the maximum is flat, and rounding decides where SciPy's search ends
            assert state.steps[i] == pytest.approx(lines.steps[-1], abs=1e-5)
        if np.isfinite(lines.gaps[-1]):
            assert state.gaps[i] == pytest.approx(lines.gaps[-1], rel=1e-4, abs=1e-7)
        assert state.dual() >= before - 1e-12 * (1 + abs(before))
    np.testing.assert_allclose(state.cliques, np.concatenate(lines.marginals), atol=1e-5)
    np.testing.assert_allclose(state.weights, lines.weights(), atol=1e-5 / min(l2, 1.0))
    assert state.dual() == pytest.approx(lines.dual(), rel=1e-6)
    assert state.run([2]).visits == 0


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "graph"])
def test_the_search_ends_where_the_slope_is_zero(kind, rng):
    """The search ends where the slope of the dual, by differences, is zero; starts are nearly uniform to extreme."""
    case = make_case(kind, seed=7, n=4)
    for scale, l2 in ((0.1, 1.0), (3.0, 0.05), (12.0, 2.0), (12.0, 1e-3)):
        state = State(case, "log", start(case, scale, rng), l2)
        for i in (0, 1, 3, 0):
            old = state.cliques.copy()
            state.run([i])
            step = state.steps[i]
            if not 0 < step < 1 - 1e-6:  # the slope was zero at once, or the whole way was taken
                assert state.gaps[i] < 1e-9 or step > 0
                continue
            way = (state.cliques - old) / step

            def dual_at(g, state=state, old=old, way=way):
                u, b = state.objective.dual_terms_slots(*_read(state.structure, old + g * way))
                return b - u @ u / (2 * state.l2)

            apart = 1e-5 * min(step, 1 - step)
            slope = (dual_at(step + apart) - dual_at(step - apart)) / (2 * apart)
            first = (dual_at(1e-7) - dual_at(0.0)) / 1e-7
            assert first > 0 or np.abs(way).max() < 1e-6
            assert abs(slope) <= 1e-5 * (1.0 + abs(first)), (scale, l2, i)


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "graph"])
def test_a_loose_search_never_lowers_the_dual(kind, rng):
    case = make_case(kind, seed=9, n=4)
    for scale, l2 in ((0.1, 1.0), (3.0, 0.05), (12.0, 2.0), (12.0, 1e-4)):
        state = State(case, "log", start(case, scale, rng), l2, line_tol=0.1)
        dual = state.dual()
        for _ in range(12):
            trials = 0
            for i in (0, 1, 3):
                trials += state.run([i]).trials
                now = state.dual()
                assert now >= dual - 1e-11 * (1 + abs(dual))
                dual = now


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "chain-masked", "graph"])
def test_entropy_along_a_line(kind, rng):
    """A sweep's value, slope and curvature equal the entropy, its gradient and differences of the gradient."""
    case = make_case(kind, seed=3, n=3)
    one, two = (_core.cliques_of_scores(case.structure, start(case, 2.0, rng)) for _ in range(2))
    starts = _core.clique_starts(case.structure)
    for i in range(case.n):
        part = slice(starts[i], starts[i + 1])
        m, d = one[part], two[part] - one[part]

        def entropy(g, i=i, m=m, d=d):
            return case.structure.entropy_of_cliques(i, m + g * d)[0]

        for step in (0.1, 0.5, 0.9):
            value, slope, curvature = _core.entropy_along(case.structure, i, m, d, step)
            assert value == pytest.approx(entropy(step), abs=1e-10)
            gradient = case.structure.entropy_of_cliques(i, m + step * d)[1]
            assert slope == pytest.approx(float(gradient @ d), rel=1e-8, abs=1e-9)
            by_differences = approx_fprime(
                np.array([step]), lambda g, i=i, m=m, d=d: case.structure.entropy_of_cliques(i, m + g[0] * d)[1] @ d
            )[0]
            assert curvature == pytest.approx(by_differences, rel=1e-4, abs=1e-6)
