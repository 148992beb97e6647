"""Axes of plots, linear and logarithmic, and the frame that curves are drawn in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partwise.report.svg import Drawing, picture, text

BLUE, ORANGE, GREEN = "#2563b0", "#c2410c", "#15803d"
WIDTH, HEIGHT = 430.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 30.0, 42.0

Tick = tuple[float, str]
Place = Callable[[float], float]

STYLE = (
    "<style>.pw-title{font-size:13px;font-weight:600;fill:#1f2933}.pw-tick{font-size:11px;fill:#52606d}"
    ".pw-axis{font-size:12px;fill:#3e4c59}.pw-grid{stroke:#e4e7eb;fill:none}</style>"
)


@dataclass(frozen=True)
class Axis:
    """A range of values: linear, or logarithmic (then positive)."""

    name: str
    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value is: 0 at the lower end, 1 at the upper one."""
        if self.logarithmic:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        return (log_ticks if self.logarithmic else linear_ticks)(self.low, self.high)


def frame(
    title: str,
    across: Axis,
    up: Axis,
    inside: Callable[[Place, Place], list[str]],
    legend: Sequence[tuple[str, str]] = (),
) -> Drawing:
    """A plot: title, axes with their ticks, a legend of (name, colour), and what `inside` draws with the two places."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT

    def x_of(value: float) -> float:
        return LEFT + across.share(value) * (right - LEFT)

    def y_of(value: float) -> float:
        if up.logarithmic and not value > 0:
            return 2 * HEIGHT  # beyond the lower edge, where it is clipped
        return min(bottom - up.share(value) * (bottom - TOP), 2 * HEIGHT)

    body = [STYLE, text(LEFT, 18, title, anchor="start", cls="pw-title")]
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


def empty(title: str) -> Drawing:
    """A plot of nothing."""
    body = [STYLE, text(LEFT, 18, title, anchor="start", cls="pw-title")]
    return picture(WIDTH, HEIGHT, [*body, text(WIDTH / 2, HEIGHT / 2, "nothing to show", cls="pw-tick")], title)


def curve(
    points: Sequence[tuple[float, float]], colour: str, x_of: Place, y_of: Place, titles: Sequence[str]
) -> list[str]:
    """A line through points, with dots that say what they are."""
    path = "L".join(f"{x_of(a):.1f} {y_of(b):.1f}" for a, b in points)
    out = [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>']
    every = max(1, len(points) // 60)
    for k in [*range(0, len(points) - 1, every), len(points) - 1]:
        a, b = points[k]
        out.append(
            f'<circle cx="{x_of(a):.1f}" cy="{y_of(b):.1f}" r="2.4" fill="{colour}"><title>{titles[k]}</title></circle>'
        )
    return out


def linear_ticks(low: float, high: float) -> list[Tick]:
    """Round numbers between two others, four to ten of them."""
    unit = 10.0 ** math.floor(math.log10((high - low) / 4))
    unit *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * unit) <= 6)
    digits = max(0, -math.floor(math.log10(unit) + 1e-9))
    found = [k * unit for k in range(math.ceil(low / unit - 1e-9), math.floor(high / unit + 1e-9) + 1)]
    return [(value, f"{value:.{digits}f}" if digits <= 8 else f"{value:.3g}") for value in found]


def log_ticks(low: float, high: float) -> list[Tick]:
    """Round numbers between two positive ones: powers of ten, or finer where there are too few of those."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / 6))
    found = [10.0**k for k in range(first, last + 1) if k % every == 0 and low <= 10.0**k <= high]
    if len(found) < 2:
        found = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(found) < 3 and (high / low) < 20:
        unit = 10.0 ** math.floor(math.log10((high - low) / 4))
        unit *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * unit) <= 5)
        found = [k * unit for k in range(math.ceil(low / unit), math.floor(high / unit) + 1)]
        digits = max(0, -math.floor(math.log10(unit) + 1e-9))
        if high < 1e6 and digits <= 6:
            return [(value, f"{value:.{digits}f}") for value in found if value > 0]
    return [(value, _number(value)) for value in found]


def _number(value: float) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    power = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] if digit != "-" else "⁻" for digit in str(int(exponent)))
    return f"10{power}" if mantissa == "1" else f"{mantissa}·10{power}"
