"""The two paths of penalties of Collins et al. 2008: C from 1000 down by 0.7, each from the last one's dual point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from papers.experiment import Cell, Records, in_orders, orders_of
from papers.outcome import Chart, Claim, Curve, Panel, Table
from papers.training import train_path
from papers.verdicts import larger, mean_text

FACTOR, TOL = 0.7, 1e-3
#: Values of C whose score is within this many points of the best one are listed too.
FLAT = 0.1

#: (C, passes at that C, error or accuracy in percent).
Paper = Sequence[tuple[float, float, float]]


def path_cells(
    of: str, paper: Paper, quick: bool, limit: int | None, seconds: float, others: int, **options: Any
) -> list[Cell]:
    """Return the path's cells in all orders. others: penalties of the orders after the first. options: of EG."""
    path = [1000 * FACTOR**k for k in range(len(paper))]
    given = {"of": of, "l2s": path, "tol": TOL, "limit": limit}
    cell = Cell("path", train_path, {**given, "options": options} if options else given, seconds)
    return in_orders(cell, quick, l2s=path[:others])


def our_scores(records: Records, error: bool) -> list[tuple[float, float]]:
    """Return (error or accuracy in percent, C) along the path, in the first order."""
    return [(score[0], C) for C, score in _by_penalty(records, error).items()]


def _by_penalty(records: Records, error: bool) -> dict[float, list[float]]:
    """Return by C the error or accuracy in percent of each order that has this C."""
    found: dict[float, list[float]] = {}
    for record in orders_of(records, "path"):
        for row in record["rows"]:
            found.setdefault(row["l2"], []).append(100 * (1 - row["score"] if error else row["score"]))
    return found


def show_path(records: Records, paper: Paper, where: str, error: bool) -> list[Table | Chart | Claim]:
    """Return the table and chart of a path. where: the paper's table. error: scores are errors, not accuracies."""
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


def passes_claim(records: Records, total: float) -> Claim:
    full = len(records["path"]["rows"])
    runs = [record["rows"] for record in orders_of(records, "path") if len(record["rows"]) == full]
    passes = [sum(row["passes"] for row in rows) for rows in runs]
    slow = sorted({row["l2"] for rows in runs for row in rows if row["status"] != "converged"})
    return Claim(
        f"from one C to the next, {full} penalties are trained to a gap of 0.1 % in {total:g} passes in all",
        larger([total], passes) and not slow,
        f"{mean_text(passes, '.2f')} passes" + (f"; not converged: C = {slow}" if slow else ""),
        needed="at most as many",
    )


def best_claims(records: Records, theirs: float, C: float, error: bool, near: float) -> list[Claim]:
    """Return claims on the best score and its C. theirs, C: the paper's. near: allowed difference in points."""
    what, which = ("validation error", "lowest") if error else ("accuracy", "highest")
    scores = _by_penalty(records, error)
    many = max(map(len, scores.values()))
    told = {each: found for each, found in scores.items() if len(found) == many}

    def best_of(found: Mapping[float, Sequence[float]]) -> float:
        return (min if error else max)(found, key=lambda each: float(np.mean(found[each])))

    best, alone = best_of(told), {each: found for each, found in scores.items() if each not in told}
    paper = min(told, key=lambda each: abs(math.log(each / C)))
    # Compare with the paper's C, or with our second best C if the paper's C is our best.
    other = paper
    if best == paper:
        other = best_of({each: found for each, found in told.items() if each != best})
    ahead = larger(told[other], told[best]) if error else larger(told[best], told[other])
    flat = [each for each, found in told.items() if abs(float(np.mean(found) - np.mean(told[best]))) <= FLAT]
    numbers = f"{mean_text(told[best], '.2f')} % at C = {best:.3g}"
    further = f"; smaller C, in one order: {which} {alone[best_of(alone)][0]:.2f} %" if alone else ""
    return [
        Claim(
            f"the {which} {what} is {theirs:g} %",
            abs(float(np.mean(told[best])) - theirs) <= near,
            numbers,
            needed=f"within {near:g} points",
        ),
        Claim(
            f"the best C is {C:g}",
            ahead if best == paper or ahead is None else False,
            f"{numbers}, {mean_text(told[other], '.2f')} % at C = {other:.3g}; within {FLAT:g} points of the best: C = "
            f"{min(flat):.3g} to {max(flat):.3g}{further}",
        ),
    ]
