"""The adaptive order of visits has the bits of a transcription that visits one column at a time."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.scaling_passes import begin, check_cells
from oracles.problems import maxent_case

LONGEST = 64
COST = 100  # cost of a visit, in cells


def sizes_of(case):
    """Count the cells that a visit of each column reads without a line search."""
    state = begin(case)
    return np.array([state.epoch("scgis", [k]).cells for k in range(len(state.columns))])


def rounds(state, function, sizes, wait, rest):
    """Make rounds until all cells could have been read once. Return the cells read and the columns of each round."""
    cells, log = 0, []
    while cells < sizes.sum() or not log:
        due = np.flatnonzero(rest == 0)
        rest[rest > 0] -= 1
        gains = np.zeros(len(due))
        for j, k in enumerate(due):
            report = state.epoch(function, [k])
            gains[j] = report.gain
            cells += report.cells
        cost = COST + sizes[due]
        little = gains * cost.sum() < 0.5 * gains.sum() * cost
        wait[due] = np.where(little, np.minimum(2 * wait[due], LONGEST), np.maximum(wait[due] // 2, 1))
        rest[due] = wait[due] - 1
        log.append(due)
    return cells, log


@pytest.mark.parametrize("form", ["binary", "real", "matrix"])
@pytest.mark.parametrize("function", ["cd", "scgis", "log"])
def test_same_visits_and_weights(function, form):
    case = maxent_case(7, form=form)
    sizes = sizes_of(case)
    core, mine = begin(case, l2=0.01), begin(case, l2=0.01)
    n = len(core.columns)
    plan, other = [(np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)) for _ in range(2)]
    last_seen, age, waited = np.zeros(n, dtype=int), 0, 1
    for _ in range(60):
        report = core.rounds(function, *plan)
        cells, log = rounds(mine, function, sizes, *other)
        assert report.cells == cells >= sizes.sum()
        np.testing.assert_array_equal(core.weights, mine.weights)
        np.testing.assert_array_equal(plan, other)
        for due in log:
            age += 1
            last_seen[due] = age
            assert np.all(age - last_seen < LONGEST)  # every column is visited at least once in LONGEST rounds
        waited = max(waited, plan[0].max())
    assert waited > 1  # at least one column had to wait
    check_cells(case, core, rtol=1e-9)


def test_rounds_without_visits():
    case = maxent_case(7)
    state = begin(case)
    n = len(state.columns)
    report = state.rounds("cd", np.ones(n, dtype=np.int64), np.full(n, 3))
    assert report.cells >= case.features.num_cells
    assert report.updates == state.live < n


@pytest.mark.parametrize("bad", [{"wait": 0}, {"wait": 65}, {"rest": -1}, {"rest": 64}])
def test_invalid_plans_are_refused(bad):
    state = begin(maxent_case(7))
    n = len(state.columns)
    arrays = {"wait": np.ones(n, dtype=np.int64), "rest": np.zeros(n, dtype=np.int64)}
    for name, value in bad.items():
        arrays[name][n - 1] = value
    with pytest.raises(ValueError, match=f"column {n - 1}: not a plan of visits"):
        state.rounds("cd", **arrays)


def test_bad_arguments():
    state = begin(maxent_case(7, form="negative"))
    plan = np.ones(len(state.columns), dtype=np.int64)
    with pytest.raises(ValueError, match=r"wait has 1 values, \d+ are needed"):
        state.rounds("cd", plan[:1].copy(), plan - 1)
    with pytest.raises(ValueError, match="this method needs features that are not negative"):
        state.rounds("scgis", plan, plan - 1)
