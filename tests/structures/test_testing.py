"""`partwise.structures.testing` accepts correct structures, and finds and names each kind of wrong answer."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from helpers.small_problems import KINDS, Small
from oracles.enumerate import enumeration_of
from partwise import Structure
from partwise.structures.testing import check_structure


class Selection(Structure):
    """Selections of two of four items, with every method that a structure may have."""

    def __init__(self, num_examples=1):
        super().__init__(num_examples)
        self.counts = np.array([[1.0 * (r in pair) for r in range(4)] for pair in PAIRS])

    def num_slots(self, i):
        return 4

    def allowed(self, i):
        mask = self.mask(i)
        return self.counts if mask is None else self.counts[self.counts @ (mask == 0) == 0]

    def answer(self, counts, scores):
        slots = np.flatnonzero(counts)
        return float(counts @ scores), slots, counts[slots]

    def maximize(self, i, scores):
        allowed = self.allowed(i)
        return self.answer(allowed[np.argmax(allowed @ scores)], scores)

    def p(self, i, scores, temperature):
        values = self.allowed(i) @ scores
        weights = np.exp((values - values.max()) / temperature)
        return weights / weights.sum(), values.max() + temperature * np.log(weights.sum())

    def log_partition(self, i, scores, temperature=1.0):
        if temperature == 0:
            value, slots, _ = self.maximize(i, scores)
            return value, np.bincount(slots, minlength=4).astype(float), 0.0
        p, value = self.p(i, scores, temperature)
        return float(value), p @ self.allowed(i), float(-(p[p > 0] * np.log(p[p > 0])).sum())

    def cost(self, i, slots, counts):
        cost = np.ones(4)
        cost[slots] = 0
        return cost

    def k_best(self, i, scores, k):
        allowed = self.allowed(i)
        return [self.answer(counts, scores) for counts in allowed[np.argsort(-(allowed @ scores), kind="stable")[:k]]]

    def sample(self, i, scores, temperature, n, seed):
        p, _ = self.p(i, scores, temperature)
        drawn = np.random.default_rng(seed).choice(len(p), size=n, p=p)
        return [self.answer(self.allowed(i)[k], scores)[1:] for k in drawn]

    def covariance_product(self, i, scores, temperature, direction):
        p, _ = self.p(i, scores, temperature)
        centred = self.allowed(i) - p @ self.allowed(i)
        return (p * (centred @ direction)) @ centred


PAIRS = list(combinations(range(4), 2))


def test_right_structures_pass():
    check_structure(Selection(3), lambda i: PAIRS)
    check_structure(Selection(), random_state=5)
    structure = Selection(2)
    mask = np.array([1, 1, 1, 0], dtype=np.uint8)
    structure.set_mask(1, mask)
    check_structure(structure, lambda i: PAIRS)
    np.testing.assert_array_equal(structure.mask(1), mask)
    assert structure.mask(0) is None


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"maxent"}))
def test_the_structures_of_partwise_pass(kind):
    structure = Small(kind, "log", n=3).structure

    def labellings(i):
        mask = structure.mask(i)
        structure.set_mask(i, None)
        counts = enumeration_of(getattr(structure, "other", structure), i).counts
        structure.set_mask(i, mask)
        return [np.repeat(np.arange(len(row)), row.astype(int)) for row in counts]

    check_structure(structure, labellings, examples=range(2), masks=kind != "python")


def wrong_cost(self, i, slots, counts):
    return np.ones(4)


def changed(method, change):
    """Wrap a method so that its answer is changed."""

    def wrong(self, i, *arguments):
        return change(getattr(Selection, method)(self, i, *arguments), self, i, *arguments)

    return wrong


#: Faults: the method, the change of its answer, the message, and whether it is found without an enumeration.
WRONG = {
    "another labelling": (
        "maximize",
        lambda right, self, i, scores: self.answer(self.allowed(i)[0], scores),
        r"maximize: example 0: the maximum, of slots \[\d, \d\], is .*, expected ",
        True,
    ),
    "no labelling": (
        "maximize",
        lambda right, self, i, scores: (float(scores.max()), np.array([scores.argmax()]), np.ones(1)),
        r"maximize: example 0: slots \[0\], used \[1.0\] times, are not one of the labellings",
        True,
    ),
    "another value": (
        "maximize",
        lambda right, self, *_: (right[0] + 1e-3, *right[1:]),
        r"maximize: example 0: the value is 0.001, expected 0",
        True,
    ),
    "a temperature left out": (
        "log_partition",
        lambda right, self, i, scores, t=1.0: right if t == 0 else Selection.log_partition(self, i, scores, 1.0),
        r"log_partition at temperature 0.0001: example 0: the value is 1.79",
        True,
    ),
    "counts of the maximum": (
        "log_partition",
        lambda right, self, i, scores, t=1.0: (right[0], Selection.log_partition(self, i, scores, 0.0)[1], right[2]),
        r"log_partition at temperature .*: the expected count of slot 0 is 1, expected 0.5",
        True,
    ),
    "no entropy": (
        "log_partition",
        lambda right, *_: (*right[:2], 0.0),
        r"log_partition at temperature 0.0001: example 0: the entropy is 0, expected 1.79",
        True,
    ),
    "a labelling left out of sums": (
        "log_partition",
        lambda right, self, i, scores, t=1.0: Fewer(1).log_partition(i, scores, t) if self.mask(i) is None else right,
        r"log_partition at temperature 0.0001: example 0: the value is 0.000160",
        True,  # the covariance over all labellings reveals it
    ),
    "overflow": (
        "log_partition",
        lambda right, self, i, scores, t=1.0: (np.inf, *right[1:]) if np.abs(scores).max() > 100 else right,
        r"log_partition at temperature 0: example 0: an answer is not finite at scores up to ",
        True,
    ),
    "masks left aside": (
        "maximize",
        lambda right, self, i, scores: Selection().maximize(0, scores),
        r"maximize: example 0 under a mask: labelling .* uses slots that are forbidden",
        True,
    ),
    "cost of gold slots": (
        "cost",
        lambda right, *_: np.ones(4),
        r"cost: example 0: one number per slot is needed, at least 0, and 0 on the gold slots",
        True,
    ),
    "labellings out of order": (
        "k_best",
        lambda right, *_: right[::-1],
        r"k_best: example 0: the values .* are not in falling order",
        True,
    ),
    "a labelling twice": ("k_best", lambda right, *_: [right[0], *right[:-1]], r"k_best: .* occurs twice", True),
    "too few": ("k_best", lambda right, *_: right[:2], r"k_best: example 0: 2 labellings for k = 5, expected 5", False),
    "uniform draws": (
        "sample",
        lambda right, self, i, scores, t, n, seed: Selection.sample(self, i, 0 * scores, t, n, seed),
        r"sample at temperature 0.1: example 0: slot \d is used 0.\d+ times in the mean of 1000 draws, expected ",
        True,
    ),
    "draws without a seed": (
        "sample",
        lambda right, self, i, scores, t, n, seed: Selection.sample(self, i, scores, t, n, None),
        "sample: example 0: the same seed gave other draws",
        True,
    ),
    "another covariance": (
        "covariance_product",
        lambda right, self, i, scores, t, direction: right + direction,
        r"covariance_product: example 0: the product of slot \d is ",
        True,
    ),
}


class Fewer(Selection):
    """A structure that leaves out one labelling."""

    def allowed(self, i):
        return super().allowed(i)[1:]


@pytest.mark.parametrize("known", [True, False], ids=["enumerated", "not enumerated"])
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_answer_is_found(fault, known):
    method, change, message, found_anyway = WRONG[fault]
    structure = type("Wrong", (Selection,), {method: changed(method, change)})()
    if known:
        with pytest.raises(AssertionError, match=message):
            check_structure(structure, lambda i: PAIRS)
    elif found_anyway:
        with pytest.raises(AssertionError, match=": example 0"):
            check_structure(structure)
    else:
        check_structure(structure)


def test_masks_are_checked_unless_told_otherwise():
    structure = type("Unmasked", (Selection,), {"allowed": lambda self, i: self.counts})()
    with pytest.raises(AssertionError, match="under a mask"):
        check_structure(structure, lambda i: PAIRS)
    check_structure(structure, lambda i: PAIRS, masks=False)
    assert structure.mask(0) is None


def test_a_table_without_labellings_is_refused():
    with pytest.raises(ValueError, match="labellings gave none for example 0"):
        check_structure(Selection(), lambda i: [])


def shuffled(answers):
    return answers[::-1]


def shifted(answers):
    return [(value, (slots + 1) % 4, counts) for value, slots, counts in answers]


def uniform(answers):
    return [(value, np.full(4, 0.5), entropy) for value, _, entropy in answers]


@pytest.mark.parametrize(
    ("method", "change", "message"),
    [
        ("maximize_many", shuffled, "maximize_many: example 0: the value is"),
        ("maximize_many", shifted, "maximize_many: example 0: the value of its slots is|are not one of the labellings"),
        ("maximize_many", lambda answers: answers[1:], "maximize_many: 2 answers for 3 examples"),
        ("log_partition_many", shuffled, "log_partition_many at temperature 0: example 0: the value is"),
        ("log_partition_many", uniform, "log_partition_many at temperature 0: example 0: the expected count of slot"),
    ],
)
def test_answers_to_several_examples_are_those_of_each(method, change, message):
    """Wrong answers that only calls for several examples give (reordered, other slots or counts) are found."""
    one = {"maximize_many": Selection.maximize, "log_partition_many": Selection.log_partition}[method]

    def many(self, examples, scores, *temperature):
        return change([one(self, i, own, *temperature) for i, own in zip(examples, scores, strict=True)])

    structure = type("Wrong", (Selection,), {method: many})(3)
    for labellings in (None, lambda i: PAIRS):
        with pytest.raises(AssertionError, match=message):
            check_structure(structure, labellings)


def test_structures_without_examples_are_refused():
    for structure, examples in ((Selection(0), None), (Selection(), [])):
        with pytest.raises(ValueError, match="there is no example to check"):
            check_structure(structure, lambda i: PAIRS, examples=examples)
