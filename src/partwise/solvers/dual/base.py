"""What solvers on distributions share: options, dual points to start from, steps of exponentiated gradient.

The dual never falls (except by rounding) with steps that theory or a search allows, but may with a step size given by
the user. Such a run raises DivergenceError when the dual has stayed below its best value for `PATIENCE` epochs, or is
below it at the end: weights of a diverged run are never returned. A dual that is not finite raises in any case.
"""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from partwise import _core
from partwise.problem import L2, DivergenceError, DualPoint, ElasticNet, Problem, Status
from partwise.solvers.engine.base import WarmStart, require_point, start_point, start_weights
from partwise.solvers.engine.options import NOT_NEGATIVE, POSITIVE, Values, at_least, one_of, option
from partwise.solvers.engine.point_conversions import clique_marginals, gibbs_scores
from partwise.solvers.engine.state import State
from partwise.solvers.online.base import views
from partwise.support.arrays import Floats, Ints

Start = Literal["gold", "uniform"]

#: Passes between two recomputations of sums that steps update (weights, dual), as their rounding errors grow.
REFRESH = 20
#: Calibration of the first step: share of the data that is used, fewest examples, and share that must improve.
SHARE, FEWEST, MONOTONE = 0.1, 20, 0.95
#: Epochs without a new best dual value before a run counts as diverging.
PATIENCE = 5
#: A fall of the dual beyond this, relative to 1 + |dual|, is more than rounding.
FALL = 1e-6


@dataclass(kw_only=True)
class WatchedState(State):
    """dual: D as the solver tracks it. best_dual, best_epoch: the highest value since the objective last changed."""

    dual: float
    best_dual: float
    best_epoch: int = 0


def watch(state: WatchedState, solver: str, step_size: str | float) -> None:
    """Note the best dual value after an epoch; raise DivergenceError if the dual has fallen below it for good."""
    given = not isinstance(step_size, str)
    if not isfinite(state.dual):
        reason = f" with step_size={step_size}" if given else ": values or weights are too large"
        raise DivergenceError(f"{solver}: the dual is {state.dual} after {state.epoch} epochs{reason}")
    if state.dual > state.best_dual:
        state.best_dual, state.best_epoch = state.dual, state.epoch
    if state.epoch - state.best_epoch >= PATIENCE:
        _check_fall(state, solver, step_size, f"for {PATIENCE} epochs")


def check_end(state: WatchedState, status: Status, solver: str, step_size: str | float) -> None:
    """Raise DivergenceError if a run that has not converged ends below its best dual value."""
    if status != "converged":
        _check_fall(state, solver, step_size, f"at the end ({status})")


def _check_fall(state: WatchedState, solver: str, step_size: str | float, when: str) -> None:
    fall = state.best_dual - state.dual
    if not isinstance(step_size, str) and fall > FALL * (1.0 + abs(state.best_dual)):
        raise DivergenceError(
            f"{solver}: the dual fell by {fall:.3g} from {state.best_dual:.6g} and has not come back {when} "
            f"with step_size={step_size}; take a smaller one, or let the solver choose it"
        )


def step_size_option(default: str, theorem: str) -> str | float:
    """Declare the option that names a rule for steps, or gives one step for all."""
    values = Values("positive", POSITIVE.contains, words=(default, theorem))
    return option(default, f"{default}, {theorem}, or a number", values)


def start_option() -> Start:
    """Declare the option of where to start."""
    return option("gold", "where to start: gold (near the gold labelling) or uniform", one_of(Start))


def sharpness_option(values: Values = NOT_NEGATIVE) -> float:
    """Declare the option of how near to the gold labelling a start is."""
    return option(11.0, "start gold: how far the scores of wrong parts lie below those of gold parts", values)


def round_size_option() -> int:
    """Declare the option of how long threads work before they exchange their changes."""
    help = "several threads: examples of one thread between two exchanges (0: chosen by the work there is)"
    return option(0, help, at_least(0))


def with_l2(problem: Problem, l2: float) -> Problem:
    """Return the problem with another l2 and the same l1."""
    return problem.with_penalty(ElasticNet(problem.l1, l2) if problem.l1 else L2(l2))


def start_cost_scale(start: Start, sharpness: float) -> float:
    """Return the first slot scores over the costs: -sharpness near the gold labelling, 0 for the uniform start."""
    return -sharpness if start == "gold" else 0.0


def start_scores(problem: Problem, warm_start: WarmStart | None, cost_scale: float, solver: str) -> Floats:
    """Return slot scores to start from: cost_scale * c, or those of the warm start."""
    if warm_start is None:
        return problem.sums.near_gold_scores(-cost_scale)
    # At temperature 0 weights do not determine the distributions; above it they tell more than expected counts do.
    kinds: tuple[str, ...] = ("gibbs", "linear", "cliques")
    if problem.loss.smooth:
        point = start_point(problem, warm_start, kinds)
    else:
        point = require_point(problem, warm_start, (*kinds, "slots", "active"), f"{solver} at temperature 0")
    if point is None:
        point = problem.oracle_point(start_weights(problem, warm_start))
    scores = np.array(gibbs_scores(problem, point).scores, dtype=np.float64)
    if scores.shape != (problem.n_slots,):
        raise ValueError(f"warm start: {scores.shape[0]} slot scores, the problem has {problem.n_slots} slots")
    return scores


def start_cliques(problem: Problem, warm_start: WarmStart | None, solver: str) -> Floats:
    """Return clique marginals to start from: those of the gold labellings, or of the warm start."""
    if warm_start is None:
        return clique_marginals(problem, None)
    kinds = ("cliques", "active", "gibbs", "linear", "slots")
    return clique_marginals(problem, require_point(problem, warm_start, kinds, solver))


def max_step(problem: Problem) -> float:
    """Return the longest step: 1 / tau, which forgets the old scores; at temperature 0 one that keeps scores finite."""
    tau = problem.loss.temperature
    return 1.0 / tau if tau > 0 else 1e3


def psi2_bounds(problem: Problem) -> Floats:
    """Return upper bounds of max_y |A_i'(g_i - counts(y))|^2; DivergenceError if safe steps exceed doubles."""
    bounds = np.zeros(problem.n_examples)
    bounds[problem.active] = problem.sums.psi2_bounds(problem.active)
    with np.errstate(over="ignore"):
        curvature = problem.sample_weight.sum() * bounds.max() / problem.l2
    if not isfinite(curvature):
        worst = int(np.argmax(bounds))  # NaN, if there is one
        raise DivergenceError(
            f"no step size in double precision: squared features up to {bounds[worst]:.3g} (example {worst}), sample "
            f"weights that sum to {problem.sample_weight.sum():.3g}, l2 = {problem.l2:.3g}"
        )
    return bounds


@dataclass(kw_only=True)
class GibbsState(State):
    """Gibbs distributions of all examples: scores, marginals (all slots,); entropies, step_sizes (n,)."""

    positive: ClassVar[frozenset[str]] = frozenset({"step_sizes"})

    scores: Floats
    marginals: Floats
    entropies: Floats
    step_sizes: Floats


class GibbsBlocks(NamedTuple):
    """Gibbs distributions p_i ~ exp(<counts, s_i>) of all examples (`GibbsState`), and their w and (with l1) u."""

    weights: Floats
    plane: Floats
    scores: Floats
    marginals: Floats
    entropies: Floats
    step_sizes: Floats

    def visit(self, problem: Problem, order: Ints, options: _core.EgOptions) -> tuple[int, float]:
        """Visit these examples, in this order across all batches; return (trial steps made, the dual's gain)."""
        plane, blocks = self.plane if problem.l1 else None, []
        for part in problem.sums.in_memory():
            arrays = views(part, self, ("scores", "marginals"), ("entropies", "step_sizes"))
            blocks.append(_core.EgState(part.native, weights=self.weights, plane=plane, **arrays))
        report = _core.eg_epoch(blocks, order, options)
        return report.visits, report.dual_gain


def calibrate(
    problem: Problem, scores: Floats, marginals: Floats, entropies: Floats, least: float, rng: np.random.Generator
) -> tuple[float, int]:
    """Find the first step of adaptive online EG (Collins et al. 2008, section 7); return it and the examples visited.

    With the paper's step the dual rises for at least 95 % of the examples in a tenth of the data. Here passes of EG
    over a random tenth count the examples whose first trial did not let the dual fall. The step starts at 1 (at most
    1 / tau, at least `least`, which every example accepts) and is halved until these are 95 %. Larger steps are not
    tried: far from the optimum nearly all examples accept them, which harms the others.
    """
    sample = draw_sample(problem, rng)
    # u = sum over the sample of omega_i A_i'(g_i - mu_i): the other examples have mu_i = g_i
    counts, offsets = np.zeros_like(marginals), problem.slot_offsets
    indptr, slots, gold = problem.gold
    np.add.at(counts, np.repeat(offsets[:-1], np.diff(indptr)) + slots, gold)
    for i in sample:
        counts[offsets[i] : offsets[i + 1]] = marginals[offsets[i] : offsets[i + 1]]
    plane = problem.dual_terms(DualPoint.of_counts(counts))[0]
    step, visits = min(max(1.0, least), max_step(problem)), 0
    while step > least:
        share, visited = improving_share(problem, sample, step, plane, scores, marginals, entropies)
        visits += visited
        if share >= MONOTONE:
            break
        step = max(0.5 * step, least)
    return step, visits


def draw_sample(problem: Problem, rng: np.random.Generator) -> Ints:
    """Return a tenth of the examples in random order; all of them if there are few."""
    active = rng.permutation(problem.active)
    return active[: max(FEWEST, int(np.ceil(SHARE * len(active))))]


def improving_share(
    problem: Problem, sample: Ints, step: float, plane: Floats, scores: Floats, marginals: Floats, entropies: Floats
) -> tuple[float, int]:
    """Return (share of the sample for which the first trial did not let the dual fall, examples visited)."""
    steps = np.full(problem.n_examples, step)
    copies = plane.copy(), scores.copy(), marginals.copy(), entropies.copy(), steps
    owner = np.repeat(np.arange(problem.n_batches), problem.sums.batch_sizes)[sample]
    order = sample[np.argsort(owner, kind="stable")]  # batch by batch
    # With growth 1 a step size that has changed was refused.
    options = _core.EgOptions(l2=problem.l2, l1=problem.l1, adaptive=True, growth=1.0)
    visits, _ = GibbsBlocks(problem.weights_of_plane(plane), *copies).visit(problem, order, options)
    return float(np.mean(steps[sample] == step)), visits
