"""Only steps, and certificates at passes where one is due, change the state of a run."""

from __future__ import annotations

import copy
import os
import warnings

import numpy as np
import pytest

from helpers.small_problems import BARE_COLUMNS, Small, kind_for, loss_for, penalty_for
from partwise import ConvergenceWarning, Problem, available_solvers, get_solver, solve
from partwise.features import maxent_map
from partwise.solvers import GIS, IIS, Checkpoint
from partwise.solvers.engine.state import pack
from partwise.structures import Multiclass

SOLVERS = available_solvers()
pytestmark = BARE_COLUMNS


def problem_for(solver: str, l2: float = 0.01) -> Problem:
    small = Small(kind_for(solver), loss_for(solver), l2=l2, n=10)
    return small.problem.with_penalty(penalty_for(solver, l2))


def bits(state):
    arrays, scalars = pack(state)
    scalars.pop("run", None)  # the name of a run's files is random
    return {name: (array.shape, array.tobytes()) for name, array in arrays.items()}, repr(scalars)


def without_penalty(solver: str) -> bool:
    return not {"l2 > 0", "l1 > 0", "l1 > 0 or l2 > 0"} & get_solver(solver).requires


@pytest.mark.parametrize("l2", [0.01, 0.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificates_do_not_change_the_state(solver, l2):
    if l2 == 0 and not without_penalty(solver):
        pytest.skip("needs a penalty")
    if l2 == 0:
        structure = Multiclass(6, 2)
        x = np.array([[1.0, 0.5], [0.5, 1.0], [1.0, 1.0], [1.0, 0.5], [0.5, 1.0], [1.0, 1.0]])
        gold = structure.encode(np.array([0, 1, 0, 1, 0, 1]))
        problem = Problem(maxent_map(structure, x), structure, gold, "log", 0.0)
    else:
        problem = problem_for(solver)
    method = get_solver(solver)
    plain, asked = (method.init_state(problem, np.random.default_rng(3), None) for _ in range(2))
    for _ in range(7):
        before = bits(asked)
        one, two = (method.certificate(problem, asked) for _ in range(2))
        for certified in (one, two):
            method.finished(problem, asked, certified.certificate, 1e-3)
        method.weights(problem, asked)
        method.remark(problem, asked)
        method.check_due(asked, 1e-3)
        assert bits(asked) == before
        assert repr(one.certificate) == repr(two.certificate)
        np.testing.assert_array_equal(one.weights, two.weights)
        one.weights[:] = 7.0  # the array belongs to the caller
        assert bits(asked) == before
        method.step(problem, plain)
        method.step(problem, asked)
        assert bits(plain) == bits(asked)


def saved_states(solver, problem, path, **options):
    """Return the checkpoints after each step of a run, and its result."""
    kept = []
    checkpoint = Checkpoint(path, every_seconds=0.0)

    def keep(progress):
        if path.exists():
            kept.append(path.read_bytes())  # the checkpoint of the previous step

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem, solver, callback=keep, checkpoint=checkpoint, random_state=0, **options)
    return kept, result


@pytest.mark.parametrize(
    ("solver", "tol"),
    [
        # block-dual has files only for its last checkpoint (tests/solvers/test_block_dual.py)
        *((solver, 1e-2) for solver in SOLVERS if solver != "block-dual"),
        *((solver, 1e-30) for solver in ("lbfgs", "newton", "cd", "scgis", "gis")),
    ],
)
def test_a_resumed_run_stops_where_an_unbroken_one_does(solver, tol, tmp_path, monkeypatch):
    """Resume from each of the last checkpoints. If the tolerance is out of reach, a count of steps or certificates
    without progress ends the run, and the checkpoint must keep this count."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    problem, path = problem_for(solver, l2=0.5), tmp_path / "run.ckpt"
    limits = {"tol": tol, "max_passes": 900}
    kept, whole = saved_states(solver, problem, path, **limits)
    for data in kept[-6:]:
        path.write_bytes(data)
        _, resumed = saved_states(solver, problem, path, **limits)
        assert (resumed.status, resumed.passes, resumed.gap) == (whole.status, whole.passes, whole.gap)
        np.testing.assert_array_equal(resumed.weights, whole.weights)


@pytest.mark.parametrize("solver", ["cd", "scgis", "gis", "iis", "is-bound", "cd-exact"])
def test_short_runs_one_after_the_other_end_where_a_long_one_does(solver, tmp_path, monkeypatch):
    """Each short run begins and ends with a certificate that was not due, and may therefore notice the end sooner."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    problem, path = problem_for(solver, l2=0.5), tmp_path / "run.ckpt"
    whole = solve(problem, solver, tol=1e-300, max_passes=4000)
    assert whole.status in ("converged", "stalled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for passes in np.arange(0.0, whole.passes + 20.0, 7.0):
            part = solve(problem, solver, tol=1e-300, max_passes=passes, checkpoint=path)
    assert part.status == whole.status
    assert part.passes <= whole.passes
    assert part.primal == pytest.approx(whole.primal, rel=1e-14)


@pytest.mark.parametrize("update", ["parallel", "sequential"])
@pytest.mark.parametrize("cls", [GIS, IIS])
def test_both_updates_warn_about_separable_data(cls, update):
    x = np.array([[2.0, 1.0], [1.0, 0.5], [1.0, 2.0], [0.5, 1.0], [3.0, 2.0], [2.0, 3.0]])
    structure = Multiclass(6, 2)
    problem = Problem(maxent_map(structure, x), structure, structure.encode(np.array([0, 0, 1, 1, 0, 1])), "log", 0.0)
    with pytest.warns(ConvergenceWarning, match="separate the training data"):
        solve(problem, cls(update=update), tol=0.0, max_passes=10)  # before S and T are computed anew


def test_bits_tell_states_apart():
    """Copies are equal to their originals, and `bits` shows a difference."""
    problem = problem_for("cd")
    state = get_solver("cd").init_state(problem, np.random.default_rng(0), None)
    other = copy.deepcopy(state)
    assert bits(state) == bits(other)
    other.idle += 1
    assert bits(state) != bits(other)
