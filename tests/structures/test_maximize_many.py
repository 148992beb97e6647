"""`maximize_many`: one call into Python maximises over several examples, wherever the core has several."""

from __future__ import annotations

import numpy as np
import pytest
from structures.test_python_structure import Enumerated, Trouble

from oracles.problems import make_case
from partwise import Problem, _core, solve
from partwise.problem.capabilities import Capability, structure_capabilities


class One(Enumerated):
    """Has `maximize` only, for one example at a time, and records its calls."""

    log_partition = _core.Structure.log_partition

    def __init__(self, other):
        super().__init__(other)
        self.calls = []

    def maximize(self, i, scores):
        self.calls.append([i])
        return super().maximize(i, scores)


class Many(One):
    """Has `maximize_many` only."""

    maximize = _core.Structure.maximize

    def maximize_many(self, examples, scores):
        self.calls.append(list(examples))
        return [Enumerated.maximize(self, i, own) for i, own in zip(examples, scores, strict=True)]


class Both(Many):
    """Has both `maximize` and `maximize_many`."""

    def maximize(self, i, scores):
        self.calls.append([i])
        return Enumerated.maximize(self, i, scores)


KINDS = ["multiclass", "chain-tied"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("structure", [Many, Both])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_the_same_objective(kind, structure, loss, rng):
    case = make_case(kind, seed=3)
    one, many = (case.objective(loss, cls(case.structure)) for cls in (One, structure))
    w = rng.normal(size=case.features.num_weights)
    assert many.value(w) == pytest.approx(one.value(w), rel=1e-14)
    for mine, theirs in zip(many.plane(w), one.plane(w), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(many.margins(w, 0.0), one.margins(w, 0.0), rtol=1e-14)


@pytest.mark.parametrize("structure", [One, Many, Both])
def test_decoding_makes_one_call_for_all_examples(structure, rng):
    case = make_case("chain-tied", seed=4)
    mine = structure(case.structure)
    w = rng.normal(size=case.features.num_weights)
    for which in (None, np.array([2, 0, 2])):
        mine.calls.clear()
        expected = _core.decode(case.structure, case.features, w, 1, which)
        for got, wanted in zip(_core.decode(mine, case.features, w, 1, which), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-14)
        asked = list(range(case.n)) if which is None else which.tolist()
        assert mine.calls == ([[i] for i in asked] if structure is One else [asked])
    assert len(_core.decode(mine, case.features, w, 1, np.empty(0, dtype=np.int64))[0]) == 1


@pytest.mark.parametrize("structure", [One, Many, Both])
@pytest.mark.parametrize(("solver", "loss"), [("dcd", "squared-hinge"), ("cpd", "squared-hinge"), ("bcfw", "hinge")])
def test_solvers_reach_the_same_optimum(structure, solver, loss):
    case = make_case("chain-tied", seed=5)
    mine = structure(case.structure)
    problem = Problem(case.features, mine, case.gold, loss, 0.5)
    assert Capability.MAX_ORACLE in structure_capabilities(mine)
    assert Capability.EXPECTATION_ORACLE not in structure_capabilities(mine)
    mine.calls.clear()
    result = solve(problem, solver, tol=1e-4, random_state=0)
    assert result.status == "converged"
    theirs = solve(Problem(case.features, case.structure, case.gold, loss, 0.5), solver, tol=1e-4, random_state=0)
    assert result.primal == pytest.approx(theirs.primal, rel=1e-9)
    assert result.passes == theirs.passes
    most = max(map(len, mine.calls))
    assert most == 1 if structure is One else most > 1
    if structure is not One and solver == "cpd":  # one call covers all searches of an epoch, in any order
        assert {len(call) for call in mine.calls} == {case.n}
        assert any(call != sorted(call) for call in mine.calls)


def test_one_example_goes_to_maximize_if_it_exists(rng):
    case = make_case("multiclass", seed=6)
    for structure in (Many(case.structure), Both(case.structure)):
        scores = rng.normal(size=structure.num_slots(1))
        value, slots, counts = _core.Structure.maximize(structure, 1, scores)
        assert structure.calls == [[1]]
        assert value == pytest.approx(float(scores[slots] @ counts))


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_structures_have_maximize_many_too(kind, rng):
    structure = make_case(kind, seed=7).structure
    scores = [rng.normal(size=structure.num_slots(i)) for i in (2, 0)]
    found = structure.maximize_many([2, 0], scores)
    for i, own, (value, slots, counts) in zip((2, 0), scores, found, strict=True):
        one = structure.maximize(i, own)
        assert value == one[0]
        np.testing.assert_array_equal(slots, one[1])
        np.testing.assert_array_equal(counts, one[2])
    with pytest.raises(ValueError, match="2 examples with scores for 1"):
        structure.maximize_many([2, 0], scores[:1])
    with pytest.raises(ValueError, match="no example 99"):
        structure.maximize_many([99], scores[:1])
    with pytest.raises(ValueError, match="scores"):
        structure.maximize_many([2], [np.zeros(1)])


GOOD = (0.0, np.array([0]), np.ones(1))
WRONG = [
    (lambda answers: answers[1:], ValueError, r"maximize_many gave \d answers for \d examples"),
    (lambda answers: None, TypeError, r"maximize_many must return a list .*, got NoneType"),
    (lambda answers: 3.0, TypeError, "got float"),
    (lambda answers: [GOOD, *answers[1:-1], None], TypeError, "maximize_many: example 3: .*got NoneType"),
    (lambda answers: [(0.0, np.array([0])), *answers[1:]], TypeError, "maximize_many: example 0: .*got 2 values"),
    (
        lambda answers: [GOOD, (0.0, np.array([4]), np.ones(1)), *answers[2:]],
        ValueError,
        "maximize_many: example 1: slot 4 is out of range, there are 4",
    ),
    (
        lambda answers: [GOOD, (0.0, np.array([-1]), np.ones(1)), *answers[2:]],
        ValueError,
        "example 1: slot -1 is out of range",
    ),
    (
        lambda answers: [(np.nan, np.array([0]), np.ones(1)), *answers[1:]],
        ValueError,
        "maximize_many: example 0: the value is nan, but the labelling's slots sum up to 0",
    ),
    (lambda answers: [(1.5, np.array([0]), np.ones(1)), *answers[1:]], ValueError, "example 0: the value is 1.5, but"),
    (
        lambda answers: [(0.0, np.array([0, 1]), np.ones(1)), *answers[1:]],
        ValueError,
        "maximize_many: example 0: 2 slots with 1 counts",
    ),
    (lambda answers: [(0.0, np.array([0.5]), np.ones(1)), *answers[1:]], TypeError, "slots must be integers"),
    (lambda answers: [(0.0, np.array([[0]]), np.ones(1)), *answers[1:]], TypeError, "maximize_many: example 0"),
    (lambda answers: [("x", np.array([0]), np.ones(1)), *answers[1:]], TypeError, "maximize_many: example 0"),
    (lambda answers: [(0.0, np.array([0]), np.array(["y"])), *answers[1:]], TypeError, "maximize_many: example 0"),
    (
        lambda answers: [(0.0, np.array([0]), np.array([np.inf])), *answers[1:]],
        ValueError,
        "maximize_many: example 0: the value is 0, but",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), WRONG)
def test_wrong_answers_name_the_method_and_the_example(change, error, message):
    class Wrong(Many):
        def maximize_many(self, examples, scores):
            return change([GOOD for _ in examples])

    case = make_case("multiclass", seed=8)
    structure = Wrong(case.structure)
    assert structure.num_slots(0) == 4
    with pytest.raises(error, match=message):
        _core.decode(structure, case.features, np.zeros(case.features.num_weights))


def test_lists_and_other_integer_types_are_accepted():
    class Plain(Many):
        def maximize_many(self, examples, scores):
            return tuple((0, [0], [1]) if i % 2 else [np.float32(0.0), np.array([0], np.int32), (1,)] for i in examples)

    case = make_case("multiclass", seed=8)
    indptr, slots, counts, values = _core.decode(
        Plain(case.structure), case.features, np.zeros(case.features.num_weights)
    )
    assert slots.tolist() == [0] * case.n
    assert counts.tolist() == [1.0] * case.n
    assert values.tolist() == [0.0] * case.n
    assert indptr.tolist() == list(range(case.n + 1))


@pytest.mark.parametrize("error", [Trouble, KeyboardInterrupt])
@pytest.mark.parametrize(("solver", "loss"), [("dcd", "squared-hinge"), ("cpd", "squared-hinge"), ("bcfw", "hinge")])
def test_exceptions_come_out_unchanged(error, solver, loss):
    class Broken(Many):
        ready = False

        def maximize_many(self, examples, scores):
            if self.ready:
                raise error("in the middle")
            return super().maximize_many(examples, scores)

    case = make_case("multiclass", seed=9)
    structure = Broken(case.structure)
    problem = Problem(case.features, structure, case.gold, loss, 0.5)
    structure.ready = True
    with pytest.raises(error, match="in the middle"):
        solve(problem, solver, tol=1e-6)
    with pytest.raises(error, match="in the middle"):
        _core.decode(structure, case.features, np.zeros(case.features.num_weights))


def test_a_structure_may_keep_the_scores_it_was_given():
    class Keeping(Many):
        kept = ()

        def maximize_many(self, examples, scores):
            self.kept = [*self.kept, *scores]
            found = super().maximize_many(examples, scores)
            for own in scores:
                own[:] = 99.0  # Python got a copy, so this changes nothing
            return found

    case = make_case("multiclass", seed=10)
    w = np.ones(case.features.num_weights)
    expected = _core.decode(case.structure, case.features, w)
    structure = Keeping(case.structure)
    for _ in range(2):
        for got, wanted in zip(_core.decode(structure, case.features, w), expected, strict=True):
            np.testing.assert_allclose(got, wanted)
    assert len(structure.kept) == 2 * case.n


class NotANumber(Enumerated):
    at = 0

    def log_partition(self, i, scores, temperature=1.0):
        found = list(super().log_partition(i, scores, temperature))
        found[self.at] = np.full_like(found[self.at], np.nan) if self.at == 1 else np.nan
        return tuple(found)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_sums_of_nan_name_the_example(at):
    case = make_case("multiclass", seed=11)
    structure = NotANumber(case.structure)
    structure.at = at
    with pytest.raises(ValueError, match="log_partition: example 0: "):
        case.objective("log", structure).plane(np.zeros(case.features.num_weights))
