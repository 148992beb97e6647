"""The PAC-Bayesian margin bound (Bartlett et al. 2004, section 5, equation 7).

With probability at least 1 - delta over a sample of n examples, for all unit weights w and all margins gamma in (0, 1]
with 2 l n gamma^2 > 1 at once,

    risk(Q(w, gamma)) <= KL^-1( Lmax(w, gamma) + 1 / (n gamma^2),
                                (ln(2 l n gamma^2) / gamma^2 + ln(n / delta)) / (n - 1) )

Q(w, gamma): the Gibbs classifier (`GibbsClassifier`), whose weights are drawn anew from a normal distribution around a
multiple of w. l: the number of slots with features, of the example that has most. Lmax: the mean over the sample of the
largest loss among labellings within the margin (`Margins`). KL^-1 of an upper bound of Lmax is an upper bound.

As the bound holds for all gamma at once, the best one on a grid may be chosen afterwards.

Assumptions. Predictions are argmax over y of <w, Phi(x, y)>. Examples are drawn independently, and feature vectors do
not depend on the sample. A vocabulary learnt from the sample satisfies this (its weights are those of a larger set of
features, all others zero), but features of the sample that were left out (a minimum count, observed pairs alone) are
then features of weight zero, whose norms are not counted. Q(w, gamma) draws weights for all features of the larger set,
also for those of new examples that the vocabulary does not have.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from partwise.bounds.held_out import Loss, check_delta, kl_inverse
from partwise.bounds.margins import Margins
from partwise.problem import LabelledBatch
from partwise.support.arrays import Floats


@dataclass(frozen=True)
class MarginBound:
    """The bound at its best margin.

    value: the bound of the Gibbs classifier's risk. empirical: Lmax (an upper bound of it unless `exact` is 1). slack:
    1 / (n gamma^2). epsilon: the second argument of KL^-1. exact: the share of examples whose labellings were listed.
    older_empirical: `empirical` for the older set. training_loss: the mean loss of the best labellings. grid: (gamma,
    bound) of all margins that were tried.
    """

    value: float
    gamma: float
    delta: float
    empirical: float
    slack: float
    epsilon: float
    n_examples: int
    most_slots: int
    exact: float
    older_empirical: float
    training_loss: float
    loss: Loss
    grid: tuple[tuple[float, float], ...]

    @property
    def informative(self) -> bool:
        """Whether the bound is below 1, which every loss is at most."""
        return self.value < 1.0

    def __str__(self) -> str:
        how = "exact" if self.exact == 1.0 else f"exact for {self.exact:.0%} of the examples, elsewhere an upper bound"
        return (
            f"risk of the Gibbs classifier <= {self.value:.4f} with probability {1.0 - self.delta:g} "
            f"(gamma {self.gamma:.4g}; loss within the margin {self.empirical:.4f}, {how}; by the older set "
            f"{self.older_empirical:.4f}; loss of the best labellings {self.training_loss:.4f}), if the model leaves "
            "out no feature of the sample"
        )


def margin_bound(
    examples: LabelledBatch,
    weights: Floats,
    *,
    delta: float = 0.05,
    gammas: Sequence[float] | None = None,
    loss: Loss = "cost",
    max_listed: int = 100,
    n_jobs: int = 1,
) -> MarginBound:
    """Return the PAC-Bayesian margin bound of weights for the sample that they were trained on.

    examples: the sample, from `estimator.labelled(X, y)`. weights: any that are not zero; the bound is about their
    direction. delta: probability that the bound fails. gammas: margins to try, in (0, 1]; by default 25 of them, evenly
    spread on a logarithmic scale. loss, max_listed: as for `Margins`.

    ValueError for delta outside (0, 1), fewer than 2 examples, weights that are zero, sample weights, or margins for
    which the bound is not stated; `NotCovered`, which is one, for kernels and for models that do not predict by a
    linear argmax, such as ``SequenceTagger(model="maxent")``.
    """
    check_delta(delta)
    margins = Margins(examples, weights, loss=loss, max_listed=max_listed, n_jobs=n_jobs)
    n, slots = margins.n_examples, margins.most_slots
    least = 1.0 / math.sqrt(2.0 * slots * n)
    tried = [float(gamma) for gamma in (np.geomspace(1.0, 1.01 * least, 25) if gammas is None else gammas)]
    if not tried:
        raise ValueError("gammas holds no values")
    if wrong := [gamma for gamma in tried if not least < gamma <= 1.0]:
        raise ValueError(f"gamma must be above {least:.4g} (1 / sqrt(2 l n)) and at most 1, got {wrong[0]}")
    bounds: dict[float, float] = {}
    best: tuple[float, float, float] | None = None  # (bound, gamma, Lmax)
    for gamma in tried:
        bounds[gamma] = _value(0.0, gamma, n, slots, delta)  # the bound for zero loss, the lowest possible
        if best is None or bounds[gamma] < min(best[0], 1.0):
            empirical = float(margins.largest_losses(gamma).mean())
            bounds[gamma] = _value(empirical, gamma, n, slots, delta)
            if best is None or bounds[gamma] < best[0]:
                best = bounds[gamma], gamma, empirical
    assert best is not None
    value, gamma, empirical = best
    return MarginBound(
        value=value,
        gamma=gamma,
        delta=delta,
        empirical=empirical,
        slack=1.0 / (n * gamma**2),
        epsilon=_epsilon(gamma, n, slots, delta),
        n_examples=n,
        most_slots=slots,
        exact=margins.listed.n_examples / n,
        older_empirical=float(margins.largest_losses_of_older_set(gamma).mean()),
        training_loss=float(margins.losses_of_best().mean()),
        loss=loss,
        grid=tuple(sorted(bounds.items())),
    )


def _epsilon(gamma: float, n: int, slots: int, delta: float) -> float:
    return (math.log(2.0 * slots * n * gamma**2) / gamma**2 + math.log(n / delta)) / (n - 1)


def _value(empirical: float, gamma: float, n: int, slots: int, delta: float) -> float:
    observed = empirical + 1.0 / (n * gamma**2)
    return 1.0 if observed >= 1.0 else kl_inverse(observed, _epsilon(gamma, n, slots, delta))


class Fitted(Protocol):
    """A fitted estimator, as far as `GibbsClassifier` uses it."""

    weights_: Floats
    unknown_counts_: tuple[int, int]

    def with_weights(self, weights: Floats) -> Self: ...
    def predict(self, X: Sequence[object]) -> Sequence[object]: ...


class GibbsClassifier:
    """The classifier that the margin bound is about: Q(w, gamma) of Bartlett et al. 2004, section 5.

    Its weights are drawn around those of a fitted estimator: w' ~ N(mu, I), mu = sqrt(2 ln(2 l n gamma^2)) / gamma * w
    / |w|. `margin_bound` bounds its expected loss on a new example; the estimator's own predictions are not covered.

    The theorem's classifier draws a weight for every feature of an example, with mean 0 for those that the estimator's
    vocabulary lacks. Here they have no weight: on examples with some, this is another classifier, and `predict` warns.

    estimator: a fitted one. bound: that of its weights, with gamma, n and l.
    """

    def __init__(
        self, estimator: Fitted, bound: MarginBound, random_state: int | np.random.Generator | None = 0
    ) -> None:
        self.estimator, self.bound = estimator, bound
        self._rng = np.random.default_rng(random_state)

    @property
    def mean(self) -> Floats:
        """mu."""
        weights, bound = self.estimator.weights_, self.bound
        length = math.sqrt(2.0 * math.log(2.0 * bound.most_slots * bound.n_examples * bound.gamma**2)) / bound.gamma
        return weights * (length / float(np.linalg.norm(weights)))

    def draw(self) -> Fitted:
        """The estimator with weights drawn from Q."""
        mean = self.mean
        return self.estimator.with_weights(mean + self._rng.standard_normal(len(mean)))

    def predict(self, X: Sequence[object], per_example: bool = False) -> Sequence[object]:
        """Return an answer for each example. One draw for all, or one per example: the expected loss is the same."""
        parts = [X] if not per_example else [X[i : i + 1] for i in range(len(X))]
        answers, unknown, total = [], 0, 0
        for part in parts:
            drawn = self.draw()
            answers.append(drawn.predict(part))
            unknown += drawn.unknown_counts_[0]
            total += drawn.unknown_counts_[1]
        if unknown:
            warnings.warn(
                f"{unknown} of {total} features of X are unknown to the model: the bound is about a classifier with "
                "weights drawn for them, too, not about these answers",
                UserWarning,
                stacklevel=2,
            )
        return [each[0] for each in answers] if per_example else answers[0]
