"""Write claims as Markdown tables, one per experiment between its own marks, so that other experiments' tables stay."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from papers.experiment import Experiment
from papers.outcome import Shown
from partwise.io.files import atomic_write

END = "<!-- end -->"


def write_claims(path: Path, experiments: Sequence[Experiment], shown: Mapping[str, Shown]) -> None:
    """Write the claims of these experiments into the file: each replaces its earlier table, or is added at the end."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for experiment in experiments:
        begin = f"<!-- claims {experiment.name} -->"
        block = f"{begin}\n{_table(experiment, shown[experiment.name])}{END}"
        place = re.compile(re.escape(begin) + ".*?" + re.escape(END), re.DOTALL)
        if place.search(text):
            text = place.sub(block.replace("\\", r"\\"), text)
        else:
            text = f"{text.rstrip()}\n\n{block}\n".lstrip()
    with atomic_write(path, "w") as file:
        file.write(text)


def _table(experiment: Experiment, shown: Shown) -> str:
    lines = [f"`{experiment.name}` ({experiment.source}):", "", "| claim | verdict | numbers |", "|---|---|---|"]
    for claim in shown.claims:
        lines.append("| " + " | ".join(_cell(part) for part in (claim.text, claim.verdict, claim.evidence)) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
