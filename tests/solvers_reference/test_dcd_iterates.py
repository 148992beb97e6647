"""dcd, dcd-light and cpd have the iterates of the transcribed algorithms of Chang and Yih 2013, for the same seed.

The paper's objective (4) is checked too.
"""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles import dcd_reference as reference
from partwise import _core
from partwise.solvers import CPD, DCD, DCDLight
from partwise.solvers.working_sets.kept_labellings import KeptLabellings

KINDS = ("multiclass", "chain-tied", "chain-untied", "python")

FORMS = [
    DCD(),
    DCD(rounds=2, delta=0.2),
    DCDLight(),
    CPD(),
    CPD(max_rounds=3),
    DCD(rounds=1, violators=3),
    DCDLight(violators=2),
    CPD(violators=4, max_rounds=3),
]


def reference_epoch(state, solver, rng):
    """Make one epoch of the solver with the reference, drawing orders and seeds as the solver does."""

    def visits(oracle, update=True):
        order = rng.permutation(state.problem.n)
        seed = int(rng.integers(2**63))
        own = {"oracle": oracle, "update": update, "violators": solver.violators}
        reference.visits(state, order, seed, solver.delta, **own)

    if solver.name == "cpd":
        visits(True, update=False)
        for _ in range(solver.max_rounds):
            state.violation = 0.0
            visits(False)
            if state.violation <= solver.inner_tol:
                break
        return
    for _ in range(getattr(solver, "rounds", 0)):
        visits(False)
    visits(True)


@pytest.mark.parametrize("solver", FORMS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_iterates_as_the_transcription(kind, solver):
    if kind == "python" and solver.violators > 1:
        pytest.skip("without k_best")
    small = Small(kind, "squared-hinge", ties=False, plain=True)
    state = solver.init_state(small.problem, np.random.default_rng(7), None)
    expected, rng = reference.start(small.dense), np.random.default_rng(7)
    for _ in range(8):
        solver.step(small.problem, state)
        reference_epoch(expected, solver, rng)
        np.testing.assert_allclose(state.weights, expected.weights, atol=1e-9)
        kept = state.sets.to_arrays()
        np.testing.assert_array_equal(np.diff(kept["example_ptr"]), [len(working) for working in expected.working])
        pairs = enumerate(zip(expected.alpha, expected.working, strict=True))
        alpha = np.concatenate([a[w] / expected.c(i) for i, (a, w) in pairs])
        np.testing.assert_allclose(kept["coefficients"], alpha, atol=1e-9)
        # (4) is -D / l2
        dual = small.problem.dual_value(state.sets.point())
        assert -dual / small.dense.l2 == pytest.approx(expected.objective(), abs=1e-9)
    assert np.all(np.diff([0.0, *expected.objectives]) <= 1e-12)
    assert expected.objectives[-1] < -1e-3


@pytest.mark.parametrize("l2", [0.02, 0.7, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_4_never_increases(kind, l2, rng):
    """Objective (4) rises in no visit, with the oracle, without it, or without updates; the reported gain is true."""
    small = Small(kind, "squared-hinge", l2=l2, plain=True)
    sets, weights = _core.WorkingSets(small.dense.n), np.zeros(small.problem.n_weights)
    last = 0.0
    for seed in range(150):
        order = rng.integers(small.dense.n, size=1)
        search, update = [(True, True), (False, True), (True, False)][rng.integers(3)]
        report = _core.dcd_epoch(
            _core.DcdState(small.problem.sums.in_memory()[0].native, weights=weights, sets=sets),
            order,
            _core.DcdOptions(l2=l2, search=search, update=update, delta=1e-6, seed=seed),
        )
        point = KeptLabellings([sets]).point()
        value = -small.problem.dual_value(point) / l2
        assert value <= last + 1e-11 * max(1.0, abs(last))
        assert last - value == pytest.approx(report.dual_gain / l2, abs=1e-8 * max(1.0, abs(last)))
        np.testing.assert_allclose(
            weights, small.problem.weights_from_dual(point), atol=1e-9 * (1 + abs(weights).max())
        )
        last = value
    assert last < 0
