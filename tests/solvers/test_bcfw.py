"""Block-coordinate Frank-Wolfe has the iterates of its NumPy transcription, and keeps a certified average."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.small_problems import Small
from oracles.bcfw_reference import bcfw
from oracles.bcfw_reference import start as reference_start
from partwise import solve
from partwise._core import BcfwOptions, BcfwState, bcfw_epoch
from partwise.problem.dual_points import DualPoint
from partwise.solvers import BCFW


def epoch(small: Small, state, order):
    names = ("weights", "counts", "mass", "linear", "lag", "average")
    blocks = BcfwState(small.problem.sums.in_memory()[0].native, **{name: getattr(state, name) for name in names})
    return bcfw_epoch(blocks, np.asarray(order, dtype=np.int64), BcfwOptions(l2=small.problem.l2))


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
def test_the_same_iterates_as_the_transcription(kind, rng):
    small = Small(kind, "hinge", ties=False, plain=True)
    solver = BCFW.plain()
    state = solver.init_state(small.problem, rng, None)
    reference = reference_start(small.dense)
    np.testing.assert_allclose(state.weights, 0.0, atol=1e-14)
    for order in rng.integers(0, small.dense.n, (8, small.dense.n)):
        epoch(small, state, order)
        bcfw(small.dense, reference, order)
        np.testing.assert_allclose(state.weights, reference.weights, atol=1e-10)
        np.testing.assert_allclose(state.counts, small.dense.slots(reference.ps), atol=1e-10)
        np.testing.assert_allclose(solver.average_weights(state), reference.average_weights, atol=1e-10)
        b = small.dense.linear_part(reference.average_ps)
        assert state.average[2] == pytest.approx(b, abs=1e-10)


def pair_steps(values, inner, ratio, x):
    """Move weight from the worst labelling with weight to the best until both are level. Return x and its change."""
    v, x, before = values.copy(), x.copy(), x.copy()
    for _ in range(10_000):
        s = int(np.argmax(v))
        a = int(np.argmin(np.where(x > 0, v, np.inf)))
        if v[s] - v[a] <= 1e-13:
            break
        curvature = ratio * (inner[s, s] + inner[a, a] - 2 * inner[s, a])
        gamma = min(x[a], (v[s] - v[a]) / curvature) if curvature > 0 else x[a]
        x[s], x[a] = x[s] + gamma, x[a] - gamma
        v -= ratio * gamma * (inner[:, s] - inner[:, a])
    return x, x - before


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
@pytest.mark.parametrize("sweeps", [0, 2])
def test_the_sequential_dual_method(kind, sweeps, rng):
    """A visit solves the example's dual over the labellings found for it; sweeps do the same without the oracle."""
    small = Small(kind, "hinge", ties=False, plain=True, l2=0.3)
    dense = small.dense
    solver = replace(BCFW.sequential_dual(sweeps=sweeps), order="cyclic")
    state = solver.init_state(small.problem, rng, None)
    gold = [
        int(np.flatnonzero((e.counts == g).all(axis=1))[0]) for e, g in zip(dense.examples, dense.gold, strict=True)
    ]
    known = [[k] for k in gold]
    shares = [np.ones(1) for _ in gold]
    w = np.zeros(dense.dim)
    for _ in range(6):
        for sweep in range(1 + sweeps):
            for i in range(dense.n):
                psi, costs, ratio = dense.psi(i), dense.label_costs(i), dense.sample_weight[i] / dense.l2
                best = int(np.argmax(costs - psi @ w))
                if sweep == 0 and best not in known[i]:
                    known[i].append(best)
                    shares[i] = np.append(shares[i], 0.0)
                own = psi[known[i]]
                shares[i], change = pair_steps(costs[known[i]] - own @ w, own @ own.T, ratio, shares[i])
                w = w + ratio * change @ own
        solver.step(small.problem, state)
        np.testing.assert_allclose(state.weights, w, atol=1e-8)
    assert state.sweeps == 6 * sweeps
    assert solve(small.problem, BCFW.sequential_dual(), tol=1e-3, max_passes=200).status == "converged"


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
def test_a_visit_maximises_over_its_segment_or_cone(kind, loss, rng):
    """No other step from the old point towards the corner that the visit chose has a larger dual."""
    small = Small(kind, loss)
    solver = BCFW.plain()
    state = solver.init_state(small.problem, rng, None)
    epoch(small, state, range(small.dense.n))
    offsets = small.structure.slot_offsets()
    for i in rng.integers(0, small.dense.n, 10):
        counts, mass, w = state.counts.copy(), state.mass.copy(), state.weights.copy()
        _, _, corner = small.dense.oracle(i, w)
        counts_of_corner = corner @ small.dense.examples[i].counts
        epoch(small, state, [i])
        reached = small.problem.dual_value(DualPoint.of_counts(state.counts, state.mass))
        block = slice(offsets[i], offsets[i + 1])
        for _ in range(30):
            if loss == "hinge":
                b = rng.random()
                a = 1 - b
            else:
                a, b = rng.exponential(1.0, 2) * (rng.random(2) < 0.8)
            other, other_mass = counts.copy(), mass.copy()
            other[block] = a * counts[block] + b * counts_of_corner
            other_mass[i] = a * mass[i] + b
            assert small.problem.dual_value(DualPoint.of_counts(other, other_mass)) <= reached + 1e-10


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_the_dual_never_falls_and_sums_stay_true(loss, rng):
    small = Small("chain-tied", loss)
    solver = BCFW.plain()
    state = solver.init_state(small.problem, rng, None)
    last = -np.inf
    for _ in range(30):
        solver.step(small.problem, state)
        point = DualPoint.of_counts(state.counts, state.mass)
        dual = small.problem.dual_value(point)
        assert dual >= last - 1e-12
        last = dual
        np.testing.assert_allclose(state.weights, small.problem.weights_from_dual(point), atol=1e-10)
        costs = small.case.split(small.problem.sums.slot_costs() * state.counts)
        np.testing.assert_allclose(state.linear, [c.sum() for c in costs], atol=1e-10)
        assert np.all(state.mass >= 0)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_the_average_helps_and_is_certified(loss):
    small = Small("chain-tied", loss, l2=0.3)
    result = solve(small.problem, "bcfw", tol=1e-2, random_state=3)
    plain = solve(small.problem, BCFW.plain(averaging=False), tol=1e-2, random_state=3, max_passes=5000)
    assert result.status == plain.status == "converged"
    assert plain.dual_point.kind == "slots"
    assert plain.gap == pytest.approx(
        small.dense.primal(plain.weights) - small.problem.dual_value(plain.dual_point), abs=1e-10
    )


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_warm_starts(loss):
    small = Small("chain-tied", loss)
    cold = solve(small.problem, "bcfw", tol=1e-2, random_state=0)
    again = solve(small.problem, "bcfw", tol=1e-2, random_state=0, warm_start=cold)
    assert again.passes < cold.passes
    assert again.status == "converged"
    with pytest.raises(ValueError, match="weights alone do not"):
        solve(small.problem, "bcfw", warm_start=cold.weights)
    with pytest.raises(ValueError, match="warm start"):
        solve(small.problem, "bcfw", warm_start=DualPoint.of_counts(np.zeros(3)))


def test_a_warm_start_from_eg():
    small = Small("chain-tied", "hinge")
    first = solve(small.problem, "eg", tol=1e-2, random_state=0)
    cold = solve(small.problem, "bcfw", tol=1e-2, random_state=0)
    assert solve(small.problem, "bcfw", tol=1e-2, random_state=0, warm_start=first).passes < cold.passes


def test_the_blocks_of_an_average_can_be_a_warm_start():
    blocks = DualPoint.of_counts(np.ones(3))
    assert DualPoint.of_plane(np.ones(2), 1.0, blocks).with_blocks() is blocks
    assert blocks.with_blocks() is blocks


def test_sweeps_in_random_order_visit_examples_not_seen_before():
    small = Small("chain-tied", "hinge", l2=0.05, n=40, seed=2)
    passes = {order: solve(small.problem, BCFW(order=order), tol=1e-3).passes for order in ("random", "permuted")}
    # Passes would grow 3.5-fold if sweeps skipped examples that they have not seen
    assert passes["random"] <= 2.5 * passes["permuted"], passes
