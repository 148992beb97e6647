"""Make curves and numbers of the records of `training.train`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from papers.experiment import Record
from papers.histories import first
from papers.outcome import Curve

Values = list[float]


def curve(
    label: str,
    record: Record,
    y: str,
    x: str = "passes",
    of: Callable[[float], float] = float,
    dashed: bool = False,
    beside: str = "",
) -> Curve:
    """Make a curve of a trace's column `y` against its column `x`; of: applied to each y. For the rest see `Curve`."""
    trace = record["trace"]
    return Curve(label, trace[x], [of(value) for value in trace[y]], dashed, beside)


def error(score: float) -> float:
    """Convert a score to an error in percent."""
    return 100.0 * (1.0 - score)


def percent(score: float) -> float:
    return 100.0 * score


def over(best: float) -> Callable[[float], float]:
    """Return a function that computes how far a value is above `best`, relative to `best`."""
    return lambda value: (value - best) / abs(best)


def below(best: float) -> Callable[[float], float]:
    """Return a function that computes how far a value is below `best`, relative to `best`."""
    return lambda value: (best - value) / abs(best)


def share_of(best: float) -> Callable[[float], float]:
    return lambda value: value / abs(best)


def scores(record: Record, of: Callable[[float], float] = percent) -> list[float]:
    """Return the scores of a run at the evaluations that have one."""
    return [of(score) for score in record["trace"]["score"] if math.isfinite(score)]


def near_best(curves: Iterable[Curve], span: float, least: bool = True) -> tuple[float, float]:
    """Return the limits of an axis that shows values within `span` of the best one; least: the smallest is the best."""
    values = [y for each in curves for y in each.y if y is not None and math.isfinite(y)]
    margin = 0.05 * span
    return (min(values) - margin, min(values) + span) if least else (max(values) - span, max(values) + margin)


def optimum(records: Iterable[Record]) -> float:
    """Estimate a problem's optimum as the middle between the best dual and the best primal value of these runs."""
    found = list(records)
    low: float = max(max(record["trace"]["dual"]) for record in found)
    high: float = min(min(record["trace"]["primal"]) for record in found)
    return 0.5 * (low + high)


def passes_to(record: Record, best: float, share: float, axis: str = "passes") -> float | None:
    """Return the passes (or other `axis`) until the primal value is within this share of the optimum."""
    return first(record["trace"], "primal", most=best + share * abs(best), give=axis)


def passes_to_gap(record: Record, best: float, share: float, axis: str = "passes") -> float | None:
    """Return the passes (or other `axis`) until the gap is within this share of the optimum."""
    return first(record["trace"], "gap", most=share * abs(best), give=axis)


def overtakes(record: Record, other: Record, y: str = "primal", axis: str = "passes") -> float | None:
    """Return the point from which on `record` has lower values than `other`; None if it has not at the end of both."""
    mine, theirs = record["trace"], other["trace"]
    end = min(mine[axis][-1], theirs[axis][-1])
    points: Values = sorted({x for x in (*mine[axis], *theirs[axis]) if x <= end})
    ahead = np.interp(points, mine[axis], mine[y]) < np.interp(points, theirs[axis], theirs[y])
    behind = np.flatnonzero(~ahead)
    if behind.size == 0:
        return points[0]
    return points[behind[-1] + 1] if behind[-1] + 1 < len(points) else None


def seconds_per_pass(record: Record) -> float:
    trace: dict[str, Values] = record["trace"]
    return (trace["cpu_seconds"][-1] - trace["cpu_seconds"][0]) / (trace["passes"][-1] - trace["passes"][0])


def straightness(x: Values, y: Values) -> float:
    """Return R^2 of a line fitted to log y; NaN for fewer than 3 points."""
    points = [(a, math.log(b)) for a, b in zip(x, y, strict=True) if b > 0]
    if len(points) < 3:
        return math.nan
    return float(np.corrcoef(np.array(points).T)[0, 1] ** 2)


def text(value: float | None, digits: int = 3) -> str:
    return "not reached" if value is None else format(value, f".{digits}g")
