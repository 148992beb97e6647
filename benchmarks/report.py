"""Write records as JSON lines and print them as tables."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import first_within

Record = dict[str, Any]

# Columns of tables: (field of the record, heading, format).
COLUMNS = (
    ("system", "system", ""),
    ("l2", "l2", "g"),
    ("threads", "threads", "d"),
    ("seconds_to_target", "s to target", ".3g"),
    ("cpu_seconds_to_target", "CPU s to target", ".3g"),
    ("times_ours", "CPU s / ours", ".3g"),
    ("passes_to_target", "passes to target", ".4g"),
    ("how", "how found", ""),
    ("solver_seconds", "solver s", ".3g"),
    ("solver_cpu_seconds", "solver CPU s", ".3g"),
    ("fit_seconds", "fit s", ".3g"),
    ("fit_cpu_seconds", "fit CPU s", ".3g"),
    ("passes", "passes", ".4g"),
    ("objective", "objective", ".5f"),
    ("excess", "over optimum", ".1e"),
    ("gap", "certified gap", ".1e"),
    ("accuracy", "accuracy", ".4f"),
    ("f1", "F1", ".4f"),
    ("data_mb", "data MB", ".0f"),
    ("peak_mb", "peak MB", ".0f"),
)


def finish(run: Record, optimum: float, within: float) -> None:
    """Add the numbers that need the optimum: the distance to it, and the time to the target."""
    run["optimum"], run["within"] = optimum, within
    run["excess"] = run["objective"] / optimum - 1.0
    at = first_within(run["trace_objective"], (1.0 + within) * optimum)
    for name in ("seconds", "cpu_seconds", "passes"):
        run[f"{name}_to_target"] = None if at is None else run[f"trace_{name}"][at]


def conclude(title: str, runs: list[Record], reference: Record, within: float, ours: str = "") -> None:
    """Complete the runs of one problem and print them.

    Runs that failed or were skipped ("error", "skipped") are listed below the table. A run that was stopped before the
    target ("more_than_seconds") is shown with "> ...". ours: the system that CPU seconds are compared with.
    """
    good = [run for run in runs if "error" not in run and "skipped" not in run]
    optimum = min(run["objective"] for run in [reference, *good])
    for run in good:
        finish(run, optimum, within)
    note = f"optimum {optimum:.5f} (accurate run: gap {reference['gap']:.1e}); target: {within:g} above it"
    others = [f"{run['system']} failed: {run['error']}" for run in runs if "error" in run]
    others += [f"{run['system']} left out: {run['skipped']}" for run in runs if "skipped" in run]
    show(title, comparison(medians(good), ours), "\n".join([note, *others]))


def comparison(rows: list[Record], ours: str) -> list[Record]:
    """Return rows with CPU seconds over our system's, and "> ..." for systems stopped before the target."""
    unit = next((row["cpu_seconds_to_target"] for row in rows if row["system"] == ours), None)
    rows = [dict(row) for row in rows]
    for row in rows:
        seconds = {"seconds_to_target": row.get("more_than_seconds")}
        seconds["cpu_seconds_to_target"] = row.get("more_than_cpu_seconds")
        stopped = row["seconds_to_target"] is None and row.get("more_than_seconds") is not None
        cpu = seconds["cpu_seconds_to_target"] if stopped else row.get("cpu_seconds_to_target")
        if unit and cpu is not None:
            row["times_ours"] = f"> {cpu / unit:.3g}" if stopped else cpu / unit
        if stopped:
            row.update({name: f"> {value:.3g}" for name, value in seconds.items() if value is not None})
    return rows


def medians(runs: list[Record]) -> list[Record]:
    """Return one row per system: the median of each number that differs between its runs."""
    rows = []
    for name in dict.fromkeys(run["system"] for run in runs):
        same = [run for run in runs if run["system"] == name]
        row = dict(same[0])
        for field, value in row.items():
            if isinstance(value, float) and all(run[field] is not None for run in same):
                row[field] = median(run[field] for run in same)
        rows.append(row)
    return rows


def machine() -> Record:
    """Describe the machine, and how busy it is now."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"python": platform.python_version(), "machine": platform.machine(), "cpus": os.cpu_count(), "load": load}


def save(path: str | os.PathLike[str] | None, records: Sequence[Record]) -> None:
    """Write the records if a file is given; exit with status 1 if a system failed."""
    if path:
        write_json(path, records)
    if any("error" in record for record in records):
        raise SystemExit(1)


def write_json(path: str | os.PathLike[str], records: Sequence[Mapping[str, Any]]) -> None:
    """Write one record per line; values that are not finite become null, as JSON has no infinity."""
    lines = [json.dumps(_finite(dict(record)), allow_nan=False) for record in records]
    new = Path(f"{os.fspath(path)}.new")
    new.write_text("".join(line + "\n" for line in lines))
    new.replace(path)  # an interrupted write leaves the old file


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    """Print rows of text; the first column is left-aligned, the others are right-aligned."""
    table = Table(title=title, caption=note)
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k else "left", no_wrap=k == 0)  # names are not wrapped
    for row in rows:
        table.add_row(*row)
    Console(width=None if os.isatty(1) else 240).print(table)


def show(title: str, records: Sequence[Mapping[str, Any]], note: str = "") -> None:
    """Print a table of the columns that at least one record has."""
    columns = [c for c in COLUMNS if any(record.get(c[0]) is not None for record in records)]
    rows = [[_cell(record.get(name), form) for name, _, form in columns] for record in records]
    print_table(title, [heading for _, heading, _ in columns], rows, note)


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else format(value, form)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
