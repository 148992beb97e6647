"""A structure written in Python gives the same results through the core, and its exceptions come out unchanged."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from oracles.enumerate import enumeration_of
from oracles.objective import LOSSES
from oracles.problems import KINDS, make_case
from partwise import Problem, _core, solve
from partwise._core import SharedSegment
from partwise.features import LinearMap


class Enumerated(_core.Structure):
    """The labellings of another structure, by brute force."""

    def __init__(self, other):
        super().__init__(other.num_examples)
        self.other = other
        self.examples = [enumeration_of(other, i) for i in range(other.num_examples)]

    def num_slots(self, i):
        return self.examples[i].counts.shape[1]

    def maximize(self, i, scores):
        value, best = self.examples[i].maximum(scores)
        counts = self.examples[i].counts[best]
        slots = np.flatnonzero(counts)
        return value, slots, counts[slots]

    def log_partition(self, i, scores, temperature=1.0):
        return self.examples[i].smax(scores, temperature)

    def cost(self, i, slots, counts):
        return self.other.cost(i, slots, counts)


class Trouble(Exception):
    """An exception class that the core does not know."""


class Broken(Enumerated):
    def log_partition(self, i, scores, temperature=1.0):
        raise Trouble(f"example {i}")

    def maximize(self, i, scores):
        raise Trouble(f"example {i}")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_objective(kind, loss, rng):
    case = make_case(kind, seed=3)
    mine, theirs = case.objective(loss, Enumerated(case.structure)), case.objective(loss)
    w = rng.normal(size=case.features.num_weights)
    assert mine.value(w) == pytest.approx(theirs.value(w), abs=1e-10)
    value, u, b = mine.plane(w)
    other = theirs.plane(w)
    assert value == pytest.approx(other[0], abs=1e-10)
    np.testing.assert_allclose(u, other[1], atol=1e-10)
    assert b == pytest.approx(other[2], abs=1e-10)
    assert mine.value(w, n_jobs=2) == mine.value(w)


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
def test_the_same_eg_and_decoding(kind, rng):
    case = make_case(kind, seed=4)
    results = []
    for structure in (case.structure, Enumerated(case.structure)):
        objective = case.objective("log", structure)
        scores = objective.near_gold_scores(2.0)
        marginals, entropies = objective.marginals_of_scores(scores)
        w = objective.dual_terms_gibbs(scores)[0] / 0.7
        order = np.array([0, 2, 1, 3, 2], dtype=np.int64)
        steps = np.full(case.n, 0.5)
        state = _core.EgState(
            objective, weights=w, scores=scores, marginals=marginals, entropies=entropies, step_sizes=steps
        )
        _core.eg_epoch(state, order, _core.EgOptions(l2=0.7))
        results.append((w, scores, marginals, *_core.decode(structure, case.features, w)))
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-10)


def test_exceptions_come_out_unchanged(rng):
    case = make_case("chain-tied", seed=5)
    broken = Broken(case.structure)
    w = np.zeros(case.features.num_weights)
    for loss in ("log", "hinge"):
        objective = case.objective(loss, broken)
        with pytest.raises(Trouble, match="example 0"):
            objective.value(w)
        with pytest.raises(Trouble, match="example"):
            objective.plane(w, n_jobs=2)
    with pytest.raises(Trouble, match="example"):
        _core.decode(broken, case.features, w)
    with pytest.raises(Trouble, match="example"):
        _core.infer(broken, case.features, w)


def test_keyboard_interrupt_comes_out(rng):
    class Stopped(Enumerated):
        def log_partition(self, i, scores, temperature=1.0):
            raise KeyboardInterrupt

    case = make_case("multiclass", seed=6)
    with pytest.raises(KeyboardInterrupt):
        case.objective("log", Stopped(case.structure)).value(np.zeros(case.features.num_weights))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (1.0, np.zeros(3), 0.0),  # too short
        ("x", np.zeros(4), 0.0),
        (1.0, np.zeros(4)),
    ],
)
def test_answers_of_the_wrong_form(answer):
    class Wrong(Enumerated):
        def log_partition(self, i, scores, temperature=1.0):
            return answer

    case = make_case("multiclass", seed=7)
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        case.objective("log", Wrong(case.structure)).plane(np.zeros(case.features.num_weights))


@pytest.mark.parametrize("answer", [(1.0, np.array([99]), np.ones(1)), (1.0, np.array([-1]), np.ones(1)), None, (1.0,)])
def test_argmax_of_the_wrong_form(answer):
    class Wrong(Enumerated):
        def maximize(self, i, scores):
            return answer

    case = make_case("multiclass", seed=8)
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        _core.decode(Wrong(case.structure), case.features, np.zeros(case.features.num_weights))


def test_capabilities_are_what_is_implemented():
    case = make_case("multiclass", seed=9)
    assert Enumerated(case.structure).capabilities() == frozenset()

    class KBest(Enumerated):
        def k_best(self, i, scores, k):
            return []

    assert KBest(case.structure).capabilities() == frozenset({"k_best"})
    with pytest.raises((ValueError, NotImplementedError), match="sample"):
        KBest(case.structure).sample(0, np.zeros(4), 1.0, 1, 0)


class Matching(_core.Structure):
    """Perfect matchings of n left and n right nodes: slot n * l + r joins l and r."""

    def __init__(self, num_examples, n):
        super().__init__(num_examples)
        self.n = n
        self.counts = np.array([np.eye(n)[list(order)].ravel() for order in permutations(range(n))])

    def num_slots(self, i):
        return self.n * self.n

    def maximize(self, i, scores):
        best = int((self.counts @ scores).argmax())
        slots = np.flatnonzero(self.counts[best])
        return float(self.counts[best] @ scores), slots, np.ones(len(slots))

    def cost(self, i, slots, counts):
        wrong = np.ones(self.n * self.n)
        wrong[slots] = 0
        return wrong


class NoMaximum(Matching):
    """A structure whose maximum comes from `log_partition` at temperature 0."""

    maximize = _core.Structure.maximize

    def log_partition(self, i, scores, temperature=1.0):
        assert temperature == 0
        best = int((self.counts @ scores).argmax())
        return float(self.counts[best] @ scores), self.counts[best], 0.0


def matching_problem(structure, slots, **options):
    n, size = structure.num_examples, structure.n**2
    features = LinearMap([SharedSegment(size, np.full(n, structure.n))])
    gold = (np.cumsum([0, *map(len, slots)]), np.concatenate(slots).astype(np.int64), np.ones(sum(map(len, slots))))
    return Problem(features, structure, gold, options.pop("loss", "hinge"), 0.1, **options)


@pytest.mark.parametrize("kind", [Matching, NoMaximum])
class TestImpossibleGold:
    def test_matchings(self, kind):
        structure = kind(6, 3)
        matching_problem(structure, [np.flatnonzero(counts) for counts in structure.counts])

    @pytest.mark.parametrize(
        "slots",
        [
            [0, 4, 7],  # two left nodes joined to the right node 1
            [0, 4],  # a pair is missing
            [0, 4, 8, 1],  # one pair too many
            [3, 4, 8],
            [],
        ],
    )
    def test_slots_that_form_no_matching_are_refused(self, kind, slots):
        with pytest.raises(ValueError, match="example 1: the gold labelling is not one of the structure's labellings"):
            matching_problem(kind(2, 3), [[0, 4, 8], slots])

    def test_every_set_of_slots_is_checked_against_enumeration(self, kind):
        structure = kind(1, 3)
        allowed = {tuple(np.flatnonzero(counts)) for counts in structure.counts}
        for size in range(5):
            for slots in combinations(range(9), size):
                if slots in allowed:
                    matching_problem(structure, [slots])
                else:
                    with pytest.raises(ValueError, match="example 0"):
                        matching_problem(structure, [slots])

    def test_the_structures_own_check_comes_first(self, kind):
        class Checked(kind):
            def check_labelling(self, i, slots, counts):
                if len({int(slot) % 3 for slot in slots}) < 3:
                    raise Trouble(f"example {i}: a right node is without a partner")

        with pytest.raises(Trouble, match="example 1: a right node"):
            matching_problem(Checked(2, 3), [[0, 4, 8], [0, 4, 7]])
        with pytest.raises(ValueError, match="example 0: the gold labelling"):
            matching_problem(Checked(2, 3), [[0, 4, 5], [0, 4, 8]])


def test_tied_gold_counts_without_a_labelling_are_refused():
    case = make_case("chain-tied", seed=3)
    structure = Enumerated(case.structure)
    indptr, slots, counts = case.gold
    Problem(case.features, structure, case.gold, "log", 1.0)
    counts = counts.copy()
    counts[indptr[1]] += 1
    with pytest.raises(ValueError, match="example 1"):
        Problem(case.features, structure, (indptr, slots, counts), "log", 1.0)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ([0.0, 1, 1, 1, 0, 1, 1, -0.5, 0], "example 0: the cost of slot 7 is -0.5"),
        ([0.0, 1, 1, 1, 0, 1, 1, np.nan, 0], "example 0: the cost of slot 7 is nan"),
        ([0.0, 1, 1, 1, 0.25, 1, 1, 1, 0], "example 0: the cost of slot 4 is 0.25, but the gold labelling uses it"),
    ],
)
def test_costs_of_a_structure_are_checked(cost, message):
    class Odd(Matching):
        def cost(self, i, slots, counts):
            return np.array(cost)

    with pytest.raises(ValueError, match=message):
        matching_problem(Odd(1, 3), [[0, 4, 8]])


def test_a_labelling_with_slots_out_of_range():
    with pytest.raises(ValueError, match="example 0: slot 9 is out of range"):
        Matching(1, 3).check_labelling(0, np.array([0, 4, 9]), np.ones(3))


class Growing(Enumerated):
    """A structure that changes its number of slots after the problem was made, and the size of its answers with it."""

    more = 0

    def num_slots(self, i):
        return super().num_slots(i) + self.more

    def maximize(self, i, scores):
        return super().maximize(i, scores[: super().num_slots(i)])

    def log_partition(self, i, scores, temperature=1.0):
        value, marginals, entropy = super().log_partition(i, scores[: super().num_slots(i)], temperature)
        return value, np.concatenate([marginals, np.zeros(self.more)]), entropy

    def cost(self, i, slots, counts):
        return np.concatenate([super().cost(i, slots, counts), np.zeros(self.more)])


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        *((name, "log") for name in ("eg", "eg-batch", "eg-primal", "lbfgs")),
        *((name, "squared-hinge") for name in ("dcd", "cpd")),
        ("bcfw", "hinge"),
        ("excessive-gap", "hinge"),
    ],
)
def test_a_structure_that_changes_its_size_is_refused(solver, loss):
    case = make_case("chain-tied", seed=3)
    structure = Growing(case.structure)
    problem = Problem(case.features, structure, case.gold, loss, 1.0)
    structure.more = 100_000
    with pytest.raises(ValueError, match=r"num_slots\(0\) was .* and is now|has .* values, .* are needed"):
        solve(problem, solver, max_passes=5)


def test_a_negative_size_is_refused():
    class Negative(Matching):
        def num_slots(self, i):
            return -1

    with pytest.raises(ValueError, match=r"num_slots\(0\) is -1"):
        matching_problem(Negative(1, 3), [[0, 4, 8]])


def test_missing_methods_are_named():
    class Empty(_core.Structure):
        pass

    case = make_case("multiclass", seed=10)
    with pytest.raises((NotImplementedError, TypeError, ValueError, RuntimeError, AttributeError)):
        case.objective("log", Empty(case.n)).value(np.zeros(case.features.num_weights))
