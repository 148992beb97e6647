"""excessive-gap: its settings and its starts (Algorithm 1 with other functions is tested with `partwise.methods`)."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.problems import make_case
from partwise import ConvergenceWarning, DivergenceError, MaxentClassifier, Problem, SequenceTagger, solve
from partwise.features import slot_map
from partwise.problem.dual_points import DualPoint
from partwise.problem.losses import Loss
from partwise.solvers import BCFW, ExcessiveGap
from partwise.solvers.dual.excessive_gap import steps_to


def passes_to(tol, problem, **options):
    return solve(problem, ExcessiveGap(check_every=1), tol=tol, **options).passes


@pytest.mark.parametrize("options", [{"smoothing": "fast"}, {"smoothing": 0.5}, {"check_every": 0}])
def test_bad_settings(options):
    with pytest.raises(ValueError, match=r"smoothing must be one of|check_every must be"):
        ExcessiveGap(**options)


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
def test_accurate_solutions(kind):
    small = Small(kind, "hinge", l2=2.0)
    result = solve(small.problem, ExcessiveGap(), tol=1e-6, max_passes=10_000)
    assert result.relative_gap <= 1e-6
    other = solve(small.problem, "bcfw", tol=1e-3, max_passes=20_000, random_state=0)
    # The optimum lies between each solver's dual and primal value, and |w - w*|^2 <= 2 gap / l2.
    assert other.dual <= result.primal <= other.primal + result.gap
    distance = np.linalg.norm(result.weights - other.weights)
    assert distance <= np.sqrt(2 * other.gap / 2.0) + np.sqrt(2 * result.gap / 2.0)


def test_tol_zero_reaches_double_precision():
    problem = Small("chain-tied", "hinge", l2=20.0).problem
    result = solve(problem, ExcessiveGap(check_every=100), tol=0.0, max_passes=20_000)
    assert result.relative_gap <= 1e-9
    assert np.all(result.history["gap"] >= 0)


def test_adaptive_smoothing_needs_far_fewer_steps():
    problem = Small("chain-tied", "hinge", l2=0.3).problem
    theorem = solve(problem, ExcessiveGap(smoothing="theorem"), tol=1e-2, max_passes=20_000).passes
    assert passes_to(1e-2, problem) < 0.5 * theorem


@pytest.mark.parametrize("ratio", [1e-3, 0.3, 1.0, 1.01, 7.0, 40.0, 12345.6])
def test_the_step_of_a_given_smoothing(ratio):
    """The formula gives the number of steps that counting gives, which takes too long for small smoothing."""
    k = 0
    while 6.0 * ratio / ((k + 1) * (k + 2)) > 1.0:
        k += 1
    assert steps_to(1.0 / ratio, 1.0) == k
    assert steps_to(1e-200, 1e100) == pytest.approx(np.sqrt(6) * 1e150)


def test_threads_do_not_change_a_bit():
    small = Small("chain-tied", "hinge", n=40)
    runs = [solve(small.problem.with_n_jobs(n), "excessive-gap", tol=1e-2) for n in (1, 2)]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].gap == runs[1].gap


def test_a_user_defined_loss_with_a_cost_scale_and_temperature_zero():
    small = Small("chain-tied", "hinge")
    problem = Problem(small.case.features, small.structure, small.case.gold, Loss("half", 0.0, 0.5), 1.0)
    assert solve(problem, "excessive-gap", tol=1e-3).relative_gap <= 1e-3


def test_nothing_to_learn():
    """No example has an attribute: w = 0 is the optimum, and the certificate shows it."""
    from partwise.features import Attributes, multiclass_map
    from partwise.structures import Multiclass

    structure = Multiclass(3, 3)
    rows = Attributes(np.zeros(4, dtype=np.int64), np.zeros(0, dtype=np.int64), 2)
    problem = Problem(multiclass_map(structure, rows), structure, structure.encode(np.arange(3)), "hinge", 1.0)
    result = solve(problem, "excessive-gap", tol=1e-3)
    assert result.primal == pytest.approx(3.0)
    assert not result.weights.any()


class TestStarts:
    def test_from_a_result(self):
        problem = Small("chain-tied", "hinge", l2=0.5, n=8).problem
        first = solve(problem, ExcessiveGap(), tol=1e-3)
        assert passes_to(2e-3, problem, warm_start=first) < 0.2 * passes_to(2e-3, problem)

    @pytest.mark.parametrize("smoothing", ["adaptive", "theorem"])
    def test_a_warm_start_keeps_the_excessive_gap(self, smoothing):
        problem = Small("chain-tied", "hinge", l2=0.5).problem
        first = solve(problem, ExcessiveGap(), tol=0.05)
        solver = ExcessiveGap(smoothing=smoothing)
        for start in (first, first.dual_point, first.weights):
            state = solver.init_state(problem, np.random.default_rng(0), start)
            assert not state.cold
            for _ in range(20):
                certificate = solver.certificate(problem, state).certificate
                smooth = 0.5 * problem.l2 * problem.norm2(state.weights) + state.smoothed_losses
                assert smooth - state.mu * state.spread <= certificate.dual + 1e-9  # eq. 11
                assert certificate.gap <= state.mu * state.spread + 1e-9
                solver.step(problem, state)

    @pytest.mark.parametrize("other", ["eg", "bcfw", "gibbs", "aggregate"])
    def test_from_other_solvers(self, other):
        problem = Small("chain-tied", "hinge", l2=0.5).problem
        if other == "gibbs":
            start = DualPoint.of_scores(np.zeros(problem.n_slots))
        elif other == "aggregate":
            start = solve(problem, BCFW(averaging=True), tol=1e-2, random_state=0)
        else:
            start = solve(problem, other, tol=1e-2, random_state=0)
        assert solve(problem, "excessive-gap", tol=5e-3, warm_start=start).relative_gap <= 5e-3

    def test_the_message_says_if_a_warm_start_was_useless(self):
        problem = Small("chain-tied", "hinge", l2=0.5).problem
        result = solve(problem, "excessive-gap", tol=1e-2, warm_start=np.zeros(problem.n_weights))
        assert "started cold" in result.message
        assert result.relative_gap <= 1e-2

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            (DualPoint.of_counts(np.zeros(3)), "3 slots"),
            (np.zeros(3), "weights of shape"),
        ],
    )
    def test_bad_starts(self, start, message):
        with pytest.raises(ValueError, match=message):
            solve(Small("chain-tied", "hinge").problem, "excessive-gap", warm_start=start)

    def test_masses_of_the_squared_hinge(self):
        problem = Small("chain-tied", "hinge").problem
        n, slots = problem.n_examples, problem.n_slots
        with pytest.raises(ValueError, match="masses other than 1"):
            solve(problem, "excessive-gap", warm_start=DualPoint.of_counts(np.zeros(slots), np.zeros(n)))


class TestRounding:
    """Near the optimum of separable data both sides of a step's test are rounding errors: this is not divergence."""

    def test_two_points(self):
        result = MaxentClassifier(loss="hinge", solver="excessive-gap", C=10).fit(np.eye(2), [0, 1]).result_
        assert result.converged
        # Both margins are 1 at w = (1, -1; -1, 1) / 2, up to the intercepts, which stay 0.
        assert result.primal - result.gap <= 0.5 * 0.1 * 2.0 <= result.primal

    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
    def test_moderate_problems(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 3)) * rng.choice([0.1, 1.0, 10.0])
        y = (X[:, 0] > 0) + (0 if seed % 2 else (X[:, 1] > 0.5))
        for C in (1.0, 1e2, 1e4):
            model = MaxentClassifier(loss="hinge", solver="excessive-gap", C=C, tol=1e-6, max_passes=400)
            one = model.fit(X, y).result_
            two = model.set_params(solver="bcfw").fit(X, y).result_
            assert one.primal - one.gap <= two.primal + two.rounding
            assert two.primal - two.gap <= one.primal + one.rounding

    @pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
    def test_auto_on_kernels(self):
        rng = np.random.default_rng(3)
        X = [rng.normal(size=(rng.integers(2, 7), 4)) for _ in range(12)]
        y = [[str(int(a > 0) + int(a > 1)) for a in rows[:, 0]] for rows in X]
        result = SequenceTagger(kernel="linear", loss="hinge", C=1000).fit(X, y).result_
        assert result.solver == "excessive-gap"
        assert 0 < result.gap <= 1e-2 * result.primal

    def test_smoothing_below_rounding(self):
        omega = np.array([1e-8, 1e-8, 1.0, 1e-8, 1e-8])
        small = Small("chain-tied", "hinge", l2=10.0, scale=1e-7, sample_weight=omega)
        assert solve(small.problem, "excessive-gap", tol=1e-3).converged


def test_a_wrong_bound_is_reported():
    problem = Small("chain-tied", "hinge", l2=0.05).problem
    for smoothing in ("theorem", "adaptive"):
        solver = ExcessiveGap(smoothing=smoothing)
        state = solver.init_state(problem, np.random.default_rng(0), None)
        state.mu = state.curvature = state.bound = 1e-3 * state.mu
        with pytest.raises(DivergenceError, match="psi2_bound is not a bound"):
            for _ in range(50):
                solver.step(problem, state)


def test_the_warning_says_what_to_try():
    with pytest.warns(ConvergenceWarning, match=r"excessive-gap: max_passes.*1 / passes\^2"):
        solve(Small("chain-tied", "hinge").problem, "excessive-gap", tol=1e-9, max_passes=10)


@pytest.mark.parametrize("seed", [142, 214, 233])
def test_examples_with_one_labelling_break_no_step(seed):
    """If all entropies are 0 they are rounded like sums near 1, and a tiny penalty makes mu, their factor, huge."""
    case = make_case("grammar", seed, 2, plain=True)
    assert [len(example) for example in case.examples] == [1, 1]
    rows = 0.01 * np.random.default_rng(seed).normal(size=(int(case.structure.slot_offsets()[-1]), 3))
    features = slot_map(case.structure, rows, uses=3, parts=16)
    loss, weight = Loss("hinge", 0.0, 0.005), np.full(2, 1e4)
    problem = Problem(features, case.structure, case.gold, loss, 1e-8, sample_weight=weight)
    assert solve(problem, "excessive-gap", tol=0, max_passes=50).primal <= 1e-6
