"""``partwise train``: from a file to a model, with a certificate."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from partwise.callbacks import Session, TrainingCallback
from partwise.cli import summary
from partwise.cli.errors import UserError, message_of
from partwise.cli.flags import COUNT, FILE, Flags, argument, checked_settings, default_strength, flag, training_flags
from partwise.cli.output import check_outputs, print_json, removed_on_failure, resources, warn_blank
from partwise.cli.summary import Fields
from partwise.cli.tasks import Data, Estimator, Task, TaskGroup

if TYPE_CHECKING:
    from partwise.cli.warm_start import Start
    from partwise.problem.result import Result
    from partwise.solvers import Checkpoint, Progress

#: Training examples that are scored if there are no development data.
SCORED = 2000
#: The file in the folder of --checkpoint.
CHECKPOINT = "run.ckpt"
#: The share of the time spent so far that scores may take.
SHARE = 0.1
#: Seconds that scores may take for a report.
FOR_REPORT = 2.0


def train_flags(task: Task) -> list[click.Parameter]:
    """Return the arguments and flags of `train`."""
    return [
        argument("data"),
        flag("-o --output=MODEL", "Write the model to this file [default: DATA's name with .pw].", FILE),
        flag("--dev", "Score the model on the labelled data in this file.", FILE),
        flag("--from start=MODEL", "Start from this model: its features, loss and penalty, and its weights.", FILE),
        flag("--memory=BYTES", "DATA is a partition: train in about so much memory; 500M, 2G."),
        flag(
            "--scheduler=ADDRESS",
            "DATA is a partition: train on the Dask cluster of this scheduler; `local`: on a process per thread.",
        ),
        *training_flags(task),
        flag("--C C", f"Set the inverse of the penalty's strength [default: {default_strength(task):g}].", float),
        flag("--l2", "Set the strength of the penalty l2 / 2 |w|^2; l2 = 1 / C.", float),
        flag("--l1", "Add a penalty l1 |w|_1 of this strength, which makes weights zero.", float),
        flag(
            "--early-stopping=K",
            "Stop after K scores on --dev without a better one, and keep the best.",
            COUNT,
        ),
        flag(
            "--folds=K",
            "Also cross-validate: train K more models, each scored on its own K-th of DATA.",
            click.IntRange(2),
        ),
        flag(
            "--baseline",
            "Compare the score with this; maxent also trains a model without structure.",
            ("majority", "maxent", "none"),
            "majority",
        ),
        flag("--report=FILE.html", "Write a report with plots, scores, weights, examples.", FILE),
        flag("--history-file", "Write every certificate to a .csv or .json file.", FILE),
        flag(
            "--checkpoint=DIR",
            "Save the run's state in this folder from time to time; the same command resumes it.",
            FILE,
        ),
        flag("--checkpoint-every=SECONDS", "Save the state so often.", click.FloatRange(0), 60.0),
        flag("--dtype", "Store weights in this precision.", ("float64", "float32"), "float64"),
        flag("-q --quiet", "Show no progress line and no summary.", bool),
    ]


def train(task: Task, flags: Flags) -> None:
    """Train a model and certify it: partwise train TASK DATA -o MODEL.

    DATA is a file, or a folder that `partwise partition` wrote.
    """
    flags = {**flags, "output": output_of(flags)}
    if os.path.isdir(flags["data"]):
        from partwise.cli.partition import train_on_partition

        train_on_partition(task, flags)
        return
    _check_flags(flags)
    run = _Run(task, flags)
    run.read()
    run.make()
    run.fit()
    run.score()
    paths = [flags["output"], *run.beside]
    save_models(task, [run.model, *run.others], paths, run.remembered, flags["dtype"])
    with saved(flags["output"]):  # training may have taken hours: errors of later steps leave the model in place
        if flags["report"]:
            run.report()
        folds = run.cross_validate() if flags["folds"] else None
    run.show(folds)


def output_of(flags: Flags) -> str:
    """Return the model's file: DATA's name with .pw, in the current folder, if no flag names it."""
    data, output = flags["data"], flags["output"]
    if output is None and data == "-":
        raise UserError("data from standard input has no name: say with -o where the model goes")
    if flags["as_json"] and output == "-":
        raise UserError("--json cannot be combined with a model on standard output")
    return output or PurePath(PurePath(data).name.removesuffix(".gz")).stem + ".pw"


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


class DevScore(TrainingCallback):
    """Scores a model after a step unless scoring would take more than a tenth of the time spent so far.

    `seen` has (passes, score) of each; scores may take `free` seconds in any case, so that short runs have a curve.
    """

    def __init__(self, task: Task, data: Data, free: float = 0.0) -> None:
        self.task, self.data, self.free = task, data, free

    def begin(self, session: Session) -> None:
        self.session = session
        self.cost = self.spent = 0.0
        self.seen: list[tuple[float, float]] = []

    def __call__(self, progress: Progress) -> None:
        if self.cost > SHARE * progress.seconds and self.spent > self.free:
            return
        begin = time.perf_counter()
        model = self.session.preview(progress.weights().copy())
        progress.scores["dev"] = self.task.main_score(self.task.evaluate(model, self.data))[1]
        self.seen.append((progress.passes, progress.scores["dev"]))
        self.cost = time.perf_counter() - begin
        self.spent += self.cost


class TrainingAnswers(TrainingCallback):
    """Keeps the trained model's predictions for some training examples in `found`; None if the model must read them."""

    def __init__(self, which: Sequence[int]) -> None:
        self.which = which
        self.found: Any = None

    def end(self, session: Session, result: Result | None) -> Result | None:
        if result is not None and session.answers is not None:
            self.found = session.answers(result.weights, np.asarray(self.which, dtype=np.int64))
        return result


class _Run:
    """A run of `train`, whose steps are called one after another.

    remembered : what the model file keeps of how the training data were read
    held : development data; scored, where : the data that are scored, and what they are called
    beside, others : the files of further models that are saved beside the model, and these models
    """

    start: Start | None = None
    baseline: tuple[str, float] | None = None

    def __init__(self, task: Task, flags: Flags) -> None:
        self.begin = time.perf_counter()
        self.task, self.flags = task, flags
        self.beside = task.beside(flags, flags["output"])
        outputs = (flags["output"], *self.beside, flags["report"], flags["history_file"])
        check_outputs(*outputs, inputs=(flags["data"], flags["dev"]))
        self.settings = checked_settings(task, flags)

    def read(self) -> None:
        """Read training and development data; --dev is read as a model's input is."""
        task, flags, folds = self.task, self.flags, self.flags["folds"]
        reading = flags
        if flags["start"] is not None:
            from partwise.cli.warm_start import load_start

            self.start = load_start(task, flags["start"], self.settings, flags)
            reading = self.start.reading(task, flags)
        training = task.read(flags["data"], reading, labelled=True)
        if folds and folds > training.n_examples:
            raise UserError(f"--folds: {training.n_examples} {task.unit} make no {folds} folds")
        self.remembered = task.remember(flags, training) if self.start is None else task.recall(self.start.estimator)
        held = read_dev(task, {**reading, **self.remembered})
        self.training, self.held, self.others = task.prepared(flags, training, held)

    def make(self) -> None:
        """Make the estimator, or take that of --from; then the training data get the columns of its model."""
        from partwise.cli.tasks.labels import check_weighted_labels

        if self.start is not None:
            self.training, self.model = self.start.widened(self.task, self.training), self.start.estimator
        else:
            self.model = self.task.make(self.flags, self.training, self.settings)
            check_weighted_labels(self.model, self.training)

    def fit(self) -> None:
        """Fit the estimator; without development data some of the training data are to be scored."""
        task, training, held = self.task, self.training, self.held
        self.callbacks = self._callbacks()
        self.answers = TrainingAnswers(self._some() if held is None else ())
        callbacks = [*self.callbacks, *([self.answers] if held is None else [])]
        fit_quietly(self.model, callbacks, self.flags, training.X, training.y)
        which = self.answers.which
        if held is not None:
            self.scored, self.where = held, str(self.flags["dev"])
        elif len(which) == training.n_examples:
            self.scored, self.where = training, "the training data"
        else:
            self.scored, self.where = task.take(training, which), f"{len(which)} {task.unit} of the training data"

    def _callbacks(self) -> list[object]:
        from partwise.callbacks import EarlyStopping

        task, flags, held = self.task, self.flags, self.held
        found: list[object] = []
        silent = flags["quiet"] or flags["as_json"] or not sys.stderr.isatty()
        if held is not None and flags["early_stopping"]:
            data = task.align(held, self.training)
            found.append(EarlyStopping(data.X, data.y, flags["early_stopping"], task.metric(data)))
        elif held is not None and (flags["report"] or not silent):
            found.append(DevScore(task, held, FOR_REPORT if flags["report"] else 0.0))
        return found + writers(flags)

    def _some(self) -> list[int]:
        """Return some of the training examples: their score says little, and should not take long."""
        n = self.training.n_examples
        most = n if type(self.task).take is Task.take else min(n, SCORED)
        return [k * n // most for k in range(most)]

    def score(self) -> None:
        """Score the model and what it is compared with."""
        task, flags = self.task, self.flags
        self.evaluation = task.evaluate(self.model, self.scored, self.answers.found)
        warn_blank(task.blank(self.model), self.where)
        if flags["baseline"] == "maxent":
            self.baseline = task.unstructured(flags, self.training, self.scored, self.settings)
            if self.baseline is None:
                raise UserError(f"--baseline maxent: {task.name} is without structure itself")
        elif flags["baseline"] == "majority":
            self.baseline = task.baseline(self.training, self.scored, task.main_score(self.evaluation)[0])

    def report(self) -> None:
        from partwise.cli import report

        found = (self.task, self.model, self.scored, self.evaluation, self.flags["data"], self.where)
        curve = report.dev_curve(*self.task.main_score(self.evaluation), self.callbacks, self.model.result_.passes)
        held_out = self.held is not None
        report.write(self.flags["report"], *found, held_out=held_out, baseline=self.baseline, plots=curve)

    def cross_validate(self) -> Fields:
        """Train on all folds but one and score on that one, for each fold; return the scores."""
        task, flags, data, folds = self.task, self.flags, self.training, self.flags["folds"]
        order = np.random.default_rng(flags["seed"]).permutation(data.n_examples)
        scores, name, converged = [], "", True
        for number, part in enumerate(np.array_split(order, folds), 1):
            model = task.make(flags, data, self.settings)
            train = task.take(data, np.setdiff1d(order, part).tolist())
            try:
                model.fit(train.X, train.y)
            except ValueError as error:  # such as a label that is in no other fold
                raise UserError(f"--folds: without fold {number} of {folds}: {message_of(error)}") from None
            converged &= model.result_.status == "converged"
            name, score = task.main_score(task.evaluate(model, task.take(data, np.sort(part).tolist())))
            scores.append(float(score))
        spread = {"mean": float(np.mean(scores)), "deviation": float(np.std(scores, ddof=1)), "converged": converged}
        return {"folds": folds, "score_name": name, "scores": scores, **spread}

    def show(self, folds: Fields | None) -> None:
        task, flags, baseline = self.task, self.flags, self.baseline
        fields: Fields = {
            "task": task.name,
            "model": flags["output"],
            "report": flags["report"],
            **({"beside": self.beside} if self.beside else {}),
            "n_examples": self.training.n_examples,
            "n_tokens": self.training.n_tokens,
            "n_labels": len(task.labels(self.model)),
            **({"from": self.start.fields(task, self.model)} if self.start is not None else {}),
            **model_fields(task, self.model),
            **resources(self.begin),
            "scored_on": self.where,
            **self.evaluation.scores,
            **self.evaluation.details,
            "baseline": {"name": baseline[0], "score": baseline[1]} if baseline else None,
            **_early_stopping(self.callbacks),
            **({"cross_validation": folds} if folds else {}),
        }
        if flags["as_json"]:
            print_json(fields)
        elif not flags["quiet"]:
            click.echo(self._summary(fields), err=flags["output"] == "-")

    def _summary(self, fields: Fields) -> str:
        task = self.task
        sizes = [f"{fields['n_examples']} {task.unit}"]
        if fields["n_tokens"] != fields["n_examples"]:
            sizes.append(f"{fields['n_tokens']} tokens")
        if fields["n_labels"]:
            sizes.append(f"{fields['n_labels']} labels")
        lines = [("trained", summary.trained_text(task.name, sizes, fields))]
        if "from" in fields:
            from partwise.cli.warm_start import start_text

            lines.append(("from", start_text(fields["from"])))
        lines += summary.certificate_lines(fields)
        if "early_stopping" in fields:
            early = fields["early_stopping"]
            best = f"{early['best_score']:.2%} at pass {early['best_passes']:.4g}"
            last = f"the best of {len(early['scores'])} scores up to pass {early['scores'][-1]['passes']:.4g}"
            lines.append(("dev", f"{best}, {last}"))
        lines += task.notes(self.model, self.training, self.evaluation)
        name, value = task.main_score(self.evaluation)
        compared = f"; {self.baseline[0]}: {self.baseline[1]:.2%}" if self.baseline else ""
        lines.append(("score", f"{name} {value:.2%} on {self.where}{compared}"))
        if "cross_validation" in fields:
            found = fields["cross_validation"]
            low, high = min(found["scores"]), max(found["scores"])
            text = f"{found['score_name']} {found['mean']:.2%} on data not trained on, the mean of"
            spread = f"({low:.2%} to {high:.2%}, standard deviation {found['deviation']:.2%})"
            lines.append(("folds", f"{text} {found['folds']} folds {spread}"))
        if "beside" in fields:
            lines.append(("beside", " ".join(fields["beside"]) + ": to be given before the model"))
        report = f", report {fields['report']}" if fields["report"] else ""
        return summary.aligned([*lines, ("model", summary.model_text(fields["model"]) + report)])


def read_dev(task: Task, settings: Flags) -> Data | None:
    """Read the data of --dev, if there are any."""
    return None if settings["dev"] is None else task.read(settings["dev"], settings, labelled=True)


def fit_quietly(model: Estimator, callbacks: Sequence[object], flags: Flags, *data: Any) -> None:
    """Fit with callbacks, checkpoints and history as flags say; a run that fails leaves no history file behind."""
    model.set_params(callbacks=list(callbacks))
    with removed_on_failure(flags["history_file"]):
        model.fit(*data, checkpoint=_checkpoint_of(flags))
    model.set_params(callbacks=None)


def _checkpoint_of(flags: Flags) -> Checkpoint | None:
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


def writers(flags: Flags) -> list[object]:
    """Return the callbacks that write the history and the progress line, as flags say."""
    from partwise.callbacks import HistoryWriter, ProgressLine

    history = [HistoryWriter(flags["history_file"])] if flags["history_file"] else []
    return [*history, *([] if flags["quiet"] or flags["as_json"] else [ProgressLine()])]


def save_models(
    task: Task, models: Sequence[Estimator], paths: Sequence[str], remembered: Fields, dtype: str = "float64"
) -> None:
    """Save models; the first, which is the task's, with what it remembers of its data."""
    models[0].input_settings_ = {"task": task.name, **remembered}
    for model, path in zip(models, paths, strict=True):
        model.save(path, dtype=dtype)


@contextmanager
def saved(output: str) -> Iterator[None]:
    """Say in errors that the model is saved."""
    try:
        yield
    except (OSError, UserError) as error:
        raise UserError(f"{message_of(error)} (the model is in {output})") from None


def model_fields(task: Task, model: Estimator) -> Fields:
    """Return the fields of a trained model: its size, features, loss and certificate."""
    return {
        "n_features": task.size(model),
        "n_nonzero": task.n_nonzero(model),
        **task.features(model),
        **summary.loss_fields(model.loss),
        "C": model.C,
        **summary.result_fields(model.result_),
    }


def _early_stopping(callbacks: Sequence[object]) -> Fields:
    """Return what JSON output says of --early-stopping: the scores, and which one was the best."""
    # A run may end before its first step, and has no scores then.
    found: Any = next((each for each in callbacks if getattr(each, "scores_", None)), None)
    if found is None:
        return {}
    scores = [{"passes": passes, "score": score} for passes, score in found.scores_]
    best = {"best_passes": found.best_passes_, "best_score": found.best_score_}
    return {"early_stopping": {**best, "scores": scores}}


command = TaskGroup("train", train_flags, train)
