"""Excessive gap minimisation of any f(w) + g*(Aw), in plain NumPy.

Problem. With f strongly convex (modulus rho), g convex with an L_g-Lipschitz gradient on a compact set Q, and a linear
map A,

    min J(w) = f(w) + max over alpha in Q of <Aw, alpha> - g(alpha),      max D(alpha) = -g(alpha) - f*(-A'alpha).

A prox-function d on Q (strongly convex with modulus sigma, least value 0 at `centre`, largest `diameter`) smooths J:

    J_mu(w) = f(w) + max over alpha in Q of <Aw, alpha> - g(alpha) - mu d(alpha)

Update. Zhang et al. 2011, Algorithm 1, line by line in `ExcessiveGapMethod.iterates`. Every iterate fulfils
J_mu(w) <= D(alpha) (equation 11), and so J(w) - D(alpha) <= `bound(k)` = 6 L diameter / (sigma (k + 1) (k + 2)),
L = |A|^2 / rho + L_g (equation 17).

Stopping rule. `iterates` never ends; `minimize` stops at J(w) - D(alpha) <= tol |J(w)|, and checks (11) and (17) at
every step, which reveals functions, constants or operators that do not belong together.

Source. Zhang et al. 2011, section 2. No departures. `SquaredNorm`, `LinearTerm` and `EntropyProx` are the functions of
its section 3; other functions are other objects with the methods of the protocols below. Structured problems are solved
by the solver `excessive-gap`, which never lists labellings.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from partwise.methods.simplices import Simplices
from partwise.problem import ConvergenceWarning
from partwise.support.arrays import Floats
from partwise.support.checks import check_positive

#: Rounding of values, relative to their size.
ROUNDING = 1e-9


class StronglyConvex(Protocol):
    """f: a convex function with modulus `modulus` > 0."""

    @property
    def modulus(self) -> float: ...
    def value(self, w: Floats) -> float: ...
    def respond(self, v: Floats) -> Floats:
        """The w that maximises <v, w> - f(w), which is the gradient of f* at v."""


class Prox(Protocol):
    """d, and the set Q that it is defined on."""

    @property
    def modulus(self) -> float: ...
    @property
    def diameter(self) -> float: ...
    @property
    def centre(self) -> Floats: ...
    def value(self, alpha: Floats) -> float: ...
    def respond(self, v: Floats, mu: float) -> Floats:
        """The alpha in Q that maximises <v, alpha> - mu d(alpha)."""

    def support(self, v: Floats) -> float:
        """max over alpha in Q of <v, alpha>."""

    def project(self, alpha: Floats, direction: Floats) -> Floats:
        """The Bregman projection: the beta in Q that minimises <direction, beta> + d(beta) - <grad d(alpha), beta>."""


class SmoothTerm(Protocol):
    """g: a convex function on Q with a gradient of Lipschitz constant `lipschitz`."""

    @property
    def lipschitz(self) -> float: ...
    def value(self, alpha: Floats) -> float: ...
    def gradient(self, alpha: Floats) -> Floats: ...
    def respond(self, v: Floats, mu: float, prox: Prox) -> Floats:
        """The alpha in Q that maximises <v, alpha> - g(alpha) - mu d(alpha)."""

    def conjugate(self, v: Floats, prox: Prox) -> float:
        """max over alpha in Q of <v, alpha> - g(alpha)."""


class Iterate(NamedTuple):
    """The paper's k, w_k, alpha_k and mu_k."""

    k: int
    w: Floats
    alpha: Floats
    mu: float


@dataclass(frozen=True)
class ExcessiveGapMethod:
    """Algorithm 1 for these functions.

    matrix: A, anything with `matrix @ w` and `matrix.T @ alpha`. norm: |A| = max <Aw, alpha> over |w| = |alpha| = 1 in
    the norms that the moduli are about (an upper bound will do).
    """

    f: StronglyConvex
    g: SmoothTerm
    matrix: Any
    prox: Prox
    norm: float

    def __post_init__(self) -> None:
        check_positive("norm", self.norm)
        check_positive("the modulus of f", self.f.modulus)
        check_positive("the modulus of the prox-function", self.prox.modulus)
        check_positive("the diameter of the prox-function", self.prox.diameter, zero=True)
        check_positive("the Lipschitz constant of g", self.g.lipschitz, zero=True)
        centre = np.asarray(self.prox.centre, dtype=np.float64)
        try:
            w = self.matrix.T @ centre
            back = np.shape(self.matrix @ w)
        except (AttributeError, ValueError, TypeError) as error:
            needed = f"`matrix @ w` and `matrix.T @ alpha` with alpha of shape {centre.shape}"
            raise ValueError(f"matrix must have {needed}: {error}") from error
        if back != centre.shape:
            raise ValueError(f"matrix @ w has shape {back}, alpha has {centre.shape}")
        if not np.isfinite(w).all():
            raise ValueError("matrix.T @ alpha is not finite")

    @property
    def lipschitz(self) -> float:
        """L, eq. 16."""
        return self.norm**2 / self.f.modulus + self.g.lipschitz

    def weights(self, alpha: Floats) -> Floats:
        """Return w(alpha), eq. 14a."""
        return self.f.respond(-(self.matrix.T @ alpha))

    def primal(self, w: Floats) -> float:
        """Return J, eq. 5."""
        return self.f.value(w) + self.g.conjugate(self.matrix @ w, self.prox)

    def smoothed(self, w: Floats, mu: float) -> float:
        """Return J_mu, eq. 8."""
        v = self.matrix @ w
        alpha = self.g.respond(v, mu, self.prox)
        return self.f.value(w) + float(v @ alpha) - self.g.value(alpha) - mu * self.prox.value(alpha)

    def dual(self, alpha: Floats) -> float:
        """Return D, eq. 9."""
        w = self.weights(alpha)
        return self.f.value(w) + float((self.matrix @ w) @ alpha) - self.g.value(alpha)

    def dual_gradient(self, alpha: Floats) -> Floats:
        """Return the gradient of D, eq. 15."""
        gradient: Floats = self.matrix @ self.weights(alpha) - self.g.gradient(alpha)
        return gradient

    def bound(self, k: int) -> float:
        """Return what eq. 17 promises of J(w_k) - D(alpha_k)."""
        return 6.0 * self.lipschitz * self.prox.diameter / (self.prox.modulus * (k + 1) * (k + 2))

    def iterates(self) -> Iterator[Iterate]:
        """Yield (w_k, alpha_k, mu_k) for k = 1, 2, ..."""
        start = np.array(self.prox.centre, dtype=np.float64)
        mu = self.lipschitz / self.prox.modulus
        w = self.weights(start)
        alpha = self.prox.project(start, -self.dual_gradient(start) / mu)
        k = 1
        while True:
            yield Iterate(k, w, alpha, mu)
            tau = 2.0 / (k + 3)
            response = self.g.respond(self.matrix @ w, mu, self.prox)
            middle = (1.0 - tau) * alpha + tau * response
            w = (1.0 - tau) * w + tau * self.weights(middle)
            projected = self.prox.project(response, -tau / ((1.0 - tau) * mu) * self.dual_gradient(middle))
            alpha = (1.0 - tau) * alpha + tau * projected
            mu *= 1.0 - tau
            k += 1

    def minimize(self, tol: float = 1e-3, max_steps: int = 10_000) -> "ExcessiveGapResult":
        """Algorithm 1 to J(w) - D(alpha) <= tol |J(w)|, or for max_steps steps, with a ConvergenceWarning.

        ValueError if a step breaks the excessive gap condition (11), the bound (17) or weak duality by more than
        rounding: a modulus, `norm` or the diameter is wrong, or a response is not the maximiser.
        """
        check_positive("tol", tol, zero=True)
        if max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {max_steps}")
        gaps = []
        for iterate in self.iterates():
            primal, dual, margin = self._checked(iterate)
            gaps.append(primal - dual)
            converged = primal - dual <= tol * abs(primal)
            if converged or iterate.k >= max_steps:
                break
        if not converged and tol > 0:
            text = f"ExcessiveGapMethod: gap {primal - dual:.3g} after {iterate.k} steps, J = {primal:.8g}"
            warnings.warn(f"{text}, tol is {tol:.3g}. Raise max_steps or tol.", ConvergenceWarning, stacklevel=2)
        return ExcessiveGapResult(
            w=iterate.w,
            alpha=iterate.alpha,
            mu=iterate.mu,
            steps=iterate.k,
            primal=primal,
            dual=dual,
            margin=margin,
            bound=self.bound(iterate.k),
            status="converged" if converged else "max_steps",
            gaps=np.array(gaps),
        )

    def _checked(self, iterate: Iterate) -> tuple[float, float, float]:
        """Return J(w), D(alpha) and D(alpha) - J_mu(w); raise ValueError if they contradict the theorems."""
        primal, dual = self.primal(iterate.w), self.dual(iterate.alpha)
        smoothed = self.smoothed(iterate.w, iterate.mu)
        if not all(map(isfinite, (primal, dual, smoothed))):
            raise ValueError(f"step {iterate.k}: J = {primal}, D = {dual}, J_mu = {smoothed} are not finite")
        slack = ROUNDING * (1.0 + abs(primal) + abs(dual))
        excesses = {
            "J_mu(w) <= D(alpha), eq. 11": smoothed - dual,
            "D(alpha) <= J(w)": dual - primal,
            "J(w) - D(alpha) <= the bound of eq. 17": primal - dual - self.bound(iterate.k),
        }
        for name, excess in excesses.items():
            if excess > slack:
                raise ValueError(
                    f"step {iterate.k} breaks {name}, by {excess:.3g}: a modulus, the norm of A or the diameter is not "
                    "what it should be, or a response is not the maximiser"
                )
        return primal, dual, dual - smoothed


@dataclass(frozen=True, eq=False)
class ExcessiveGapResult:
    """The outcome of `ExcessiveGapMethod.minimize`.

    w, alpha, mu, steps: the last iterate, and the paper's k. primal, dual: J(w) and D(alpha), between which min J lies.
    margin: D(alpha) - J_mu(w), the excessive gap, >= 0 up to rounding (eq. 11). bound: the bound of eq. 17 on the gap
    after so many steps. gaps: J(w_k) - D(alpha_k) for k = 1, ..., steps.
    """

    w: Floats
    alpha: Floats
    mu: float
    steps: int
    primal: float
    dual: float
    margin: float
    bound: float
    status: Literal["converged", "max_steps"]
    gaps: Floats = field(repr=False)

    @property
    def gap(self) -> float:
        """J(w) - D(alpha), a bound of J(w) - min J."""
        return max(self.primal - self.dual, 0.0)

    @property
    def converged(self) -> bool:
        return self.status == "converged"


@dataclass(frozen=True)
class SquaredNorm:
    """f(w) = modulus / 2 |w|^2."""

    modulus: float

    def __post_init__(self) -> None:
        check_positive("modulus", self.modulus)

    def value(self, w: Floats) -> float:
        return 0.5 * self.modulus * float(w @ w)

    def respond(self, v: Floats) -> Floats:
        return v / self.modulus


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """g(alpha) = -<gains, alpha> (eq. 25)."""

    gains: Floats
    lipschitz: float = 0.0

    def value(self, alpha: Floats) -> float:
        return -float(self.gains @ alpha)

    def gradient(self, alpha: Floats) -> Floats:
        return -self.gains

    def respond(self, v: Floats, mu: float, prox: Prox) -> Floats:
        return prox.respond(v + self.gains, mu)

    def conjugate(self, v: Floats, prox: Prox) -> float:
        return prox.support(v + self.gains)


class EntropyProx:
    """d = sum_i mass_i (log n_i - H(alpha_i / mass_i)) on simplices of n_i corners and total mass_i (eq. 27).

    The modulus is with respect to the 1-norm.
    """

    def __init__(self, sizes: Sequence[int], masses: Sequence[float]) -> None:
        self.masses: Floats = np.asarray(masses, dtype=np.float64)
        if len(sizes) != len(self.masses) or not (self.masses > 0).all():
            raise ValueError(f"{len(sizes)} sizes, {len(self.masses)} masses: one mass above 0 per simplex is needed")
        self.simplices = Simplices.of(sizes)
        self.modulus = 1.0 / float(self.masses.sum())
        self.diameter = float(self.masses @ np.log(self.simplices.sizes))
        self.centre = self.simplices.per_component(self.masses / self.simplices.sizes)

    def value(self, alpha: Floats) -> float:
        some = alpha > 0
        return float((alpha[some] * np.log(alpha[some] / self.centre[some])).sum())

    def respond(self, v: Floats, mu: float) -> Floats:
        return self._gibbs(v / mu)

    def support(self, v: Floats) -> float:
        return float(self.masses @ self.simplices.largest(v))

    def project(self, alpha: Floats, direction: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # log 0: components without mass get none
            return self._gibbs(np.log(alpha) - direction)

    def _gibbs(self, logs: Floats) -> Floats:
        simplices = self.simplices
        shifted = np.exp(logs - simplices.per_component(simplices.largest(logs)))
        return shifted * simplices.per_component(self.masses / simplices.sums(shifted))
