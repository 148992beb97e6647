"""Dual points: one distribution over labellings (and one mass) per example, in the form that a solver has.

    gibbs      p ~ exp(<counts, scores>), mass 1; slot scores of all examples end to end
    linear     the same with scores A_i z + k c_i, of which z and k are stored: a point of the size of the weights
    slots      expected counts s * mu, masses s and entropies s * H: enough for D when the features are linear in slots
    cliques    marginals of the structure's cliques, mass 1: what tied counts cannot tell (edge marginals, entropy)
    active     a few labellings of each example with coefficients that sum to its mass s (temperature 0)
    aggregate  u and b alone, of a point (or an average of points) whose parts are no longer known

`Problem.dual_terms` turns any of them into (u, b), and D = b - |u|^2 / (2 l2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from partwise.problem.capabilities import Capability
from partwise.problem.penalties import free_part
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.problem.problem import Problem
    from partwise.problem.tasks import Moved, Plane

T = TypeVar("T")
Kind = Literal["gibbs", "linear", "slots", "cliques", "active", "aggregate"]


@dataclass(frozen=True)
class ActiveSet:
    """Labellings kept by a working-set method.

    Example i has labellings example_ptr[i]:example_ptr[i + 1]. Labelling k uses the slots (numbered within its example)
    at labelling_ptr[k]:labelling_ptr[k + 1], `counts` times each, and has weight coefficients[k] >= 0. Examples without
    labellings have mass 0 and take no room.
    """

    example_ptr: Ints
    labelling_ptr: Ints
    slots: Ints
    counts: Floats
    coefficients: Floats

    def used_slots(self, n_examples: int) -> tuple[Ints, Ints, Floats, Floats]:
        """Return (indptr, slots, s * mu, s): example i uses slots[indptr[i]:indptr[i + 1]], which may repeat a slot."""
        n = len(self.example_ptr) - 1
        if n != n_examples:
            raise ValueError(f"the active set is of {n} examples, the problem has {n_examples}")
        owner = np.repeat(np.arange(n), np.diff(self.example_ptr))  # example of each labelling
        mass: Floats = np.bincount(owner, weights=self.coefficients, minlength=n).astype(np.float64)
        values = np.repeat(self.coefficients, np.diff(self.labelling_ptr)) * self.counts
        return self.labelling_ptr[self.example_ptr], self.slots, values, mass

    def expected_counts(self, slot_offsets: Ints) -> tuple[Floats, Floats]:
        """Return (s * mu of all examples end to end, s)."""
        indptr, slots, values, mass = self.used_slots(len(slot_offsets) - 1)
        index = np.repeat(slot_offsets[:-1], np.diff(indptr)) + slots
        counts: Floats = np.bincount(index, weights=values, minlength=int(slot_offsets[-1])).astype(np.float64)
        return counts, mass


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A dual point, made by the class method named after its kind; blocks: of an aggregate, a point to start from."""

    kind: Kind
    scores: Floats | None = None
    z: Floats | None = None
    cost_scale: float | None = None
    counts: Floats | None = None
    mass: Floats | None = None
    entropies: Floats | None = None
    marginals: Floats | None = None
    active: ActiveSet | None = None
    u: Floats | None = None
    b: float | None = None
    blocks: "DualPoint | None" = None

    @classmethod
    def of_scores(cls, scores: Floats) -> "DualPoint":
        """Return the Gibbs distributions with these slot scores."""
        return cls("gibbs", scores=scores)

    @classmethod
    def of_linear(cls, z: Floats, cost_scale: float) -> "DualPoint":
        """Return the Gibbs distributions with slot scores A_i z + cost_scale * c_i."""
        return cls("linear", z=z, cost_scale=cost_scale)

    @classmethod
    def of_counts(cls, counts: Floats, mass: Floats | None = None, entropies: Floats | None = None) -> "DualPoint":
        """Return the point of expected counts s * mu, masses s (None: 1) and entropies s * H (None: 0)."""
        return cls("slots", counts=counts, mass=mass, entropies=entropies)

    @classmethod
    def of_cliques(cls, marginals: Floats) -> "DualPoint":
        """Return the point of these clique marginals of all examples end to end."""
        return cls("cliques", marginals=marginals)

    @classmethod
    def of_active_set(cls, active: ActiveSet) -> "DualPoint":
        """Return mixtures of a few labellings."""
        return cls("active", active=active)

    @classmethod
    def of_plane(cls, u: Floats, b: float, blocks: "DualPoint | None" = None) -> "DualPoint":
        """Return the point known by (u, b) alone: D = b - |u|^2 / (2 l2)."""
        return cls("aggregate", u=u, b=b, blocks=blocks)

    def linear(self) -> tuple[Floats, float]:
        """Return (z, k) of a linear point."""
        return given(self.z), given(self.cost_scale)

    def with_blocks(self) -> "DualPoint":
        """Return the point itself, or for an aggregate the point that it carries to start from."""
        return self.blocks if self.blocks is not None else self


def given(value: T | None) -> T:
    """Return a part of a dual point; raise ValueError if it is missing."""
    if value is None:
        raise ValueError("the dual point lacks the arrays of its kind")
    return value


def balanced(problem: "Problem", u: Floats, b: float, changed: "Callable[[Moved], Plane]") -> "Plane | None":
    """Return a plane near this one in which free weights have no entries, so that their bound does not lower the dual.

    Probability moves from labels that are expected too often to the others; with the squared link, where examples have
    masses, planes are mixed (docs/math.md, "A dual point without these entries"), in one pass; None if too far off.

    changed: returns the plane of the same distributions after probability was moved.
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
        padding = np.zeros(problem.n_slots // problem.n_examples - len(gold))
        keep = np.concatenate([gold / np.maximum(counts, gold), padding + 1.0])
        return changed((keep, np.concatenate([missing / missing.sum(), padding])))
    if not counts.min() > 0 or not 0 < (share := 2.0 * float((-loose / counts).max())) < 1:
        return None  # too far off; or so near that only rounding is left
    # The mean (1 - share) p + share q has the gold counts; q is the Gibbs distribution of the weights log_q.
    log_q = np.log((counts + loose / share) / gold.sum())
    weights = np.zeros(problem.n_weights)
    weights[free.start : free.stop] = log_q if free.for_all else log_q[1:] - log_q[0]
    other_u, other_b = problem.sums.dual_terms_linear(weights, 0.0)
    return (1.0 - share) * u + share * other_u, (1.0 - share) * b + share * other_b
