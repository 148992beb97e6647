"""Iterative scaling and coordinate descent for maximum entropy: the experiments of Huang et al. (2010).

Parts of speech and chunks of CoNLL-2000 and parts of speech of the Brown corpus with 0/1 features (l2 = 0.1), and
20news with rows of length 1, without and with a bias (l2 = 1/8). Every method minimises l2/2 |w|^2 + sum of log losses
from w = 0 on equal contexts merged. A cell ends at a gap of 1e-5 or after --cap seconds of steps (Brown: four times
that); objective, gradient and accuracy are evaluated after every step and later every 5 % of the steps made, and that
time is not counted. The reference is the lowest objective of all cells, among them a run of sdca (Brown: cd, whose
memory is a third of sdca's) with twice the cap; the table says how far above the optimum it may be (certified).
NLTK's GIS runs on 2000 contexts without a penalty; beside it our GIS, by the time of an iteration, and cd, by the time
to the objective that NLTK's has reached.
"""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.contexts import DATASETS, Contexts
from benchmarks.measure import SystemFailed, first_within, peak_mb, run_apart
from benchmarks.questions import choose
from benchmarks.report import Record, machine, print_table, write_json

TARGETS = (1e-2, 1e-3, 1e-4)
METHODS = ("cd", "scgis", "gis", "iis", "is-bound", "cd-exact", "lbfgs", "newton")
RESULTS = Path(__file__).parent / "results"
_QUICK = 150  # sentences, articles or documents
_SLICE = 2000  # contexts that NLTK is given
_NLTK_ITERATIONS = 30  # its default is 100
_ACCURATE = 1e-5


@click.command("maxent-is", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="JSON lines [benchmarks/results].")
@click.option("--plot", "plot_file", type=click.Path(dir_okay=False), help="Figure, PNG [benchmarks/results].")
@click.option("--cap", default=60.0, show_default=True, help="Seconds a cell.")
@click.option("--threads", default=1, show_default=True, help="Threads of a solver.")
@click.option("--datasets", default="", help=f"Only these of {', '.join(DATASETS)}, with commas.")
@click.option("--systems", default="", help="Only these methods, with commas.")
@click.option("--nltk/--no-nltk", default=True, show_default=True, help="Compare with NLTK's GIS.")
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
    quick: bool,
) -> None:
    from benchmarks.plots import draw

    records: list[Record] = []
    RESULTS.mkdir(exist_ok=True)
    out = json_file or RESULTS / "maxent-is.jsonl"
    with tempfile.TemporaryDirectory() as folder:
        for dataset in choose(datasets, list(DATASETS), "--datasets"):
            make, l2, binary = DATASETS[dataset]
            arrays = str(Path(folder) / f"{dataset}.npz")
            make(data, _QUICK if quick else None).save(arrays)
            limit = 4.0 * cap if dataset == "brown" else cap
            cells: list[Record] = []
            for system, seconds in [("reference", 2.0 * limit), *((m, limit) for m in choose(systems, [*METHODS]))]:
                head = {"question": "maxent-is", "dataset": dataset, "system": system, "l2": l2, "binary": binary}
                head |= {"loss": "log", "threads": threads, "part": quick, "cap": seconds, **machine()}
                solver = _reference(dataset) if system == "reference" else system
                options = {"arrays": arrays, "solver": solver, "l2": l2}
                cell = _apart("run_cell", threads, **options, cap=seconds, n_jobs=threads)
                cells.append({**head, **cell})
                write_json(out, [*records, *cells])
            conclude(f"{dataset}{' (part)' if quick else ''}, l2 = {l2:g}", cells)
            records += cells
            write_json(out, records)
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
    """The method of the long run: sdca is quickest, but keeps a dual variable for every context and label."""
    return "cd" if dataset == "brown" else "sdca"


def _apart(function: str, threads: int, **options: Any) -> Record:
    try:
        return run_apart(f"benchmarks.maxent_is:{function}", threads, **options)
    except SystemFailed as error:
        return {"error": str(error)}


def make_problem(contexts: Contexts, l2: float, n_jobs: int) -> Any:
    """The problem of these contexts, equal ones merged; features have column access."""
    from partwise import Attributes, Multiclass, Problem, RowLayout, maxent_map, merge_contexts
    from partwise._core import padded_width

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


def run_cell(arrays: str, solver: str, l2: float, cap: float, n_jobs: int) -> Record:
    """Run one method and note objective, gradient norm and accuracy on the way."""
    from partwise import get_solver

    contexts = Contexts.load(arrays)
    problem, layout = make_problem(contexts, l2, n_jobs)
    accuracy = _accuracy(contexts, layout)
    contexts.row_ptr = contexts.attributes = np.zeros(0, dtype=np.int64)  # the problem has its own
    before = peak_mb()
    chosen = get_solver(solver)
    names = ("passes", "seconds", "cpu_seconds", "steps", "updates", "primal", "dual", "gradient", "accuracy")
    trace: dict[str, list[float]] = {name: [] for name in names}
    wall = cpu = 0.0
    peak = before
    state, due, status = None, 0, "not reached"
    started = time.perf_counter()
    while True:
        begin, cpu_begin = time.perf_counter(), time.process_time()
        if state is None:
            state = chosen.init_state(problem, np.random.default_rng(0), None)
        else:
            chosen.step(problem, state)
        wall, cpu = wall + time.perf_counter() - begin, cpu + time.process_time() - cpu_begin
        # Looking on must not take much longer than the run.
        late = wall >= cap or time.perf_counter() - started >= 1.5 * cap
        if state.epoch < due and not late:
            continue
        due = state.epoch + max(1, state.epoch // 20)
        peak = peak_mb()
        weights = chosen.weights(problem, state)
        primal, gradient = problem.value_and_gradient(weights)
        certificate = problem.certificate_at(primal, gradient)
        updates = getattr(state, "updates", state.epoch * problem.n_weights)
        row = (state.visits / len(problem.active), wall, cpu, state.epoch, updates, primal, certificate.dual)
        for column, value in zip(trace.values(), (*row, np.linalg.norm(gradient), accuracy(weights)), strict=True):
            column.append(float(value))
        if certificate.gap <= _ACCURATE * abs(primal):
            status = "converged"
            break
        if late:
            break
    return {
        "solver": solver,
        "status": status,
        "contexts": problem.n_examples,
        "features": int(problem.n_weights),
        "solver_seconds": wall,
        "solver_cpu_seconds": cpu,
        "objective": min(trace["primal"]),
        "best_dual": max(trace["dual"]),
        "gradient_norm": trace["gradient"][-1],
        "final_accuracy": trace["accuracy"][-1],
        "data_mb": before,
        "peak_mb": peak,
        **{f"trace_{name}": column for name, column in trace.items()},
    }


def _accuracy(contexts: Contexts, layout: Any) -> Any:
    from partwise import Attributes, Multiclass, multiclass_map
    from partwise._core import all_scores

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
    """Add what needs the reference, and show the cells."""
    good = [cell for cell in cells if "error" not in cell]
    if not good:
        return
    optimum = min(cell["objective"] for cell in good)
    bound = max(cell["best_dual"] for cell in good)
    final = max(cell["final_accuracy"] for cell in good if cell["objective"] <= optimum * 1.001)
    for cell in good:
        finish(cell, optimum, final)
    headings = ["method", *(f"{what} to {t:.0e}" for what in ("s", "steps") for t in TARGETS)]
    headings += ["updates", "difference", "|gradient|", "s to 99% acc", "accuracy", "peak MB"]
    fields = [(f"{what}_to_{t:g}", ".3g") for what in ("seconds", "steps") for t in TARGETS]
    fields += [("updates", ".3g"), ("difference", ".1e"), ("gradient_norm", ".3g"), ("seconds_to_accuracy", ".3g")]
    fields += [("final_accuracy", ".4f"), ("peak_mb", ".0f")]
    rows = [[cell["system"], *(_number(cell[name], form) for name, form in fields)] for cell in good]
    first = good[0]
    note = f"{first['contexts']} contexts, {first['features']} weights; lowest objective {optimum:.4f}, at most "
    note += f"{(optimum - bound) / optimum:.1e} above the optimum; its accuracy {final:.4f}. -: not reached in the cap"
    print_table(title, headings, rows, note)


def finish(cell: Record, optimum: float, final_accuracy: float) -> None:
    """Times to each relative difference to the reference and to 99 % of the final accuracy."""
    differences = [primal / optimum - 1.0 for primal in cell["trace_primal"]]
    cell["optimum"], cell["difference"] = optimum, differences[-1]
    cell["updates"] = cell["trace_updates"][-1]
    cell["trace_gap"] = [primal - optimum for primal in cell["trace_primal"]]
    for target in TARGETS:
        at = first_within(differences, target)
        for name in ("seconds", "cpu_seconds", "steps", "updates", "gradient"):
            cell[f"{name}_to_{target:g}"] = None if at is None else cell[f"trace_{name}"][at]
    at = first_within([-value for value in cell["trace_accuracy"]], -0.99 * final_accuracy)
    cell["seconds_to_accuracy"] = None if at is None else cell["trace_seconds"][at]


def findings(records: list[Record]) -> list[str]:
    """What the paper says of these methods, with the numbers of this run beside it."""
    lines = []
    times = {(r["dataset"], r["system"]): r.get("cpu_seconds_to_0.01") for r in records if "trace_gap" in r}
    last = {(r["dataset"], r["system"]): r["difference"] for r in records if "trace_gap" in r}

    def say(holds: bool, text: str, *numbers: float | None) -> None:
        lines.append(f"{'yes' if holds else 'NO '}  {text} ({' and '.join(_number(n, '.3g') for n in numbers)})")

    def before(one: float | None, two: float | None) -> bool:
        return one is not None and (two is None or one < two)

    for dataset, (_, _, binary) in DATASETS.items():
        for one, two in (("cd", "scgis"), ("scgis", "gis"), ("cd", "lbfgs"), ("cd", "newton")) if binary else ():
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
    return lines


def against_nltk(data: str | None, folder: str, threads: int) -> Record:
    """CPU seconds on the same contexts, NLTK's and ours: to the same objective, and of an iteration of GIS."""
    arrays = str(Path(folder) / "nltk.npz")
    DATASETS["conll-pos"][0](data, _QUICK).save(arrays)
    head = {"question": "maxent-is", "dataset": "slice of conll-pos", "system": "nltk-gis", **machine()}
    cell = _apart("fit_nltk", threads, arrays=arrays, contexts=_SLICE, iterations=_NLTK_ITERATIONS)
    if "error" not in cell:
        fields = ("cpu_seconds", "our_cpu_seconds", "ratio", "iteration", "our_iteration", "iteration_ratio")
        row = [_number(cell[f"nltk_{name}"], ".4g") for name in fields]
        headings = ["NLTK: CPU s", "cd", "ratio", "NLTK: CPU s an iteration", "gis", "ratio"]
        note = f"to the objective that NLTK's GIS has after {_NLTK_ITERATIONS} iterations, {cell['nltk_objective']:.1f}"
        print_table(f"{cell['contexts']} contexts, no penalty", headings, [row], note)
    return {**head, **cell}


def fit_nltk(arrays: str, contexts: int, iterations: int) -> Record:
    """NLTK's GIS and ours on the first contexts."""
    from nltk.classify.maxent import GISEncoding, train_maxent_classifier_with_gis

    from partwise import Attributes, FeatureWarning, Multiclass, Problem, get_solver, maxent_map

    given = Contexts.load(arrays)
    n = min(contexts, len(given.labels))
    row_ptr, labels = given.row_ptr[: n + 1], given.labels[:n]
    rows = np.split(given.attributes[: row_ptr[-1]], row_ptr[1:-1])
    tokens = [
        (dict.fromkeys(map(str, row.tolist()), True), int(label)) for row, label in zip(rows, labels, strict=True)
    ]
    encoding = GISEncoding.train(tokens, count_cutoff=0, alwayson_features=False)
    seconds = {}
    for k in (1, 1, iterations):  # the difference of two is free of what is done once
        begin = time.process_time()
        model = train_maxent_classifier_with_gis(tokens, trace=0, encoding=encoding, max_iter=k)
        seconds[k] = time.process_time() - begin
    reached = -sum(math.log(model.prob_classify(names).prob(label)) for names, label in tokens)

    n_attributes, n_labels = given.sizes.tolist()
    table = Attributes(row_ptr, given.attributes[: row_ptr[-1]], n_attributes)
    owner = np.repeat(np.arange(n), np.diff(row_ptr))
    structure = Multiclass(n, n_labels)
    features = maxent_map(structure, table, pairs=(table.attributes, labels[owner]))  # those that occur, as NLTK's
    problem = Problem(features, structure, structure.encode(labels), "log", 0.0)  # NLTK's has no penalty
    with warnings.catch_warnings():  # some labels are not in the slice
        warnings.simplefilter("ignore", FeatureWarning)
        our_iteration = np.median([_iteration(problem, get_solver("gis"), 50) for _ in range(3)])
        ours = np.median([_seconds_to(problem, get_solver("cd"), reached) for _ in range(5)])
    iteration = (seconds[iterations] - seconds[1]) / (iterations - 1)
    return {
        "contexts": n,
        "features": problem.n_weights,
        "nltk_features": encoding.length(),
        "nltk_objective": reached,
        "nltk_cpu_seconds": seconds[iterations],
        "nltk_our_cpu_seconds": float(ours),
        "nltk_ratio": seconds[iterations] / float(ours),
        "nltk_iteration": iteration,
        "nltk_our_iteration": float(our_iteration),
        "nltk_iteration_ratio": iteration / float(our_iteration),
    }


def _iteration(problem: Any, solver: Any, steps: int) -> float:
    """CPU seconds of a step, the first one left out."""
    state = solver.init_state(problem, np.random.default_rng(0), None)
    solver.step(problem, state)
    begin = time.process_time()
    for _ in range(steps):
        solver.step(problem, state)
    return (time.process_time() - begin) / steps


def _seconds_to(problem: Any, solver: Any, objective: float) -> float:
    """CPU seconds from w = 0 until the objective is no higher; looking at it is not counted."""
    begin = time.process_time()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    seconds = time.process_time() - begin
    while problem.value(solver.weights(problem, state)) > objective:
        begin = time.process_time()
        solver.step(problem, state)
        seconds += time.process_time() - begin
    return seconds


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
