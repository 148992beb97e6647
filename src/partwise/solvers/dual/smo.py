"""Problem. max D(alpha) at temperature 0 with the identity link (hinge); l2 > 0. With the scores v = theta_i + kappa
c_i at w = u / l2, mass that moves from labelling z of example i to y makes D rise by <count(y) - count(z), v> for each
unit: the violation of the pair.

Update. A visit to example i takes the pair of largest violation: y = argmax <count, v> over all labellings, and z the
argmin over the support of p_i, and moves the mass gamma from z to y that maximises D:

    gamma = min(l2 <count(y) - count(z), v> / (omega_i |A_i'(count(y) - count(z))|^2), mass that z can give)

    form="cliques"      p_i is kept as marginals q of the structure's cliques (the factored form). The support is all
                        labellings whose entries in q are above 0, found by a second maximisation; z can give the
                        smallest entry of its own that is not y's too
    form="labellings"   p_i is kept as the labellings that the oracle gave, with their masses; z is one of these
    form="auto"         cliques where the structure has them and they fit into `memory_mb`, else labellings

`smo-eg` makes `smo_passes` passes on clique marginals. These become slot scores (`gibbs_scores`: conditionals of
cliques, or where slots are tied the scores with the same expected counts), from which `eg` continues with its adaptive
steps. The inferences of the conversion are counted as visits.

Stopping rule. gap = P(w) - D <= tol |P|, both recomputed from the marginals, labellings or scores.

Source. Bartlett et al. 2004, section 6, for the factored form, which the paper takes from Taskar et al. 2003; Zhang et
al. 2011, Table 1 and section 5, for the form with a max oracle: the steepest coordinate and an exact step along it.
Bartlett et al. do not say how they choose pairs, and see their SMO stop at a plateau below `eg`. Here only the maximum
has no pair that gains: a block's gap is at most the violation of its pair. `smo-eg` is theirs, too: "starting out with
several SMO updates and then switching to EG".

Departures. Examples are visited in an order, not by their violation, which would take an oracle call for each example
and step (the rate of List and Simon 2009 is for the steepest pair of all examples); sample weights; the start is the
gold labelling; w is recomputed from the marginals every `REFRESH` passes. `smo-eg`: the scores of tied slots; a share
of the uniform distribution in the converted point, without which scores would be infinite.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np

from partwise import _core
from partwise.problem import Capability, DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import HINGE
from partwise.solvers.dual.base import REFRESH, start_cliques
from partwise.solvers.dual.eg import EG, EGState
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.options import POSITIVE, at_least, one_of, option
from partwise.solvers.engine.point_conversions import check_clique_memory, gibbs_scores, updates_of
from partwise.solvers.online.base import OnlineSolver, OnlineState
from partwise.solvers.working_sets.base import LABELLING_NEEDS, memory_option, start_sets, visit_sets
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats

Form = Literal["auto", "cliques", "labellings"]

#: Passes for which a labelling without mass is kept.
KEEP = 3
#: How far the expected counts of the converted scores may be from those of the marginals, relative to the latter's sum.
#: Smaller values cost more inferences per example and lower the dual less (docs/solvers.md).
TOLERANCE = 1e-3


@dataclass(kw_only=True)
class SMOState(OnlineState):
    """gaps: of each example at its last visit, (n,). cliques: marginals of all examples, one after the other.

    sets: the labellings and their masses in the other form, where cliques is empty. dual: D as tracked.
    """

    gaps: Floats
    cliques: Floats
    sets: KeptLabellings | None = None
    dual: float = 0.0


@dataclass(frozen=True)
class SMO(OnlineSolver[SMOState]):
    """Sequential minimal optimisation for the hinge: mass moves from one labelling of an example to another."""

    name = "smo"
    requires = LABELLING_NEEDS | {Capability.IDENTITY_LINK}
    rate = "sublinear"
    proof = "none for its order of visits: List and Simon 2009 have O(1/eps) for the steepest pair of all"

    form: Form = option("auto", "what is kept of each example: cliques (marginals), labellings, or auto", one_of(Form))
    memory_mb: float = memory_option("cliques: the most there may be, in MB. labellings: ")

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> SMOState:
        cliques, sets = np.zeros(0), None
        if self._factored(problem):
            cliques = start_cliques(problem, warm_start, self.name)
            point = DualPoint.of_cliques(cliques)
        else:
            sets = start_sets(problem, warm_start, self.name)
            point = sets.point()
        u, b = problem.dual_terms(point)
        return SMOState(
            weights=problem.weights_of_plane(u),
            gaps=np.zeros(problem.n_examples),
            cliques=cliques,
            sets=sets,
            dual=problem.dual_of_plane(u, b),
            rng=rng,
        )

    def step(self, problem: Problem, state: SMOState) -> None:
        state.epoch += 1
        if state.sets is None:
            self._factored_pass(problem, state)
        else:  # one pairwise step per visit, of the oracle's labelling and the worst one kept
            order, sets, gaps = self.draw_order(problem, state.rng), state.sets, state.gaps
            options = {"search": True, "pairwise": True, "steps": 1, "now": state.epoch, "keep": KEEP}
            for _, report in visit_sets(problem, sets, state.weights, gaps, order, self.memory_mb, **options):
                state.visits += report.visits
                state.dual += report.dual_gain
        state.gain = float(state.gaps.sum())
        if not isfinite(state.gain + state.dual):
            raise DivergenceError(f"{self.name}: the gap is {state.gain} after {state.epoch} epochs")

    def certificate(self, problem: Problem, state: SMOState) -> Certified:
        if state.sets is None:
            point = DualPoint.of_cliques(state.cliques)  # shared with the state, as they may be large
            return Certified(*problem.certify(point, updates_of(problem, state.cliques)), point)
        point = state.sets.point()
        return Certified(*problem.certify(point), point)

    def _factored(self, problem: Problem) -> bool:
        need, structure = Capability.CLIQUE_SUPPORT, problem.sums.facts.structure
        if need not in problem.capabilities():
            if self.form == "cliques":
                raise ValueError(f"smo: form 'cliques' needs {need}, which {structure} does not have")
            return False
        if self.form == "cliques":
            check_clique_memory(problem, self.memory_mb, self.name)
            return True
        return self.form == "auto" and 8 * int(problem.sums.clique_starts[-1]) <= self.memory_mb * 2**20

    def _factored_pass(self, problem: Problem, state: SMOState) -> None:
        for part, order in problem.sums.rounds(self.draw_order(problem, state.rng)):
            native = _core.SmoState(
                part.native,
                weights=state.weights,
                cliques=state.cliques[problem.sums.clique_range(part)],
                gaps=state.gaps[part.examples],
            )
            report = _core.smo_epoch(native, order, _core.SmoOptions(l2=problem.l2))
            state.visits += report.visits
            state.dual += report.dual_gain
        if state.epoch % REFRESH == 0:
            u, b = problem.sums.dual_terms_cliques(state.cliques)
            state.weights[:] = problem.weights_of_plane(u)
            state.dual = problem.dual_of_plane(u, b)


@dataclass(kw_only=True)
class SMOEGState(SMOState, EGState):
    """The states of both solvers. switched: whether the scores have taken over from the marginals."""

    switched: bool = False
    dual: float = 0.0


@dataclass(frozen=True)
class SMOEG(OnlineSolver[SMOEGState]):
    """Sequential minimal optimisation first, then online exponentiated gradient from its marginals."""

    name = "smo-eg"
    requires = HINGE | {Capability.MAX_ORACLE, Capability.EXPECTATION_ORACLE, Capability.IN_MEMORY}
    requires |= {Capability.CLIQUES, Capability.CLIQUE_SUPPORT}
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
        """Turn the marginals into scores, and the state into a first state of eg."""
        found = gibbs_scores(problem, DualPoint.of_cliques(state.cliques), tolerance=TOLERANCE)
        begun = self.second.init_state(problem, state.rng, DualPoint.of_scores(found.scores))
        for name in ("weights", "scores", "marginals", "entropies", "step_sizes", "duals"):
            getattr(state, name)[:] = getattr(begun, name)
        state.dual, state.best_dual, state.best_epoch = begun.dual, begun.best_dual, state.epoch
        state.visits += found.inferences
        state.checked_gain = 0.0  # eg measures progress differently
        state.switched = True
