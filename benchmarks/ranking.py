"""Rank the solvers of the solvers' benchmark by CPU time, and compare "auto" with the fastest."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.report import Record

TARGETS = (1e-1, 1e-2, 1e-3)
#: The most CPU time that "auto" may take, over that of the fastest solver.
ALLOWED = 1.5
#: The number of solvers named in a cell of the page's table.
SHOWN = 3
_MEASURES = ("passes", "seconds", "cpu_seconds")
_BLOCK = re.compile(r"(<!-- measured: solvers -->\n).*?(<!-- end -->)", re.DOTALL)


def medians(runs: Sequence[Record], targets: Sequence[float]) -> Record:
    """Merge several runs of a cell into one record with the median passes and seconds to each target.

    A run that did not reach a target counts as slower than all that did.
    """
    good = [run for run in runs if "error" not in run]
    if len(good) < len(runs) or len(runs) == 1:
        return next((run for run in runs if "error" in run), runs[0])
    found = dict(good[0])
    for name in (f"{what}_to_{target:g}" for what in _MEASURES for target in targets):
        middle = median(math.inf if run[name] is None else run[name] for run in good)
        found[name] = None if math.isinf(middle) else middle
    return {**found, "runs": len(good)}


def ranking(cells: Sequence[Record], target: float) -> list[tuple[str, float]]:
    """Return (system, CPU seconds to the target), the fastest first, without systems that did not reach it."""
    times = [(cell["system"], cell.get(f"cpu_seconds_to_{target:g}")) for cell in cells]
    return sorted(((name, seconds) for name, seconds in times if seconds is not None), key=lambda pair: pair[1])


def behind(cells: Sequence[Record], target: float) -> float | None:
    """Return "auto"'s CPU seconds over the fastest other's; infinite if "auto" alone failed, None if all failed."""
    times = dict(ranking(cells, target))
    own = times.pop("auto", None)
    if not times:
        return None if own is None else 1.0
    return math.inf if own is None else own / min(times.values())


def problems(records: Sequence[Record]) -> dict[tuple[str, str, float], list[Record]]:
    """Group records by data set, loss and strength of the penalty."""
    found: dict[tuple[str, str, float], list[Record]] = {}
    for record in records:
        found.setdefault((record["dataset"], record["loss"], record["l2"]), []).append(record)
    return found


def verdicts(records: Sequence[Record]) -> list[str]:
    """Return lines per problem and target: the ranking, and whether "auto" is within `ALLOWED` of the best."""
    lines = []
    for (dataset, loss, l2), cells in problems(records).items():
        for target in TARGETS:
            order = ranking(cells, target)
            text = ", ".join(f"{name} {seconds:.3g}" for name, seconds in order) or "none"
            lines.append(f"     {dataset}, {loss}, l2 = {l2:g}, CPU s to {target:.0e}: {text}")
            factor = behind(cells, target)
            if factor is None or not any(cell["system"] == "auto" for cell in cells):
                continue
            word = "OK " if factor <= ALLOWED else "NOT"
            far = "does not get there" if math.isinf(factor) else f"within {factor:.3g} of the best"
            lines.append(f"{word}  {dataset}, {loss}, to {target:.0e}: auto ({_chosen(cells)}) {far}")
    return lines


def markdown(records: Sequence[Record], command: str) -> str:
    """Return the page's table: the fastest solvers to each target, and "auto"'s CPU time over the fastest's."""
    heads = [f"CPU s to {target:.0e}".replace("e-0", "e-") for target in TARGETS]
    rows = [["data set", "loss", "l2", *heads, "`auto`", "over the best"]]
    for (dataset, loss, l2), cells in problems(records).items():
        row = [f"`{dataset}`", f"`{loss}`", f"{l2:g}"]
        for target in TARGETS:
            first = [pair for pair in ranking(cells, target) if pair[0] != "auto"][:SHOWN]
            row.append(", ".join(f"`{name}` {seconds:.3g}" for name, seconds in first) or "not reached")
        factors = [behind(cells, target) for target in TARGETS]
        shown = ["-" if f is None else "never" if math.isinf(f) else f"{f:.2f}" for f in factors]
        rows.append([*row, f"`{_chosen(cells)}`", ", ".join(shown)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + f"\n\n```\n{command}\n```\n"


def write_table(path: Path, records: Sequence[Record], command: str) -> None:
    """Write the table between the page's marks; a file without marks is replaced by the table."""
    table = markdown(records, command)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    marked = _BLOCK.search(text)
    new = _BLOCK.sub(lambda match: match[1] + table + match[2], text) if marked else table
    path.write_text(new, encoding="utf-8")


def _chosen(cells: Sequence[Record]) -> str:
    return next((str(cell.get("solver", "?")) for cell in cells if cell["system"] == "auto"), "-")
