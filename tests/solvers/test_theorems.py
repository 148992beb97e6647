"""The theorems of the papers hold for the solvers' runs, and fail for runs that stand still or make wrong steps."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from theorems import THEOREMS, Broken, dcd
from theorems.checks import contracts, grows_at_most
from theorems.dcd import bound_of_theorem_3
from theorems.scaling import Scaling

from partwise import _core

NAMES = list(THEOREMS)
WRONG = [(name, factor) for name in NAMES for factor in THEOREMS[name].wrong]


def names_of(*theorems):
    return [name for name in NAMES if name.startswith(theorems)]


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


STEPS = np.arange(1, 61)
LINEAR = {"0.8^k": 0.8**STEPS, "0.99^k": 0.99**STEPS, "fast, then 0.9^k": 0.9**STEPS + 0.2**STEPS}
SUBLINEAR = {"1 / k": 1.0 / STEPS, "1 / k^2": 1.0 / STEPS**2, "1 / sqrt(k)": STEPS**-0.5, "1 / k^8": 1.0 / STEPS**8.0}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_rates_contract(name):
    contracts(list(LINEAR[name]), 0.999, name)


@pytest.mark.parametrize("name", SUBLINEAR)
def test_powers_do_not_contract(name):
    """A limit on the mean factor per step alone would accept each of these sequences."""
    distances = list(SUBLINEAR[name])
    assert (distances[-1] / distances[0]) ** (1.0 / (len(distances) - 1)) < 0.999
    with pytest.raises(Broken, match="the last third"):
        contracts(distances, 0.999, name)


def only_at_powers(base, act):
    """Wrap `act` so that it acts only in calls 1, base, base^2, ..."""
    calls = itertools.count(1)
    powers = {base**k for k in range(20)}
    return lambda *args: act(*args) if next(calls) in powers else None


@pytest.mark.parametrize("name", names_of("Huang et al. 2010, Theorem 2", "Huang et al. 2010, Theorem 5"))
def test_steps_that_fade_break_linear_rates_of_scaling(name, monkeypatch):
    """With the k-th step divided by k, every step still decreases, but the distance falls only like a power of k."""
    calls, step = itertools.count(1), Scaling.step
    monkeypatch.setattr(Scaling, "step", lambda self, w, factor: step(self, w, factor / next(calls)))
    with pytest.raises(Broken, match="the last third"):
        THEOREMS[name].check(1.0)


@pytest.mark.parametrize("name", names_of("Chang and Yih 2013, Theorem 2"))
def test_sweeps_that_become_rare_break_the_linear_rate_of_dcd(name, monkeypatch):
    core = SimpleNamespace(**vars(_core))
    core.dcd_epoch = only_at_powers(2, _core.dcd_epoch)
    monkeypatch.setattr(dcd, "_core", core)
    with pytest.raises(Broken, match="the last third"):
        THEOREMS[name].check(1.0)


@pytest.mark.parametrize("name", names_of("Chang and Yih 2013, Theorem 3"))
def test_passes_that_become_rare_break_theorem_3(name, monkeypatch):
    class Slow(dcd.DCD):
        def init_state(self, *args):
            self.act = only_at_powers(6, super().step)
            return super().init_state(*args)

        def step(self, problem, state):
            self.act(problem, state)

    monkeypatch.setattr(dcd, "DCD", Slow)
    with pytest.raises(Broken, match="Theorem 3, goal"):
        THEOREMS[name].check(1.0)


GOALS = [2.0**-k for k in range(1, 12)]


def passes_of(power):
    """The numbers of passes after which k^-power reaches each goal."""
    return [math.ceil(goal ** (-1.0 / power)) for goal in GOALS]


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_passes_that_theorem_3_allows(power):
    grows_at_most(passes_of(power), GOALS, bound_of_theorem_3, "Theorem 3")


@pytest.mark.parametrize("skipped", range(len(GOALS) - 2))
def test_theorem_3_binds_at_every_goal(skipped):
    """Passes that grow like 1 / eps^3 break the theorem between any two neighbouring goals."""
    with pytest.raises(Broken):
        grows_at_most(passes_of(1 / 3)[skipped : skipped + 2], GOALS[skipped : skipped + 2], bound_of_theorem_3, "")


def test_every_theorem_has_a_wrong_step():
    assert all(theorem.wrong for theorem in THEOREMS.values())
