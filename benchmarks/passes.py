"""How many passes does an online solver need to a given distance from the optimum? The log loss on chains.

The distance is P(w) minus the optimum, which is found beforehand to a relative gap of 1e-8. It is shown per example,
(P(w) - min P) / n, as papers show it for (lambda / 2) |w|^2 + mean loss with lambda = l2 / n, and relative to min P. A
pass is as many visits as there are examples; P(w) is evaluated after every pass, and this time is not counted. Le Priol
et al. 2018 report 3.5 passes to 1e-2 and 7.5 to 1e-4 per example for their SDCA with gap sampling on named entities,
with l2 = 1.
"""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from benchmarks.chains import DATASETS, Task
from benchmarks.measure import first_within
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, write_json

TARGETS = (1e-1, 1e-2, 1e-3, 1e-4)
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "eg": ("eg", {}),
    "eg-prox": ("eg-prox", {}),
    "sdca": ("sdca", {}),
    "sdca without gap sampling": ("sdca", {"gap_share": 0.0}),
}
_QUICK = 100  # sequences


@click.command("passes", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--l2", default=1.0, show_default=True, help="Strength of the penalty.")
@click.option("--cap", default=40.0, show_default=True, help="Passes of a run, at most.")
@click.option("--datasets", default="", help="Only these data sets, with commas.")
@click.option("--systems", default="", help="Only these systems, with commas.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(
    data: str | None, json_file: str | None, l2: float, cap: float, datasets: str, systems: str, quick: bool
) -> None:
    from partwise import solve

    records: list[Record] = []
    for dataset in choose(datasets, list(DATASETS), "--datasets"):
        problem = Task(DATASETS[dataset](data, _QUICK if quick else None), "log", l2, 1).problem
        optimum = solve(problem, "eg-prox", tol=1e-8, max_passes=2000).primal
        runs = [
            {"question": "passes", "dataset": dataset, "system": system, "l2": l2, **machine()}
            | run(problem, *SYSTEMS[system], optimum, cap)
            for system in choose(systems, list(SYSTEMS))
        ]
        show(f"{dataset}{' (part)' if quick else ''}, log, l2 = {l2:g}, optimum {optimum:.6g}", runs)
        records += runs
    if json_file:
        write_json(json_file, records)


def run(problem: Any, name: str, options: dict[str, Any], optimum: float, cap: float) -> Record:
    """Run one solver; return its distance after each pass."""
    from partwise import get_solver

    solver = get_solver(name, **options)
    trace: dict[str, list[float]] = {"passes": [], "cpu_seconds": [], "per_example": [], "relative": []}
    begin = time.process_time()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    cpu = time.process_time() - begin
    n = len(problem.active)
    while state.visits < cap * n:
        begin = time.process_time()
        solver.step(problem, state)
        cpu += time.process_time() - begin
        excess = problem.value(solver.weights(problem, state)) - optimum
        for column, value in zip(trace.values(), (state.visits / n, cpu, excess / n, excess / optimum), strict=True):
            column.append(value)
        if max(excess / n, excess / optimum) <= min(TARGETS):
            break
    record: Record = {f"trace_{name}": column for name, column in trace.items()}
    for scale in ("per_example", "relative"):
        for target in TARGETS:
            at = first_within(trace[scale], target)
            for what in ("passes", "cpu_seconds"):
                record[f"{what}_to_{target:g}_{scale}"] = None if at is None else trace[what][at]
    return record


def show(title: str, runs: list[Record]) -> None:
    """Print passes and CPU seconds to each target, one row per system."""
    columns = [
        (what, scale, t) for scale in ("per_example", "relative") for what in ("passes", "cpu_seconds") for t in TARGETS
    ]
    names = {"passes": "passes", "cpu_seconds": "CPU s", "per_example": "per example", "relative": "relative"}
    headings = ["system", *(f"{names[what]} to {t:.0e} {names[scale]}" for what, scale, t in columns)]
    rows = []
    for record in runs:
        values = [record[f"{what}_to_{t:g}_{scale}"] for what, scale, t in columns]
        rows.append([record["system"], *("-" if value is None else format(value, ".3g") for value in values)])
    print_table(title, headings, rows, "-: not reached")
