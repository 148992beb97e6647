"""`log_partition_many`: one call into Python sums over several examples, wherever the core has several."""

from __future__ import annotations

import numpy as np
import pytest
from structures.test_python_structure import Enumerated

from oracles.problems import make_case
from partwise import Problem, Structure, _core, solve
from partwise.problem.capabilities import Capability, structure_capabilities
from partwise.structures.testing import check_structure


class Many(Enumerated):
    """Has `log_partition_many` only, and records its calls."""

    log_partition = Structure.log_partition

    def __init__(self, other):
        super().__init__(other)
        self.calls = []

    def log_partition_many(self, examples, scores, temperature):
        self.calls.append(list(examples))
        return [Enumerated.log_partition(self, i, own, temperature) for i, own in zip(examples, scores, strict=True)]


@pytest.mark.parametrize("loss", ["log", "smoothed-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
def test_the_same_objective_in_one_call(kind, loss, rng):
    case = make_case(kind, seed=3)
    mine = Many(case.structure)
    one, many = case.objective(loss, Enumerated(case.structure)), case.objective(loss, mine)
    w = rng.normal(size=case.features.num_weights)
    mine.calls.clear()
    assert many.value(w) == pytest.approx(one.value(w), rel=1e-14)
    assert max(map(len, mine.calls)) > 1
    for got, wanted in zip(many.plane(w), one.plane(w), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)


def test_predictions_make_one_call(rng):
    case = make_case("chain-tied", seed=4)
    mine, w = Many(case.structure), rng.normal(size=case.features.num_weights)
    mine.calls.clear()
    expected = _core.infer(case.structure, case.features, w)
    for got, wanted in zip(_core.infer(mine, case.features, w), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)
    assert mine.calls == [list(range(case.n))]
    for got, wanted in zip(_core.infer(mine, case.features, w, entropies=False)[:2], expected[:2], strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)


@pytest.mark.parametrize("solver", ["lbfgs", "eg-prox"])
def test_solvers_reach_the_same_optimum(solver):
    case = make_case("chain-tied", seed=5)
    mine = Many(case.structure)
    assert Capability.EXPECTATION_ORACLE in structure_capabilities(mine)
    problem, other = (Problem(case.features, each, case.gold, "log", 0.5) for each in (mine, case.structure))
    result, theirs = (solve(each, solver, tol=1e-6, random_state=0) for each in (problem, other))
    assert result.primal == pytest.approx(theirs.primal, rel=1e-5)
    check_structure(mine, masks=False)


def test_every_structure_answers(rng):
    structure = make_case("chain-tied", seed=6).structure
    scores = [rng.normal(size=structure.num_slots(i)) for i in (2, 0)]
    for (value, counts, entropy), i, own in zip(
        structure.log_partition_many([2, 0], scores, 0.5), (2, 0), scores, strict=True
    ):
        expected = structure.log_partition(i, own, 0.5)
        assert (value, entropy) == (expected[0], expected[2])
        np.testing.assert_array_equal(counts, expected[1])
    with pytest.raises(ValueError, match="2 examples with scores for 1"):
        structure.log_partition_many([2, 0], scores[:1])


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            lambda right: None,
            TypeError,
            r"log_partition_many must return a list of \(value, expected counts, entropy\)",
        ),
        (lambda right: right[1:], ValueError, r"log_partition_many gave \d answers for \d examples"),
        (lambda right: [1.0 for _ in right], TypeError, "log_partition_many: example 0: .value, expected counts"),
        (lambda right: [(v, mu[1:], h) for v, mu, h in right], ValueError, "log_partition_many: expected counts"),
        (lambda right: [(np.nan, mu, h) for _, mu, h in right], ValueError, "example 0: the value is nan"),
    ],
)
def test_wrong_answers_are_named(answer, error, message, rng):
    case = make_case("multiclass", seed=3)

    class Wrong(Many):
        def log_partition_many(self, *arguments):
            return answer(super().log_partition_many(*arguments))

    with pytest.raises(error, match=message):
        case.objective("log", Wrong(case.structure)).value(rng.normal(size=case.features.num_weights))
