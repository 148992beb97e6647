"""Problem. min P(w) for smooth losses with the identity link under the elastic net l1 |w|_1 + l2/2 |w|^2 (l1 > 0,
l2 >= 0); every labelling is one slot (multinomial maxent).

Update. An epoch computes all gradients once and chooses a working set: the nonzero weights, and the zero weights that
violate their optimality condition |dL/dw_t| <= l1 most (at most `growth` times as many, at least `least`); or all
weights, if there are at most `few`. The joint step D of these weights minimises a model of P: the quadratic expansion
of P's smooth part at w, plus the exact l1 term. The model is minimised over one D_t after the other in random order,
until the largest violation in the working set has fallen by the factor `inner`, or for `max_sweeps` sweeps. This needs
no exponentials; for few columns the matrix of the quadratic term is computed once (core/solvers/cd_l1_model.cpp). D is
then halved until P falls by a hundredth of what the model without its quadratic term predicts.

If no such D is found (close to the minimum, where rounding hides the decrease), or if features are not 0/1 (for which
the expansion is accurate for short steps only), the sweeps are over P itself: a visit of w_t takes Newton's step d for

    min over d of  G d + H d^2 / 2 + l1 |w_t + d|,      G, H: derivatives of P's smooth part in w_t,

and halves it until P falls by a hundredth of what the model without H predicts. A zero weight is not visited again in
this epoch if |G| is below l1 by more than a tenth of the previous sweep's largest violation.

Stopping rule. gap = P(w) - D <= tol |P|, checked once per epoch, where D is the dual value of the best plane so far.
Each epoch mixes two planes into the best one, in the proportion that makes D largest (as in `owlqn`): the plane at the
newest w, and the plane of the probabilities p_a (1 + z_a - sum of p z) that the model predicts after a step which
changes scores by tau z. (If l2 = 0, the dual needs slopes of at most l1: the second plane has such slopes if the step
leads to the model's minimum.)

Source. Huang et al. 2010, Algorithm 3 (one variable at a time, sufficient decrease 0.01, halving) for a penalty with a
kink: the model of the paper's (37) keeps l1 |w_t + d|, whose minimum is in closed form. The step for all weights is
that of Yuan et al. 2012, for any number of labels.

Departures. The working set; random order.
"""

from dataclasses import dataclass, field
from math import isfinite
from typing import Self

import numpy as np

from partwise import _core
from partwise.problem import Capability, DualPoint, Problem
from partwise.solvers.columns.base import OF_TABLES
from partwise.solvers.engine.base import Certified, Solver, WarmStart, start_weights
from partwise.solvers.engine.options import POSITIVE, PROPER_SHARE, at_least, option
from partwise.solvers.engine.state import State
from partwise.solvers.primal.base import best_mean
from partwise.support.arrays import Floats, Ints


@dataclass(kw_only=True)
class CDL1State(State):
    """u, value: the slope, (d,), of the plane at the weights, and the sum of losses. best_u, best_b: the best one.

    Not saved: marginals, the probabilities at the weights, (all slots,), and columns, those of the weights `chosen`.
    """

    weights: Floats
    u: Floats
    value: float
    best_u: Floats
    best_b: float
    rng: np.random.Generator
    steps: int = 1
    marginals: Floats | None = field(init=False, default=None)
    chosen: Ints | None = field(init=False, default=None)
    columns: _core.WorkingColumns | None = field(init=False, default=None)

    def complaint(self, fresh: Self) -> str:
        finite = isfinite(self.value) and isfinite(self.best_b)
        return super().complaint(fresh) or ("" if finite else "its plane is not finite")


@dataclass(frozen=True)
class CDL1(Solver[CDL1State]):
    """Coordinate descent on a working set, for penalties that make weights zero."""

    name = "cd-l1"
    requires = OF_TABLES | {Capability.SMOOTH, Capability.IDENTITY_LINK, Capability.L1, Capability.ALL_PENALISED}
    requires |= {Capability.ONE_PART, Capability.EXPLICIT_WEIGHTS}
    rate = "linear"
    proof = "Luo and Tseng 1992: O(log 1/eps)"
    advice = "Raise max_passes or tol, or take a larger l1"
    default_max_passes = 20_000

    inner: float = option(0.1, "stop on a working set when its violation has fallen by this factor", PROPER_SHARE)
    max_sweeps: int = option(50, "most sweeps over a working set", at_least(1))
    model: bool | None = option(
        None, "sweep over the quadratic model, with one line search for all, not over P; by default for 0/1 features"
    )
    growth: float = option(1.0, "new weights in a working set over weights that are not zero", POSITIVE)
    least: int = option(300, "fewest new weights", at_least(1))
    few: int = option(1000, "weights up to which all of them are the working set", at_least(0))

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> CDL1State:
        weights, marginals = start_weights(problem, warm_start), np.zeros(problem.n_slots)
        value, u, b, _ = problem.sums.plane_at(weights, problem.loss.temperature, marginals)
        visits = len(problem.active)
        state = CDL1State(weights=weights, u=u, value=value, best_u=u.copy(), best_b=b, rng=rng, visits=visits)
        state.marginals = marginals
        return state

    def step(self, problem: Problem, state: CDL1State) -> None:
        violation = problem.violations(state.weights, state.u)
        chosen = self._working_set(state.weights, violation, state.u)
        by_model = Capability.BINARY_FEATURES in problem.capabilities() if self.model is None else self.model
        if state.columns is None or state.chosen is None or not np.array_equal(chosen, state.chosen):
            (part,) = problem.sums.in_memory()
            state.chosen, state.columns = chosen, _core.WorkingColumns(part.native, chosen, rows=by_model)
        if state.marginals is None:  # the run was resumed
            state.marginals = np.zeros(problem.n_slots)
            problem.sums.plane_at(state.weights, problem.loss.temperature, state.marginals)
        own, p = state.weights[chosen], state.marginals
        inner = _core.CdL1State(state.columns, weights=own, unscaled=p, sums=np.ones(problem.n_examples))
        tol, seed = self.inner * float(violation.max(initial=0.0)), int(state.rng.integers(2**63))
        options = _core.CdL1Options(l1=problem.l1, l2=problem.l2, max_sweeps=self.max_sweeps, tol=tol, seed=seed)
        entropies = np.zeros(problem.n_examples)
        report = _core.cd_l1_model(inner, options, entropies) if by_model else None
        planes = []
        if report is not None and report.steps > 0:
            planes.append(problem.sums.dual_terms_slots(p, None, entropies))  # what the model expects
        else:  # close to the minimum the gain of a joint step is lost in rounding
            report = _core.cd_l1(inner, options)
        state.weights[chosen] = own
        state.value, state.u, b, _ = problem.sums.plane_at(state.weights, problem.loss.temperature, p)
        for plane in [*planes, (state.u, b)]:
            state.best_u, state.best_b = best_mean(problem, (state.best_u, state.best_b), plane)
        state.epoch += 1
        state.steps = report.steps
        # Reading columns and looking at all gradients are passes; so is a sweep, however short its columns are.
        state.visits += (2 + report.sweeps) * len(problem.active)

    def certificate(self, problem: Problem, state: CDL1State) -> Certified:
        primal = state.value + problem.penalty_value(state.weights)
        certificate = problem.certificate_of(primal, state.best_u, state.best_b, state.weights)
        return Certified(certificate, state.weights.copy(), DualPoint.of_plane(state.best_u.copy(), state.best_b))

    def weights(self, problem: Problem, state: CDL1State) -> Floats:
        return state.weights.copy()

    def is_stalled(self, state: CDL1State) -> bool:
        return state.steps == 0  # no coordinate moves any more

    def _working_set(self, weights: Floats, violation: Floats, u: Floats) -> Ints:
        used = weights != 0
        few = np.flatnonzero(used | (u != 0))  # the other weights have no feature
        if 0 < len(few) <= self.few:
            return few.astype(np.int64)
        room = max(self.least, int(self.growth * used.sum()))
        new = np.flatnonzero((violation > 0) & ~used)
        if len(new) > room:
            new = new[np.argpartition(violation[new], -room)[-room:]]
        chosen = np.union1d(np.flatnonzero(used), new).astype(np.int64)
        return chosen if len(chosen) else np.zeros(1, dtype=np.int64)
