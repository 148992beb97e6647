"""What iterative scaling and coordinate descent share: state, passes, certificate, and checks of the data.

Problem. min P(w) for smooth losses with the identity link where every labelling is one slot ("one part") and the
features can be read one by one ("column access"); l2 = 0 is allowed.

Update. One weight at a time: w_t += z with z a minimiser, or nearly one, of a function A_t(z) >= P(w + z e_t) - P(w)
with A_t(0) = 0. The methods are their A_t (Huang et al. 2010, Table 1 and (39), all in core/solvers/scaling.h) and

    sequential   each step is taken before the next weight's is computed (Algorithm 1), in the order of the weights'
                 numbers (the paper's), by frequency or permuted (section 4.4), or in the adaptive order: weights whose
                 last visit gained little for its cost wait longer, up to 64 rounds (core/solvers/visit_plan.h). A pass
                 is then as much work as a visit of every weight
    parallel     all steps are computed before the first is taken (Algorithm 2); needs an A that bounds them all at once

The sequential update changes S and T, examples x slots, as it goes ((18), (19)): all columns are needed in one place.

Stopping rule. gap = |grad P|^2 / (2 l2) <= tol |P|, or no step lowers P or the gap any more. With l2 = 0:
|grad P(w)| <= tol |grad P(0)|.

Source. Huang et al. 2010, sections 2 to 4.

Departures. Temperatures other than 1, costs and sample weights; S and T are recomputed from w every `REFRESH` passes,
as their products drift; no step multiplies a probability by more than exp(50).
"""

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Literal, Self

import numpy as np

from partwise import _core
from partwise._core import ScalingReport, scaling_refresh
from partwise.problem import Certificate, ConvergenceWarning, DivergenceError, FeatureWarning, Part, Problem, Status
from partwise.problem.capabilities import SMOOTH_LOSS, Capability, listed
from partwise.solvers.engine.base import Certified, ScheduledSolver, WarmStart, start_weights
from partwise.solvers.engine.options import POSITIVE, one_of, option
from partwise.solvers.engine.state import State
from partwise.solvers.primal.base import certified_at, norm_text
from partwise.support.arrays import Floats, Ints

Order = Literal["index", "cyclic", "permuted", "adaptive"]
UpdateKind = Literal["parallel", "sequential"]

#: Passes between two recomputations of S and T.
REFRESH = 20
#: Certificates without progress before a run counts as stalled.
PATIENCE = 4
#: Most rounds that a column waits in the adaptive order.
LONGEST = 64
#: Most Newton steps for one weight's minimum.
MOST_NEWTON = 100
#: Without a penalty, a weight that multiplies odds by more than exp(this) probably grows to infinity.
GROWN = 30.0

#: Capabilities of the batches that S and T need.
OF_TABLES = frozenset({Capability.IN_MEMORY, Capability.ONE_BATCH})
NEEDS = OF_TABLES | SMOOTH_LOSS | {Capability.IDENTITY_LINK, Capability.SMOOTH_PENALTY, Capability.ALL_PENALISED}
NEEDS |= {Capability.ONE_PART, Capability.COLUMN_ACCESS}


@dataclass(kw_only=True)
class ScalingState(State):
    """weights, empirical, mass: (d,). potentials: S, (slots x examples,). inverse: 1 / T, (n,). wait, rest: (columns,).

    S and 1 / T are empty for GIS's parallel update. wait, rest: the adaptive order's plan. by_index: the columns by
    their weights' numbers; empty for other orders. largest_sum: f# (GIS). updates, cells: weights moved and cells read
    so far. still, idle: successive passes in which no weight moved, successive certificates without progress. capped:
    steps cut short in the last pass.
    """

    weights: Floats
    potentials: Floats
    inverse: Floats
    empirical: Floats
    mass: Floats
    wait: Ints
    rest: Ints
    by_index: Ints
    n_columns: int
    n_cells: int
    largest_sum: float
    rng: np.random.Generator
    reference: float
    updates: int = 0
    cells: int = 0
    still: int = 0
    capped: int = 0
    best_primal: float = float("inf")
    best_norm: float = float("inf")
    idle: int = 0

    def complaint(self, fresh: Self) -> str:
        of_data = ("empirical", "mass", "by_index", "n_columns", "n_cells", "largest_sum", "reference")
        odd = [name for name in of_data if not np.array_equal(getattr(self, name), getattr(fresh, name))]
        if odd:
            return f"{odd[0]} is not that of the data"
        waits = (self.wait >= 1) & (self.wait <= LONGEST) & (self.rest >= 0) & (self.rest < LONGEST)
        if (self.potentials < 0).any() or not waits.all():
            return "potentials or the plan of visits are invalid"
        return super().complaint(fresh)


def order_option(default: Order) -> Order:
    """Declare the option of the order in which weights are visited."""
    help = (
        "order of the weights: index (by their numbers), cyclic (frequent features first), permuted differently in "
        "each pass, or adaptive (by turns, weights that gain little for their cost less often)"
    )
    return option(default, help, one_of(Order))


def newton_tol_option() -> float:
    """Declare the option of how exactly the functions of single weights are minimised."""
    return option(1e-5, "one-variable problems are solved to a derivative of at most this", POSITIVE)


@dataclass(frozen=True)
class ScalingSolver(ScheduledSolver[ScalingState]):
    """A method: an approximate function (`function`, a name of the core's) and the parameters of its minimiser."""

    function: ClassVar[str]
    #: Whether the function takes f#, the largest sum of an example's features.
    needs_largest_sum = False
    requires = NEEDS | {Capability.NON_NEGATIVE_FEATURES}
    rate = "linear"
    proof = "Huang et al. 2010, Theorems 2, 3 and 5: O(log 1/eps)"
    default_max_passes = 2000

    order: Order = order_option("cyclic")

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> ScalingState:
        missing = OF_TABLES - problem.capabilities()
        if self.keeps_cells and missing:
            needed = f"a table of examples and labels needs {listed(missing)}"
            raise ValueError(f"{self.name}: {needed}; update='parallel' has no table")
        check_data(problem)
        constants, weights, reference = problem.sums.scaling_constants, np.zeros(problem.n_weights), 0.0
        columns = constants.weights
        if problem.l2 == 0:
            reference = sqrt(problem.norm2(problem.value_and_gradient(weights)[1]))
        if warm_start is not None:  # padding stays 0: no step would move it
            weights[columns] = start_weights(problem, warm_start)[columns]
        state = ScalingState(
            weights=weights,
            potentials=np.empty(problem.n_slots if self.keeps_cells else 0),
            inverse=np.empty(problem.n_examples if self.keeps_cells else 0),
            empirical=constants.empirical,
            mass=constants.mass,
            wait=np.ones(len(columns), dtype=np.int64),
            rest=np.zeros(len(columns), dtype=np.int64),
            by_index=np.argsort(columns) if self.order == "index" else np.empty(0, dtype=np.int64),
            n_columns=len(columns),
            n_cells=constants.n_cells,
            largest_sum=problem.sums.scaling_largest_sum() if self.needs_largest_sum else 0.0,
            rng=rng,
            reference=reference,
        )
        self.refresh(problem, state)
        return state

    @property
    def keeps_cells(self) -> bool:
        """Whether S and T are kept."""
        return True

    def refresh(self, problem: Problem, state: ScalingState) -> None:
        if self.keeps_cells:
            scaling_refresh(_part(problem).native, state.weights, state.potentials, state.inverse, problem.n_jobs)

    def columns(self, state: ScalingState) -> Ints:
        if self.order == "permuted":
            return state.rng.permutation(state.n_columns)
        return state.by_index if self.order == "index" else np.arange(state.n_columns, dtype=np.int64)

    @abstractmethod
    def minimiser(self, problem: Problem) -> dict[str, Any]:
        """Return the core's options for minimising the functions of single weights."""

    def core_options(self, problem: Problem, **more: Any) -> _core.ScalingOptions:
        given = {"l2": problem.l2, "function": self.function, "max_newton": MOST_NEWTON, **self.minimiser(problem)}
        return _core.ScalingOptions(**given, **more)

    def step(self, problem: Problem, state: ScalingState) -> None:
        if state.capped or state.still or (state.epoch and state.epoch % REFRESH == 0):
            self.refresh(problem, state)
        if state.still:  # visit all columns, to see whether none moves any more
            state.rest[:] = 0
        report = self.epoch(problem, state)
        state.epoch += 1
        state.still = 0 if report.updates else state.still + 1
        state.capped = report.capped
        state.updates += report.updates
        state.cells += report.cells
        state.visits = -(-state.cells * len(problem.active) // max(state.n_cells, 1))
        state.gain = report.gain
        if not np.isfinite(state.weights).all():
            worst = int(np.flatnonzero(~np.isfinite(state.weights))[0])
            raise DivergenceError(f"{self.name}: the weight of {problem.sums.describe_weight(worst)} is not finite")

    def epoch(self, problem: Problem, state: ScalingState) -> ScalingReport:
        part = _part(problem)
        names = ("weights", "potentials", "inverse", "empirical", "mass", "largest_sum")
        cells = _core.ScalingState(part.native, **{name: getattr(state, name) for name in names})
        if self.order == "adaptive":
            plan = _core.VisitPlan(part.native, wait=state.wait, rest=state.rest)
            return _core.scaling_rounds(cells, plan, self.core_options(problem))
        return _core.scaling_epoch(cells, self.columns(state), self.core_options(problem, n_jobs=problem.n_jobs))

    def certificate(self, problem: Problem, state: ScalingState) -> Certified:
        primal, gradient = problem.value_and_gradient(state.weights)
        norm = sqrt(problem.norm2(gradient))  # what `finished` uses where l2 = 0
        certificate = replace(problem.certificate_at(primal, gradient, state.weights), gradient_norm=norm)
        return certified_at(problem, certificate, state.weights.copy(), primal, gradient)

    def check_due(self, state: ScalingState, tol: float) -> bool:
        return state.still > 1 or super().check_due(state, tol)  # at once if no weight moves any more

    def observe(self, problem: Problem, state: ScalingState, certificate: Certificate) -> None:
        down = certificate.primal < state.best_primal - 4e-16 * abs(state.best_primal)
        state.idle = 0 if down or certificate.gradient_norm < 0.95 * state.best_norm else state.idle + 1
        state.best_primal = min(state.best_primal, certificate.primal)
        state.best_norm = min(state.best_norm, certificate.gradient_norm)

    def is_stalled(self, state: ScalingState) -> bool:
        return state.idle >= PATIENCE or state.still > 1  # the second pass used recomputed S and T

    def finished(self, problem: Problem, state: ScalingState, certificate: Certificate, tol: float) -> Status | None:
        if problem.l2 > 0:
            return super().finished(problem, state, certificate, tol)
        small = tol > 0 and certificate.gradient_norm <= tol * state.reference
        return "no certificate" if small else ("stalled" if self.is_stalled(state) else None)

    def remark(self, problem: Problem, state: ScalingState) -> str:
        text = f"{state.updates} updates of single weights"
        if problem.l2 == 0:
            text += f", {norm_text(problem, problem.value_and_gradient(state.weights)[1], state.reference)}"
        return text

    def check_end(self, problem: Problem, state: ScalingState, status: Status) -> None:
        if problem.l2 == 0:
            warn_of_infinity(self.name, problem, state)


@dataclass(frozen=True)
class ParallelSolver(ScalingSolver):
    """Algorithm 2, or Algorithm 1 with the same function."""

    update: UpdateKind = option(
        "parallel", "parallel: all steps at once; sequential: one after the other", one_of(UpdateKind)
    )
    newton_tol: float = newton_tol_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.update == "parallel" and self.order == "adaptive":
            raise ValueError("order='adaptive' needs update='sequential': in parallel all weights move at once")

    def minimiser(self, problem: Problem) -> dict[str, Any]:
        return {"parallel": self.update == "parallel", "newton_tol": self.newton_tol}


def _part(problem: Problem) -> Part:
    (part,) = problem.sums.in_memory()
    return part


def check_data(problem: Problem) -> None:
    """Warn of features and labels about which the data tell nothing; without a penalty, refuse an infinite optimum."""
    describe, constants = problem.sums.describe_weight, problem.sums.scaling_constants
    empirical, columns = constants.empirical, constants.weights
    unseen = np.setdiff1d(constants.labels, constants.gold)
    if unseen.size:
        text = f"label {unseen[0]} is not the gold label of any example: its features are only held down"
        warnings.warn(text, FeatureWarning, stacklevel=6)
    empty = np.sort(columns[constants.mass[columns] == 0])
    if empty.size:
        more = f" (and {empty.size - 1} more)" if empty.size > 1 else ""
        where = "everywhere" if len(problem.active) == problem.n_examples else "in every example of positive weight"
        text = f"{describe(int(empty[0]))}{more} is 0 {where}: its weight stays 0"
        warnings.warn(text, FeatureWarning, stacklevel=6)
    if problem.l2 > 0:
        return
    lowest, highest = problem.sums.scaling_extremes()
    room = highest - lowest > 1e-12 * np.maximum(np.abs(highest), np.abs(lowest))
    never = np.flatnonzero(room & (empirical - lowest <= 1e-12 * (highest - lowest)))
    if never.size:
        raise ValueError(
            f"{describe(int(never[0]))} never occurs with the gold label: without a penalty its best weight "
            f"is -infinity ({never.size} such features); take l2 > 0, or leave out pairs that were not observed"
        )
    always = np.flatnonzero(room & (highest - empirical <= 1e-12 * (highest - lowest)))
    if always.size:
        text = f"{describe(int(always[0]))} never occurs with a wrong label: without a penalty its best weight "
        warnings.warn(f"{text}is +infinity ({always.size} such features)", FeatureWarning, stacklevel=6)


def warn_of_infinity(name: str, problem: Problem, state: ScalingState) -> None:
    """Without a penalty: warn if the weights grow to infinity, and name the largest one."""
    worst = int(np.abs(state.weights).argmax())
    weight = float(state.weights[worst])
    if problem.sums.scaling_separates(state.weights):
        reason = "the weights separate the training data, so that the optimum without a penalty is at infinity"
    elif abs(weight) > GROWN * problem.loss.temperature:
        reason = "the optimum without a penalty may be at infinity"
    else:
        return
    text = f"{name}: {reason}; the largest weight is {weight:.4g}, of {problem.sums.describe_weight(worst)}."
    warnings.warn(f"{text} Take l2 > 0.", ConvergenceWarning, stacklevel=6)
