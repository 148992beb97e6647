"""``partwise train --from MODEL``: training that starts from a model.

Features, structure, loss and penalty are taken from the model; solver, tolerance, limits and threads from the flags.
Flags may also change the loss and the penalty, but not the features: the model's weights of these are the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import RENAMED, Flags, Parameters, flag_name, loss_settings, was_given
from partwise.cli.models import load_one
from partwise.cli.summary import Fields
from partwise.cli.tasks import Data, Estimator, Task, task_of

if TYPE_CHECKING:
    from partwise.models import Model

#: Flags that say how a file is read: the model remembers them, but the new file may be another.
READING = ("format", "columns", "separator", "lenient", "zero_based", "max_columns", "max_labels")
#: Parameters that say how to train.
TRAINED = ("solver", "solver_options", "tol", "max_seconds", "max_passes", *RENAMED)
LOSS = ("loss", "temperature", "cost_scale", "cost")
PENALTY = ("penalty", "l1_ratio", "C", "l1", "l2")


@dataclass(frozen=True)
class Start:
    """A model to start from, with its weights as they were."""

    path: str
    estimator: Estimator
    former: Model[Any]
    labels: list[object]

    def reading(self, task: Task, flags: Flags) -> Flags:
        """Return the flags, with what the model remembers of its own training data."""
        kept = {name: value for name, value in task.recall(self.estimator).items() if not was_given(name)}
        return {**flags, **kept}

    def fields(self, task: Task, fitted: Estimator) -> Fields:
        """Return how much of the fitted model is new, and how much of the old one is unused."""
        from partwise.estimators.warm_start import model_of, n_shared

        now = model_of(fitted)
        known, n_features = n_shared(self.former, now), n_shared(now, now)
        labels = task.labels(fitted)
        return {
            "model": self.path,
            "n_new_labels": len(set(labels) - set(self.labels)),
            "n_new_features": n_features - known,
            "n_unused_features": n_shared(self.former, self.former) - known,
            "n_features": n_features,
            "n_labels": len(labels),
        }

    def widened(self, task: Task, data: Data) -> Data:
        """Return training data with at least the model's columns, where examples are rows."""
        n = getattr(self.estimator, "n_features_in_", None)
        if n is None or not hasattr(data.X, "shape") or data.X.shape[1] >= n:
            return data
        return task.align(data, replace(data, X=np.empty((0, n))))


def start_text(fields: Fields) -> str:
    """Return the fields of `Start.fields` in words."""
    labels, n_unused = fields["n_labels"], fields["n_unused_features"]
    new_labels = f"{fields['n_new_labels']} of {labels} labels and " if labels else ""
    unused = f"; {n_unused} of its features are not in the data" if n_unused else ""
    new = f"{new_labels}{fields['n_new_features']} of {fields['n_features']} features are new"
    return f"{fields['model']}: {new}{unused}"


def load_start(task: Task, path: str, settings: Parameters, flags: Flags) -> Start:
    """Load the model, and set its parameters to those of the run to come.

    Raise UserError for a model of another task or whose weights cannot start a run, and for flags that change features.
    """
    from partwise.estimators.warm_start import model_of
    from partwise.models import Ability
    from partwise.problem.losses import get_loss

    for given, value in (("--folds", flags["folds"]), ("--baseline maxent", flags["baseline"] == "maxent")):
        if value:
            raise UserError(f"{given} cannot be combined with --from")
    found = load_one(path, f"--from {path}")
    own = task_of(found)
    if own.name != task.name:
        raise UserError(f"--from {path}: is a model of task {own.name!r}, not of {task.name!r}")
    former = model_of(found)
    if Ability.WARM_START not in former.abilities():
        raise UserError(f"--from {path}: a model of this kind cannot start a run")
    _refuse_features(task, path, found, former.late)
    changed = {name: settings[name] for name in TRAINED}
    if any(map(was_given, LOSS)):
        changed |= loss_settings(task, flags if was_given("loss") else {**flags, "loss": get_loss(found.loss).name})
    if any(map(was_given, PENALTY)):
        changed |= {name: settings[name] for name in ("penalty", "l1_ratio", "C") if name in settings}
    start = Start(path, found.set_params(**changed, warm_start=True), former, task.labels(found))
    found.check_parameters()
    if not (get_loss(found.loss).smooth or getattr(found._make_solver(), "incremental", False)):
        raise UserError(
            f"--from {path}: the loss {get_loss(found.loss).name!r} starts from a dual point, which model files do not "
            "have; losses that fit: log, softmax-margin, smoothed-hinge (or --solver sgd, perceptron, mira)"
        )
    return start


def _refuse_features(task: Task, path: str, found: Estimator, late: tuple[str, ...]) -> None:
    for option in task.flags():
        if option.name not in READING and was_given(str(option.name)):
            raise UserError(f"{option.opts[0]}: with --from it is as in {path}; leave it out")
    for name in task.parameters:
        value = click.get_current_context().params[name]
        if was_given(name) and name not in (*late, "memory_limit") and value != getattr(found, name):
            had = f"{path} has {getattr(found, name)}"
            raise UserError(f"{flag_name(name)} {value}: {had}; leave it out, or train without --from")
