"""The objective, its dual and the gap: the only place where they are written.

Example i has slot scores theta_i = A_i w, gold counts g_i, costs c_i and a weight omega_i (`sample_weight`):

    P(w) = l2/2 |w|^2 + sum_i omega_i phi(smax_tau(theta_i + kappa c_i) - <theta_i, g_i>)
    smax_tau(v) = max over distributions p on Y_i of <E_p[counts], v> + tau H(p)

A dual point gives each example a distribution p_i over labellings (mu_i = E_{p_i}[counts], H_i its entropy) and a mass
s_i (1 for the identity link, >= 0 for the squared link). Everything the dual needs of it is one vector and one number,

    u = sum_i omega_i s_i A_i'(g_i - mu_i),       b = sum_i omega_i [s_i (kappa <mu_i, c_i> + tau H_i) - phi*(s_i)],
    D = b - |u|^2 / (2 l2),                       w(alpha) = u / l2.

D <= min P <= P(w) for every dual point and every w. (u, b) is also a plane below the sum of losses: it lies under it
everywhere, and the dual point that the oracle gives at w (`plane`) touches it at w. There

    P(w) - D = |l2 w - u|^2 / (2 l2) = |grad P(w)|^2 / (2 l2),

so that every method for a smooth loss has a certificate. A mean of planes is a plane below, which is how averaged and
bundle methods are certified. With l2 = 0 the dual is -inf unless u = 0: there is no such certificate.

With the elastic net R(w) = l1 |w|_1 + l2/2 |w|^2 for the penalty, D = b - R*(u), R*(u) = |soft(u, l1)|^2 / (2 l2),
soft(u, l1) = sign(u) max(|u| - l1, 0); with l2 = 0, R* is 0 for |u| <= l1 and infinite elsewhere. The gold labellings
are a dual point too, with u = 0 and b = 0, so a mean of any plane with that one, (s u, s b), is a plane: the best s
is taken, and a u outside of that box costs no certificate.

Weights may be left out of the penalty (`penalties.Free`: intercepts). An entry of u for such a weight would make the
dual -inf, unless it is 0. So they are kept in a box, |w_j| <= bound, so large that some minimum of P lies in it: the
problem has the same minimum, the conjugate of the box is bound |u_j|, and

    D = b - R*(u of the others) - bound sum_j |u_j|,
    P(w) - D = |l2 w - u|^2 / (2 l2) over the others + sum_j (bound |u_j| - u_j w_j)     at the oracle's answer.

With a shift v (`with_shift`) the penalty is R(w) = l2/2 |w|^2 - <v, w>, and |u + v|^2, (u + v) / l2 and l2 w - v - u
stand in place of |u|^2, u / l2 and l2 w - u. It is what the rest of a larger problem is to a part of it: if all other
examples together have the plane (v, c), the dual of the whole is that of the part, and c.

The sums over examples are those of `sums`; the penalty enters here.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partwise._core import FeatureMap, Structure
from partwise.problem import penalties
from partwise.problem.batch import Batch, Gold, LabelledBatch
from partwise.problem.capabilities import Capability
from partwise.problem.dual_points import DualPoint, given
from partwise.problem.executor import BatchReference, Executor, ThreadExecutor
from partwise.problem.losses import Loss, get_loss
from partwise.problem.penalties import L2, ElasticNet, Penalty
from partwise.problem.result import Certificate
from partwise.problem.sums import Sums, check_size
from partwise.problem.tasks import BatchSums, named_task
from partwise.support.arrays import Floats, Ints
from partwise.support.lazy import cached_property
from partwise.support.threads import count_threads


class Problem:
    """Data, loss and penalty: the objective P, its dual D, and certificates (docs/math.md).

    This is the short form for examples that are one batch in memory; `Problem.of` takes several. `n_examples`,
    `n_weights`, `n_slots` and `n_batches` are counts, `penalty` and `loss` the arguments, `sums` the `Sums`.

    features: the maps A_i. structure: the sets of labellings Y_i. gold: the gold labellings (indptr, slots, counts) as
    from `structure.encode`; each must lie in Y_i. penalty: a number is the strength l2. sample_weight: omega, one per
    example; zero weights are allowed. cost: one value per slot, all examples end to end: finite, >= 0, and 0 on gold
    slots; by default the structure's own. n_jobs: threads; -1 for all processors, and never more. Values and gradients
    have the same bits for any number.
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
        check_size(structure.num_examples)
        batch = LabelledBatch(Batch(structure, features), gold, sample_weight, cost)
        self._set_up(Sums([batch], get_loss(loss), ThreadExecutor(), count_threads(n_jobs)), penalty)

    @classmethod
    def of(
        cls,
        batches: Iterable[BatchReference],
        loss: str | Loss,
        penalty: Penalty | float,
        *,
        executor: Executor | None = None,
        n_jobs: int = 1,
    ) -> "Problem":
        """The problem on the examples of all these batches, in their order.

        batches: `LabelledBatch` or other references, whose features have the same weights. Sums are added up batch by
        batch: the same batches give the same bits. executor: does the sums; default: threads in this process.
        """
        problem = cls.__new__(cls)
        sums = Sums(list(batches), get_loss(loss), executor or ThreadExecutor(), count_threads(n_jobs))
        problem._set_up(sums, penalty)
        return problem

    @classmethod
    def on(cls, sums: BatchSums, penalty: Penalty | float, n_jobs: int = 1) -> "Problem":
        """The problem on the examples of one opened batch of a problem that was found to be sound."""
        problem = cls.__new__(cls)
        batch = LabelledBatch(Batch(sums.structure, sums.features), sums.gold, sums.sample_weight)
        executor = ThreadExecutor({batch: sums})
        problem._begin(Sums([batch], sums.loss, executor, count_threads(n_jobs), sound=True), penalty)
        return problem

    def _set_up(self, sums: Sums, penalty: Penalty | float) -> None:
        """Begin, and check everything that can be wrong with the problem."""
        self._begin(sums, penalty)
        if not self.sums.explicit_weights and not {Capability.ONE_BATCH, Capability.IN_MEMORY} <= self.capabilities():
            raise ValueError("features with a kernel have weights of their own: they must be one batch in memory")
        self._check_penalty()
        if not self.sample_weight.any():
            raise ValueError("all sample weights are zero")
        if self.sums.facts.complaint:
            raise ValueError(self.sums.facts.complaint)

    def _begin(self, sums: Sums, penalty: Penalty | float) -> None:
        self.sums, self.loss, self.penalty = sums, sums.loss, _penalty(penalty)
        self.n_examples, self.n_weights, self.n_batches = sums.n_examples, sums.n_weights, sums.n_batches
        self.shift: Floats | None = None

    @property
    def n_jobs(self) -> int:
        """Threads that sums over examples may use."""
        return self.sums.n_jobs

    @property
    def n_slots(self) -> int:
        """The number of slots of all examples."""
        return self.sums.n_slots

    @property
    def slot_offsets(self) -> Ints:
        """Slots of example i are slot_offsets[i]:slot_offsets[i + 1] of arrays with a value per slot."""
        return self.sums.slot_offsets

    @property
    def sample_weight(self) -> Floats:
        """omega."""
        return self.sums.facts.sample_weight

    @property
    def active(self) -> Ints:
        """Examples of positive weight, the ones that a pass visits."""
        return self.sums.active

    @property
    def gold(self) -> Gold:
        """Gold labellings (indptr, slots, counts); slots are numbered within their example."""
        return self.sums.gold

    def ask(self, task: str | Callable[..., Any], *shared: object) -> list[Any]:
        """Return what a task, or the one of this name (`register_task`), gives for each batch, in their order.

        The task is called as ``task(batch, n_jobs, *shared)`` wherever the batch is: in this process or in another one.
        """
        return list(self.sums.each(named_task(task) if isinstance(task, str) else task, *shared))

    @property
    def l2(self) -> float:
        """The strength of the squared penalty."""
        return self.penalty.strength

    @property
    def l1(self) -> float:
        """The strength of the l1 term."""
        return self.penalty.l1

    def with_n_jobs(self, n_jobs: int | None) -> "Problem":
        """The same problem on another number of threads."""
        if n_jobs is None or count_threads(n_jobs) == self.n_jobs:
            return self
        other = copy.copy(self)
        other.sums = copy.copy(self.sums)
        other.sums.n_jobs = count_threads(n_jobs)
        return other

    def with_penalty(self, penalty: Penalty | float) -> "Problem":
        """The same data and loss under another penalty (nothing is copied)."""
        other = copy.copy(self)
        other.penalty = _penalty(penalty)
        other._check_penalty()
        return other

    def with_shift(self, shift: Floats | None) -> "Problem":
        """The same problem with -<shift, w> added to its penalty; None: without."""
        other = copy.copy(self)
        other.shift = shift
        other._check_penalty()
        return other

    def capabilities(self) -> frozenset[Capability]:
        """What a solver can count on here; compared with `Solver.requires`."""
        return penalties.offered(self.sums.facts.capabilities, self.loss, self.penalty)

    # geometry: with kernels weights are coefficients, and `w @ w` means nothing

    def dot(self, weights: Floats, other: Floats) -> float:
        """<w, v> in weight space."""
        return self.sums.inner_product(weights, other, self.n_jobs)

    def norm2(self, weights: Floats) -> float:
        """|w|^2 in weight space."""
        return self.dot(weights, weights)

    def value(self, weights: Floats) -> float:
        """P(w)."""
        return self.sums.value(weights) + self.penalty_value(weights)

    def penalty_value(self, weights: Floats) -> float:
        """l1 |w|_1 + l2/2 |w|^2 - <shift, w> of the weights that are penalised."""
        absolute = self.l1 * float(np.abs(penalties.penalised(self.penalty, weights)).sum()) if self.l1 else 0.0
        return absolute + self._smooth_penalty(weights)

    def _smooth_penalty(self, weights: Floats) -> float:
        """l2/2 |w|^2 - <shift, w>.

        Without a penalty weights may be so large that |w|^2 is infinite, and 0 times that no number.
        """
        square = 0.5 * self.l2 * self.norm2(penalties.penalised(self.penalty, weights)) if self.l2 else 0.0
        return square if self.shift is None else square - self.dot(self.shift, weights)

    def value_and_gradient(
        self, weights: Floats, marginals: Floats | None = None, examples: ArrayLike | None = None
    ) -> tuple[float, Floats]:
        """P(w) and its gradient l2 w - shift - u (a subgradient where P has a kink).

        marginals: an array for the expected counts under p_w, slots end to end (those of weight zero are left alone).
        examples: numbers of the examples whose losses are summed, each as often as it is named (None: all once); the
        penalty counts in full. From m random examples of n, `gradient(weights, n / m * plane(weights, examples)[1])`
        is an unbiased estimate of the gradient. ValueError if the penalty has an l1 term.
        """
        self._refuse_l1("value_and_gradient")
        if examples is not None and marginals is not None:
            raise ValueError("marginals are those of all examples: leave examples out")
        if examples is not None:
            value, u, _ = self.plane(weights, examples)
        elif marginals is None:
            value, u, _ = self.sums.plane(weights)
        else:
            value, u, _, _ = self.sums.plane_at(weights, self.loss.temperature, marginals)
        return value + self._smooth_penalty(weights), self.gradient(weights, u)

    def plane(self, weights: Floats, examples: ArrayLike | None = None) -> tuple[float, Floats, float]:
        """Return (losses, u, b) at the oracle's answer to w: the plane that touches the losses there.

        With slack rescaling it may stay below the upper bound that is given for the losses. examples: numbers of the
        examples whose losses are summed, each as often as it is named (None: all once; not with slack rescaling).
        """
        if examples is None:
            return self.sums.plane(weights)
        if self.loss.rescaling == "slack":
            raise ValueError("examples: the plane of some examples is not available with slack rescaling")
        chosen = _check_examples(examples, self.n_examples)
        return self.sums.plane_of(chosen, weights) if len(chosen) else (0.0, np.zeros(self.n_weights), 0.0)

    def gradient(self, weights: Floats, u: Floats) -> Floats:
        """l2 w - shift - u: the gradient of P without its l1 term, where u is of the plane at w."""
        gradient = self.plane_of_weights(weights)
        gradient -= u
        return gradient

    def touching_plane(self, weights: Floats, primal: float, gradient: Floats) -> tuple[Floats, float]:
        """Return (u, b) of the plane touching the losses at w, from P and its gradient; ValueError with an l1 term."""
        self._refuse_l1("touching_plane")
        u = self.plane_of_weights(weights) - gradient
        losses = primal - self._smooth_penalty(weights)
        return u, losses + self.dot(u, weights)

    def violations(self, weights: Floats, u: Floats) -> Floats:
        """Distance of 0 from the subdifferential of P in every weight, where u is of the plane at w."""
        gradient = self.gradient(weights, u)
        l1 = self.l1_of_weights
        used = np.abs(gradient + l1 * np.sign(weights))
        out: Floats = np.where(weights != 0, used, np.maximum(np.abs(gradient) - l1, 0.0))
        return out

    @property
    def l1_of_weights(self) -> float | Floats:
        """l1, or an array with 0 where weights are not penalised."""
        free = self.penalty.free
        return self.l1 if free is None else penalties.penalised(self.penalty, np.full(self.n_weights, self.l1))

    @cached_property
    def hessian_of_marginals(self) -> bool:
        """Whether `hessian` can do with the expected counts at w: one part per labelling, identity link, one batch."""
        needed = {Capability.IDENTITY_LINK, Capability.ONE_PART, Capability.ONE_BATCH}
        return needed <= self.capabilities()

    def hessian(self, weights: Floats, every: int = 1, marginals: Floats | None = None) -> "SecondDerivatives":
        """v -> (Hessian of P at w) v, for temperature > 0 and structures with the capability "covariance".

        The slot scores at w are kept until it is asked for elsewhere. With the squared link P has second derivatives
        only where no margin violation is zero; elsewhere those of one side are taken. every > 1: an estimate from a
        part of the examples, where there are enough of them. marginals: as `value_and_gradient` gave them at w, to save
        the work of finding them once more (see `hessian_of_marginals`).
        """
        weights = weights.copy()  # what is kept for a point must not change with the caller's weights
        partial = self.sums.hessian_partial(marginals, weights, every)
        return SecondDerivatives(self.sums, self.penalty, weights, every, marginals, partial)

    def dual_terms(self, point: DualPoint) -> tuple[Floats, float]:
        """(u, b) of a dual point, recomputed from its parts."""
        if self.loss.rescaling == "slack" and point.kind != "aggregate":
            raise ValueError("slack rescaling: distributions over labellings are no dual points, planes are")
        if point.kind == "gibbs":
            return self.sums.dual_terms_gibbs(given(point.scores))
        if point.kind == "linear":
            return self.sums.dual_terms_linear(*point.linear())
        if point.kind == "aggregate":
            return given(point.u), given(point.b)
        if point.kind == "slots":
            return self.sums.dual_terms_slots(given(point.counts), point.mass, point.entropies)
        if point.kind == "cliques":
            if Capability.CLIQUES not in self.capabilities():
                raise ValueError(f"{self.sums.facts.structure} has no clique view")
            if Capability.IDENTITY_LINK not in self.capabilities():
                raise ValueError("clique marginals are distributions of mass 1: they fit the identity link only")
            return self.sums.dual_terms_cliques(given(point.marginals))
        if self.loss.smooth:
            raise ValueError("the entropy of an active set is unknown: it is a dual point at temperature 0 only")
        return self.sums.dual_terms_sparse(*given(point.active).used_slots(self.n_examples))

    def dual_value(self, point: DualPoint) -> float:
        """D of a dual point; -inf if there is no penalty."""
        return self.dual_of_plane(*self.dual_terms(point))

    def weights_from_dual(self, point: DualPoint) -> Floats:
        """w(alpha) = u / l2, or soft(u, l1) / l2 with an elastic net; of a shifted problem (u + shift) / l2."""
        if self.l2 == 0 or self.penalty.free is not None:
            raise ValueError("with l2 = 0, or weights that are not penalised, a dual point determines no weights")
        return self.weights_of_plane(self.dual_terms(point)[0])

    def weights_of_plane(self, u: Floats, scale: float = 1.0) -> Floats:
        """w(alpha), multiplied by a number: scale u / l2, or scale soft(u, l1) / l2 with an elastic net; l2 > 0."""
        u = self._shifted(u)
        soft: Floats = np.sign(u) * np.maximum(np.abs(u) - self.l1, 0.0) if self.l1 else u
        return soft / self.l2 if scale == 1.0 else (scale / self.l2) * soft

    def plane_of_weights(self, weights: Floats) -> Floats:
        """The u with w(alpha) = w (without an l1 term): l2 w - shift; 0 where weights are not penalised."""
        u = penalties.penalised(self.penalty, self.l2 * weights)
        return u if self.shift is None else u - self.shift

    def _shifted(self, u: Floats) -> Floats:
        return u if self.shift is None else u + self.shift

    def oracle_point(self, weights: Floats) -> DualPoint:
        """The distributions p_w that attain smax at w (temperature > 0): slot scores (theta + kappa c) / tau."""
        if not self.loss.smooth:
            raise ValueError(f"loss {self.loss.name!r} has temperature 0: its oracle gives no Gibbs distribution")
        tau = self.loss.temperature
        return DualPoint.of_scores(self.sums.linear_scores(weights / tau, self.loss.cost_scale / tau))

    def certificate(self, weights: Floats, point: DualPoint) -> Certificate:
        """Return the certificate of P(w) and D(alpha), recomputed; CertificateError if D exceeds P beyond rounding."""
        return self.certificate_of(self.value(weights), *self.dual_terms(point), weights)

    def certify(self, point: DualPoint, carried: int = 0) -> tuple[Certificate, Floats]:
        """Return the certificate of a dual point's own weights, and these; carried: as for `certificate_of`."""
        return self.certify_plane(*self.dual_terms(point), carried)

    def certify_plane(self, u: Floats, b: float, carried: int = 0) -> tuple[Certificate, Floats]:
        """The same for the plane (u, b) of a dual point."""
        weights = self.weights_of_plane(u)
        return self.certificate_of(self.value(weights), u, b, carried=carried), weights

    def certificate_of(
        self, primal: float, u: Floats, b: float, weights: Floats | None = None, carried: int = 0, off: float = 0.0
    ) -> Certificate:
        """The certificate of P(w) and a plane (u, b).

        weights: w, None for u / l2. carried: through how many updates u and b were carried along, 0 if summed afresh;
        the square of that number if their errors may all have the same sign.
        off: what D may be off by for other reasons.
        """
        dual = self.dual_of_plane(u, b)
        rest, lower = penalties.settled(self.penalty, self._shifted(u), b)
        rounding = off + self.sums.rounding.of_gap(self.penalty, primal, rest, lower, primal - dual, weights, carried)
        if self.shift is not None:
            rounding += self.sums.rounding.of_shift(self.shift, rest / self.l2 if weights is None else weights)
        return Certificate.of(primal, dual, rounding)

    def certificate_at(self, primal: float, gradient: Floats, weights: Floats) -> Certificate:
        """Return the certificate of w against the oracle's answer (nothing cancels); ValueError with an l1 term."""
        self._refuse_l1("certificate_at")
        if self.l2 == 0:
            return Certificate.none(primal)
        norm2 = self.norm2(penalties.penalised(self.penalty, gradient))
        raw = norm2 / (2.0 * self.l2)
        if self.penalty.free is not None:
            loose, w = (penalties.free_part(self.penalty, vector) for vector in (gradient, weights))
            raw += penalties.bound(self.penalty) * float(np.abs(loose).sum()) + float(loose @ w)
        resolution, of_primal = self.sums.rounding.of_gradient_gap(self.penalty, primal, norm2, weights)
        rounding = resolution + of_primal
        if self.shift is not None:
            rounding += self.sums.rounding.of_shift(self.shift, weights)
        return Certificate.of(primal, primal - raw, rounding, raw, resolution)

    def dual_of_plane(self, u: Floats, b: float) -> float:
        """D = b - R*(u): b - |u + shift|^2 / (2 l2) for the L2 penalty, -inf if l2 = 0."""
        u, b = penalties.settled(self.penalty, u, b)
        if self.l1:
            return penalties.dual_of_box(u, b, self.l1, self.l2)
        return b - self.half_square(self._shifted(u)) if self.l2 > 0 else float("-inf")

    def dual_as_it_is(self, u: Floats, b: float) -> float:
        """D = b - R*(u) of this very plane, where `dual_of_plane` may take a better multiple of it (l2 > 0)."""
        if not self.l1:
            return self.dual_of_plane(u, b)
        u, b = penalties.settled(self.penalty, u, b)
        return self.dual_of_weights(self.weights_of_plane(u), b)

    def half_square(self, u: Floats) -> float:
        """|u|^2 / (2 l2), the conjugate of the L2 penalty; of a difference of planes: the curvature between them."""
        return self.norm2(u) / (2.0 * self.l2)

    def dual_of_weights(self, weights: Floats, b: float) -> float:
        """D = b - l2/2 |w|^2 of the plane with these weights w(alpha)."""
        return b - 0.5 * self.l2 * self.norm2(weights)

    def change_of_dual(self, weights: Floats, other: "Problem") -> float:
        """D under the other problem's l2 less D under this one's, for the plane with weights w(alpha) here."""
        return 0.5 * self.l2 * self.norm2(weights) * (1.0 - self.l2 / other.l2)

    def _refuse_l1(self, method: str) -> None:
        """Raise ValueError under an l1 term, which has no gradient and which `method` would leave out."""
        if self.l1:
            raise ValueError(
                f"{method} does not count an l1 term, and the penalty has l1 = {self.l1:g}: a solver that calls it "
                "must list Capability.SMOOTH_PENALTY in its requires; under l1, use value, plane and certificate_of"
            )

    def _check_penalty(self) -> None:
        if self.penalty.l1 and not self.sums.explicit_weights:
            raise ValueError("an l1 penalty needs explicit weights, which are not available with a kernel")
        free = self.penalty.free
        if free is not None and (not self.sums.explicit_weights or free.stop > self.n_weights):
            raise ValueError(f"free weights {free.start} to {free.stop}: there are no such explicit weights")
        if free is not None and free.link != self.loss.link:
            raise ValueError(
                f"free weights: their bound is for losses with link {free.link!r}, loss {self.loss.name!r} has link "
                f"{self.loss.link!r}; make them with that link"
            )
        if self.shift is None:
            return
        if self.l1 or not self.l2 > 0 or free is not None or not self.sums.explicit_weights:
            raise ValueError("a shift of the penalty needs l2 > 0 on all weights, no l1 term and explicit weights")
        if self.shift.shape != (self.n_weights,):
            raise ValueError(f"a shift of shape {self.shift.shape} for {self.n_weights} weights")


@dataclass(frozen=True, eq=False)
class SecondDerivatives:
    """The Hessian of P at a point: products with it, and (nearly) its diagonal; partial: of a part of the examples."""

    sums: Sums
    penalty: Penalty
    weights: Floats
    every: int
    marginals: Floats | None
    partial: bool

    def __call__(self, direction: Floats) -> Floats:
        product = self.sums.hessian_product(self.marginals, self.weights, self.every, direction)
        product += penalties.penalised(self.penalty, self.penalty.strength * direction)
        return product

    def diagonal(self) -> Floats:
        """Exact where an example uses a weight in one slot of one part (see `_core.Hessian.diagonal`)."""
        found = self.sums.hessian_diagonal(self.marginals, self.weights, self.every)
        return found + penalties.penalised(self.penalty, np.full(len(found), self.penalty.strength))


def _penalty(penalty: Penalty | float) -> Penalty:
    return penalty if isinstance(penalty, L2 | ElasticNet) else L2(float(penalty))


def _check_examples(examples: ArrayLike, n_examples: int) -> Ints:
    """Return numbers of examples as an array; raise ValueError for what is not one."""
    chosen = np.asarray(examples)
    if chosen.ndim != 1 or (chosen.dtype.kind not in "iu" and chosen.size):
        raise ValueError(f"examples: whole numbers are needed, got an array of {chosen.dtype}, shape {chosen.shape}")
    bad = np.flatnonzero((chosen < 0) | (chosen >= n_examples))
    if bad.size:
        raise ValueError(f"examples: {chosen[bad[0]]} is not between 0 and {n_examples - 1}")
    return chosen.astype(np.int64, copy=False)
