"""Penalties with a shift (a linear term): the objective equals enumeration, and solvers find the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import KINDS, TOLERANCE, Small, checked_often, has_option
from oracles.objective import LOSSES, random_dual_point
from partwise import Problem, available_solvers, get_solver, solve
from partwise.problem.dual_points import DualPoint
from partwise.problem.penalties import ElasticNet
from partwise.solvers import suitable_solvers

CLAIMING = [name for name in available_solvers() if get_solver(name).in_blocks() is not None]


class Shifted(Small):
    """A small problem with -<shift, w> added to its penalty."""

    def __init__(self, kind: str, loss: str, **options) -> None:
        super().__init__(kind, loss, **options)
        self.shift = np.random.default_rng(3).normal(size=self.problem.n_weights)
        self.shifted = self.problem.with_shift(self.shift)

    def primal(self, w: np.ndarray) -> float:
        return self.dense.primal(w) - float(self.shift @ w)


@pytest.fixture(params=[(kind, loss) for kind in KINDS for loss in LOSSES], ids="-".join)
def small(request):
    return Shifted(*request.param)


def test_the_primal_is_the_enumerated_one(small, rng):
    w, direction = rng.normal(size=(2, small.shifted.n_weights))
    value, gradient = small.shifted.value_and_gradient(w)
    assert value == pytest.approx(small.primal(w), rel=1e-12)
    assert small.shifted.value(w) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient, small.dense.gradient(w) - small.shift, atol=1e-10)
    ahead, behind = small.shifted.value(w + 1e-6 * direction), small.shifted.value(w - 1e-6 * direction)
    assert (ahead - behind) / 2e-6 == pytest.approx(float(gradient @ direction), rel=1e-5, abs=1e-5)


def test_the_dual_is_the_minimum_over_the_weights(small, rng):
    """D = min over w of b - <u, w> + l2/2 |w|^2 - <shift, w>. No weights give less, and w(alpha) attains D."""
    ps, mass = random_dual_point(small.dense, rng)
    point = DualPoint.of_counts(small.dense.slots(ps, mass), mass, mass * small.dense.entropies(ps))
    u, b = small.shifted.dual_terms(point)
    l2 = small.shifted.l2

    def model(w: np.ndarray) -> float:
        return b - float(u @ w) + 0.5 * l2 * float(w @ w) - float(small.shift @ w)

    dual, w = small.shifted.dual_value(point), small.shifted.weights_from_dual(point)
    assert model(w) == pytest.approx(dual, abs=1e-10)
    assert small.shifted.dual_of_weights(w, b) == pytest.approx(dual, abs=1e-10)
    assert all(model(w + step) > dual for step in 0.1 * rng.normal(size=(5, len(w))))
    np.testing.assert_allclose(small.shifted.plane_of_weights(w), u, atol=1e-11)
    other = small.shifted.with_penalty(2.5)
    assert small.shifted.change_of_dual(w, other) == pytest.approx(other.dual_value(point) - dual, abs=1e-9)
    for v in (w, rng.normal(size=len(w))):
        certificate = small.shifted.certificate(v, point)
        assert certificate.raw_gap >= 0
        assert certificate.primal == pytest.approx(small.primal(v), rel=1e-11, abs=1e-11)
        assert certificate.rounding <= 1e-10 * (1 + certificate.gap)


def test_the_plane_at_the_weights_touches_the_objective(small, rng):
    w = rng.normal(size=small.shifted.n_weights)
    value, gradient = small.shifted.value_and_gradient(w)
    _, u, b = small.shifted.plane(w)
    touching = small.shifted.touching_plane(w, value, gradient)
    np.testing.assert_allclose(touching[0], u, atol=1e-10)
    assert touching[1] == pytest.approx(b, abs=1e-9)
    at_w, of_plane = small.shifted.certificate_at(value, gradient, w), small.shifted.certificate_of(value, u, b, w)
    assert at_w.gap == pytest.approx(of_plane.gap, rel=1e-8)


def test_a_part_sees_the_rest_as_a_shift(rng):
    """D of the whole problem equals D of one half, shifted by the other half's plane u, plus the other half's b."""
    small = Small("chain-tied", "log", n=6)
    scores = rng.normal(size=small.problem.n_slots)
    offsets = small.problem.slot_offsets
    omega = small.problem.sample_weight

    def half(kept: np.ndarray) -> Problem:
        weight = np.where(kept, omega, 0.0)
        return Problem(small.case.features, small.structure, small.case.gold, "log", 0.7, sample_weight=weight)

    first = np.arange(6) < 3
    assert offsets[3] > 0
    point = DualPoint.of_scores(scores)
    one, two = half(first), half(~first)
    u, b = two.dual_terms(point)
    whole = small.problem.dual_value(point)
    assert one.with_shift(u).dual_value(point) + b == pytest.approx(whole, rel=1e-12)
    np.testing.assert_allclose(
        one.with_shift(u).weights_from_dual(point), small.problem.weights_from_dual(point), atol=1e-12
    )


@pytest.mark.parametrize("solver", CLAIMING)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "maxent", "projective"])
def test_solvers_find_the_shifted_optimum(solver, loss, kind):
    small = Shifted(kind, loss)
    if solver not in suitable_solvers(small.shifted):
        return
    tol = 10 * TOLERANCE[get_solver(solver).rate_for(small.loss)]
    result = solve(small.shifted, checked_often(solver), tol=tol, random_state=1, max_passes=3000)
    assert result.status == "converged"
    assert result.primal == pytest.approx(small.primal(result.weights), rel=1e-10)
    assert 0 <= result.gap <= tol * abs(result.primal)
    assert small.shifted.dual_value(result.dual_point) == pytest.approx(result.dual, abs=1e-9)
    assert np.all(result.history["primal"] - result.history["dual"] >= -1e-10)


@pytest.mark.parametrize("solver", [name for name in CLAIMING if has_option(name, "check_every")])
def test_updated_weights_are_those_of_the_dual_point(solver):
    """After 25 passes, more than lie between two recomputations of the weights, which would hide a wrong update."""
    loss = "squared-hinge" if {"squared link"} & get_solver(solver).requires else None
    loss = loss or ("hinge" if "temperature 0" in get_solver(solver).requires else "log")
    small = Shifted("chain-tied", loss)
    method = get_solver(solver).in_blocks().inner
    state = method.init_state(small.shifted, np.random.default_rng(0), None)
    for _ in range(25):
        before, gained = small.shifted.dual_value(method.dual_point(small.shifted, state)), state.raised
        method.step(small.shifted, state)
        point = method.dual_point(small.shifted, state)
        np.testing.assert_allclose(state.weights, small.shifted.weights_from_dual(point), atol=1e-9)
        assert small.shifted.dual_value(point) - before == pytest.approx(state.raised - gained, rel=1e-5, abs=1e-6)


def test_other_solvers_and_l1_penalties_refuse_a_shift():
    small = Shifted("chain-tied", "log")
    for solver in ("lbfgs", "excessive-gap", "newton"):
        with pytest.raises(ValueError, match="does not take problems with a shift"):
            solve(small.shifted, solver)
    with pytest.raises(ValueError, match="needs l2 > 0 on all weights, no l1"):
        small.shifted.with_penalty(ElasticNet(0.1, 1.0))
    with pytest.raises(ValueError, match="needs l2 > 0"):
        small.shifted.with_penalty(0.0)
    with pytest.raises(ValueError, match="shift of shape"):
        small.problem.with_shift(np.zeros(3))
    assert small.shifted.with_shift(None).shift is None
