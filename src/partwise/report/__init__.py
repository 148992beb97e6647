"""Reports as one HTML file, and predictions as pictures.

    result.report("report.html")
    write_report("report.html", result, scores={"f1": 0.93}, examples=[draw_tags(words, tags)])

Pictures are SVG made from plain lists; notebooks show them, reports take them. All text in both is escaped.
"""

from partwise.report.arcs import draw_arcs
from partwise.report.comparison import Comparison, compare
from partwise.report.page import write_report
from partwise.report.plots import convergence_plots, draw_curve, draw_reliability
from partwise.report.svg import Drawing
from partwise.report.tags import draw_spans, draw_tags
from partwise.report.trees import draw_tree

__all__ = [
    "Comparison",
    "Drawing",
    "compare",
    "convergence_plots",
    "draw_arcs",
    "draw_curve",
    "draw_reliability",
    "draw_spans",
    "draw_tags",
    "draw_tree",
    "write_report",
]
