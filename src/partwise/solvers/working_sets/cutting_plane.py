"""Problem. min l2/2 |w|^2 + sum_i omega_i xi_i over w and one slack per example, under xi_i >= cost(y) - <w, psi_i(y)>
for every labelling y of it. That is min P(w) at temperature 0 with the identity link (hinge); l2 > 0.

Update. Example i keeps a working set W_i of labellings, at first the gold one. An epoch asks the oracle for every
example's most violated constraint at the same weights, which joins W_i if it is violated by more than epsilon:
cost(y) - <w, psi_i(y)> > xi_i + epsilon with xi_i the maximum over W_i. Then the dual of the problem over all working
sets is solved, over a product of simplices: sweeps over the examples with up to `steps` pairwise steps each (those of
`bcfw`) until its own remaining gap is at most `accuracy` times the violations just found, or `max_rounds` sweeps
were made. Labellings without weight for `idle` epochs are forgotten.

Stopping rule. gap = P(w) - D <= tol |P|, D recomputed from the working sets, P at the best weights seen. The run also
ends after a pass that finds no violation above epsilon (the figure's own criterion) and whose sweeps raise the dual by
less than a thousandth of the gap: the rest of the gap is due to constraints that epsilon excludes.

Source. Tsochantaridis et al. 2005, Algorithm 1.

Departures. The working sets' problem is solved once per pass over the examples (SVM-struct's choice), not after each
violated constraint; by sweeps instead of a general solver for quadratic programs; sample weights; the best weights seen
are returned; memory is bounded (see `dcd`). The history has the largest violation of the last pass, which SVM-struct
compares with its epsilon (`violation`), and the number of constraints kept (`constraints`).
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from partwise import _core
from partwise.problem import Capability, Certificate, DivergenceError, Problem, Status
from partwise.solvers.engine.base import Certified, ScheduledSolver, WarmStart
from partwise.solvers.engine.options import NOT_NEGATIVE, POSITIVE, at_least, option
from partwise.solvers.engine.state import State
from partwise.solvers.working_sets.base import LABELLING_NEEDS, memory_option, start_plane, start_sets
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats

#: The last pass is one that adds no constraint and whose sweeps raise the dual by less than this share of the gap.
LITTLE = 1e-3


@dataclass(kw_only=True)
class CuttingPlaneState(State):
    """weights: of the working sets, (d,). best, best_primal: the best weights seen, (d,), and P there.

    violation, risen: in the last pass, the largest violation and the dual's rise. rounds: sweeps. merged: sets merged.
    """

    weights: Floats
    best: Floats
    best_primal: float
    sets: KeptLabellings
    violation: float = float("inf")
    rounds: int = 0
    merged: int = 0
    risen: float = float("inf")


@dataclass(frozen=True)
class CuttingPlane(ScheduledSolver[CuttingPlaneState]):
    """N-slack cutting planes for structural SVMs."""

    name = "cutting-plane"
    requires = LABELLING_NEEDS | {Capability.IDENTITY_LINK}
    traced = ("violation", "constraints")
    rate = "sublinear"
    proof = "Tsochantaridis et al. 2005: O(1/eps^2)"
    advice = "Raise max_passes or tol, lower epsilon, or take a larger l2 (a smaller C)"

    epsilon: float = option(1e-6, "violations up to this add no constraint", NOT_NEGATIVE)
    accuracy: float = option(
        0.1, "gap of the working sets' problem, over the violations found, at which it is solved", POSITIVE
    )
    max_rounds: int = option(200, "most sweeps over the working sets in an epoch", at_least(1))
    steps: int = option(10, "most steps on an example's working set per sweep", at_least(1))
    idle: int = option(50, "epochs after which a constraint without weight is dropped", at_least(1))
    memory_mb: float = memory_option()

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> CuttingPlaneState:
        sets = start_sets(problem, warm_start, self.name)
        weights = problem.weights_of_plane(start_plane(problem, sets, warm_start)[0])
        primal = problem.value(weights)
        return CuttingPlaneState(weights=weights, best=weights.copy(), best_primal=primal, sets=sets)

    def step(self, problem: Problem, state: CuttingPlaneState) -> None:
        found = self._search(problem, state)
        left, state.risen = float("inf"), 0.0
        for _ in range(self.max_rounds):
            left, gain = self._sweep(problem, state)
            state.rounds += 1
            state.risen += gain
            if left <= self.accuracy * found or gain == 0.0:
                break
        state.gain = found + left
        state.epoch += 1

    def certificate(self, problem: Problem, state: CuttingPlaneState) -> Certified:
        point = state.sets.point()
        u, b = problem.dual_terms(point)
        weights = problem.weights_of_plane(u)
        primal = problem.value(weights)
        if state.best_primal < primal:
            primal, weights = state.best_primal, state.best.copy()
        return Certified(problem.certificate_of(primal, u, b, weights), weights, point)

    def trace(self, problem: Problem, state: CuttingPlaneState) -> tuple[float, ...]:
        return state.violation, float(state.sets.num_atoms)

    def finished(
        self, problem: Problem, state: CuttingPlaneState, certificate: Certificate, tol: float
    ) -> Status | None:
        status = super().finished(problem, state, certificate, tol)
        idle = state.violation <= self.epsilon and state.risen <= LITTLE * certificate.gap
        return self.at_the_end(certificate) if status is None and tol > 0 and idle else status

    def remark(self, problem: Problem, state: CuttingPlaneState) -> str:
        kept = state.sets.remark(state.rounds, state.merged, self.memory_mb, "constraints")
        kept_out = state.violation <= self.epsilon
        return kept + (f", no constraint is violated by more than epsilon={self.epsilon:g}" if kept_out else "")

    def _search(self, problem: Problem, state: CuttingPlaneState) -> float:
        """Let the most violated constraints join the working sets; return the sum of violations."""
        losses, total, largest = 0.0, 0.0, 0.0
        visits = problem.sums.visits(problem.active)
        for (part, order), (sets, limit) in zip(visits, state.sets.limited(self.memory_mb), strict=True):
            report = _core.find_violators(
                part.native, state.weights, sets, order, epsilon=self.epsilon, now=state.epoch + 1, max_bytes=limit
            )
            state.visits += report.visits
            state.merged += report.merged
            losses, total, largest = losses + report.losses, total + report.total, max(largest, report.largest)
        primal = losses + problem.penalty_value(state.weights)
        if not isfinite(primal):
            raise DivergenceError(f"{self.name}: the objective is {primal} after {state.epoch} epochs")
        if primal < state.best_primal:
            state.best, state.best_primal = state.weights.copy(), primal
        state.violation = largest
        return total

    def _sweep(self, problem: Problem, state: CuttingPlaneState) -> tuple[float, float]:
        """Step on the working sets of all examples; return (their gap as the visits saw it, gain of the dual)."""
        left, gain, now = 0.0, 0.0, state.epoch + 1
        options = _core.BcfwSetOptions(l2=problem.l2, search=False, steps=self.steps, now=now, keep=self.idle)
        for (part, order), sets in zip(problem.sums.visits(problem.active), state.sets.parts, strict=True):
            gaps = np.zeros(sets.num_examples)
            blocks = _core.BcfwSetState(part.native, weights=state.weights, sets=sets, gaps=gaps)
            report = _core.bcfw_set_epoch(blocks, order, options)
            left, gain = left + report.gap_estimate, gain + report.dual_gain
        if not isfinite(gain):
            raise DivergenceError(f"{self.name}: the dual rose by {gain} after {state.epoch} epochs")
        return left, gain
