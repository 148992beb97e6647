"""smo and smo-eg have the iterates of their transcriptions, and the dual never falls."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles import smo_reference as reference
from oracles.enumerate import Enumeration
from partwise import get_solver, solve
from partwise.problem.dual_points import DualPoint
from partwise.solvers.dual.smo import TOLERANCE
from partwise.solvers.engine.point_conversions import gibbs_scores

WITH_CLIQUES = ("multiclass", "chain-tied", "chain-untied", "graph")


def entries(small: Small) -> list[np.ndarray]:
    """Return the clique entries that each labelling uses, as the structure states them."""

    def of(i: int, example: Enumeration) -> np.ndarray:
        found = []
        for counts in example.counts:
            slots = np.flatnonzero(counts)
            found.append(small.structure.clique_entries(i, slots, counts[slots]))
        return np.array(found).reshape(len(example), -1)

    return [of(i, example) for i, example in enumerate(small.dense.examples)]


SEEDS = range(6)


def compare(small: Small, solver, expected: reference.SmoState, check) -> int:
    """Compare epochs until scores tie, where each program may choose. Return the number of steps compared."""
    state = solver.init_state(small.problem, np.random.default_rng(4), None)
    rng, steps = np.random.default_rng(4), 0
    for _ in range(15):
        solver.step(small.problem, state)
        reference.epoch(expected, solver.draw_order(small.problem, rng))
        if expected.tied:
            break
        np.testing.assert_allclose(state.weights, expected.weights, atol=1e-9)
        assert state.dual == pytest.approx(sum(expected.gains), abs=1e-9)
        check(state)
        steps = len(expected.gains)
    return steps


@pytest.mark.parametrize("order", ["cyclic", "permuted"])
@pytest.mark.parametrize("kind", WITH_CLIQUES)
def test_the_factored_form(kind, order):
    compared = 0
    for seed in SEEDS:
        small = Small(kind, "hinge", l2=0.3, ties=False, plain=True, seed=seed)
        expected = reference.start(small.dense, entries(small))
        sizes = [int(small.structure.clique_offsets(i)[-1]) for i in range(small.dense.n)]

        def check(state, small=small, expected=expected, sizes=sizes):
            for q, mine in zip(expected.blocks, np.split(state.cliques, np.cumsum(sizes)[:-1]), strict=True):
                np.testing.assert_allclose(mine[: len(q)], q, atol=1e-9)
            point = DualPoint.of_cliques(state.cliques)
            assert state.dual == pytest.approx(small.problem.dual_value(point), abs=1e-9)

        compared += compare(small, get_solver("smo", form="cliques", order=order), expected, check)
    assert compared > 50


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "python", "projective"])
def test_the_form_with_labellings(kind):
    compared = 0
    for seed in SEEDS:
        small = Small(kind, "hinge", l2=0.3, ties=False, plain=True, seed=seed)
        expected = reference.start(small.dense)

        def check(state, expected=expected):
            kept = state.sets.to_arrays()["coefficients"]
            masses = np.concatenate(expected.blocks)
            np.testing.assert_allclose(np.sort(kept[kept > 0]), np.sort(masses[masses > 1e-12]), atol=1e-9)

        compared += compare(small, get_solver("smo", form="labellings"), expected, check)
    assert compared > 50


@pytest.mark.parametrize("form", ["cliques", "labellings"])
@pytest.mark.parametrize("kind", WITH_CLIQUES)
def test_the_dual_never_falls_and_its_gain_is_true(kind, form):
    small = Small(kind, "hinge", l2=0.05)
    solver = get_solver("smo", form=form)
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    last = 0.0
    for _ in range(60):
        solver.step(small.problem, state)
        certified = solver.certificate(small.problem, state)
        assert certified.certificate.dual == pytest.approx(state.dual, abs=1e-9)
        assert state.dual >= last - 1e-10
        np.testing.assert_allclose(state.weights, certified.weights, atol=1e-9)
        last = state.dual
        if form == "cliques":
            assert state.cliques.min() >= 0.0


@pytest.mark.parametrize("kind", WITH_CLIQUES)
def test_no_plateau_below_the_optimum(kind):
    """Both forms of smo reach the optimum of bcfw."""
    small = Small(kind, "hinge", l2=0.1)
    best = solve(small.problem, "bcfw", tol=1e-6, max_passes=5000)
    for form in ("cliques", "labellings"):
        found = solve(small.problem, get_solver("smo", form=form), tol=1e-4, max_passes=5000)
        assert found.converged
        assert found.dual <= best.primal
        assert found.primal - best.dual <= found.gap + best.gap


class TestHybrid:
    @pytest.mark.parametrize("kind", WITH_CLIQUES)
    def test_smo_eg_makes_smo_passes_and_then_eg_passes(self, kind):
        small = Small(kind, "hinge", l2=0.3)
        hybrid = get_solver("smo-eg", smo_passes=4)
        mine = hybrid.init_state(small.problem, np.random.default_rng(2), None)
        theirs = hybrid.first.init_state(small.problem, np.random.default_rng(2), None)
        for _ in range(4):
            hybrid.step(small.problem, mine)
            hybrid.first.step(small.problem, theirs)
            for name in ("weights", "cliques", "gaps"):
                np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
            assert not mine.switched
            assert (mine.visits, mine.dual) == (theirs.visits, theirs.dual)
        point = DualPoint.of_cliques(theirs.cliques)
        converted = gibbs_scores(small.problem, point, tolerance=TOLERANCE)
        eg = hybrid.second.init_state(small.problem, theirs.rng, DualPoint.of_scores(converted.scores.copy()))
        assert eg.dual == pytest.approx(theirs.dual, abs=1e-2 * (1 + abs(theirs.dual)))
        visits = theirs.visits + converted.inferences
        for _ in range(5):
            hybrid.step(small.problem, mine)
            hybrid.second.step(small.problem, eg)
            for name in ("weights", "scores", "marginals", "entropies", "step_sizes", "duals"):
                np.testing.assert_array_equal(getattr(mine, name), getattr(eg, name))
            assert mine.switched
            assert mine.visits == visits + eg.visits

    def test_warm_starts(self):
        small = Small("chain-tied", "hinge")
        for first in ("eg", "bcfw", "excessive-gap", "smo", "smo-eg"):
            earlier = solve(small.problem, first, tol=1e-2, random_state=0)
            for second in ("smo", "smo-eg"):
                solver = get_solver(second)
                state = solver.init_state(small.problem, np.random.default_rng(0), earlier)
                blocks = small.problem.dual_value(earlier.dual_point.with_blocks())
                assert state.dual == pytest.approx(blocks, abs=1e-2 * earlier.primal)
                assert solve(small.problem, solver, tol=2e-2, warm_start=earlier, random_state=0).converged


class TestOptions:
    def test_refusals(self):
        with pytest.raises(ValueError, match="form must be one of auto, cliques, labellings, got 'x'"):
            get_solver("smo", form="x")
        with pytest.raises(ValueError, match="memory_mb must be a number above 0"):
            get_solver("smo", memory_mb=0.0)
        with pytest.raises(ValueError, match="smo_passes must be at least 0, got -1"):
            get_solver("smo-eg", smo_passes=-1)
        small = Small("projective", "hinge")
        with pytest.raises(ValueError, match="form 'cliques' needs clique support, which ProjectiveTree does not have"):
            solve(small.problem, get_solver("smo", form="cliques"))
        with pytest.raises(ValueError, match="solver 'smo-eg' needs clique support and cliques"):
            solve(small.problem, "smo-eg")
        chain = Small("chain-tied", "hinge")
        with pytest.raises(ValueError, match="weights alone do not give them"):
            solve(chain.problem, "smo", warm_start=np.zeros(chain.problem.n_weights))

    def test_form_auto_uses_cliques_if_the_structure_has_them(self):
        for kind, cliques in (("chain-tied", True), ("projective", False)):
            small = Small(kind, "hinge")
            state = get_solver("smo").init_state(small.problem, np.random.default_rng(0), None)
            assert (state.sets is None) == cliques
        chain = Small("chain-tied", "hinge").problem
        state = get_solver("smo", memory_mb=1e-6).init_state(chain, np.random.default_rng(0), None)
        assert state.sets is not None
