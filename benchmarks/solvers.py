"""How fast is each solver of each loss? Chains: CoNLL-2000 (chunks), OCR letters (words), WNUT 17 (names).

Every solver that fits and "auto" run on each loss, from their own default start. Rankings are by CPU time to each gap,
the median of --repeat runs; "auto" should be within 1.5 of the best. Solvers without certificates make one step and are
shown without a gap. A cell ends at the last target or after --cap CPU seconds. Gaps are those of the solver's own
certificates, issued after every step and later every 5 % of the steps made; their time is not counted. Passes are calls
of the oracle over the number of examples; sweeps over kept labellings are not passes, but their time counts. The final
objective is evaluated once more by independent code.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from math import inf, isfinite
from pathlib import Path
from typing import Any

import click

from benchmarks.chains import DATASETS, Chains, Task
from benchmarks.measure import SystemFailed, first_within, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.ranking import medians, verdicts, write_table
from benchmarks.report import Record, machine, print_table, write_json

TARGETS = (1e-1, 1e-2, 1e-3, 1e-4)
RESULTS = Path(__file__).parent / "results"
#: Forms of a solver that run besides its default form.
FORMS: dict[str, dict[str, dict[str, Any]]] = {
    "bcfw": {
        "bcfw plain": {"pairwise": False, "cached_sweeps": 0},
        "bcfw gap sampling": {"gap_sampling": True},
    }
}
_QUICK = 300  # sequences
_AGREE = 1e-8  # relative difference between a reported objective and the independent one


@click.command("solvers", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="JSON lines [benchmarks/results].")
@click.option("--plot", "plot_file", type=click.Path(dir_okay=False), help="Figure, PNG [benchmarks/results].")
@click.option("--l2", default=2.0, show_default=True, help="Strength of the penalty.")
@click.option("--cap", default=60.0, show_default=True, help="CPU seconds per cell.")
@click.option("--threads", default=1, show_default=True, help="Threads of a solver.")
@click.option("--datasets", default="", help="Only these data sets, with commas.")
@click.option("--losses", default="", help="Only these losses, with commas.")
@click.option("--systems", default="", help="Only these solvers, with commas.")
@click.option("--variant", multiple=True, help="One more system: name:option=value,option=value. May be repeated.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(min=1), help="Runs of each cell.")
@click.option("--table", type=click.Path(dir_okay=False, path_type=Path), help="Write the rankings there as Markdown.")
@click.option(
    "--read",
    "read_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help=("Rank the records of this file (of --json) and run nothing. May be repeated."),
)
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(
    data: str | None,
    json_file: str | None,
    plot_file: str | None,
    l2: float,
    cap: float,
    threads: int,
    datasets: str,
    losses: str,
    systems: str,
    variant: tuple[str, ...],
    repeat: int,
    table: Path | None,
    read_files: tuple[str, ...],
    quick: bool,
) -> None:
    from benchmarks.plots import draw
    from partwise.problem.losses import LOSSES

    said = f"python -m benchmarks solvers --cap {cap:g} --repeat {repeat} --threads {threads} --l2 {l2:g}"
    chosen = {"datasets": datasets, "losses": losses, "systems": systems}
    said += "".join(f" --{option} {names}" for option, names in chosen.items() if names)
    if read_files:
        lines = [line for file in read_files for line in Path(file).read_text().splitlines()]
        conclude([json.loads(line) for line in lines], table, said)
        return
    records: list[Record] = []
    troubles: list[str] = []
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for dataset in choose(datasets, list(DATASETS), "--datasets"):
            arrays = str(Path(folder) / f"{dataset}.npz")
            DATASETS[dataset](data, _QUICK if quick else None).save(arrays)
            for loss in choose(losses, [name for name in LOSSES if LOSSES[name].rescaling == "margin"], "--losses"):
                runs: dict[str, list[Record]] = {}
                systems_here = systems_of(loss, systems, variant)
                for (system, solver, options), _ in itertools.product(systems_here, range(repeat)):
                    head = {"question": "solvers", "dataset": dataset, "loss": loss, "system": system, "l2": l2}
                    head |= {"threads": threads, "part": quick, **machine()}
                    try:
                        cell = run_apart(
                            "benchmarks.solvers:run_cell",
                            threads,
                            arrays=arrays,
                            loss=loss,
                            l2=l2,
                            solver=solver,
                            options=options,
                            n_jobs=threads,
                            cap=cap,
                            targets=TARGETS,
                        )
                    except SystemFailed as error:
                        cell = {"error": str(error)}
                    runs.setdefault(system, []).append({**head, **cell})
                    cells = [medians(same, TARGETS) for same in runs.values()]
                    write_json(json_file or RESULTS / "solvers.jsonl", [*records, *cells])
                show(f"{dataset}{' (part)' if quick else ''}, {loss}, l2 = {l2:g}", cells, cap)
                troubles += check(cells)
                records += cells
    draw(plot_file or RESULTS / "solvers.png", [record for record in records if "error" not in record], TARGETS)
    conclude(records, table, said + (" --quick" if quick else ""))
    for line in [] if quick else findings(records):
        click.echo(line)
    if troubles:
        raise click.ClickException("\n".join(troubles))


def conclude(records: list[Record], table: Path | None, said: str) -> None:
    """Print the rankings, and write their table if a file is given."""
    good = [record for record in records if "error" not in record]
    for line in verdicts(good):
        click.echo(line)
    if table is not None:
        write_table(table, good, said)


def systems_of(loss: str, systems: str, variants: tuple[str, ...]) -> list[tuple[str, str, dict[str, Any]]]:
    """List (shown name, solver, options) of the systems of this loss: suitable solvers with forms, "auto", variants."""
    from partwise.problem.losses import LOSSES
    from partwise.solvers.engine.registry import SOLVERS, fitting_solvers

    fitting = fitting_solvers(LOSSES[loss])
    found: list[tuple[str, str, dict[str, Any]]] = []
    for name in choose(systems, [*SOLVERS, "auto"]):
        if name == "auto" and fitting:
            found.append(("auto", "auto", {}))
        forms = {name: {}, **FORMS.get(name, {})} if name in fitting else {}
        found += [(shown, name, options) for shown, options in forms.items()]
    for text in variants:
        name, _, options = text.partition(":")
        if name not in SOLVERS:
            raise click.BadParameter(f"no solver {name!r}", param_hint="--variant")
        if name in fitting:
            found.append((text, name, dict(map(_option, filter(None, options.split(","))))))
    return found


def _option(text: str) -> tuple[str, Any]:
    import ast

    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not option=value", param_hint="--variant")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def run_cell(
    arrays: str,
    loss: str,
    l2: float,
    solver: str,
    options: dict[str, Any],
    n_jobs: int,
    cap: float,
    targets: list[float],
) -> Record:
    """Run one solver on one problem and note when it reaches each target."""
    from papers import follow
    from partwise import get_solver

    task = Task(Chains.load(arrays), loss, l2, n_jobs)
    before = peak_mb()
    chosen = "auto" if solver == "auto" else get_solver(solver, **options)
    found = follow(task.problem, chosen, max_seconds=cap, tol=min(targets), certified=True)
    trace = found["trace"]
    record: Record = {
        "solver": found["solver"],
        "options": options,
        "status": found["status"],
        "passes": trace["passes"][-1] if trace["passes"] else None,
        "solver_seconds": trace["seconds"][-1] if trace["seconds"] else None,
        "solver_cpu_seconds": trace["cpu_seconds"][-1] if trace["cpu_seconds"] else None,
        "data_mb": before,
        "peak_mb": peak_mb(),
        **{f"trace_{name}": column for name, column in trace.items()},
    }
    shares = [gap / abs(primal) for gap, primal in zip(trace["gap"], trace["primal"], strict=True)]
    if found["weights"] is not None:
        record["reported_objective"] = trace["primal"][-1]
        record["gap"] = shares[-1]
        record["objective"] = task.primal(found["weights"])
    for target in targets:
        at = first_within(shares, target)
        for name in ("passes", "seconds", "cpu_seconds"):
            record[f"{name}_to_{target:g}"] = None if at is None else trace[name][at]
    return record


def check(cells: list[Record]) -> list[str]:
    """List problems: failed systems, objectives that differ from the reported ones, contradictory bounds."""
    troubles = [f"{cell['system']} failed: {cell['error']}" for cell in cells if "error" in cell]
    certified = [cell for cell in cells if cell.get("objective") is not None]
    for cell in certified:
        said, true = cell["reported_objective"], cell["objective"]
        if abs(true / said - 1.0) > _AGREE:
            troubles.append(f"{cell['system']} reports the objective {said}, but it is {true}")
    if certified:
        low = max(certified, key=lambda cell: cell["trace_dual"][-1])
        high = min(certified, key=lambda cell: cell["objective"])
        if low["trace_dual"][-1] > high["objective"] * (1 + 1e-9):
            troubles.append(f"{low['system']}'s dual is above {high['system']}'s objective")
    return troubles


def show(title: str, cells: list[Record], cap: float) -> None:
    """Print passes, wall seconds and CPU seconds to each target, one row per system."""
    columns = {"passes": "passes", "seconds": "s", "cpu_seconds": "CPU s"}
    headings = [
        "system",
        *(f"{what} to {t:.0e}" for what in columns.values() for t in TARGETS),
        "last gap",
        "objective",
    ]
    rows = []
    for cell in cells:
        numbers = [cell.get(f"{what}_to_{t:g}") for what in columns for t in TARGETS]
        cells_text = ["-" if value is None else format(value, ".3g") for value in numbers]
        gap = "-" if not isfinite(cell.get("gap") or inf) else format(cell["gap"], ".1e")
        objective = "-" if cell.get("objective") is None else format(cell["objective"], ".4f")
        rows.append([cell["system"], *cells_text, gap, objective])
    print_table(title, headings, rows, f"-: not reached in {cap:g} CPU s (certificates' time not counted)")


def findings(records: list[Record]) -> list[str]:
    """Compare statements about these solvers with the numbers of this run."""
    records = [record for record in records if "error" not in record]
    cells = {(r["dataset"], r["loss"], r["system"]): r for r in records}
    lines = []

    def both(dataset: str, loss: str, one: str, two: str) -> tuple[Record, Record] | None:
        pair = cells.get((dataset, loss, one)), cells.get((dataset, loss, two))
        return pair if pair[0] and pair[1] else None  # type: ignore[return-value]

    def say(holds: bool, text: str, *numbers: float | None) -> None:
        lines.append(f"{'yes' if holds else 'NO '}  {text} ({' and '.join(map(_number, numbers))})")

    if pair := both("conll2000", "log", "eg", "lbfgs"):
        mine, theirs = (cell["passes_to_0.001"] for cell in pair)
        holds = mine is not None and (theirs is None or mine <= theirs / 5)
        say(holds, "conll2000, log: eg needs at most 1/5 of lbfgs's passes to 1e-3", mine, theirs)
    for dataset in DATASETS:
        if pair := both(dataset, "squared-hinge", "dcd", "cpd"):
            mine, theirs = (cell["seconds_to_0.01"] for cell in pair)
            holds = mine is not None and (theirs is None or mine < theirs)
            say(holds, f"{dataset}, squared-hinge: dcd is at 1e-2 before cpd, in seconds", mine, theirs)
        if pair := both(dataset, "squared-hinge", "dcd-light", "cpd"):
            mine, theirs = (objective_after(cell, 1.0) for cell in pair)
            holds = mine is not None and theirs is not None and mine < theirs
            say(holds, f"{dataset}, squared-hinge: after one pass dcd-light is below cpd", mine, theirs)
    if pair := both("conll2000", "hinge", "bcfw", "bcfw plain"):
        mine, theirs = (passes_to(cell, 5e-2) for cell in pair)
        holds = mine is not None and (theirs is None or mine < theirs)
        say(holds, "conll2000, hinge: bcfw needs fewer passes to 5e-2 than its plain form", mine, theirs)
    rivals = [r for r in records if (r["dataset"], r["loss"], r["solver"]) == ("conll2000", "hinge", "bcfw")]
    if rivals:
        best = min((p for r in rivals if (p := passes_to(r, 5e-2)) is not None), default=None)
        say(best is not None and best <= 100, "conll2000, hinge: bcfw is at 5e-2 within 100 passes", best)
    return lines


def _number(value: float | None) -> str:
    return "not reached" if value is None else format(value, ".5g")


def objective_after(cell: Record, passes: float) -> float | None:
    """Return the objective at the first certificate after this many passes."""
    found = (p for n, p in zip(cell["trace_passes"], cell["trace_primal"], strict=True) if n >= passes)
    return next(found, None)


def passes_to(cell: Record, target: float) -> float | None:
    """Return the passes to a relative gap."""
    shares = [gap / abs(primal) for gap, primal in zip(cell["trace_gap"], cell["trace_primal"], strict=True)]
    at = first_within(shares, target)
    return None if at is None else cell["trace_passes"][at]
