"""``partwise path``: many penalties in one run, the best one kept."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import File
from partwise.cli.output import check_outputs, json_flag, peak_memory, print_json, table, threads_flag, unpack_flag
from partwise.cli.summary import result_fields, size_text
from partwise.cli.taskgroup import TaskGroup
from partwise.cli.tasks import TASKS, Data, Task
from partwise.cli.train import default_output, estimator_settings, training_flags


@click.command("path", cls=TaskGroup, make=lambda task: make_command(task))
def command() -> None:
    """Train for many C at once and keep the one that does best on held-out data: partwise path TASK DATA -o MODEL.

    The strongest penalty is solved first and each other one from the solution of the one before, which takes little
    more than a single training; every point is certified.
    """


def make_command(task: Task) -> click.Command:
    """The command of one task."""

    def run(**flags: Any) -> None:
        path(task, **flags)

    parameters: list[click.Parameter] = [
        click.Argument(["data"], type=File()),
        click.Option(
            ["-o", "--output"],
            type=File(),
            metavar="MODEL",
            help="Where the best model goes [default: DATA's name, .pw].",
        ),
        click.Option(["--dev"], type=File(), metavar="FILE", help="Labelled data to choose C by."),
        click.Option(
            ["--hold-out"],
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            default=0.1,
            show_default=True,
            help="Without --dev: share of DATA to choose C by; the best C is then trained on all.",
        ),
        click.Option(["--C-min", "C_min"], type=float, default=0.01, show_default=True, help="The smallest C."),
        click.Option(["--C-max", "C_max"], type=float, default=100.0, show_default=True, help="The largest C."),
        click.Option(
            ["--points"], type=click.IntRange(2), default=9, show_default=True, help="How many C, evenly in logarithms."
        ),
        *training_flags(task),
    ]
    return json_flag(
        threads_flag(
            unpack_flag(click.Command(task.name, params=parameters, callback=run, help=TASKS[task.name].summary))
        )
    )


def path(task: Task, *, data: str, output: str | None, dev: str | None, as_json: bool, **flags: Any) -> None:
    """Fit along the path, score each point, save the best."""
    begin = time.perf_counter()
    output = output or default_output(data)
    if as_json and output == "-":
        raise UserError("--json cannot be combined with a model on standard output")
    if not 0 < flags["C_min"] < flags["C_max"] < float("inf"):
        raise UserError("--C-min must be above 0 and below --C-max")
    check_outputs(output, inputs=(data, dev))
    settings = estimator_settings(task, flags)
    task.estimator(**settings).check_parameters()
    Cs = np.geomspace(flags["C_min"], flags["C_max"], flags["points"]).tolist()
    whole = task.read(data, flags, labelled=True)
    training, held, where = whole, None, dev
    if dev is not None:
        held = task.read(dev, {**flags, **task.remember(flags, whole)}, labelled=True)
    else:
        training, held = _hold_out(task, whole, flags["hold_out"], flags["seed"])
        where = f"{held.n_examples} {task.unit} held out"

    model = task.make(flags, training, settings)
    points = []
    results = model.fit_path(Cs, training.X, training.y)
    for C, result in zip(Cs, results, strict=True):
        model.use(result)
        name, score = task.main_score(task.evaluate(model, held))
        points.append({"C": C, **result_fields(result), "score": score})
    best = max(range(len(points)), key=lambda k: (points[k]["score"], -points[k]["C"]))
    if training is whole:
        model.C = Cs[best]
        model.use(results[best])
    else:
        model.fit_path(Cs[: best + 1], whole.X, whole.y)
    model.input_settings_ = {"task": task.name, **task.remember(flags, training)}
    model.save(output)
    fields = {
        "task": task.name,
        "model": output,
        "C": Cs[best],
        "score": points[best]["score"],
        "score_name": name,
        "scored_on": where,
        **result_fields(model.result_),
        "n_features": task.size(model),
        "total_seconds": time.perf_counter() - begin,
        "peak_memory": peak_memory(),
        "points": points,
    }
    if as_json:
        print_json(fields)
        return
    rows = [["C", "primal", "dual", "gap / primal", "passes", "seconds", name]]
    rows += [
        [
            f"{point['C']:.4g}",
            f"{point['primal']:.6g}",
            f"{point['dual']:.6g}",
            f"{point['relative_gap']:.1e}",
            f"{point['passes']:.4g}",
            f"{point['seconds']:.2f}",
            f"{point['score']:.2%}{' *' if k == best else '  '}",
        ]
        for k, point in enumerate(points)
    ]
    click.echo(table(rows, left=0), err=output == "-")
    text = f"\nbest {name} on {where}: C = {Cs[best]:.4g}; model {output}{size_text(output)}"
    click.echo(text, err=output == "-")


def _hold_out(task: Task, data: Data, share: float, seed: int) -> tuple[Data, Data]:
    count = round(share * data.n_examples)
    if not 0 < count < data.n_examples:
        raise UserError(f"--hold-out: {share:g} of {data.n_examples} {task.unit} leaves nothing to train or to score")
    order = np.random.default_rng(seed).permutation(data.n_examples)
    return task.take(data, np.sort(order[count:]).tolist()), task.take(data, np.sort(order[:count]).tolist())
