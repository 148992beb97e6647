"""Problem. Find weights at which every example's best labelling is the gold one; for `mira` the gold labelling's score
should exceed that of every other labelling by its cost. Temperature and penalty play no part, nor do costs for
`perceptron`; the problem's objective (the hinge, or another loss at temperature 0 with the identity link) is evaluated
for the history only.

Update. With psi_y = A_i'(g_i - counts(y)) a visit to example i

    perceptron   finds y = argmax <A_i w, counts(y)>; if that is not the gold labelling, w <- w + omega_i psi_y
    mira         finds the set H_k of the k best labellings at w (without their costs), and replaces w by
                 argmin 1/2 |v - w|^2   subject to   <v, psi_y> >= kappa cost_y   for y in H_k,
                 a quadratic program of k variables, solved exactly by an active set (core/solvers/online_qp.h); for
                 k = 1 the step is max(0, cost_y - <w, psi_y>) / |psi_y|^2

The constraints are hard: the step has no bound. A labelling is left out if no weights can reach its margin together
with those of better ones. An example with fewer than k labellings has as many constraints as labellings; a k above
those of every example is an error. The weights returned are the mean of w over all visits, kept at each update
(core/solvers/online_weights.h).

Stopping rule. `max_passes`, 10 by default: a run has no certificate, and ends with the status "no certificate".

Source. Collins 2002 (`perceptron`) and Crammer et al. 2005 (`mira`), as in Chang and Yih 2013 (sections 2.1 and 4.3):
examples in a new order in each pass, averaged; k = 1, C not tuned.

Departures. Sample weights multiply the perceptron's update; those other than 0 have no effect on hard constraints.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from partwise import _core
from partwise.problem import Certificate, DivergenceError, Part, Problem
from partwise.problem.capabilities import BEST_LABELLINGS, Capability
from partwise.solvers.engine.base import Certified, WarmStart, start_weights
from partwise.solvers.engine.options import Values, option
from partwise.solvers.online.base import OnlineSolver, OnlineState
from partwise.support.arrays import Floats, Ints

#: The largest k. A visit costs about k^2 inner products of feature vectors.
MOST = 1000


@dataclass(kw_only=True)
class MistakeState(OnlineState):
    """total, mass: the sum and number of all iterates. mistakes: visits of the last epoch that changed the weights."""

    total: Floats
    mass: float = 0.0
    mistakes: int = 0

    def complaint(self, fresh: Self) -> str:
        return super().complaint(fresh) or ("it has a negative number of iterates" if self.mass < 0 else "")


@dataclass(frozen=True)
class MistakeDriven(OnlineSolver[MistakeState]):
    """The base of perceptron and MIRA: everything but the update."""

    requires = BEST_LABELLINGS | {Capability.TEMPERATURE_0, Capability.IDENTITY_LINK, Capability.SMOOTH_PENALTY}
    rate = "none"
    rate_at_zero = "none"
    proof = "it does not minimise the objective"
    advice = "Raise max_passes"
    default_max_passes = 10
    certified = False
    incremental = True

    averaged: bool = option(True, "return the mean of the weights after each visit, not the last ones")

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> MistakeState:
        return MistakeState(weights=start_weights(problem, warm_start), total=np.zeros(problem.n_weights), rng=rng)

    @abstractmethod
    def visit(self, part: Part, order: Ints, state: MistakeState) -> _core.OnlineReport | _core.MiraReport:
        """Make a pass over these examples of a batch; return the core's report."""

    def step(self, problem: Problem, state: MistakeState) -> None:
        state.mistakes = 0
        for part, order in problem.sums.visits(self.draw_order(problem, state.rng)):
            report = self.visit(part, order, state)
            state.visits += report.visits
            state.mistakes += report.mistakes
            state.mass += report.mass
        if not np.isfinite(state.weights).all():
            raise DivergenceError(f"{self.name}: weights that are not finite after {state.epoch} epochs")
        state.epoch += 1

    def in_core(self, part: Part, state: MistakeState) -> _core.OnlineState:
        return _core.OnlineState(part.native, weights=state.weights, sum=state.total if self.averaged else None)

    def certificate(self, problem: Problem, state: MistakeState) -> Certified:
        weights = self.weights(problem, state)
        return Certified(Certificate.none(problem.value(weights)), weights, None)

    def weights(self, problem: Problem, state: MistakeState) -> Floats:
        return state.total / state.mass if self.averaged and state.mass else state.weights.copy()

    def remark(self, problem: Problem, state: MistakeState) -> str:
        return f"{state.mistakes} updates in the last pass" if state.epoch else ""


@dataclass(frozen=True)
class Perceptron(MistakeDriven):
    """The averaged structured perceptron."""

    name = "perceptron"

    def visit(self, part: Part, order: Ints, state: MistakeState) -> _core.OnlineReport:
        return _core.perceptron_epoch(self.in_core(part, state), order)


@dataclass(kw_only=True)
class MIRAState(MistakeState):
    """left_out: constraints that could not be met together with others, over all visits."""

    left_out: int = 0


@dataclass(frozen=True)
class MIRA(MistakeDriven):
    """MIRA: the smallest change of the weights that gives the k best labellings their margins; averaged."""

    name = "mira"

    k: int = option(
        1,
        "labellings per visit that get their margin; above 1 the structure needs k_best",
        Values(f"between 1 and {MOST}", lambda k: 1 <= k <= MOST),
    )

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> MIRAState:
        if self.k > 1 and Capability.K_BEST not in problem.capabilities():
            raise ValueError(f"mira: k={self.k} needs k_best, which {problem.sums.facts.structure} lacks; k=1 does not")
        if self.k > 1:
            most = max(_core.most_labellings(part.native, self.k) for part in problem.sums.in_memory())
            if most < self.k:
                raise ValueError(f"mira: k={self.k}, but no example has more than {most} labellings")
        state = super().init_state(problem, rng, warm_start)
        return MIRAState(weights=state.weights, total=state.total, rng=rng)

    def visit(self, part: Part, order: Ints, state: MistakeState) -> _core.MiraReport:
        report = _core.mira_epoch(self.in_core(part, state), order, self.k)
        assert isinstance(state, MIRAState)
        state.left_out += report.left_out
        return report

    def remark(self, problem: Problem, state: MistakeState) -> str:
        assert isinstance(state, MIRAState)
        left_out = f", {state.left_out} margins left out that others exclude" if state.left_out else ""
        return super().remark(problem, state) + left_out
