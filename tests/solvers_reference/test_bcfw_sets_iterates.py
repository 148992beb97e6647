"""bcfw over working sets has the iterates of its NumPy transcription for the same seed; its reports are true."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles import bcfw_sets_reference as reference
from partwise import _core
from partwise.solvers import BCFW
from partwise.solvers.working_sets.base import start_sets

KINDS = ("multiclass", "chain-tied", "chain-untied", "python")
FORMS = [
    BCFW(),
    BCFW(steps=1, keep=0),
    BCFW(pairwise=False, steps=2),
    BCFW(gap_sampling=True, sweep_cost=0.3),
    BCFW(cached_sweeps=0, steps=3),
    BCFW(sweep_cost=0.1),
    BCFW(violators=3, keep=1),
]
NAMES = ["default", "one step", "towards", "gap sampling", "no sweeps", "sweeps of one cost", "three violators"]


@pytest.mark.parametrize("solver", FORMS, ids=NAMES)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_iterates_as_the_transcription(kind, loss, solver):
    small = Small(kind, loss, l2=0.3, ties=False, plain=True)
    if kind == "python" and solver.violators > 1:
        with pytest.raises(ValueError, match=r"violators=3 needs k_best, which .* does not have"):
            solver.init_state(small.problem, np.random.default_rng(4), None)
        return
    state = solver.init_state(small.problem, np.random.default_rng(4), None)
    expected, rng = reference.start(small.dense), np.random.default_rng(4)
    for _ in range(6):
        solver.step(small.problem, state)
        reference.epoch(expected, solver, rng)
        np.testing.assert_allclose(state.weights, expected.weights, atol=1e-9)
        np.testing.assert_allclose(state.gaps, expected.gaps, atol=1e-9)
        np.testing.assert_allclose(solver.average_weights(state), expected.average, atol=1e-9)
        kept = state.sets.to_arrays()
        np.testing.assert_array_equal(np.diff(kept["example_ptr"]), [len(own) for own in expected.kept])
        xs = np.concatenate([x[own] for x, own in zip(expected.xs, expected.kept, strict=True)])
        np.testing.assert_allclose(kept["coefficients"], xs, atol=1e-9)
        if state.sweeps or solver.cached_sweeps:
            assert state.dual == pytest.approx(expected.dual(), abs=1e-9)
    assert state.sweeps == expected.sweeps
    assert (state.sweeps > 6) == (solver.cached_sweeps > 0)


@pytest.mark.parametrize("pairwise", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_never_falls_and_sums_stay_true(kind, loss, pairwise, rng):
    """At every visit, with or without the oracle, the dual does not fall, and reported gains and gaps are true."""
    small = Small(kind, loss, l2=0.3)
    sets, w, gaps = start_sets(small.problem, None, "bcfw"), np.zeros(small.problem.n_weights), np.zeros(small.dense.n)
    last = 0.0
    for now in range(120):
        search = bool(rng.random() < 0.6)
        i = int(rng.integers(small.dense.n))
        margin = small.dense.oracle(i, w)[0]
        before = block(small, sets, i, w)
        report = _core.bcfw_set_epoch(
            _core.BcfwSetState(small.problem.sums.in_memory()[0].native, weights=w, sets=sets.parts[0], gaps=gaps),
            np.array([i]),
            _core.BcfwSetOptions(l2=0.3, search=search, pairwise=pairwise, steps=3, now=now, keep=5),
        )
        point = sets.point()
        u, b = small.problem.dual_terms(point)
        np.testing.assert_allclose(w, u / 0.3, atol=1e-9)
        assert report.bound == pytest.approx(b, abs=1e-9)
        dual = small.problem.dual_value(point)
        assert dual - last == pytest.approx(report.dual_gain, abs=1e-9)
        assert report.dual_gain >= 0
        last = dual
        mass = sets.point().active.expected_counts(small.structure.slot_offsets())[1]
        if loss == "hinge":
            np.testing.assert_allclose(mass, 1.0, atol=1e-12)
        if search:
            omega = small.dense.sample_weight[i]
            assert gaps[i] == pytest.approx(omega * max(0.0, small.dense.phi(margin) - before), abs=1e-9)
    assert last > 0


def block(small, sets, i, w):
    """Example i's part of the dual, linearised at w: <x, v> - phi*(s), where v are the labellings' values."""
    arrays = sets.to_arrays()
    value = mass = 0.0
    for k in range(*arrays["example_ptr"][i : i + 2]):
        at = slice(*arrays["labelling_ptr"][k : k + 2])
        counts = np.zeros(small.dense.examples[i].counts.shape[1])
        counts[arrays["slots"][at]] = arrays["counts"][at]
        cost = small.dense.cost_scale * float(counts @ small.dense.cost[i])
        score = float((small.dense.gold[i] - counts) @ small.dense.matrices[i] @ w)
        value += arrays["coefficients"][k] * (cost - score)
        mass += arrays["coefficients"][k]
    return value - (mass**2 / 4 if small.dense.link == "squared" else 0.0)


def test_only_for_temperature_zero():
    small = Small("multiclass", "log")
    sets = _core.WorkingSets(small.dense.n)
    w = np.zeros(small.problem.n_weights)
    state = _core.BcfwSetState(small.problem.sums.in_memory()[0].native, weights=w, sets=sets, gaps=np.zeros(5))
    with pytest.raises(ValueError, match="temperature"):
        _core.bcfw_set_epoch(state, np.arange(2), _core.BcfwSetOptions(l2=1.0))


@pytest.mark.parametrize(
    "change",
    [{"gaps": np.zeros(2)}, {"weights": np.zeros(1)}, {"l2": 0.0}, {"steps": -1}, {"keep": -1}, {"violators": 0}],
)
def test_bad_arguments(change):
    small = Small("multiclass", "hinge")
    sets = start_sets(small.problem, None, "bcfw").parts[0]

    def run(weights, gaps, **options):
        state = _core.BcfwSetState(small.problem.sums.in_memory()[0].native, weights=weights, sets=sets, gaps=gaps)
        _core.bcfw_set_epoch(state, np.arange(5), _core.BcfwSetOptions(**options))

    good = {"l2": 1.0, "weights": np.zeros(small.problem.n_weights), "gaps": np.zeros(5)}
    run(**good)
    with pytest.raises(ValueError, match=next(iter(change))):
        run(**{**good, **change})
