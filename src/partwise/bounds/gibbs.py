"""The classifier that the margin bound is about."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import Floats
from .pac_bayes import MarginBound


class GibbsClassifier:
    """Q(w, gamma) of 001, section 5: each prediction is made with weights drawn around those of a fitted estimator.

    w' ~ N(mu, I), mu = sqrt(2 ln(2 l n gamma^2)) / gamma * w / |w|. Its expected loss on a new example is what
    `margin_bound` bounds; the estimator's own predictions are not covered.

    Parameters
    ----------
    estimator : a fitted estimator
    bound : MarginBound
        Of that estimator's weights; it says gamma, n and l.
    random_state : int, Generator or None
    """

    def __init__(self, estimator: Any, bound: MarginBound, random_state: Any = 0) -> None:
        self.estimator, self.bound = estimator, bound
        self._rng = np.random.default_rng(random_state)

    @property
    def mean(self) -> Floats:
        """mu."""
        weights: Floats = self.estimator.weights_
        bound = self.bound
        length = math.sqrt(2.0 * math.log(2.0 * bound.most_slots * bound.n_examples * bound.gamma**2)) / bound.gamma
        return weights * (length / float(np.linalg.norm(weights)))

    def draw(self) -> Any:
        """The estimator with weights drawn from Q."""
        mean = self.mean
        return self.estimator.with_weights(mean + self._rng.standard_normal(len(mean)))

    def predict(self, X: Any, per_example: bool = False) -> Any:
        """An answer for each example. One draw for all of them, or one per example: the expected loss is the same."""
        if not per_example:
            return self.draw().predict(X)
        return [self.draw().predict(X[i : i + 1])[0] for i in range(len(X))]
