"""Exponentiated gradient for quadratic programs over products of simplices.

Problem. min Q(alpha) = b'alpha + 1/2 alpha'A alpha + sum_i tau_i sum_j alpha_ij log alpha_ij over alpha whose blocks
alpha_i are probability distributions; A symmetric and positive semi-definite; tau_i >= 0, in general 0.

Update and stopping rule. Those of `eg` with the order "batch".

Step sizes, with lambda the largest eigenvalue of A and B an upper bound of what two components of b + A alpha within
one block can differ by anywhere in the feasible set:

    theorem    0.4 / (B + lambda) if tau = 0; 1 / (max tau + n max |A|) for n blocks if not
    others     as in `eg`; with a number Q never rises below 0.567 / (B + lambda)

Source. Bartlett et al. 2004: Figure 2, and Theorem 1 (`QPResult.theorem_1`; also behind `bound` and `iterations_for`
where a step is too long for the theorems of Collins et al. 2008); the steps are those of its section 3.2. B there is
taken over all components; its proof uses differences within a block alone, and the bound 2 (n max |A| + max |b|) given
there is replaced by a sharper one. For tau > 0: Collins et al. 2008, Figure 1, Theorem 1 and Lemma 3.
"""

from dataclasses import dataclass, field
from math import exp

import numpy as np
from numpy.typing import ArrayLike

from partwise.methods.eg import EGResult, Guarantee, Run
from partwise.methods.functions import Quadratic, quadratic
from partwise.methods.simplices import log_of
from partwise.support.arrays import Floats


@dataclass(frozen=True, eq=False)
class QPResult(EGResult):
    """The outcome of `eg_qp`, and Theorem 1 of Bartlett et al. 2004."""

    function: Quadratic = field(repr=False)

    @property
    def mean_value(self) -> float:
        """The mean of Q over the first T iterates."""
        return float(self.values[:-1].mean()) if self.iterations else self.value

    @property
    def gradient_range(self) -> float:
        """B."""
        return self.function.gradient_range

    @property
    def largest_eigenvalue(self) -> float:
        """lambda."""
        return self.function.largest_eigenvalue

    def _guarantee(self, divergences: Floats, excess: float) -> Guarantee:
        """Collins et al.'s theorem where it is about this step, which is then the lower bound; else Theorem 1."""
        try:
            return super()._guarantee(divergences, excess)
        except ValueError:
            factors = theorem_1_factors(self.step_size, self.gradient_range, self.largest_eigenvalue)
            if self.function.entropic or factors is None or self.iterations == 0:
                raise
            return Guarantee(factors[0] * float(divergences.sum()) + factors[1] * excess)

    def theorem_1(self, other: ArrayLike) -> float:
        """Return the right-hand side of Theorem 1 with this feasible point for u: a bound of `mean_value`.

        With a minimiser for u it bounds how far the mean, and for steps below 0.567 / (B + lambda) the last value as
        well, can be above the minimum after T iterations.
        """
        u = self.function.simplices.check_point(other)
        factors = theorem_1_factors(self.step_size, self.gradient_range, self.largest_eigenvalue)
        if self.function.entropic or factors is None or self.iterations == 0:
            raise ValueError("Theorem 1 requires temperature 0, a constant step below 0.567 / (B + lambda), T >= 1")
        divergence = float(np.sum(u * (log_of(u) - np.log(self.start)), where=u > 0))
        fall = self.first_value - self.value
        return self.function.value(u) + (factors[0] * divergence + factors[1] * fall) / self.iterations


def theorem_1_factors(step_size: float | None, gradient_range: float, largest: float) -> tuple[float, float] | None:
    """Factors of D(u, alpha^1) / T and (Q(alpha^1) - Q(alpha^(T + 1))) / T; None where the theorem says nothing."""
    if step_size is None:
        return None
    x = step_size * gradient_range
    rest = 1.0 - step_size * (gradient_range + largest) * exp(min(x, 700.0))
    if rest <= 0:
        return None
    # (e^x - 1 - x) / x^2, by its series where the difference would cancel
    shape = 0.5 + x / 6.0 + x * x / 24.0 if x < 1e-3 else (exp(x) - 1.0 - x) / (x * x)
    return 1.0 / step_size, shape / rest


def eg_qp(
    A: ArrayLike,
    b: ArrayLike,
    blocks: ArrayLike,
    *,
    temperature: ArrayLike = 0.0,
    step_size: str | float = "theorem",
    start: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iterations: int = 100_000,
) -> QPResult:
    """Minimise b'alpha + 1/2 alpha'A alpha over a product of simplices (see the module's docstring).

    Parameters
    ----------
    A : array (m, m)
        Symmetric, positive semi-definite.
    b : array (m,)
    blocks : array of n integers
        Sizes of the simplices, which follow one another in alpha; they sum to m.
    temperature : float or array (n,)
        tau_i, the weight of block i's negative entropy.
    step_size : "theorem", "adaptive", "search" or a number > 0
    start : array (m,), optional
        A point in the interior (default: uniform distributions).
    tol : float
        Stop at gap <= tol * (1 + |Q|).
    max_iterations : int

    Raises
    ------
    ValueError
        If A is not symmetric or not positive semi-definite, sizes do not match, a step is not positive, or the start
        is not in the interior.
    DivergenceError
        If a given step lets Q rise for good.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached.
    """
    function = quadratic(A, b, blocks, temperature)
    step = None
    if step_size in ("theorem", "search") and not function.entropic:
        rate = function.gradient_range + function.largest_eigenvalue
        step = 0.4 / rate if rate else 1.0  # Q is constant
    result = Run("eg_qp", function, "batch", step_size, step=step).go(start, tol, max_iterations)
    return QPResult(**vars(result))
