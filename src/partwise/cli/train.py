"""``partwise train``: from a file to a model, with a certificate."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import click

from partwise.cli import crossval
from partwise.cli.checkpoints import checkpoint_of
from partwise.cli.errors import UserError, message_of
from partwise.cli.flags import RENAMED, TRAINING, File, estimator_options, solver_options
from partwise.cli.going_on import load_start, widened
from partwise.cli.objective import check_sparse, loss_flags, loss_settings, penalty_flags, penalty_settings
from partwise.cli.output import (
    check_outputs,
    is_terminal,
    json_flag,
    nothing_left_of,
    peak_memory,
    print_json,
    threads_flag,
    unpack_flag,
    warn_blank,
)
from partwise.cli.partitioned import train_on_partition
from partwise.cli.summary import (
    loss_fields,
    result_fields,
    training_text,
)
from partwise.cli.taskgroup import TaskGroup
from partwise.cli.tasks import TASKS, Data, Task

#: Training examples that are scored where there are no development data.
SCORED = 2000


@click.command("train", cls=TaskGroup, make=lambda task: make_command(task))
def command() -> None:
    """Train a model and certify it: partwise train TASK DATA -o MODEL.

    DATA is a file, or a folder that `partwise partition` wrote.
    """


def training_flags(task: Task) -> list[click.Parameter]:
    """The flags of `train` and `path` that say what is trained, and how."""
    return [
        *task.flags(),
        *estimator_options(task.estimator, (*TRAINING, *task.parameters)),
        *loss_flags(task),
        click.Option(
            ["--solver-option", "given_options"],
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the solver; `partwise solvers NAME` lists them.",
        ),
        click.Option(
            ["--seed"],
            type=click.IntRange(0),
            default=0,
            show_default=True,
            help="Seed of solvers that draw examples.",
        ),
    ]


def make_command(task: Task) -> click.Command:
    """The command of one task."""

    def run(**flags: Any) -> None:
        train(task, **flags)

    parameters: list[click.Parameter] = [
        click.Argument(["data"], type=File()),
        click.Option(
            ["-o", "--output"],
            type=File(),
            metavar="MODEL",
            help="Where the model goes [default: DATA's name with .pw, here].",
        ),
        click.Option(["--dev"], type=File(), metavar="FILE", help="Labelled data to score on."),
        click.Option(
            ["--from", "start"],
            type=File(),
            metavar="MODEL",
            help="Go on from a model: its features, loss and penalty, its weights as the start.",
        ),
        click.Option(
            ["--memory"], metavar="BYTES", help="DATA is a partition: train in about so much memory; 500M, 2G."
        ),
        click.Option(
            ["--scheduler"],
            metavar="ADDRESS",
            help="DATA is a partition: train on the Dask cluster of this scheduler; `local`: on a process per thread.",
        ),
        *training_flags(task),
        *penalty_flags(default_strength(task)),
        click.Option(
            ["--early-stopping"],
            type=click.IntRange(1),
            metavar="K",
            help="Stop after K scores on --dev without a better one, and keep the best.",
        ),
        click.Option(
            ["--folds"],
            type=click.IntRange(2),
            metavar="K",
            help="Also cross-validate: train K more models, each scored on its own K-th of DATA.",
        ),
        click.Option(
            ["--baseline"],
            type=click.Choice(["majority", "maxent", "none"]),
            default="majority",
            show_default=True,
            help="What the score is compared with; maxent also trains a model without structure.",
        ),
        click.Option(
            ["--report"], type=File(), metavar="FILE.html", help="Write a report with plots, scores, weights, examples."
        ),
        click.Option(
            ["--history-file"], type=File(), metavar="FILE", help="Write every certificate to a .csv or .json file."
        ),
        click.Option(
            ["--checkpoint"],
            type=File(),
            metavar="DIR",
            help="Save the run's state there from time to time; the same command continues from it.",
        ),
        click.Option(
            ["--checkpoint-every"],
            type=click.FloatRange(0),
            default=60.0,
            show_default=True,
            metavar="SECONDS",
            help="How often.",
        ),
        click.Option(
            ["--dtype"],
            type=click.Choice(["float64", "float32"]),
            default="float64",
            show_default=True,
            help="Precision of the weights in the model file.",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, help="No progress line, no summary."),
    ]
    made = click.Command(
        task.name, params=parameters, callback=run, help=_help(task), short_help=TASKS[task.name].summary
    )
    return json_flag(threads_flag(unpack_flag(made)))


def _help(task: Task) -> str:
    return f"{TASKS[task.name].summary}\n\n{inspect.cleandoc(task.__doc__ or '')}"


def default_strength(task: Task) -> float:
    """C where nothing is said."""
    return float(inspect.signature(task.estimator).parameters["C"].default)


def estimator_settings(task: Task, flags: dict[str, Any]) -> dict[str, Any]:
    """An estimator's parameters from flags; C and callbacks are the command's."""
    chosen = {name: flags[name] for name in (*TRAINING, *task.parameters)}
    chosen |= loss_settings(task, flags)
    chosen["solver_options"] = solver_options(flags["solver"], flags["given_options"]) or None
    for name, flag in RENAMED.items():
        chosen[name] = flags[flag]
    check_sparse(chosen, flags)
    return chosen


def _checked_settings(task: Task, flags: dict[str, Any]) -> dict[str, Any]:
    """The same with the penalty, in which nothing is wrong that can be found without data."""
    settings = estimator_settings(task, flags)
    settings |= penalty_settings(settings, default_strength(task), flags)
    task.estimator(**settings).check_parameters()
    return settings


def default_output(data: str) -> str:
    """DATA's name with .pw, in the current folder."""
    if data == "-":
        raise UserError("data from standard input has no name: say with -o where the model goes")
    return PurePath(PurePath(data).name.removesuffix(".gz")).stem + ".pw"


def train(
    task: Task,
    *,
    data: str,
    output: str | None,
    dev: str | None,
    memory: str | None,
    scheduler: str | None,
    start: str | None,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Read, fit, score, save, report, cross-validate; in this order, so that nothing is written before all went well.

    Training may have taken hours: what goes wrong once the model is saved does not take it away.
    """
    begin = time.perf_counter()
    output = output or default_output(data)
    if as_json and output == "-":
        raise UserError("--json cannot be combined with a model on standard output")
    if os.path.isdir(data):
        if start is not None:
            raise UserError("--from is not available with a partition")
        settings = _checked_settings(task, flags)
        shared: dict[str, Any] = {
            "data": data,
            "output": output,
            "dev": dev,
            "memory": memory,
            "scheduler": scheduler,
            "as_json": as_json,
            "quiet": quiet,
        }
        train_on_partition(task, settings, **shared, **flags)
        return
    for flag, value in (("--memory", memory), ("--scheduler", scheduler)):
        if value is not None:
            raise UserError(f"{flag} is for partitions: write one with `partwise partition`")
    if flags["early_stopping"] and dev is None:
        raise UserError("--early-stopping needs --dev")
    if flags["early_stopping"] and flags["checkpoint"]:
        raise UserError("--checkpoint cannot be combined with --early-stopping, whose scores it does not hold")
    if flags["early_stopping"] and flags["folds"]:
        raise UserError("--folds cannot be combined with --early-stopping: folds have no development data")
    beside = task.beside(flags, output)
    check_outputs(output, *beside, flags["report"], flags["history_file"], inputs=(data, dev))
    settings = _checked_settings(task, flags)
    begun = None if start is None else load_start(task, start, settings, flags)
    reading = flags if begun is None else begun.reading(task, flags)
    training = task.read(data, reading, labelled=True)
    if flags["folds"]:
        crossval.check_folds(task, training, flags["folds"])
    remembered = task.remember(flags, training) if begun is None else task.recall(begun.estimator)
    known = {**reading, **remembered}  # --dev is read as a model's input is
    held = task.read(dev, known, labelled=True) if dev is not None else None
    training, held, others = task.prepared(flags, training, held)

    from partwise.cli.devscore import TrainingAnswers
    from partwise.cli.tasks.labels import check_weighted_labels

    if begun is None:
        model = task.make(flags, training, settings)
        check_weighted_labels(model, training)
    else:
        model, training = begun.estimator, widened(task, training, begun)
    callbacks = _callbacks(task, flags, training, held, quiet or as_json)
    answers = TrainingAnswers(_some(task, training) if held is None else ())
    model.set_params(callbacks=[*callbacks, *([answers] if held is None else [])])
    with nothing_left_of(flags["history_file"]):
        model.fit(training.X, training.y, checkpoint=checkpoint_of(flags))
    model.set_params(callbacks=None)
    model.input_settings_ = {"task": task.name, **remembered}

    scored, where = (held, dev) if held is not None else _taken(task, training, answers.which)
    assert scored is not None
    evaluation = task.evaluate(model, scored, answers.found)
    warn_blank(task.blank(model), where)
    baseline = _baseline(task, flags, training, scored, task.main_score(evaluation)[0], settings)
    model.save(output, dtype=flags["dtype"])
    for path, other in zip(beside, others, strict=True):
        other.save(path, dtype=flags["dtype"])
    folds = None
    try:
        if flags["report"]:
            from partwise.cli import reporting

            curve = reporting.dev_curve(*task.main_score(evaluation), callbacks, model.result_.passes)
            more: dict[str, Any] = {"baseline": baseline, "held_out": held is not None, "plots": curve}
            reporting.write(flags["report"], task, model, scored, evaluation, data, where, **more)
        if flags["folds"]:
            folds = crossval.cross_validate(task, flags, training, settings, flags["folds"])
    except (OSError, UserError) as error:
        raise UserError(f"{message_of(error)} (the model is in {output})") from None
    fields = {
        "task": task.name,
        "model": output,
        "report": flags["report"],
        **({"beside": beside} if beside else {}),
        "n_examples": training.n_examples,
        "n_tokens": training.n_tokens,
        "n_labels": len(task.labels(model)),
        "n_features": task.size(model),
        "n_nonzero": task.n_nonzero(model),
        **task.features(model),
        **({"from": begun.fields(task, model)} if begun is not None else {}),
        **loss_fields(model.loss),
        "C": model.C,
        **result_fields(model.result_),
        "total_seconds": time.perf_counter() - begin,
        "peak_memory": peak_memory(),
        "scored_on": where,
        **evaluation.scores,
        **evaluation.details,
        "baseline": {"name": baseline[0], "score": baseline[1]} if baseline else None,
        **_early_stopping(callbacks),
        **({"cross_validation": folds} if folds else {}),
    }
    if as_json:
        print_json(fields)
    elif not quiet:
        notes = task.notes(model, training, evaluation)
        click.echo(training_text(task, fields, task.main_score(evaluation), notes), err=output == "-")


def _callbacks(task: Task, flags: dict[str, Any], training: Data, held: Data | None, quiet: bool) -> list[Any]:
    from partwise.callbacks import EarlyStopping, HistoryWriter, ProgressLine
    from partwise.cli.devscore import FOR_REPORT, DevScore

    found: list[Any] = []
    if held is not None and flags["early_stopping"]:
        data = task.align(held, training)
        found.append(EarlyStopping(data.X, data.y, flags["early_stopping"], task.metric(data)))
    elif held is not None and (flags["report"] or (not quiet and is_terminal())):
        found.append(DevScore(task, held, FOR_REPORT if flags["report"] else 0.0))
    if flags["history_file"]:
        found.append(HistoryWriter(flags["history_file"]))
    if not quiet:
        found.append(ProgressLine())
    return found


def _early_stopping(callbacks: list[Any]) -> dict[str, Any]:
    """What JSON output says of --early-stopping: the scores, and which one was the best."""
    for each in callbacks:
        if getattr(each, "scores_", None):  # a run may end before its first step
            scores = [{"passes": passes, "score": score} for passes, score in each.scores_]
            best = {"best_passes": each.best_passes_, "best_score": each.best_score_}
            return {"early_stopping": {**best, "scores": scores}}
    return {}


def _some(task: Task, training: Data) -> list[int]:
    """Some of the training data: their score says little, and should not take long."""
    n = training.n_examples
    if n <= SCORED or type(task).take is Task.take:
        return list(range(n))
    return [k * n // SCORED for k in range(SCORED)]


def _taken(task: Task, training: Data, which: Sequence[int]) -> tuple[Data, str]:
    """These examples, and what they are called."""
    if len(which) == training.n_examples:
        return training, "the training data"
    return task.take(training, which), f"{len(which)} {task.unit} of the training data"


def _baseline(
    task: Task, flags: dict[str, Any], training: Data, scored: Data, score: str, settings: dict[str, Any]
) -> tuple[str, float] | None:
    if flags["baseline"] == "none":
        return None
    if flags["baseline"] == "maxent":
        found = task.unstructured(flags, training, scored, settings)
        if found is None:
            raise UserError(f"--baseline maxent: {task.name} is without structure itself")
        return found
    return task.baseline(training, scored, score)
