"""Block-coordinate Frank-Wolfe on the dual of max-margin losses.

Problem. max D(alpha) of `problem` at temperature 0 (hinge, squared hinge); l2 > 0.

Update. A visit to example i finds the labelling y that maximises <counts(y), theta_i + kappa c_i>, a corner of the
block's domain, and moves towards it by an exact line search:

    hinge           s_i mu_i <- (1 - gamma) mu_i + gamma counts(y), gamma in [0, 1] the maximiser of D
    squared hinge   s_i mu_i <- a s_i mu_i + b counts(y), the pair a, b >= 0 that maximises D (the mass s_i is free)

w = 1/l2 sum_i omega_i s_i A_i'(g_i - mu_i) follows. After k visits the weighted average is

    average_{k+1} = k/(k + 2) average_k + 2/(k + 2) w_{k+1}

It is kept as average = w - scale * lag: with z = w - average the rule reads z_{k+1} = k/(k + 2) (z_k + w_{k+1} - w_k),
so a visit adds its sparse change of w, over `scale`, to `lag` and shrinks `scale` by k/(k + 2). Its b is averaged
likewise.

Stopping rule. The smaller of P(w) and P(average) minus the larger of their duals <= tol |P|, looked at when it may be
near, at least every fifth pass. The iterate's dual is recomputed from s mu; the average is certified by its plane
(u, b).

Source. Lacoste-Julien, Jaggi, Schmidt, Pletscher 2013, Algorithms 3 and 4 and their appendix on averaging; a rival
("FW-Struct") in 004. Departures: sample weights; order "permuted" by default; the squared hinge, with scaled corners.
"""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core import bcfw_epoch
from ..dual import DualPoint
from ..problem import Problem
from ..result import Certificate, DivergenceError
from .base import Certified, WarmStart, option, start_point
from .online import OnlineSolver, OnlineState
from .state import State

Floats = NDArray[np.float64]


@dataclass(kw_only=True)
class BCFWState(OnlineState):
    """weights, lag: (d,). counts: s mu (all slots,). mass, linear: s and kappa <s mu, c>, (n,).

    average: [visits averaged, scale, b of the average].
    """

    weights: Floats
    counts: Floats
    mass: Floats
    linear: Floats
    lag: Floats
    average: Floats


@dataclass(frozen=True)
class BCFW(OnlineSolver[BCFWState]):
    """Block-coordinate Frank-Wolfe (see the module's docstring)."""

    name: ClassVar[str] = "bcfw"
    requires: ClassVar[frozenset[str]] = frozenset({"temperature 0", "max oracle", "explicit weights", "l2 > 0"})
    rate: ClassVar[str] = "sublinear"
    advice: ClassVar[str] = "Raise max_passes or tol (the gap falls like 1 / passes), or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000
    state_class: ClassVar[type[State]] = BCFWState

    averaging: bool = option(True, "certify the weighted average of the iterates too, and return the better of the two")

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> BCFWState:
        counts, mass = self._start_blocks(problem, warm_start)
        offsets = problem.structure.slot_offsets()
        costs = problem.loss.cost_scale * problem.slot_costs() * counts
        sums = np.concatenate([[0.0], np.cumsum(costs)])[offsets]
        u, b = problem.dual_terms(DualPoint.of_counts(counts, mass))
        return BCFWState(
            weights=u / problem.l2,
            counts=counts,
            mass=mass,
            linear=np.diff(sums),
            lag=np.zeros(problem.n_weights),
            average=np.array([0.0, 1.0, b]),
            rng=rng,
        )

    def step(self, problem: Problem, state: BCFWState) -> None:
        report = bcfw_epoch(
            problem.objective,
            problem.l2,
            self.draw_order(problem, state.rng),
            state.weights,
            state.counts,
            state.mass,
            state.linear,
            state.lag,
            state.average,
        )
        state.epoch += 1
        state.visits += report.visits
        state.gain = report.gap_estimate
        if not isfinite(report.gap_estimate):
            raise DivergenceError(f"bcfw: the gap is {report.gap_estimate} after {state.epoch} epochs")

    def certificate(self, problem: Problem, state: BCFWState) -> Certified:
        blocks = DualPoint.of_counts(state.counts.copy(), state.mass.copy())
        u, b = problem.dual_terms(blocks)
        now = problem.certificate_of(problem.value(u / problem.l2), u, b)
        best = Certified(now, u / problem.l2, blocks)
        if not self.averaging or state.average[0] == 0:
            return best
        weights = self.average_weights(state)
        u, b = problem.l2 * weights, float(state.average[2])
        mean = problem.certificate_of(problem.value(weights), u, b)
        # Any primal value bounds from above and any dual value from below, whichever iterates they come from.
        if mean.primal < now.primal:
            best = Certified(mean, weights, blocks)
        if mean.dual > now.dual:
            best = best._replace(point=DualPoint.of_plane(u, b, blocks))
        primal, dual = min(now.primal, mean.primal), max(now.dual, mean.dual)
        return best._replace(certificate=Certificate(primal, dual, max(primal - dual, 0.0), primal - dual))

    def weights(self, problem: Problem, state: BCFWState) -> Floats:
        return self.average_weights(state) if self.averaging else state.weights.copy()

    @staticmethod
    def average_weights(state: BCFWState) -> Floats:
        """The weighted average of the iterates."""
        return state.weights - float(state.average[1]) * state.lag

    def _start_blocks(self, problem: Problem, warm_start: WarmStart | None) -> tuple[Floats, Floats]:
        """(s mu, s): the gold labellings (w = 0), or for the squared link nothing at all (w = 0 too)."""
        n, offsets = problem.n_examples, problem.structure.slot_offsets()
        if warm_start is None:
            counts, mass = np.zeros(int(offsets[-1])), np.zeros(n)
            if problem.loss.link == "identity":
                indptr, slots, gold = problem.gold
                np.add.at(counts, np.repeat(offsets[:-1], np.diff(indptr)) + slots, gold)
                mass[:] = 1.0
            return counts, mass
        point = start_point(problem, warm_start, ("slots", "gibbs", "active"))
        if point is None:
            raise ValueError(
                "bcfw starts from expected counts, slot scores or an active set (a dual point of kind 'slots', 'gibbs' "
                "or 'active'); weights alone do not give them"
            )
        if point.active is not None:
            counts, mass = point.active.expected_counts(offsets)
        elif point.scores is not None:
            counts, mass = problem.objective.marginals_of_scores(point.scores, problem.n_jobs)[0], np.ones(n)
        else:
            counts = np.array(point.counts, dtype=np.float64)
            mass = np.ones(n) if point.mass is None else np.array(point.mass, dtype=np.float64)
        if counts.shape != (int(offsets[-1]),) or mass.shape != (n,):
            raise ValueError(f"warm start: {counts.size} slots of {mass.size} examples, not {offsets[-1]} of {n}")
        return counts, mass
