"""Draw charts as PNG files, with matplotlib (extra "plot")."""

from __future__ import annotations

import io
import math
from typing import Any

from papers.outcome import Chart, Panel

_MARKERS = "osD^vPX*<>hd"
_ACROSS = 3  # the most panels in a row


def draw(chart: Chart) -> bytes:
    """Draw a chart as a PNG file; a label has the same colour and marker in all panels."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("charts need matplotlib: pip install 'partwise[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    labels = list(dict.fromkeys(curve.label for panel in chart.panels for curve in panel.curves))
    colours = pyplot.get_cmap("tab10" if len(labels) <= 10 else "tab20")
    style: dict[str, dict[str, Any]] = {
        label: {"color": colours(k), "marker": _MARKERS[k % len(_MARKERS)], "markersize": 4, "linewidth": 1.3}
        for k, label in enumerate(labels)
    }
    for curve in (curve for panel in chart.panels for curve in panel.curves):
        if curve.dashed:
            style[curve.label] |= {"linestyle": "--", "marker": ""}
        if curve.beside in style:
            style[curve.label]["color"] = style[curve.beside]["color"]
    across = min(_ACROSS, len(chart.panels)) if len(chart.panels) != 4 else 2
    down = math.ceil(len(chart.panels) / across)
    figure, grid = pyplot.subplots(
        down, across, figsize=(4.4 * across, 3.1 * down + 0.7), squeeze=False, layout="constrained"
    )
    for axes in grid.ravel()[len(chart.panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.ravel(), chart.panels, strict=False):
        _draw_panel(axes, panel, style)
    handles = [Line2D([], [], label=label, **style[label]) for label in labels]
    if len(labels) > 1:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(labels), 2 * across), fontsize=8)
    file = io.BytesIO()
    figure.savefig(file, dpi=130, format="png")
    pyplot.close(figure)
    return file.getvalue()


def _label_log(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis at powers of ten, and short axes also at 2 and 5 times these."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if high < 100 * low:
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: format(value, "g")))
    else:
        axis.set_minor_formatter(NullFormatter())


def _draw_panel(axes: Any, panel: Panel, style: dict[str, dict[str, Any]]) -> None:
    for curve in panel.curves:
        points = curve.points(panel.x_scale == "log", panel.y_scale == "log")
        if not points:
            continue
        axes.plot(*zip(*points, strict=True), markevery=max(1, len(points) // 8), **style[curve.label])
    axes.set(xscale=panel.x_scale, yscale=panel.y_scale)
    if panel.limits is not None:
        axes.set_ylim(*panel.limits)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x, fontsize=8)
    axes.set_ylabel(panel.y, fontsize=8)
    axes.tick_params(labelsize=7, which="both")
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log":
            _label_log(axis, *limits)
    axes.grid(alpha=0.3)
