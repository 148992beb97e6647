"""Exponentiated gradient for quadratic programs over products of simplices.

Problem. min Q(alpha) = b'alpha + 1/2 alpha'A alpha + sum_i tau_i sum_j alpha_ij log alpha_ij over alpha whose blocks
alpha_i are probability distributions; A symmetric and positive semi-definite; tau_i >= 0, in general 0.

Update. With s = b + A alpha, in every block

    alpha_ij <- alpha_ij^(1 - eta tau_i) exp(-eta s_ij) / (the same, summed over j)

Step sizes, with lambda the largest eigenvalue of A and B an upper bound of what two components of the gradient within
one block can differ by anywhere in the feasible set:

    theorem    0.4 / (B + lambda) if tau = 0; 1 / (max tau + n max |A|) for n blocks if not
    search     a step from q to p is taken if max tau KL(p || q) + 1/2 (p - q)'A (p - q) <= KL(p || q) / eta, and
               halved if not; eta doubles until that happens for the first time, then grows by 1.05 per step
    a number   that one; Q never rises below 0.567 / (B + lambda), and a run that lets it rise raises DivergenceError

Stopping rule. gap = sum_i [s_i'alpha_i + tau_i sum_j alpha_ij log alpha_ij - min over distributions v of (s_i'v + tau_i
sum_j v_j log v_j)] <= tol (1 + |Q|). Q(alpha) - gap is a lower bound of the minimum, as Q's quadratic part lies above
its tangents.

Source. 001: Figure 2, and Theorem 1 (`QPResult.theorem_1`); the steps are those of its section 3.2. B there is taken
over all components; its proof uses differences within a block alone, and the bound 2 (n max |A| + max |b|) given there
is replaced by a sharper one. For tau > 0: 000, Figure 1, Theorem 1 and Lemma 3. The search is our own (see `eg_batch`).
"""

import warnings
from dataclasses import dataclass, field
from math import exp, isfinite
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, Ints, pointers
from ..result import ConvergenceWarning, DivergenceError
from ..solvers.watch import FALL, PATIENCE

#: An eigenvalue of A below minus this, over the largest, is negative and not rounding.
NEGATIVE = 1e-9
#: A divergence below this is rounding.
NOISE = 1e-14
#: Where Q is linear no step is too large; this one keeps logs finite.
LARGEST_STEP = 1e12


@dataclass(frozen=True, eq=False)
class QPResult:
    """The outcome of `eg_qp`.

    alpha is the last of the iterates alpha^1 (`start`), ..., alpha^(T + 1), where T = `iterations`; mean_value is the
    mean of Q over the first T of them; lower_bound <= min Q <= value, and gap is the difference.
    """

    alpha: Floats
    value: float
    gap: float
    iterations: int
    status: Literal["converged", "max_iterations"]
    step_size: float | None
    gradient_range: float
    largest_eigenvalue: float
    first_value: float
    mean_value: float
    start: Floats = field(repr=False)
    program: "_Program" = field(repr=False)

    @property
    def lower_bound(self) -> float:
        return self.value - self.gap

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    def theorem_1(self, other: ArrayLike) -> float:
        """The right-hand side of 001's Theorem 1 with this feasible point for u: a bound of `mean_value`.

        With a minimiser for u it bounds how far the mean, and for steps below 0.567 / (B + lambda) the last value as
        well, can be above the minimum after T iterations.
        """
        u = self.program.check_point(other)
        factors = theorem_1_factors(self.step_size, self.gradient_range, self.largest_eigenvalue)
        if self.program.entropic or factors is None or self.iterations == 0:
            raise ValueError("Theorem 1 requires temperature 0, a constant step below 0.567 / (B + lambda), T >= 1")
        divergence = float(np.sum(u * (_log(u) - np.log(self.start)), where=u > 0))
        fall = self.first_value - self.value
        return self.program.value(u) + (factors[0] * divergence + factors[1] * fall) / self.iterations


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
    step_size : "theorem", "search" or a number > 0
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
    program = _Program(A, b, blocks, temperature)
    if not (isfinite(tol) and tol >= 0):
        raise ValueError(f"tol must be a number >= 0, got {tol}")
    if max_iterations < 0:
        raise ValueError(f"max_iterations must be >= 0, got {max_iterations}")
    searching = step_size == "search"
    eta = program.step(step_size)
    logs = program.logs_of(start)
    now = first = program.look(logs)
    best, best_iteration = now.value, 0
    doubling, total, iterations = True, 0.0, 0
    while now.gap > tol * (1.0 + abs(now.value)) and iterations < max_iterations:
        after = program.look(program.moved(now, eta))
        if searching and not program.acceptable(now, after, eta):
            eta, doubling = 0.5 * eta, False
            continue
        total += now.value
        now = after
        iterations += 1
        if searching:
            eta = min(eta * (2.0 if doubling else 1.05), LARGEST_STEP)
        if now.value < best:
            best, best_iteration = now.value, iterations
        elif not isfinite(now.value) or (iterations - best_iteration >= PATIENCE and _risen(now.value, best)):
            raise DivergenceError(f"eg_qp: Q is {now.value:.6g} after {best:.6g} with step_size={step_size}")
    converged = now.gap <= tol * (1.0 + abs(now.value))
    if not converged and _risen(now.value, best):
        raise DivergenceError(f"eg_qp: Q is {now.value:.6g} at the end after {best:.6g} with step_size={step_size}")
    if not converged and tol > 0:
        warnings.warn(
            f"eg_qp: gap {now.gap:.3g} after {iterations} iterations, Q = {now.value:.8g}, tol is {tol:.3g}. Raise "
            "max_iterations or tol, or take step_size='search'.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return QPResult(
        alpha=now.alpha,
        value=now.value,
        gap=max(now.gap, 0.0),
        iterations=iterations,
        status="converged" if converged else "max_iterations",
        step_size=None if searching else eta,
        gradient_range=program.gradient_range,
        largest_eigenvalue=program.largest_eigenvalue,
        first_value=first.value,
        mean_value=total / iterations if iterations else now.value,
        start=first.alpha,
        program=program,
    )


@dataclass(frozen=True)
class _Look:
    """A point and what is known of it. logs, alpha, s = b + A alpha: (m,)."""

    logs: Floats
    alpha: Floats
    s: Floats
    value: float
    gap: float


class _Program:
    """A, b, blocks and temperatures, checked, and the arithmetic on them."""

    def __init__(self, A: ArrayLike, b: ArrayLike, blocks: ArrayLike, temperature: ArrayLike) -> None:
        self.A = np.array(A, dtype=np.float64)
        self.b = np.array(b, dtype=np.float64)
        sizes = np.array(blocks)
        m = len(self.b) if self.b.ndim == 1 else 0
        if not m or self.A.shape != (m, m):
            raise ValueError(f"A must be (m, m) and b (m,) with m >= 1, got shapes {self.A.shape} and {self.b.shape}")
        if not (np.isfinite(self.A).all() and np.isfinite(self.b).all()):
            raise ValueError("A and b must be finite")
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or int(sizes.sum()) != m:
            raise ValueError(f"blocks must be sizes >= 1 that sum to {m}, got {blocks!r}")
        self.sizes: Ints = sizes.astype(np.int64)
        self.firsts = pointers(self.sizes)[:-1]
        tau = np.array(temperature, dtype=np.float64)
        if tau.ndim > 1 or (tau.ndim == 1 and len(tau) != len(sizes)) or not (np.isfinite(tau) & (tau >= 0)).all():
            raise ValueError("temperature must be a number >= 0, or one for each block")
        self.tau = np.repeat(np.broadcast_to(tau, sizes.shape), self.sizes)  # (m,)
        self.entropic = bool(self.tau.any())
        scale = float(np.abs(self.A).max())
        if not np.allclose(self.A, self.A.T, rtol=0.0, atol=1e-12 * scale):
            raise ValueError("A must be symmetric")
        eigenvalues = np.linalg.eigvalsh(self.A)
        self.largest_eigenvalue = max(float(eigenvalues[-1]), 0.0)
        if eigenvalues[0] < -NEGATIVE * self.largest_eigenvalue or (eigenvalues[0] < 0 and not self.largest_eigenvalue):
            raise ValueError(f"A must be positive semi-definite, it has the eigenvalue {eigenvalues[0]:.3g}")
        self.gradient_range = self._gradient_range()

    def _gradient_range(self) -> float:
        """B: each component of b + A alpha lies between sums over blocks of its row's smallest and largest entries."""
        high = self.b + np.maximum.reduceat(self.A, self.firsts, axis=1).sum(axis=1)
        low = self.b + np.minimum.reduceat(self.A, self.firsts, axis=1).sum(axis=1)
        return float((np.maximum.reduceat(high, self.firsts) - np.minimum.reduceat(low, self.firsts)).max())

    def step(self, step_size: str | float) -> float:
        """The first step."""
        if step_size in ("theorem", "search"):
            if self.entropic:
                rate = float(self.tau.max()) + len(self.sizes) * float(np.abs(self.A).max())
                return 1.0 / rate
            rate = self.gradient_range + self.largest_eigenvalue
            return 0.4 / rate if rate else 1.0  # Q is constant
        if isinstance(step_size, str):
            raise ValueError(f"step_size must be theorem, search or a number, got {step_size!r}")
        if not (isfinite(step_size) and step_size > 0):
            raise ValueError(f"step_size must be positive, got {step_size}")
        return float(step_size)

    def logs_of(self, start: ArrayLike | None) -> Floats:
        """Logs of the first point."""
        if start is None:
            return -np.log(np.repeat(self.sizes, self.sizes).astype(np.float64))
        point = self.check_point(start)
        if not (point > 0).all():
            raise ValueError("start must be in the interior: every component above 0")
        return np.log(point)

    def check_point(self, point: ArrayLike) -> Floats:
        """A feasible point, normalised."""
        alpha: Floats = np.array(point, dtype=np.float64)
        if alpha.shape != self.b.shape or not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ValueError(f"a point has {len(self.b)} components >= 0")
        sums = np.add.reduceat(alpha, self.firsts)
        if not np.allclose(sums, 1.0, atol=1e-6):
            raise ValueError("every block of a point must sum to 1")
        alpha /= np.repeat(sums, self.sizes)
        return alpha

    def value(self, alpha: Floats) -> float:
        """Q."""
        return float(self.b @ alpha + 0.5 * alpha @ (self.A @ alpha) + self.tau @ (alpha * _log(alpha)))

    def look(self, logs: Floats) -> _Look:
        """The point with these logs, its value and gap."""
        alpha = np.exp(logs)
        s = self.b + self.A @ alpha
        entropy = float(self.tau @ (alpha * logs)) if self.entropic else 0.0
        value = 0.5 * float((self.b + s) @ alpha) + entropy
        gap = float(s @ alpha) + entropy - float(self._least(s).sum())
        return _Look(logs, alpha, s, value, gap)

    def _least(self, s: Floats) -> Floats:
        """min over distributions v of s_i'v + tau_i sum v log v, for each block."""
        least: Floats = np.minimum.reduceat(s, self.firsts)
        if not self.entropic:
            return least
        tau = self.tau[self.firsts]
        some = self.tau > 0
        rise = np.where(some, (s - np.repeat(least, self.sizes)) / np.where(some, self.tau, 1.0), 0.0)
        least -= tau * np.log(np.add.reduceat(np.exp(-rise), self.firsts))
        return least

    def moved(self, now: _Look, eta: float) -> Floats:
        """Logs after a step."""
        with np.errstate(over="ignore", invalid="ignore"):  # a step that large is found out by the value it leads to
            logs: Floats = now.logs - eta * (now.s + self.tau * now.logs)
            logs -= np.repeat(np.maximum.reduceat(logs, self.firsts), self.sizes)
        logs -= np.repeat(np.log(np.add.reduceat(np.exp(logs), self.firsts)), self.sizes)
        return logs

    def acceptable(self, now: _Look, after: _Look, eta: float) -> bool:
        """The search's test."""
        change = after.alpha - now.alpha
        divergence = float(after.alpha @ (after.logs - now.logs)) + NOISE
        return (1.0 / eta - float(self.tau.max())) * divergence >= 0.5 * float(change @ (after.s - now.s))


def _risen(value: float, best: float) -> bool:
    return value - best > FALL * (1.0 + abs(best))


def _log(alpha: Floats) -> Floats:
    """log, with 0 log 0 = 0 in mind."""
    logs: Floats = np.log(np.where(alpha > 0, alpha, 1.0))
    return logs
