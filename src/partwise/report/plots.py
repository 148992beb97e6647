"""Plots of reports: convergence of a run, a score against passes or a penalty, reliability of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.report.svg import Drawing, picture, shape, text
from partwise.support.arrays import Floats

if TYPE_CHECKING:
    from partwise.metrics import Calibration

#: Plots by seconds are drawn if the seconds per pass vary by more than this factor.
_VARIES = 1.5

BLUE, ORANGE, GREEN = "#2563b0", "#c2410c", "#15803d"
WIDTH, HEIGHT = 430.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 30.0, 42.0

#: The place of a value on an axis, and its text.
Tick = tuple[float, str]
#: From a value to its place in the picture.
Place = Callable[[float], float]
Point = tuple[float, float]
#: A name, a colour and values.
Curve = tuple[str, str, Sequence[float]]

_STYLE = (
    "<style>.pw-title{font-size:13px;font-weight:600;fill:#1f2933}.pw-tick{font-size:11px;fill:#52606d}"
    ".pw-axis{font-size:12px;fill:#3e4c59}.pw-grid{stroke:#e4e7eb;fill:none}</style>"
)


def convergence_plots(history: Mapping[str, Floats]) -> list[Drawing]:
    """Draw primal and dual, and the gap, by passes; and by seconds unless all passes take about the same time.

    Then the curve by seconds would look the same, as the axis is logarithmic.
    """
    columns = {name: list(map(float, values)) for name, values in history.items()}
    primal_dual: list[Curve] = [("primal", BLUE, columns["primal"]), ("dual", ORANGE, columns["dual"])]
    gap: list[Curve] = [("gap", GREEN, columns["gap"])]
    rates = [s / p for s, p in zip(columns["seconds"], columns["passes"], strict=True) if p > 0 and s > 0]
    axes = ("passes", "seconds") if len(rates) > 1 and max(rates) > _VARIES * min(rates) else ("passes",)
    return [
        _plot(f"{title} by {axis}", axis, columns[axis], curves)
        for axis in axes
        for title, curves in (("Primal and dual", primal_dual), ("Gap", gap))
    ]


def _plot(title: str, axis: str, x: Sequence[float], curves: Sequence[Curve]) -> Drawing:
    """Draw curves over x on logarithmic axes; values that are not positive lie beyond the lower edge."""
    above = _usable(x)
    # A logarithmic axis has no 0: the start is drawn at half of the smallest x above 0.
    xs = [value if value > 0 else min(above) / 2 for value in x] if above else []
    usable = [_usable(values) for _, _, values in curves]
    values = [value for own in usable for value in own]
    if not values or not xs:
        return _empty(title)
    # The lower edge is the smallest value of the first curve and the largest of the others: early duals, far below,
    # would squeeze everything else together.
    floors = [min(usable[0], default=min(values)), *(max(own, default=math.inf) for own in usable[1:])]
    low_y, high_y = _with_margin(min(floors), max(values))
    if len(curves) > 1:
        low_y = max(min(values), low_y / max((high_y / low_y) ** 0.25, 1.02))
    low_x, high_x = _with_margin(min(filter(math.isfinite, xs)), max(filter(math.isfinite, xs)))

    def inside(x_of: Place, y_of: Place) -> list[str]:
        body: list[str] = []
        for name, colour, values in curves:
            shown = [(a, b) for a, b in zip(xs, values, strict=True) if math.isfinite(a) and math.isfinite(b)]
            if shown:
                titles = [f"{name} {b:.6g} at {a:.4g} {axis}" for a, b in shown]
                body += _curve(shown, colour, x_of, y_of, titles)
        return body

    legend = [(name, colour) for name, colour, _ in curves] if len(curves) > 1 else []
    return _frame(title, Axis(axis, low_x, high_x, True), Axis("", low_y, high_y, True), inside, legend)


def draw_curve(points: Iterable[tuple[float, float]], title: str, axis: str, *, logarithmic: bool = False) -> Drawing:
    """Draw a score against passes, or against a penalty: the best point has a ring.

    Parameters
    ----------
    points : iterable of (x, score)
        What is not finite is left out, and with `logarithmic` any x that is not positive.
    title, axis : the title, and what x is
    logarithmic : the scale of x
    """
    finite = sorted((float(a), float(b)) for a, b in points if math.isfinite(a) and math.isfinite(b))
    shown = [(a, b) for a, b in finite if a > 0 or not logarithmic]
    if not shown:
        return _empty(title)
    best = max(shown, key=lambda point: point[1])

    def inside(x_of: Place, y_of: Place) -> list[str]:
        titles = [f"{b:.4f} at {a:.4g} {axis}" for a, b in shown]
        ring = shape("circle", cx=x_of(best[0]), cy=y_of(best[1]), r=6, fill="none", stroke=BLUE)
        return [*_curve(shown, BLUE, x_of, y_of, titles), ring]

    across = Axis(axis, *_with_margin(shown[0][0], shown[-1][0], logarithmic), logarithmic)
    values = [b for _, b in shown]
    return _frame(title, across, Axis("", *_with_margin(min(values), max(values), False)), inside)


def draw_reliability(calibration: Calibration) -> Drawing:
    """Draw the share of right labels by confidence, as `metrics.calibration` gives it: on the diagonal, if earned."""
    edges = calibration.edges.tolist()
    columns = (edges[:-1], edges[1:], calibration.count, calibration.confidence, calibration.accuracy)
    bins = [each for each in zip(*(list(column) for column in columns), strict=True) if each[2]]
    total = sum(n for _, _, n, _, _ in bins)

    def inside(x_of: Place, y_of: Place) -> list[str]:
        # The share of the tokens, as grey bars from below; the largest is a third as high as the plot.
        most = max(n for _, _, n, _, _ in bins) / total
        body = []
        for low, high, n, _, _ in bins:
            top = y_of(n / total / most / 3)
            place = {"x": x_of(low) + 1, "y": top, "width": x_of(high) - x_of(low) - 2, "height": y_of(0) - top}
            title = f"{n / total:.1%} of all have a confidence of {low:g} to {high:g}"
            body.append(shape("rect", title, **place, fill="#d5dbe3"))
        path = f"M{x_of(0):.1f} {y_of(0):.1f}L{x_of(1):.1f} {y_of(1):.1f}"
        body.append(shape("path", d=path, stroke="#6b7785", stroke_dasharray="4 3", fill="none"))
        titles = [f"{right:.1%} right of {n} with mean confidence {mean:.3f}" for _, _, n, mean, right in bins]
        return body + _curve([(mean, right) for _, _, _, mean, right in bins], BLUE, x_of, y_of, titles)

    return _frame("Share that is right, by confidence", Axis("confidence", 0, 1), Axis("", 0, 1), inside)


def _usable(values: Iterable[float]) -> list[float]:
    """Return the values that a logarithmic axis can show."""
    return [value for value in values if math.isfinite(value) and value > 0]


def _with_margin(low: float, high: float, logarithmic: bool = True) -> tuple[float, float]:
    """Return a range that is a little larger, and never empty."""
    if not logarithmic:
        margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
        return low - margin, high + margin
    ratio = max(high / low, 1.0001) if low > 0 and math.isfinite(high / low) else 1.0001
    margin = max(ratio**0.04, 1.0005)
    return low / margin, high * margin


@dataclass(frozen=True)
class Axis:
    """A range of values: linear, or logarithmic (then positive)."""

    name: str
    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return where a value is: 0 at the lower end, 1 at the upper end."""
        if self.logarithmic:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        return (log_ticks if self.logarithmic else linear_ticks)(self.low, self.high)


def _frame(
    title: str,
    across: Axis,
    up: Axis,
    inside: Callable[[Place, Place], Sequence[str]],
    legend: Sequence[tuple[str, str]] = (),
) -> Drawing:
    """Draw a title, axes with their ticks, a legend of (name, colour), and what `inside` draws with the two places."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT

    def x_of(value: float) -> float:
        return LEFT + across.share(value) * (right - LEFT)

    def y_of(value: float) -> float:
        if up.logarithmic and not value > 0:
            return 2 * HEIGHT  # beyond the lower edge, where it is clipped
        return min(bottom - up.share(value) * (bottom - TOP), 2 * HEIGHT)

    body = [_STYLE, text(LEFT, 18, title, anchor="start", cls="pw-title")]
    for value, name in up.ticks():
        body.append(f'<path d="M{LEFT:.0f} {y_of(value):.1f}H{right:.0f}" class="pw-grid"/>')
        body.append(text(LEFT - 6, y_of(value) + 4, name, anchor="end", cls="pw-tick"))
    for value, name in across.ticks():
        body.append(f'<path d="M{x_of(value):.1f} {TOP:.0f}V{bottom:.0f}" class="pw-grid"/>')
        body.append(text(x_of(value), bottom + 16, name, cls="pw-tick"))
    body.append(text((LEFT + right) / 2, HEIGHT - 8, across.name, cls="pw-axis"))
    # An inner picture clips its content to its frame, without an identifier that would have to be unique in a page.
    # It is a little larger than the axes, so that dots on them are whole.
    box = f'x="{LEFT - 3:.0f}" y="{TOP - 3:.0f}" width="{right - LEFT + 6:.0f}" height="{bottom - TOP + 6:.0f}"'
    body.append(f'<path d="M{LEFT:.0f} {TOP:.0f}H{right:.0f}V{bottom:.0f}H{LEFT:.0f}Z" fill="none" stroke="#9aa5b1"/>')
    body.append(f'<svg {box} viewBox="{LEFT - 3:.0f} {TOP - 3:.0f} {right - LEFT + 6:.0f} {bottom - TOP + 6:.0f}">')
    body += inside(x_of, y_of)
    body.append("</svg>")
    for k, (name, colour) in enumerate(legend):
        x0 = right - 62.0 * (len(legend) - k)
        body.append(f'<path d="M{x0:.0f} 14h16" stroke="{colour}" stroke-width="2.5"/>')
        body.append(text(x0 + 20, 18, name, anchor="start", cls="pw-axis"))
    return picture(WIDTH, HEIGHT, body, title, style="max-width:100%;height:auto")


def _empty(title: str) -> Drawing:
    body = [_STYLE, text(LEFT, 18, title, anchor="start", cls="pw-title")]
    return picture(WIDTH, HEIGHT, [*body, text(WIDTH / 2, HEIGHT / 2, "nothing to show", cls="pw-tick")], title)


def _curve(points: Sequence[Point], colour: str, x_of: Place, y_of: Place, titles: Sequence[str]) -> list[str]:
    """Draw a line through points, with dots that have titles."""
    path = "M" + "L".join(f"{x_of(a):.1f} {y_of(b):.1f}" for a, b in points)
    out = [shape("path", d=path, fill="none", stroke=colour, stroke_width=2, stroke_linejoin="round")]
    every = max(1, len(points) // 60)
    for k in [*range(0, len(points) - 1, every), len(points) - 1]:
        a, b = points[k]
        out.append(shape("circle", titles[k], cx=x_of(a), cy=y_of(b), r=2.4, fill=colour))
    return out


def linear_ticks(low: float, high: float) -> list[Tick]:
    """Return four to ten round numbers between two numbers, and their texts."""
    unit, digits = _unit(low, high, 6)
    found = [k * unit for k in range(math.ceil(low / unit - 1e-9), math.floor(high / unit + 1e-9) + 1)]
    return [(value, f"{value:.{digits}f}" if digits <= 8 else f"{value:.3g}") for value in found]


def log_ticks(low: float, high: float) -> list[Tick]:
    """Return round numbers between two positive ones: powers of ten, or finer where those are too few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / 6))
    found = [10.0**k for k in range(first, last + 1) if k % every == 0 and low <= 10.0**k <= high]
    if len(found) < 2:
        found = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(found) < 3 and (high / low) < 20:
        unit, digits = _unit(low, high, 5)
        found = [k * unit for k in range(math.ceil(low / unit), math.floor(high / unit) + 1)]
        if high < 1e6 and digits <= 6:
            return [(value, f"{value:.{digits}f}") for value in found if value > 0]
    return [(value, _number(value)) for value in found]


def _unit(low: float, high: float, most: int) -> tuple[float, int]:
    """Return the step between at most so many ticks, and its digits after the point."""
    unit = 10.0 ** math.floor(math.log10((high - low) / 4))
    unit *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * unit) <= most)
    return unit, max(0, -math.floor(math.log10(unit) + 1e-9))


def _number(value: float) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    power = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] if digit != "-" else "⁻" for digit in str(int(exponent)))
    return f"10{power}" if mantissa == "1" else f"{mantissa}·10{power}"
