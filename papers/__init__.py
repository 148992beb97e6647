"""The papers' experiments: ``python -m papers NAME``.

An experiment is a module of this package with a function `cells`, which lists the runs that it needs, and a function
`show`, which turns their records into tables, charts and claims; `EXPERIMENT` names both, and `catalogue` lists it.

    cells(quick)  ->  [Cell(name, function, options, seconds), ...]
    show(records) ->  [Table | Chart | Claim, ...]

A cell calls its function with the data folder and its options, which are plain values. Its record is stored, so that
an interrupted run resumes with the cells that have none (`runner`). `training.train` is the function of most cells:
one solver on one task, followed step by step. `tasks` has the papers' data, or replacements. `pictures` draws charts,
`page` writes everything to one HTML page.
"""

from papers.catalogue import EXPERIMENTS, PAPERS, find
from papers.experiment import Cell, Experiment, Records
from papers.histories import follow
from papers.outcome import Chart, Claim, Curve, Panel, Table
from papers.runner import run

__all__ = [
    "EXPERIMENTS",
    "PAPERS",
    "Cell",
    "Chart",
    "Claim",
    "Curve",
    "Experiment",
    "Panel",
    "Records",
    "Table",
    "find",
    "follow",
    "run",
]
