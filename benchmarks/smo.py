"""Does EG overtake SMO, and does the hybrid have the best of both? 001, section 6 and Figure 4, on WNUT 17.

The paper trains a chain on the first 1000 sentences of a named entity task with the hinge and compares the dual after
each pass: SMO starts up quickly and comes to a plateau, EG overtakes it and ends more than 10% higher; SMO followed by
EG should have both. Here: the first 1000 sentences of WNUT 17, the same duals by passes and by CPU seconds. The optimum
lies between the best dual and the best objective of all systems, bcfw among them. Passes of the hybrid include the
inferences by which marginals become scores.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from benchmarks.chains import wnut17
from benchmarks.measure import SystemFailed, run_apart
from benchmarks.plots import draw_duals
from benchmarks.report import Record, machine, print_table, write_json

RESULTS = Path(__file__).parent / "results"
SENTENCES, QUICK = 1000, 100
#: Shown name: solver and its options.
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "smo": ("smo", {"form": "cliques"}),
    "smo, labellings": ("smo", {"form": "labellings"}),
    "eg": ("eg", {}),
    "eg, uniform start": ("eg", {"start": "uniform"}),
    "smo-eg, 2 passes": ("smo-eg", {"smo_passes": 2}),
    "smo-eg, 5 passes": ("smo-eg", {"smo_passes": 5}),
    "smo-eg, 20 passes": ("smo-eg", {"smo_passes": 20}),
    "bcfw": ("bcfw", {}),
}
PASSES = (1, 2, 5, 10, 20, 50, 100, 200)
#: What the paper says of EG's dual over SMO's.
CLAIM = 0.10
#: A dual within this share of its last value has come to its plateau.
NEAR = 0.01


@click.command("smo", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="JSON lines [benchmarks/results].")
@click.option("--plot", "plot_file", type=click.Path(dir_okay=False), help="Figure, PNG [benchmarks/results].")
@click.option("--l2", default=2.0, show_default=True, help="Strength of the penalty.")
@click.option("--cap", default=30.0, show_default=True, help="CPU seconds per system.")
@click.option("--quick", is_flag=True, help="100 sentences, to see that all runs.")
def command(data: str | None, json_file: str | None, plot_file: str | None, l2: float, cap: float, quick: bool) -> None:
    RESULTS.mkdir(exist_ok=True)
    records: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        arrays = str(Path(folder) / "wnut17.npz")
        wnut17(data, QUICK if quick else SENTENCES).save(arrays)
        for system, (solver, options) in SYSTEMS.items():
            head = {"question": "smo", "dataset": "wnut17", "loss": "hinge", "system": system, "l2": l2, "part": quick}
            try:
                cell = run_apart(
                    "benchmarks.solvers:run_cell",
                    1,
                    arrays=arrays,
                    loss="hinge",
                    l2=l2,
                    solver=solver,
                    options=options,
                    n_jobs=1,
                    cap=cap,
                    targets=[1e-3],
                )
            except SystemFailed as error:
                raise click.ClickException(f"{system} failed: {error}") from None
            records.append({**head, **machine(), **cell})
            write_json(json_file or RESULTS / "smo.jsonl", records)
    show(records, cap)
    for line in findings(records):
        click.echo(line)
    draw_duals(plot_file or RESULTS / "smo.png", records)


def after(record: Record, passes: float) -> float | None:
    """The dual at the last certificate within this many passes; None if the run was over before."""
    if record["trace_passes"][-1] < passes:
        return None
    found = [d for n, d in zip(record["trace_passes"], record["trace_dual"], strict=True) if n <= passes]
    return found[-1] if found else None


def first_at(record: Record, dual: float) -> tuple[float, float] | None:
    """(passes, CPU seconds) at the first certificate with this dual; None if it never had it."""
    rows = zip(record["trace_passes"], record["trace_cpu_seconds"], record["trace_dual"], strict=True)
    return next(((passes, seconds) for passes, seconds, d in rows if d >= dual), None)


def show(records: list[Record], cap: float) -> None:
    """Duals by passes, one row per system."""
    headings = ["system", *(f"dual, pass {n}" for n in PASSES), "last pass", "CPU s", "last dual", "gap"]
    rows = []
    for record in records:
        duals = [after(record, n) for n in PASSES]
        row = [record["system"], *("-" if d is None else format(d, ".5g") for d in duals)]
        row += [format(record["passes"], ".4g"), format(record["solver_cpu_seconds"], ".3g")]
        rows.append([*row, format(record["trace_dual"][-1], ".6g"), format(record["gap"], ".1e")])
    print_table("WNUT 17, hinge: the dual", headings, rows, f"each system ran for {cap:g} CPU s, or to a gap of 1e-3")


def findings(records: list[Record]) -> list[str]:
    """What the paper says, and whether it holds here."""
    by = {record["system"]: record for record in records}
    smo, eg = by["smo"], by["eg"]
    best = max(record["trace_dual"][-1] for record in records)
    last = {name: record["trace_dual"][-1] for name, record in by.items()}

    def say(holds: bool, text: str) -> str:
        return f"{'yes' if holds else 'NO '}  {text}"

    early = [(n, after(smo, n), after(eg, n)) for n in PASSES[:3]]
    ahead = [(n, s, e) for n, s, e in early if s is not None and e is not None]
    numbers = ", ".join(f"pass {n}: {s:.4g} and {e:.4g}" for n, s, e in ahead)
    lines = [say(bool(ahead) and all(s > e for _, s, e in ahead), f"SMO starts up faster than EG ({numbers})")]
    short = 1.0 - last["smo"] / best
    growth = last["smo"] / (after(smo, smo["passes"] / 2) or last["smo"]) - 1.0
    text = (
        f"its last dual is {short:.2%} below the best one known and rose by {growth:.2%} in the last half of its passes"
    )
    lines.append(say(short > NEAR and growth < short / 10, f"SMO comes to a plateau below the optimum: {text}"))
    over = last["eg"] / last["smo"] - 1.0
    text = f"EG ends more than {CLAIM:.0%} above SMO: {over:+.2%} ({last['eg']:.5g} and {last['smo']:.5g})"
    lines.append(say(over > CLAIM, text))
    goal = (1.0 - NEAR) * best
    times = {name: first_at(record, goal) for name, record in by.items()}
    shown = ", ".join(
        f"{name}: " + ("never" if at is None else f"{at[0]:.4g} passes, {at[1]:.3g} CPU s")
        for name, at in times.items()
    )
    lines.append(f"     to within {NEAR:.0%} of the best dual: {shown}")
    hybrids = [at for name, at in times.items() if name.startswith("smo-eg") and at is not None]
    alone = [at[1] for name in ("smo", "eg") if (at := times[name]) is not None]
    quickest = min((at[1] for at in hybrids), default=None)
    holds = quickest is not None and (not alone or quickest < min(alone))
    return [*lines, say(holds, "the best hybrid is there before both, in CPU time")]
