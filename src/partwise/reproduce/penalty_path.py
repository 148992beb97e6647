"""The two paths of penalties of Collins et al. 2008: C from 1000 down by 0.7, each from the last one's dual point."""

from __future__ import annotations

from collections.abc import Sequence

from .experiment import Cell, Records, in_orders
from .outcome import Chart, Claim, Curve, Panel, Table
from .training import train_path

FACTOR, TOL = 0.7, 1e-3

#: C, passes at that C, and error or accuracy in percent.
Paper = Sequence[tuple[float, float, float]]


def path_cells(of: str, paper: Paper, quick: bool, limit: int | None, seconds: float, others: int) -> list[Cell]:
    """The path in all orders. others: how many penalties the path has in other orders than the first."""
    path = [1000 * FACTOR**k for k in range(len(paper))]
    cell = Cell("path", train_path, {"of": of, "l2s": path, "tol": TOL, "limit": limit}, seconds)
    return in_orders(cell, quick, l2s=path[:others])


def our_scores(records: Records, error: bool) -> list[tuple[float, float]]:
    """(error or accuracy in percent, C) along the path."""
    rows = records["path"]["rows"]
    return [(100 * (1 - row["score"] if error else row["score"]), row["l2"]) for row in rows]


def show_path(records: Records, paper: Paper, where: str, error: bool) -> list[Table | Chart | Claim]:
    """The table and chart of a path. where: the paper's table. error: or accuracy."""
    what = "error" if error else "accuracy"
    rows = records["path"]["rows"]
    scores = our_scores(records, error)
    table, passes = [], 0.0
    for (C, theirs, score), row, (own, _) in zip(paper, rows, scores, strict=True):
        passes += row["passes"]
        table.append([C, theirs, row["passes"], passes, score, own, row["gap"] / row["primal"], row["cpu_seconds"]])
    Cs = [row["l2"] for row in rows]
    curves = {
        "passes": ([p for _, p, _ in paper], [row["passes"] for row in rows]),
        f"{what}, %": ([s for *_, s in paper], [s for s, _ in scores]),
    }
    panels = [
        Panel(f"{y} at each C", "C", y, [Curve("paper", Cs, theirs), Curve("partwise", Cs, ours)], x_scale="log")
        for y, (theirs, ours) in curves.items()
    ]
    headings = ["C", "passes, paper", "passes", "passes in all", f"{what} %, paper", f"{what} %"]
    return [
        Table(
            "table",
            where,
            [*headings, "relative gap", "CPU s"],
            table,
            "A pass is as many visits as there are examples; every step size that is tried is a visit.",
        ),
        Chart("path", f"Passes and {what} by C", panels),
    ]


def passes_claim(records: Records, total: float, full: bool) -> Claim:
    rows = records["path"]["rows"]
    passes = sum(row["passes"] for row in rows)
    slow = [row["l2"] for row in rows if row["status"] != "converged"]
    return Claim(
        f"from one C to the next, {len(rows)} penalties are trained to a gap of 0.1 % in {total:g} passes in all",
        passes <= total and not slow if full else None,
        f"{passes:.2f} passes" + (f"; not converged: C = {slow}" if slow else ""),
    )
