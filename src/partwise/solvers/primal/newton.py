"""Problem. min P(w), temperature > 0 (l2 = 0 is allowed).

Update. A step s minimises the quadratic model q(s) = <grad P, s> + s'Hs / 2 in the ball |s| <= radius, approximately:
conjugate gradients from s = 0 until the residual r = -grad P - Hs has |r| <= cg_tol |grad P|, or s meets the ball's
boundary (then it ends there), or `max_cg` products were made. H is never formed: Hv = l2 v + sum_i omega_i
A_i' Cov_i(A_i v) / tau is one pass over the data, with the structure's covariance product. With
rho = (P(w) - P(w + s)) / -q(s) and alpha the minimiser along s of the parabola through P(w), its slope and P(w + s),

    w <- w + s       if rho > eta0
    radius <- min(max(alpha, sigma1) |s|, sigma2 radius)             if rho < eta0
              max(sigma1 radius, min(alpha |s|, sigma2 radius))      if rho < eta1
              max(sigma1 radius, min(alpha |s|, sigma3 radius))      if rho < eta2
              max(radius, min(alpha |s|, sigma3 radius))             else

with eta = (1e-4, 0.25, 0.75), sigma = (0.25, 0.5, 4); radius starts at |grad P|, and at most the first step's length.

preconditioner "diagonal": lengths, residuals and the ball are those of |s|_M^2 = s'Ms and |r|_(1/M), with
M = l2 + sum_i omega_i sum_r A_rj^2 v_r / tau, v_r the mean of p (1 - p) over the example's labels where a labelling is
one part (equal for all labels, so that steps avoid directions in which no loss changes), else the expected count. M is
kept until P has fallen by 2 %. part > 1: while the gap is above |P|, H and M are those of every part-th run
of some hundred examples, scaled up to all of them, until such a step has rho < eta1 (it is not taken, and the radius
stays); P and its gradient are always those of all examples.

Stopping rule. gap = |grad P|^2 / (2 l2) <= tol |P|, and that of `base`. A product and an evaluation of P with its
gradient count as a pass each, a product with a part of H as its part.

Source. Lin et al. 2008, Algorithms 1 and 2 and the constants of their section 3; the radius follows Lin and Moré 1999.
A rival ("TRON") in Huang et al. 2010.

Departures. Structures, sample weights, temperatures; if the predicted decrease is lost in the rounding of P, the
actual one is -<grad P(w) + grad P(w + s), s> / 2; `max_cg`; with the squared link H is a generalised Hessian; the
diagonal as in Hsia et al. 2018, a part of H as in Byrd et al. 2011.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np

from partwise._core import dot
from partwise.problem import Capability, Problem
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.options import PROPER_SHARE, at_least, one_of, option
from partwise.solvers.primal.base import PrimalSolver, PrimalState
from partwise.solvers.primal.lbfgs import LBFGS
from partwise.support.arrays import Floats

Preconditioner = Literal["none", "diagonal"]

ETA = (1e-4, 0.25, 0.75)
SIGMA = (0.25, 0.5, 4.0)
#: Expected counts are kept from P's evaluation for the Hessian's if there are at most this many (a second array).
KEPT = 1 << 24
#: A diagonal is recomputed when P has fallen to this share of its value: it costs as much as a product with H.
FALLEN = 0.98
#: Differences of P below this share of |P| are computed from gradients.
NOISE = 1e-10


@dataclass(kw_only=True)
class NewtonState(PrimalState):
    """radius: of the ball that the next step stays in. whole: whether a part of the Hessian led to a bad step.

    scaling: the preconditioner's diagonal, empty at first; scaled_primal: P where it was computed. marginals: expected
    counts at the weights (if known); trial: room for the next ones. Both are empty if the Hessian cannot use them.
    """

    growing: ClassVar[frozenset[str]] = frozenset({"scaling"})

    radius: float
    marginals: Floats
    trial: Floats
    scaling: Floats
    scaled_primal: float = float("inf")
    known: bool = False
    whole: bool = False

    def complaint(self, fresh: Self) -> str:
        lost = self.known and not len(self.marginals)
        return super().complaint(fresh) or ("its marginals are marked as known, but missing" if lost else "")


@dataclass(frozen=True)
class Newton(PrimalSolver[NewtonState]):
    """Trust-region Newton with conjugate gradients (TRON) for smooth losses."""

    name = "newton"
    requires = LBFGS.requires | {Capability.COVARIANCE}
    rate = "linear"
    proof = "Dembo et al. 1982, with a constant `cg_tol`: O(log 1/eps)"

    cg_tol: float = option(0.1, "conjugate gradients end when the residual is this share of the gradient", PROPER_SHARE)
    max_cg: int = option(50, "products with the Hessian in one step, at most", at_least(1))
    preconditioner: Preconditioner = option(
        "none", "scale weights by the Hessian's diagonal, or not", one_of(Preconditioner)
    )
    part: int = option(
        1, "far from the optimum: products with the Hessian of every part-th run of examples", at_least(1)
    )

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> NewtonState:
        if self.preconditioner != "none" and Capability.IDENTITY_LINK not in problem.capabilities():
            raise ValueError(f"newton: no diagonal for loss {problem.loss.name!r}: use preconditioner='none'")
        first = self.start(problem, warm_start)
        slots = problem.n_slots if problem.hessian_of_marginals and problem.n_slots <= KEPT else 0
        return NewtonState(
            **vars(first),
            radius=sqrt(first.best_norm2),
            marginals=np.zeros(slots),
            trial=np.zeros(slots),
            scaling=np.zeros(0),
        )

    def step(self, problem: Problem, state: NewtonState) -> None:
        state.epoch += 1
        if not state.gradient.any():
            state.stalled = True
            return
        certificate = problem.certificate_at(state.primal, state.gradient, state.weights)
        far = not state.whole and problem.l2 > 0 and certificate.gap > abs(state.primal)
        hessian = problem.hessian(state.weights, self.part if far else 1, state.marginals if state.known else None)
        scaling, first = None, state.epoch == 1
        if self.preconditioner != "none":
            if state.primal < FALLEN * state.scaled_primal:
                state.scaling, state.scaled_primal = hessian.diagonal(), state.primal
                state.scaling[state.scaling == 0] = 1.0  # l2 = 0: features that nothing depends on
            scaling = state.scaling
            if first:
                state.radius = sqrt(dot(state.gradient, state.gradient / scaling))
        found = conjugate_gradients(hessian, state.gradient, state.radius, self.cg_tol, self.max_cg, scaling)
        if not np.isfinite(found.step).all():  # values whose squares are beyond double precision
            state.stalled = True
            return
        weights = state.weights + found.step
        primal, gradient = problem.value_and_gradient(weights, state.trial if len(state.trial) else None)
        products = -(-found.products // self.part) if hessian.partial else found.products
        state.visits += (products + 1) * len(problem.active)

        length = _norm(found.step, scaling)
        slope = dot(state.gradient, found.step)
        predicted = -0.5 * (slope - dot(found.step, found.residual))
        decrease = state.primal - primal
        if predicted <= NOISE * abs(state.primal):
            decrease = -0.5 * (slope + dot(gradient, found.step))
        decrease = decrease if isfinite(decrease) else -float("inf")
        radius = min(state.radius, length) if first else state.radius
        if hessian.partial and decrease < ETA[1] * predicted:
            state.whole, state.radius = True, radius  # the part of the Hessian is wrong, not the ball
            state.scaled_primal = float("inf")
        else:
            state.radius = next_radius(radius, length, slope, predicted, decrease)
        if decrease > (ETA[1] if hessian.partial else ETA[0]) * predicted:
            state.marginals, state.trial, state.known = state.trial, state.marginals, len(state.trial) > 0
            self.move(problem, state, weights, primal, gradient)
        else:
            self.move(problem, state, state.weights, state.primal, state.gradient)


def next_radius(radius: float, length: float, slope: float, predicted: float, decrease: float) -> float:
    """Return the radius after a step of this length."""
    curvature = -decrease - slope  # of the parabola along the step, halved; 0 <= -slope
    alpha = max(SIGMA[0], -0.5 * slope / curvature) if curvature > 0 else SIGMA[2]
    if decrease < ETA[0] * predicted:
        return min(alpha * length, SIGMA[1] * radius)
    if decrease < ETA[1] * predicted:
        return max(SIGMA[0] * radius, min(alpha * length, SIGMA[1] * radius))
    least = SIGMA[0] * radius if decrease < ETA[2] * predicted else radius
    return max(least, min(alpha * length, SIGMA[2] * radius))


class Step(NamedTuple):
    """An approximate minimiser of the model, -grad - H step, and the products it took."""

    step: Floats
    residual: Floats
    products: int


def conjugate_gradients(
    hessian: Callable[[Floats], Floats],
    gradient: Floats,
    radius: float,
    tol: float,
    most: int,
    scaling: Floats | None = None,
) -> Step:
    """Minimise <gradient, s> + s'Hs / 2 in the ball |s| <= radius (Lin et al. 2008, Algorithm 2).

    scaling: a positive diagonal M; the ball is that of |s|_M then, and the residual is measured in 1/M.
    """
    step, further = np.zeros_like(gradient), np.empty_like(gradient)
    residual = -gradient
    scaled = residual if scaling is None else residual / scaling
    direction = scaled.copy()
    norm2 = dot(residual, scaled)
    goal = tol * sqrt(norm2)
    for products in range(1, most + 1):
        product = hessian(direction)
        curvature = dot(direction, product)
        alpha = norm2 / curvature if curvature > 0 else float("inf")
        # Without curvature (l2 = 0) the model falls along the direction for ever.
        if isfinite(alpha):
            np.multiply(direction, alpha, out=further)
            further += step
        if not isfinite(alpha) or _norm(further, scaling) > radius:
            alpha = _to_boundary(step, direction, radius, scaling)
            return Step(step + alpha * direction, residual - alpha * product, products)
        step, further = further, step
        np.multiply(product, alpha, out=further)
        residual -= further
        scaled = residual if scaling is None else residual / scaling
        new_norm2 = dot(residual, scaled)
        if not isfinite(new_norm2):  # values whose fourth powers are beyond double precision
            return Step(np.full_like(step, np.nan), residual, products)
        if sqrt(new_norm2) <= goal:
            break
        direction *= new_norm2 / norm2
        direction += scaled
        norm2 = new_norm2
    return Step(step, residual, products)


def _dot(left: Floats, right: Floats, scaling: Floats | None) -> float:
    return dot(left, right if scaling is None else scaling * right)


def _norm(vector: Floats, scaling: Floats | None) -> float:
    return sqrt(_dot(vector, vector, scaling))


def _to_boundary(step: Floats, direction: Floats, radius: float, scaling: Floats | None = None) -> float:
    """Return the alpha >= 0 with |step + alpha direction| = radius, in the form that does not cancel."""
    along, length2 = _dot(step, direction, scaling), _dot(direction, direction, scaling)
    room = max(radius * radius - _dot(step, step, scaling), 0.0)
    root = sqrt(along * along + length2 * room)
    if along + root == 0:  # no room at all, or less than the square of a double can say
        return 0.0
    return room / (along + root) if along >= 0 else (root - along) / length2
