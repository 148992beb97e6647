"""Figures of the benchmarks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from benchmarks.report import Record

_MARKERS = "osD^vPX*<>hd"


def draw(
    path: str | os.PathLike[str], records: Sequence[Record], targets: Sequence[float], what: str = "relative gap"
) -> None:
    """Plot `what` against passes and seconds: one row per loss, two panels per data set, one colour per system."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    datasets = list(dict.fromkeys(record["dataset"] for record in records))
    losses = list(dict.fromkeys(record["loss"] for record in records))
    systems = list(dict.fromkeys(record["system"] for record in records))
    if not records:
        return
    colours = pyplot.get_cmap("tab20" if len(systems) > 10 else "tab10")
    style = {
        name: {"color": colours(k), "marker": _MARKERS[k % len(_MARKERS)], "markersize": 4, "linewidth": 1.2}
        for k, name in enumerate(systems)
    }
    columns = [(dataset, axis) for dataset in datasets for axis in ("passes", "seconds")]
    figure, panels = pyplot.subplots(
        len(losses),
        len(columns),
        figsize=(3.6 * len(columns), 2.8 * len(losses) + 0.9),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for row, loss in zip(panels, losses, strict=True):
        for panel, (dataset, axis) in zip(row, columns, strict=True):
            for record in records:
                if (record["dataset"], record["loss"]) == (dataset, loss):
                    _curve(panel, record, axis, style[record["system"]])
            for target in targets:
                panel.axhline(target, color="0.85", linewidth=0.8, zorder=0)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_ylim(min(targets) / 2, 10.0)
            panel.set_title(f"{dataset}: {loss}", fontsize=9)
            panel.set_xlabel(axis, fontsize=8)
            panel.tick_params(labelsize=7)
        row[0].set_ylabel(what, fontsize=8)
    handles = [pyplot.Line2D([], [], label=name, **style[name]) for name in systems]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(systems), 8), fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _curve(panel: Any, record: Record, axis: str, style: dict[str, Any]) -> None:
    points = [
        (x, gap / abs(primal))
        for x, gap, primal in zip(record[f"trace_{axis}"], record["trace_gap"], record["trace_primal"], strict=True)
        if x > 0 and gap is not None and 0 < gap < float("inf")
    ]
    if points:
        panel.plot(*zip(*points, strict=True), markevery=max(1, len(points) // 8), **style)
