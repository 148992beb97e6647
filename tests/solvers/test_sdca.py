"""Dual coordinate ascent by exact blocks and by lines: suitable problems, starts, sampling, the optimum."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers.small_problems import Small
from partwise import MaxentClassifier, Problem, _core, get_solver, solve
from partwise.features import LinearMap, multiclass_map
from partwise.problem.dual_points import DualPoint
from partwise.problem.penalties import ElasticNet
from partwise.solvers import SDCA, suitable_solvers
from partwise.solvers.dual.sdca import BlockState, LineState
from partwise.solvers.online.base import drawn_by_gap
from partwise.structures import Multiclass


def test_sdca_fits_structures_with_cliques():
    for kind in ("multiclass", "chain-tied", "chain-untied", "graph"):
        assert "sdca" in suitable_solvers(Small(kind, "log").problem)
    for kind, loss in (("projective", "log"), ("multiclass", "hinge"), ("python", "log"), ("segments", "log")):
        assert "sdca" not in suitable_solvers(Small(kind, loss).problem)
    with pytest.raises(ValueError, match="'sdca' needs cliques"):
        solve(Small("projective", "log").problem, "sdca")


def test_exact_blocks_where_labellings_are_single_parts():
    def form(problem, **options):
        return SDCA(**options).init_state(problem, np.random.default_rng(0), None)

    assert isinstance(form(Small("multiclass", "log").problem), BlockState)
    assert isinstance(form(Small("multiclass", "log").problem, exact_blocks=False), LineState)
    assert isinstance(form(Small("chain-tied", "log").problem), LineState)
    assert isinstance(form(Small("graph", "log").problem), LineState)


def test_lines_where_features_are_shared_between_labels():
    structure = Multiclass(2, 8)
    gold = structure.encode(np.array([0, 5]))
    # Eight slots are two rows of four. If both rows have an attribute, slots a and a + 4 share its weight.
    layout = _core.RowLayout.dense(2, 4, 4)
    for attributes, exact in ((np.array([0, 1, 1, 0]), True), (np.array([0, 1, 1, 1]), False)):
        rows = _core.AttributeSegment(layout, np.array([0, 2, 4]), np.arange(5), attributes)
        problem = Problem(LinearMap([rows]), structure, gold, "log", 1.0)
        state = SDCA().init_state(problem, np.random.default_rng(0), None)
        assert isinstance(state, BlockState) == exact
        results = [solve(problem, solver, tol=1e-9) for solver in ("sdca", "lbfgs")]
        assert results[0].primal == pytest.approx(results[1].primal, rel=1e-8)


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("l2", [0.01, 1.0])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
def test_the_optimum_is_scipys(kind, loss, l2):
    small = Small(kind, loss, l2=l2, n=12 if kind == "multiclass" else 5)
    result = solve(small.problem, "sdca", tol=1e-13, random_state=0)
    found = minimize(
        small.dense.primal,
        np.zeros(small.problem.n_weights),
        jac=small.dense.gradient,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert result.status == "converged"
    assert result.primal == pytest.approx(found.fun, rel=1e-8)


@pytest.mark.parametrize("skip", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("order", ["random", "permuted", "cyclic"])
@pytest.mark.parametrize("start", ["gold", "uniform"])
def test_every_combination_converges_with_a_rising_dual(skip, order, start):
    small = Small("multiclass", "log", l2=0.05, n=30)
    solver = SDCA(skip=skip, order=order, start=start, check_every=1)
    result = solve(small.problem, solver, tol=1e-9, random_state=0)
    assert result.status == "converged"
    assert np.all(np.diff(result.history["dual"]) >= -1e-12 * abs(result.dual))


@pytest.mark.parametrize("share", [0.0, 0.8, 0.95])
@pytest.mark.parametrize("order", ["random", "permuted", "cyclic"])
@pytest.mark.parametrize("start", ["gold", "uniform"])
def test_lines_converge_with_a_rising_dual(share, order, start):
    small = Small("chain-tied", "log", l2=0.1, n=8)
    solver = SDCA(gap_share=share, order=order, start=start, check_every=1)
    result = solve(small.problem, solver, tol=1e-8, random_state=0)
    assert result.status == "converged"
    assert np.all(np.diff(result.history["dual"]) >= -1e-11 * abs(result.dual))


def test_visits_are_drawn_by_gap(rng):
    """An example gets n ((1 - uniform) gap / sum + uniform / n) visits, rounded up or down, and that on average."""
    examples = np.array([1, 2, 4, 5, 8, 9])
    gaps = np.array([0.0, 5.0, 1.0, 1.0, 2.0, 1.0])
    chances = 6 * (0.8 * gaps / 10.0 + 0.2 / 6)
    total = np.zeros(6)
    for _ in range(400):
        order = drawn_by_gap(examples, gaps, 0.2, rng)
        counts = np.array([(order == i).sum() for i in examples])
        assert counts.sum() == 6
        assert np.all(np.abs(counts - chances) < 1)
        total += counts
    np.testing.assert_allclose(total / 400, chances, atol=0.1)


def test_gaps_of_the_state_are_those_of_the_examples(rng):
    """The first example's gap, seen as a pass begins, is at most the certificate's gap at the same weights."""
    small = Small("chain-tied", "log", l2=0.5)
    solver = SDCA(order="cyclic")
    state = solver.init_state(small.problem, rng, None)
    solver.step(small.problem, state)
    certificate = solver.certificate(small.problem, state).certificate
    solver.step(small.problem, state)
    first = small.problem.active[0]
    assert 0 < state.gaps[first] <= certificate.gap
    assert state.gaps.sum() == pytest.approx(certificate.gap, rel=0.8)
    assert np.all(state.gaps[small.problem.sample_weight == 0] == 0)


@pytest.mark.parametrize("options", [{"exact_blocks": True}, {"exact_blocks": False}])
def test_a_resumed_run_of_either_form_has_the_same_bits(options, tmp_path):
    problem, solver = Small("multiclass", "log", n=12).problem, SDCA(**options)
    unbroken = solve(problem, solver, tol=0, max_passes=30)
    path = tmp_path / "run"
    solve(problem, solver, tol=0, max_passes=12, checkpoint=path)
    resumed = solve(problem, solver, tol=0, max_passes=30, checkpoint=path)
    np.testing.assert_array_equal(resumed.weights, unbroken.weights)


def test_gap_sampling_saved_and_on_several_batches(tmp_path):
    case, solver = Small("chain-tied", "log", n=6), SDCA(gap_share=0.8)
    unbroken = solve(case.problem, solver, tol=0, max_passes=9)
    path = tmp_path / "run"
    solve(case.problem, solver, tol=0, max_passes=4, checkpoint=path)
    resumed = solve(case.problem, solver, tol=0, max_passes=9, checkpoint=path)
    np.testing.assert_array_equal(resumed.weights, unbroken.weights)


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize(("kind", "exact"), [("multiclass", True), ("multiclass", False), ("chain-tied", True)])
def test_elastic_nets(kind, exact, loss):
    """The optimum is that of `eg`, the dual rises in every pass as reported, and w = soft(u, l1) / l2 holds."""
    small = Small(kind, loss, n=8)
    problem, solver = small.problem.with_penalty(ElasticNet(0.1, 0.4)), SDCA(exact_blocks=exact)
    mine, other = (solve(problem, s, tol=1e-7, max_passes=4000) for s in (solver, "eg"))
    assert abs(mine.primal - other.primal) <= 1e-6 * mine.primal
    primal = small.dense.loss_sum(mine.weights) + problem.penalty_value(mine.weights)
    assert primal == pytest.approx(mine.primal, rel=1e-10)
    assert 0 < np.count_nonzero(mine.weights) < 0.95 * len(mine.weights)
    state = solver.init_state(problem, np.random.default_rng(0), None)
    dual = state.dual
    for _ in range(8):
        solver.step(problem, state)
        u, b = problem.dual_terms(solver.dual_point(problem, state))
        now = problem.dual_as_it_is(u, b)
        assert state.dual == pytest.approx(now, rel=1e-3)  # lines: up to the second order of the last steps
        assert now >= dual - 1e-10 * abs(dual)
        dual = now
        np.testing.assert_allclose(state.plane, u, atol=1e-10)
        np.testing.assert_allclose(state.weights, problem.weights_of_plane(u), atol=1e-10)


@pytest.mark.parametrize("exact", [True, False])
def test_a_saved_run_with_an_elastic_net(exact, tmp_path):
    problem = Small("multiclass", "log", n=12).problem.with_penalty(ElasticNet(0.1, 0.4))
    solver, path = SDCA(exact_blocks=exact), tmp_path / "run"
    unbroken = solve(problem, solver, tol=0, max_passes=25)
    solve(problem, solver, tol=0, max_passes=11, checkpoint=path)
    resumed = solve(problem, solver, tol=0, max_passes=25, checkpoint=path)
    np.testing.assert_array_equal(resumed.weights, unbroken.weights)


def test_skipping_examples_saves_visits(rng):
    X = rng.normal(size=(300, 5))
    y = np.argmax(X[:, :3], axis=1)
    structure = Multiclass(300, 3)
    problem = Problem(multiclass_map(structure, X), structure, structure.encode(y), "log", 0.01)
    passes = [solve(problem, SDCA(skip=skip), tol=1e-4, random_state=0).passes for skip in (0.0, 0.5)]
    assert passes[1] < 0.7 * passes[0]


def test_warm_starts_save_passes():
    small = Small("multiclass", "log", l2=0.05, n=20)
    cold = solve(small.problem, "sdca", tol=1e-8, random_state=0)
    for warm in (cold, cold.dual_point, cold.weights, solve(small.problem, "lbfgs", tol=1e-12)):
        again = solve(small.problem, "sdca", tol=1e-8, random_state=0, warm_start=warm)
        assert again.converged
        assert again.passes <= 0.5 * cold.passes


def test_warm_starts_of_lines_save_passes():
    small = Small("chain-tied", "log", l2=0.05, n=6)
    cold = solve(small.problem, "sdca", tol=1e-8, random_state=0)
    assert cold.dual_point.kind == "cliques"
    for warm in (cold, cold.dual_point, cold.weights, solve(small.problem, "eg", tol=1e-10)):
        again = solve(small.problem, "sdca", tol=1e-8, random_state=0, warm_start=warm)
        assert again.converged
        assert again.passes <= 0.5 * cold.passes
    with pytest.raises(ValueError, match="clique marginals given"):
        solve(Small("chain-tied", "log", n=4).problem, "sdca", warm_start=cold.dual_point)
    doubled = DualPoint.of_cliques(2.0 * cold.dual_point.marginals)
    with pytest.raises(ValueError, match="clique marginals of example 0 are not those of a distribution"):
        solve(small.problem, "sdca", warm_start=doubled)


def test_clique_marginals_of_a_state_are_checked():
    small = Small("chain-tied", "log")
    solver = get_solver("sdca")
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    state.cliques *= 1.1
    with pytest.raises(ValueError, match="clique marginals of example 0 are not those of a distribution"):
        solver.certificate(small.problem, state)


def test_a_start_with_extreme_weights_converges():
    small = Small("multiclass", "log", l2=1.0)
    far = np.tile([1e4, -1e4, 1e4, 0.0], small.problem.n_weights // 4)
    result = solve(small.problem, "sdca", tol=1e-8, warm_start=far)
    assert result.converged


_MEMORY = """
import numpy as np
from partwise import Problem, solve
from partwise.features import Attributes, RowLayout, multiclass_map
from partwise.structures import Multiclass
from partwise._core import padded_width

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

rng = np.random.default_rng(0)
n, labels, attributes = 50_000, 200, 500
y = rng.integers(labels, size=n)
row_ptr = np.arange(0, 4 * n + 1, 4)
rows = Attributes(row_ptr, rng.integers(attributes, size=4 * n), attributes)
layout = RowLayout.observed(attributes, labels, padded_width(labels), row_ptr, rows.attributes, y, 1)
structure = Multiclass(n, labels)
problem = Problem(multiclass_map(structure, rows, layout=layout), structure, structure.encode(y), "log", 1.0)
before = peak()
result = solve(problem, "sdca", tol=0.9, max_passes=3)
assert result.passes >= 1 and len(result.history["gap"]) >= 1
print((peak() - before) / (8 * structure.slot_offsets()[-1]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer takes memory of its own")
def test_memory_is_two_numbers_per_slot():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _MEMORY], capture_output=True, text=True, check=True)
    assert 1.5 < float(done.stdout) < 2.5


@pytest.mark.parametrize(
    "options",
    [
        {"start": "warm"},
        {"sharpness": 1e3},
        {"skip": -1.0},
        {"skip": np.nan},
        {"longest_rest": -1},
        {"gap_share": 1.0},
        {"gap_share": np.nan},
        {"line_tol": 0.0},
        {"line_tol": 1.0},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SDCA(**options)


@pytest.mark.parametrize(("solver", "loss"), [("sdca", "log"), ("smo-eg", "hinge"), ("smo", "hinge")])
def test_too_many_cliques_are_refused_before_they_are_made(solver, loss, monkeypatch):
    problem = Small("chain-tied", loss).problem
    needed = 8 * int(problem.sums.clique_starts[-1]) / 2**20
    options = {"form": "cliques"} if solver == "smo" else {}
    solve(problem, get_solver(solver, memory_mb=1.001 * needed, **options), tol=1e-2)
    for name in ("cliques_of_scores", "in_memory"):  # methods that would make the cliques
        monkeypatch.setattr(type(problem.sums), name, None)
    with pytest.raises(ValueError, match=f"{solver} would keep .* MB of clique marginals, more than memory_mb="):
        get_solver(solver, memory_mb=0.999 * needed, **options).init_state(problem, np.random.default_rng(0), None)
    with pytest.raises(ValueError, match="memory_mb must be a number above 0"):
        get_solver(solver, memory_mb=0.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_free_intercept_for_rows_without_features(seed):
    """The curvature of rows without features is the intercept's alone, which changes with the pull on the intercept."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3)) * (rng.random((12, 3)) < 0.4)
    X[0] = 0.0
    model = MaxentClassifier(solver="sdca", penalize_intercept=False, tol=1e-9, max_passes=1000)
    assert model.fit(X, np.arange(12) % 3).result_.converged
