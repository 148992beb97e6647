"""Penalties on the weights; `problem` says what they mean for the objective and its dual."""

from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np

from partwise._core import dot
from partwise.problem.capabilities import Capability
from partwise.problem.losses import Link, Loss
from partwise.support.arrays import Floats


@dataclass(frozen=True)
class Free:
    """Weights start, ..., stop - 1 have no penalty: intercepts, features of value 1 that a labelling has once at most.

    Instead their size has a bound that holds at some minimum anyway, so that it changes nothing but the dual (see
    `problem`). It depends on the penalty of the other weights; here are the numbers it is computed from.

    at_zero: an upper bound of the sum of the losses at w = 0 with some free weights, after the link. gold: for each
    label, the sum of the weights of the examples that have it; the free weights are those of these labels, or of all
    but the first. reach, largest: of all rows, the largest norm and the largest absolute value, without the free
    columns. link: that of the loss.
    """

    start: int
    stop: int
    at_zero: float
    gold: tuple[float, ...]
    reach: float
    largest: float
    link: Link = "identity"

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError(f"free weights must be some, got {self.start} to {self.stop}")
        if self.stop - self.start not in (len(self.gold), len(self.gold) - 1):
            raise ValueError(f"{self.stop - self.start} free weights for {len(self.gold)} labels")
        if not (min(self.gold) > 0 and min(self.at_zero, self.reach, self.largest) >= 0):
            raise ValueError("free weights: a label without examples, or a size below 0")

    @property
    def for_all(self) -> bool:
        """Whether all labels have a free weight: a number added to all of them changes nothing."""
        return self.stop - self.start == len(self.gold)

    def bound(self, l1: float, l2: float) -> float:
        """Return a bound of the free weights' absolute values that holds at some minimum of P.

        There P <= P(0). So the others have l2/2 |w|^2 <= P(0) and l1 |w|_1 <= P(0), and the scores that they give a row
        for two labels differ by S <= min(sqrt(2) reach |w|, largest |w|_1). An example of label k has at least the loss
        phi(b_j - b_k - S), and the mean over all of these is at most m = P(0) / gold_k. So b_j - b_k - S is at most m
        with the identity link, and sqrt(m) with the squared link. If all labels have free weights, these can be
        centred.
        """
        by_l2 = sqrt(2.0) * self.reach * sqrt(2.0 * self.at_zero / l2) if l2 > 0 else inf
        by_l1 = self.largest * self.at_zero / l1 if l1 > 0 else inf
        mean = self.at_zero / min(self.gold)
        differ = (sqrt(mean) if self.link == "squared" else mean) + min(by_l1, by_l2)
        return 0.5 * differ if self.for_all else differ


@dataclass(frozen=True)
class L2:
    """strength / 2 * |w|^2. Estimators' C is 1 / strength. With strength 0 there is no certificate.

    free: weights that are not penalised, if any.
    """

    strength: float
    free: Free | None = None

    def __post_init__(self) -> None:
        if not (isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"strength of the L2 penalty must be a number >= 0, got {self.strength}")

    @property
    def l1(self) -> float:
        return 0.0

    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities that the penalty gives a problem."""
        return _capabilities(self, {Capability.SMOOTH_PENALTY, Capability.SMOOTH_TERM})


@dataclass(frozen=True)
class ElasticNet:
    """l1 |w|_1 + strength / 2 |w|^2 with l1 > 0, which makes weights zero; strength 0 is the lasso.

    free: weights that are not penalised, if any.
    """

    l1: float
    strength: float = 0.0
    free: Free | None = None

    def __post_init__(self) -> None:
        if not (isfinite(self.l1) and self.l1 > 0):
            raise ValueError(f"l1 of the elastic net must be a number > 0 (else take L2), got {self.l1}")
        if not (isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"strength of the elastic net must be a number >= 0, got {self.strength}")

    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities that the penalty gives a problem."""
        return _capabilities(self, {Capability.L1, Capability.PENALTY})


Penalty = L2 | ElasticNet


def _capabilities(penalty: Penalty, own: set[Capability]) -> frozenset[Capability]:
    by_strength = {Capability.L2, Capability.PENALTY} if penalty.strength > 0 else set()
    return frozenset(own | by_strength | ({Capability.ALL_PENALISED} if penalty.free is None else set()))


def penalised(penalty: Penalty, vector: Floats) -> Floats:
    """Return a vector with zeros for the weights that are not penalised; the vector itself if all are."""
    if penalty.free is None:
        return vector
    found = vector.copy()
    found[penalty.free.start : penalty.free.stop] = 0.0
    return found


def free_part(penalty: Penalty, vector: Floats) -> Floats:
    """Return the entries of the weights that are not penalised."""
    return vector[:0] if penalty.free is None else vector[penalty.free.start : penalty.free.stop]


def bound(penalty: Penalty) -> float:
    """Return the bound of the free weights' absolute values."""
    return 0.0 if penalty.free is None else penalty.free.bound(penalty.l1, penalty.strength)


def settled(penalty: Penalty, u: Floats, b: float) -> tuple[Floats, float]:
    """Return a plane without the weights that are not penalised, at its lowest over their box: b - bound |u|_1."""
    if penalty.free is None:
        return u, b
    return penalised(penalty, u), b - bound(penalty) * float(abs(free_part(penalty, u)).sum())


def dual_of_box(u: Floats, b: float, l1: float, l2: float) -> float:
    """Return the dual value of the best multiple of a plane under an l1 term: max of s b - R*(s u) over 0 <= s <= 1."""
    far = np.abs(u[np.abs(u) > l1])  # the others are inside for every s
    if not far.size:
        return b
    inside = l1 / float(far.max())

    def value(s: float) -> float:
        excess = np.maximum(s * far - l1, 0.0)
        return s * b - (dot(excess, excess) / (2.0 * l2) if s > inside else 0.0)

    if l2 == 0 or b <= 0:
        return value(inside) if b > 0 else 0.0
    low, high = inside, 1.0  # below `inside` D rises with s
    for _ in range(60):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if value(left) < value(right) else (low, right)
    return max(value(inside), value(1.0), value(0.5 * (low + high)))


def offered(data: frozenset[Capability], loss: Loss, penalty: Penalty) -> frozenset[Capability]:
    """Return the capabilities of a problem; data: those of its structure, features and batches."""
    found = data | loss.capabilities() | penalty.capabilities()
    return found | {Capability.LOSS_ORACLE} if loss.oracle in found else found
