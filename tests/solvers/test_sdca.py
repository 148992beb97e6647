"""Exact-block dual coordinate ascent: what it fits, starts, rests, the optimum."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from smallproblems import Small

from partwise import Problem, _core, solve
from partwise.features import LinearMap, multiclass_map
from partwise.solvers import SDCA, suitable_solvers
from partwise.structures import Multiclass


def test_it_fits_single_labels_only():
    assert "sdca" in suitable_solvers(Small("multiclass", "log").problem)
    for kind, loss in (("chain-tied", "log"), ("multiclass", "hinge"), ("python", "log")):
        assert "sdca" not in suitable_solvers(Small(kind, loss).problem)
    with pytest.raises(ValueError, match="'sdca' needs diagonal blocks and one part"):
        solve(Small("chain-tied", "log").problem, "sdca")


def test_features_shared_between_labels_do_not_fit():
    structure = Multiclass(2, 8)
    gold = structure.encode(np.array([0, 5]))
    # eight slots as two rows of four: where both rows have an attribute, slots a and a + 4 share its weight
    layout = _core.RowLayout.dense(2, 4, 4)
    for attributes, fits in ((np.array([0, 1, 1, 0]), True), (np.array([0, 1, 1, 1]), False)):
        rows = _core.AttributeSegment(layout, np.array([0, 2, 4]), np.arange(5), attributes)
        problem = Problem(LinearMap([rows]), structure, gold, "log", 1.0)
        assert ("sdca" in suitable_solvers(problem)) == fits
        if fits:
            assert solve(problem, "sdca", tol=1e-8).converged
        else:
            with pytest.raises(ValueError, match="'sdca' needs diagonal blocks"):
                solve(problem, "sdca")


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_the_optimum_is_scipys(loss, l2):
    small = Small("multiclass", loss, l2=l2, n=12)
    result = solve(small.problem, "sdca", tol=1e-13, random_state=0)
    found = minimize(
        small.dense.primal,
        np.zeros(small.problem.n_weights),
        jac=small.dense.gradient,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert result.status == "converged"
    assert result.primal == pytest.approx(found.fun, rel=1e-8)


@pytest.mark.parametrize("skip", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("order", ["random", "permuted", "cyclic"])
@pytest.mark.parametrize("start", ["gold", "uniform"])
def test_every_combination_converges_with_a_rising_dual(skip, order, start):
    small = Small("multiclass", "log", l2=0.05, n=30)
    solver = SDCA(skip=skip, order=order, start=start, check_every=1)
    result = solve(small.problem, solver, tol=1e-9, random_state=0)
    assert result.status == "converged"
    assert np.all(np.diff(result.history["dual"]) >= -1e-12 * abs(result.dual))


def test_rests_save_visits(rng):
    X = rng.normal(size=(300, 5))
    y = np.argmax(X[:, :3], axis=1)
    structure = Multiclass(300, 3)
    problem = Problem(multiclass_map(structure, X), structure, structure.encode(y), "log", 0.01)
    passes = [solve(problem, SDCA(skip=skip), tol=1e-4, random_state=0).passes for skip in (0.0, 0.5)]
    assert passes[1] < 0.7 * passes[0]


def test_warm_starts_save_passes():
    small = Small("multiclass", "log", l2=0.05, n=20)
    cold = solve(small.problem, "sdca", tol=1e-8, random_state=0)
    for warm in (cold, cold.dual_point, cold.weights, solve(small.problem, "lbfgs", tol=1e-12)):
        again = solve(small.problem, "sdca", tol=1e-8, random_state=0, warm_start=warm)
        assert again.converged
        assert again.passes <= 0.5 * cold.passes


def test_a_start_far_away_is_cut_off():
    small = Small("multiclass", "log", l2=1.0)
    far = np.tile([1e4, -1e4, 1e4, 0.0], small.problem.n_weights // 4)
    result = solve(small.problem, "sdca", tol=1e-8, warm_start=far)
    assert result.converged


_MEMORY = """
import numpy as np
from partwise import Problem, solve
from partwise.features import Attributes, RowLayout, multiclass_map
from partwise.structures import Multiclass
from partwise._core import padded_width

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

rng = np.random.default_rng(0)
n, labels, attributes = 50_000, 200, 500
y = rng.integers(labels, size=n)
row_ptr = np.arange(0, 4 * n + 1, 4)
rows = Attributes(row_ptr, rng.integers(attributes, size=4 * n), attributes)
layout = RowLayout.observed(attributes, labels, padded_width(labels), row_ptr, rows.attributes, y, 1)
structure = Multiclass(n, labels)
problem = Problem(multiclass_map(structure, rows, layout=layout), structure, structure.encode(y), "log", 1.0)
before = peak()
result = solve(problem, "sdca", tol=0.9, max_passes=3)
assert result.passes >= 1 and len(result.history["gap"]) >= 1
print((peak() - before) / (8 * structure.slot_offsets()[-1]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer takes memory of its own")
def test_memory_is_two_numbers_a_slot():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _MEMORY], capture_output=True, text=True, check=True)
    assert 1.5 < float(done.stdout) < 2.5


@pytest.mark.parametrize(
    "options", [{"start": "warm"}, {"sharpness": 1e3}, {"skip": -1.0}, {"skip": np.nan}, {"longest_rest": -1}]
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SDCA(**options)
