"""Write the page: for every experiment its claims, tables with the paper's numbers, and charts."""

from __future__ import annotations

import base64
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from papers.catalogue import PAPERS
from papers.experiment import Experiment
from papers.outcome import Shown, number
from partwise import __version__
from partwise.io.files import atomic_write

#: The name of the page's file in a run's folder.
PAGE = "index.html"


def write_page(out: Path, experiments: Sequence[Experiment], shown: Mapping[str, Shown], quick: bool) -> None:
    """Write the page of these experiments, with the pictures inside the file."""
    from jinja2 import Environment

    source = resources.files("papers").joinpath("page.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, trim_blocks=True).from_string(source)
    papers = [
        {"title": PAPERS[key], "experiments": [_section(out, e, shown[e.name]) for e in experiments if e.paper == key]}
        for key in PAPERS
        if any(e.paper == key for e in experiments)
    ]
    claims = [claim for e in experiments for claim in shown[e.name].claims]
    counts = [
        (verdict, sum(claim.verdict == verdict for claim in claims))
        for verdict in dict.fromkeys(claim.verdict for claim in claims)
    ]
    text = template.render(
        papers=papers,
        counts=counts,
        quick=quick,
        version=__version__,
        machine=f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
    )
    with atomic_write(out / PAGE, "w") as file:
        file.write(text)


def _section(out: Path, experiment: Experiment, shown: Shown) -> dict[str, Any]:
    folder = out / experiment.name
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "setup": experiment.setup,
        "claims": shown.claims,
        "tables": [
            {
                "title": table.title,
                "note": table.note,
                "headings": table.headings,
                "rows": [[number(value) for value in row] for row in table.rows],
            }
            for table in shown.tables
        ],
        "charts": [
            {
                "title": chart.title,
                "paper": chart.paper,
                "note": chart.note,
                "png": base64.b64encode((folder / f"{chart.name}.png").read_bytes()).decode("ascii"),
            }
            for chart in shown.charts
        ],
    }
