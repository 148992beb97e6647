"""The page and the figure of `python -m benchmarks rates`."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rates import Bound, Curve

_SHOWN = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
_MARKERS = "osD^vPX*<>hd"

HEAD = """# Rates of convergence

Written by `{command}`, on the built-in treebank ({size}; l2 = 1, with l1: both 1/2). Every solver has its own
default options and start. `Solver.rate_for(loss)` is the rate that the library states for a loss. The column "proof" says whose theorem it is, and where that is about other
options than the defaults or about another method: the rate is then measured, and not proved.

If the passes to an accuracy eps grow like (1/eps)^q, a proof of O(1/eps) says q <= 1, O(1/sqrt(eps)) q <= 1/2, and a linear
rate, O(log 1/eps), has a q that falls to 0 as the accuracy rises. q is fitted to the last half of the decades that the run went through, and compared with the rate
stated. Accuracies are relative to the optimum and of what the proof is about: the certified gap, or the distance of the dual or of the primal value
from the optimum. Theorems are upper bounds: "faster" is no contradiction. "Slower, as far as it went" is said where q is above what is stated when the run ended after {cap} passes or {seconds:g} seconds
(bundle methods, whose quadratic programs grow with the passes, end by the clock).

What to see: with a temperature every method but `sgd` is linear. On the hinge the dual is a quadratic program over polytopes, and methods that keep labellings (`bcfw`, `smo`, `cutting-plane`, `annealed`) become
linear once they have those of the optimum, though nobody has proved it of their block steps; `excessive-gap` shows the 1/2 of its theorem, and its bound is close to what it took. `dcd` is linear once its working sets stay, as its Theorem 2 says.
`newton` is linear and not superlinear, as it solves its systems to a constant accuracy (`cg_tol`).

```{{image}} {figure}
:alt: Accuracy against passes for every solver, one panel per problem; sublinear methods are straight lines on these axes, linear ones fall off
```
"""  # noqa: E501

BOUNDS = """## Bounds with their constants

The steps of the theorems, from uniform distributions, with l2 as large as the largest squared feature difference (|A| = 1 in Collins et al.): there the bounds are
about something. Passes to a relative accuracy, or labellings added with a violation of delta, against `eg_passes`, `excessive_gap_steps` and `dcd_additions` of
[the general methods](methods.md).

| theorem | run | accuracy or delta | measured | bound | bound / measured |
|---|---|---|---|---|---|
"""  # noqa: E501

CHECKS = """## Theorems as tests

Each inequality below is checked on small problems at every step (`tests/theorems`), three times: on the solver's run, where it must hold, on one that stands still and on one with a wrong
step, where it must break.

| theorem | what is checked | on |
|---|---|---|
| Collins et al. 2008, Corollary 1 | eta (Q(u') - Q*) <= D[u* \\|\\| u] - D[u* \\|\\| u'] at every step | `eg-batch`, `eg-primal` |
| Theorem 1 | Q(u) - Q* <= D[u* \\|\\| u1] / (eta T), and e^(-eta T) / eta D for smooth losses | `eg-batch`, `eg-primal` |
| Theorem 2, (20) | the same in the mean over all n^T sequences of visits; one step in the mean | `eg` |
| Bartlett et al. 2004, Theorem 1 | the mean of Q over T steps with the step 0.4 / (B + lambda) | `eg_qp` |
| Zhang et al. 2011, Theorems 4 and 5 | gap <= 6 L D / ((k + 1) (k + 2)); J_mu(w) <= D(alpha) | `excessive-gap` |
| Corollary 7 | D* - D(alpha) <= 6 L d(alpha*) / ((k + 1) (k + 2)) | `excessive-gap` |
| Huang et al. 2010, Theorem 3 | the step's length (23) and the decrease (24) with the proof's constants | `gis`, `iis`, `scgis` |
| Theorems 2 and 5 | L(w) - L* falls by a constant factor per pass: on average, and in the last third of the run as in the middle one, which no power of k does | these and `cd` |
| Theorem 4, (67) | the line search ends with a step of at least that length that decreases enough | `cd` |
| Theorem 6 | near the optimum Newton's step is taken as it is | `cd` |
| Theorem 7 | near the optimum it goes further down than the minimum of any other function | `cd` against `gis`, `iis`, `scgis` |
| Chang and Yih 2013, Theorem 1 | violations of delta or more, counted, against the bound | `dcd` |
| Theorem 2 | on fixed working sets the dual rises linearly to their optimum (checked in the same way) | `dcd` |
| Theorem 3 | passes grow no faster than log(1/eps) / eps^2 from each eps to half of it | `dcd` |
"""  # noqa: E501


def write(page: Path, figure: str, facts: dict[str, Any], curves: Sequence[Curve], bounds: Sequence[Bound]) -> None:
    """Write docs/rates.md. facts: what was run (command, size, cap, seconds)."""
    parts = [HEAD.format(figure=figure, **facts)]
    for heading in dict.fromkeys(curve.problem for curve in curves):
        heads = ["solver", "stated", "proof", "accuracy of", *(f"{e:.0e}" for e in _SHOWN), "q", "down to", "verdict"]
        rows = [heads]
        rows += [_row(curve) for curve in curves if curve.problem == heading]
        parts.append(f"## {heading[0].upper()}{heading[1:]}\n\nPasses to an accuracy, and q.\n\n{_table(rows)}")
    lines = [
        f"| {b.theorem} | {b.run} | {b.accuracy:g} | {_number(b.passes)} | {_number(b.bound)} | {_ratio(b)} |"
        for b in bounds
    ]
    parts.append(BOUNDS + "\n".join(lines) + "\n")
    parts.append(CHECKS)
    page.write_text("\n".join(parts), encoding="utf-8")


def _row(curve: Curve) -> list[str]:
    found = curve.exponent()
    fitted = ["", ""] if found is None else [f"{found[0]:.2f}", f"{found[1]:.0e}"]
    passes = [_number(curve.passes_to(e)) for e in _SHOWN]
    return [f"`{curve.name}`", curve.rate, curve.proof, curve.about, *passes, *fitted, curve.verdict()]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if value < 100 else f"{ceil(value):,}"


def _ratio(bound: Bound) -> str:
    return "" if not bound.passes else f"{bound.bound / bound.passes:.3g}"


def _table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def draw(path: Path, curves: Sequence[Curve]) -> None:
    """Draw accuracy against passes, one panel per problem, with lines of slope -1 and -2."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    headings = list(dict.fromkeys(curve.problem for curve in curves))
    columns = 2
    rows = ceil(len(headings) / columns)
    figure, panels = pyplot.subplots(rows, columns, figsize=(11, 3.9 * rows), squeeze=False, layout="constrained")
    colours = pyplot.get_cmap("tab20")
    for panel, heading in zip(panels.flat, headings, strict=False):
        last = 1.0
        for k, curve in enumerate(c for c in curves if c.problem == heading):
            shown = (curve.passes > 0) & (curve.errors > curve.floor)
            if not shown.any():
                continue
            x, y = curve.passes[shown], curve.errors[shown]
            marker = {"marker": _MARKERS[k % len(_MARKERS)], "markersize": 4, "markevery": max(1, len(x) // 8)}
            panel.plot(x, y, color=colours(k % 20), linewidth=1.3, label=f"{curve.name} ({curve.rate})", **marker)
            last = max(last, float(x[-1]))
        x = np.array([1.0, last])
        for slope, style in ((1, ":"), (2, "--")):
            panel.plot(x, x ** (-float(slope)), style, color="0.6", linewidth=1.0, zorder=0)
            at = min(last, 10 ** (6 / slope))
            text = f"1/passes{'²' if slope == 2 else ''}"
            panel.annotate(text, (at, at**-slope), color="0.45", fontsize=7, ha="right", va="bottom")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(1e-10, 20.0)
        panel.set_title(heading, fontsize=10)
        panel.set_xlabel("passes over the data", fontsize=8)
        panel.set_ylabel("accuracy, relative to the optimum", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.legend(fontsize=6, ncols=2, loc="lower left", framealpha=0.6)
    for panel in list(panels.flat)[len(headings) :]:
        panel.axis("off")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
