"""Reports as one HTML file, and predictions as pictures.

    result.report("report.html")
    write_report("report.html", result, scores={"f1": 0.93}, examples=[draw_tags(words, tags)])

Pictures are SVG made from plain lists; notebooks show them, reports take them. All text in both is escaped.
"""

from .arcs import draw_arcs
from .constituents import draw_tree
from .drawings import draw_tags
from .page import write_report
from .plots import convergence_plots, draw_curve, draw_reliability
from .spans import draw_spans
from .svg import Drawing

__all__ = [
    "Drawing",
    "convergence_plots",
    "draw_arcs",
    "draw_curve",
    "draw_reliability",
    "draw_spans",
    "draw_tags",
    "draw_tree",
    "write_report",
]
