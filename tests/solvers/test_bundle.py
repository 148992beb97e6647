"""one-slack and bmrm: iterates, inequalities, the inner problem, memory, states."""

from __future__ import annotations

import warnings
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.cut_problems import cut
from helpers.small_problems import Small
from oracles import cutting_planes as figures
from partwise import ConvergenceWarning, DivergenceError, MaxentClassifier, Problem, solve
from partwise.solvers import BMRM, Checkpoint, OneSlack, choose, suitable_solvers
from partwise.solvers.planes import simplex_qp as qp
from partwise.solvers.planes.bundle import Bundle
from partwise.solvers.planes.simplex_qp import QPError, best_mixture, optimality


def states(solver, problem, steps):
    """Yield the state after each of `steps` steps."""
    state = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(steps):
        solver.step(problem, state)
        yield state


@pytest.mark.parametrize(
    ("cls", "loss", "kind"),
    [
        (OneSlack, "hinge", "chain-tied"),
        (OneSlack, "hinge", "projective"),
        (OneSlack, "squared-hinge", "multiclass"),
        (BMRM, "hinge", "multiclass"),
        (BMRM, "log", "chain-tied"),
        (BMRM, "smoothed-hinge", "multiclass"),
    ],
)
@pytest.mark.parametrize("mix", [1.0, 0.3])
def test_the_same_iterates_as_the_figures(cls, loss, kind, mix):
    small = Small(kind, loss, ties=False, l2=2.0)
    steps = figures.bundle_method(small.dense, zero_plane=cls is OneSlack, mix=mix)
    for state, step in zip(states(cls(mix=mix), small.problem, 7), steps, strict=False):
        assert state.model == pytest.approx(step.model, abs=1e-8)
        assert state.primal == pytest.approx(step.primal, rel=1e-7)
        np.testing.assert_allclose(state.weights, step.weights, atol=1e-6)


@pytest.mark.parametrize("loss", ["log", "hinge", "squared-hinge", "softmax-margin"])
@pytest.mark.parametrize("mix", [1.0, 0.1])
def test_the_model_rises_and_stays_below(loss, mix):
    """Kelley's inequalities J_m <= J_(m+1) <= P hold, and every plane lies below the losses everywhere."""
    small = Small("chain-tied", loss, l2=0.3)
    best = solve(small.problem, tol=1e-5, max_passes=5000).primal
    rng = np.random.default_rng(0)
    last = -np.inf
    for state in states(BMRM(mix=mix, idle=1000), small.problem, 30):
        assert last - 1e-9 <= state.model <= best + 1e-9
        assert state.violation >= -1e-9
        assert state.dual <= best + 1e-9 <= state.primal + 1e-4 * best
        last = state.model
    for slope, offset in zip(state.planes.slopes, state.planes.offsets, strict=True):
        for scale in (0.0, 0.1, 1.0, 10.0):
            w = scale * rng.normal(size=small.problem.n_weights)
            assert offset - slope.dot(small.problem, w) <= small.problem.sums.value(w) + 1e-9


def test_the_history_has_three_gaps(tmp_path):
    problem = Small("chain-tied", "hinge", n=10).problem
    result = solve(problem, OneSlack(mix=1.0), tol=1e-3)
    history = result.history
    assert set(history) == {"passes", "seconds", "primal", "dual", "gap", "bmrm_gap", "violation"}
    later = slice(1, None)  # the first certificate comes before the first step
    assert np.isinf(history["bmrm_gap"][0])
    assert np.isinf(history["violation"][0])
    assert np.all(history["bmrm_gap"][later] >= history["primal"][later] - history["dual"][later] - 1e-9)
    # The oracle was asked at the model's minimum, where the violation is P - J_m and P is at least the best P.
    assert np.all(history["violation"][later] >= history["bmrm_gap"][later] - 1e-8)
    assert history["bmrm_gap"][-1] <= 1.1e-3 * result.primal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = tmp_path / "run.ckpt"
        solve(problem, OneSlack(mix=1.0), tol=1e-3, max_passes=9, checkpoint=path)
    resumed = solve(problem, OneSlack(mix=1.0), tol=1e-3, checkpoint=Checkpoint(path))
    for name in set(history) - {"seconds"}:
        np.testing.assert_array_equal(resumed.history[name], history[name])


def test_best_mixture_is_optimal():
    """`best_mixture` is optimal and as good as a search of all subsets of planes, also if two slopes are equal."""
    rng = np.random.default_rng(3)
    for m, d in [(1, 3), (2, 1), (4, 6), (6, 2), (8, 4)]:
        for scale in (1e-3, 1.0, 1e4):
            slopes, offsets = scale * rng.normal(size=(m, d)), scale * scale * rng.normal(size=m)
            slopes[m // 2] = slopes[0]
            l2 = float(rng.uniform(0.1, 10))
            gram = slopes @ slopes.T
            x = best_mixture(gram, offsets, l2)
            assert x.min() >= 0
            assert x.sum() == pytest.approx(1.0, abs=1e-12)
            size = max(np.abs(gram / l2).max(), np.abs(offsets).max())
            assert optimality(gram / l2, offsets, x) <= 1e-9 * size

            def dual(y, gram=gram, offsets=offsets, l2=l2):
                return float(offsets @ y - y @ gram @ y / (2 * l2))

            assert dual(x) == pytest.approx(dual(figures.best_mixture(slopes, offsets, l2)), abs=1e-9 * size)


def test_best_mixture_of_many_planes():
    rng = np.random.default_rng(4)
    slopes = rng.normal(size=(150, 40)) * np.linspace(3, 0.1, 150)[:, None]
    slopes[75:] = slopes[:75] + 1e-7 * rng.normal(size=(75, 40))
    gram, offsets = slopes @ slopes.T, rng.uniform(size=150)
    x = best_mixture(gram, offsets, 0.5)
    assert optimality(gram / 0.5, offsets, x) <= 1e-9 * np.abs(gram).max()
    assert np.count_nonzero(x) < 150
    np.testing.assert_array_equal(x, best_mixture(gram, offsets, 0.5))


def test_equal_planes_without_slope():
    assert best_mixture(np.zeros((3, 3)), np.full(3, 2.0), 1.0).sum() == 1.0


@pytest.mark.parametrize(
    ("gram", "b", "match"),
    [
        (np.full((2, 2), np.nan), np.zeros(2), "not finite"),
        (np.eye(2), np.array([0.0, np.inf]), "not finite"),
        (np.eye(3), np.zeros(2), "inner products of shape"),
        (np.empty((0, 0)), np.empty(0), "for 0 planes"),
    ],
)
def test_a_problem_that_cannot_be_solved(gram, b, match):
    with pytest.raises(QPError, match=match):
        best_mixture(gram, b, 1.0)


def test_the_inner_accuracy_is_relaxed_if_it_is_out_of_reach(monkeypatch):
    asked, solved = [], qp._solved

    def lost_at_first(quadratic, b, scale, accuracy):
        asked.append(accuracy)
        if accuracy == qp.ACCURACIES[0]:
            return np.array([0.9, 0.1]), qp.piqp.PIQP_MAX_ITER_REACHED
        return solved(quadratic, b, scale, accuracy)

    monkeypatch.setattr(qp, "_solved", lost_at_first)
    np.testing.assert_allclose(best_mixture(np.eye(2), np.zeros(2), 1.0), 0.5, atol=1e-8)
    assert asked == [1e-12, 1e-9]


def test_a_run_says_where_the_inner_problem_failed(monkeypatch):
    class Failing:
        settings, result = SimpleNamespace(), SimpleNamespace(x=np.full(2, np.nan))

        def setup(self, *given):
            pass

        def solve(self):
            return qp.piqp.PIQP_PRIMAL_INFEASIBLE

    monkeypatch.setattr(qp.piqp, "DenseSolver", Failing)
    with pytest.raises(DivergenceError, match=r"one-slack, step 1: the best of 2 planes was not found .*infeasible"):
        solve(Small("chain-tied", "hinge").problem, "one-slack")


@pytest.mark.parametrize(
    "options", [{"mix": 0.0}, {"mix": 1.5}, {"mix": float("nan")}, {"idle": 0}, {"memory_mb": 0.0}]
)
@pytest.mark.parametrize("cls", [OneSlack, BMRM])
def test_bad_settings(cls, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        cls(**options)


@pytest.mark.parametrize("solver", [OneSlack(memory_mb=1e-3), BMRM(idle=1)])
def test_few_planes_still_converge(solver):
    """Few planes suffice: merged into a mixture, or dropped at once, they give a slower run to the same optimum."""
    problem = Small("chain-tied", "hinge", n=10, l2=3.0).problem
    result = solve(problem, solver, tol=5e-2, max_passes=3000)
    assert result.converged
    full = solve(problem, BMRM(), tol=1e-3)
    assert full.dual <= result.primal
    assert result.dual <= full.primal
    if solver.memory_mb < 1:
        assert "times merged to stay within memory_mb" in result.message


def test_sparse_slopes_give_the_same_planes():
    small = Small("chain-tied", "hinge")
    problem, rng = small.problem, np.random.default_rng(0)
    d = problem.n_weights
    bundle = Bundle(d)
    rows = rng.normal(size=(4, d)) * (rng.random((4, d)) < np.array([[0.1], [1.0], [0.1], [0.0]]))
    for u in rows:
        bundle.add(problem, u, 1.0, 0.0)
    assert [slope.places is None for slope in bundle.slopes] == [False, True, False, False]
    np.testing.assert_allclose(bundle.gram, rows @ rows.T, atol=1e-12)
    x = rng.dirichlet(np.ones(4))
    np.testing.assert_allclose(bundle.mixture(x)[0], x @ rows, atol=1e-12)
    again = Bundle(d).restored(bundle.to_arrays())
    np.testing.assert_array_equal(again.mixture(x)[0], bundle.mixture(x)[0])
    again.keep(np.array([False, True, True, False]))
    np.testing.assert_allclose(again.gram, rows[1:3] @ rows[1:3].T, atol=1e-12)


def test_inner_products_are_those_of_the_planes():
    problem, rng = Small("chain-tied", "hinge").problem, np.random.default_rng(0)
    bundle = Bundle(problem.n_weights)
    for scale in (1.0, 1e-6, 1e6, 0.0, 1.0):
        bundle.add(problem, scale * rng.normal(size=problem.n_weights), 1.0, 0.0)
    bundle.check(problem)
    for places in (0, 0), (0, 4), (2, 1), (4, 3):
        with pytest.raises(ValueError, match="inner products of its planes are not theirs"):
            changed = Bundle(problem.n_weights).restored(bundle.to_arrays())
            changed.gram[places] += 1e-6 * max(1.0, abs(changed.gram[places]))
            changed.check(problem)


def test_a_tolerance_below_rounding_ends_the_run_at_rounding():
    result = solve(Small("chain-tied", "hinge", l2=2.0).problem, OneSlack(), tol=1e-14)
    assert result.relative_gap <= 1e-9


def test_auto_chooses_it_if_only_planes_are_available():
    problem = Problem.of(cut("chain-tied", 3, (2, 3)), "squared-hinge", 1.0)
    assert {"one-slack", "bmrm"} <= set(suitable_solvers(problem))
    from helpers.kernel_maps import kernel_map

    small = Small("multiclass", "squared-hinge")
    features = kernel_map(small.case.structure, np.random.default_rng(0).normal(size=(sum(small.case.rows), 2)), "rbf")
    kernel = Problem(features, small.structure, small.case.gold, "squared-hinge", 1.0)
    assert choose(kernel).solver.name == "one-slack"
    assert solve(kernel, tol=1e-2).converged


def test_a_warm_start_saves_passes():
    problem = Small("chain-tied", "hinge", n=20, l2=0.05).problem
    cold = solve(problem, OneSlack(), tol=1e-2)
    warm = solve(problem, OneSlack(), tol=1e-2, warm_start=cold)
    assert warm.converged
    assert warm.passes < cold.passes
    assert warm.primal <= cold.primal


def test_threads_do_not_change_a_bit():
    small = Small("chain-tied", "hinge", n=40)
    runs = [solve(small.problem.with_n_jobs(n), "one-slack", tol=1e-2) for n in (1, 2)]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].gap == runs[1].gap


def test_the_state_counts_visits_and_steps():
    problem = Small("chain-tied", "hinge").problem
    (state,) = islice(states(OneSlack(), problem, 5), 4, 5)
    assert state.visits == 6 * len(problem.active)
    assert state.epoch == 5


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
@pytest.mark.parametrize("l2", [1e-4, 1e-6])
@pytest.mark.parametrize("seed", [0, 1])
def test_long_slopes_do_not_hide_short_ones(seed, l2):
    """Squared hinge, weak penalty: the first planes' slopes are many orders longer than the last planes' slopes."""
    X = np.random.default_rng(seed).normal(size=(20, 4))
    problem = MaxentClassifier(loss="squared-hinge", C=1 / l2).prepare(X, X[:, :3].argmax(axis=1)).problem
    result = solve(problem, "bmrm", tol=1e-3, max_passes=100)
    assert result.status == "max_passes"
    assert result.primal <= 0.02
