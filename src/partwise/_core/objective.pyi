"""The sums over examples in the objective, its dual and its second derivatives."""

from typing import Final

from partwise.support.arrays import Floats, Ints

from .features import FeatureMap
from .structures import Structure

class Link:
    """The link phi of a loss by its name, as in core/solvers/link.h: phi(t), mass s = phi'(t), phi''(t), phi*(s)."""

    def __init__(self, name: str) -> None: ...
    name: Final[str]
    least_mass: Final[float]
    largest_mass: Final[float]
    fixed_mass: Final[bool]  # whether s = 1 is the whole domain of phi*, so that dual blocks are distributions
    quadratic_conjugate: Final[bool]  # whether phi* is a multiple of s^2 for all s >= 0
    def value(self, t: float) -> float: ...
    def mass(self, t: float) -> float: ...
    def second(self, t: float) -> float: ...
    def conjugate(self, s: float) -> float: ...

class Objective:
    """The sums over examples in the objective, without the penalty; problem/tasks.py describes them.

    cost: one value per slot of all examples, at least 0 and 0 on gold slots (None: the structure's own).
    """

    def __init__(
        self,
        structure: Structure,
        features: FeatureMap,
        gold_indptr: Ints,
        gold_slots: Ints,
        gold_counts: Floats,
        temperature: float,
        cost_scale: float,
        link: str,
        cost: Floats | None = None,
        sample_weight: Floats | None = None,
    ) -> None: ...
    num_examples: Final[int]
    link: Final[Link]
    def check_gold(self) -> None:
        """Raise ValueError naming the first example whose gold labelling is not in Y_i or has a positive cost."""
    def cost(self, i: int) -> Floats: ...
    def gold(self, i: int) -> Floats: ...
    def value(self, weights: Floats, n_jobs: int = 1) -> float: ...
    def margins(self, weights: Floats, temperature: float, n_jobs: int = 1) -> Floats: ...
    def plane(self, weights: Floats, n_jobs: int = 1) -> tuple[float, Floats, float]: ...
    def plane_of(self, weights: Floats, examples: Ints) -> tuple[float, Floats, float]: ...
    def slack_plane(self, weights: Floats, with_u: bool = True, n_jobs: int = 1) -> tuple[float, Floats, float]:
        """Return `plane` for slack rescaling: an upper bound of the losses, and the plane of labellings found."""
    def largest_cost(self, n_jobs: int = 1) -> float: ...
    def plane_at(
        self, weights: Floats, temperature: float, marginals: Floats, n_jobs: int = 1
    ) -> tuple[float, Floats, float, float]: ...
    def dual_terms_gibbs(
        self, scores: Floats, n_jobs: int = 1, moved: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, float]: ...
    def dual_terms_linear(
        self, z: Floats, cost_scale: float, n_jobs: int = 1, moved: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, float]: ...
    def dual_terms_slots(
        self, counts: Floats, mass: Floats | None, entropies: Floats | None, n_jobs: int = 1
    ) -> tuple[Floats, float]: ...
    def dual_terms_sparse(
        self, indptr: Ints, slots: Ints, counts: Floats, mass: Floats, n_jobs: int = 1
    ) -> tuple[Floats, float]: ...
    def marginals_of_scores(self, scores: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]: ...
    def near_gold_scores(self, sharpness: float) -> Floats: ...

class RoundingSums:
    """Sums over examples of omega x, and of omega x^2 (names in 2), for what bounds on rounding are made of.

    With an example's reach r, its number of parts m and its depth delta = fixed + sqrt(m), x is delta r (scores),
    delta m (tau + kappa max cost) (level) and (delta + examples) r (transposed).
    """

    scores: float
    level: float
    transposed: float
    scores2: float
    level2: float
    transposed2: float
    largest_reach: float

def rounding_sums(objective: Objective, fixed: float, examples: float, n_jobs: int = 1) -> RoundingSums: ...

class Hessian:
    """Products with the Hessian of `Objective.value` at these weights, for temperatures above 0."""

    def __init__(
        self, objective: Objective, weights: Floats, n_jobs: int = 1, every: int = 1, marginals: Floats | None = None
    ) -> None: ...
    def product(self, direction: Floats, n_jobs: int = 1) -> Floats:
        """Return sum_i omega_i A_i' Cov_i(A_i direction) / tau (and a rank-one share with the squared link)."""
    def diagonal(self, n_jobs: int = 1) -> Floats:
        """sum_i omega_i sum_r A_rj^2 v_r / tau, v_r the mean of p (1 - p) over the example's labels where a labelling
        is one part, else the expected count: something near the diagonal, to scale weights by."""
    partial: Final[bool]  # whether the Hessian is that of every `every`-th run of examples, weighted up to all
