"""Iterative scaling and coordinate descent for maximum entropy: the experiments of Huang et al. 2010.

Parts of speech and chunks of CoNLL-2000 and parts of speech of the Brown corpus with 0/1 features (l2 = 0.1), and
20news with rows of length 1, without and with a bias (l2 = 1/8). l2 = 0.1 is the paper's sigma^2 = 10 for the sum of
losses; for their mean, as in (3), it would be l2 = n / 10, which gives no good model. sigma^2 = 8 l of section 5.2 is
for the mean: l2 = 1/8. There are fewer features than in Table 3 (168,674 and 273,680 on CoNLL-2000): here a pair of
attribute and label must occur five times, there an attribute, and chunks have CRFsuite's attributes in place of
OpenNLP's. `python -m papers huang2010` runs the paper's methods on the features of Table 3. Every method minimises l2/2
|w|^2 + sum of log losses from w = 0; equal contexts are merged. The reference of a data set is solved first: sdca
(Brown: cd) with twice the cap. A cell ends when it is certified to be within 1e-5 of the optimum, by its own gap or by
the reference's dual, or after --cap CPU seconds of steps per thread (Brown: twice that). Objective, gradient and
accuracy are evaluated after every step, later after every 5 % more steps, in at most a third of the steps' time, which
is not counted. The lowest objective of all cells counts as the optimum, and the table says how far it may be above the
optimum (certified). Records are written after every cell, and --resume continues an interrupted run. By default there
are 50 cells with 66 minutes of steps in all, if none ends early. NLTK's GIS runs on 2000 contexts without a penalty; it
is compared with our GIS by the time of an iteration, and with cd by the time to the objective that NLTK reached.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.contexts import DATASETS, Contexts
from benchmarks.measure import SystemFailed, first_within, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, write_json

TARGETS = (1e-2, 1e-3, 1e-4)
# System: (solver, options). cd-cyclic visits every weight in each pass, as the paper's method does, but visits frequent
# features first, where the paper follows the numbering of the features.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "cd": ("cd", {}),
    "cd-cyclic": ("cd", {"order": "cyclic"}),
    **{name: (name, {}) for name in ("scgis", "gis", "iis", "is-bound", "cd-exact", "lbfgs", "newton")},
}
RESULTS = Path(__file__).parent / "results"
_QUICK = 150  # sentences, articles or documents
_SLICE = 2000  # number of contexts that NLTK gets
_NLTK_ITERATIONS = 30  # NLTK's default is 100
_ACCURATE = 1e-5
_BROWN = 2.0  # Brown's cap over that of the other data sets
_LOOKING = 1 / 3  # the most seconds spent on evaluation per second of steps


@click.command("maxent-is", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="JSON lines [benchmarks/results].")
@click.option("--plot", "plot_file", type=click.Path(dir_okay=False), help="Figure, PNG [benchmarks/results].")
@click.option("--cap", default=60.0, show_default=True, help="CPU seconds per cell and thread.")
@click.option("--threads", default=1, show_default=True, help="Threads of a solver.")
@click.option("--datasets", default="", help=f"Only these of {', '.join(DATASETS)}, with commas.")
@click.option("--systems", default="", help="Only these methods, with commas.")
@click.option("--nltk/--no-nltk", default=True, show_default=True, help="Compare with NLTK's GIS.")
@click.option("--resume", is_flag=True, help="Keep the cells that the JSON file has, if made with the same options.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
def command(
    data: str | None,
    json_file: str | None,
    plot_file: str | None,
    cap: float,
    threads: int,
    datasets: str,
    systems: str,
    nltk: bool,
    resume: bool,
    quick: bool,
) -> None:
    from benchmarks.plots import draw

    records: list[Record] = []
    RESULTS.mkdir(exist_ok=True)
    out = Path(json_file) if json_file else RESULTS / "maxent-is.jsonl"
    done = finished(out) if resume else []
    with tempfile.TemporaryDirectory() as folder:
        for dataset in choose(datasets, list(DATASETS), "--datasets"):
            make, l2, binary = DATASETS[dataset]
            arrays = Path(folder) / f"{dataset}.npz"
            limit = _BROWN * cap if dataset == "brown" else cap
            cells: list[Record] = []
            bound = None
            for system, seconds in [("reference", 2.0 * limit), *((m, limit) for m in choose(systems, [*METHODS]))]:
                head = {"question": "maxent-is", "dataset": dataset, "system": system, "l2": l2, "binary": binary}
                head |= {"loss": "log", "threads": threads, "part": quick, "cap": seconds}
                cell = next((old for old in done if head.items() <= old.items()), None)
                if cell is None:
                    if not arrays.exists():
                        make(data, _QUICK if quick else None).save(str(arrays))
                    solver, chosen = (_reference(dataset), {}) if system == "reference" else METHODS[system]
                    options = {"arrays": str(arrays), "solver": solver, "options": chosen}
                    options |= {"l2": l2, "cap": seconds, "bound": bound}
                    # A step cannot be interrupted, so a cell may end late. The timeout ends cells that hang.
                    timeout = 5.0 * seconds + 600.0
                    cell = {
                        **head,
                        **machine(),
                        **_apart("maxent_is:run_cell", threads, timeout, **options, n_jobs=threads),
                    }
                if system == "reference":
                    bound = cell.get("best_dual")
                cells.append(cell)
                write_json(out, [*records, *cells, *_later(done, records, cells)])
                click.echo(progress(cell), err=True)
            arrays.unlink(missing_ok=True)
            conclude(f"{dataset}{' (part)' if quick else ''}, l2 = {l2:g}", cells)
            records += cells
            write_json(out, [*records, *_later(done, records)])
        if nltk:
            records.append(against_nltk(data, folder, threads))
        write_json(out, records)
    drawn = [r for r in records if r.get("trace_gap") and r["system"] != "reference"]
    draw(plot_file or RESULTS / "maxent-is.png", drawn, TARGETS, what="relative difference")
    for line in [] if quick else findings(records):
        click.echo(line)
    failed = [f"{r['dataset']}, {r['system']} failed: {r['error']}" for r in records if "error" in r]
    if failed:
        raise click.ClickException("\n".join(failed))


def _reference(dataset: str) -> str:
    """Return the solver of the reference run: sdca is the fastest, except at Brown's weak penalty."""
    return "cd" if dataset == "brown" else "sdca"


def finished(path: Path) -> list[Record]:
    """Return the finished cells of an earlier run."""
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in records if "trace_primal" in record]


def _later(done: list[Record], *written: list[Record]) -> list[Record]:
    """Return the earlier run's cells that this run has not reached yet: they stay in the file."""
    seen = [(r["dataset"], r["system"]) for some in written for r in some]
    return [record for record in done if (record["dataset"], record["system"]) not in seen]


def progress(cell: Record) -> str:
    """Describe a finished cell in one line."""
    name = f"{cell['dataset']}, {cell['system']}"
    if "error" in cell:
        return f"{name}: {cell['error']}"
    return (
        f"{name}: {cell['status']}, objective {cell['objective']:.6g} in {cell['trace_steps'][-1]:.0f} steps and "
        f"{cell['solver_seconds']:.1f} s (CPU {cell['solver_cpu_seconds']:.1f} s), {cell['peak_mb']:.0f} MB"
    )


def _apart(function: str, threads: int, timeout: float | None = None, **options: Any) -> Record:
    try:
        return run_apart(f"benchmarks.{function}", threads, timeout, **options)
    except SystemFailed as error:
        return {"error": str(error)}


def make_problem(contexts: Contexts, l2: float, n_jobs: int) -> Any:
    """Make the problem of these contexts, with equal contexts merged and features with column access."""
    from partwise import Problem
    from partwise._core import padded_width
    from partwise.features import Attributes, RowLayout, maxent_map, merge_contexts
    from partwise.structures import Multiclass

    n_attributes, n_labels = contexts.sizes.tolist()
    values = contexts.values if len(contexts.values) else None
    merged = merge_contexts(Attributes(contexts.row_ptr, contexts.attributes, n_attributes, values), contexts.labels)
    layout = None
    if len(contexts.pair_ptr):
        width = padded_width(n_labels)
        layout = RowLayout.from_pairs(n_attributes, n_labels, width, contexts.pair_ptr, contexts.pair_labels)
    structure = Multiclass(len(merged.labels), n_labels)
    return Problem(
        maxent_map(structure, merged.rows, layout=layout),
        structure,
        structure.encode(merged.labels),
        "log",
        l2,
        sample_weight=merged.sample_weight,
        n_jobs=n_jobs,
    ), layout


def run_cell(
    arrays: str,
    solver: str,
    l2: float,
    cap: float,
    n_jobs: int,
    bound: float | None = None,
    options: dict[str, Any] | None = None,
) -> Record:
    """Run one method and record objective, gradient norm and accuracy along the way.

    bound: a known dual value. options: of the solver.
    """
    from partwise import get_solver

    contexts = Contexts.load(arrays)
    problem, layout = make_problem(contexts, l2, n_jobs)
    accuracy = _accuracy(contexts, layout)
    contexts.row_ptr = contexts.attributes = np.zeros(0, dtype=np.int64)  # the problem has a copy
    before = peak_mb()
    chosen = get_solver(solver, **(options or {}))
    names = ("passes", "seconds", "cpu_seconds", "steps", "updates", "primal", "dual", "gradient", "accuracy")
    trace: dict[str, list[float]] = {name: [] for name in names}
    wall = cpu = looking = 0.0
    peak = before
    state, due, status = None, 0, "not reached"
    while True:
        begin, cpu_begin = time.perf_counter(), time.process_time()
        if state is None:
            state = chosen.init_state(problem, np.random.default_rng(0), None)
        else:
            chosen.step(problem, state)
        wall, cpu = wall + time.perf_counter() - begin, cpu + time.process_time() - cpu_begin
        late = cpu >= cap * n_jobs
        if not late and (state.epoch < due or looking > _LOOKING * cpu + 1.0):
            continue
        due = state.epoch + max(1, state.epoch // 20)
        peak = peak_mb()
        begin = time.process_time()
        weights = chosen.weights(problem, state)
        primal, gradient = problem.value_and_gradient(weights)
        certificate = problem.certificate_at(primal, gradient, weights)
        updates = getattr(state, "updates", state.epoch * problem.n_weights)
        row = (state.visits / len(problem.active), wall, cpu, state.epoch, updates, primal, certificate.dual)
        for column, value in zip(trace.values(), (*row, np.linalg.norm(gradient), accuracy(weights)), strict=True):
            column.append(float(value))
        looking += time.process_time() - begin
        best = certificate.dual if bound is None else max(certificate.dual, bound)
        if primal - best <= _ACCURATE * abs(primal):
            status = "converged"
            break
        if late:
            break
    own = chosen.certificate(problem, state).certificate.dual  # better than the dual value of its weights
    return {
        "solver": solver,
        "status": status,
        "contexts": problem.n_examples,
        "features": int(problem.n_weights),
        "solver_seconds": wall,
        "solver_cpu_seconds": cpu,
        "looking_seconds": looking,
        "objective": min(trace["primal"]),
        "best_dual": max(own, *trace["dual"]),
        "gradient_norm": trace["gradient"][-1],
        "final_accuracy": trace["accuracy"][-1],
        "data_mb": before,
        "peak_mb": peak,
        **{f"trace_{name}": column for name, column in trace.items()},
    }


def _accuracy(contexts: Contexts, layout: Any) -> Any:
    from partwise._core import all_scores
    from partwise.features import Attributes, multiclass_map
    from partwise.structures import Multiclass

    n_attributes, n_labels = contexts.sizes.tolist()
    labels = contexts.test_labels
    structure = Multiclass(len(labels), n_labels)
    values = contexts.test_values if len(contexts.test_values) else None
    rows = Attributes(contexts.test_row_ptr, contexts.test_attributes, n_attributes, values)
    features = multiclass_map(structure, rows, layout=layout)

    def accuracy(weights: Any) -> float:
        scores = all_scores(structure, features, weights).reshape(len(labels), -1)[:, :n_labels]
        return float(np.mean(scores.argmax(axis=1) == labels))

    return accuracy


def conclude(title: str, cells: list[Record]) -> None:
    """Add the numbers that need the reference run, and print the cells."""
    good = [cell for cell in cells if "error" not in cell]
    if not good:
        return
    optimum = min(cell["objective"] for cell in good)
    bound = max(cell["best_dual"] for cell in good)
    final = max(cell["final_accuracy"] for cell in good if cell["objective"] <= optimum * 1.001)
    for cell in good:
        finish(cell, optimum, final)
    headings = ["method", *(f"{what} to {t:.0e}" for what in ("CPU s", "updates") for t in TARGETS)]
    headings += ["steps", "CPU s", "difference", "|gradient|", "CPU s to 99% acc", "accuracy", "peak MB"]
    fields = [(f"cpu_seconds_to_{t:g}", ".3g") for t in TARGETS] + [(f"updates_to_{t:g}", ".2e") for t in TARGETS]
    fields += [("steps", ".0f"), ("solver_cpu_seconds", ".3g"), ("difference", ".1e"), ("gradient_norm", ".3g")]
    fields += [("seconds_to_accuracy", ".3g"), ("final_accuracy", ".4f"), ("peak_mb", ".0f")]
    rows = [[cell["system"], *(_number(cell[name], form) for name, form in fields)] for cell in good]
    first = good[0]
    note = f"{first['contexts']} contexts, {first['features']} weights; lowest objective {optimum:.4f}, at most "
    note += f"{(optimum - bound) / optimum:.1e} above the optimum; its accuracy {final:.4f}. -: not reached in the cap"
    print_table(title, headings, rows, note)


def finish(cell: Record, optimum: float, final_accuracy: float) -> None:
    """Add the times to each relative difference to the reference, and to 99 % of the final accuracy."""
    differences = [primal / optimum - 1.0 for primal in cell["trace_primal"]]
    cell["optimum"], cell["difference"] = optimum, differences[-1]
    cell["updates"], cell["steps"] = cell["trace_updates"][-1], cell["trace_steps"][-1]
    cell["trace_gap"] = [primal - optimum for primal in cell["trace_primal"]]
    for target in TARGETS:
        at = first_within(differences, target)
        for name in ("seconds", "cpu_seconds", "steps", "updates", "gradient"):
            cell[f"{name}_to_{target:g}"] = None if at is None else cell[f"trace_{name}"][at]
    at = first_within([-value for value in cell["trace_accuracy"]], -0.99 * final_accuracy)
    cell["seconds_to_accuracy"] = None if at is None else cell["trace_cpu_seconds"][at]


def findings(records: list[Record]) -> list[str]:
    """Compare the paper's statements about these methods with the numbers of this run."""
    lines = []
    times = {(r["dataset"], r["system"]): r.get("cpu_seconds_to_0.01") for r in records if "trace_gap" in r}
    last = {(r["dataset"], r["system"]): r["difference"] for r in records if "trace_gap" in r}

    def say(holds: bool, text: str, *numbers: float | None) -> None:
        lines.append(f"{'yes' if holds else 'NO '}  {text} ({' and '.join(_number(n, '.3g') for n in numbers)})")

    def before(one: float | None, two: float | None) -> bool:
        return one is not None and (two is None or one < two)

    for dataset, (_, _, binary) in DATASETS.items():
        pairs = [(one, two) for one in ("cd", "cd-cyclic") for two in ("scgis", "lbfgs", "newton")]
        pairs.insert(1, ("scgis", "gis"))
        for one, two in pairs if binary else ():
            if (dataset, one) in times and (dataset, two) in times:
                pair = times[dataset, one], times[dataset, two]
                if pair == (None, None):
                    ends = last[dataset, one], last[dataset, two]
                    say(ends[0] < ends[1], f"{dataset}: neither is at 1e-2, {one} is nearer than {two}", *ends)
                else:
                    say(before(*pair), f"{dataset}: {one} is at 1e-2 before {two}, in CPU seconds", *pair)
    for record in records:
        if record["dataset"] == "brown" and record["system"] == "cd" and "peak_mb" in record:
            say(record["peak_mb"] < 4000, "brown: cd needs less than 4 GB", record["peak_mb"] / 1000)
        if "nltk_ratio" in record:
            say(record["nltk_ratio"] >= 1000, "cd is at NLTK's objective in 1/1000 of its time", record["nltk_ratio"])
            ratio = record["nltk_iteration_ratio"]
            say(ratio >= 1000, "an iteration of gis takes 1/1000 of NLTK's", ratio)
    return lines


def against_nltk(data: str | None, folder: str, threads: int) -> Record:
    """Compare NLTK's CPU seconds with ours on the same contexts: to the same objective, and per iteration of GIS."""
    arrays = str(Path(folder) / "nltk.npz")
    DATASETS["conll-pos"][0](data, _QUICK).save(arrays)
    head = {"question": "maxent-is", "dataset": "slice of conll-pos", "system": "nltk-gis", **machine()}
    cell = _apart("maxent_nltk:fit_nltk", threads, arrays=arrays, contexts=_SLICE, iterations=_NLTK_ITERATIONS)
    if "error" not in cell:
        fields = ("cpu_seconds", "our_cpu_seconds", "ratio", "iteration", "our_iteration", "iteration_ratio")
        row = [_number(cell[f"nltk_{name}"], ".4g") for name in fields]
        headings = ["NLTK: CPU s", "cd", "ratio", "NLTK: CPU s per iteration", "gis", "ratio"]
        note = f"to the objective that NLTK's GIS has after {_NLTK_ITERATIONS} iterations, {cell['nltk_objective']:.1f}"
        print_table(f"{cell['contexts']} contexts, no penalty", headings, [row], note)
    return {**head, **cell}


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
