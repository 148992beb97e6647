"""Weights without a penalty, in the objective and in its dual (see `problem`).

A plane whose entries of u are 0 for these weights costs nothing in the dual, however large their bound is. There is one
near every dual point: with m_k the expected counts of label k, summed over the examples, and n_k its gold counts, such
an entry of u is n_k - m_k. Labels with m_k > n_k give the share 1 - n_k / m_k of each example's probability away, and
the others get what the example lost in proportion to n_k - m_k:

    p_ik min(1, n_k / m_k) + q_k sum_j p_ij max(0, 1 - n_j / m_j),     q_k = max(0, n_k - m_k) / sum_j max(0, n_j - m_j)

are distributions whose counts are n, and no more probability was moved than the counts were off by. It takes one pass.

With the squared link, where examples have masses, only planes are mixed, with one and the same q for all examples,

    (1 - s) p_i + s q,     q_k = (m_k + (n_k - m_k) / s) / sum(n),

and the counts are n. For q >= 0 it takes s >= max_k (m_k - n_k) / m_k, small where the counts are nearly right; twice
that is taken. q is the Gibbs distribution of weights that are log q_k for the free ones and 0 for the others, so
that its plane takes one pass, and the mean of the two planes is a plane below the losses.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from partwise.problem.capabilities import Capability
from partwise.problem.penalties import Penalty
from partwise.problem.tasks import Moved, Plane
from partwise.support.arrays import Floats

if TYPE_CHECKING:
    from partwise.problem.problem import Problem


def penalised(penalty: Penalty, vector: Floats) -> Floats:
    """A vector with zeros for the weights that are not penalised; itself if all are."""
    if penalty.free is None:
        return vector
    found = vector.copy()
    found[penalty.free.start : penalty.free.stop] = 0.0
    return found


def free_part(penalty: Penalty, vector: Floats) -> Floats:
    """The entries of the weights that are not penalised."""
    return vector[:0] if penalty.free is None else vector[penalty.free.start : penalty.free.stop]


def bound(penalty: Penalty) -> float:
    """What none of these weights exceeds."""
    return 0.0 if penalty.free is None else penalty.free.bound(penalty.l1, penalty.strength)


def settled(penalty: Penalty, u: Floats, b: float) -> tuple[Floats, float]:
    """A plane without the weights that are not penalised: at its lowest over their box, b falls by bound |u|_1."""
    if penalty.free is None:
        return u, b
    return penalised(penalty, u), b - bound(penalty) * float(abs(free_part(penalty, u)).sum())


def balanced(problem: "Problem", u: Floats, b: float, changed: Callable[[Moved], Plane]) -> Plane | None:
    """A plane near this one in which no free weight has an entry (one pass).

    changed: the plane of the same distributions after probability was moved. None where the counts are too far off.
    """
    free = problem.penalty.free
    assert free is not None
    loose = free_part(problem.penalty, u)
    if not free.for_all:
        loose = np.concatenate([[-loose.sum()], loose])
    gold = np.array(free.gold)
    counts = gold - loose
    if not loose.any():
        return u, b
    if {Capability.IDENTITY_LINK, Capability.ONE_PART} <= problem.capabilities():
        missing = np.maximum(loose, 0.0)
        if not missing.any():
            return None  # only rounding is left
        keep, to = np.ones(problem.n_slots // problem.n_examples), np.zeros(problem.n_slots // problem.n_examples)
        keep[: len(gold)] = gold / np.maximum(counts, gold)
        to[: len(gold)] = missing / missing.sum()
        return changed((keep, to))
    if not counts.min() > 0 or not 0 < (share := 2.0 * float((-loose / counts).max())) < 1:
        return None  # too far off; or so near that only rounding is left
    log_q = np.log((counts + loose / share) / gold.sum())
    weights = np.zeros(problem.n_weights)
    weights[free.start : free.stop] = log_q if free.for_all else log_q[1:] - log_q[0]
    other_u, other_b = problem.sums.dual_terms_linear(weights, 0.0)
    return (1.0 - share) * u + share * other_u, (1.0 - share) * b + share * other_b
