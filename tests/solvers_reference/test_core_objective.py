"""The core's sums over examples equal the enumerated objective, for every loss and unequal sample weights."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.objective import LOSSES, random_dual_point
from oracles.problems import make_case
from partwise import _core

L2 = 0.7


@pytest.fixture
def case(random_case):
    return random_case


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [0.0, 0.5, 5.0])
def test_value_and_plane(case, loss, scale, rng):
    problem, objective = case.dense(loss, L2), case.objective(loss)
    w = scale * rng.normal(size=problem.dim)
    if problem.temperature == 0:
        w += 1e-3 * rng.normal(size=problem.dim)  # away from ties, where any of the best labellings would be right
    ps, mass = problem.best_response(w)
    value, u, b = objective.plane(w)
    assert objective.value(w) == pytest.approx(problem.loss_sum(w), rel=1e-11, abs=1e-10)
    assert value == pytest.approx(problem.loss_sum(w), rel=1e-11, abs=1e-10)
    np.testing.assert_allclose(u, problem.direction(ps, mass), rtol=1e-10, atol=1e-10)
    assert b == pytest.approx(problem.linear_part(ps, mass), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_u_is_minus_the_derivative_of_the_value(case, loss, rng):
    objective = case.objective(loss)
    w, direction = rng.normal(size=(2, case.features.num_weights))
    _, u, _ = objective.plane(w)
    step = 1e-6
    numeric = (objective.value(w + step * direction) - objective.value(w - step * direction)) / (2 * step)
    assert numeric == pytest.approx(-float(u @ direction), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("loss", ["log", "hinge", "softmax-margin", "smoothed-hinge"])
def test_gibbs_points(case, loss, rng):
    problem, objective = case.dense(loss, L2), case.objective(loss)
    scores = [rng.normal(size=e.counts.shape[1]) for e in case.examples]
    us = [e.probabilities(s) for e, s in zip(case.examples, scores, strict=True)]
    flat = np.concatenate(scores)
    u, b = objective.dual_terms_gibbs(flat)
    np.testing.assert_allclose(u, problem.direction(us), atol=1e-10)
    assert b == pytest.approx(problem.linear_part(us), abs=1e-10)
    marginals, entropies = objective.marginals_of_scores(flat)
    np.testing.assert_allclose(marginals, problem.slots(us), atol=1e-10)
    np.testing.assert_allclose(entropies, problem.entropies(us), atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_points_given_by_their_counts(case, loss, rng):
    problem, objective = case.dense(loss, L2), case.objective(loss)
    for _ in range(3):
        ps, mass = random_dual_point(problem, rng)
        u, b = objective.dual_terms_slots(problem.slots(ps, mass), mass, mass * problem.entropies(ps))
        np.testing.assert_allclose(u, problem.direction(ps, mass), atol=1e-10)
        assert b == pytest.approx(problem.linear_part(ps, mass), abs=1e-10)
        dual = b - float(u @ u) / (2 * L2)
        assert dual <= problem.primal(u / L2) + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_for_any_number_of_threads(loss, rng):
    case = make_case("chain-tied", seed=52, n=30)
    objective = case.objective(loss)
    w = rng.normal(size=case.features.num_weights)
    one, two = objective.plane(w, n_jobs=1), objective.plane(w, n_jobs=2)
    assert (one[0], one[2]) == (two[0], two[2])
    np.testing.assert_array_equal(one[1], two[1])
    assert objective.value(w, n_jobs=1) == objective.value(w, n_jobs=2)
    scores = rng.normal(size=int(case.structure.slot_offsets()[-1]))
    u1, b1 = objective.dual_terms_gibbs(scores, n_jobs=1)
    u2, b2 = objective.dual_terms_gibbs(scores, n_jobs=2)
    np.testing.assert_array_equal(u1, u2)
    assert b1 == b2


def test_gold_cost_and_start(case):
    objective, problem = case.objective("hinge"), case.dense("hinge", L2)
    objective.check_gold()
    for i in range(case.n):
        np.testing.assert_array_equal(objective.gold(i), problem.gold[i])
        np.testing.assert_array_equal(objective.cost(i), problem.cost[i])
    start = objective.near_gold_scores(3.0)
    np.testing.assert_array_equal(start, -3.0 * np.concatenate(problem.cost))


def test_costs_given_by_the_caller(case, rng):
    problem = case.dense("hinge", L2)
    costs = [rng.uniform(0, 2, len(g)) * (g == 0) for g in problem.gold]
    objective = _core.Objective(
        case.structure, case.features, *case.gold, 0.0, 1.0, "identity", np.concatenate(costs), case.sample_weight
    )
    own = type(problem)(
        problem.examples, problem.matrices, problem.gold, costs, problem.sample_weight, L2, 0.0, 1.0, "identity"
    )
    w = rng.normal(size=problem.dim)
    assert objective.value(w) == pytest.approx(own.loss_sum(w), abs=1e-10)
    np.testing.assert_array_equal(objective.cost(1), costs[1])


def test_decode_infer_and_scores(case, rng):
    w = rng.normal(size=case.features.num_weights)
    scores = [m @ w for m in case.matrices]
    for n_jobs in (1, 2):
        np.testing.assert_allclose(
            _core.all_scores(case.structure, case.features, w, n_jobs), np.concatenate(scores), atol=1e-12
        )
        indptr, slots, counts, values = _core.decode(case.structure, case.features, w, n_jobs)
        marginals, logs, entropies = _core.infer(case.structure, case.features, w, 0.5, n_jobs)
        for i, (e, s, mu) in enumerate(zip(case.examples, scores, case.split(marginals), strict=True)):
            best, which = e.maximum(s)
            assert values[i] == pytest.approx(best, abs=1e-12)
            part = slice(indptr[i], indptr[i + 1])
            assert e.index_of(slots[part], counts[part]) == which
            expected = e.smax(s, 0.5)
            assert logs[i] == pytest.approx(expected[0], abs=1e-11)
            np.testing.assert_allclose(mu, expected[1], atol=1e-11)
            assert entropies[i] == pytest.approx(expected[2], abs=1e-10)


def test_gold_outside_the_labellings_is_named():
    case = make_case("chain-tied", seed=53)
    counts = case.examples[2].counts
    allowed = (counts[np.any(counts != case.gold_counts[2], axis=1)][0] > 0).astype(np.uint8)
    case.structure.set_mask(2, allowed)  # now only a labelling other than gold is allowed
    with pytest.raises(ValueError, match="2"):
        case.objective("log").check_gold()


def objective_with(case, **changes):
    arguments = {
        "structure": case.structure,
        "features": case.features,
        "gold_indptr": case.gold[0],
        "gold_slots": case.gold[1],
        "gold_counts": case.gold[2],
        "temperature": 1.0,
        "cost_scale": 1.0,
        "link": "identity",
    }
    return _core.Objective(**(arguments | changes))


BAD = {
    "temperature": [-1.0, np.nan, np.inf],
    "cost_scale": [np.nan, np.inf],
    "link": ["cubic", ""],
    "sample_weight": [np.array([1.0, -1.0, 1.0, 1.0]), np.ones(3), np.array([1.0, np.nan, 1.0, 1.0]), np.zeros(0)],
    "cost": [np.ones(3), np.full(16, np.nan), np.zeros(0)],
    "gold_indptr": [np.array([0, 1]), np.array([0, 2, 1, 3, 4]), np.array([0, 1, 2, 3, 5])],
    "gold_slots": [np.array([0, 1, 2, 99]), np.array([0, 1, 2, -1]), np.array([0, 1])],
    "gold_counts": [np.ones(3), np.array([1.0, 1.0, 1.0, np.nan])],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_objectives(name, value):
    case = make_case("multiclass", seed=54)
    objective_with(case)  # the unchanged arguments are accepted
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        objective_with(case, **{name: value})


def sparse_counts(case, **changes):
    """One slot per example: slot 0, used once, with mass 1, unless other arrays are given."""
    n = case.n
    arguments = {
        "indptr": np.arange(n + 1),
        "slots": np.zeros(n, dtype=np.int64),
        "counts": np.ones(n),
        "mass": np.ones(n),
    }
    return (arguments | changes).values()


def test_counts_of_few_slots(rng):
    # The values have the same bits as with all slots written out. A slot may be listed twice.
    case = make_case("chain-tied", seed=57)
    objective = case.objective("squared-hinge")
    offsets = case.structure.slot_offsets()
    indptr = np.cumsum([0, *rng.integers(0, 6, case.n)])
    owner = np.repeat(np.arange(case.n), np.diff(indptr))
    slots = rng.integers(0, np.diff(offsets)[owner])
    counts, mass = rng.random(len(slots)), rng.random(case.n)
    dense = np.bincount(offsets[owner] + slots, weights=counts, minlength=int(offsets[-1]))
    u, b = objective.dual_terms_slots(dense, mass, None)
    v, c = objective.dual_terms_sparse(indptr, slots, counts, mass)
    np.testing.assert_array_equal(u, v)
    assert b == c


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("slots", np.array([0, 0, 0, 99])),
        ("slots", np.array([0, 0, 0, -1])),
        ("indptr", np.array([0, 1, 2, 3, 5])),
        ("indptr", np.array([0, 2, 1, 3, 4])),
        ("indptr", np.array([-1, 1, 2, 3, 4])),
        ("counts", np.array([1.0, 1.0, 1.0, np.nan])),
    ],
)
def test_bad_counts_of_few_slots(name, value):
    case = make_case("multiclass", seed=55)
    objective = case.objective("log")
    objective.dual_terms_sparse(*sparse_counts(case))  # the unchanged arguments are accepted
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        objective.dual_terms_sparse(*sparse_counts(case, **{name: value}))


@pytest.mark.parametrize("extra", [-1, 1])
def test_arrays_of_the_wrong_length(extra):
    case = make_case("multiclass", seed=55)
    objective = case.objective("log")
    weights, slots = np.zeros(case.features.num_weights + extra), np.zeros(4 * case.n + extra)
    for call in (
        lambda: objective.value(weights),
        lambda: objective.plane(weights),
        lambda: objective.dual_terms_gibbs(slots),
        lambda: objective.dual_terms_slots(slots, None, None),
        lambda: objective.dual_terms_slots(np.zeros(4 * case.n), np.zeros(case.n + extra), None),
        lambda: objective.dual_terms_slots(np.zeros(4 * case.n), None, np.zeros(case.n + extra)),
        lambda: objective.dual_terms_sparse(*sparse_counts(case, mass=np.zeros(case.n + extra))),
        lambda: objective.dual_terms_sparse(*sparse_counts(case, indptr=np.zeros(case.n + 1 + extra, dtype=np.int64))),
        lambda: objective.dual_terms_sparse(*sparse_counts(case, counts=np.zeros(case.n + extra))),
        lambda: objective.marginals_of_scores(slots),
        lambda: _core.decode(case.structure, case.features, weights),
        lambda: _core.infer(case.structure, case.features, weights),
        lambda: _core.all_scores(case.structure, case.features, weights),
    ):
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            call()
    for i in (-1, 4):
        with pytest.raises((ValueError, IndexError), match="example"):
            objective.gold(i)
        with pytest.raises((ValueError, IndexError), match="example"):
            objective.cost(i)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_must_be_finite(bad):
    case = make_case("chain-tied", seed=56)
    w = np.zeros(case.features.num_weights)
    w[0] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        case.objective("log").value(w)
    with pytest.raises(ValueError, match="NaN or infinity"):
        _core.decode(case.structure, case.features, w)


def test_structure_and_features_must_agree():
    one, other = make_case("multiclass", seed=57), make_case("chain-tied", seed=57, n=3)
    with pytest.raises(ValueError, match="examples"):
        objective_with(one, features=other.features)
    with pytest.raises(ValueError, match="slots"):
        objective_with(one, features=make_case("chain-tied", seed=58).features)
