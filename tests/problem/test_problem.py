"""The objective, its gradient, its dual and its certificates equal those computed by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.small_problems import KINDS, Listed, Small
from oracles.objective import LOSSES, random_dual_point
from partwise import CertificateError, Problem, Structure
from partwise.features import multiclass_map
from partwise.problem.capabilities import structure_capabilities
from partwise.problem.dual_points import ActiveSet, DualPoint
from partwise.problem.losses import Loss, get_loss
from partwise.problem.penalties import L2, ElasticNet
from partwise.structures import Multiclass


@pytest.fixture(params=[(kind, loss) for kind in KINDS for loss in LOSSES], ids="-".join)
def small(request):
    return Small(*request.param)


class TestAgainstEnumeration:
    def test_value_and_gradient(self, small, rng):
        for scale in (0.0, 0.3, 5.0):
            w = scale * rng.normal(size=small.problem.n_weights)
            value, gradient = small.problem.value_and_gradient(w)
            assert value == pytest.approx(small.dense.primal(w), rel=1e-12)
            assert small.problem.value(w) == pytest.approx(value, rel=1e-13)
            np.testing.assert_allclose(gradient, small.dense.gradient(w), atol=1e-10)

    def test_gradient_is_the_derivative(self, small, rng):
        w, direction = rng.normal(size=(2, small.problem.n_weights))
        step = 1e-6
        ahead, behind = small.problem.value(w + step * direction), small.problem.value(w - step * direction)
        slope = float(small.problem.value_and_gradient(w)[1] @ direction)
        assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-6)

    def test_dual_of_expected_counts(self, small, rng):
        ps, mass = random_dual_point(small.dense, rng)
        point = DualPoint.of_counts(small.dense.slots(ps, mass), mass, mass * small.dense.entropies(ps))
        u, b = small.problem.dual_terms(point)
        np.testing.assert_allclose(u, small.dense.direction(ps, mass), atol=1e-11)
        assert b == pytest.approx(small.dense.linear_part(ps, mass), abs=1e-11)
        assert small.problem.dual_value(point) == pytest.approx(small.dense.dual(ps, mass), abs=1e-10)
        np.testing.assert_allclose(small.problem.weights_from_dual(point), small.dense.weights(ps, mass), atol=1e-11)
        plane = DualPoint.of_plane(u, b)
        assert small.problem.dual_value(plane) == small.problem.dual_value(point)

    def test_dual_of_slot_scores(self, small, rng):
        scores = 2 * rng.normal(size=int(small.structure.slot_offsets()[-1]))
        ps = small.distributions(scores)
        found = small.problem.dual_value(DualPoint.of_scores(scores))
        assert found == pytest.approx(small.dense.dual(ps, np.ones(small.dense.n)), abs=1e-10)

    def test_gap_of_the_oracles_answer(self, small, rng):
        w = rng.normal(size=small.problem.n_weights)
        value, gradient = small.problem.value_and_gradient(w)
        _, u, b = small.problem.plane(w)
        certificate = small.problem.certificate(w, DualPoint.of_plane(u, b))
        assert certificate.primal == pytest.approx(value, rel=1e-13)
        at_w = small.problem.certificate_at(value, gradient, w)
        assert certificate.gap == pytest.approx(at_w.gap, rel=1e-9)
        assert at_w.resolution <= at_w.rounding <= 1e-11 * value
        if small.loss.smooth and small.loss.link == "identity":
            again = small.problem.certificate(w, small.problem.oracle_point(w))
            assert again.gap == pytest.approx(certificate.gap, rel=1e-9)

    def test_no_dual_point_is_above_a_primal_point(self, small, rng):
        for scale in (0.0, 0.5, 3.0):
            ps, mass = random_dual_point(small.dense, rng)
            point = DualPoint.of_counts(small.dense.slots(ps, mass), mass, mass * small.dense.entropies(ps))
            for w in (scale * rng.normal(size=small.problem.n_weights), small.problem.weights_from_dual(point)):
                certificate = small.problem.certificate(w, point)
                assert certificate.gap == certificate.raw_gap + certificate.rounding
                assert certificate.raw_gap >= 0
                assert certificate.rounding <= 1e-10 * certificate.gap

    def test_threads_do_not_change_a_bit(self, small, rng):
        w = rng.normal(size=small.problem.n_weights)
        other = small.problem.with_n_jobs(3)
        assert other.value(w) == small.problem.value(w)
        assert other.value_and_gradient(w)[0] == small.problem.value_and_gradient(w)[0]
        np.testing.assert_array_equal(other.value_and_gradient(w)[1], small.problem.value_and_gradient(w)[1])


@pytest.mark.parametrize("loss", ["log", "hinge", "smoothed-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
def test_dual_of_clique_marginals(kind, loss, rng):
    small = Small(kind, loss)
    scores = rng.normal(size=int(small.structure.slot_offsets()[-1]))
    parts = [small.structure.clique_marginals(i, s, 1.0) for i, s in enumerate(small.case.split(scores))]
    found = small.problem.dual_value(DualPoint.of_cliques(np.concatenate(parts)))
    assert found == pytest.approx(small.problem.dual_value(DualPoint.of_scores(scores)), abs=1e-10)
    with pytest.raises(ValueError, match="clique marginals given"):
        small.problem.dual_value(DualPoint.of_cliques(np.concatenate([*parts, [0.0]])))


def test_clique_points_need_cliques_and_mass_one():
    with pytest.raises(ValueError, match="Listed has no clique view"):
        Small("python", "log").problem.dual_value(DualPoint.of_cliques(np.zeros(3)))
    with pytest.raises(ValueError, match="identity link"):
        Small("multiclass", "squared-hinge").problem.dual_value(DualPoint.of_cliques(np.zeros(3)))


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_dual_of_an_active_set(loss, rng):
    small = Small("chain-tied", loss)
    ps, mass = [], []
    pieces: dict[str, list] = {"labelling_sizes": [], "slots": [], "counts": [], "coefficients": [], "sizes": []}
    for i, example in enumerate(small.dense.examples):
        # The first example gets no labellings
        kept = rng.choice(len(example), size=min(len(example), i), replace=False)
        share = rng.dirichlet(np.ones(len(kept))) if len(kept) else np.zeros(0)
        s = 1.0 if loss == "hinge" else (float(rng.exponential()) if len(kept) else 0.0)
        if loss == "hinge" and not len(kept):
            kept, share = np.array([0]), np.ones(1)
        p = np.zeros(len(example))
        p[kept] = share
        ps.append(p if len(kept) else np.full(len(example), 1 / len(example)))
        mass.append(s)
        pieces["sizes"].append(len(kept))
        pieces["coefficients"].extend(s * share)
        for k in kept:
            used = np.flatnonzero(example.counts[k])
            pieces["labelling_sizes"].append(len(used))
            pieces["slots"].extend(used)
            pieces["counts"].extend(example.counts[k][used])
    active = ActiveSet(
        np.cumsum([0, *pieces["sizes"]]),
        np.cumsum([0, *pieces["labelling_sizes"]]),
        np.array(pieces["slots"], dtype=np.int64),
        np.array(pieces["counts"]),
        np.array(pieces["coefficients"]),
    )
    found = small.problem.dual_value(DualPoint.of_active_set(active))
    assert found == pytest.approx(small.dense.dual(ps, np.array(mass)), abs=1e-11)
    smooth = Small("chain-tied", "log").problem
    with pytest.raises(ValueError, match="temperature 0 only"):
        smooth.dual_value(DualPoint.of_active_set(active))
    with pytest.raises(ValueError, match="examples"):
        Small("chain-tied", "hinge", n=4).problem.dual_value(DualPoint.of_active_set(active))


def test_a_dual_value_above_the_primal_is_an_error():
    problem = Small("multiclass", "log").problem
    w = np.zeros(problem.n_weights)
    primal = problem.value(w)
    with pytest.raises(CertificateError, match="exceeds primal"):
        problem.certificate(w, DualPoint.of_plane(np.zeros_like(w), primal * (1 + 1e-7)))
    within = problem.certificate(w, DualPoint.of_plane(np.zeros_like(w), primal * (1 + 4e-16)))
    assert within.raw_gap < 0.0 < within.gap == within.raw_gap + within.rounding < 1e-13 * primal


def test_without_a_penalty_there_is_no_certificate():
    problem = Small("multiclass", "log", l2=0.0).problem
    w = np.zeros(problem.n_weights)
    point = problem.oracle_point(w)
    assert problem.dual_value(point) == -np.inf
    assert problem.certificate(w, point).gap == np.inf
    with pytest.raises(ValueError, match="l2 = 0"):
        problem.weights_from_dual(point)
    assert "l2 > 0" not in problem.capabilities()


def test_a_dual_point_that_lacks_its_arrays_is_refused():
    with pytest.raises(ValueError, match="lacks"):
        Small("multiclass", "log").problem.dual_terms(DualPoint("gibbs"))


def test_sample_weights_act_like_copies_of_examples(rng):
    rows, labels, omega = rng.normal(size=(6, 3)), rng.integers(0, 3, 6), np.array([0, 1, 2, 3, 1, 2])
    again = np.repeat(np.arange(6), omega)
    problems = []
    for index, weight in ((np.arange(6), omega), (again, None)):
        structure = Multiclass(len(index), 3)
        features = multiclass_map(structure, rows[index])
        gold = structure.encode(labels[index])
        problems.append(Problem(features, structure, gold, "log", 0.3, sample_weight=weight))
    w = rng.normal(size=problems[0].n_weights)
    assert problems[0].value(w) == pytest.approx(problems[1].value(w), rel=1e-13)
    np.testing.assert_allclose(problems[0].value_and_gradient(w)[1], problems[1].value_and_gradient(w)[1], atol=1e-12)
    assert problems[0].active.tolist() == [1, 2, 3, 4, 5]


def test_costs_given_by_the_user():
    small = Small("chain-tied", "hinge")
    rng = np.random.default_rng(3)
    cost = rng.uniform(0, 2, int(small.structure.slot_offsets()[-1])) * (np.concatenate(small.dense.gold) == 0)
    problem = Problem(
        small.case.features,
        small.structure,
        small.case.gold,
        "hinge",
        0.7,
        cost=cost,
        sample_weight=small.case.sample_weight,
    )
    dense = replace(small.dense, cost=small.case.split(cost))
    w = rng.normal(size=problem.n_weights)
    assert problem.value(w) == pytest.approx(dense.primal(w), rel=1e-12)
    np.testing.assert_allclose(problem.sums.slot_costs(), cost)


@pytest.mark.parametrize("strength", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
def test_dual_of_an_elastic_net(loss, strength, rng):
    """The dual value of a plane is that of its best mixture with the plane of the gold labellings, which is 0."""
    l1 = 0.5
    problem = Small("multiclass", loss).problem.with_penalty(ElasticNet(l1, strength))
    below = 0
    for scale in (0.1, 0.6, 1.0, 3.0, 10.0):
        for b in (-1.0, 0.0, 0.5, 5.0, 50.0):
            u = scale * rng.normal(size=problem.n_weights)

            def value(s, u=u, b=b):
                excess = np.maximum(s * np.abs(u) - l1, 0.0)
                if strength == 0:
                    return s * b if not (excess > 1e-12).any() else -np.inf
                return s * b - float(excess @ excess) / (2 * strength)

            whole = min(1.0, l1 / np.abs(u).max())
            fine = [value(s) for s in (*np.linspace(0.0, 1.0, 2001), whole)]
            # Where u lies in the box the whole plane is best; elsewhere search for the best share.
            expected = b if whole == 1.0 else max(fine)
            assert problem.dual_of_plane(u, b) == pytest.approx(expected, abs=1e-3 * (1 + abs(expected)))
            assert problem.dual_of_plane(u, b) >= expected - 1e-9 * (1 + abs(expected))
            below += expected > max(value(0.0), value(1.0))
    assert below > 0


def test_methods_that_ignore_an_l1_term_refuse_it():
    """A method that ignores the l1 term raises an error. Gradient descent once ended "converged" below the optimum."""
    smooth = Small("multiclass", "log").problem
    w = np.zeros(smooth.n_weights)
    primal, gradient = smooth.value_and_gradient(w)
    problem = smooth.with_penalty(ElasticNet(3.0, 1.0))
    for ask in (
        lambda: problem.value_and_gradient(w),
        lambda: problem.touching_plane(w, primal, gradient),
        lambda: problem.certificate_at(primal, gradient, w),
    ):
        with pytest.raises(ValueError, match=r"does not count an l1 term, .* l1 = 3: .* Capability.SMOOTH_PENALTY"):
            ask()


def test_weights_of_a_dual_point_under_an_elastic_net(rng):
    """The weights of a dual point minimise b - <u, w> + R(w), the lower bound of P that its plane gives."""
    problem = Small("multiclass", "log").problem.with_penalty(ElasticNet(0.4, 0.7))
    point = DualPoint.of_scores(rng.normal(size=problem.n_slots))
    u, _ = problem.dual_terms(point)
    weights = problem.weights_from_dual(point)
    assert 0 < np.count_nonzero(weights) < np.count_nonzero(u)
    best = problem.penalty_value(weights) - u @ weights
    for _ in range(200):
        other = weights + rng.choice([1e-3, 0.1, 1.0]) * rng.normal(size=len(weights)) * (rng.random(len(u)) < 0.3)
        assert problem.penalty_value(other) - u @ other >= best - 1e-12


class TestBadInput:
    def make(self, **changes):
        structure = Multiclass(3, 2)
        options = {"features": multiclass_map(structure, np.eye(3)), "structure": structure, "loss": "log"}
        options |= {"gold": structure.encode(np.array([0, 1, 0])), "penalty": 1.0}
        return Problem(**(options | changes))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"sample_weight": [1.0, -0.5, 1.0]}, "example 1 is -0.5"),
            ({"sample_weight": [1.0, 1.0, np.nan]}, "example 2 is nan"),
            ({"sample_weight": [1.0, 1.0]}, "shape"),
            ({"sample_weight": np.zeros(3)}, "all sample weights are zero"),
            ({"penalty": -1.0}, "strength"),
            ({"penalty": np.inf}, "strength"),
            ({"loss": "zero-one"}, "unknown loss 'zero-one'; there are log, hinge"),
            ({"n_jobs": 0}, "n_jobs"),
            ({"cost": np.zeros(5)}, "cost"),
            ({"cost": [0, 1, 0, 0, 1, 0, 0, 0, 0, -2, 0, 0]}, "example 2: the cost of slot 1 is -2"),
            ({"cost": [0, np.inf, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]}, "example 0: the cost of slot 1 is inf"),
            (
                {"cost": [0, 1, 0, 0, 1, 0.5, 0, 0, 0, 1, 0, 0]},
                "example 1: the cost of slot 1 is 0.5, but the gold labelling uses it",
            ),
            ({"features": multiclass_map(Multiclass(2, 2), np.eye(2))}, "2 examples"),
            ({"gold": Multiclass(2, 2).encode(np.array([0, 1]))}, "gold"),
        ],
    )
    def test_the_error_names_the_bad_argument(self, changes, message):
        with pytest.raises(ValueError, match=message):
            self.make(**changes)

    def test_an_empty_data_set(self):
        structure = Multiclass(0, 2)
        with pytest.raises(ValueError, match="at least one example"):
            self.make(structure=structure)

    def test_gold_labellings_outside_the_structure_are_refused(self):
        structure = Multiclass(3, 2)
        structure.set_mask(2, np.array([0, 1, 0, 0], dtype=np.uint8))
        with pytest.raises(ValueError, match="2"):
            self.make(structure=structure)

    def test_losses(self):
        with pytest.raises(TypeError, match="name or a Loss"):
            get_loss(3.0)
        with pytest.raises(ValueError, match="temperature"):
            get_loss("smoothed-hinge", temperature=-1.0)
        with pytest.raises(ValueError, match="link"):
            Loss("odd", 1.0, 0.0, "cubed")


def test_losses_of_the_table():
    for name, (temperature, cost_scale, link) in LOSSES.items():
        loss = get_loss(name)
        if name == "smoothed-hinge":
            loss = get_loss(name, temperature=temperature)
        assert (loss.temperature, loss.cost_scale, loss.link) == (temperature, cost_scale, link)
    assert get_loss(L := Loss("mine", 0.5, 2.0)) is not None
    assert get_loss(L) == L


def test_capabilities():
    chain = Small("chain-tied", "hinge")
    assert {"max oracle", "expectation oracle", "cliques", "temperature 0", "identity link", "l2 > 0"} <= (
        chain.problem.capabilities()
    )
    assert structure_capabilities(Listed(chain.case.structure)) == {"max oracle", "expectation oracle"}

    class MaxOnly(Structure):
        def num_slots(self, i):
            return 4

        def maximize(self, i, scores):
            return float(scores[0]), np.array([0]), np.ones(1)

    assert structure_capabilities(MaxOnly(2)) == {"max oracle"}


def test_penalty():
    assert L2(2.0).strength == 2.0
