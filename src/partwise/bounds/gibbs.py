"""The classifier that the margin bound is about."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from partwise.bounds.pac_bayes import MarginBound
from partwise.support.arrays import Floats


class GibbsClassifier:
    """Q(w, gamma) of Bartlett et al. 2004, section 5: weights are drawn around those of a fitted estimator.

    w' ~ N(mu, I), mu = sqrt(2 ln(2 l n gamma^2)) / gamma * w / |w|. Its expected loss on a new example is what
    `margin_bound` bounds; the estimator's own predictions are not covered.

    The theorem's classifier draws a weight for every feature of an example, with mean 0 for those that the estimator's
    vocabulary does not have. Here such features have no weight: for examples that have some, this is another
    classifier than the theorem's, and `predict` warns.

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
        parts = [X] if not per_example else [X[i : i + 1] for i in range(len(X))]
        answers, unknown, total = [], 0, 0
        for part in parts:
            drawn = self.draw()
            answers.append(drawn.predict(part))
            counts = drawn.unknown_counts_
            unknown, total = unknown + counts[0], total + counts[1]
        if unknown:
            warnings.warn(
                f"{unknown} of {total} features of X are unknown to the model: the bound is about a classifier with "
                "weights drawn for them, too, not about these answers",
                UserWarning,
                stacklevel=2,
            )
        return [each[0] for each in answers] if per_example else answers[0]
