"""Dual coordinate descent with working sets: resumed runs have the same bits, and memory stays within its limit."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from partwise import _core, solve
from partwise.solvers import BCFW, CPD, DCD, DCDLight
from partwise.solvers.engine.state import pack, unpack

SOLVERS = [DCD(), DCDLight(), CPD()]
WITH_SETS = [
    *(pytest.param(solver, "squared-hinge", id=solver.name) for solver in SOLVERS),
    pytest.param(DCD(rounds=None, violators=2), "squared-hinge", id="dcd-two violators-chosen rounds"),
    *(
        pytest.param(solver, loss, id=f"{name}-{loss}")
        for name, solver in (
            ("bcfw", BCFW()),
            ("gap sampling", BCFW(gap_sampling=True)),
            ("towards", BCFW(pairwise=False)),
            ("no sweeps", BCFW(cached_sweeps=0)),
            ("three violators", BCFW(violators=3)),
        )
        for loss in ("hinge", "squared-hinge")
    ),
]


def words(loss="squared-hinge", l2=0.3, n=30):
    return Small("chain-tied", loss, l2=l2, n=n)


def assert_same_bits(one, two):
    arrays, scalars = pack(one)
    others, other_scalars = pack(two)
    assert scalars == other_scalars
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


def resumed(solver, problem, memory_mb, epochs=6):
    """Return the solver, the state of an uninterrupted run, and that of a run packed and unpacked after each epoch."""
    solver = type(solver)(**{**solver.options(), "memory_mb": memory_mb})
    through = solver.init_state(problem, np.random.default_rng(3), None)
    broken = solver.init_state(problem, np.random.default_rng(3), None)
    fresh = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(epochs):
        solver.step(problem, through)
        broken = unpack(fresh, *pack(broken))
        solver.step(problem, broken)
    return solver, through, broken


@pytest.mark.parametrize("memory_mb", [1024.0, 0.006])
@pytest.mark.parametrize(("solver", "loss"), WITH_SETS)
def test_a_resumed_run_has_the_same_bits(solver, loss, memory_mb):
    problem = words(loss).problem
    _, through, broken = resumed(solver, problem, memory_mb)
    assert_same_bits(through, broken)
    assert (through.merged > 0) == (memory_mb < 1)


@pytest.mark.parametrize(("solver", "loss"), WITH_SETS)
def test_memory_is_bounded_and_the_certificate_stays_true(solver, loss):
    small = words(loss, l2=0.05)
    free = solver.init_state(small.problem, np.random.default_rng(0), None)
    most = 0
    for _ in range(25):
        solver.step(small.problem, free)
        most = max(most, free.sets.bytes)
    bounded = type(solver)(**{**solver.options(), "memory_mb": 0.4 * most / 2**20})
    state = bounded.init_state(small.problem, np.random.default_rng(0), None)
    for _ in range(25):
        bounded.step(small.problem, state)
        # Over the limit, every set that the oracle visits becomes one mixture; labellings may join the mixture later.
        assert state.sets.bytes <= 0.65 * most
        certified = bounded.certificate(small.problem, state)
        assert certified.certificate.gap >= 0
        assert certified.certificate.primal == pytest.approx(small.dense.primal(certified.weights), rel=1e-10)
        assert small.problem.dual_value(certified.point) == pytest.approx(certified.certificate.dual, abs=1e-9)
    assert state.merged > 0
    assert state.sets.num_atoms < free.sets.num_atoms
    assert "merged to stay within memory_mb" in bounded.remark(small.problem, state)
    result = solve(small.problem, bounded, tol=5e-2, max_passes=5000, random_state=0)
    assert result.status == "converged"


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_a_merge_changes_neither_weights_nor_dual(solver, rng):
    small = words()
    state = solver.init_state(small.problem, rng, None)
    for _ in range(3):
        solver.step(small.problem, state)
    before = state.sets.point()
    u, b = small.problem.dual_terms(before)
    report = _core.dcd_epoch(
        _core.DcdState(
            small.problem.sums.in_memory()[0].native, weights=state.weights.copy(), sets=state.sets.parts[0]
        ),
        np.arange(small.dense.n),
        _core.DcdOptions(l2=small.problem.l2, search=True, update=False, delta=1e9, seed=1, max_bytes=0),
    )
    assert report.merged > 0
    v, c = small.problem.dual_terms(state.sets.point())
    np.testing.assert_allclose(v, u, atol=1e-10)
    assert c == pytest.approx(b, abs=1e-10)
    assert max(np.diff(state.sets.to_arrays()["example_ptr"])) == 1


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_the_same_seed_gives_the_same_bits(solver):
    small = words()
    one, two, other = (solve(small.problem, solver, tol=1e-2, random_state=seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(("solver", "loss"), WITH_SETS)
def test_warm_starts(solver, loss):
    small = words(loss)
    cold = solve(small.problem, solver, tol=1e-2, random_state=0)
    for other in ("bcfw", "dcd" if loss == "squared-hinge" else "eg"):
        start = solve(small.problem, other, tol=1e-2, random_state=0)
        assert solve(small.problem, solver, tol=1e-2, random_state=0, warm_start=start).passes < cold.passes
    with pytest.raises(ValueError, match="weights alone do not"):
        solve(small.problem, solver, warm_start=cold.weights)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DCD(rounds=-1), "rounds must be at least 0"),
        (lambda: DCD(delta=-1.0), "delta must be a number >= 0"),
        (lambda: DCDLight(delta=float("nan")), "delta must be a number >= 0"),
        (lambda: DCD(memory_mb=0.0), "memory_mb must be a number above 0"),
        (lambda: CPD(inner_tol=-1.0), "inner_tol must be a number >= 0"),
        (lambda: CPD(max_rounds=0), "max_rounds must be at least 1"),
        (lambda: BCFW(cached_sweeps=-1), "cached_sweeps must be at least 0"),
        (lambda: BCFW(steps=0), "steps must be at least 1"),
        (lambda: BCFW(keep=-1), "keep must be at least 0"),
        (lambda: BCFW(sweep_cost=float("inf")), "sweep_cost must be a number >= 0"),
        (lambda: BCFW(memory_mb=-1.0), "memory_mb must be a number above 0"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coefficients": np.array([-1.0])}, "negative or not finite"),
        ({"slots": np.array([-1])}, "slot is out of range"),
        ({"counts": np.array([np.nan])}, "count is not finite"),
        ({"stamps": np.array([1, 2])}, "lengths do not match"),
        ({"example_ptr": np.array([0, 2])}, "example_ptr"),
    ],
)
def test_bad_working_sets(change, message):
    good = {
        "example_ptr": np.array([0, 1]),
        "labelling_ptr": np.array([0, 1]),
        "slots": np.array([0]),
        "counts": np.ones(1),
        "coefficients": np.ones(1),
        "stamps": np.zeros(1, dtype=np.int64),
    }
    assert _core.WorkingSets.from_arrays(**good).num_atoms == 1
    with pytest.raises(ValueError, match=message):
        _core.WorkingSets.from_arrays(**{**good, **change})


def test_working_sets_of_another_problem(rng):
    small = words()
    order, w = np.arange(small.dense.n), np.zeros(small.problem.n_weights)

    def visit(sets):
        state = _core.DcdState(small.problem.sums.in_memory()[0].native, weights=w, sets=sets)
        _core.dcd_epoch(state, order, _core.DcdOptions(l2=1.0))

    with pytest.raises(ValueError, match="working sets of 3 examples"):
        visit(_core.WorkingSets(3))
    n = small.dense.n
    far = _core.WorkingSets.from_arrays(
        np.minimum(np.arange(n + 1), 1), np.array([0, 1]), np.array([10**6]), np.ones(1), np.ones(1), np.zeros(1, int)
    )
    with pytest.raises(ValueError, match="an atom has slot 1000000"):
        visit(far)


@pytest.mark.parametrize("solver", [BCFW(), DCD(rounds=None)], ids=lambda solver: solver.name)
def test_sweeps_continue_while_they_gain_more_per_work_than_the_pass(solver, monkeypatch):
    """In a pass, each sweep except the last gains more per work than the pass so far, and the last gains less."""
    found = []
    kernel = "bcfw_set_epoch" if solver.name == "bcfw" else "dcd_epoch"
    epoch = getattr(_core, kernel)

    def noted(state, order, options):
        report = epoch(state, order, options)
        found.append((report.visits > 0, report.dual_gain, report.work, len(order)))
        return report

    monkeypatch.setattr(_core, kernel, noted)
    problem = words(l2=0.05).problem
    state = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(8):
        found.clear()
        solver.step(problem, state)
        assert [searched for searched, *_ in found] == [True] + [False] * (len(found) - 1)
        for k in range(2, len(found) + 1):
            gain, work = (sum(report[at] for report in found[:k]) for at in (1, 2))
            _, last, own, _ = found[k - 1]
            assert (last * work > gain * own) == (k < len(found))
        if solver.name == "bcfw":  # sweeps skip examples with little to gain, but every fourth sweep visits all
            assert all(visited == len(problem.active) for *_, visited in found[1::4])
    assert len(found) > 2
    if solver.name == "bcfw":
        assert min(visited for *_, visited in found) < len(problem.active)


def test_violators_are_the_best_labellings_that_gain():
    """k = 1 adds the oracle's answer alone, and no more labellings join than exist."""
    small = words("hinge", n=6)
    sizes = {}
    for k in (1, 2, 10_000):
        state = BCFW(violators=k, cached_sweeps=0, keep=50).init_state(small.problem, np.random.default_rng(0), None)
        BCFW(violators=k, cached_sweeps=0, keep=50).step(small.problem, state)
        sizes[k] = np.diff(state.sets.to_arrays()["example_ptr"])
    assert np.all(sizes[1] <= 2)
    assert np.all(sizes[1] <= sizes[2])
    assert np.all(sizes[2] <= sizes[10_000])
    assert sizes[10_000].max() > 3
    assert all(size <= len(e) for size, e in zip(sizes[10_000], small.dense.examples, strict=True))
    for solver in (BCFW, DCD, DCDLight, CPD):
        with pytest.raises(ValueError, match="violators must be at least 1"):
            solver(violators=0)
    python = Small("python", "squared-hinge")
    for solver in (BCFW(violators=2), DCD(violators=2)):
        with pytest.raises(ValueError, match="violators=2 needs k_best"):
            solve(python.problem, solver)
