"""Exponentiated gradient for convex functions, and for quadratic programs, over products of simplices.

Problem. `eg`: min Q(alpha) over alpha whose n blocks alpha_i are probability distributions (`SimplexFunction`).
`eg_qp`: the same for Q(alpha) = b'alpha + 1/2 alpha'A alpha + sum_i tau_i sum_j alpha_ij log alpha_ij with A symmetric
and positive semi-definite, tau_i >= 0, in general 0.

Update. alpha_ij <- alpha_ij exp(-eta grad_ij Q(alpha)) / (the same, summed over j): for all blocks at once (order
"batch"), or for one block at a time, drawn with replacement ("random") or taken in turn ("cyclic").

Step sizes:

    theorem    1 / upper for all blocks at once, 1 / block_upper_i for block i alone; `eg_qp` with tau = 0: 0.4 / (B +
               lambda), lambda the largest eigenvalue of A, B an upper bound of what two components of b + A alpha
               within one block can differ by
    adaptive   halved until Q does not rise, multiplied by 1.05 after each step; one per block where they move alone
    search     batch only: halved until B_Q[p || q] <= D[p || q] / eta for the step from q to p; doubled after each step
               until a step is halved, then multiplied by 1.05
    a number   this step; a run in which Q rises and does not fall back raises DivergenceError (`eg_qp`: never below
               0.567 / (B + lambda))

Stopping rule. gap <= tol (1 + |Q|), where gap is the certificate of `SimplexFunction.gap`: with mu = 0 the Frank-Wolfe
gap, the largest <grad Q(alpha), alpha - corner>. It is found after every batch step, and after every n single ones.

Source. Collins et al. 2008, Figures 1 and 2, Theorems 1 and 2 with Definitions 5.1 and 5.2 (`EGResult.bound`,
`iterations_for`); its section 7 for adaptive steps. `eg_qp`: Bartlett et al. 2004, Figure 2, Theorem 1
(`QPResult.theorem_1`; also behind `bound` and `iterations_for` where a step is too long for Collins et al.'s theorems)
and the steps of its section 3.2.

Departures. Constants may differ between blocks, and components are kept above e^-700. The search is our own: it checks
what the proof of Lemma 2 needs (see `solvers.dual.eg_batch`). Bartlett et al. take B over all components, but their
proof uses differences within a block alone; their bound of B is replaced by a sharper one.
"""

import warnings
from dataclasses import dataclass, field
from math import ceil, exp, isfinite, log
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from partwise.methods.simplices import LEAST_LOG, ROUNDING, Quadratic, SimplexFunction, log_of, quadratic
from partwise.problem import ConvergenceWarning, DivergenceError
from partwise.solvers.dual.base import FALL, PATIENCE
from partwise.support.arrays import Floats
from partwise.support.checks import check_choice, check_positive

Order = Literal["batch", "random", "cyclic"]
#: A divergence below this is rounding.
NOISE = 1e-14
#: The longest step, which keeps logarithms finite where Q is linear and allows any step.
LARGEST_STEP = 1e12
#: Factor on a step that was not too long (Collins et al. 2008, section 7).
GROWTH = 1.05
#: The first step if the function has no constant for one (Collins et al. 2008, section 7.1).
FIRST_STEP = 0.5


@dataclass(frozen=True, eq=False)
class EGResult:
    """The outcome of `eg`.

    alpha: the last of the iterates alpha^1 (`start`), ..., alpha^(T + 1), where T = `iterations` counts steps, of all
    blocks at once or of single ones. value, gap: Q(alpha), and lower_bound = value - gap <= min Q <= value. trials:
    steps tried. rule: the argument `step_size`. step_sizes: constant steps, one per block; None if they were searched
    for. step_sum: the sum of the steps made (order "batch"). values: Q at the start and with each gap: after every step
    of all blocks, or after every n single steps.
    """

    alpha: Floats
    value: float
    gap: float
    iterations: int
    trials: int
    status: Literal["converged", "max_iterations"]
    order: Order
    rule: str | float
    step_sizes: Floats | None
    step_sum: float
    values: Floats = field(repr=False)
    start: Floats = field(repr=False)
    function: SimplexFunction = field(repr=False)

    @property
    def lower_bound(self) -> float:
        """A lower bound of the minimum: the value less the gap."""
        return self.value - self.gap

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def step_size(self) -> float | None:
        """The constant step of all blocks, None if they have no common one."""
        steps = self.step_sizes
        return float(steps[0]) if steps is not None and (steps == steps[0]).all() else None

    @property
    def first_value(self) -> float:
        """Q at the start."""
        return float(self.values[0])

    def bound(self, other: ArrayLike) -> float:
        """Return what the theorems promise of Q(alpha^(T + 1)) - Q(other) after T iterations, for any point `other`.

        Theorem 1 of Collins et al. 2008 (Lemmas 5 and 6) for the order "batch", with the sum of the steps if they were
        searched for, and Theorem 2 (Lemmas 8 and 9), which bounds the mean over all draws, for the order "random".
        ValueError if no theorem covers this run: order "cyclic", adaptive or too long steps, or no iteration.
        """
        simplices = self.function.simplices
        point = simplices.check_point(other)
        divergences = simplices.sums(point * np.log(np.where(point > 0, point / self.start, 1.0)))
        excess = self.first_value - self.function.value_at(np.maximum(point, 1e-300))
        return self._guarantee(divergences, max(excess, 0.0)).after(self.iterations)

    def iterations_for(self, epsilon: float) -> int:
        """Return after how many iterations Q is within epsilon of its minimum, by the theorems, for any minimiser.

        D[alpha* || alpha^1] is replaced by the largest it can be, sum_i max_j log(1 / alpha^1_ij), and
        Q(alpha^1) - Q(alpha*) by Q(alpha^1) - lower_bound. ValueError as for `bound`, for a search, whose next steps
        are not known, and for epsilon <= 0.
        """
        check_positive("epsilon", epsilon)
        if self.rule == "search":
            raise ValueError(
                "no theorem tells how long the steps of a search will be: `bound` is about the steps that it made, "
                "iterations_for about runs with step_size='theorem'"
            )
        farthest = -np.log(self.function.simplices.least(self.start))
        return self._guarantee(farthest, self.first_value - self.lower_bound).needed(epsilon)

    def _guarantee(self, divergences: Floats, excess: float) -> "Guarantee":
        """Return what is proved for this run's steps and a minimiser with these divergences from the start."""
        function, steps = self.function, self.step_sizes
        if self.iterations == 0:
            raise ValueError("no theorem is about a run without iterations")
        if self.order == "batch":
            if self.rule == "search":
                return Guarantee(float(divergences.sum()) * self.iterations / self.step_sum)
            if steps is not None and function.upper is not None and steps[0] * function.upper <= 1.0 + 1e-12:
                first = float(divergences.sum()) / float(steps[0])
                return Guarantee(first, first, float(steps[0]) * float(function.mu.min()))
        elif self.order == "random" and steps is not None and function.block_tau is not None:
            n = function.simplices.n_blocks
            if (steps * function.block_tau <= 1.0 + 1e-12).all():
                first = float((divergences / steps).sum()) + excess
                return Guarantee(n * first, first, float((steps * function.mu).min()) / n)
        raise ValueError(
            "no theorem is about this run: they ask for order='batch' or 'random' and constant steps of at most "
            "1 / upper or 1 / block_upper (or step_size='search')"
        )


@dataclass(frozen=True)
class Guarantee:
    """The bound Q(alpha^(T + 1)) - Q* <= min(sublinear / T, linear exp(-contraction T)); contraction 0: the first."""

    sublinear: float
    linear: float = 0.0
    contraction: float = 0.0

    def after(self, iterations: float) -> float:
        first = self.sublinear / iterations
        return min(first, self.linear * exp(-self.contraction * iterations)) if self.contraction else first

    def needed(self, epsilon: float) -> int:
        """Return the least number of iterations with a bound of at most epsilon."""
        first = self.sublinear / epsilon
        if self.contraction and self.linear > 0:
            first = min(first, max(log(self.linear / epsilon), 0.0) / self.contraction)
        return max(ceil(first), 1)


def eg(
    function: SimplexFunction,
    *,
    order: Order = "batch",
    step_size: str | float = "adaptive",
    start: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iterations: int = 100_000,
    random_state: Any = 0,
) -> EGResult:
    """Minimise a convex function over a product of simplices (see the module's docstring).

    function: Q, given by functions for its value and gradient, or made by `quadratic`. order: a step moves all blocks
    ("batch") or one block, drawn ("random") or taken in turn ("cyclic"). step_size: "theorem", "adaptive", "search"
    (batch only) or a number > 0. start: a point in the interior (default: uniform distributions). tol: stop at
    gap <= tol * (1 + |Q|). max_iterations: the most steps. random_state: an int or NumPy generator, for "random".

    ValueError if the gradient differs from alpha in shape, is not finite, or contradicts the values; if Q turns out not
    to be convex; if a step is not positive; if "theorem" needs a constant (`upper`, `block_upper`) that was not given.
    DivergenceError if Q rises and does not fall back, because the step is too long. ConvergenceWarning if the gap is
    still above the tolerance after `max_iterations`.
    """
    check_choice("order", order, ("batch", "random", "cyclic"))
    return Run("eg", function, order, step_size, random_state).go(start, tol, max_iterations)


@dataclass(frozen=True)
class Point:
    """A point, Q and its gradient there, and the gap. logs, alpha, gradient: (m,)."""

    logs: Floats
    alpha: Floats
    gradient: Floats
    value: float
    gap: float

    @property
    def terms(self) -> float:
        """The size of the terms of Q and its gap, which may be small differences of them."""
        return float(np.abs(self.alpha) @ np.abs(self.gradient))


@dataclass(eq=False)
class Run:
    """A run of `eg`, or of a method with another constant step (`step`)."""

    name: str
    function: SimplexFunction
    order: Order
    step_size: str | float
    random_state: Any = 0
    step: float | None = None

    def __post_init__(self) -> None:
        self.simplices, self.rng = self.function.simplices, np.random.default_rng(self.random_state)
        n = self.simplices.n_blocks
        self.steps: Floats = np.full(n, self.step) if self.step is not None else self._first_steps()
        self.doubling, self.step_sum, self.trials = self.step_size == "search", 0.0, 0
        self.constant = self.step_size not in ("search", "adaptive")

    def _first_steps(self) -> Floats:
        function, n = self.function, self.simplices.n_blocks
        if not isinstance(self.step_size, str):
            check_positive("step_size", self.step_size)
            return np.full(n, float(self.step_size))
        allowed = ("theorem", "adaptive", "search") if self.order == "batch" else ("theorem", "adaptive")
        if self.step_size not in allowed:
            raise ValueError(
                f"step_size must be {', '.join(allowed)} or a number with order={self.order!r}, got {self.step_size!r}"
            )
        tau, needed = (function.upper, "upper") if self.order == "batch" else (function.block_tau, "block_upper")
        if tau is None and self.step_size == "theorem":
            raise ValueError(f"step_size='theorem' needs the function's constant {needed}")
        return np.full(n, FIRST_STEP if tau is None else 1.0 / np.maximum(tau, 1.0 / LARGEST_STEP))

    def go(self, start: ArrayLike | None, tol: float, max_iterations: int) -> EGResult:
        check_positive("tol", tol, zero=True)
        if max_iterations < 0:
            raise ValueError(f"max_iterations must be >= 0, got {max_iterations}")
        function = self.function
        now = first = self.evaluate(self.simplices.check_start(start))
        function.check_gradient(first.logs, first.value, first.gradient)
        values, iterations, best, best_at = [now.value], 0, now.value, 0
        lower = now.value - now.gap
        while now.gap > tol * (1.0 + abs(now.value)) and iterations < max_iterations:
            if self.order == "batch":
                now, made = self.batch_step(now), 1
            else:
                made = min(self.simplices.n_blocks, max_iterations - iterations)
                now = self.single_steps(now, made)
            iterations += made
            values.append(now.value)
            if now.value < lower - 1e-9 * (1.0 + abs(lower) + now.terms):
                raise ValueError(
                    f"Q is {now.value:.8g}, below the bound {lower:.8g} that a gradient gave before: Q is not convex, "
                    "its gradient is wrong, or `lower` is too large"
                )
            lower = max(lower, now.value - now.gap)
            if now.value < best:
                best, best_at = now.value, len(values) - 1
            elif not isfinite(now.value) or len(values) - 1 - best_at >= PATIENCE:
                self._check_rise(now.value, best, "")
        converged = now.gap <= tol * (1.0 + abs(now.value))
        if not converged:
            self._check_rise(now.value, best, " at the end")
        if not converged and tol > 0:
            better = "search" if self.order == "batch" else "adaptive"
            text = f"{self.name}: gap {now.gap:.3g} after {iterations} iterations, Q = {now.value:.8g}"
            advice = f"Raise max_iterations or tol, or take step_size={better!r}."
            warnings.warn(f"{text}, tol is {tol:.3g}. {advice}", ConvergenceWarning, stacklevel=3)
        return EGResult(
            alpha=now.alpha,
            value=now.value,
            gap=max(now.gap, 0.0),
            iterations=iterations,
            trials=self.trials,
            status="converged" if converged else "max_iterations",
            order=self.order,
            rule=self.step_size,
            step_sizes=self.steps if self.constant else None,
            step_sum=self.step_sum,
            values=np.array(values),
            start=first.alpha,
            function=function,
        )

    def _check_rise(self, value: float, best: float, when: str) -> None:
        if not value - best <= FALL * (1.0 + abs(best)):
            step = self.step_size
            raise DivergenceError(f"{self.name}: Q is {value:.6g}{when} after {best:.6g} with step_size={step}")

    def evaluate(self, logs: Floats) -> Point:
        alpha = np.exp(logs)
        value = self.function.value_at(alpha)
        if not isfinite(value):
            return Point(logs, alpha, alpha, value, np.inf)
        found = self.function.gradient_at(alpha)
        return Point(logs, alpha, found, value, self.function.gap(logs, found))

    def batch_step(self, now: Point) -> Point:
        """Move all blocks at once (Collins et al. 2008, Figure 1)."""
        while True:
            eta = float(self.steps[0])
            self.trials += 1
            with np.errstate(over="ignore", invalid="ignore"):  # a step that large is found out by where it leads
                moved = now.logs - eta * now.gradient
            after = self.evaluate(self.simplices.normalised(moved) if np.isfinite(moved).all() else self.corner(now))
            if self.constant or self.acceptable(now, after, eta):
                break
            self.steps[:], self.doubling = 0.5 * eta, False
        self.step_sum += eta
        if not self.constant:
            self.steps[:] = min(eta * (2.0 if self.doubling else GROWTH), LARGEST_STEP)
        return after

    def corner(self, now: Point) -> Floats:
        """Return the limit of ever longer steps: the corner with the least gradient in each block."""
        least = self.simplices.per_component(self.simplices.least(now.gradient))
        return self.simplices.normalised(np.where(now.gradient > least, -np.finfo(float).max / 4, 0.0))

    def acceptable(self, now: Point, after: Point, eta: float) -> bool:
        slack = ROUNDING * (abs(now.value) + abs(after.value) + now.terms)
        if self.step_size == "adaptive":
            return bool(after.value <= now.value + slack)
        divergence = float(self.simplices.sums(after.alpha * (after.logs - now.logs)).sum()) + NOISE
        if self.function.bregman is not None:
            return self.function.bregman(after.alpha, now.alpha) <= divergence / eta
        rise = after.value - now.value - float(now.gradient @ (after.alpha - now.alpha))
        return bool(rise <= divergence / eta + slack)

    def single_steps(self, now: Point, count: int) -> Point:
        """Move blocks one after the other (Collins et al. 2008, Figure 2)."""
        logs, alpha, value = now.logs.copy(), now.alpha.copy(), now.value
        n = self.simplices.n_blocks
        for i in self.rng.integers(0, n, count) if self.order == "random" else np.arange(count) % n:
            block = self.simplices.block(i)
            gradient = self.function.gradient_at(alpha, i)
            terms = float(alpha[block] @ np.abs(gradient))
            while True:
                self.trials += 1
                moved = logs[block] - self.steps[i] * (gradient - gradient.min())
                moved -= moved.max()
                moved = np.maximum(moved - np.log(np.exp(moved).sum()), LEAST_LOG)
                alpha[block] = np.exp(moved)
                if self.constant:
                    break
                after = self.function.value_at(alpha)
                if after <= value + ROUNDING * (abs(value) + abs(after) + terms):
                    value = after
                    break
                self.steps[i] *= 0.5
            logs[block] = moved
            if not self.constant:
                self.steps[i] = min(self.steps[i] * GROWTH, LARGEST_STEP)
        return self.evaluate(logs)


@dataclass(frozen=True, eq=False)
class QPResult(EGResult):
    """The outcome of `eg_qp`, with Theorem 1 of Bartlett et al. 2004."""

    function: Quadratic = field(repr=False)

    @property
    def mean_value(self) -> float:
        """The mean of Q over the first T iterates."""
        return float(self.values[:-1].mean()) if self.iterations else self.value

    @property
    def gradient_range(self) -> float:
        """B of the module's docstring."""
        return self.function.gradient_range

    @property
    def largest_eigenvalue(self) -> float:
        return self.function.largest_eigenvalue

    def _guarantee(self, divergences: Floats, excess: float) -> Guarantee:
        """Return what Collins et al. prove if it covers this step, which is the lower bound; else Theorem 1."""
        try:
            return super()._guarantee(divergences, excess)
        except ValueError:
            factors = self._theorem_1_factors()
            if factors is None:
                raise
            return Guarantee(factors[0] * float(divergences.sum()) + factors[1] * excess)

    def theorem_1(self, other: ArrayLike) -> float:
        """Return the right-hand side of Theorem 1 with this feasible point for u: a bound of `mean_value`.

        With a minimiser for u it bounds the distance of the mean from the minimum after T iterations, and for steps
        below 0.567 / (B + lambda) that of the last value too.
        """
        u = self.function.simplices.check_point(other)
        factors = self._theorem_1_factors()
        if factors is None:
            raise ValueError("Theorem 1 requires temperature 0, a constant step below 0.567 / (B + lambda), T >= 1")
        divergence = float(np.sum(u * (log_of(u) - np.log(self.start)), where=u > 0))
        fall = self.first_value - self.value
        return self.function.value(u) + (factors[0] * divergence + factors[1] * fall) / self.iterations

    def _theorem_1_factors(self) -> tuple[float, float] | None:
        """Return the factors of D(u, alpha^1) / T and (Q(alpha^1) - Q(alpha^(T + 1))) / T; None: it does not apply."""
        if self.function.entropic or self.iterations == 0 or self.step_size is None:
            return None
        x = self.step_size * self.gradient_range
        rest = 1.0 - self.step_size * (self.gradient_range + self.largest_eigenvalue) * exp(min(x, 700.0))
        if rest <= 0:
            return None
        # (e^x - 1 - x) / x^2, by its series where the difference would cancel
        shape = 0.5 + x / 6.0 + x * x / 24.0 if x < 1e-3 else (exp(x) - 1.0 - x) / (x * x)
        return 1.0 / self.step_size, shape / rest


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

    A, b, blocks, temperature: as for `quadratic`. step_size: "theorem", "adaptive", "search" or a number > 0. start,
    tol, max_iterations: as for `eg`, which has the same errors and warnings.
    """
    function = quadratic(A, b, blocks, temperature)
    step = None
    if step_size in ("theorem", "search") and not function.entropic:
        rate = function.gradient_range + function.largest_eigenvalue
        step = 0.4 / rate if rate else 1.0  # Q is constant
    result = Run("eg_qp", function, "batch", step_size, step=step).go(start, tol, max_iterations)
    return QPResult(**vars(result))
