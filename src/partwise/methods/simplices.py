"""Products of simplices, and convex functions over them with what the theorems of exponentiated gradient ask of them.

With the Bregman divergence B_Q[p || q] = Q(p) - Q(q) - <grad Q(q), p - q> and D[p || q] = sum_i D[p_i || q_i], the sum
of the blocks' KL divergences, Collins et al. 2008 call Q

    tau-upper-bounded         B_Q[p || q] <= tau D[p || q]                               `upper`        Definition 5.1
    tau-online-upper-bounded  the same where p and q differ in one block alone           `block_upper`  Definition 5.2
    (mu, tau)-bounded         and B_Q[p || q] >= mu D[p || q]                            `lower`        both

The last two may be one number per block here: B_Q[p || q] <= tau_i D[p_i || q_i] where block i differs, and
B_Q[p || q] >= sum_i mu_i D[p_i || q_i].
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.lazy import cached_property

#: Logarithms are kept above this: exp of it is still positive, so that a component can grow again.
LEAST_LOG = -700.0
#: An eigenvalue of A below minus this, relative to the largest, is negative and not rounding.
NEGATIVE = 1e-9
#: Rounding of values of Q, relative to their size.
ROUNDING = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Simplices:
    """A product of simplices: points alpha = (alpha_1, ..., alpha_n), alpha_i a distribution on sizes[i] corners."""

    sizes: Ints

    @classmethod
    def of(cls, blocks: ArrayLike) -> "Simplices":
        """Return the product of simplices of these sizes; ValueError if these are not sizes."""
        sizes = np.array(blocks)
        if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise ValueError(f"blocks must be sizes >= 1, one per simplex, got {blocks!r}")
        return cls(sizes.astype(np.int64))

    @cached_property
    def ends(self) -> Ints:
        """Components of block i are ends[i]:ends[i + 1]."""
        return pointers(self.sizes)

    @property
    def n_blocks(self) -> int:
        return len(self.sizes)

    @property
    def n_components(self) -> int:
        return int(self.ends[-1])

    def block(self, i: int) -> slice:
        return slice(int(self.ends[i]), int(self.ends[i + 1]))

    def per_component(self, values: Floats) -> Floats:
        return np.repeat(values, self.sizes)

    def sums(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.ends[:-1]))

    def largest(self, values: Floats) -> Floats:
        return np.asarray(np.maximum.reduceat(values, self.ends[:-1]))

    def least(self, values: Floats) -> Floats:
        return np.asarray(np.minimum.reduceat(values, self.ends[:-1]))

    def normalised(self, logs: Floats) -> Floats:
        """Return the logarithms, at least LEAST_LOG, of the distributions proportional to exp(logs)."""
        logs = logs - self.per_component(self.largest(logs))
        logs -= self.per_component(np.log(self.sums(np.exp(logs))))
        return np.maximum(logs, LEAST_LOG)

    def check_point(self, point: ArrayLike) -> Floats:
        """Return the point with every block divided by its sum; ValueError if it is not in the product."""
        alpha: Floats = np.array(point, dtype=np.float64)
        if alpha.shape != (self.n_components,) or not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ValueError(f"a point has {self.n_components} components >= 0")
        sums = self.sums(alpha)
        if not np.allclose(sums, 1.0, atol=1e-6):
            raise ValueError("every block of a point must sum to 1")
        return alpha / self.per_component(sums)

    def check_start(self, start: ArrayLike | None) -> Floats:
        """Return the logarithms of a point to start from (None: uniform); ValueError if it is not in the interior."""
        if start is None:
            return -np.log(self.per_component(self.sizes.astype(np.float64)))
        point = self.check_point(start)
        if not (point > 0).all():
            raise ValueError("start must be in the interior: every component above 0")
        return np.log(point)

    def per_block(self, name: str, values: ArrayLike) -> Floats:
        """Return a number >= 0 for each block, from one for all or from one per block."""
        out = np.array(values, dtype=np.float64)
        right_shape = out.ndim == 0 or out.shape == self.sizes.shape
        if not right_shape or not (np.isfinite(out) & (out >= 0)).all():
            raise ValueError(f"{name} must be a number >= 0, or one for each block")
        return np.broadcast_to(out, self.sizes.shape).copy()


def log_of(alpha: Floats) -> Floats:
    """Return logarithms, 0 where alpha is 0, so that 0 log 0 = 0."""
    logs: Floats = np.log(np.where(alpha > 0, alpha, 1.0))
    return logs


@dataclass(frozen=True, eq=False)
class SimplexFunction:
    """A convex Q over a product of simplices, by its value and gradient.

    blocks: n sizes of simplices, which follow one another in alpha. value: the function alpha -> Q(alpha), for alpha
    with positive components. gradient: the function that returns all components of the gradient, in alpha's shape.
    block_gradient: a function of alpha and i that returns the components of block i, for methods that visit one block
    at a time; by default they are cut out of `gradient`. upper: tau of Definition 5.1, which makes the step 1 / tau of
    batch methods safe. block_upper: tau of Definition 5.2, for methods that visit one block at a time, a number or one
    per block. lower: mu of both, a number or one per block; above 0 the rate is linear, and the gap sharper. bregman: a
    function that returns B_Q[p || q]; by default values and gradients are used, which cancel where p is near q.
    """

    blocks: ArrayLike
    value: Callable[[Floats], float]
    gradient: Callable[[Floats], Floats]
    block_gradient: Callable[[Floats, int], Floats] | None = None
    upper: float | None = None
    block_upper: ArrayLike | None = None
    lower: ArrayLike = 0.0
    bregman: Callable[[Floats, Floats], float] | None = None
    simplices: Simplices = field(init=False, repr=False)
    mu: Floats = field(init=False, repr=False)
    block_tau: Floats | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        simplices = Simplices.of(self.blocks)
        for name in ("value", "gradient"):
            if not callable(getattr(self, name)):
                raise ValueError(f"{name} must be a function of alpha, got {getattr(self, name)!r}")
        if self.upper is not None and not (isfinite(self.upper) and self.upper >= 0):
            raise ValueError(f"upper must be a number >= 0, got {self.upper}")
        tau = None if self.block_upper is None else simplices.per_block("block_upper", self.block_upper)
        mu = simplices.per_block("lower", self.lower)
        if self.upper is not None and (mu > self.upper * (1 + 1e-12)).any():
            raise ValueError(f"lower must not exceed upper, got {mu.max():.6g} and {self.upper:.6g}")
        for name, item in (("simplices", simplices), ("mu", mu), ("block_tau", tau)):
            object.__setattr__(self, name, item)

    def value_at(self, alpha: Floats) -> float:
        """Return Q; ValueError if it is NaN (it may be infinite)."""
        value = float(self.value(alpha))
        if np.isnan(value):
            raise ValueError("value gave NaN")
        return value

    def gradient_at(self, alpha: Floats, i: int | None = None) -> Floats:
        """Return the gradient, or that in block i; ValueError if it has another shape or is not finite."""
        if i is None or self.block_gradient is None:
            found, size, name = self.gradient(alpha), len(alpha), "gradient"
        else:
            size, name = int(self.simplices.sizes[i]), f"block_gradient of block {i}"
            found = self.block_gradient(alpha, i)
        out = np.asarray(found, dtype=np.float64)
        if out.shape != (size,):
            raise ValueError(f"{name} must have shape ({size},), got {out.shape}")
        if not np.isfinite(out).all():
            raise ValueError(f"{name} has components that are not finite")
        return out if i is None or self.block_gradient is not None else out[self.simplices.block(i)]

    def gap(self, logs: Floats, gradient: Floats) -> float:
        """Return a bound of Q(alpha) - min Q: by the definition of mu_i, Q(z) is at least

            Q(alpha) + <gradient, z - alpha> + sum_i mu_i D[z_i || alpha_i]

        everywhere, and this has a least value. With mu_i = 0 it is the Frank-Wolfe gap of block i, the largest
        <gradient_i, alpha_i - corner>, else <gradient_i, alpha_i> + mu_i log sum_y alpha_iy exp(-gradient_iy / mu_i).
        """
        simplices = self.simplices
        here = simplices.sums(np.exp(logs) * gradient)
        least = simplices.least(gradient)
        if self.mu.any():
            some = self.mu > 0
            mu = np.where(some, self.mu, 1.0)
            exponents = logs - gradient / simplices.per_component(mu)
            highest = simplices.largest(exponents)
            rest = np.log(simplices.sums(np.exp(exponents - simplices.per_component(highest))))
            least = np.where(some, -mu * (highest + rest), least)
        return float((here - least).sum())

    def check_gradient(self, logs: Floats, value: float, gradient: Floats) -> None:
        """Raise ValueError unless the gradient's slope lies between differences of values around the point."""
        alpha, simplices = np.exp(logs), self.simplices
        direction = alpha * np.cos(np.arange(len(alpha)) + 1.0)
        direction -= alpha * simplices.per_component(simplices.sums(direction))
        slope, h = float(gradient @ direction), 1e-4
        before = (value - self.value_at(alpha - h * direction)) / h
        after = (self.value_at(alpha + h * direction) - value) / h
        scale = float(np.abs(gradient) @ np.abs(direction)) + 1e-3 * abs(value)
        rounding = ROUNDING * (abs(value) + float(alpha @ np.abs(gradient))) / h
        slack = 1e-4 * scale + rounding + 1e-9
        if not before - slack <= slope <= after + slack:
            raise ValueError(
                f"gradient does not belong to value, or Q is not convex: along a direction it has the slope "
                f"{slope:.6g}, differences of values give {before:.6g} before the point and {after:.6g} after it"
            )


@dataclass(frozen=True, eq=False)
class Quadratic(SimplexFunction):
    """b'alpha + 1/2 alpha'A alpha + sum_i tau_i sum_j alpha_ij log alpha_ij, made by `quadratic`.

    A, b: the program; tau_i is `lower`. gradient_range: B of Bartlett et al. 2004, an upper bound of what two
    components of b + A alpha within one block can differ by. largest_eigenvalue: lambda of the same paper.
    """

    A: Floats = field(kw_only=True, repr=False)
    b: Floats = field(kw_only=True, repr=False)
    gradient_range: float = field(kw_only=True)
    largest_eigenvalue: float = field(kw_only=True)

    @property
    def entropic(self) -> bool:
        """Whether a temperature is above 0."""
        return bool(self.mu.any())


def quadratic(A: ArrayLike, b: ArrayLike, blocks: ArrayLike, temperature: ArrayLike = 0.0) -> Quadratic:
    """Return a quadratic program over a product of simplices, with entropies: duals (4) and (5) of Collins et al. 2008.

    The programs of Bartlett et al. 2004, section 3, are of this form, too. Its constants are those of Collins et al.
    2008: upper = max tau + n |A| (Lemmas 3 and 4, |A| the largest entry), block_upper_i = tau_i + |A_ii| (Lemma 7, the
    largest entry of block i by block i), lower_i = tau_i.

    A: (m, m), symmetric and positive semi-definite. b: (m,). blocks: n sizes of simplices, which follow one another in
    alpha and sum to m. temperature: tau_i, the weight of block i's negative entropy, one number or one per block.
    """
    A, b = np.array(A, dtype=np.float64), np.array(b, dtype=np.float64)
    m = len(b) if b.ndim == 1 else 0
    if not m or A.shape != (m, m):
        raise ValueError(f"A must be (m, m) and b (m,) with m >= 1, got shapes {A.shape} and {b.shape}")
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise ValueError("A and b must be finite")
    simplices = Simplices.of(blocks)
    if simplices.n_components != m:
        raise ValueError(f"blocks must be sizes >= 1 that sum to {m}, got {blocks!r}")
    if not np.allclose(A, A.T, rtol=0.0, atol=1e-12 * float(np.abs(A).max())):
        raise ValueError("A must be symmetric")
    eigenvalues = np.linalg.eigvalsh(A)
    largest = max(float(eigenvalues[-1]), 0.0)
    if eigenvalues[0] < -NEGATIVE * largest or (eigenvalues[0] < 0 and not largest):
        raise ValueError(f"A must be positive semi-definite, it has the eigenvalue {eigenvalues[0]:.3g}")
    tau = simplices.per_block("temperature", temperature)
    taus, entropic = simplices.per_component(tau), bool(tau.any())
    spans = [simplices.block(i) for i in range(simplices.n_blocks)]
    own = np.array([np.abs(A[span, span]).max() for span in spans])
    firsts = simplices.ends[:-1]  # components of b + A alpha lie between sums of their rows' extremes in each block
    high = b + np.maximum.reduceat(A, firsts, axis=1).sum(axis=1)
    low = b + np.minimum.reduceat(A, firsts, axis=1).sum(axis=1)

    def value(alpha: Floats) -> float:
        entropy = float(taus @ (alpha * log_of(alpha))) if entropic else 0.0
        return float((b + 0.5 * (A @ alpha)) @ alpha) + entropy

    def gradient(alpha: Floats) -> Floats:
        out: Floats = b + A @ alpha
        return out + taus * (1.0 + log_of(alpha)) if entropic else out

    def block_gradient(alpha: Floats, i: int) -> Floats:
        span = spans[i]
        out: Floats = b[span] + A[span] @ alpha + tau[i] * (1.0 + log_of(alpha[span]))
        return out

    def bregman(p: Floats, q: Floats) -> float:
        change = p - q
        return float(0.5 * change @ (A @ change) + taus @ (p * (log_of(p) - log_of(q))))

    return Quadratic(
        blocks,
        value,
        gradient,
        block_gradient,
        upper=float(tau.max()) + simplices.n_blocks * float(np.abs(A).max()),
        block_upper=tau + own,
        lower=tau,
        bregman=bregman,
        A=A,
        b=b,
        gradient_range=float((simplices.largest(high) - simplices.least(low)).max()),
        largest_eigenvalue=largest,
    )
