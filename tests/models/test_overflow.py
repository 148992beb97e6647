"""Weights whose sums overflow: predictions are valid or a ValueError, and never an index out of range."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from helpers.model_mutants import CASES, fitted

METHODS = [("predict", ()), ("predict_marginals", ()), ("predict_k_best", (3,)), ("sample", (3,))]
METHODS += [("entropy", ()), ("predict_proba", ())]
LARGE = [1e308, -1e308, 1.7e308, 1e200, -1e200, 1e155]


def values_of(answer):
    """Return the numbers in a dict, an array or lists of these."""
    if isinstance(answer, dict):
        return list(answer.values())
    return np.concatenate([np.ravel(values_of(each)) for each in answer]) if isinstance(answer, list) else answer


# not with a kernel on edges, whose zero coefficients are dropped: replacing the others gives no valid model
@pytest.mark.parametrize("name", [case for case in CASES if case != "polynomial on edges"])
def test_huge_weights(name):
    case = fitted(name)
    estimator, model = case.estimator, case.estimator._model
    answered = 0
    try:
        for seed in range(12):
            rng = np.random.default_rng(seed)
            weights = np.array(model.weights, dtype=float)
            places = rng.integers(weights.size, size=rng.integers(1, max(2, weights.size)))
            weights[places] = rng.choice(LARGE if seed < 10 else [1e3, -1e3], size=places.size)
            estimator._model = model.with_weights(weights)
            for method, options in METHODS:
                if not hasattr(estimator, method):
                    continue
                with np.errstate(all="ignore"), contextlib.suppress(ValueError):
                    answers = getattr(estimator, method)(case.X, *options)
                    assert len(answers) == len(case.X)
                    if method in ("predict_marginals", "entropy", "predict_proba"):
                        assert all(np.isfinite(values_of(each)).all() for each in answers)
                    answered += 1
    finally:
        estimator._model = model
    assert answered
