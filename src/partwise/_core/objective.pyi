"""The sums over examples in the objective, its dual and its second derivatives."""

from .features import FeatureMap
from .structures import Structure
from .support import Floats, Ints

class Link:
    """The link phi of a loss by its name ("identity": t; "squared": max(t, 0)^2), as core/solvers/link.h has it."""

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def least_mass(self) -> float:
        """Where the domain of phi* begins; an example's mass s lies in it."""
    @property
    def largest_mass(self) -> float: ...
    @property
    def fixed_mass(self) -> bool:
        """Whether s = 1 is the whole domain, so that phi(t) = t and dual blocks are distributions."""
    @property
    def quadratic_conjugate(self) -> bool:
        """Whether phi* is a multiple of s^2 for all s >= 0."""
    def value(self, t: float) -> float:
        """phi(t)"""
    def mass(self, t: float) -> float:
        """s = phi'(t)"""
    def second(self, t: float) -> float:
        """phi''(t)"""
    def conjugate(self, s: float) -> float:
        """phi*(s) = sup over t of s t - phi(t)"""

class Objective:
    """The sums over examples in the objective of problem.py; the penalty is not here.

    gold: CSR (indptr, slots, counts). cost: one value per slot, end to end, at least 0 and 0 on gold slots
    (None: the structure's own).
    link: "identity" or "squared".
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
    @property
    def num_examples(self) -> int: ...
    @property
    def link(self) -> Link: ...
    def check_gold(self) -> None:
        """ValueError naming the first example whose gold labelling is not in Y_i, or has a cost."""
    def cost(self, i: int) -> Floats: ...
    def gold(self, i: int) -> Floats:
        """Gold counts as a dense slot vector."""
    def value(self, weights: Floats, n_jobs: int = 1) -> float:
        """sum_i omega_i phi(smax(theta_i + kappa c_i) - <theta_i, g_i>)"""
    def margins(self, weights: Floats, temperature: float, n_jobs: int = 1) -> Floats:
        """smax(theta_i + kappa c_i) - <theta_i, g_i> at this temperature, an example; 0 where the weight is zero."""
    def plane(self, weights: Floats, n_jobs: int = 1) -> tuple[float, Floats, float]:
        """(value, u, b) at the oracle's answer alpha = p_w (or the argmax at temperature 0):
        u = sum omega s A'(g - mu) (minus the gradient of value), b = sum omega [s (kappa <mu, c> + tau H) -
        phi*(s)]."""
    def plane_of(self, weights: Floats, examples: Ints) -> tuple[float, Floats, float]:
        """The same over these examples alone, each as often as it is named."""
    def slack_plane(self, weights: Floats, with_u: bool = True, n_jobs: int = 1) -> tuple[float, Floats, float]:
        """The same for slack rescaling, max over y of c(y) (1 + <theta, counts(y) - g>): the value is an upper bound,
        (u, b) the plane of labellings that were found (u is empty unless with_u)."""
    def largest_cost(self, n_jobs: int = 1) -> float:
        """The largest kappa cost of any labelling."""
    def plane_at(
        self, weights: Floats, temperature: float, marginals: Floats, n_jobs: int = 1
    ) -> tuple[float, Floats, float, float]:
        """(value, u, b, entropy) at p ~ exp((theta + kappa c) / temperature), whatever the loss's own temperature is:
        value of the losses with this temperature; u and b of p as a point of this objective's dual; sum of omega s H.
        p's expected counts go to `marginals` (those of examples of weight zero are left alone)."""
    def dual_terms_gibbs(
        self, scores: Floats, n_jobs: int = 1, moved: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, float]:
        """(u, b) of the dual point with slot scores `scores` (all examples), mass 1. moved, where labellings are one
        part: the share of every slot's probability that stays, and in what proportions slots get the rest."""
    def dual_terms_linear(
        self, z: Floats, cost_scale: float, n_jobs: int = 1, moved: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, float]:
        """(u, b) of the dual point with slot scores A_i z + cost_scale * c_i, mass 1; the scores are never stored."""
    def dual_terms_slots(
        self, counts: Floats, mass: Floats | None, entropies: Floats | None, n_jobs: int = 1
    ) -> tuple[Floats, float]:
        """(u, b) of the dual point with expected counts s * mu (all examples), mass s (None: 1), entropies s * H
        (None: 0)."""
    def dual_terms_sparse(
        self, indptr: Ints, slots: Ints, counts: Floats, mass: Floats, n_jobs: int = 1
    ) -> tuple[Floats, float]:
        """The same with s * mu given by the slots that are used: example i's are slots[indptr[i]:indptr[i + 1]], and
        no entropies."""
    def marginals_of_scores(self, scores: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]:
        """(expected counts, entropies) of the Gibbs distributions with slot scores `scores`, all examples."""
    def near_gold_scores(self, sharpness: float) -> Floats:
        """-sharpness * cost for every slot: a start near the gold labelling."""

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

def rounding_sums(objective: Objective, fixed: float, examples: float, n_jobs: int = 1) -> RoundingSums:
    """What `rounding.Rounding` is made of; a pass over the features at most."""

class Hessian:
    """Products with the Hessian of `objective.value` at these weights (temperature > 0, capability "covariance")."""

    def __init__(
        self,
        objective: Objective,
        weights: Floats,
        n_jobs: int = 1,
        every: int = 1,
        marginals: Floats | None = None,
    ) -> None: ...
    def product(self, direction: Floats, n_jobs: int = 1) -> Floats:
        """H direction = sum_i omega_i A_i' Cov_i(A_i direction) / tau (and a rank-one share with the squared link)."""
    def diagonal(self, n_jobs: int = 1) -> Floats:
        """sum_i omega_i sum_r A_rj^2 v_r / tau, v_r the mean of p (1 - p) over the example's labels where a labelling
        is one part, else the expected count: something near the diagonal, to scale weights by."""
    @property
    def partial(self) -> bool:
        """Whether only every `every`-th run of examples is in it (weighted up to all)."""
