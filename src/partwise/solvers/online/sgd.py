"""Problem. min P(w) for any loss with the identity link, smooth or not; l2 > 0.

Update. Visit k + 1, to example i, has the step size eta; n is the number of examples (`n_examples`):

    w <- w - eta (l2 / n w + gradient of omega_i loss_i at w)

    rule "bottou"       eta = eta0 / (1 + eta0 k l2 / n)^0.75
    rule "power"        eta = eta0 / (1 + eta0 k l2)^0.75
    rule "reciprocal"   eta = eta0 / (1 + k / n)

For the first two rules eta0 is the one of 1/2, 1/4, ..., 1/32 with the lowest primal value on `SAMPLED` examples drawn
at random after one pass over them (with their share of the penalty). For "reciprocal" it is the one of 1, 0.1, ...,
0.0001 with the fewest wrong parts on examples held out (a tenth, at most `HELD_OUT`) after one pass over the others;
the loss there decides between equals. All of these visits count. `step_size` gives eta0 instead. The average of
iterates gives visit k the weight k; scaling w and adding to it cost O(1) (core/solvers/online_weights.h).

Stopping rule. gap = P - D <= tol |P| at the last weights or at the average. Smooth losses: gap = |grad P|^2 / (2 l2).
At temperature 0 the planes of a pass that visits each example once add up to a plane (u, b) below the losses. The best
mixture of it and the plane so far is kept, and u / l2 is a third choice of weights. After each certificate that was
due, the plane that touches the losses at u / l2 joins in the same way (a Frank-Wolfe step), for another pass.

Source. Collins et al. 2008, section 7.1.3 and Figure 16: rule "reciprocal" (C there is l2). Chang and Yih 2013, section
4.3: rule "power" as it is printed (C there is 1 / l2). Bottou's program, which they follow, divides by n: "bottou". All
three step on loss_i + l2 / (2 n) |w|^2.

Departures. Order "permuted" by default; validation examples are held out of the training data; sample weights.
"""

from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal, Self

import numpy as np

from partwise import _core
from partwise.problem import Certificate, DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import BEST_LABELLINGS, PLAIN_L2, Capability
from partwise.solvers.engine.base import Certified, WarmStart, start_weights
from partwise.solvers.engine.options import POSITIVE, at_least, one_of, option
from partwise.solvers.online.base import OnlineSolver, OnlineState
from partwise.solvers.primal.base import certified_at
from partwise.support.arrays import Floats, Ints

Rule = Literal["bottou", "power", "reciprocal"]
#: Candidates for the first step size, by rule.
CANDIDATES: dict[Rule, tuple[float, ...]] = {
    "reciprocal": (1.0, 0.1, 0.01, 0.001, 0.0001),
    "power": (0.5, 0.25, 0.125, 0.0625, 0.03125),
    "bottou": (0.5, 0.25, 0.125, 0.0625, 0.03125),
}
#: Most examples that rule "reciprocal" holds out, and that the other rules draw.
HELD_OUT = SAMPLED = 1000


@dataclass(kw_only=True)
class SGDState(OnlineState):
    """weights, total: (d,), the iterate and the weighted sum of iterates; mass: the sum of those weights.

    u, b: the plane kept, at temperature 0; else u is empty. step_size: eta0, 0 before it is chosen. steps: visits that
    changed w. n: the number of examples that divides the penalty and enters the step sizes.
    """

    total: Floats
    u: Floats
    n: int
    step_size: float
    mass: float = 0.0
    b: float = 0.0
    steps: int = 0

    def complaint(self, fresh: Self) -> str:
        good = self.step_size >= 0 and isfinite(self.step_size) and self.mass >= 0 and isfinite(self.b) and self.n > 0
        return super().complaint(fresh) or ("" if good else "its step size, average or plane is invalid")


@dataclass(frozen=True)
class SGD(OnlineSolver[SGDState]):
    """Stochastic (sub)gradient descent on the primal."""

    name = "sgd"
    requires = PLAIN_L2 | BEST_LABELLINGS | {Capability.IDENTITY_LINK, Capability.LOSS_ORACLE}
    rate = "sublinear"
    proof = "Bach and Moulines 2011, for steps that fall like k^-0.75: O(1/eps^1.33)"
    advice = "Raise max_passes or tol, or take another step_size"
    incremental = True

    rule: Rule = option(
        "bottou",
        "step sizes: bottou, eta0 / (1 + eta0 k l2 / n)^0.75; power, without n; or reciprocal, eta0 / (1 + k / n)",
        one_of(Rule),
    )
    step_size: float | None = option(None, "eta0; by default the best of five on a part of the examples", POSITIVE)
    averaged: bool = option(True, "weigh the average of the iterates against the last one, and return the better")
    n_examples: int | None = option(
        None, "examples that the penalty and the step sizes are shared among; by default those there are", at_least(1)
    )

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> SGDState:
        d = problem.n_weights
        return SGDState(
            weights=start_weights(problem, warm_start),
            total=np.zeros(d if self.averaged else 0),
            u=np.zeros(0 if problem.loss.smooth else d),
            n=self.n_examples or len(problem.active),
            step_size=self.step_size or 0.0,
            rng=rng,
        )

    def step(self, problem: Problem, state: SGDState) -> None:
        if not state.step_size:
            self._choose_step_size(problem, state)
        planes = len(state.u) > 0 and self.order != "random"
        u = np.zeros(problem.n_weights) if planes else None
        total = state.total if self.averaged else None
        loss, bound = 0.0, 0.0
        for part, order in problem.sums.visits(self.draw_order(problem, state.rng)):
            own = _core.OnlineState(part.native, weights=state.weights, sum=total, plane=u)
            report = _core.sgd_epoch(own, order, self._options(problem, state, state.step_size, state.steps))
            state.visits += report.visits
            state.steps += report.visits
            state.mass += report.mass
            loss, bound = loss + report.loss, bound + report.bound
        state.epoch += 1
        if not (isfinite(loss) and np.isfinite(state.weights).all()):
            raise DivergenceError(f"sgd: losses of {loss} in epoch {state.epoch} with step_size={state.step_size:g}")
        if u is None:
            state.gain = 1.0  # no measure of progress: the guess of the gap is the last one
        else:
            self._mix(problem, state, u, bound)
            estimate = loss + problem.penalty_value(state.weights) - problem.dual_of_plane(state.u, state.b)
            state.gain = max(float(estimate), 0.0)

    def _options(self, problem: Problem, state: SGDState, step_size: float, first: int) -> _core.SgdOptions:
        return _core.SgdOptions(
            l2=problem.l2, step_size=step_size, rule=self.rule, n=float(state.n), first=float(first)
        )

    def _choose_step_size(self, problem: Problem, state: SGDState) -> None:
        some = state.rng.permutation(problem.active)
        if self.rule != "reciprocal":
            trained = judged = some[:SAMPLED]
        else:
            n_held_out = min(HELD_OUT, max(1, len(some) // 10))
            judged, trained = some[:n_held_out], some[n_held_out:] if len(some) > 1 else some
        smallest = inf, inf
        for step_size in CANDIDATES[self.rule]:
            weights = state.weights.copy()
            try:
                for part, order in problem.sums.visits(trained):
                    own = _core.OnlineState(part.native, weights=weights)
                    report = _core.sgd_epoch(own, order, self._options(problem, state, step_size, 0))
                    state.visits += report.visits
                finite = np.isfinite(weights).all()
                value = self._judge(problem, state, weights, judged) if finite else smallest
            except DivergenceError:  # scores that are too large
                continue
            if value < smallest:
                state.step_size, smallest = step_size, value
        if not state.step_size:
            raise DivergenceError(f"sgd: none of the step sizes {CANDIDATES[self.rule]} gives finite losses")

    def _judge(self, problem: Problem, state: SGDState, weights: Floats, judged: Ints) -> tuple[float, float]:
        """Return (wrong parts, loss) after a trial, or the primal value on these examples: the smallest is the best."""
        wrong, losses = 0.0, 0.0
        for part, examples in problem.sums.visits(judged):
            losses += _core.sum_of_losses(part.native, weights, examples)
            if self.rule == "reciprocal":
                wrong += _core.wrong_parts(part.native, weights, examples)
        state.visits += len(judged)
        if self.rule != "reciprocal":
            return losses + len(judged) / state.n * problem.penalty_value(weights), 0.0
        return wrong, losses

    def _mix(self, problem: Problem, state: SGDState, u: Floats, b: float) -> None:
        """Keep the best mixture of the plane so far and this one: the maximum of D between them."""
        change = u - state.u
        slope = b - state.b - problem.dot(state.u, change) / problem.l2
        curvature = 2.0 * problem.half_square(change)
        if slope > 0 and curvature > 0:
            share = min(1.0, slope / curvature)
            state.u += share * change
            state.b += share * (b - state.b)

    def observe(self, problem: Problem, state: SGDState, certificate: Certificate) -> None:
        if not len(state.u):
            return
        _, u, b = problem.plane(problem.weights_of_plane(state.u))
        state.visits += len(problem.active)
        self._mix(problem, state, u, b)

    def certificate(self, problem: Problem, state: SGDState) -> Certified:
        candidates = [state.weights.copy()]
        if self.averaged and state.mass:
            candidates.append(self.weights(problem, state))
        if problem.loss.smooth:
            found = [_certify_smooth(problem, weights) for weights in candidates]
            return min(found, key=lambda one: one.certificate.gap)
        u = state.u.copy()
        candidates.append(problem.weights_of_plane(u))
        primal, weights = min(((problem.value(each), each) for each in candidates), key=lambda pair: pair[0])
        certificate = problem.certificate_of(primal, u, state.b, weights, carried=state.visits)
        return Certified(certificate, weights, DualPoint.of_plane(u, state.b))

    def weights(self, problem: Problem, state: SGDState) -> Floats:
        return state.total / state.mass if self.averaged and state.mass else state.weights.copy()

    def remark(self, problem: Problem, state: SGDState) -> str:
        return f"eta0 = {state.step_size:g}" if state.step_size else ""


def _certify_smooth(problem: Problem, weights: Floats) -> Certified:
    primal, gradient = problem.value_and_gradient(weights)
    return certified_at(problem, problem.certificate_at(primal, gradient, weights), weights, primal, gradient)
