"""What the papers prove holds of the solvers' runs, and not of one that stands still or one with a wrong step."""

from __future__ import annotations

import pytest
from theorems import THEOREMS, Broken

NAMES = list(THEOREMS)
WRONG = [(name, factor) for name in NAMES for factor in THEOREMS[name].wrong]


@pytest.mark.parametrize("name", NAMES)
def test_holds(name):
    THEOREMS[name].check(1.0)


@pytest.mark.parametrize("name", NAMES)
def test_standing_still_breaks_it(name):
    with pytest.raises(Broken):
        THEOREMS[name].check(0.0)


@pytest.mark.parametrize(("name", "factor"), WRONG)
def test_a_wrong_step_breaks_it(name, factor):
    with pytest.raises(Broken):
        THEOREMS[name].check(factor)


def test_every_theorem_has_a_wrong_step():
    assert all(theorem.wrong for theorem in THEOREMS.values())
