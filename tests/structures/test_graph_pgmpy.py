"""log Z and marginals of random graphs equal those of pgmpy, in the benchmark's code; skipped without pgmpy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benchmarks import graph


@pytest.fixture(scope="module", autouse=True)
def _pgmpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pgmpy's imports warn
        pytest.importorskip("pgmpy.inference")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(6))
def test_equal_to_pgmpy(seed):
    n_labels = 2 + seed % 3
    record = graph.compare(*graph.random_graph(np.random.default_rng(seed), 5 + seed, n_labels, 2), n_labels)
    assert record["difference"] <= 1e-8
    assert record["ratio"] >= 20  # 100 and more on an idle machine: see the benchmark
