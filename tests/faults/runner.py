"""Runs rows in child processes. A process that dies or hangs is a result, and another process runs the next trial."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Mapping, Sequence

from sanitizers import site

from .plan import Plan
from .process import NotBegun, Process, Record
from .rows import Row


def cannot(row: Row) -> str:
    """Say why the row cannot be run here; "" if it can."""
    if row.missing:
        return f"{row.missing} is not installed"
    if row.core and not site(row.core).is_dir():
        return f"there is no {row.core} build (`make faults` makes it)"
    return ""


def run(
    rows: Mapping[str, Row],
    orders: Mapping[str, Sequence[int]],
    jobs: int = 1,
    deadline: float = float("inf"),
    slack: float = 30.0,
    cost: Mapping[str, float] | None = None,
) -> Iterator[Record]:
    """Yield results of trials until the clock (`time.monotonic`) reaches `deadline`. `orders`: trial numbers by row.

    A trial hangs if it has not ended after WAIT times the row's seconds plus `slack`. `cost`: known seconds per trial.
    Rows that cannot be run here are left out. A row whose process does not start is dropped, and an error at the end
    says so.
    """
    plan = Plan(
        rows, {name: numbers for name, numbers in orders.items() if not cannot(rows[name])}, jobs, deadline, cost or {}
    )
    team: list[Process | None] = [None] * jobs
    failed: list[NotBegun] = []
    try:
        while time.monotonic() < deadline:
            for k in range(jobs):
                team[k] = _employed(plan, rows, team, k)
            busy = [process for process in team if process is not None and process.order[1]]
            if not busy:
                break
            wait = min([deadline - time.monotonic(), *(each.left(rows[each.order[0]], slack) for each in busy)])
            ready, _, _ = select.select([each.answers for each in busy], [], [], min(max(0.0, wait), 3600.0))
            for process in busy:
                try:
                    for record in _seen(process, process.answers in ready, rows, slack, plan):
                        plan.note(record["row"], record["seconds"])
                        yield record
                except NotBegun as error:
                    failed.append(error)
                    plan.drop(process.order[0])
                    process.end()
                if process.child.returncode is not None:
                    team[team.index(process)] = None
                    process.forget()
    finally:
        for process in team:
            if process is not None:
                process.forget()
    if failed:
        raise failed[0]


def _employed(plan: Plan, rows: Mapping[str, Row], team: list[Process | None], k: int) -> Process | None:
    """Return process k, or a new one if process k does not fit the next row. It has an order if any work is left."""
    process = team[k]
    if process is not None and process.order[1]:
        return process
    others = sum(bool(each and each.order[1]) for each in team)
    piece = plan.next(process.order[0] if process else "", others)
    if piece is None:
        return process
    name, numbers = piece
    if process is not None and not process.fits(rows[name]):
        process.forget()
        process = None
    if process is None:
        process = Process(rows[name].module, rows[name].core)
    process.give(name, numbers)
    return process


def _seen(process: Process, ready: bool, rows: Mapping[str, Row], slack: float, plan: Plan) -> Iterator[Record]:
    """Yield the results that a process has sent. End a process that has died or hangs, and put back its trials."""
    if ready:
        found = process.read()
        if found is not None:
            yield from found
            return
        record = process.ended()
    elif process.left(rows[process.order[0]], slack) > 0:
        return
    else:
        record = process.hangs()
        process.end()
    plan.give_back(*process.order)
    process.order[1].clear()
    if record is not None:
        yield record
