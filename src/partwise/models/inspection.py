"""Results of inspection: the largest weights, explanations of an answer, outcomes of pruning."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partwise.problem.result import Result
from partwise.support.arrays import Floats, Ints

Named: TypeAlias = list[tuple[Any, float]]


@dataclass(frozen=True)
class TopFeatures:
    """The weights of the largest absolute values, the largest first.

    labels
        For each label, attributes and their weights.
    transitions
        For each pair (label, next label), attributes and their weights; the attribute is None for the pair's own
        weight. The pair with the largest weight comes first.
    """

    labels: dict[Any, Named]
    transitions: dict[tuple[Hashable, ...], Named] = field(default_factory=dict)

    def groups(self, n_transitions: int = 12) -> dict[str, Named]:
        """Return lists of (name, weight) by title, for a report; of transitions the largest ones."""
        found: dict[str, Named] = {str(label): list(rows) for label, rows in self.labels.items()}
        flat = [
            (" → ".join(map(str, pair)) + ("" if name is None else f"  {name}"), weight)
            for pair, rows in self.transitions.items()
            for name, weight in rows
        ]
        if flat:
            found["transitions"] = sorted(flat, key=lambda row: -abs(row[1]))[:n_transitions]
        return found

    def __str__(self) -> str:
        lines = []
        for title, rows in self.groups().items():
            lines.append(title)
            lines += [f"  {weight:+10.4f}  {name}" for name, weight in rows]
        return "\n".join(lines)


@dataclass(frozen=True)
class Contribution:
    """What one feature adds to the score of the best answer, less what it adds to that of the second-best one.

    kind
        "attribute", "transition", "begin", "end" or "intercept"; with model="maxent" also "normaliser", minus log Z of
        the labels that could stand at the position after the tags before it. Segments: also "first" and "last" for
        attributes at their borders, "length", and "segment" for features of the whole.
    name
        The attribute; None for a transition's own weight and an intercept.
    position
        Where the feature is (a transition: at its right end); None for a classifier.
    best, second
        The labels that the two answers have there (transitions: pairs of labels, with model="maxent" also triples;
        normalisers: the tags before, None before the beginning; lengths and transitions of segments: their numbers).
    """

    kind: str
    name: Hashable
    position: int | None
    best: Hashable
    second: Hashable
    amount: float


@dataclass(frozen=True)
class Explanation:
    """Why the best answer is better than the second-best one.

    The amounts of `contributions` (the largest first) add up to `difference`, which is `best_score` - `second_score`.

    With a `position`, the label there (the head of a word) is explained: `second` is the best answer with another one,
    and `contributions` include those of the neighbours (`elsewhere`).
    """

    best: Any
    second: Any
    best_score: float
    second_score: float
    contributions: list[Contribution]
    position: int | None = None

    @property
    def elsewhere(self) -> float:
        """What features at other positions add to the difference: what the neighbours say about this one."""
        others = [each.amount for each in self.contributions if each.position != self.position]
        return 0.0 if self.position is None else sum(others)

    @property
    def difference(self) -> float:
        """By how much the best answer's score is above the other's."""
        return self.best_score - self.second_score

    def __str__(self) -> str:
        lines = [f"best    {self.best}", f"second  {self.second}", f"difference of scores {self.difference:.6g}"]
        if self.position is not None:
            lines[-1] += f" for the answer at {self.position}, {self.elsewhere:.6g} of it elsewhere"
        for each in self.contributions[:20]:
            place = "" if each.position is None else f" at {each.position}"
            name = each.kind if each.name is None else f"{each.kind} {each.name}"
            lines.append(f"  {each.amount:+10.4f}  {name}{place}: {each.best} rather than {each.second}")
        if len(self.contributions) > 20:
            rest = sum(each.amount for each in self.contributions[20:])
            lines.append(f"  {rest:+10.4f}  {len(self.contributions) - 20} others")
        return "\n".join(lines)


@dataclass(frozen=True)
class Pruning:
    """What pruning did: numbers of weights, the largest absolute value dropped, and scores if there were data."""

    weights_before: int
    weights_after: int
    largest_dropped: float
    score_before: float | None = None
    score_after: float | None = None


def explanation(
    best: Any, second: Any, scores: tuple[float, float], found: list[Contribution], position: int | None = None
) -> Explanation:
    """Return why one answer is better, with contributions of the same feature added up, the largest first."""
    merged: dict[Contribution, float] = {}
    for each in found:
        feature = replace(each, amount=0.0)
        merged[feature] = merged.get(feature, 0.0) + each.amount
    kept = [replace(feature, amount=amount) for feature, amount in merged.items() if amount]
    kept.sort(key=lambda each: -abs(each.amount))
    return Explanation(best, second, scores[0], scores[1], kept, position)


def choose_kept(weights: Floats, threshold: float | None, keep: float | None) -> NDArray[np.bool_]:
    """Return which weights (never a 0) stay: those above the threshold, or `keep` (a float: a share) of the largest."""
    if (threshold is None) == (keep is None):
        raise ValueError("prune takes a threshold or a number of weights to keep, one of them")
    sizes: Floats = np.abs(weights)
    if threshold is not None:
        if isinstance(threshold, bool) or not (np.isfinite(threshold) and threshold >= 0):
            raise ValueError(f"threshold must be a number >= 0, got {threshold!r}")
        return sizes > threshold
    assert keep is not None
    whole = isinstance(keep, (int, np.integer)) and not isinstance(keep, bool)
    if not (whole and keep >= 0) and not (isinstance(keep, (float, np.floating)) and 0 <= keep <= 1):
        raise ValueError(f"keep must be an integer >= 0 or a share between 0.0 and 1.0, got {keep!r}")
    count = min(int(keep) if whole else round(float(keep) * len(weights)), len(weights))
    kept = np.zeros(len(weights), dtype=bool)
    kept[np.argsort(-sizes, kind="stable")[:count]] = True
    return kept & (sizes > 0)


def choose_among(
    tables: Sequence[Floats], threshold: float | None, keep: float | None
) -> tuple[list[NDArray[np.bool_]], tuple[int, int, float]]:
    """Return which weights of each table stay, by the sizes of all of them, and `counts_of` all."""
    every = np.concatenate(tables)
    kept = choose_kept(every, threshold, keep)
    return np.split(kept, np.cumsum([len(table) for table in tables])[:-1]), counts_of(every, kept)


def counts_of(weights: Floats, kept: NDArray[np.bool_]) -> tuple[int, int, float]:
    """Return what pruning does: (weights before, weights after, the largest absolute value dropped)."""
    return len(weights), int(kept.sum()), float(np.abs(weights[~kept]).max(initial=0.0))


def without_certificate(result: Result, weights: Floats, counts: tuple[int, int, float]) -> Result:
    """Return the result of a model that was pruned: its objective is no longer known."""
    note = f"pruned to {counts[1]} of {counts[0]} weights, the largest dropped {counts[2]:.3g}"
    unknown: dict[str, Any] = {"primal": math.nan, "gap": math.inf, "status": "no certificate", "dual_point": None}
    return replace(result, weights=weights, **unknown).noted(note)


def largest(names: Callable[[int], Hashable], ids: Ints, weights: Floats, n: int) -> Named:
    """Return the n weights of the largest absolute values with the names of their ids, the largest first."""
    some = np.flatnonzero(weights)
    if len(some) > n:
        some = some[np.argpartition(-np.abs(weights[some]), n - 1)[:n]]
    some = some[np.lexsort((ids[some], -np.abs(weights[some])))]
    return [(None if i < 0 else names(i), w) for i, w in zip(ids[some].tolist(), weights[some].tolist(), strict=True)]


def by_size(transitions: dict[tuple[Hashable, ...], Named]) -> dict[tuple[Hashable, ...], Named]:
    """Return lists of weights by transition, that with the largest weight first."""
    return dict(sorted(transitions.items(), key=lambda item: -abs(item[1][0][1])))
