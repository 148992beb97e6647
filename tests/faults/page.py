"""docs/reliability.md, from results."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .rows import Row

HEAD = """# Reliability: what happens when things go wrong

This page is written by `make faults` (`python -m tests.faults`) from the results that it has kept. Every trial has a
number, and the same number is the same trial. Trials run in processes of their own, so that a crash or a hang is a
result. `make test` runs a few trials of each row.

"""


def written(rows: Mapping[str, Row], results: Iterable[Mapping[str, Any]]) -> str:
    """The page."""
    found: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for record in results:
        if record["row"] in rows:
            found[record["row"]][record["trial"]] = record["outcome"]
    lines = ["| fault | trials (of) | required | outcomes | as required |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        outcomes = Counter(found[name].values())
        shown = ", ".join(f"{outcome} {count:,}" for outcome, count in outcomes.most_common()) or "not run yet"
        counts, verdict = f"{len(found[name]):,} ({row.trials:,})", _verdict(row, outcomes)
        lines.append(f"| {row.fault} | {counts} | {row.required} | {shown} | {verdict} |")
    done = sum(len(each) for each in found.values())
    return HEAD + "\n".join(lines) + f"\n\n{done:,} trials, {platform.system()}, Python {platform.python_version()}.\n"


def _verdict(row: Row, outcomes: Counter[str]) -> str:
    if not outcomes:
        return ""
    if row.good is None:
        return "(comparison)"
    bad = sum(count for outcome, count in outcomes.items() if outcome not in row.good)
    some = "" if sum(outcomes.values()) >= row.trials else ", so far"
    return f"**no**: {bad:,}" if bad else f"yes{some}"
