"""The objective, its dual and the gap: the only place where they are written.

Example i has slot scores theta_i = A_i w, gold counts g_i, costs c_i and a weight omega_i (`sample_weight`):

    P(w) = l2/2 |w|^2 + sum_i omega_i phi(smax_tau(theta_i + kappa c_i) - <theta_i, g_i>)
    smax_tau(v) = max over distributions p on Y_i of <E_p[counts], v> + tau H(p)

A dual point gives each example a distribution p_i over labellings (mu_i = E_{p_i}[counts], H_i its entropy) and a mass
s_i (1 for the identity link, >= 0 for the squared link). Everything the dual needs of it is one vector and one number,

    u = sum_i omega_i s_i A_i'(g_i - mu_i),       b = sum_i omega_i [s_i (kappa <mu_i, c_i> + tau H_i) - phi*(s_i)],
    D = b - |u|^2 / (2 l2),                       w(alpha) = u / l2.

D <= min P <= P(w) for every dual point and every w. (u, b) is also a plane below the sum of losses: it lies under it
everywhere, and the dual point that the oracle answers at w (`plane`) touches it at w. There

    P(w) - D = |l2 w - u|^2 / (2 l2) = |grad P(w)|^2 / (2 l2),

so that every method for a smooth loss has a certificate. A mean of planes is a plane below, which is how averaged and
bundle methods are certified. With l2 = 0 the dual is -inf unless u = 0: there is no such certificate.

With the elastic net R(w) = l1 |w|_1 + l2/2 |w|^2 for the penalty, D = b - R*(u), R*(u) = |soft(u, l1)|^2 / (2 l2),
soft(u, l1) = sign(u) max(|u| - l1, 0); with l2 = 0, R* is 0 for |u| <= l1 and infinite elsewhere. The gold labellings
are a dual point too, with u = 0 and b = 0, so a mean of any plane with theirs, (s u, s b), is a plane: the best s is
taken, and a u outside of that box costs no certificate.

The sums over examples are done by `_core.Objective`; the penalty enters here.
"""

import copy
import math
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core import FeatureMap, Hessian, Objective, Structure, all_scores, dot, slot_curvatures
from ..dual import DualPoint
from ..losses import Loss, get_loss
from ..penalties import L2, ElasticNet, Penalty
from ..result import Certificate
from ..rounding import Rounding
from ..second_derivatives import SecondDerivatives
from ..structures.capabilities import structure_capabilities
from ..threads import count_threads
from .batch import Batch, Gold, LabelledBatch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Examples whose features are looked at to tell a problem's capabilities.
SAMPLE = 20

T = TypeVar("T")


class Problem:
    """Data, loss and penalty: the objective of the module's docstring.

    Parameters
    ----------
    features : FeatureMap
        The maps A_i.
    structure : Structure
        The sets of labellings Y_i.
    gold : (indptr, slots, counts)
        Gold labellings as from `structure.encode`; each must lie in Y_i.
    loss : str or Loss
    penalty : L2, ElasticNet or float
        A number is the strength l2.
    sample_weight : array of n_examples, optional
        omega; zero weights are allowed.
    cost : array, optional
        One value per slot, all examples end to end; by default the structure's own. Costs are finite, >= 0, and 0 on
        the slots of gold labellings.
    n_jobs : int
        Threads; -1 for all processors, and never more than those. Values and gradients have the same bits for any
        number.
    """

    def __init__(
        self,
        features: FeatureMap,
        structure: Structure,
        gold: Gold,
        loss: str | Loss,
        penalty: Penalty | float,
        *,
        sample_weight: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.features = features
        self.structure = structure
        self.gold = gold
        self.loss = get_loss(loss)
        self.penalty = penalty if isinstance(penalty, L2 | ElasticNet) else L2(float(penalty))
        self.n_jobs = count_threads(n_jobs)
        self.n_examples = structure.num_examples
        if self.n_examples == 0:
            raise ValueError("a problem needs at least one example")
        batch = Batch(structure, features)
        _check_penalty(self.penalty, features)
        labelled = LabelledBatch(batch, gold, sample_weight, cost)
        self.n_weights = features.num_weights
        self.sample_weight = labelled.sample_weight
        if not self.sample_weight.any():
            raise ValueError("all sample weights are zero")
        self.objective = Objective(
            structure,
            features,
            *gold,
            self.loss.temperature,
            self.loss.cost_scale,
            self.loss.link,
            labelled.cost,
            self.sample_weight,
        )
        self.objective.check_gold()
        self._bounds: list[Rounding] = []  # made when first needed, and shared with copies under other penalties

    @property
    def l2(self) -> float:
        return self.penalty.strength

    @property
    def l1(self) -> float:
        return self.penalty.l1

    @cached_property
    def active(self) -> Ints:
        """Examples of positive weight, the ones that a pass visits."""
        return np.flatnonzero(self.sample_weight > 0).astype(np.int64)

    def with_n_jobs(self, n_jobs: int | None) -> "Problem":
        """The same problem on another number of threads."""
        if n_jobs is None or count_threads(n_jobs) == self.n_jobs:
            return self
        other = copy.copy(self)
        other.n_jobs = count_threads(n_jobs)
        return other

    def with_penalty(self, penalty: Penalty | float) -> "Problem":
        """The same data and loss under another penalty (nothing is copied)."""
        other = copy.copy(self)
        other.penalty = penalty if isinstance(penalty, L2 | ElasticNet) else L2(float(penalty))
        _check_penalty(other.penalty, self.features)
        return other

    def capabilities(self) -> frozenset[str]:
        """What a solver can count on here; compared with `Solver.requires`."""
        return self._data_capabilities.union(self.loss.capabilities(), self.penalty.capabilities())

    @cached_property
    def _data_capabilities(self) -> frozenset[str]:
        structure = structure_capabilities(self.structure)
        found = structure | self.features.capabilities()
        # Where a labelling is one slot, its block of the dual is simple if A_i A_i' is diagonal; a few examples tell.
        if "one part" in structure:
            some = np.linspace(0, self.n_examples - 1, min(SAMPLE, self.n_examples)).astype(np.int64)
            if slot_curvatures(self.objective, some) is not None:
                found |= {"diagonal blocks"}
        return found

    # geometry: with kernels weights are coefficients, and `w @ w` means nothing

    def dot(self, weights: Floats, other: Floats) -> float:
        """<w, v> in weight space."""
        return self.features.dot(weights, other, self.n_jobs)

    def norm2(self, weights: Floats) -> float:
        """|w|^2 in weight space."""
        return self.dot(weights, weights)

    # primal

    def value(self, weights: Floats) -> float:
        """P(w)."""
        return self.objective.value(weights, self.n_jobs) + self.penalty_value(weights)

    def penalty_value(self, weights: Floats) -> float:
        """l1 |w|_1 + l2/2 |w|^2."""
        absolute = self.l1 * float(np.abs(weights).sum()) if self.l1 else 0.0
        return absolute + self._half_square(weights)

    def _half_square(self, weights: Floats) -> float:
        """l2/2 |w|^2. Without a penalty weights may be so large that |w|^2 is infinite, and 0 times that no number."""
        return 0.5 * self.l2 * self.norm2(weights) if self.l2 else 0.0

    def value_and_gradient(self, weights: Floats, marginals: Floats | None = None) -> tuple[float, Floats]:
        """P(w) and its gradient l2 w - u (a subgradient where P has a kink).

        marginals: an array for the expected counts under p_w, slots end to end (those of weight zero are left alone).
        """
        if marginals is None:
            value, u, _ = self.objective.plane(weights, self.n_jobs)
        else:
            value, u, _, _ = self.objective.plane_at(weights, self.loss.temperature, marginals, self.n_jobs)
        gradient = self.l2 * weights
        gradient -= u
        return value + self._half_square(weights), gradient

    @cached_property
    def hessian_of_marginals(self) -> bool:
        """Whether `hessian` can do with the expected counts at w: one part a labelling, identity link."""
        return self.loss.link == "identity" and "one part" in structure_capabilities(self.structure)

    def hessian(self, weights: Floats, every: int = 1, marginals: Floats | None = None) -> SecondDerivatives:
        """v -> (Hessian of P at w) v, for temperature > 0 and structures with the capability "covariance".

        The slot scores at w are kept while the function is. With the squared link P has second derivatives only where
        no margin violation is zero; elsewhere those of one side are taken. every > 1: an estimate from a part of the
        examples, where there are enough of them. marginals: as `value_and_gradient` gave them at w, to save the work of
        finding them once more (see `hessian_of_marginals`).
        """
        losses = Hessian(self.objective, weights, self.n_jobs, every, marginals)
        return SecondDerivatives(losses, self.l2, self.n_jobs)

    # dual

    def dual_terms(self, point: DualPoint) -> tuple[Floats, float]:
        """(u, b) of a dual point, recomputed from its parts."""
        if point.kind == "gibbs":
            return self.objective.dual_terms_gibbs(_given(point.scores), self.n_jobs)
        if point.kind == "linear":
            return self.objective.dual_terms_linear(*point.linear(), self.n_jobs)
        if point.kind == "aggregate":
            return _given(point.u), _given(point.b)
        mass: Floats | None
        entropies: Floats | None
        if point.kind == "slots":
            counts, mass, entropies = _given(point.counts), point.mass, point.entropies
        elif point.kind == "cliques":
            counts, entropies = self._slots_from_cliques(_given(point.marginals))
            mass = None
        else:
            if self.loss.temperature > 0:
                raise ValueError("the entropy of an active set is unknown: it is a dual point at temperature 0 only")
            return self.objective.dual_terms_sparse(*_given(point.active).used_slots(self.n_examples), self.n_jobs)
        return self.objective.dual_terms_slots(counts, mass, entropies, self.n_jobs)

    def dual_value(self, point: DualPoint) -> float:
        """D of a dual point; -inf if there is no penalty."""
        return self.dual_of_plane(*self.dual_terms(point))

    def weights_from_dual(self, point: DualPoint) -> Floats:
        """w(alpha) = u / l2, or soft(u, l1) / l2 with an elastic net."""
        if self.l2 == 0:
            raise ValueError("with l2 = 0 a dual point determines no weights")
        u = self.dual_terms(point)[0]
        return (np.sign(u) * np.maximum(np.abs(u) - self.l1, 0.0) if self.l1 else u) / self.l2

    def oracle_point(self, weights: Floats) -> DualPoint:
        """The distributions p_w that attain smax at w (temperature > 0): slot scores (theta + kappa c) / tau."""
        if not self.loss.smooth:
            raise ValueError(f"loss {self.loss.name!r} has temperature 0: its oracle answers no Gibbs distribution")
        tau = self.loss.temperature
        return DualPoint.of_scores(self.linear_scores(weights / tau, self.loss.cost_scale / tau))

    def linear_scores(self, z: Floats, cost_scale: float) -> Floats:
        """Slot scores A_i z + cost_scale * c_i of all examples end to end."""
        scores = all_scores(self.structure, self.features, z, self.n_jobs)
        if cost_scale:
            scores += cost_scale * self.slot_costs()
        return scores

    def slot_costs(self) -> Floats:
        """c_i of all examples end to end."""
        return -self.objective.near_gold_scores(1.0)

    # certificates

    def certificate(self, weights: Floats, point: DualPoint) -> Certificate:
        """P(w), D(alpha) and their difference, all recomputed from w and from the dual point's parts.

        Raises
        ------
        CertificateError
            If D exceeds P by more than rounding.
        """
        return self.certificate_of(self.value(weights), *self.dual_terms(point), weights)

    def certificate_of(
        self, primal: float, u: Floats, b: float, weights: Floats | None = None, carried: int = 0, off: float = 0.0
    ) -> Certificate:
        """The certificate of P(w) and a plane (u, b).

        weights: w, None for u / l2. carried: through how many updates u and b were carried along, 0 if summed afresh.
        off: what D may be off by for other reasons.
        """
        dual = self.dual_of_plane(u, b)
        rounding = off + self.rounding.of_gap(self.penalty, primal, u, b, primal - dual, weights, carried)
        return Certificate.of(primal, dual, rounding)

    def certificate_at(self, primal: float, gradient: Floats, weights: Floats) -> Certificate:
        """The certificate of w against the oracle's own answer: |grad P|^2 / (2 l2) and rounding; nothing cancels."""
        if self.l2 == 0:
            return Certificate(primal, -math.inf, math.inf, math.inf, 0.0, 0.0)
        norm2 = self.norm2(gradient)
        raw = norm2 / (2.0 * self.l2)
        resolution, of_primal = self.rounding.of_gradient_gap(self.l2, primal, norm2, weights)
        rounding = resolution + of_primal
        return Certificate(primal, primal - raw, raw + rounding, raw, rounding, resolution)

    @property
    def rounding(self) -> Rounding:
        """How far sums over this problem's examples may be off."""
        if not self._bounds:
            self._bounds.append(Rounding(self))
        return self._bounds[0]

    def dual_of_plane(self, u: Floats, b: float) -> float:
        """D = b - R*(u): b - |u|^2 / (2 l2) for the L2 penalty, -inf if l2 = 0."""
        if self.l1:
            return self._dual_of_box(u, b)
        return b - self.norm2(u) / (2.0 * self.l2) if self.l2 > 0 else float("-inf")

    def _dual_of_box(self, u: Floats, b: float) -> float:
        """max over 0 <= s <= 1 of s b - R*(s u), a concave function of s."""
        far = np.abs(u[np.abs(u) > self.l1])  # the others are inside for every s
        if not far.size:
            return b
        inside = self.l1 / float(far.max())

        def value(s: float) -> float:
            excess = np.maximum(s * far - self.l1, 0.0)
            return s * b - (dot(excess, excess) / (2.0 * self.l2) if s > inside else 0.0)

        if self.l2 == 0 or b <= 0:
            return value(inside) if b > 0 else 0.0
        low, high = inside, 1.0  # below `inside` D rises with s
        for _ in range(60):
            left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
            low, high = (left, high) if value(left) < value(right) else (low, right)
        return max(value(inside), value(1.0), value(0.5 * (low + high)))

    def _slots_from_cliques(self, marginals: Floats) -> tuple[Floats, Floats]:
        """(expected counts, entropies) of clique marginals."""
        if "cliques" not in self.structure.capabilities():
            raise ValueError(f"{type(self.structure).__name__} has no clique view")
        if self.loss.link != "identity":
            raise ValueError("clique marginals are distributions of mass 1: they fit the identity link only")
        start, counts, entropies = 0, [], []
        for i in range(self.n_examples):
            stop = start + int(self.structure.clique_offsets(i)[-1])
            block = np.ascontiguousarray(marginals[start:stop])
            counts.append(self.structure.slots_from_cliques(i, block))
            entropies.append(self.structure.entropy_of_cliques(i, block)[0])
            start = stop
        if start != len(marginals):
            raise ValueError(f"{len(marginals)} clique marginals given, the structure has {start}")
        return np.concatenate(counts), np.array(entropies)


def _check_penalty(penalty: Penalty, features: FeatureMap) -> None:
    if penalty.l1 and "explicit weights" not in features.capabilities():
        raise ValueError("an l1 penalty is about coordinates of weights: with a kernel there are none")


def _given(value: T | None) -> T:
    if value is None:
        raise ValueError("the dual point lacks the arrays of its kind")
    return value
