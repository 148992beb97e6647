"""The loop that all solvers share: stopping, history, callbacks, checkpoints, warnings, reproducibility."""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import signal
import time
import warnings

import numpy as np
import pytest

from helpers.small_problems import (
    BARE_COLUMNS,
    Listed,
    Small,
    certified,
    kind_for,
    loss_for,
    penalty_for,
    with_another_option,
)
from partwise import (
    CertificateError,
    ConvergenceWarning,
    DivergenceError,
    Problem,
    available_solvers,
    get_solver,
    solve,
)
from partwise.features import maxent_map, multiclass_map
from partwise.problem.deadline import OutOfTime, deadline
from partwise.solvers import EG, Checkpoint
from partwise.solvers.engine import loop
from partwise.solvers.engine.state import State
from partwise.solvers.online.base import OnlineSolver
from partwise.structures import Multiclass

SOLVERS = list(filter(certified, available_solvers()))
WITHOUT = [solver for solver in available_solvers() if not certified(solver)]
pytestmark = BARE_COLUMNS


def fitting(solver: str, **options) -> Small:
    """Make a problem on which this solver needs more than a few passes."""
    settings = {"l2": 0.1} if kind_for(solver) == "chain-tied" else {"l2": 0.01, "n": 12}
    small = Small(kind_for(solver), loss_for(solver), **(settings | options))
    small.problem = small.problem.with_penalty(penalty_for(solver, small.problem.l2))
    return small


def unreached(solver: str, problem, **options):
    """Run with a tolerance out of reach."""
    with pytest.warns(ConvergenceWarning):
        return solve(problem, endless(solver), **({"tol": 1e-30, "random_state": 0} | options))


def endless(solver):
    """Return the solver, without its own stopping rule, which could end a run before max_passes."""
    return get_solver(solver, epsilon=0.0) if solver == "cutting-plane" else solver


@pytest.mark.parametrize("solver", SOLVERS)
class TestStopping:
    def test_max_passes(self, solver):
        result = unreached(solver, fitting(solver).problem, max_passes=4)
        assert result.status == "max_passes"
        assert 4 <= result.passes < 30
        assert result.history["passes"][-1] == result.passes

    def test_no_passes_at_all(self, solver):
        result = unreached(solver, fitting(solver).problem, max_passes=0)
        assert result.status == "max_passes"
        assert result.gap >= 0
        assert np.isfinite(result.weights).all()

    def test_max_seconds(self, solver):
        result = unreached(solver, fitting(solver).problem, max_seconds=0.0)
        assert result.status == "max_seconds"
        assert len(result.history["gap"]) <= 2  # one certificate before and one after the single step

    def test_a_callback(self, solver):
        told = []

        def callback(progress):
            told.append(progress)
            return progress.epoch == 3

        result = solve(fitting(solver).problem, solver, tol=1e-30, callback=callback, random_state=0)
        assert result.status == "stopped"
        assert [progress.epoch for progress in told] == [1, 2, 3]
        assert told[-1].solver == solver
        assert told[-1].passes == result.passes
        assert told[-1].weights().shape == result.weights.shape

    def test_the_warning_says_what_to_do(self, solver):
        with pytest.warns(ConvergenceWarning, match=r"gap .*relative.*tol is 1e-12\. Raise max_passes or tol"):
            solve(fitting(solver).problem, solver, tol=1e-12, max_passes=2)

    @pytest.mark.parametrize("bad", [{"tol": -1.0}, {"tol": np.nan}, {"max_passes": -1}, {"max_seconds": np.nan}])
    def test_bad_limits(self, solver, bad):
        with pytest.raises(ValueError, match=next(iter(bad))):
            solve(fitting(solver).problem, solver, **bad)

    def test_a_callback_that_raises(self, solver):
        def callback(progress):
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            solve(fitting(solver).problem, solver, callback=callback)


class TestLimitOfTimeInsideAStep:
    def test_calls_of_the_core_end_at_the_deadline(self):
        problem = Small("chain", "log").problem
        weights = np.zeros(problem.n_weights)
        with deadline(0.0), pytest.raises(OutOfTime):
            problem.value(weights)
        with deadline(1e9):
            problem.value(weights)
        problem.value(weights)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_an_abandoned_step_does_not_change_the_state(self, solver, monkeypatch):
        steps = []

        @contextlib.contextmanager
        def third_is_late(seconds):
            steps.append(seconds)
            with deadline(0.0 if len(steps) == 3 else 1e9):
                yield

        problem = fitting(solver).problem
        two = solve(problem, solver, tol=1e-30, random_state=0, callback=lambda progress: progress.epoch == 2)
        monkeypatch.setattr(loop, "deadline", third_is_late)
        monkeypatch.setattr(loop, "SLOWER", np.inf)
        late = unreached(solver, problem, max_seconds=1e6)
        assert len(steps) == 3
        assert late.status == "max_seconds"
        assert late.passes == two.passes
        assert np.array_equal(late.weights, two.weights)
        assert (late.primal, late.dual) == (two.primal, two.dual)

    def test_steps_known_to_be_short_are_not_watched(self, monkeypatch):
        copies, copied = [], State.copied
        monkeypatch.setattr(State, "copied", lambda state: copies.append(1) or copied(state))
        unreached("eg", fitting("eg").problem, max_passes=20, max_seconds=1e6)
        assert len(copies) == 1  # the state is copied before the first step, whose duration is unknown
        unreached("eg", fitting("eg").problem, max_passes=20)
        assert len(copies) == 1


@pytest.mark.parametrize("solver", ["eg", "bcfw"])
def test_tol_zero_runs_to_max_passes(solver):
    result = solve(Small("multiclass", "hinge", l2=50.0).problem, solver, tol=0.0, max_passes=60, random_state=0)
    assert result.status == "max_passes"
    assert result.passes >= 60


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_seed_gives_the_same_bits(solver):
    small = fitting(solver)
    runs = [unreached(solver, small.problem, max_passes=8, random_state=seed) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].gap == runs[1].gap
    if isinstance(get_solver(solver), OnlineSolver):  # the other solvers draw no random numbers
        assert not np.array_equal(runs[0].weights, runs[2].weights)


def test_seeds_of_every_kind():
    problem = fitting("eg").problem
    runs = [
        unreached("eg", problem, max_passes=3, random_state=make())
        for make in (lambda: np.random.default_rng(3), lambda: 3, lambda: np.random.RandomState(3), lambda: None)
    ]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "eg-batch", "eg-primal"])
def test_batch_methods_have_the_same_bits_on_any_number_of_threads(solver):
    small = Small("chain-tied", "log", l2=0.5, n=40)
    runs = [solve(small.problem, solver, tol=1e-6, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].weights, other.weights)
        assert other.passes == runs[0].passes


def test_online_methods_have_the_same_bits_on_the_same_number_of_threads():
    small = Small("chain-tied", "log", l2=0.1, n=40)
    one, two = (solve(small.problem, "eg", tol=1e-5, n_jobs=2, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.status == "converged"


@pytest.mark.parametrize("solver", SOLVERS)
class TestCheckpoints:
    def test_a_resumed_run_has_the_same_bits(self, solver, tmp_path):
        small, path = fitting(solver), tmp_path / "run.ckpt"
        limit = 30 if solver == "cd-l1" else 14  # a step of cd-l1 takes many passes
        whole = unreached(solver, small.problem, max_passes=limit)
        part = unreached(solver, small.problem, max_passes=5, checkpoint=path)
        assert part.passes < whole.passes
        resumed = unreached(solver, small.problem, max_passes=limit, checkpoint=path, random_state=99)
        np.testing.assert_array_equal(resumed.weights, whole.weights)
        assert (resumed.passes, resumed.primal, resumed.gap) == (whole.passes, whole.primal, whole.gap)
        assert resumed.seconds > part.history["seconds"][-1]
        assert resumed.history["passes"].tolist() == sorted(set(resumed.history["passes"].tolist()))
        left = [p.name for p in tmp_path.iterdir() if not p.name.startswith("duals-")]  # files of the run
        assert left == ["run.ckpt"]  # no temporary file is left

    def test_an_interrupted_run_can_be_resumed(self, solver, tmp_path):
        small, checkpoint = fitting(solver), Checkpoint(tmp_path / "run.ckpt", every_seconds=0.0)
        whole = unreached(solver, small.problem, max_passes=14)

        def callback(progress):
            if progress.epoch == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            solve(small.problem, endless(solver), tol=1e-30, callback=callback, random_state=0, checkpoint=checkpoint)
        resumed = unreached(solver, small.problem, max_passes=14, checkpoint=checkpoint)
        np.testing.assert_array_equal(resumed.weights, whole.weights)

    def test_a_finished_run_stays_finished(self, solver, tmp_path):
        small, path = fitting(solver), tmp_path / "run.ckpt"
        first = solve(small.problem, solver, tol=0.1, random_state=0, checkpoint=path)
        again = solve(small.problem, solver, tol=0.1, random_state=0, checkpoint=path)
        assert again.passes == first.passes
        np.testing.assert_array_equal(again.weights, first.weights)

    def test_another_problem_or_solver_is_refused(self, solver, tmp_path):
        path = tmp_path / "run.ckpt"
        solve(fitting(solver).problem, solver, tol=0.1, random_state=0, checkpoint=path)
        for changed in ({"l2": 0.2}, {"seed": 6}):
            with pytest.raises(ValueError, match="another problem"):
                solve(fitting(solver, **changed).problem, solver, tol=0.1, checkpoint=path)
        changed = with_another_option(solver)
        with pytest.raises(ValueError, match="was written with options"):
            solve(fitting(solver).problem, changed, tol=0.1, checkpoint=path)
        other = "eg" if solver != "eg" else "lbfgs"
        with pytest.raises(ValueError, match=f"was written with solver {solver}"):
            solve(fitting(other).problem, other, tol=0.1, checkpoint=path)


@contextlib.contextmanager
def ctrl_c_after(seconds):
    """Send Ctrl-C to the main thread by a timer, without another thread."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class TestInterrupts:
    def test_ctrl_c_in_the_middle_of_an_epoch(self):
        class Slow(Listed):
            def log_partition(self, i, scores, temperature=1.0):
                time.sleep(0.05)
                return super().log_partition(i, scores, temperature)

        small = Small("chain-tied", "log", n=200)
        problem = Problem(small.case.features, Slow(small.case.structure), small.case.gold, "log", 0.1)
        start = time.perf_counter()
        with ctrl_c_after(0.3), pytest.raises(KeyboardInterrupt):
            solve(problem, "lbfgs", tol=1e-12)
        assert time.perf_counter() - start < 5  # one pass takes 10 seconds

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_ctrl_c_in_compiled_code(self, solver):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(20_000, 60))
        structure = Multiclass(len(rows), 20)
        gold = structure.encode(rng.integers(0, 20, len(rows)))
        loss = loss_for(solver)
        make = maxent_map if kind_for(solver) == "maxent" else multiclass_map
        problem = Problem(make(structure, abs(rows)), structure, gold, loss, penalty_for(solver, 1e-6))
        start = time.perf_counter()
        with ctrl_c_after(0.3), pytest.raises(KeyboardInterrupt):
            solve(problem, solver, tol=0.0, max_passes=1e9)
        assert time.perf_counter() - start < 4  # without Ctrl-C it would never end


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("solver", SOLVERS)
def test_data_overwritten_with_nan_end_a_run(solver, bad):
    """Rows are not copied, so a program may overwrite them during training. Every loop must end nevertheless."""
    rng = np.random.default_rng(0)
    rows = abs(rng.normal(size=(60, 5)))
    structure = Multiclass(len(rows), 3)
    gold = structure.encode(rng.integers(0, 3, len(rows)))
    make = maxent_map if kind_for(solver) == "maxent" else multiclass_map
    problem = Problem(make(structure, rows), structure, gold, loss_for(solver), penalty_for(solver, 1e-2))

    def spoil(progress):
        rows[7] = bad

    with ctrl_c_after(4.0), warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, RuntimeWarning))
        try:
            result = solve(problem, solver, tol=1e-9, max_passes=300, callback=spoil, random_state=0)
        except (DivergenceError, CertificateError, ValueError):
            return
        except KeyboardInterrupt:
            pytest.fail("it goes on for ever")
    assert np.isfinite(result.weights).all()
    assert np.isfinite([result.primal, result.gap]).all()


@pytest.mark.parametrize("solver", ["eg", "eg-batch", "eg-primal", "excessive-gap"])
@pytest.mark.parametrize(("feature", "weight", "l2"), [(1e149, 1.0, 1e-12), (1.0, 1e308, 1e-2)])
def test_steps_beyond_double_precision_are_an_error(solver, feature, weight, l2):
    structure = Multiclass(40, 2)
    rows = np.zeros((40, 2))
    rows[::2, 0] = feature
    gold = structure.encode(np.arange(40) // 2 % 2)
    weights = np.full(40, min(weight, 1.0))
    weights[8] = weight
    problem = Problem(multiclass_map(structure, rows), structure, gold, loss_for(solver), l2, sample_weight=weights)
    with ctrl_c_after(4.0), pytest.raises(DivergenceError, match=r"in double precision|objective is inf"):
        solve(problem, solver, tol=1e-3, max_passes=100, random_state=0)


class TestHistoryAndMessages:
    def test_history_arrays_have_one_length(self):
        result = solve(fitting("eg").problem, EG(check_every=2), tol=1e-4, random_state=0)
        assert set(result.history) == {"passes", "seconds", "primal", "dual", "gap"}
        lengths = {len(column) for column in result.history.values()}
        assert len(lengths) == 1
        assert lengths.pop() >= 2

    @pytest.mark.parametrize("solver", ["eg", "bcfw"])
    def test_certificates_are_rare_far_from_the_tolerance(self, solver):
        small = Small("chain-tied", "hinge", l2=0.05)
        result = solve(small.problem, solver, tol=0.0, max_passes=100, random_state=0)
        assert len(result.history["gap"]) <= 30

    def test_certificates_do_not_influence_the_run(self):
        small = fitting("bcfw")
        often, rarely = (
            unreached(get_solver("bcfw", check_every=every), small.problem, max_passes=20) for every in (1, 7)
        )
        np.testing.assert_array_equal(often.weights, rarely.weights)

    def test_verbose_goes_to_the_log(self, caplog):
        with caplog.at_level(logging.INFO, logger="partwise.solvers"):
            solve(fitting("eg").problem, "auto", tol=1e-2, random_state=0, verbose=1)
        assert any("auto: lbfgs" in record.getMessage() for record in caplog.records)
        assert any("relative" in record.getMessage() for record in caplog.records)

    def test_nothing_is_logged_by_default(self, caplog):
        with caplog.at_level(logging.INFO):
            solve(fitting("eg").problem, "eg", tol=1e-2, random_state=0)
        assert not caplog.records

    def test_time_in_the_callback_is_not_counted(self):
        def callback(progress):
            time.sleep(0.3)

        result = solve(fitting("eg").problem, "eg", tol=0.0, max_passes=5, callback=callback, random_state=0)
        assert result.seconds < 1  # although the callback takes at least 1.5 seconds

    def test_results_describe_their_run(self):
        result = solve(fitting("eg").problem, "eg", tol=1e-3, random_state=0)
        assert result.converged
        assert "eg: converged after" in result.message
        assert result.relative_gap <= 1e-3
        assert "primal=" in repr(result)
        # Arrays of thousands of numbers are not printed
        assert not {"weights", "history"} & set(re.findall(r"\w+", repr(result)))


def test_hyper_parameters_have_help():
    from dataclasses import fields

    for cls in map(type, map(get_solver, available_solvers())):
        for item in fields(cls):
            assert item.metadata["help"], f"{cls.__name__}.{item.name}"


class TestAuto:
    """ "auto" runs a small smooth problem to machine precision; at a limit, the caller's tolerance is enough."""

    def test_a_limit_after_the_callers_tol_is_converged(self):
        problem = Small("chain", "log").problem
        passes = solve(problem, "lbfgs", tol=1e-3).passes
        result = solve(problem, tol=1e-3, max_passes=passes)  # a warning would be an error here
        assert result.solver == "lbfgs"
        assert result.status == "converged"
        assert 1e-10 < result.relative_gap <= 1e-3

    def test_a_limit_before_the_callers_tol_is_not_converged(self):
        with pytest.warns(ConvergenceWarning):
            result = solve(Small("chain", "log").problem, tol=1e-3, max_passes=2)
        assert result.status == "max_passes"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), PermissionError(13, "No")])
def test_a_checkpoint_that_cannot_be_written_does_not_end_a_run(tmp_path, monkeypatch, error):
    """The run warns once and gives the same result as without a checkpoint."""
    from partwise.solvers.engine import checkpoint as files

    def fail(*_):
        raise error

    monkeypatch.setattr(files, "write", fail)
    problem = fitting("lbfgs").problem
    expected = solve(problem, "lbfgs", tol=1e-6)
    with pytest.warns(RuntimeWarning, match=r"run.ckpt: the checkpoint cannot be written \(no") as seen:
        found = solve(problem, "lbfgs", tol=1e-6, checkpoint=Checkpoint(tmp_path / "run.ckpt", every_seconds=0.0))
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert (found.status, found.gap) == (expected.status, expected.gap)
    assert np.array_equal(found.weights, expected.weights)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, 2**41])
def test_numbers_that_are_too_large_are_refused(value):
    problem = fitting("eg").problem
    with pytest.raises(ValueError, match="round_size must be between"):
        solve(problem, get_solver("eg", round_size=value))
    with pytest.raises(ValueError, match="n_jobs must be"):
        solve(problem, "eg", n_jobs=value)
