"""Problem. max D(alpha) for losses with the identity link (mass 1), any temperature tau >= 0; l2 > 0; l1 if tau > 0.

Update. Example i's distribution is p_i ~ exp(<counts, s_i>) with slot scores s_i. A visit takes a step of size eta
along the block's gradient divided by omega_i, in the geometry of the Kullback-Leibler divergence:

    s_i <- (1 - eta tau) s_i + eta (theta_i + kappa c_i),    theta_i = A_i w,    w = 1/l2 sum_i omega_i A_i'(g_i - mu_i)

and w follows the change of mu_i. With l1, u is kept beside w = soft(u, l1) / l2, and both follow on the rows that a
visit touches; |soft(u, l1)|^2 is no rougher than |u|^2, so that bounds on steps are the same. Step sizes:

    adaptive   eta_i starts at `initial_step` ("calibrate": see `calibrate`), is halved until the dual does not fall by
               more than rounding (but not below 1 / (tau + omega_i |A_i|), where it cannot fall), and grows by `growth`
               per visit, up to 1 / tau (to 1000 at temperature 0)
    theorem    eta_i = 1 / (tau + omega_i |A|), |A| = max_i |A_i|, |A_i| an upper bound of
               max_y |A_i'(g_i - counts(y))|^2 / l2
    a number   that one; a run whose dual falls back for good raises DivergenceError

anneal > 1: pass t works on l2 (1 + (anneal - 1) anneal_rate^(t - anneal_hold)), t > anneal_hold, and on l2 once that is
within a thousandth. delta < 1: log2(1/delta) runs are made side by side, and the best is certified.

Stopping rule. gap = P(w) - D <= tol |P|, both summed anew over all examples at the problem's own l2.

Source. Collins et al. 2008: Figures 2 and 3 (randomised online EG on part scores), section 7 (adaptive step,
calibration, effective iterations: `passes` counts every trial step), 7.1.1 (annealing), Theorem 2 and the repeated runs
after it: their mean excess is doubled by all of them with probability <= delta. Theorem 2 is about step_size "theorem"
and order "random"; of the default options it is known that the dual never falls, but no rate.

Departures. Sample weights; temperatures other than 0 and 1; order "permuted"; start near the gold labelling, s_i =
-sharpness * c_i (at small l2 the uniform distribution gives enormous first weights, from which no run recovers); w is
recomputed from the dual every `REFRESH` passes. With n_jobs > 1 and enough examples, each thread visits a few examples
at the weights of the round's beginning plus its own changes, and exchanges changes at its end. A round that lowers the
dual is undone except for the first thread's part. The papers' bounds do not cover this, and a pass raises the dual
less. The same seed and number of threads give the same bits.
"""

from dataclasses import dataclass, field
from math import ceil, log2

import numpy as np

from partwise import _core
from partwise.problem import Capability, DualPoint, Problem, Status
from partwise.solvers.dual import base
from partwise.solvers.engine.base import Certified, WarmStart
from partwise.solvers.engine.options import FROM_ONE, NOT_ALL, POSITIVE, SOME, at_least, option
from partwise.solvers.online.base import BlockSolver, InBlocks, OnlineState
from partwise.support.arrays import Floats

#: Annealing is over when l2 is within this share of its target.
ANNEALED = 1e-3


@dataclass(kw_only=True)
class EGState(OnlineState, base.WatchedState, base.GibbsState):
    """Arrays of all runs, one run after the other: of length runs times d, all slots, or n.

    weights: w(alpha) at the current l2. plane: u with l1, else empty. duals: D of each run as tracked at the current
    l2; dual: the best of them. excess: how far l2 is above its target, over the target.
    """

    duals: Floats
    plane: Floats = field(default_factory=lambda: np.zeros(0))
    excess: float = 0.0


@dataclass(frozen=True)
class EG(BlockSolver[EGState]):
    """Online exponentiated gradient on the dual."""

    name = "eg"
    requires = frozenset({Capability.IDENTITY_LINK, Capability.EXPECTATION_ORACLE, Capability.SMOOTH_TERM})
    requires |= {Capability.IN_MEMORY, Capability.L2, Capability.ALL_PENALISED}
    state_types = (EGState,)
    rate = "linear"
    proof = (
        "Collins et al. 2008, Theorem 2, with the theorem's steps and random order: O(log 1/eps); O(1/eps) at "
        "temperature 0; none for the defaults"
    )
    default_max_passes = 500
    slot_vectors = 2

    step_size: str | float = base.step_size_option("adaptive", "theorem")
    start: base.Start = base.start_option()
    sharpness: float = base.sharpness_option()
    initial_step: str | float = option(
        0.5, "adaptive: first step size of every example, or calibrate", POSITIVE._replace(words=("calibrate",))
    )
    growth: float = option(1.05, "adaptive: factor on the step size after each visit", FROM_ONE)
    round_size: int = base.round_size_option()
    anneal: float = option(1.0, "l2 of the first passes over l2 (1: no annealing)", FROM_ONE)
    anneal_hold: int = option(5, "passes at the first l2", at_least(0))
    anneal_rate: float = option(0.7, "factor per pass on how far l2 is above its target", NOT_ALL)
    delta: float = option(1.0, "take the best of log2(1 / delta) independent runs", SOME)

    @property
    def runs(self) -> int:
        return max(1, ceil(log2(1.0 / self.delta)))

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> EGState:
        scores = base.start_scores(problem, warm_start, base.start_cost_scale(self.start, self.sharpness), self.name)
        marginals, entropies = problem.sums.marginals_of_scores(scores)
        u, b = problem.sums.dual_terms_slots(marginals, None, entropies)
        visits, excess, runs = 0, self.excess(1), self.runs
        if self.step_size == "adaptive" and self.initial_step == "calibrate":
            first, visits = base.calibrate(problem, scores, marginals, entropies, self.least_step(problem), rng)
            steps = np.full(problem.n_examples, first)
        else:
            steps = self.step_sizes(problem)
        annealed = _annealed(problem, excess)
        dual = annealed.dual_as_it_is(u, b)
        return EGState(
            weights=np.tile(annealed.weights_of_plane(u), runs),
            plane=np.tile(u, runs) if problem.l1 else np.zeros(0),
            scores=np.tile(scores, runs) if runs > 1 else scores,
            marginals=np.tile(marginals, runs) if runs > 1 else marginals,
            entropies=np.tile(entropies, runs),
            step_sizes=np.tile(steps, runs),
            duals=np.full(runs, dual),
            dual=dual,
            best_dual=dual,
            excess=excess,
            visits=visits,
            rng=rng,
        )

    def step(self, problem: Problem, state: EGState) -> None:
        self._anneal(problem, state)
        adaptive = self.step_size == "adaptive"
        gains = np.zeros(self.runs)
        for k in range(self.runs):
            options = _core.EgOptions(
                l2=_annealed(problem, state.excess).l2,
                l1=problem.l1,
                adaptive=adaptive,
                growth=self.growth,
                max_step=base.max_step(problem) if adaptive else float("inf"),
                n_jobs=problem.n_jobs,
                round_size=self.round_size,
            )
            order = self.draw_order(problem, state.rng)
            visits, gains[k] = self._blocks(state, k).visit(problem, order, options)
            state.visits += visits
        state.epoch += 1
        state.duals += gains
        best = int(np.argmax(state.duals))
        state.gain, state.dual = float(gains[best]), float(state.duals[best])
        state.raised += state.gain
        base.watch(state, self.name, self.step_size)
        if state.epoch % base.REFRESH == 0:
            for k in range(self.runs):
                self._refresh(problem, state, k)
            state.dual = float(state.duals.max())

    def certificate(self, problem: Problem, state: EGState) -> Certified:
        # Marginals and entropies are those of the scores, recomputed at each visit: nothing in them drifts.
        scores = self._best(state).scores  # shared with the state
        return Certified(*problem.certify(self.dual_point(problem, state)), DualPoint.of_scores(scores))

    def dual_point(self, problem: Problem, state: EGState) -> DualPoint:
        best = self._best(state)
        return DualPoint.of_counts(best.marginals, None, best.entropies)

    def in_blocks(self) -> InBlocks | None:
        # Other step sizes are for one l2; annealing and repeated runs are for all examples at once.
        usual = self.step_size == "adaptive" and self.initial_step != "calibrate"
        return super().in_blocks() if usual and self.anneal == 1 and self.runs == 1 else None

    def weights(self, problem: Problem, state: EGState) -> Floats:
        return self._best(state).weights * (1.0 + state.excess)

    def check_due(self, state: EGState, tol: float) -> bool:
        if state.excess > 0 and self.check_every is None:  # far above the target l2 small gains say nothing of the gap
            return state.epoch - state.checked_epoch >= 5
        return super().check_due(state, tol)

    def check_end(self, problem: Problem, state: EGState, status: Status) -> None:
        base.check_end(state, status, self.name, self.step_size)

    def least_step(self, problem: Problem) -> float:
        """Return a step that no example can refuse."""
        curvature = float((problem.sample_weight * base.psi2_bounds(problem)).max()) / problem.l2
        return 1.0 / max(problem.loss.temperature + curvature, 1.0 / base.max_step(problem))

    def step_sizes(self, problem: Problem) -> Floats:
        """Return one step size per example, before the first visit (and without calibration)."""
        n, tau = problem.n_examples, problem.loss.temperature
        if self.step_size == "adaptive":
            return np.full(n, min(float(self.initial_step), base.max_step(problem)))
        if self.step_size != "theorem":
            return np.full(n, float(self.step_size))
        largest = float(base.psi2_bounds(problem).max()) / problem.l2
        return 1.0 / np.maximum(tau + problem.sample_weight * largest, 1.0 / base.max_step(problem))

    def excess(self, number: int) -> float:
        """Return how far l2 is above its target in the pass of this number (the first is 1), over the target."""
        excess = (self.anneal - 1.0) * self.anneal_rate ** max(0, number - self.anneal_hold)
        return excess if excess > ANNEALED else 0.0

    def _anneal(self, problem: Problem, state: EGState) -> None:
        """Set the l2 of the pass to come; weights and duals follow."""
        excess = self.excess(state.epoch + 1)
        if excess == state.excess:
            return
        old, new = _annealed(problem, state.excess), _annealed(problem, excess)
        state.excess = excess
        for k in range(self.runs):
            state.duals[k] += old.change_of_dual(self._blocks(state, k).weights, new)
        state.weights *= old.l2 / new.l2
        state.dual = state.best_dual = float(state.duals.max())
        state.best_epoch = state.epoch

    def _refresh(self, problem: Problem, state: EGState, k: int) -> None:
        blocks, annealed = self._blocks(state, k), _annealed(problem, state.excess)
        u, b = problem.sums.dual_terms_slots(blocks.marginals, None, blocks.entropies)
        blocks.weights[:] = annealed.weights_of_plane(u)
        if problem.l1:
            blocks.plane[:] = u
        state.duals[k] = annealed.dual_as_it_is(u, b)

    def _best(self, state: EGState) -> base.GibbsBlocks:
        return self._blocks(state, int(np.argmax(state.duals)))

    def _blocks(self, state: EGState, k: int) -> base.GibbsBlocks:
        arrays = [getattr(state, name) for name in base.GibbsBlocks._fields]
        sizes = [len(array) // self.runs for array in arrays]
        return base.GibbsBlocks(*(array[k * size : (k + 1) * size] for array, size in zip(arrays, sizes, strict=True)))


def _annealed(problem: Problem, excess: float) -> Problem:
    return base.with_l2(problem, problem.l2 * (1.0 + excess)) if excess else problem
