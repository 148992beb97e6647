"""Runs of `maxent-auto` on random contexts."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.contexts import Contexts
from benchmarks.maxent_auto import TARGETS, run


@pytest.mark.parametrize("solver", ["cd", "sdca", "auto"])
def test_times_to_targets(rng, solver):
    n, n_attributes, n_labels = 60, 8, 3
    rows = np.sort(np.argsort(rng.random((n, n_attributes)), axis=1)[:, :3], axis=1)
    none, no = np.zeros(0, dtype=np.int64), np.zeros(0)
    pairs = np.arange(n_attributes + 1) * n_labels, np.tile(np.arange(n_labels), n_attributes)
    contexts = Contexts(
        np.arange(n + 1) * 3,
        rows.ravel(),
        no,
        rng.integers(0, n_labels, n),
        none,
        none,
        no,
        none,
        *pairs,
        np.array([n_attributes, n_labels]),
    )
    name, *seconds, gap = run(contexts, solver, 1.0, 20.0)
    assert name == solver or solver == "auto"
    assert len(seconds) == len(TARGETS)
    assert all(0 < a <= b for a, b in zip(seconds, seconds[1:], strict=False))
    assert gap <= TARGETS[-1]
