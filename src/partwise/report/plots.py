"""Convergence of a run: primal and dual, and the gap, against passes and seconds, on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .svg import Drawing, picture, text

_BLUE, _ORANGE, _GREEN = "#2563b0", "#d97706", "#15803d"
_WIDTH, _HEIGHT = 430.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 30.0, 42.0

Curve = tuple[str, str, Sequence[float]]  # name, colour, values


def convergence_plots(history: Mapping[str, Any]) -> list[Drawing]:
    """Four plots: primal and dual against passes and seconds, the gap against passes and seconds."""
    columns = {name: [float(value) for value in values] for name, values in history.items()}
    primal_dual: list[Curve] = [("primal", _BLUE, columns["primal"]), ("dual", _ORANGE, columns["dual"])]
    gap: list[Curve] = [("gap", _GREEN, columns["gap"])]
    return [
        plot(f"{title} by {axis}", axis, columns[axis], curves)
        for title, curves in (("Primal and dual", primal_dual), ("Gap", gap))
        for axis in ("passes", "seconds")
    ]


def plot(title: str, axis: str, x: Sequence[float], curves: Sequence[Curve]) -> Drawing:
    """Curves over x on logarithmic axes. What is not positive is beyond the lower edge."""
    xs = _positive(x)
    usable = [value for _, _, values in curves for value in values if math.isfinite(value) and value > 0]
    body = [_STYLE, text(_LEFT, 18, title, anchor="start", cls="pw-title")]
    if not usable or not any(map(math.isfinite, xs)):
        return picture(_WIDTH, _HEIGHT, [*body, text(_WIDTH / 2, _HEIGHT / 2, "nothing to show", cls="pw-tick")], title)
    # The lower edge is the smallest value of the first curve and the largest of the others: early duals, far below,
    # would squeeze everything else together.
    floors = [min((v for v in curves[0][2] if math.isfinite(v) and v > 0), default=min(usable))]
    floors += [max((v for v in values if math.isfinite(v) and v > 0), default=math.inf) for _, _, values in curves[1:]]
    low_y, high_y = _room(min(floors), max(usable))
    if len(curves) > 1:
        low_y = max(min(usable), low_y / max((high_y / low_y) ** 0.25, 1.02))
    low_x, high_x = _room(min(v for v in xs if math.isfinite(v)), max(v for v in xs if math.isfinite(v)))

    def across(value: float) -> float:
        share = (math.log(value) - math.log(low_x)) / (math.log(high_x) - math.log(low_x))
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        if not value > 0:
            return 2 * _HEIGHT
        share = (math.log(value) - math.log(low_y)) / (math.log(high_y) - math.log(low_y))
        return min(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 2 * _HEIGHT)

    bottom = _HEIGHT - _BOTTOM
    for value, name in log_ticks(low_y, high_y):
        y = down(value)
        body.append(f'<path d="M{_LEFT:.0f} {y:.1f}H{_WIDTH - _RIGHT:.0f}" class="pw-grid"/>')
        body.append(text(_LEFT - 6, y + 4, name, anchor="end", cls="pw-tick"))
    for value, name in log_ticks(low_x, high_x):
        body.append(f'<path d="M{across(value):.1f} {_TOP:.0f}V{bottom:.0f}" class="pw-grid"/>')
        body.append(text(across(value), bottom + 16, name, cls="pw-tick"))
    body.append(text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, axis, cls="pw-axis"))
    # An inner picture clips its content to its frame, without an identifier that would have to be unique in a page.
    frame = f'x="{_LEFT:.0f}" y="{_TOP:.0f}" width="{_WIDTH - _LEFT - _RIGHT:.0f}" height="{bottom - _TOP:.0f}"'
    body.append(f'<svg {frame} viewBox="{_LEFT:.0f} {_TOP:.0f} {_WIDTH - _LEFT - _RIGHT:.0f} {bottom - _TOP:.0f}">')
    for name, colour, values in curves:
        body.extend(_curve(name, colour, axis, [(a, b) for a, b in zip(xs, values, strict=True)], across, down))
    body.append("</svg>")
    body.append(f'<rect {frame} fill="none" stroke="#9aa5b1"/>')
    if len(curves) > 1:
        for k, (name, colour, _) in enumerate(curves):
            x0 = _WIDTH - _RIGHT - 62.0 * (len(curves) - k)
            body.append(f'<path d="M{x0:.0f} 14h16" stroke="{colour}" stroke-width="2.5"/>')
            body.append(text(x0 + 20, 18, name, anchor="start", cls="pw-axis"))
    return picture(_WIDTH, _HEIGHT, body, title, style="max-width:100%;height:auto")


_STYLE = (
    "<style>.pw-title{font-size:13px;font-weight:600;fill:#1f2933}.pw-tick{font-size:11px;fill:#52606d}"
    ".pw-axis{font-size:12px;fill:#3e4c59}.pw-grid{stroke:#e4e7eb;fill:none}</style>"
)


def _curve(name: str, colour: str, axis: str, points: list[tuple[float, float]], across: Any, down: Any) -> list[str]:
    shown = [(a, b) for a, b in points if math.isfinite(a) and math.isfinite(b)]
    if not shown:
        return []
    path = "L".join(f"{across(a):.1f} {down(b):.1f}" for a, b in shown)
    out = [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>']
    every = max(1, len(shown) // 60)
    for a, b in [*shown[:-1:every], shown[-1]]:
        if b > 0:
            out.append(
                f'<circle cx="{across(a):.1f}" cy="{down(b):.1f}" r="2.4" fill="{colour}">'
                f"<title>{name} {b:.6g} at {a:.4g} {axis}</title></circle>"
            )
    return out


def _positive(values: Sequence[float]) -> list[float]:
    """The values with 0 moved to half of the smallest that is above it: a logarithmic axis has no 0."""
    above = [value for value in values if math.isfinite(value) and value > 0]
    first = min(above) / 2 if above else math.nan
    return [value if value > 0 else first for value in values]


def _room(low: float, high: float) -> tuple[float, float]:
    """A little more than this range, and never nothing."""
    ratio = max(high / low, 1.0001) if low > 0 and math.isfinite(high / low) else 1.0001
    margin = max(ratio**0.04, 1.0005)
    return low / margin, high * margin


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
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
