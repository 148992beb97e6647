"""Writes docs/reliability.md from the results."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping

import partwise

from . import digest
from .kept import Kept
from .rows import Row

HEAD = """# Reliability: what happens when things go wrong

This page is written by `make faults` (`python -m tests.faults`) from the results that it has kept. Every trial has a
number, and the same number is the same trial. Trials run in processes of their own, so that a crash or a hang is a
result. `make test` runs a few trials of most rows. Results belong to the sources that they were had with: of others,
none is counted here.

The dual point of a warm start or a checkpoint is checked against the problem before a certificate rests on it:
labellings satisfy the structure and its masks; clique marginals are distributions that keep the masks and agree with
their neighbours; expected counts and mixtures keep the masks and lie, as far as a dozen maxima tell, inside the convex
hull of the labellings; masses are 1 where they must be. A warm start that fails is left out with a warning, a
checkpoint that fails is refused. Two things are not checked: whether cliques of structures written in Python agree,
and, in a checkpoint that was forged together with its digest, planes that are kept without the parts they were summed
from (those of bundle methods, averages and primal methods).

"""


def written(rows: Mapping[str, Row], kept: Kept) -> str:
    """Return the text of the page."""
    first, last = kept.dates
    days = first if first == last else f"{first} to {last}"
    about = (
        f"partwise {partwise.__version__}, sources `{digest.of_code()}`, {days or 'no day'}: {kept.trials:,} trials; "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}.\n\n"
    )
    lines = ["| fault | trials (of) | required | outcomes | as required |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        outcomes = Counter(kept.outcomes[name].values())
        shown = ", ".join(f"{outcome} {count:,}" for outcome, count in outcomes.most_common())
        shown = shown or (f"{row.missing} is not installed" if row.missing else "not run yet")
        counts, verdict = f"{outcomes.total():,} ({row.trials:,})", _verdict(row, outcomes)
        lines.append(f"| {row.fault} | {counts} | {row.required} | {shown} | {verdict} |")
    return HEAD + about + "\n".join(lines) + "\n"


def wrong(row: Row, outcomes: Iterable[str]) -> int:
    """Count the outcomes that are not as required."""
    return sum(row.good is not None and outcome not in row.good for outcome in outcomes)


def _verdict(row: Row, outcomes: Counter[str]) -> str:
    if row.good is None:
        return "(comparison)"
    if not outcomes:
        return ""
    bad = wrong(row, outcomes.elements())
    some = "" if outcomes.total() >= row.trials else ", so far"
    return f"**no**: {bad:,}" if bad else f"yes{some}"
