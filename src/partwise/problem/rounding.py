"""Bounds of the rounding in the sums that a certificate consists of (docs/math.md, "Rounding").

A sum in double precision is off by at most EPSILON times its depth times the sum of its terms' absolute values. Bounds
of those are known without another sum: example i's labellings have scores of at most r_i |w|, where r_i
(`FeatureMap.reach`) bounds the norm of a labelling's features. Depths are those of errors with random signs, sqrt(m)
for m additions, and a few for the functions on the way. Errors of different examples are added up as if they had the
same sign, because examples may be copies of each other.
"""

from math import inf, isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from partwise.problem.capabilities import Capability
from partwise.problem.penalties import Penalty
from partwise.support.arrays import Floats

if TYPE_CHECKING:
    from partwise.problem.sums import Sums


EPSILON = float(np.finfo(np.float64).eps)
#: Depth of operations with a fixed number of steps: products, exponentials, logarithms.
FEW = 4.0


class Rounding:
    """The bounds for one problem's data and loss; the penalty is given each time.

    Masses s_i (squared link) are not known one by one: sum_i omega_i s_i x_i <= mass sqrt(sum_i omega_i x_i^2), where
    mass^2 = sum_i omega_i s_i^2. With the identity link they are 1, and `mass` is not used.
    """

    def __init__(self, sums: "Sums") -> None:
        #: Depths of sums over examples and over weights.
        self.examples = FEW + 0.5 * sqrt(sums.n_examples)
        self.weights = FEW + 0.25 * sqrt(sums.n_weights)
        self.inner_product = sums.inner_product
        self.squared = Capability.SQUARED_LINK in sums.loss.capabilities()
        self.temperature = sums.loss.temperature
        self.explicit = sums.explicit_weights
        fixed = FEW + 0.5 * sqrt(sums.facts.row_length)
        #: The same of u where features are 1: the depth of a sum over examples times what they weigh.
        self.counts = (fixed + FEW + self.examples) * float(sums.facts.sample_weight.sum())
        plain, squares, self.largest_reach = sums.rounding_sums(fixed, self.examples)
        self.scores2 = squares[0]
        #: Sums over examples of what multiplies |w| in scores, of what does not, and of what moves u.
        self.scores, self.level, self.transposed = map(sqrt, squares) if self.squared else plain
        if sums.loss.rescaling == "slack":  # a margin and its plane are multiplied by the labelling's cost
            cost = max(1.0, sums.largest_cost())
            self.scores, self.level, self.transposed = cost * self.scores, cost * self.level, cost * self.transposed

    def size(self, vector: Floats) -> float:
        """Return a bound of the sum of absolute values in a product of the vector with A' slots, over |A' slots|."""
        # With a kernel a vector is a sum of vectors that may cancel; otherwise its coordinates are the terms.
        if self.explicit:
            return sqrt(self.inner_product(vector, vector, 1))
        return self.largest_reach * float(np.abs(vector).sum())

    def of_gap(
        self, penalty: Penalty, primal: float, u: Floats, b: float, raw: float, weights: Floats | None, carried: int
    ) -> float:
        """Return the bound for raw = P(w) - D of a plane (u, b); arguments as in `Problem.certificate_of`."""
        l1, l2 = penalty.l1, penalty.strength
        if not (l1 or l2 > 0):
            return 0.0  # there is no D
        free = self.of_free(penalty, 2.0 * sqrt(abs(primal)))
        size_u = self.size(u)
        of_primal = self.of_primal(primal, l2, size_u / l2 if weights is None else self.size(weights))
        bound = 0.0
        for _ in range(2 if self.squared else 1):
            # The gap has a term sum omega (t - s / 2)^2: masses are at most this.
            mass = 2.0 * (sqrt(abs(primal)) + sqrt(max(raw, 0.0) + bound))
            of_b, of_u = self.of_plane(b, mass, carried)
            if l1:  # by how much u is off, the multiple of it in the box changes: D loses that share of b
                of_conjugate = (of_u / l1 + EPSILON * self.weights) * abs(b)
            else:
                of_conjugate = (0.5 * EPSILON * self.weights * size_u * size_u + of_u * (size_u + 0.5 * of_u)) / l2
            bound = _finite(of_primal + of_b + of_conjugate + free)
        return bound

    def of_gradient_gap(self, penalty: Penalty, primal: float, norm2: float, weights: Floats) -> tuple[float, float]:
        """Return the bounds for |grad P(w)|^2 / (2 l2), as the gap to the oracle's answer at w, and for P(w).

        norm2: |grad P(w)|^2. The oracle answers at rounded scores: a dual point like any other, whose distance from the
        exact one is of second order (a divergence for its distributions, a square for its masses).
        """
        l2 = penalty.strength
        size, norm, mass = self.size(weights), sqrt(norm2), 2.0 * sqrt(abs(primal))
        off = self.of_plane(0.0, mass, 0)[1] + EPSILON * self.weights * l2 * size
        first = (off * (norm + 0.5 * off) + 0.5 * EPSILON * self.weights * norm2) / l2
        second = self.scores2 * (EPSILON * size) ** 2
        if self.temperature > 0:
            second *= 1.0 + (mass if self.squared else 1.0) / self.temperature
        return _finite(first + second + self.of_free(penalty, mass)), _finite(self.of_primal(primal, l2, size))

    def of_free(self, penalty: Penalty, mass: float) -> float:
        """Return the bound for bound |u|_1 of free weights, whose entries of u are sums of probabilities."""
        if penalty.free is None:
            return 0.0
        off = EPSILON * (mass if self.squared else 1.0) * self.counts
        return off * (penalty.free.stop - penalty.free.start) * 2.0 * penalty.free.bound(penalty.l1, penalty.strength)

    def of_shift(self, shift: Floats, weights: Floats) -> float:
        """Return the bound for -<shift, w> in P(w), and for the shift in u + shift, which is as large."""
        return _finite(2.0 * EPSILON * self.weights * self.size(shift) * self.size(weights))

    def of_plane_at(self, b: float, size_u: float, size: float) -> float:
        """Return the bound for the losses at w and b - <u, w> together (identity link); size_u, size: of u and w."""
        of_b, of_u = self.of_plane(b, 1.0, 0)
        at_w = EPSILON * (self.scores * size + self.level)
        return _finite(at_w + of_b + (of_u + EPSILON * self.weights * size_u) * size)

    def of_primal(self, primal: float, l2: float, size: float) -> float:
        """Return the bound for P(w); size: that of w."""
        terms = EPSILON * (self.scores * size + self.level)
        if self.squared:  # (t + dt)^2, and sum omega t^2 <= P
            terms = 2.0 * sqrt(abs(primal)) * terms + 3.0 * terms * terms
        penalty = 0.0 if self.explicit else 0.5 * l2 * size * size
        return terms + EPSILON * ((self.examples + self.weights) * abs(primal) + self.weights * penalty)

    def of_plane(self, b: float, mass: float, carried: int) -> tuple[float, float]:
        """Return the bounds for b, and for u in norm."""
        more = sqrt(carried)
        scale = mass if self.squared else 1.0
        # The squared link's terms s cost - s^2 / 4 have two signs.
        terms = abs(b) + (mass * mass if self.squared else 0.0)
        of_b = EPSILON * (scale * self.level + (self.examples + more) * terms)
        return of_b, EPSILON * scale * self.transposed * (1.0 + more / self.examples)


def _finite(bound: float) -> float:
    return bound if isfinite(bound) else inf
