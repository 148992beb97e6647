"""`annealed`: it has its NumPy transcription's iterates, lowers its temperature, changes to labellings, resumes."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import KINDS, Small
from oracles import annealed_reference as reference
from partwise import _core, solve
from partwise.problem.dual_points import ActiveSet, DualPoint
from partwise.solvers import Annealed
from partwise.solvers.engine.state import pack, unpack

#: Options with which small problems reach the pairwise steps after a few passes.
QUICK = {"temperature": 1.0, "settled": 4.0, "last_temperature": 0.2, "labellings": 4, "sharpness": 2.0}
LOW = (0.02, 0.01, 1e-3, 1e-6)


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "projective"])
def test_the_same_iterates_as_the_transcription(kind):
    small = Small(kind, "hinge", ties=False, plain=True, l2=0.3)
    solver = Annealed(**QUICK)
    state = solver.init_state(small.problem, np.random.default_rng(1), None)
    expected = reference.start(small.dense, small.case.split(state.scores.copy()), solver)
    rng = np.random.default_rng(1)
    temperatures, averaged = [], 0
    for _ in range(10):
        solver.step(small.problem, state)
        reference.epoch(expected, solver, rng)
        temperatures.append(state.temperature)
        assert state.temperature == (0.0 if expected.kept else pytest.approx(expected.temperature))
        np.testing.assert_allclose(state.weights, expected.weights, atol=1e-8)
        assert state.dual == pytest.approx(expected.dual(), abs=1e-8)
        if expected.kept and state.gain > 1e-6:  # at the optimum, rounding decides when sweeps stop
            averaged += 1
            average = solver.finish.average_weights(state)
            np.testing.assert_allclose(average, expected.kept.average, atol=1e-8)
    # The run has used both kinds of steps and several temperatures.
    assert temperatures[0] > 0 == temperatures[-1]
    assert len(set(temperatures)) >= 3
    assert averaged > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_rises_at_each_temperature_and_the_certificate_is_for_zero(kind):
    small = Small(kind, "hinge", l2=0.2)
    solver = Annealed(settled=0.5, last_temperature=0.1)
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    rises = 0
    for _ in range(30):
        before, tau = state.dual, state.temperature
        solver.step(small.problem, state)
        certified = solver.certificate(small.problem, state)
        dual = small.problem.dual_value(certified.point)
        assert certified.certificate.dual == pytest.approx(dual, abs=1e-9)
        assert certified.certificate.primal == pytest.approx(small.dense.primal(certified.weights), rel=1e-10)
        assert certified.certificate.gap >= 0
        if state.temperature == tau:
            assert state.dual >= before - 1e-10
            rises += state.dual > before + 1e-9
        if state.temperature > 0:  # the state's dual includes the entropy term
            entropy = state.temperature * small.problem.sample_weight @ state.entropies
            assert state.dual == pytest.approx(certified.certificate.dual + entropy, abs=1e-9)
            np.testing.assert_allclose(state.weights, certified.weights, atol=1e-9)
    assert rises >= 3
    assert state.temperature == 0


@pytest.mark.parametrize("temperature", LOW)
@pytest.mark.parametrize("kind", KINDS)
def test_low_temperatures_stay_finite(kind, temperature):
    small = Small(kind, "hinge", l2=0.1)
    solver = Annealed(temperature=temperature, last_temperature=temperature / 4, settled=1e-9)
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    for _ in range(13):
        before, tau = state.dual, state.temperature
        solver.step(small.problem, state)
        for name, array in pack(state)[0].items():
            assert np.isfinite(array).all(), name
        assert np.isfinite(state.dual)
        if state.temperature == tau:
            assert state.dual >= before - 1e-9
        assert solver.certificate(small.problem, state).certificate.gap >= 0
    assert state.temperature < temperature
    assert solve(small.problem, solver, tol=1e-2, max_passes=3000).status == "converged"


@pytest.mark.parametrize("temperature", LOW)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_every_structure_at_low_temperatures(kind, temperature, rng):
    small = Small(kind, "hinge")
    for i, example in enumerate(small.dense.examples):
        scores = rng.normal(size=small.structure.num_slots(i)) * 30
        value, marginals, entropy = small.structure.log_partition(i, scores, temperature)
        expected = example.smax(scores.astype(np.longdouble), temperature)
        tolerance = max(1e-10, 30 / temperature * 1e-14)
        assert value == pytest.approx(float(expected[0]), rel=1e-12)
        np.testing.assert_allclose(marginals, expected[1].astype(float), atol=tolerance)
        assert entropy == pytest.approx(float(expected[2]), abs=10 * tolerance)


@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "python"])
def test_likely_labellings_are_the_most_probable(kind, most, rng):
    small = Small(kind, "hinge")
    scores = rng.normal(size=small.problem.n_slots)
    (part,) = small.problem.sums.in_memory()
    table = _core.likely_labellings(part.native, scores, most).to_arrays()
    for i, p in enumerate(small.distributions(scores)):
        best = np.sort(p)[::-1][:most]
        best = best[best >= 1e-3 * best[0]]
        own = slice(table["example_ptr"][i], table["example_ptr"][i + 1])
        np.testing.assert_allclose(table["coefficients"][own], best / best.sum(), rtol=1e-9)
    del table["stamps"]
    point = DualPoint.of_active_set(ActiveSet(**table))
    if most == 1000:  # at most 1000 labellings per example: nearly all of the mass
        whole = small.problem.dual_value(DualPoint.of_scores(scores))
        assert small.problem.dual_value(point) == pytest.approx(whole, rel=0.05)
    with pytest.raises(ValueError, match="at least 1"):
        _core.likely_labellings(part.native, scores, 0)
    with pytest.raises(ValueError, match="scores"):
        _core.likely_labellings(part.native, scores[1:], 2)


def test_a_run_resumed_across_the_change_to_labellings_has_the_same_bits():
    problem = Small("chain-tied", "hinge", l2=0.1, n=20).problem
    solver = Annealed(settled=2.0)
    through, broken = (solver.init_state(problem, np.random.default_rng(3), None) for _ in range(2))
    fresh = solver.init_state(problem, np.random.default_rng(0), None)
    seen = set()
    for _ in range(16):
        solver.step(problem, through)
        broken = unpack(fresh, *pack(broken))
        solver.step(problem, broken)
        seen.add(through.temperature > 0)
        (arrays, scalars), (others, other_scalars) = pack(through), pack(broken)
        assert scalars == other_scalars
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, others[name], err_msg=name)
    assert seen == {True, False}
    arrays, scalars = pack(through)
    with pytest.raises(ValueError, match="its temperature is 7"):
        unpack(fresh, arrays, {**scalars, "temperature": 7.0})


def test_warm_starts():
    small = Small("chain-tied", "hinge", l2=0.2)
    cold = solve(small.problem, Annealed(), tol=1e-3, random_state=0)
    assert cold.status == "converged"
    assert "sweeps without the oracle" in cold.message
    again = solve(small.problem, Annealed(), tol=1e-3, random_state=0, warm_start=cold)
    assert again.passes < cold.passes / 4
    scores = solve(small.problem, "eg", tol=1e-2, random_state=0)
    state = Annealed().init_state(small.problem, np.random.default_rng(0), scores)
    np.testing.assert_array_equal(state.scores, scores.dual_point.scores)
    assert state.temperature == 1.0
    with pytest.raises(ValueError, match="annealed at temperature 0 starts from a dual point"):
        solve(small.problem, Annealed(), warm_start=cold.weights)


def test_a_run_that_is_stopped_early_says_so():
    small = Small("chain-tied", "hinge", l2=0.2)
    with pytest.warns(UserWarning, match="annealed"):
        result = solve(small.problem, Annealed(), tol=1e-9, max_passes=2)
    assert "pairwise steps have not begun" in result.message
    assert result.gap == pytest.approx(result.primal - result.dual)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be a number above 0"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"last_temperature": -1.0}, "last_temperature"),
        ({"settled": float("inf")}, "settled"),
        ({"initial_step": 0.0}, "initial_step"),
        ({"factor": 1.0}, "factor must be above 0 and below 1"),
        ({"sharpness": -1.0}, "sharpness"),
        ({"growth": 0.9}, "growth"),
        ({"labellings": 0}, "labellings must be at least 1"),
        ({"memory_mb": 0.0}, "memory_mb"),
        ({"order": "sideways"}, "order"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Annealed(**options)
