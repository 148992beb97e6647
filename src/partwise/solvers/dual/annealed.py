"""Problem. max D(alpha) at temperature 0 with the identity link (hinge); l2 > 0. At temperature tau > 0

    D_tau(alpha) = D(alpha) + tau sum_i omega_i H(p_i)

is smooth in Gibbs distributions, and its maximum is within tau sum_i omega_i log |Y_i| of that of D.

Update. First passes of `eg` at the temperature tau. D_tau and D differ by tau sum_i omega_i H(p_i), which at the
maximum of D_tau is an upper bound of P - D. So the temperature, which starts at `temperature` in units of the cost, is
multiplied by `factor` after each pass in which D_tau rose by less than `settled` times that bound (or after `PATIENCE`
passes). Below `last_temperature` each example's distribution becomes a working set of its `labellings` most probable
labellings, with probabilities that sum to 1 (where the structure has no k_best: the expected counts as one mixture).
From there on a step is one of `bcfw` with its default options. A warm start in expected counts or active sets begins
with working sets, one in slot scores at `temperature`.

Stopping rule. gap = P(w) - D <= tol |P| at temperature 0 in both parts, without the point's entropy. The gap is
computed every fifth pass in the first part, then as in `bcfw`.

Source. The dual of Bartlett et al. 2004, smoothed by the entropy of Collins et al. 2008; the finish is that of `bcfw`.

Departures. No paper has this schedule.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from partwise import _core
from partwise.problem import Capability, DualPoint, Problem
from partwise.solvers.dual.base import REFRESH, GibbsBlocks, GibbsState, start_scores
from partwise.solvers.engine.base import Certified, WarmStart, start_point
from partwise.solvers.engine.options import FROM_ONE, NOT_NEGATIVE, POSITIVE, PROPER_SHARE, at_least, option
from partwise.solvers.online.base import OnlineSolver
from partwise.solvers.working_sets.base import memory_option, start_sets
from partwise.solvers.working_sets.bcfw import BCFW
from partwise.solvers.working_sets.bcfw_plain import BCFWState
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.arrays import Floats

#: Most passes at one temperature.
PATIENCE = 10


@dataclass(kw_only=True)
class AnnealedState(BCFWState, GibbsState):
    """The state of `bcfw`, and Gibbs blocks.

    temperature: of the Gibbs blocks; 0 once working sets have replaced them. held: passes made at this temperature.
    dual: D at this temperature.
    """

    temperature: float
    held: int = 0

    def complaint(self, fresh: Self) -> str:
        if not 0 <= self.temperature <= fresh.temperature:
            return f"its temperature is {self.temperature:g}"
        return super().complaint(fresh)


@dataclass(frozen=True)
class Annealed(OnlineSolver[AnnealedState]):
    """An entropy-smoothed dual with falling temperature, then pairwise Frank-Wolfe: for max-margin losses."""

    name = "annealed"
    requires = BCFW.requires | {Capability.IDENTITY_LINK, Capability.EXPECTATION_ORACLE}
    rate = "sublinear"
    proof = "none for the annealing; it ends as `bcfw` does"
    slot_vectors = 2

    temperature: float = option(1.0, "the first temperature, in units of the cost", POSITIVE)
    factor: float = option(0.5, "factor on the temperature when a pass gained little", PROPER_SHARE)
    settled: float = option(0.5, "how little: this share of temperature times entropy", POSITIVE)
    last_temperature: float = option(0.02, "below this temperature pairwise steps on labellings begin", POSITIVE)
    labellings: int = option(10, "most labellings of each example to begin them with", at_least(1))
    sharpness: float = option(
        11.0, "how far the first scores of wrong parts lie below those of gold parts", NOT_NEGATIVE
    )
    initial_step: float = option(0.5, "first step size of every example while the temperature falls", POSITIVE)
    growth: float = option(1.05, "factor on the step size after each visit", FROM_ONE)
    memory_mb: float = memory_option()

    @property
    def finish(self) -> BCFW:
        return BCFW(order=self.order, check_every=self.check_every, memory_mb=self.memory_mb)

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> AnnealedState:
        n, d, slots = problem.n_examples, problem.n_weights, problem.n_slots
        sparse = start_point(problem, warm_start, ("slots", "active"))
        scores, marginals, entropies = np.zeros(slots), np.zeros(slots), np.zeros(n)
        if sparse is None:
            scores = start_scores(problem, warm_start, -self.sharpness, self.name)
            marginals, entropies = problem.sums.marginals_of_scores(scores)
        state = AnnealedState(
            weights=np.zeros(d),
            lag=np.zeros(d),
            average=np.array([0.0, 1.0, 0.0]),
            gaps=np.zeros(n),
            sets=start_sets(problem, sparse, self.name),
            scores=scores,
            marginals=marginals,
            entropies=entropies,
            step_sizes=np.full(n, self.initial_step),
            temperature=self.temperature,
            rng=rng,
        )
        if sparse is None:
            self._refresh(problem, state)
        else:
            self._begin_finish(problem, state)
        return state

    def step(self, problem: Problem, state: AnnealedState) -> None:
        if state.temperature == 0:
            self.finish.step(problem, state)
            return
        self._gibbs_pass(problem, state)
        if state.gain > self.settled * self._smoothing(problem, state) and state.held < PATIENCE:
            return
        before = self._smoothing(problem, state)
        state.temperature *= self.factor
        state.held = 0
        state.dual += self._smoothing(problem, state) - before
        if state.temperature >= self.last_temperature:
            return
        if Capability.K_BEST in problem.capabilities():
            parts = [(part.native, state.scores[part.slots]) for part in problem.sums.in_memory()]
            state.sets = KeptLabellings([_core.likely_labellings(*part, self.labellings) for part in parts])
        else:
            state.sets = start_sets(problem, DualPoint.of_scores(state.scores), self.name)
        self._begin_finish(problem, state)

    def _gibbs_pass(self, problem: Problem, state: AnnealedState) -> None:
        tau = state.temperature
        options = _core.EgOptions(
            l2=problem.l2, growth=self.growth, max_step=1.0 / tau, n_jobs=problem.n_jobs, temperature=tau
        )
        own = state.scores, state.marginals, state.entropies, state.step_sizes
        blocks = GibbsBlocks(state.weights, np.zeros(0), *own)
        visits, state.gain = blocks.visit(problem, self.draw_order(problem, state.rng), options)
        state.visits += visits
        state.epoch += 1
        state.held += 1
        state.dual += state.gain
        if state.epoch % REFRESH == 0:
            self._refresh(problem, state)

    def _refresh(self, problem: Problem, state: AnnealedState) -> None:
        u, b = problem.sums.dual_terms_slots(state.marginals)
        state.weights[:] = problem.weights_of_plane(u)
        state.dual = problem.dual_of_plane(u, b) + self._smoothing(problem, state)

    @staticmethod
    def _smoothing(problem: Problem, state: AnnealedState) -> float:
        """Return tau sum_i omega_i H(p_i)."""
        return state.temperature * float(problem.sample_weight @ state.entropies)

    @staticmethod
    def _begin_finish(problem: Problem, state: AnnealedState) -> None:
        """Set weights and average from the working sets, and forget gains: later ones are not comparable."""
        assert state.sets is not None
        u, b = problem.dual_terms(state.sets.point())
        state.weights[:] = problem.weights_of_plane(u)
        state.dual = problem.dual_of_plane(u, b)
        state.average[:] = 0.0, 1.0, b
        state.temperature, state.held, state.checked_gain = 0.0, 0, 0.0

    def certificate(self, problem: Problem, state: AnnealedState) -> Certified:
        if state.temperature == 0:
            return self.finish.certificate(problem, state)
        certificate, weights = problem.certify(DualPoint.of_counts(state.marginals))
        return Certified(certificate, weights, DualPoint.of_scores(state.scores))

    def weights(self, problem: Problem, state: AnnealedState) -> Floats:
        return self.finish.weights(problem, state) if state.temperature == 0 else state.weights.copy()

    def check_due(self, state: AnnealedState, tol: float) -> bool:
        if state.temperature > 0 and self.check_every is None:  # a gain at this temperature does not bound the gap at 0
            return state.epoch - state.checked_epoch >= 5
        return super().check_due(state, tol)

    def remark(self, problem: Problem, state: AnnealedState) -> str:
        if state.temperature == 0:
            return self.finish.remark(problem, state)
        return f"the temperature is {state.temperature:.3g}, pairwise steps have not begun"
