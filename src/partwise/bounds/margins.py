"""The labellings that a small change of unit weights could make the best, and the largest loss among them.

Example i has slots r with feature vectors Phi_r = A_i' e_r, and labelling y uses slot r count_r(y) times. At unit
weights w, |w| = 1, scores are s(y) = <w, Phi(y)>, and two labellings are

    E(y, z) = sum_r |count_r(y) - count_r(z)| |Phi_r|

apart (Bartlett et al. 2004, section 5, where every count is 0 or 1). The labellings within a margin gamma are

    C(gamma) = {y : s(y) >= s(z) - gamma E(y, z) for all z},

and `largest_losses` is max over C of L(y) = cost(y) / (the largest cost of the example), in [0, 1].

If an example has few labellings, they are listed: this is exact. For other examples an upper bound is found. One z is
kept, the best labelling y*, which makes the set larger, and E(y, y*) is replaced by a larger linear function: slot r is
used at most m_r times, and on 0, ..., m_r the convex |c - c*| lies below the chord through its ends (for m_r = 1 they
are equal). What is left, max L(y) subject to one linear inequality g(y) >= 0, is at most

    min over lambda >= 0 of max_y L(y) + lambda g(y),

each value of which is a call of the max oracle. The minimum is found by intersecting the two lines (in lambda) that
meet below it; each value on the way is an upper bound already.

The older set (Bartlett et al. 2004, after equation 8) is

    C'(gamma) = {y : s(y) >= s(z) - gamma B (cost(y) + cost(z)) for all z},

where B = max over y of E(y, gold) / cost(y), by example: the smallest factor with which C is part of C'.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from partwise.bounds.held_out import Labellings, Loss, Losses, sums_by
from partwise.problem import LabelledBatch
from partwise.problem.capabilities import Capability, structure_capabilities
from partwise.problem.inference import SlotScores, slot_norms, slot_scores
from partwise.support.arrays import Booleans, Floats, Ints, pointers

#: Most calls of the oracle for one minimum over lambda; about five are enough.
_CALLS = 20
#: Differences of scores up to this, relative to the largest score, are ties: they count as within the margin.
_TIES = 1e-9


class NotCovered(ValueError):
    """The error that the margin bound does not cover this model."""

    def __str__(self) -> str:
        return (
            f"{super().__str__()}. Use the bound from examples that training has not seen: "
            "held_out_bound(held_out_losses(...)) or `partwise bound --held-out FILE`"
        )


class Listed(NamedTuple):
    """All labellings of some examples; threshold: the smallest gamma with which a labelling is in C(gamma)."""

    example: Ints
    score: Floats
    cost: Floats
    loss: Floats
    threshold: Floats

    @property
    def n_examples(self) -> int:
        return len(np.unique(self.example))

    def put(self, losses: Floats, inside: Booleans) -> None:
        """Set each listed example's loss to the largest among its labellings inside, of which there is at least one."""
        losses[self.example] = 0.0
        np.maximum.at(losses, self.example[inside], self.loss[inside])


class Margins:
    """Labelled examples at unit weights.

    examples: without sample weights, because a bound is about examples that were drawn alike. weights: any nonzero
    ones; they are scaled to length 1. loss: L(y), as in `held_out_losses`. max_listed: the labellings of examples with
    at most so many are listed, if the structure has k best labellings.
    """

    def __init__(
        self, examples: LabelledBatch, weights: Floats, *, loss: Loss = "cost", max_listed: int = 100, n_jobs: int = 1
    ) -> None:
        batch = examples.batch
        if not batch.structure.linear:
            raise NotCovered(
                "the margin bound is about models that predict the labelling y with the largest <w, Phi(x, y)>; this "
                f"one predicts by probabilities that are normalised at each position ({type(batch.structure).__name__})"
            )
        if "explicit weights" not in batch.features.capabilities():
            raise NotCovered(
                "the margin bound is about a classifier that draws a weight for every feature, which a kernel does not "
                "have explicitly"
            )
        if (examples.sample_weight != 1.0).any():
            raise ValueError("bounds are about examples drawn alike: sample weights other than 1 are not available")
        if batch.n_examples < 2:
            raise ValueError(f"a bound needs at least 2 examples, got {batch.n_examples}")
        weights = np.asarray(weights, dtype=np.float64)
        length = float(np.sqrt(batch.features.dot(weights, weights)))
        if not (np.isfinite(length) and length > 0):
            raise ValueError(f"weights of length {length}: a bound needs weights that are finite and not all zero")
        self._losses = Losses(examples, loss, n_jobs)
        self.structure, self.offsets = batch.structure, batch.slot_offsets
        self.scores = slot_scores(batch, weights / length, n_jobs)
        self.norms = slot_norms(batch, n_jobs)
        self.owner = np.repeat(np.arange(batch.n_examples), np.diff(self.offsets))
        self._answers = SlotScores(batch.structure, n_jobs)
        self.loss, self.gold = loss, self._losses.gold
        self.costs, self._largest = self._losses.costs, self._losses.largest
        #: The largest number of slots with features of an example, at least 1 (the theorem allows larger numbers).
        self.most_slots = max(int(np.bincount(self.owner, weights=(self.norms > 0) & self._used()).max()), 1)
        self._whole = sums_by(self.owner, self.costs % 1.0, batch.n_examples) == 0
        self.best = self._maximize(self.scores)
        self.listed = self._list(max_listed)
        self._lines: dict[int, tuple[Floats, Floats]] = {}

    @property
    def n_examples(self) -> int:
        return len(self.offsets) - 1

    def losses_of_best(self) -> Floats:
        """Return L of the best labelling of each example."""
        return self._losses.of(self.best)

    def largest_losses(self, gamma: float) -> Floats:
        """Return an upper bound of max over C(gamma) of L for each example, exact for those in `listed`."""
        slope, constant = self._apart(self.best)
        direction = self.scores + gamma * slope
        level = gamma * constant - self.best.sums(self.offsets, self.scores)
        found = self._relaxed(direction, level, self.best)
        self.listed.put(found, self.listed.threshold <= gamma)
        return found

    def largest_losses_of_older_set(self, gamma: float) -> Floats:
        """Return the same for C'(gamma), the older set."""
        ratio = gamma * self._cost_factors()
        spread = ratio[self.owner] * self.costs
        anchors = self._maximize(self.scores - spread)
        level = -anchors.sums(self.offsets, self.scores - spread)
        found = self._relaxed(self.scores + spread, level, anchors)
        values = self.listed.score + (ratio[self.listed.example] * self.listed.cost) + level[self.listed.example]
        self.listed.put(found, values >= -_TIES * (1.0 + np.abs(level[self.listed.example])))
        return found

    def _list(self, most: int) -> Listed:
        gold = self.gold.spread(self.offsets)
        parts: list[tuple[Floats, Floats, Floats, Floats]] = []
        examples = []
        for i in range(self.n_examples if Capability.K_BEST in self.structure.capabilities() else 0):
            rows = slice(self.offsets[i], self.offsets[i + 1])
            n_slots = rows.stop - rows.start
            if n_slots > most:
                continue
            found = self.structure.k_best(i, np.zeros(n_slots), most + 1)
            if len(found) > most:
                continue
            counts = np.zeros((len(found), n_slots))
            for row, (_, slots, used) in zip(counts, found, strict=True):
                row[slots] += used
            scores, costs = counts @ self.scores[rows], counts @ self.costs[rows]
            if self.loss == "cost":
                losses = costs / self._largest[i]
            else:
                losses = (counts != gold[rows]).any(axis=1).astype(np.float64)
            scaled = counts * self.norms[rows]
            behind = scores[None, :] - scores[:, None] - _TIES * (1.0 + float(np.abs(scores).max()))
            with np.errstate(divide="ignore"):
                thresholds = np.where(behind > 0, behind / cdist(scaled, scaled, "cityblock"), 0.0).max(axis=1)
            examples.append(i)
            parts.append((scores, costs, losses, thresholds))
        lengths = [len(each[0]) for each in parts]
        columns = [np.concatenate([np.empty(0), *(part[k] for part in parts)]) for k in range(4)]
        return Listed(np.repeat(np.array(examples, dtype=np.int64), lengths), *columns)

    def _relaxed(self, direction: Floats, level: Floats, inside: Labellings) -> Floats:
        """Return an upper bound of max L(y) over the y with <direction, counts> + level >= 0; `inside`: one such y."""
        if self.loss == "zero-one":
            return self._any_other(direction, level)
        losses = self.costs / self._largest[self.owner]
        left = self._maximize(losses)  # lambda = 0
        left_loss, left_slope = left.sums(self.offsets, losses), left.sums(self.offsets, direction) + level
        right_loss = inside.sums(self.offsets, losses)
        right_slope = np.maximum(inside.sums(self.offsets, direction) + level, 0.0)
        bound = left_loss.copy()
        open_ = left_slope < 0
        for _ in range(_CALLS):
            which = np.flatnonzero(open_)
            if not which.size:
                break
            at = np.zeros(self.n_examples)
            at[which] = (left_loss - right_loss)[which] / (right_slope - left_slope)[which]
            found = self._maximize(losses + at[self.owner] * direction, which)
            loss = found.sums(self.offsets, losses)
            slope = found.sums(self.offsets, direction) + level
            value = loss + at * slope
            below = left_loss + at * left_slope  # where the two lines meet
            bound[which] = np.minimum(bound, value)[which]
            open_ &= value > below + 1e-9
            falls, rises = open_ & (slope < 0), open_ & (slope >= 0)
            left_loss, left_slope = np.where(falls, loss, left_loss), np.where(falls, slope, left_slope)
            right_loss, right_slope = np.where(rises, loss, right_loss), np.where(rises, slope, right_slope)
        # Whole costs sum to whole numbers: round the bound down to one.
        steps = np.floor(bound * self._largest + 1e-6) / self._largest
        return np.clip(np.where(self._whole, steps, bound), 0.0, 1.0)

    def _any_other(self, direction: Floats, level: Floats) -> Floats:
        """Return 1, or 0 where every labelling but the gold one has <direction, counts> + level < 0."""
        best = self._maximize(direction)
        value = best.sums(self.offsets, direction) + level
        found = np.where(value < 0, 0.0, 1.0)
        if Capability.K_BEST not in self.structure.capabilities():
            return found  # 1 is a bound too
        for i in np.flatnonzero(self._losses.are_gold(best) & (value >= 0)).tolist():
            scores = np.ascontiguousarray(direction[self.offsets[i] : self.offsets[i + 1]])
            second = self.structure.k_best(i, scores, 2)[1:]
            found[i] = float(any(each[0] + level[i] >= 0 for each in second))
        return found

    def _apart(self, fixed: Labellings) -> tuple[Floats, Floats]:
        """Return (slope, constant) with E(y, fixed) <= <slope, counts(y)> + constant, by example."""
        if id(fixed) not in self._lines:
            counts = fixed.spread(self.offsets)
            most = self._most_uses(fixed, counts)
            chord = np.where(counts > 0, (most - 2.0 * counts) / np.maximum(most, 1.0), 1.0)
            self._lines[id(fixed)] = self.norms * chord, sums_by(self.owner, self.norms * counts, self.n_examples)
        return self._lines[id(fixed)]

    def _most_uses(self, fixed: Labellings, counts: Floats) -> Floats:
        """Return how often a labelling can use each of the slots that these labellings use (0 for others)."""
        most = np.zeros(len(counts))
        lengths = np.diff(fixed.indptr)
        for k in range(int(lengths.max(initial=0))):
            which = np.flatnonzero(lengths > k)
            places = self.offsets[which] + fixed.slots[fixed.indptr[which] + k]
            unit = np.zeros(len(counts))
            unit[places] = 1.0
            most[places] = self._maximize(unit, which).sums(self.offsets, unit)[which]
        return np.maximum(most, counts)

    def _cost_factors(self) -> Floats:
        """Return B: the largest E(y, gold) / cost(y) of each example, by Dinkelbach's method on E's linear bound."""
        slope, constant = self._apart(self.gold)
        factor = np.zeros(self.n_examples)
        for _ in range(_CALLS):
            found = self._maximize(slope - factor[self.owner] * self.costs)
            apart, cost = found.sums(self.offsets, slope) + constant, found.sums(self.offsets, self.costs)
            better = apart - factor * cost > 1e-9 * (1.0 + apart)
            if not better.any():
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(better, np.where(cost > 0, apart / cost, np.finfo(np.float64).max ** 0.25), factor)
        return factor * (1.0 + 1e-9)

    def _used(self) -> Booleans:
        """Return which slots some labelling uses; all slots if that is not known."""
        if Capability.EXPECTATION_ORACLE not in structure_capabilities(self.structure):
            return np.ones(len(self.owner), dtype=bool)
        return self._answers.expectations(np.zeros(len(self.owner))) > 0

    def _maximize(self, scores: Floats, which: Ints | None = None) -> Labellings:
        """Return best labellings under these slot scores, of all examples or of these (the others are empty)."""
        indptr, slots, counts = self._answers.best(scores, which)
        if which is None:
            return Labellings(indptr, slots, counts)
        lengths = np.zeros(self.n_examples, dtype=np.int64)
        lengths[which] = np.diff(indptr)
        return Labellings(pointers(lengths), slots, counts)
