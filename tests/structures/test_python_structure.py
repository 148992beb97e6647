"""A structure written in Python gives the same answers through the core, and its exceptions come out unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.enumerate import enumeration_of
from oracles.objective import LOSSES
from oracles.problems import KINDS, make_case
from partwise import _core


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
    """An exception the core has never heard of."""


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
        _core.eg_epoch(objective, 0.7, order, np.full(case.n, 0.5), w, scores, marginals, entropies, True)
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
        (1.0, np.zeros(3), 0.0),  # wrong length
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


def test_missing_methods_are_named():
    class Empty(_core.Structure):
        pass

    case = make_case("multiclass", seed=10)
    with pytest.raises((NotImplementedError, TypeError, ValueError, RuntimeError, AttributeError)):
        case.objective("log", Empty(case.n)).value(np.zeros(case.features.num_weights))
