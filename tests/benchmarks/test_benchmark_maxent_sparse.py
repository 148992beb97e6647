"""All systems of `maxent-sparse` minimise the same objective."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks import maxent_sparse


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_systems_reach_each_others_targets(ratio):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix((rng.random((200, 12)) < 0.3).astype(float))
    y = (np.asarray(X.sum(axis=1))[:, 0] + rng.normal(size=200) > 3.5).astype(np.int64)
    best = maxent_sparse.optimum(X, y, 1.0, ratio, 5.0)
    seconds, coef, solver = maxent_sparse.ours(X, y, 1.0, ratio, 1.001 * best, 1e-3)
    assert seconds is not None
    assert solver == "cd-l1"
    assert maxent_sparse.objective(X, y, coef, 1.0, ratio) <= 1.001 * best
    assert maxent_sparse.saga(X, y, 1.0, ratio, 1.001 * best, 20.0)[1]
    if ratio == 1.0:
        pytest.importorskip("liblinear")
        assert maxent_sparse.liblinear(X, y, 1.0, 1.001 * best, 20.0)[1]
    # no system gets below the optimum, so all have the same objective
    assert not maxent_sparse.saga(X, y, 1.0, ratio, 0.999 * best, 0.05)[1]
