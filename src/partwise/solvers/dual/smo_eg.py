"""Problem. max D(alpha) at temperature 0 with the identity link (hinge); l2 > 0; structures with cliques.

Update. The first `smo_passes` passes are those of `smo` on clique marginals. These become slot scores (`gibbs_scores`:
conditionals of cliques, or where slots are tied the scores with the same expected counts), from which `eg` continues
with its adaptive steps. The inferences of the conversion are counted as visits.

Stopping rule. That of the method that made the last pass: gap = P(w) - D <= tol |P|, recomputed from its dual point.

Source. Bartlett et al. 2004, section 6: "starting out with several SMO updates and then switching to EG", and the
paper's way from marginals to Gibbs scores.

Departures. Those of `smo` and `eg`; the scores of tied slots; a share of the uniform distribution in the converted
point, without which scores would be infinite.
"""

from dataclasses import dataclass

import numpy as np

from partwise.problem import DualPoint, Problem
from partwise.problem.capabilities import HINGE, Capability
from partwise.solvers.dual.base import start_cliques
from partwise.solvers.dual.eg import EG, EGState
from partwise.solvers.dual.smo import SMO, SMOState
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.options import POSITIVE, at_least, option
from partwise.solvers.engine.point_conversions import check_clique_memory, gibbs_scores
from partwise.solvers.online.base import OnlineSolver

#: How far the expected counts of the scores may be from those of the marginals, over their sum. Smaller values cost
#: more inferences per example and lose less of the dual (docs/solvers.md).
TOLERANCE = 1e-3


@dataclass(kw_only=True)
class SMOEGState(SMOState, EGState):
    """The states of both solvers. switched: whether the scores have taken over from the marginals."""

    switched: bool = False
    dual: float = 0.0


@dataclass(frozen=True)
class SMOEG(OnlineSolver[SMOEGState]):
    """Sequential minimal optimisation first, then online exponentiated gradient from its marginals."""

    name = "smo-eg"
    requires = HINGE.union(
        {Capability.MAX_ORACLE, Capability.EXPECTATION_ORACLE, Capability.CLIQUES, Capability.CLIQUE_SUPPORT},
        {Capability.IN_MEMORY},
    )
    rate = "sublinear"
    proof = "that of `eg`, which follows SMO: none for the default steps, O(1/eps) for a theorem's"
    slot_vectors = 2

    smo_passes: int = option(5, "passes of smo before eg takes over", at_least(0))
    memory_mb: float = option(4096.0, "limit of the clique marginals, in MB; a problem with more is refused", POSITIVE)

    @property
    def first(self) -> SMO:
        return SMO(form="cliques", order=self.order, check_every=self.check_every)

    @property
    def second(self) -> EG:
        return EG(order=self.order, check_every=self.check_every)

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> SMOEGState:
        check_clique_memory(problem, self.memory_mb, self.name)
        cliques = start_cliques(problem, warm_start, self.name)
        u, b = problem.sums.dual_terms_cliques(cliques)
        dual, n, slots = problem.dual_of_plane(u, b), problem.n_examples, problem.n_slots
        return SMOEGState(
            weights=problem.weights_of_plane(u),
            gaps=np.zeros(n),
            cliques=cliques,
            scores=np.zeros(slots),
            marginals=np.zeros(slots),
            entropies=np.zeros(n),
            step_sizes=self.second.step_sizes(problem),
            duals=np.full(1, dual),
            dual=dual,
            best_dual=dual,
            rng=rng,
        )

    def step(self, problem: Problem, state: SMOEGState) -> None:
        if not state.switched and state.epoch >= self.smo_passes:
            self._switch(problem, state)
        if state.switched:
            self.second.step(problem, state)
        else:
            self.first.step(problem, state)
            state.best_dual, state.best_epoch = state.dual, state.epoch

    def certificate(self, problem: Problem, state: SMOEGState) -> Certified:
        return (self.second if state.switched else self.first).certificate(problem, state)

    def remark(self, problem: Problem, state: SMOEGState) -> str:
        return "slot scores have taken over" if state.switched else "still on clique marginals"

    def _switch(self, problem: Problem, state: SMOEGState) -> None:
        """Turn marginals into scores, and make the state one of eg at its start."""
        found = gibbs_scores(problem, DualPoint.of_cliques(state.cliques), tolerance=TOLERANCE)
        begun = self.second.init_state(problem, state.rng, DualPoint.of_scores(found.scores))
        for name in ("weights", "scores", "marginals", "entropies", "step_sizes", "duals"):
            getattr(state, name)[:] = getattr(begun, name)
        state.dual, state.best_dual, state.best_epoch = begun.dual, begun.best_dual, state.epoch
        state.visits += found.inferences
        state.checked_gain = 0.0  # eg's measure of progress is another one
        state.switched = True
