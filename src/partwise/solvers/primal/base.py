"""What methods that minimise the primal share: certificates from planes, progress, quasi-Newton directions.

The certificate is free: the oracle's answer at w is a plane below the losses that touches them there, and for smooth
penalties gap = |grad P|^2 / (2 l2). Each new plane is mixed with the best one so that the dual is largest
(`best_mean`); this dual is reported. A run also ends when no step lowers P or the gap any more (the rounding floor).
With l2 = 0 there is no certificate, and a run ends at |grad P(w)| <= tol |grad P(0)|.

Quasi-Newton directions come from the last `memory` pairs (step s, change of gradient y). With gamma = s'y / y'y of the
newest pair, the inverse Hessian of limited-memory BFGS is

    H = gamma I + [S' gamma Y'] [[R^-T (D + gamma Y Y') R^-1, -R^-T], [-R^-1, 0]] [S; gamma Y]

where S and Y hold the pairs, oldest first, and D and R are the diagonal and the upper triangle of S Y' (Byrd et al.
1994, (3.1)): a few products with S and Y instead of many passes over vectors.
"""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any, Self, TypeVar

import numpy as np

from partwise._core import add_rows, dot, row_dots
from partwise.problem import Certificate, DivergenceError, DualPoint, Problem, Status
from partwise.problem.dual_points import balanced
from partwise.problem.penalties import penalised
from partwise.problem.tasks import Plane
from partwise.solvers.engine.base import Certified, Solver, WarmStart, start_weights
from partwise.solvers.engine.state import State
from partwise.support.arrays import Booleans, Floats

#: Trial mixtures of a new plane with the best one, in the search for the best mean.
MIXTURES = 12
#: Steps without progress before a run counts as stalled.
PATIENCE = 20


@dataclass(kw_only=True)
class DescentState(State):
    """gradient: of P without an l1 term. best_u, best_b, best_dual: the best mean. idle: steps without progress."""

    weights: Floats
    gradient: Floats
    primal: float
    best_u: Floats
    best_b: float
    best_dual: float
    best_primal: float
    idle: int = 0
    stalled: bool = False

    def note_progress(self, improved: bool) -> None:
        """Count the steps in which neither P fell by more than rounding nor something else `improved`."""
        down = self.primal < self.best_primal - 4e-16 * abs(self.best_primal)
        self.idle = 0 if down or improved else self.idle + 1
        self.best_primal = min(self.best_primal, self.primal)
        self.stalled = self.idle >= PATIENCE


@dataclass(kw_only=True)
class PrimalState(DescentState):
    """best_off: the rounding in best_dual. reference: |grad P(0)|, for l2 = 0. best_norm2: the least |grad P|^2."""

    best_off: float
    reference: float
    best_norm2: float


D = TypeVar("D", bound=DescentState)
P = TypeVar("P", bound=PrimalState)


@dataclass(frozen=True)
class DescentSolver(Solver[D]):
    """A solver that lowers P at its iterate w until no step lowers P or the gap any more."""

    default_max_passes = 2000

    def weights(self, problem: Problem, state: D) -> Floats:
        return state.weights.copy()

    def is_stalled(self, state: D) -> bool:
        return state.stalled

    def remark(self, problem: Problem, state: D) -> str:
        return "no step improves the objective in double precision" if state.stalled else ""


@dataclass(frozen=True)
class PrimalSolver(DescentSolver[P]):
    """A solver that computes P, which has no kinks, and its gradient at the iterate."""

    advice = "Raise max_passes or tol, or take a larger l2 (a smaller C)"

    def start(self, problem: Problem, warm_start: WarmStart | None) -> PrimalState:
        """Return the fields that all solvers' states have before the first step."""
        weights = start_weights(problem, warm_start)
        primal, gradient = problem.value_and_gradient(weights)
        if not isfinite(primal):
            raise DivergenceError(f"{self.name}: the objective is {primal} at the start")
        u, b = problem.touching_plane(weights, primal, gradient)
        first = problem.certificate_at(primal, gradient, weights)
        reference = 0.0
        if problem.l2 == 0:
            at_zero = gradient if warm_start is None else problem.value_and_gradient(start_weights(problem, None))[1]
            reference = sqrt(problem.norm2(at_zero))
        return PrimalState(
            weights=weights,
            gradient=gradient,
            primal=primal,
            best_u=u,
            best_b=b,
            best_dual=first.dual,
            best_off=first.rounding,
            reference=reference,
            best_primal=primal,
            best_norm2=problem.norm2(gradient),
            visits=len(problem.active),
        )

    def move(self, problem: Problem, state: P, weights: Floats, primal: float, gradient: Floats) -> None:
        """Make these the iterate, keep the best mean of planes, and note progress: P fell, or the gap by a tenth."""
        state.weights, state.primal, state.gradient = weights, primal, gradient
        norm2 = problem.norm2(gradient)
        if problem.l2 > 0:
            self._keep_plane(problem, state)
        state.note_progress(norm2 < 0.9 * state.best_norm2)
        state.best_norm2 = min(state.best_norm2, norm2)

    def _keep_plane(self, problem: Problem, state: P) -> None:
        newest = problem.certificate_at(state.primal, state.gradient, state.weights)
        touching = problem.touching_plane(state.weights, state.primal, state.gradient)
        plane = balanced_plane(problem, state, touching)
        if plane is not touching:
            newest = problem.certificate_of(state.primal, *plane, state.weights)
        mean = best_mean(problem, (state.best_u, state.best_b), plane)
        # The rounding in a plane is that of the scores at its weights, which may be larger than at later ones.
        off = max(state.best_off, newest.rounding)
        found = (newest.dual, newest.rounding, plane), (problem.dual_of_plane(*mean), off, mean)
        dual, off, plane = max(found, key=lambda each: each[0] - each[1])
        if dual - off > state.best_dual - state.best_off:
            state.best_dual, state.best_off = dual, off
            state.best_u, state.best_b = plane

    def certificate(self, problem: Problem, state: P) -> Certified:
        newest = problem.certificate_at(state.primal, state.gradient, state.weights)
        best = problem.certificate_of(state.primal, state.best_u, state.best_b, state.weights, off=state.best_off)
        # P - D cannot be smaller than rounding; the newest plane's |grad P|^2 can.
        if best.gap < newest.gap - 1e-12 * abs(state.primal) and not best.hidden(0.0):
            return Certified(best, state.weights.copy(), DualPoint.of_plane(state.best_u.copy(), state.best_b))
        return certified_at(problem, newest, state.weights.copy(), state.primal, state.gradient)

    def finished(self, problem: Problem, state: P, certificate: Certificate, tol: float) -> Status | None:
        if problem.l2 > 0:
            return super().finished(problem, state, certificate, tol)
        small = tol > 0 and sqrt(problem.norm2(state.gradient)) <= tol * state.reference
        return "no certificate" if small else ("stalled" if state.stalled else None)

    def remark(self, problem: Problem, state: P) -> str:
        if problem.l2 > 0:
            return super().remark(problem, state)
        return norm_text(problem, state.gradient, state.reference)


def certified_at(
    problem: Problem, certificate: Certificate, weights: Floats, primal: float, gradient: Floats
) -> Certified:
    """Return a certificate with the dual point of the plane that touches the losses at the weights."""
    return Certified(certificate, weights, DualPoint.of_plane(*problem.touching_plane(weights, primal, gradient)))


def norm_text(problem: Problem, gradient: Floats, reference: float) -> str:
    """Return the text of messages about a gradient where l2 = 0; reference: the norm at w = 0."""
    norm = sqrt(problem.norm2(gradient))
    return f"gradient norm {norm:.3g} ({norm / reference if reference else 0:.3g} of that at w = 0)"


def balanced_plane(problem: Problem, state: DescentState, plane: Plane) -> Plane:
    """Return the oracle's plane; or if that may halve the gap, one without entries for free weights (a pass more)."""
    if problem.penalty.free is None:
        return plane
    primal = state.primal
    ideal = problem.dual_of_plane(penalised(problem.penalty, plane[0]), plane[1])
    enough = primal - problem.dual_of_plane(*plane) <= 1.5 * (primal - ideal)
    if enough or primal - ideal > 0.5 * (primal - state.best_dual):
        return plane
    tau = problem.loss.temperature
    at, cost_scale = state.weights / tau, problem.loss.cost_scale / tau
    other = balanced(problem, *plane, lambda moved: problem.sums.dual_terms_linear(at, cost_scale, moved))
    if other is None:
        return plane
    state.visits += len(problem.active)
    return other


def best_mean(problem: Problem, old: Plane, new: Plane) -> Plane:
    """Return the mean of two planes with the largest dual, a parabola, or with l1 or free weights by a search."""
    change = new[0] - old[0]

    def mixed(t: float) -> Plane:
        return old[0] + t * change, (1.0 - t) * old[1] + t * new[1]

    if not problem.l1 and problem.penalty.free is None:
        bend = problem.norm2(change)
        rise = problem.l2 * (new[1] - old[1]) - problem.dot(old[0], change)
        if not bend > 0:
            return max(old, new, key=lambda plane: plane[1])
        t = min(max(rise / bend, 0.0), 1.0)
        change *= t  # in place: this runs after every step, which may be short
        change += old[0]
        return change, (1.0 - t) * old[1] + t * new[1]

    dual = problem.dual_as_it_is if problem.l2 > 0 else problem.dual_of_plane

    def value(t: float) -> float:
        return dual(*mixed(t))

    low, high, golden = 0.0, 1.0, 0.5 * (5**0.5 - 1.0)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(MIXTURES):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = value(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = value(left)
    return mixed(max((at_left, left), (at_right, right), (value(1.0), 1.0), (value(0.0), 0.0))[1])


@dataclass(kw_only=True)
class QuasiNewtonState(DescentState):
    """steps, changes: S and Y, ring buffers with `stored` rows in use. sy, yy: S Y' and Y Y', (memory, memory)."""

    steps: Floats
    changes: Floats
    sy: Floats
    yy: Floats
    stored: int = 0
    newest: int = -1
    gamma: float = 0.0  # 0: no pair yet

    def complaint(self, fresh: Self) -> str:
        inside = 0 <= self.stored <= len(self.steps) and self.newest < max(self.stored, 1)
        return super().complaint(fresh) or ("" if inside else "it has more pairs than there is room for")

    def direction_along(self, gradient: Floats, n_jobs: int) -> Floats:
        """Return -H gradient."""
        k = self.stored
        if k == 0:
            return -gradient
        order = [(self.newest - j) % k for j in reversed(range(k))]  # oldest first
        gamma, S, Y = self.gamma, self.steps[:k], self.changes[:k]
        sy, yy = self.sy[np.ix_(order, order)], self.yy[np.ix_(order, order)]
        R = np.triu(sy)
        sg, yg = (row_dots(pairs, gradient, n_jobs)[order] for pairs in (S, Y))
        try:
            v = np.linalg.solve(R, sg)
            on_steps = np.linalg.solve(R.T, np.diag(sy) * v + gamma * (yy @ v - yg))
        except np.linalg.LinAlgError:
            return np.zeros_like(gradient)  # no descent: the caller drops the pairs
        back = np.argsort(order)
        on_steps, on_changes = (np.asarray(c[back], dtype=np.float64) for c in (-on_steps, gamma * v))
        direction = -gamma * gradient
        add_rows(on_steps, S, direction, n_jobs)
        add_rows(on_changes, Y, direction, n_jobs)
        return direction

    def remember(self, weights: Floats, gradient: Floats, n_jobs: int) -> None:
        """Add the pair of a step to these weights to the rings, unless it has no curvature (rounding)."""
        step, change = weights - self.weights, gradient - self.gradient
        curvature, norm2 = dot(step, change, n_jobs), dot(change, change, n_jobs)
        if not norm2 > 0 or curvature <= 1e-16 * norm2:  # |change|^2 underflows before <step, change> does
            return
        memory = len(self.steps)
        self.newest = row = (self.newest + 1) % memory
        self.stored = k = min(self.stored + 1, memory)
        self.gamma = curvature / norm2
        self.steps[row], self.changes[row] = step, change
        self.sy[:k, row] = row_dots(self.steps[:k], change, n_jobs)
        self.yy[:k, row] = self.yy[row, :k] = row_dots(self.changes[:k], change, n_jobs)

    def forget(self) -> None:
        """Drop the pairs but keep gamma, for the length of the next step."""
        self.stored, self.newest = 0, -1

    def descent(
        self, problem: Problem, gradient: Floats, kinked: Booleans | None = None
    ) -> tuple[Floats, float, float]:
        """Return a direction in which P falls, its slope, and the first step to try; slope 0: there is none.

        The direction is -H gradient, or -gradient if the pairs give no descent. kinked: weights in which the direction
        is set to 0 unless it has the sign of -gradient.
        """
        direction = self.direction_along(gradient, problem.n_jobs)
        if kinked is not None:
            direction[(direction * gradient >= 0) & kinked] = 0.0
        slope = dot(gradient, direction, problem.n_jobs)
        if not slope < 0:  # the pairs have degenerated (or the gradient is zero)
            self.forget()
            direction = -gradient
            slope = dot(gradient, direction, problem.n_jobs)
        self.epoch += 1
        self.stalled = self.stalled or slope == 0
        # Without pairs the last pair's curvature sets the length of a gradient step, or 1 if there never was a pair.
        return direction, slope, 1.0 if self.stored or slope == 0 else self.gamma or 1.0 / sqrt(-slope)

    def give_up(self) -> None:
        """Note a failed line search: drop the pairs, which may be poor; without pairs the run is stalled."""
        self.stalled = self.stored == 0
        self.forget()


def no_pairs(memory: int, n_weights: int) -> dict[str, Any]:
    """Return the arrays of pairs before the first step."""
    rows, square = (memory, n_weights), (memory, memory)
    return {"steps": np.zeros(rows), "changes": np.zeros(rows), "sy": np.zeros(square), "yy": np.zeros(square)}
