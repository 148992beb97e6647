"""The rules by which numbers confirm or refute a claim."""

from __future__ import annotations

import math

import pytest

from papers.verdicts import every, larger, mean_text, some, sooner


def test_larger():
    assert larger([2.0], [1.0]) is True
    assert larger([1.0], [2.0]) is False
    assert larger([1.0], [1.0]) is None
    assert larger([1.0], [1.1], by=-0.2) is True
    assert larger([1.2], [1.0], by=0.5) is False
    apart, close = [1.0, 1.1, 0.9, 1.0, 1.0], [1.05, 1.0, 1.1, 0.95, 1.0]
    assert larger(apart, [0.5]) is True
    assert larger([0.5], apart) is False
    assert larger(apart, close) is None
    assert larger([5.0, 5.1, 4.9, 5.0], apart) is None  # fewer than five orders


def test_a_difference_of_two_standard_errors():
    """A difference of means needs two standard errors: 1 is enough at an error of 0.4, but not of 0.6."""
    for error, verdict in ((0.4, True), (0.6, None)):
        spread = error * math.sqrt(5 * 4 / 10)
        values = [spread * k for k in (-2, -1, 0, 1, 2)]
        assert larger([1.0 + v for v in values], [0.0]) is verdict


def test_sooner():
    assert sooner([1.0], [2.0]) is True
    assert sooner([2.0], [1.0]) is False
    assert sooner([15.2], [15.21], factor=1.25) is False  # a tie
    assert sooner([10.0], [13.0], factor=1.25) is True
    assert sooner([None], [None]) is None
    assert sooner([None], [3.0]) is False
    assert sooner([3.0], [None]) is True
    assert sooner([3.0], [math.inf], factor=1.25, budget=10.0) is True
    assert sooner([9.0], [None], factor=1.25, budget=10.0) is None  # the rival may finish right after the budget
    assert sooner([1.0, 1.1, 1.2, 1.0, None], [2.0]) is None
    assert sooner([1.0, 1.1, 1.2, 1.0, 1.1], [2.0]) is True
    assert sooner([1.9, 2.2, 2.1, 1.8, 2.0], [2.0]) is None


@pytest.mark.parametrize(
    ("cases", "all_of", "one_of"),
    [
        ([True, True], True, True), ([True, None], None, True), ([True, None, False], False, True),
        ([None, False], False, None), ([False], False, False), ([], None, None),
    ],
)  # fmt: skip
def test_several_cases(cases, all_of, one_of):
    assert every(cases) is all_of
    assert some(cases) is one_of


def test_texts():
    assert mean_text([1.0]) == "1"
    assert mean_text([None, None]) == "not reached"
    assert mean_text([1.0, 3.0], ".2f") == "2.00 ± 1"
    assert mean_text([1.0, None]) == "1 (in 1 of 2 orders)"
