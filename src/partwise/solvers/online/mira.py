"""Problem. As for the perceptron, with margins: the gold labelling's score should exceed that of every other labelling
by its cost. The problem's objective (the hinge) is evaluated for the history only; its penalty has no part in it.

Update. With psi_y = A_i'(g_i - counts(y)) and H_k the k best labellings at w (without their costs), a visit replaces w
by

    argmin 1/2 |v - w|^2   subject to   <v, psi_y> >= kappa cost_y   for y in H_k

a quadratic program of k variables, solved exactly by an active set (core/solvers/online_qp.h); for k = 1 the step is
max(0, cost_y - <w, psi_y>) / |psi_y|^2. The constraints are hard: the step has no bound. A labelling whose margin no
weights can reach together with those of better ones is left out. An example with fewer than k labellings has as many
constraints as labellings; a k above those of every example is an error. The weights returned are the mean of w over all
visits.

Stopping rule. That of `perceptron`.

Source. Crammer et al. 2005, as the rival of Chang and Yih 2013 (sections 2.1 and 4.3; k = 1 there): C not tuned,
examples in a new order in each pass, averaged.

Departures. Sample weights other than 0 have no effect, the constraints being hard.
"""

from dataclasses import dataclass

import numpy as np

from partwise import _core
from partwise.problem import Part, Problem
from partwise.problem.capabilities import Capability
from partwise.solvers.engine.base import WarmStart
from partwise.solvers.engine.options import Values, option
from partwise.solvers.online.perceptron import MistakeDriven, MistakeState
from partwise.support.arrays import Ints

#: The largest k. A visit costs about k^2 inner products of feature vectors.
MOST = 1000


@dataclass(kw_only=True)
class MIRAState(MistakeState):
    """left_out: constraints that could not be met together with others, in all visits."""

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
