"""One epoch of each solver: a state that is updated in place, an order of visits, options."""

from typing import Any, overload

from numpy.typing import NDArray

from .objective import Objective
from .structures import Structure
from .support import Floats, Ints

class EgReport:
    visits: int
    dual_gain: float
    rejected: int
    lanes: int
    rounds: int
    taken_back: int

class EgState:
    """What a pass of online EG updates in place; the arrays are used where they are. scores, marginals: per slot;
    entropies, step_sizes: per example; plane: u, with l1 > 0."""

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
    """round_size: examples that a lane visits between exchanges; 0: this and the number of lanes, at most n_jobs, are
    chosen by the work. temperature: of the dual that is climbed (None: the loss's)."""

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
    """One pass of online EG over the examples of `order`, numbered through all batches: a state each, with the same
    weights and plane."""

@overload
def eg_epoch(state: EgState, order: Ints, options: EgOptions) -> EgReport: ...
def eg_batch_step(
    objective: Objective, weights: Floats, step: float, scores: Floats, moved: Floats, n_jobs: int = 1
) -> tuple[Floats, float, float, float]:
    """moved = (1 - step tau) scores + step (A w + kappa c) for all examples; may be scores itself.
    (u, b, sum omega log Z) of its Gibbs distributions p, and sum omega (H(p) + <mu, scores>): what the sum of log Z was
    before, less this, is sum omega KL(p || p before)."""

def eg_primal_point(
    objective: Objective, z: Floats, cost_scale: float, old_cost_scale: float, n_jobs: int = 1
) -> tuple[Floats, float, float, float]:
    """(u, b, sum omega log Z) of the Gibbs distributions p with slot scores A z + cost_scale * c, which are never
    stored, and sum omega (H(p) + old_cost_scale <mu, c>)."""

def gold_features(objective: Objective, n_jobs: int = 1) -> Floats:
    """sum omega A'g"""

class MatchReport:
    inferences: int
    unmatched: int
    largest: float

def match_counts(
    objective: Objective,
    counts: Floats,
    scores: Floats,
    *,
    tolerance: float,
    max_inferences: int,
    n_jobs: int = 1,
) -> MatchReport:
    """Slot scores of the Gibbs distributions with these expected counts, in place of those to start from. tolerance:
    the sum of differences in counts, over the sum of counts; unmatched: examples that are further off after
    max_inferences; largest: how far the worst is."""

def check_clique_marginals(objective: Objective, cliques: Floats, n_jobs: int = 1) -> tuple[float, str]:
    """By how much marginals fail to be those of distributions over labellings at most (inf if the structure cannot tell
    whether neighbouring cliques agree), and a complaint if neighbouring cliques disagree or a mask forbids a slot that
    they use. ValueError where they are negative or do not sum to 1. Examples of weight zero are left out."""

class SmoReport:
    visits: int
    steps: int
    dual_gain: float

class SmoState:
    """What a pass of factored SMO updates in place. cliques: clique marginals, examples end to end; gaps: the blocks'
    gaps as last seen (see smo.py)."""

    def __init__(self, objective: Objective, *, weights: Floats, cliques: Floats, gaps: Floats) -> None: ...

class SmoOptions:
    def __init__(self, *, l2: float) -> None: ...

def smo_epoch(state: SmoState, order: Ints, options: SmoOptions) -> SmoReport:
    """Visits these examples in this order; each moves mass from one labelling to another."""

class BcfwReport:
    visits: int
    gap_estimate: float
    steps: int

class BcfwState:
    """What a pass of block-coordinate Frank-Wolfe updates in place. counts: s * mu per slot; mass: s; linear:
    kappa <s mu, c> of each example; lag: weights minus their average; average: [steps so far, scale of lag, b of the
    weighted average]; gaps: the blocks' gaps as last seen (see bcfw.py)."""

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

def bcfw_epoch(state: BcfwState, order: Ints, options: BcfwOptions) -> BcfwReport:
    """One pass of block-coordinate Frank-Wolfe over the examples of `order`."""

class BcfwSetReport:
    visits: int
    steps: int
    merged: int
    work: int
    dual_gain: float
    gap_estimate: float
    bound: float

class BcfwSetState:
    """What a pass over working sets updates in place. gaps: the blocks' gaps as last seen by a search."""

    def __init__(self, objective: Objective, *, weights: Floats, sets: WorkingSets, gaps: Floats) -> None: ...

class BcfwSetOptions:
    """search: ask the oracle, or visit the labellings kept. now: this pass's stamp; labellings of coefficient 0 with a
    stamp of now - keep or older are forgotten. steps: at most, per visit."""

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

def bcfw_set_epoch(state: BcfwSetState, order: Ints, options: BcfwSetOptions) -> BcfwSetReport:
    """One pass of block-coordinate Frank-Wolfe over working sets (see bcfw.py)."""

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
    """Ask the oracle at fixed weights; labellings that violate by more than epsilon join (see cutting_plane.py)."""

def slot_curvatures(objective: Objective, examples: Ints) -> Floats | None:
    """|A_i' e_a|^2 of every slot a of these examples, end to end, -1 for slots that no labelling uses; None unless
    A_i A_i' is diagonal for all of them."""

class SdcaReport:
    visits: int
    dual_gain: float
    iterations: int
    refused: int

def sdca_start(objective: Objective, reach: float, scores: Floats, n_jobs: int = 1) -> Floats:
    """Slot scores turned into the logarithms of their Gibbs probabilities, in place (0 for slots not in use);
    differences to the gold slot's score are cut off at `reach`. Gives the entropies."""

class SdcaState:
    """What a pass of exact block ascent updates in place, for structures with one part per labelling. scores: the
    logarithms of probabilities. gains: the dual gain of each example's last visit. curvatures, which are only read: as
    from `slot_curvatures`."""

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
    """pulled: the first and the end of the weights that have no penalty, but a pull of this strength to a centre; the
    curvatures are those with l2 / pull in place of 1 for each of them."""

    def __init__(self, *, l2: float, l1: float = 0.0, pulled: tuple[int, int] = (0, 0), pull: float = 1.0) -> None: ...

def sdca_epoch(state: SdcaState, order: Ints, options: SdcaOptions) -> SdcaReport:
    """One pass of exact block ascent over the examples of `order`."""

class SdcaLineReport:
    visits: int
    trials: int
    dual_gain: float

def clique_starts(structure: Structure) -> Ints:
    """Where each example's clique marginals begin, and where the last ones end."""

def cliques_of_scores(structure: Structure, scores: Floats, n_jobs: int = 1) -> Floats:
    """Clique marginals of the Gibbs distributions with these slot scores, all examples end to end."""

def read_cliques(structure: Structure, cliques: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]:
    """(expected counts, entropies) of clique marginals."""

def entropy_along(
    structure: Structure, i: int, cliques: Floats, direction: Floats, step: float
) -> tuple[float, float, float]:
    """Entropy at cliques + step * direction, and its first two derivatives by step."""

class SdcaLineState:
    """What a pass of line searches over clique marginals updates in place. cliques: all of them, as `clique_starts`
    says; counts: per slot; entropies, gaps (as last seen), steps: per example."""

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

def sdca_line_epoch(state: SdcaLineState, order: Ints, options: SdcaLineOptions) -> SdcaLineReport:
    """One pass of line searches over the examples of `order`."""

class WorkingColumns:
    """The columns of some weights (ascending): where they meet slots of examples. One part per labelling only.

    rows: keep entries by example, too, where `cd_l1_model` gains by that.
    """

    def __init__(self, objective: Objective, selected: Ints, rows: bool = True) -> None: ...
    @property
    def num_entries(self) -> int: ...

class CdL1Report:
    sweeps: int
    steps: int
    violation: float

class CdL1State:
    """What the sweeps update in place. weights: per column; unscaled: exp of scores but for a factor per example, per
    slot; sums: their sums, per example."""

    def __init__(self, columns: WorkingColumns, *, weights: Floats, unscaled: Floats, sums: Floats) -> None: ...

class CdL1Options:
    def __init__(self, *, l1: float, l2: float, max_sweeps: int, tol: float, seed: int = 0) -> None: ...

def cd_l1(state: CdL1State, options: CdL1Options) -> CdL1Report:
    """Sweeps of coordinate descent under l1 |w|_1 + l2/2 |w|^2 until no coordinate's violation is above tol."""

def cd_l1_model(state: CdL1State, options: CdL1Options, entropies: Floats) -> CdL1Report:
    """One Newton step for all weights of the columns, from sweeps on the quadratic model.

    After it `unscaled` and `entropies` are the probabilities that the model expects and their entropies.
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
    """S and 1/T at these weights, in place: slot r of example i at potentials[r * n + i], scaled to sum to 1."""

def scaling_constants(objective: Objective) -> tuple[Floats, Floats, Ints, Ints, int]:
    """(empirical, mass, weight of each column, slots that are labellings, number of cells); see core/solvers/scaling.h.
    Needs column access and labellings of one slot each."""

def scaling_extremes(objective: Objective) -> tuple[Floats, Floats]:
    """The least and the largest value that a feature's expectation can have, one value per weight."""

def scaling_largest_sum(objective: Objective) -> float:
    """max over examples and labels of the sum of their features."""

def scaling_separates(objective: Objective, weights: Floats, n_jobs: int = 1) -> bool:
    """Whether every gold labelling of positive weight is likelier than all others."""

def scaling_expectations(objective: Objective, weights: Floats, n_jobs: int = 1) -> Floats:
    """The sum over the examples of each feature's expectation, one value per weight."""

class ScalingState:
    """What a pass of iterative scaling or coordinate descent updates in place (weights; potentials and inverse as from
    `scaling_refresh`), and what it knows of the data (empirical and mass as from `scaling_constants`, largest_sum for
    "gis")."""

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
    """function: "gis", "iis", "scgis", "cd" (the change of the objective itself) or "log"; the others are those of its
    minimiser, see core/solvers/scaling.h."""

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
    """The parallel update of GIS for the weights of these numbers, in place; it reports no cells."""

class VisitPlan:
    """Which columns are due (see core/solvers/visit_plan.h); both arrays, a number per column, are updated in place."""

    def __init__(self, objective: Objective, *, wait: Ints, rest: Ints) -> None: ...

def scaling_function(state: ScalingState, k: int, z: float, options: ScalingOptions) -> float:
    """A_t(z) of column k."""

def scaling_epoch(state: ScalingState, order: Ints, options: ScalingOptions) -> ScalingReport:
    """One pass over the columns in `order`."""

def scaling_rounds(state: ScalingState, plan: VisitPlan, options: ScalingOptions) -> ScalingReport:
    """Visits of the columns that are due until as many cells were read as all columns have; one thread."""

class WorkingSets:
    """Labellings kept for each example, each with a coefficient and a stamp (when the oracle last answered it)."""

    def __init__(self, num_examples: int) -> None: ...
    @staticmethod
    def from_arrays(
        example_ptr: Ints, labelling_ptr: Ints, slots: Ints, counts: Floats, coefficients: Floats, stamps: Ints
    ) -> WorkingSets:
        """Example i has labellings example_ptr[i]:example_ptr[i + 1]; labelling k the slots and counts
        labelling_ptr[k]:labelling_ptr[k + 1]."""
    @property
    def num_examples(self) -> int: ...
    @property
    def num_atoms(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def check(self, objective: Objective, n_jobs: int = 1) -> None:
        """Raise ValueError unless the labellings of examples with weight are labellings of the structure and keep its
        masks, or, with fractional counts, mixtures of such labellings as far as masks and maxima tell."""
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What from_arrays takes."""

def likely_labellings(objective: Objective, scores: Floats, most: int) -> WorkingSets:
    """The most probable labellings of each example's Gibbs distribution, with their probabilities over their sum."""

class DcdReport:
    visits: int
    steps: int
    added: int
    removed: int
    merged: int
    work: int
    dual_gain: float
    gap_estimate: float
    violation: float

class DcdState:
    """What a pass of dual coordinate descent updates in place."""

    def __init__(self, objective: Objective, *, weights: Floats, sets: WorkingSets) -> None: ...

class DcdOptions:
    """search: ask the oracle; update: visit the working sets. delta: least violation for which a labelling joins."""

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

def dcd_epoch(state: DcdState, order: Ints, options: DcdOptions) -> DcdReport:
    """One pass of dual coordinate descent (see dcd.py)."""

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
    """What a pass of an online method updates in place: weights, the weighted sum of the iterates, u of a plane."""

    def __init__(
        self, objective: Objective, *, weights: Floats, sum: Floats | None = None, plane: Floats | None = None
    ) -> None: ...

class SgdOptions:
    """rule: "reciprocal", "power" or "bottou"; n: examples that share the penalty; first: visits made before."""

    def __init__(self, *, l2: float, step_size: float, rule: str, n: float, first: float) -> None: ...

def perceptron_epoch(state: OnlineState, order: Ints) -> OnlineReport:
    """One pass of the perceptron (see perceptron.py)."""

def sgd_epoch(state: OnlineState, order: Ints, options: SgdOptions) -> OnlineReport:
    """One pass of stochastic gradient descent (see sgd.py)."""

def mira_epoch(state: OnlineState, order: Ints, k: int) -> MiraReport:
    """One pass of MIRA with the k best labellings (see mira.py)."""

def most_labellings(objective: Objective, k: int) -> int:
    """The largest number of labellings that an example of positive weight has, or k if that is less."""

def wrong_parts(objective: Objective, weights: Floats, examples: Ints) -> float:
    """Weighted number of parts of the examples' best labellings that the gold ones do not have."""

def sum_of_losses(objective: Objective, weights: Floats, examples: Ints) -> float:
    """Weighted sum of the examples' losses (identity link)."""
