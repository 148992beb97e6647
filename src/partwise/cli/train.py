"""``partwise train``: from a file to a model, with a certificate."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from partwise.cli.errors import UserError, message_of
from partwise.cli.flags import (
    FILE,
    Flags,
    Parameters,
    argument,
    default_strength,
    estimator_settings,
    flag,
    penalty_flags,
    penalty_settings,
    training_flags,
)
from partwise.cli.output import check_outputs, is_terminal, peak_memory, print_json, removed_on_failure, warn_blank
from partwise.cli.summary import (
    Fields,
    aligned,
    certificate_lines,
    loss_fields,
    model_text,
    result_fields,
    trained_text,
)
from partwise.cli.tasks import Data, Estimator, Evaluation, Task, TaskGroup

if TYPE_CHECKING:
    from partwise.cli.warm_start import Start
    from partwise.solvers import Checkpoint

#: Training examples that are scored if there are no development data.
SCORED = 2000
#: The file in the folder of --checkpoint.
CHECKPOINT = "run.ckpt"


def train_flags(task: Task) -> list[click.Parameter]:
    """Return the arguments and flags of `train`."""
    return [
        argument("data"),
        flag("-o --output", "Write the model to this file [default: DATA's name with .pw].", FILE, metavar="MODEL"),
        flag("--dev", "Score the model on the labelled data in this file.", FILE),
        flag(
            "--from start",
            "Start from this model: its features, loss and penalty, and its weights.",
            FILE,
            metavar="MODEL",
        ),
        flag("--memory", "DATA is a partition: train in about so much memory; 500M, 2G.", metavar="BYTES"),
        flag(
            "--scheduler",
            "DATA is a partition: train on the Dask cluster of this scheduler; `local`: on a process per thread.",
            metavar="ADDRESS",
        ),
        *training_flags(task),
        *penalty_flags(default_strength(task)),
        flag(
            "--early-stopping",
            "Stop after K scores on --dev without a better one, and keep the best.",
            click.IntRange(1),
            metavar="K",
        ),
        flag(
            "--folds",
            "Also cross-validate: train K more models, each scored on its own K-th of DATA.",
            click.IntRange(2),
            metavar="K",
        ),
        flag(
            "--baseline",
            "Compare the score with this; maxent also trains a model without structure.",
            ("majority", "maxent", "none"),
            "majority",
        ),
        flag("--report", "Write a report with plots, scores, weights, examples.", FILE, metavar="FILE.html"),
        flag("--history-file", "Write every certificate to a .csv or .json file.", FILE),
        flag(
            "--checkpoint",
            "Save the run's state in this folder from time to time; the same command resumes it.",
            FILE,
            metavar="DIR",
        ),
        flag("--checkpoint-every", "Save the state so often.", click.FloatRange(0), 60.0, metavar="SECONDS"),
        flag("--dtype", "Store weights in this precision.", ("float64", "float32"), "float64"),
        flag("-q --quiet", "Show no progress line and no summary.", bool),
    ]


@dataclass
class Examples:
    """Training data as the estimator takes them, and what was read with them.

    remembered : what the model file keeps of how the data were read
    held : development data, if there are any
    start : the model of --from
    others : further models that are saved beside the model
    """

    training: Data
    remembered: Fields
    held: Data | None
    start: Start | None
    others: Sequence[Estimator]


@dataclass
class Run:
    """A fitted model with its scores; `where`: what the scored data are called."""

    model: Estimator
    callbacks: list[object]
    scored: Data
    where: str
    evaluation: Evaluation
    baseline: tuple[str, float] | None


def train(task: Task, flags: Flags) -> None:
    """Read the data, make the estimator, fit and score it, write and report it.

    The model is written when nothing can go wrong with it any more. Errors of later steps leave it in place, since
    training may have taken hours.
    """
    begin = time.perf_counter()
    flags = {**flags, "output": output_of(flags)}
    if os.path.isdir(flags["data"]):
        from partwise.cli.partition import train_on_partition

        train_on_partition(task, flags)
        return
    _check_flags(flags)
    beside = task.beside(flags, flags["output"])
    check_outputs(
        flags["output"], *beside, flags["report"], flags["history_file"], inputs=(flags["data"], flags["dev"])
    )
    settings = checked_settings(task, flags)
    examples = _read(task, flags, settings)
    model = _make(task, flags, settings, examples)
    run = _fit(task, flags, settings, examples, model)
    save_models(task, flags["output"], run.model, examples.remembered, beside, examples.others, flags["dtype"])
    with saved(flags["output"]):
        if flags["report"]:
            _report(task, flags, run, examples)
        folds = _cross_validate(task, flags, settings, examples.training) if flags["folds"] else None
    _show(task, flags, examples, run, beside, folds, begin)


def output_of(flags: Flags) -> str:
    """Return the model's file: DATA's name with .pw, in the current folder, if no flag names it."""
    data, output = flags["data"], flags["output"]
    if output is None and data == "-":
        raise UserError("data from standard input has no name: say with -o where the model goes")
    if flags["as_json"] and output == "-":
        raise UserError("--json cannot be combined with a model on standard output")
    return output or PurePath(PurePath(data).name.removesuffix(".gz")).stem + ".pw"


def checked_settings(task: Task, flags: Flags) -> Parameters:
    """Return an estimator's parameters from flags, after all checks that need no data."""
    settings = estimator_settings(task, flags)
    settings |= penalty_settings(settings, default_strength(task), flags)
    task.estimator(**settings).check_parameters()
    return settings


def _check_flags(flags: Flags) -> None:
    for name in ("memory", "scheduler"):
        if flags[name] is not None:
            raise UserError(f"--{name} is for partitions: write one with `partwise partition`")
    if not flags["early_stopping"]:
        return
    if flags["dev"] is None:
        raise UserError("--early-stopping needs --dev")
    if flags["checkpoint"]:
        raise UserError("--checkpoint cannot be combined with --early-stopping, whose scores it does not hold")
    if flags["folds"]:
        raise UserError("--folds cannot be combined with --early-stopping: folds have no development data")


# 1. read


def _read(task: Task, flags: Flags, settings: Parameters) -> Examples:
    """Read training and development data; --dev is read as a model's input is."""
    start: Start | None = None
    if flags["start"] is not None:
        from partwise.cli.warm_start import load_start

        start = load_start(task, flags["start"], settings, flags)
    reading = flags if start is None else start.reading(task, flags)
    training, folds = task.read(flags["data"], reading, labelled=True), flags["folds"]
    if folds and folds > training.n_examples:
        raise UserError(f"--folds: {training.n_examples} {task.unit} make no {folds} folds")
    remembered = task.remember(flags, training) if start is None else task.recall(start.estimator)
    held = None if flags["dev"] is None else task.read(flags["dev"], {**reading, **remembered}, labelled=True)
    training, held, others = task.prepared(flags, training, held)
    return Examples(training, remembered, held, start, others)


# 2. make


def _make(task: Task, flags: Flags, settings: Parameters, examples: Examples) -> Estimator:
    """Return the estimator, not yet fitted; the training data get the columns of a model that it starts from."""
    from partwise.cli.tasks.labels import check_weighted_labels

    if examples.start is not None:
        examples.training = examples.start.widened(task, examples.training)
        return examples.start.estimator
    model: Estimator = task.make(flags, examples.training, settings)
    check_weighted_labels(model, examples.training)
    return model


# 3. fit and score


def _fit(task: Task, flags: Flags, settings: Parameters, examples: Examples, model: Estimator) -> Run:
    """Fit the estimator, and score it on development data or on some of the training data."""
    from partwise.cli.callbacks import TrainingAnswers

    training, held = examples.training, examples.held
    callbacks = _callbacks(task, flags, training, held)
    answers = TrainingAnswers(_some(task, training) if held is None else ())
    fit_quietly(model, [*callbacks, *([answers] if held is None else [])], flags, training.X, training.y)
    if held is not None:
        scored, where = held, str(flags["dev"])
    elif len(answers.which) == training.n_examples:
        scored, where = training, "the training data"
    else:
        scored = task.take(training, answers.which)
        where = f"{len(answers.which)} {task.unit} of the training data"
    evaluation = task.evaluate(model, scored, answers.found)
    warn_blank(task.blank(model), where)
    baseline = None
    if flags["baseline"] == "maxent":
        baseline = task.unstructured(flags, training, scored, settings)
        if baseline is None:
            raise UserError(f"--baseline maxent: {task.name} is without structure itself")
    elif flags["baseline"] == "majority":
        baseline = task.baseline(training, scored, task.main_score(evaluation)[0])
    return Run(model, callbacks, scored, where, evaluation, baseline)


def fit_quietly(model: Estimator, callbacks: Sequence[object], flags: Flags, *data: Any) -> None:
    """Fit with callbacks, checkpoints and history as flags say; a run that fails leaves no history file behind."""
    model.set_params(callbacks=list(callbacks))
    with removed_on_failure(flags["history_file"]):
        model.fit(*data, checkpoint=checkpoint_of(flags))
    model.set_params(callbacks=None)


def checkpoint_of(flags: Flags) -> Checkpoint | None:
    """Return what `fit` takes for --checkpoint and --checkpoint-every; the folder is made if it is missing."""
    folder = flags["checkpoint"]
    if folder is None:
        return None
    from partwise.solvers import Checkpoint

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: is no folder for checkpoints ({(error.strerror or str(error)).lower()})") from None
    return Checkpoint(os.path.join(folder, CHECKPOINT), flags["checkpoint_every"])


def _callbacks(task: Task, flags: Flags, training: Data, held: Data | None) -> list[object]:
    from partwise.callbacks import EarlyStopping
    from partwise.cli.callbacks import FOR_REPORT, DevScore

    found: list[object] = []
    silent = flags["quiet"] or flags["as_json"]
    if held is not None and flags["early_stopping"]:
        data = task.align(held, training)
        found.append(EarlyStopping(data.X, data.y, flags["early_stopping"], task.metric(data)))
    elif held is not None and (flags["report"] or (not silent and is_terminal())):
        found.append(DevScore(task, held, FOR_REPORT if flags["report"] else 0.0))
    return found + writers(flags)


def writers(flags: Flags) -> list[object]:
    """Return the callbacks that write the history and the progress line, as flags say."""
    from partwise.callbacks import HistoryWriter, ProgressLine

    history = [HistoryWriter(flags["history_file"])] if flags["history_file"] else []
    return [*history, *([] if flags["quiet"] or flags["as_json"] else [ProgressLine()])]


def _some(task: Task, training: Data) -> list[int]:
    """Return some of the training examples: their score says little, and should not take long."""
    n = training.n_examples
    if n <= SCORED or type(task).take is Task.take:
        return list(range(n))
    return [k * n // SCORED for k in range(SCORED)]


# 4. write and report


def save_models(
    task: Task,
    output: str,
    model: Estimator,
    remembered: Fields,
    beside: Sequence[str],
    others: Sequence[Estimator],
    dtype: str = "float64",
) -> None:
    """Save the model with what it remembers of its data, and the models beside it."""
    model.input_settings_ = {"task": task.name, **remembered}
    for path, each in zip((output, *beside), (model, *others), strict=True):
        each.save(path, dtype=dtype)


@contextmanager
def saved(output: str) -> Iterator[None]:
    """Say in errors that the model is saved."""
    try:
        yield
    except (OSError, UserError) as error:
        raise UserError(f"{message_of(error)} (the model is in {output})") from None


def _report(task: Task, flags: Flags, run: Run, examples: Examples) -> None:
    from partwise.cli import report

    curve = report.dev_curve(*task.main_score(run.evaluation), run.callbacks, run.model.result_.passes)
    held_out = examples.held is not None
    found = report.Scored(
        task, run.model, run.scored, run.evaluation, flags["data"], run.where, run.baseline, held_out, curve
    )
    report.write(flags["report"], found)


def _cross_validate(task: Task, flags: Flags, settings: Parameters, data: Data) -> Fields:
    """Train on all folds but one and score on that one, for each fold; return the scores."""
    folds = flags["folds"]
    order = np.random.default_rng(flags["seed"]).permutation(data.n_examples)
    scores, name, converged = [], "", True
    for number, part in enumerate(np.array_split(order, folds), 1):
        model = task.make(flags, data, settings)
        train = task.take(data, np.setdiff1d(order, part).tolist())
        try:
            model.fit(train.X, train.y)
        except ValueError as error:  # such as a label that is in no other fold
            raise UserError(f"--folds: without fold {number} of {folds}: {message_of(error)}") from None
        converged &= model.result_.status == "converged"
        name, score = task.main_score(task.evaluate(model, task.take(data, np.sort(part).tolist())))
        scores.append(float(score))
    return {
        "folds": folds,
        "score_name": name,
        "scores": scores,
        "mean": float(np.mean(scores)),
        "deviation": float(np.std(scores, ddof=1)),
        "converged": converged,
    }


def model_fields(task: Task, model: Estimator) -> Fields:
    """Return the fields of a trained model: its size, features, loss and certificate."""
    return {
        "n_features": task.size(model),
        "n_nonzero": task.n_nonzero(model),
        **task.features(model),
        **loss_fields(model.loss),
        "C": model.C,
        **result_fields(model.result_),
    }


def _show(
    task: Task, flags: Flags, examples: Examples, run: Run, beside: Sequence[str], folds: Fields | None, begin: float
) -> None:
    """Print the run as JSON or as a summary."""
    baseline = run.baseline
    fields: Fields = {
        "task": task.name,
        "model": flags["output"],
        "report": flags["report"],
        **({"beside": beside} if beside else {}),
        "n_examples": examples.training.n_examples,
        "n_tokens": examples.training.n_tokens,
        "n_labels": len(task.labels(run.model)),
        **({"from": examples.start.fields(task, run.model)} if examples.start is not None else {}),
        **model_fields(task, run.model),
        "total_seconds": time.perf_counter() - begin,
        "peak_memory": peak_memory(),
        "scored_on": run.where,
        **run.evaluation.scores,
        **run.evaluation.details,
        "baseline": {"name": baseline[0], "score": baseline[1]} if baseline else None,
        **_early_stopping(run.callbacks),
        **({"cross_validation": folds} if folds else {}),
    }
    if flags["as_json"]:
        print_json(fields)
    elif not flags["quiet"]:
        click.echo(_summary(task, fields, examples, run), err=flags["output"] == "-")


def _early_stopping(callbacks: Sequence[object]) -> Fields:
    """Return what JSON output says of --early-stopping: the scores, and which one was the best."""
    each: Any
    for each in callbacks:
        if getattr(each, "scores_", None):  # a run may end before its first step
            scores = [{"passes": passes, "score": score} for passes, score in each.scores_]
            best = {"best_passes": each.best_passes_, "best_score": each.best_score_}
            return {"early_stopping": {**best, "scores": scores}}
    return {}


def _summary(task: Task, fields: Fields, examples: Examples, run: Run) -> str:
    sizes = [f"{fields['n_examples']} {task.unit}"]
    if fields["n_tokens"] != fields["n_examples"]:
        sizes.append(f"{fields['n_tokens']} tokens")
    if fields["n_labels"]:
        sizes.append(f"{fields['n_labels']} labels")
    lines = [("trained", trained_text(task.name, sizes, fields))]
    if "from" in fields:
        from partwise.cli.warm_start import start_text

        lines.append(("from", start_text(fields["from"])))
    lines += certificate_lines(fields)
    if "early_stopping" in fields:
        early = fields["early_stopping"]
        best = f"{early['best_score']:.2%} at pass {early['best_passes']:.4g}"
        last = f"the best of {len(early['scores'])} scores up to pass {early['scores'][-1]['passes']:.4g}"
        lines.append(("dev", f"{best}, {last}"))
    lines += task.notes(run.model, examples.training, run.evaluation)
    name, value = task.main_score(run.evaluation)
    compared = f"; {run.baseline[0]}: {run.baseline[1]:.2%}" if run.baseline else ""
    lines.append(("score", f"{name} {value:.2%} on {run.where}{compared}"))
    if "cross_validation" in fields:
        found = fields["cross_validation"]
        low, high = min(found["scores"]), max(found["scores"])
        text = f"{found['score_name']} {found['mean']:.2%} on data not trained on, the mean of {found['folds']} folds"
        lines.append(("folds", f"{text} ({low:.2%} to {high:.2%}, standard deviation {found['deviation']:.2%})"))
    if "beside" in fields:
        lines.append(("beside", " ".join(fields["beside"]) + ": to be given before the model"))
    report = f", report {fields['report']}" if fields["report"] else ""
    lines.append(("model", model_text(fields["model"]) + report))
    return aligned(lines)


command = TaskGroup(
    "train",
    parameters=train_flags,
    run=train,
    help="""Train a model and certify it: partwise train TASK DATA -o MODEL.

    DATA is a file, or a folder that `partwise partition` wrote.
    """,
)
