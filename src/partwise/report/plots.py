"""Plots of reports: convergence of a run, a score against passes or a penalty, reliability of probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from partwise.report.axes import BLUE, GREEN, ORANGE, Axis, Place, curve, empty, frame
from partwise.report.svg import Drawing, safe

#: By how much seconds per pass must vary for plots by seconds to look other than those by passes.
_VARIES = 1.5

Curve = tuple[str, str, Sequence[float]]  # name, colour, values


def convergence_plots(history: Mapping[str, Any]) -> list[Drawing]:
    """Primal and dual, and the gap, by passes; and by seconds, where that is another picture.

    On logarithmic axes a constant number of seconds per pass moves a curve, and leaves it as it is.
    """
    columns = {name: [float(value) for value in values] for name, values in history.items()}
    primal_dual: list[Curve] = [("primal", BLUE, columns["primal"]), ("dual", ORANGE, columns["dual"])]
    gap: list[Curve] = [("gap", GREEN, columns["gap"])]
    rates = [s / p for s, p in zip(columns["seconds"], columns["passes"], strict=True) if p > 0 and s > 0]
    axes = ("passes", "seconds") if len(rates) > 1 and max(rates) > _VARIES * min(rates) else ("passes",)
    return [
        plot(f"{title} by {axis}", axis, columns[axis], curves)
        for axis in axes
        for title, curves in (("Primal and dual", primal_dual), ("Gap", gap))
    ]


def plot(title: str, axis: str, x: Sequence[float], curves: Sequence[Curve]) -> Drawing:
    """Curves over x on logarithmic axes. What is not positive is beyond the lower edge."""
    xs = _positive(x)
    usable = [value for _, _, values in curves for value in values if math.isfinite(value) and value > 0]
    if not usable or not any(map(math.isfinite, xs)):
        return empty(title)
    # The lower edge is the smallest value of the first curve and the largest of the others: early duals, far below,
    # would squeeze everything else together.
    floors = [min((v for v in curves[0][2] if math.isfinite(v) and v > 0), default=min(usable))]
    floors += [max((v for v in values if math.isfinite(v) and v > 0), default=math.inf) for _, _, values in curves[1:]]
    low_y, high_y = _room(min(floors), max(usable))
    if len(curves) > 1:
        low_y = max(min(usable), low_y / max((high_y / low_y) ** 0.25, 1.02))
    low_x, high_x = _room(min(v for v in xs if math.isfinite(v)), max(v for v in xs if math.isfinite(v)))

    def inside(x_of: Place, y_of: Place) -> list[str]:
        body: list[str] = []
        for name, colour, values in curves:
            shown = [(a, b) for a, b in zip(xs, values, strict=True) if math.isfinite(a) and math.isfinite(b)]
            if shown:
                titles = [f"{name} {b:.6g} at {a:.4g} {axis}" for a, b in shown]
                body += curve(shown, colour, x_of, y_of, titles)
        return body

    legend = [(name, colour) for name, colour, _ in curves] if len(curves) > 1 else []
    return frame(title, Axis(axis, low_x, high_x, True), Axis("", low_y, high_y, True), inside, legend)


def draw_curve(points: Iterable[tuple[float, float]], title: str, axis: str, *, logarithmic: bool = False) -> Drawing:
    """A score against passes, or against a penalty: the best point has a ring.

    Parameters
    ----------
    points : iterable of (x, score)
        What is not finite is left out, and with `logarithmic` any x that is not positive.
    title : str
    axis : str
        What x is.
    logarithmic : bool
        The scale of x.
    """
    shown = sorted((float(a), float(b)) for a, b in points if math.isfinite(a) and math.isfinite(b))
    if logarithmic:
        shown = [(a, b) for a, b in shown if a > 0]
    if not shown:
        return empty(title)
    best = max(shown, key=lambda point: point[1])

    def inside(x_of: Place, y_of: Place) -> list[str]:
        titles = [f"{b:.4f} at {a:.4g} {safe(axis)}" for a, b in shown]
        ring = f'<circle cx="{x_of(best[0]):.1f}" cy="{y_of(best[1]):.1f}" r="6" fill="none" stroke="{BLUE}"/>'
        return [*curve(shown, BLUE, x_of, y_of, titles), ring]

    first, last = shown[0][0], shown[-1][0]
    across = Axis(axis, *_room(first, last), True) if logarithmic else Axis(axis, *_around(first, last))
    values = [b for _, b in shown]
    return frame(title, across, Axis("", *_around(min(values), max(values))), inside)


def draw_reliability(calibration: Any) -> Drawing:
    """Of the tokens labelled with this confidence, the share that is right: on the diagonal, if confidence is earned.

    Parameters
    ----------
    calibration : Calibration
        What `partwise.metrics.calibration` gives.
    """
    bins = [
        (float(low), float(high), int(n), float(mean), float(right))
        for low, high, n, mean, right in zip(
            calibration.edges[:-1],
            calibration.edges[1:],
            calibration.count,
            calibration.confidence,
            calibration.accuracy,
            strict=True,
        )
        if n
    ]
    total = sum(n for _, _, n, _, _ in bins)

    def inside(x_of: Place, y_of: Place) -> list[str]:
        # The share of the tokens, as grey bars from below; the largest is a third as high as the plot.
        most = max(n for _, _, n, _, _ in bins) / total
        body = []
        for low, high, n, _, _ in bins:
            top = y_of(n / total / most / 3)
            place = f'x="{x_of(low) + 1:.1f}" y="{top:.1f}" width="{x_of(high) - x_of(low) - 2:.1f}"'
            body.append(
                f'<rect {place} height="{y_of(0) - top:.1f}" fill="#d5dbe3">'
                f"<title>{n / total:.1%} of all have a confidence of {low:g} to {high:g}</title></rect>"
            )
        body.append(
            f'<path d="M{x_of(0):.1f} {y_of(0):.1f}L{x_of(1):.1f} {y_of(1):.1f}" stroke="#6b7785" '
            'stroke-dasharray="4 3" fill="none"/>'
        )
        titles = [f"{right:.1%} right of {n} with mean confidence {mean:.3f}" for _, _, n, mean, right in bins]
        return body + curve([(mean, right) for _, _, _, mean, right in bins], BLUE, x_of, y_of, titles)

    return frame("Share that is right, by confidence", Axis("confidence", 0, 1), Axis("", 0, 1), inside)


def _positive(values: Sequence[float]) -> list[float]:
    """The values with 0 moved to half of the smallest that is above it: a logarithmic axis has no 0."""
    above = [value for value in values if math.isfinite(value) and value > 0]
    first = min(above) / 2 if above else math.nan
    return [value if value > 0 else first for value in values]


def _room(low: float, high: float) -> tuple[float, float]:
    """A little more than this range, and never nothing, for a logarithmic axis."""
    ratio = max(high / low, 1.0001) if low > 0 and math.isfinite(high / low) else 1.0001
    margin = max(ratio**0.04, 1.0005)
    return low / margin, high * margin


def _around(low: float, high: float) -> tuple[float, float]:
    """The same for a linear one."""
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
    return low - margin, high + margin
