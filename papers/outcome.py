"""The outcome of an experiment: tables and charts, with the paper's numbers next to ours, and claims."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Table:
    """Rows under headings, which say whose numbers they are. name: the file's name without ``.csv``."""

    name: str
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def csv(self) -> str:
        return _csv([self.headings, *self.rows])


@dataclass(frozen=True)
class Curve:
    """Points of one system; NaN and None are gaps.

    dashed: used for bounds, dual values and a paper's numbers. beside: the label of the curve whose colour it shares.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    dashed: bool = False
    beside: str = ""

    def points(self, log_x: bool, log_y: bool) -> list[tuple[float, float]]:
        """Return the points that can be drawn: finite, and positive on a logarithmic axis."""
        found = [(x, y) for x, y in zip(self.x, self.y, strict=True) if y is not None and math.isfinite(y)]
        return [(x, y) for x, y in found if (x > 0 or not log_x) and (y > 0 or not log_y)]


@dataclass(frozen=True)
class Panel:
    """One pair of axes. limits: of the vertical axis."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class Chart:
    """A figure of panels. name: its files' name without ``.png`` and ``.csv``. paper: what the paper's figure shows."""

    name: str
    title: str
    panels: Sequence[Panel]
    paper: str = ""
    note: str = ""

    def csv(self) -> str:
        rows = [
            (panel.title, curve.label, x, y)
            for panel in self.panels
            for curve in panel.curves
            for x, y in zip(curve.x, curve.y, strict=True)
        ]
        return _csv([("panel", "curve", "x", "y"), *rows])


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and whether it holds here.

    text: the statement. numbers: ours, and the paper's if it has any. holds: None if the numbers cannot tell (see
    `verdicts`). why: the known reason if it does not hold. needed: the condition that counts as holding, if the text
    does not say it.
    """

    text: str
    holds: bool | None
    numbers: str
    why: str = ""
    needed: str = ""

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "does not hold", None: "cannot be told"}[self.holds]

    def untold(self) -> Claim:
        """Return the claim as "cannot be told", for a run that is too small."""
        return replace(self, holds=None, why="")

    @property
    def evidence(self) -> str:
        """Join the numbers, the condition and the reason into one text."""
        needed = f"Needed: {self.needed}" if self.needed else ""
        return ". ".join(part.removesuffix(".") for part in (self.numbers, needed, self.why) if part)

    def line(self) -> str:
        return f"{self.verdict}: {self.text} ({self.evidence})"


def told(claims: Sequence[Claim], full: bool) -> list[Claim]:
    """Return the claims of a full run; those of a smaller run become "cannot be told"."""
    return [claim if full else claim.untold() for claim in claims]


@dataclass
class Shown:
    """The tables, charts and claims of an experiment."""

    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    @classmethod
    def of(cls, items: Sequence[Table | Chart | Claim]) -> Shown:
        shown = cls()
        for item in items:
            if isinstance(item, Table):
                shown.tables.append(item)
            elif isinstance(item, Chart):
                shown.charts.append(item)
            else:
                shown.claims.append(item)
        return shown


def number(value: Any) -> str:
    """Format a value for a table on the page."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format(value, ".5g")
    return str(value)


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        ["" if value is None or value != value else value for value in row] for row in rows
    )
    return text.getvalue()
