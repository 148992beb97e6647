"""The objective, its gradient and its dual over enumerated labellings and explicit matrices.

    P(w) = l2/2 |w|^2 + sum_i omega_i phi(smax_tau(theta_i + kappa c_i) - <theta_i, g_i>),  theta_i = A_i w
    D(s, p) = sum_i omega_i [s_i (kappa <mu_i, c_i> + tau H(p_i)) - phi*(s_i)]
              - |sum_i omega_i s_i A_i'(g_i - mu_i)|^2 / (2 l2)

with mu_i = E_{p_i}[counts]. A dual point is a list of distributions over labellings and an array of masses s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .enumerate import Enumeration, entropy

Floats = NDArray[np.float64]

# Name -> (temperature, cost_scale, link).
LOSSES: dict[str, tuple[float, float, str]] = {
    "log": (1.0, 0.0, "identity"),
    "hinge": (0.0, 1.0, "identity"),
    "softmax-margin": (1.0, 1.0, "identity"),
    "squared-hinge": (0.0, 1.0, "squared"),
    "smoothed-hinge": (0.3, 1.0, "identity"),
}


@dataclass(frozen=True)
class DenseProblem:
    """A problem with enumerated labellings. matrices: the A_i, (num_slots_i, d). gold, cost: one value per slot."""

    examples: Sequence[Enumeration]
    matrices: Sequence[Floats]
    gold: Sequence[Floats]
    cost: Sequence[Floats]
    sample_weight: Floats
    l2: float
    temperature: float
    cost_scale: float
    link: str = "identity"

    @property
    def n(self) -> int:
        return len(self.examples)

    @property
    def dim(self) -> int:
        return self.matrices[0].shape[1]

    def phi(self, t: float) -> float:
        return t if self.link == "identity" else max(t, 0.0) ** 2

    def slope(self, t: float) -> float:
        """The derivative of the link, phi'(t), which is the dual mass s at the oracle's answer."""
        return 1.0 if self.link == "identity" else 2.0 * max(t, 0.0)

    def conjugate(self, s: float) -> float:
        """The conjugate of the link, phi*(s): 0 at s = 1 for the identity, s^2 / 4 for s >= 0 for the squared link."""
        if self.link == "identity":
            assert s == 1.0
            return 0.0
        assert s >= 0.0
        return s * s / 4.0

    def oracle(self, i: int, w: Floats) -> tuple[float, float, Floats]:
        """Return (margin violation t_i, its slope, the distribution that attains smax)."""
        theta = self.matrices[i] @ w
        augmented = theta + self.cost_scale * self.cost[i]
        value, _, _ = self.examples[i].smax(augmented, self.temperature)
        t = value - float(theta @ self.gold[i])
        if self.temperature == 0:
            p = np.zeros(len(self.examples[i]))
            p[self.examples[i].maximum(augmented)[1]] = 1.0
        else:
            p = self.examples[i].probabilities(augmented, self.temperature)
        return t, self.slope(t), p

    def loss_sum(self, w: Floats) -> float:
        """The weighted sum of losses, without the penalty."""
        return float(sum(o * self.phi(self.oracle(i, w)[0]) for i, o in enumerate(self.sample_weight)))

    def primal(self, w: Floats) -> float:
        return 0.5 * self.l2 * float(w @ w) + self.loss_sum(w)

    def gradient(self, w: Floats) -> Floats:
        """A (sub)gradient of the primal."""
        ps, mass = self.best_response(w)
        return self.l2 * w - self.direction(ps, mass)

    def hessian(self, w: Floats) -> Floats:
        """The matrix of second derivatives at temperature > 0: phi' Cov_p(psi) / tau + phi'' E_p[psi] E_p[psi]'."""
        total = self.l2 * np.eye(self.dim)
        for i, omega in enumerate(self.sample_weight):
            t, slope, p = self.oracle(i, w)
            mean = p @ self.psi(i)
            centred = self.psi(i) - mean
            total += omega * slope / self.temperature * (centred.T * p) @ centred
            if self.link == "squared" and t > 0:
                total += 2.0 * omega * np.outer(mean, mean)
        return total

    def best_response(self, w: Floats) -> tuple[list[Floats], Floats]:
        """The dual point that the oracle returns at w."""
        answers = [self.oracle(i, w) for i in range(self.n)]
        return [p for _, _, p in answers], np.array([s for _, s, _ in answers])

    def psi(self, i: int) -> Floats:
        """Feature differences A_i'(g_i - counts(y)) of all labellings, (N_i, d): g_{i,y} of Collins et al. 2008."""
        return (self.gold[i] - self.examples[i].counts) @ self.matrices[i]

    def label_costs(self, i: int) -> Floats:
        """Costs kappa * cost of every labelling, (N_i,): the b_{i,y} of Collins et al. 2008."""
        return self.cost_scale * (self.examples[i].counts @ self.cost[i])

    def direction(self, ps: Sequence[Floats], mass: Floats | None = None) -> Floats:
        """The slope of a dual point's plane: u = sum_i omega_i s_i A_i'(g_i - mu_i)."""
        mass = np.ones(self.n) if mass is None else mass
        return sum((self.sample_weight[i] * mass[i] * (ps[i] @ self.psi(i)) for i in range(self.n)), np.zeros(self.dim))

    def linear_part(self, ps: Sequence[Floats], mass: Floats | None = None) -> float:
        """The offset of a dual point's plane: b = sum_i omega_i [s_i (kappa <mu_i, c_i> + tau H_i) - phi*(s_i)]."""
        mass = np.ones(self.n) if mass is None else mass
        total = 0.0
        for i, p in enumerate(ps):
            inner = float(p @ self.label_costs(i)) + self.temperature * entropy(p)
            total += self.sample_weight[i] * (mass[i] * inner - self.conjugate(float(mass[i])))
        return total

    def weights(self, ps: Sequence[Floats], mass: Floats | None = None) -> Floats:
        return self.direction(ps, mass) / self.l2

    def dual(self, ps: Sequence[Floats], mass: Floats | None = None) -> float:
        u = self.direction(ps, mass)
        return self.linear_part(ps, mass) - float(u @ u) / (2.0 * self.l2)

    def a_max(self) -> float:
        """|A|_inf of Collins et al. 2008: the largest |psi|^2 / l2 (a Gram matrix is largest on its diagonal)."""
        return max(float((self.psi(i) ** 2).sum(axis=1).max()) for i in range(self.n)) / self.l2

    def slots(self, ps: Sequence[Floats], mass: Floats | None = None) -> Floats:
        """s_i mu_i of all examples, concatenated."""
        mass = np.ones(self.n) if mass is None else mass
        return np.concatenate([s * (p @ e.counts) for s, p, e in zip(mass, ps, self.examples, strict=True)])

    def entropies(self, ps: Sequence[Floats]) -> Floats:
        return np.array([entropy(p) for p in ps])


def random_dual_point(problem: DenseProblem, rng: np.random.Generator) -> tuple[list[Floats], Floats]:
    """Draw distributions from the whole simplex, corners included, and for the squared link masses from zero up."""
    ps = []
    for example in problem.examples:
        p = rng.dirichlet(np.full(len(example), rng.choice([0.05, 1.0])))
        ps.append(p / p.sum())
    if problem.link == "identity":
        return ps, np.ones(problem.n)
    return ps, rng.exponential(1.0, problem.n) * (rng.random(problem.n) < 0.8)


def matrix_of(features: Any, i: int) -> Floats:
    """A_i, found column by column: the feature map's scores of unit vectors."""
    columns = []
    for j in range(features.num_weights):
        unit = np.zeros(features.num_weights)
        unit[j] = 1.0
        columns.append(features.scores(i, unit))
    return np.stack(columns, axis=1) if columns else np.zeros((features.num_slots(i), 0))


def hamming_cost(gold: Floats, rows: int, n_labels: int, width: int) -> Floats:
    """1 on every label slot of the first `rows` rows that the gold labelling does not use; 0 elsewhere."""
    cost = np.zeros(len(gold))
    for t in range(rows):
        label_slots = slice(t * width, t * width + n_labels)
        cost[label_slots] = 1.0 - gold[label_slots]
    return cost
