"""The numbers of iterations that the papers' theorems promise for a problem.

They are upper bounds, computed from a few constants of a `Problem` (`Constants`); accuracies are in units of P, whose
losses are summed. Conversions (docs/math.md): in Collins et al. 2008 C is l2 and |A| is max |psi|^2 / l2; in Zhang et
al. 2011 lambda is l2 / n and J is P / n, so that epsilon there is ours over n; in Chang and Yih 2013 C is 1 / l2. With
sample weights omega the inequalities are those of docs/math.md, and with weights 1 the papers'.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

import numpy as np

from partwise.methods.eg import Guarantee
from partwise.problem import DualPoint, Problem
from partwise.problem.capabilities import PLAIN_L2, Capability, listed
from partwise.solvers.dual.base import max_step, psi2_bounds
from partwise.solvers.dual.eg import EG
from partwise.solvers.dual.excessive_gap import steps_to
from partwise.support.arrays import Floats
from partwise.support.checks import check_choice, check_positive

Accuracy = Literal["dual", "primal", "gap"]


@dataclass(frozen=True, eq=False)
class Constants:
    """The constants of the bounds; arrays have an entry for each example of positive weight.

    weights: omega. psi2: upper bounds of the largest |psi|^2, psi = A_i'(g_i - count(y)) over labellings y (R^2 of
    Chang and Yih 2013, |A|^2 of Zhang et al. 2011). log_labellings: log |Y_i|. costs: the largest cost of a labelling,
    kappa included (Delta of Chang and Yih 2013).
    """

    weights: Floats
    psi2: Floats
    log_labellings: Floats
    costs: Floats
    l2: float
    temperature: float

    @property
    def n_examples(self) -> int:
        return len(self.weights)

    @property
    def curvature(self) -> float:
        """|A| of Collins et al. 2008: the largest entry of the dual's matrix, max |psi|^2 / l2."""
        return float(self.psi2.max()) / self.l2

    @property
    def spread(self) -> float:
        """sum_i omega_i log |Y_i|: the largest divergence from uniform (D of Zhang et al. 2011, times n)."""
        return float(self.weights @ self.log_labellings)

    def dual_accuracy(self, epsilon: float, accuracy: Accuracy) -> float:
        """Return the distance from the best dual value at which P at a point's weights is within epsilon of the best P.

        With "gap": for P - D of the point and its weights w to be at most epsilon; with "dual": epsilon itself.

        Where the dual value is d below the best, |w - w*|^2 <= 2 d / l2. The sum of losses has slopes of at most
        G = sum_i omega_i |psi_i|, and above temperature 0 a curvature of at most sum_i omega_i |psi_i|^2 / tau. So

            P(w) - P* <= 2 G sqrt(2 d / l2) + d        and above temperature 0
            P(w) - P* <= (1 + sum_i omega_i |psi_i|^2 / (tau l2)) d

        (O(1/eps^2) and O(log 1/eps) iterations: Collins et al. 2008, section 9 and footnote 12). P - D is d more. Both
        sides are concave in d, so that the bound holds for means over draws too.
        """
        check_positive("epsilon", epsilon)
        check_choice("accuracy", accuracy, get_args(Accuracy))
        if accuracy == "dual":
            return float(epsilon)
        own = 1.0 if accuracy == "primal" else 2.0
        slope = 2.0 * float(self.weights @ np.sqrt(self.psi2)) * sqrt(2.0 / self.l2)
        # the root of own x^2 + slope x = epsilon, without cancellation
        found = (2.0 * epsilon / (slope + sqrt(slope * slope + 4.0 * own * epsilon))) ** 2
        if self.temperature > 0:
            curvature = float(self.weights @ self.psi2) / (self.temperature * self.l2)
            found = max(found, epsilon / (own + curvature))
        return found

    @property
    def smoothing(self) -> float:
        """mu_1 of Zhang et al. 2011, Algorithm 1: L / sigma = (sum omega) max |psi|^2 / l2."""
        return float(self.weights.sum()) * self.curvature


def constants(problem: Problem) -> Constants:
    """Return a problem's constants, from its oracles; ValueError without these, or without a pure L2 penalty."""
    missing = (PLAIN_L2 | {Capability.EXPECTATION_ORACLE, Capability.MAX_ORACLE}) - problem.capabilities()
    if missing:
        raise ValueError(f"iteration bounds need {listed(missing)}, which this problem does not have")
    active = problem.active
    # the entropies of uniform distributions
    _, log_labellings = problem.sums.marginals_of_scores(np.zeros(problem.n_slots))
    return Constants(
        weights=problem.sample_weight[active],
        psi2=psi2_bounds(problem)[active],
        log_labellings=log_labellings[active],
        # the largest <count(y), kappa c> at w = 0
        costs=problem.sums.margins(np.zeros(problem.n_weights), 0.0)[active],
        l2=problem.l2,
        temperature=problem.loss.temperature,
    )


def eg_passes(
    problem: Problem,
    epsilon: float,
    *,
    order: str = "random",
    divergence: float | None = None,
    accuracy: Accuracy = "dual",
    delta: float = 1.0,
) -> float:
    """Return the passes of EG with the theorem's steps to an accuracy of epsilon: Collins et al. 2008, Table 1, over n.

    The table counts visits of examples: n^2 / eps |A| D and n (1 + n |A|) log(c_1 / eps) for batches, n / eps (|A| D +
    Q(u^1) - Q*) and n (1 + |A|) log(c_2 / eps) for the order "random", of max-margin and log-linear duals. If both
    hold, the smaller one is returned. For the order "random" the bound is for the mean over all draws.

    problem: any loss with the identity link; tau is its temperature. order: "batch" (solver `eg-batch`) or "random"
    (`eg`, order "random"). divergence: sum_i omega_i D[u*_i || u^1_i] of a best dual point from the start; by default
    the largest it can be from uniform distributions, sum_i omega_i log |Y_i|. accuracy: which quantity is to be at most
    epsilon, D* - D ("dual"), P(w) - P* ("primal") or P(w) - D ("gap"); see `Constants.dual_accuracy`. delta: below 1,
    with the order "random": passes of all log2(1 / delta) runs of `eg` with this option, after which the best run is
    within epsilon with probability 1 - delta (the paper after Theorem 2: each run is within epsilon / 2 in the mean,
    and by Markov's inequality beyond epsilon with probability 1/2 at most).
    """
    check_choice("order", order, ("batch", "random"))
    _check_identity(problem)
    found, runs = constants(problem), EG(delta=delta).runs
    epsilon = found.dual_accuracy(epsilon, accuracy)
    if delta < 1:
        if order != "random":
            raise ValueError(f"delta is about the draws of order='random', not about order={order!r}")
        epsilon /= 2.0
    distance = _divergence(found, divergence)
    tau, n = found.temperature, found.n_examples
    heaviest = float(found.weights.sum() if order == "batch" else found.weights.max())
    rate = max(tau + heaviest * found.curvature, 1.0 / max_step(problem))  # 1 / step: the solvers' steps are finite
    if order == "batch":
        return float(Guarantee(distance * rate, distance * rate, tau / rate).needed(epsilon))
    # Q(u^1) - Q* at most: by a certificate of the uniform distributions, with their weights or with zero weights
    uniform, none = DualPoint.of_scores(np.zeros(problem.n_slots)), np.zeros(problem.n_weights)
    best = min(problem.value(none), problem.value(problem.weights_from_dual(uniform)))
    reach = distance * rate + max(best - problem.dual_value(uniform), 0.0)
    return runs * Guarantee(n * reach, reach, tau / rate / n).needed(epsilon) / n


def excessive_gap_steps(problem: Problem, epsilon: float, *, divergence: float | None = None) -> int:
    """Return the steps of `excessive-gap`, smoothing="theorem", to a gap of epsilon: Zhang et al. 2011, Theorem 4.

    It is the first k with 6 mu_1 D / ((k + 1) (k + 2)) <= epsilon, D = sum_i omega_i log |Y_i|; equation 28 rounds the
    same number up to 2 + max |psi| sqrt(6 log |Y| / (lambda eps)).

    problem: the hinge, or another loss of temperature 0 with the identity link. divergence: sum_i omega_i
    D[alpha*_i || uniform] of a best dual point; with it the bound is for the distance of the dual value from the best
    one, Corollary 7 and the second half of equation 28.
    """
    check_positive("epsilon", epsilon)
    _check_identity(problem)
    if problem.loss.smooth:
        raise ValueError(f"the excessive gap bound is for losses of temperature 0, not {problem.loss.name!r}")
    found = constants(problem)
    distance = _divergence(found, divergence)
    if distance == 0 or found.smoothing == 0:
        return 1
    return max(1, steps_to(epsilon / distance, found.smoothing))


def dcd_additions(problem: Problem, delta: float) -> float:
    """Return how often `dcd`, `dcd-light` and `cpd` can add a labelling (Chang and Yih 2013, Theorem 1).

    A labelling whose violation is at least delta (the solvers' option) raises D by omega_i delta^2 / (1 + 2 omega_i
    |psi|^2 / l2) or more when it is updated first, D is 0 at the start and never above P(0) <= sum_i omega_i Delta_i^2.
    With weights 1 that is 2 (R^2 + 1/(2C)) l C Delta^2 / delta^2, without its O(). problem: the squared hinge.
    """
    check_positive("delta", delta)
    if Capability.SQUARED_LINK not in problem.capabilities():
        raise ValueError(f"the bound of additions is for the squared hinge, not {problem.loss.name!r}")
    found = constants(problem)
    gain = found.weights / (1.0 + 2.0 * found.weights * float(found.psi2.max()) / found.l2)
    return float(found.weights @ found.costs**2) / (float(gain.min()) * delta**2)


def _check_identity(problem: Problem) -> None:
    if Capability.IDENTITY_LINK not in problem.capabilities():
        raise ValueError(f"the bound is for losses with the identity link, not {problem.loss.name!r}")


def _divergence(found: Constants, divergence: float | None) -> float:
    if divergence is None:
        return found.spread
    check_positive("divergence", divergence, zero=True)
    return float(divergence)
