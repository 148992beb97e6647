"""One epoch of each solver: a state whose arrays are updated in place, an order of visits, options.

core/solvers/*.h describes the methods; problem/tasks.py describes functions that sum over examples.
"""

from typing import Any, Final, overload

from numpy.typing import NDArray

from partwise.support.arrays import Floats, Ints

from .objective import Objective
from .structures import Structure

class _Ascent:
    visits: int
    dual_gain: float

class EgReport(_Ascent):
    rejected: int
    lanes: int
    rounds: int
    taken_back: int

class EgState:
    """State of EG: scores, marginals per slot; entropies, step_sizes per example; plane: u where l1 > 0."""

    def __init__(
        self,
        objective: Objective,
        *,
        weights: Floats,
        scores: Floats,
        marginals: Floats,
        entropies: Floats,
        step_sizes: Floats,
        plane: Floats | None = None,
    ) -> None: ...

class EgOptions:
    """Options of EG; round_size: visits of a lane between exchanges (0: chosen by the work)."""

    def __init__(
        self,
        *,
        l2: float,
        adaptive: bool = True,
        growth: float = 1.05,
        max_step: float = ...,
        n_jobs: int = 1,
        round_size: int = 0,
        l1: float = 0.0,
        temperature: float | None = None,
    ) -> None: ...

@overload
def eg_epoch(states: list[EgState], order: Ints, options: EgOptions) -> EgReport:
    """Visit the examples of `order`, numbered through all batches; the batches' states share weights and plane."""

@overload
def eg_epoch(state: EgState, order: Ints, options: EgOptions) -> EgReport: ...
def eg_batch_step(
    objective: Objective, weights: Floats, step: float, scores: Floats, moved: Floats, n_jobs: int = 1
) -> tuple[Floats, float, float, float]: ...
def eg_primal_point(
    objective: Objective, z: Floats, cost_scale: float, old_cost_scale: float, n_jobs: int = 1
) -> tuple[Floats, float, float, float]: ...
def gold_features(objective: Objective, n_jobs: int = 1) -> Floats: ...

class MatchReport:
    inferences: int
    unmatched: int
    largest: float

def match_counts(
    objective: Objective, counts: Floats, scores: Floats, *, tolerance: float, max_inferences: int, n_jobs: int = 1
) -> MatchReport:
    """Change the scores to those of Gibbs distributions with these expected counts.

    tolerance: the sum of differences in counts over the sum of counts; unmatched: examples that are further off after
    max_inferences; largest: the largest difference.
    """

def check_clique_marginals(objective: Objective, cliques: Floats, n_jobs: int = 1) -> tuple[float, str]:
    """Return the largest inconsistency of marginals (inf: unknown) and why they are refused, or "".

    Raise ValueError where they are negative or do not sum to 1. Examples of weight zero are left out.
    """

class SmoReport(_Ascent):
    steps: int

class SmoState:
    def __init__(self, objective: Objective, *, weights: Floats, cliques: Floats, gaps: Floats) -> None: ...

class SmoOptions:
    def __init__(self, *, l2: float) -> None: ...

def smo_epoch(state: SmoState, order: Ints, options: SmoOptions) -> SmoReport:
    """Visit these examples; each visit moves mass from one labelling to another."""

class BcfwReport:
    visits: int
    gap_estimate: float
    steps: int

class BcfwState:
    """State of BCFW: counts s * mu per slot; mass s and linear = kappa <s mu, c> per example; lag: weights - average.

    average: steps so far, scale of lag, b of the weighted average; gaps: each block's gap at its last visit.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        weights: Floats,
        counts: Floats,
        mass: Floats,
        linear: Floats,
        lag: Floats,
        average: Floats,
        gaps: Floats | None = None,
    ) -> None: ...

class BcfwOptions:
    def __init__(self, *, l2: float) -> None: ...

def bcfw_epoch(state: BcfwState, order: Ints, options: BcfwOptions) -> BcfwReport: ...

class BcfwSetReport(_Ascent):
    steps: int
    merged: int
    work: int
    gap_estimate: float
    bound: float

class BcfwSetState:
    def __init__(self, objective: Objective, *, weights: Floats, sets: WorkingSets, gaps: Floats) -> None: ...

class BcfwSetOptions:
    """Options of BCFW; search: ask the oracle, or visit the labellings kept. steps: at most, per visit.

    Labellings of coefficient 0 with a stamp of at most now - keep are forgotten; now: this pass's stamp.
    """

    def __init__(
        self,
        *,
        l2: float,
        search: bool = True,
        pairwise: bool = True,
        steps: int = 1,
        now: int = 0,
        keep: int = 0,
        max_bytes: int = ...,
        violators: int = 1,
    ) -> None: ...

def bcfw_set_epoch(state: BcfwSetState, order: Ints, options: BcfwSetOptions) -> BcfwSetReport: ...

class ViolatorReport:
    visits: int
    added: int
    merged: int
    losses: float
    largest: float
    total: float

def find_violators(
    objective: Objective,
    weights: Floats,
    sets: WorkingSets,
    order: Ints,
    *,
    epsilon: float,
    now: int = 0,
    max_bytes: int = ...,
) -> ViolatorReport:
    """Ask the oracle at fixed weights and keep labellings that violate by more than epsilon."""

def slot_curvatures(objective: Objective, examples: Ints) -> Floats | None: ...

class SdcaReport(_Ascent):
    iterations: int
    refused: int

def sdca_start(objective: Objective, reach: float, scores: Floats, n_jobs: int = 1) -> Floats:
    """Turn slot scores into logarithms of Gibbs probabilities, in place; return the entropies.

    Scores are first clipped to the gold slot's score plus or minus `reach`; unused slots get 0.
    """

class SdcaState:
    """State of SDCA: scores are logarithms of probabilities; entropies and last gains of the examples."""

    def __init__(
        self,
        objective: Objective,
        *,
        curvatures: Floats,
        weights: Floats,
        scores: Floats,
        entropies: Floats,
        gains: Floats,
        plane: Floats | None = None,
    ) -> None: ...

class SdcaOptions:
    """Options of SDCA; a quadratic of strength `pull` holds the weights from pulled[0] to pulled[1] to a centre."""

    def __init__(self, *, l2: float, l1: float = 0.0, pulled: tuple[int, int] = (0, 0), pull: float = 1.0) -> None: ...

def sdca_epoch(state: SdcaState, order: Ints, options: SdcaOptions) -> SdcaReport: ...

class SdcaLineReport(_Ascent):
    trials: int

def clique_starts(structure: Structure) -> Ints: ...
def cliques_of_scores(structure: Structure, scores: Floats, n_jobs: int = 1) -> Floats: ...
def read_cliques(structure: Structure, cliques: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]: ...
def entropy_along(
    structure: Structure, i: int, cliques: Floats, direction: Floats, step: float
) -> tuple[float, float, float]:
    """Return the entropy at cliques + step * direction, and its first two derivatives by the step."""

class SdcaLineState:
    def __init__(
        self,
        objective: Objective,
        *,
        weights: Floats,
        cliques: Floats,
        counts: Floats,
        entropies: Floats,
        gaps: Floats,
        steps: Floats,
        plane: Floats | None = None,
    ) -> None: ...

class SdcaLineOptions:
    def __init__(self, *, l2: float, line_tol: float, l1: float = 0.0) -> None: ...

def sdca_line_epoch(state: SdcaLineState, order: Ints, options: SdcaLineOptions) -> SdcaLineReport: ...

class WorkingColumns:
    """The entries of some weights (ascending) in slots of examples, where a labelling is one part."""

    def __init__(self, objective: Objective, selected: Ints, rows: bool = True) -> None: ...
    num_entries: Final[int]

class CdL1Report:
    sweeps: int
    steps: int
    violation: float

class CdL1State:
    """State of sweeps; unscaled: exp of scores up to a factor per example; sums: those of `unscaled`."""

    def __init__(self, columns: WorkingColumns, *, weights: Floats, unscaled: Floats, sums: Floats) -> None: ...

class CdL1Options:
    def __init__(self, *, l1: float, l2: float, max_sweeps: int, tol: float, seed: int = 0) -> None: ...

def cd_l1(state: CdL1State, options: CdL1Options) -> CdL1Report:
    """Sweep over the columns until no coordinate's violation is above tol."""

def cd_l1_model(state: CdL1State, options: CdL1Options, entropies: Floats) -> CdL1Report:
    """Make one Newton step for all weights of the columns, by sweeps on the quadratic model.

    Afterwards `unscaled` and `entropies` are the probabilities that the model expects and their entropies.
    """

class ScalingReport:
    updates: int
    cells: int
    searches: int
    capped: int
    gain: float

def scaling_refresh(
    objective: Objective, weights: Floats, potentials: Floats, inverse: Floats, n_jobs: int = 1
) -> None:
    """Write S and 1/T at these weights: slot r of example i at potentials[r * n + i], scaled to sum to 1."""

def scaling_constants(objective: Objective) -> tuple[Floats, Floats, Ints, Ints, int]:
    """Return (empirical, mass, weight of each column, slots that are labellings, number of cells)."""

def scaling_extremes(objective: Objective) -> tuple[Floats, Floats]: ...
def scaling_largest_sum(objective: Objective) -> float: ...
def scaling_separates(objective: Objective, weights: Floats, n_jobs: int = 1) -> bool: ...
def scaling_expectations(objective: Objective, weights: Floats, n_jobs: int = 1) -> Floats: ...

class ScalingState:
    """State of iterative scaling, as `scaling_refresh` and `scaling_constants` give it; largest_sum: for "gis"."""

    def __init__(
        self,
        objective: Objective,
        *,
        weights: Floats,
        potentials: Floats,
        inverse: Floats,
        empirical: Floats,
        mass: Floats,
        largest_sum: float,
    ) -> None: ...

class ScalingOptions:
    """Options of scaling; function: "gis", "iis", "scgis", "cd" or "log", minimised as core/solvers/scaling.h says."""

    def __init__(
        self,
        *,
        l2: float,
        function: str,
        parallel: bool = False,
        search_bound: str = "third-order",
        beta: float = 0.5,
        gamma: float = 0.001,
        newton_tol: float = 1e-5,
        max_newton: int = 1,
        n_jobs: int = 1,
    ) -> None: ...

def gis_update(
    weights: Floats,
    order: Ints,
    *,
    empirical: Floats,
    expectations: Floats,
    largest_sum: float,
    temperature: float,
    options: ScalingOptions,
) -> ScalingReport:
    """Update the weights of these numbers in parallel."""

class VisitPlan:
    """The columns that are due (core/solvers/visit_plan.h); `wait` and `rest` have one number per column."""

    def __init__(self, objective: Objective, *, wait: Ints, rest: Ints) -> None: ...

def scaling_function(state: ScalingState, k: int, z: float, options: ScalingOptions) -> float:
    """Return A_t(z) of column k."""

def scaling_epoch(state: ScalingState, order: Ints, options: ScalingOptions) -> ScalingReport: ...
def scaling_rounds(state: ScalingState, plan: VisitPlan, options: ScalingOptions) -> ScalingReport:
    """Visit columns that are due until as many cells were read as all columns have, on one thread."""

class WorkingSets:
    """Labellings kept for each example, each with a coefficient and the stamp of its last search."""

    def __init__(self, num_examples: int) -> None: ...
    @staticmethod
    def from_arrays(
        example_ptr: Ints, labelling_ptr: Ints, slots: Ints, counts: Floats, coefficients: Floats, stamps: Ints
    ) -> WorkingSets:
        """Return sets from arrays as in `ActiveSet`, with a stamp per labelling."""
    num_examples: Final[int]
    num_atoms: Final[int]
    bytes: Final[int]
    def check(self, objective: Objective, n_jobs: int = 1) -> None:
        """Raise ValueError unless the labellings (or, with fractional counts, mixtures) keep the structure's masks."""
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arguments of `from_arrays`."""

def likely_labellings(objective: Objective, scores: Floats, most: int) -> WorkingSets:
    """Return the most probable labellings of Gibbs distributions, with normalised probabilities."""

class DcdReport(_Ascent):
    steps: int
    added: int
    removed: int
    merged: int
    work: int
    gap_estimate: float
    violation: float

class DcdState:
    def __init__(self, objective: Objective, *, weights: Floats, sets: WorkingSets) -> None: ...

class DcdOptions:
    """Options of DCD; search: ask the oracle; update: visit working sets; delta: least violation of a new labelling."""

    def __init__(
        self,
        *,
        l2: float,
        search: bool = True,
        update: bool = True,
        delta: float = 0.0,
        seed: int = 0,
        max_bytes: int = ...,
        violators: int = 1,
    ) -> None: ...

def dcd_epoch(state: DcdState, order: Ints, options: DcdOptions) -> DcdReport: ...

class OnlineReport:
    visits: int
    mistakes: int
    loss: float
    bound: float
    mass: float

class MiraReport:
    visits: int
    mistakes: int
    left_out: int
    mass: float

class OnlineState:
    """State of an online method; sum: the weighted sum of the iterates; plane: u."""

    def __init__(
        self, objective: Objective, *, weights: Floats, sum: Floats | None = None, plane: Floats | None = None
    ) -> None: ...

class SgdOptions:
    """Options of SGD; rule: "reciprocal", "power" or "bottou"; first: visits made before."""

    def __init__(self, *, l2: float, step_size: float, rule: str, n: float, first: float) -> None: ...

def perceptron_epoch(state: OnlineState, order: Ints) -> OnlineReport: ...
def sgd_epoch(state: OnlineState, order: Ints, options: SgdOptions) -> OnlineReport: ...
def mira_epoch(state: OnlineState, order: Ints, k: int) -> MiraReport: ...
def most_labellings(objective: Objective, k: int) -> int:
    """Return the largest number of labellings of an example of positive weight, at most k."""

def wrong_parts(objective: Objective, weights: Floats, examples: Ints) -> float:
    """Return the weighted number of wrong parts of the examples' best labellings."""

def sum_of_losses(objective: Objective, weights: Floats, examples: Ints) -> float: ...
