"""The report of ``train --report``, ``evaluate --report`` and ``path --report``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from partwise.cli.summary import Fields
from partwise.cli.tasks import Data, Estimator, Evaluation, Task

#: Sentences that are drawn, and features of each label that are listed.
EXAMPLES, TOP = 6, 10
#: Labels in the table of scores.
LABELS = 50
#: The fewest scores on development data that make a curve.
CURVE = 3
#: Parameters that do not describe the model.
LEFT_OUT = ("callbacks", "verbose", "warm_start")
#: Titles of pages by task.
TITLES = {
    "tag": "Sequence tagger",
    "segment": "Segment tagger",
    "maxent": "Classifier",
    "dep": "Dependency parser",
    "cfg": "Constituency parser",
}


@dataclass(frozen=True)
class Scored:
    """A model with its scores on some data.

    data : the file that the model was trained on, or that was scored if it is the only one
    where : the data that were scored, if not `data`
    baseline : the name and score of what the main score is compared with
    held_out : whether the model was not trained on the scored data, so that they can test its probabilities
    plots, tables : further scores
    """

    task: Task
    model: Estimator
    scored: Data
    evaluation: Evaluation
    data: str
    where: str | None = None
    baseline: tuple[str, float] | None = None
    held_out: bool = True
    plots: Sequence[Any] = ()
    tables: Fields = field(default_factory=dict)


def write(path: str, found: Scored) -> None:
    """Write a page about a model: its scores, certificate, weights, examples and settings."""
    from partwise.report import write_report

    task, model, evaluation = found.task, found.model, found.evaluation
    name = task.main_score(evaluation)[0]
    # The main score is the first one, and what it is compared with is next to it.
    scores: Fields = {name: percent(evaluation.scores[name])} if name in evaluation.scores else {}
    if found.baseline is not None:
        scores[f"baseline: {found.baseline[0]}"] = percent(found.baseline[1])
    scores |= {key: percent(value) for key, value in evaluation.scores.items()}
    scores |= {**task.cards(evaluation), **found.tables, **_label_table(evaluation.by_label)}
    settings = {key: value for key, value in model.get_params(deep=False).items() if key not in LEFT_OUT}
    settings = {key: value for key, value in (settings | task.features(model)).items() if value is not None}
    first, where = file_name(found.data), found.where
    write_report(
        path,
        result=task.results(model),
        title=TITLES.get(task.name, task.name),
        subtitle=f"Trained on {first}, scored on {file_name(where)}" if where else f"Scored on {first}",
        scores=scores,
        plots=found.plots,
        calibration=_calibration(task, model, found.scored) if found.held_out else None,
        confusion=_ordered(evaluation.confusion),
        top_features=task.strongest(model, TOP, found.scored),
        examples=task.examples(model, found.scored, EXAMPLES),
        settings=settings,
        notes=task.report_notes,
    )


def _label_table(rows: Sequence[Fields]) -> Fields:
    """Return a table of the scores of labels, of the most frequent ones if there are many; numbers are in order."""
    if not rows:
        return {}
    called = "by label" if len(rows) <= LABELS else f"the {LABELS} most frequent labels"
    if len(rows) > LABELS:
        rows = sorted(rows, key=lambda row: -row["gold"])[:LABELS]  # `evaluate --json` has all of them
    numbers = _numbers([row["label"] for row in rows])
    if numbers:
        rows = [rows[k] for k in sorted(range(len(rows)), key=numbers.__getitem__)]
    return {called: {row["label"]: {key: percent(row[key]) for key in row if key != "label"} for row in rows}}


def dev_curve(name: str, score: float, callbacks: Sequence[object], passes: float) -> list[str]:
    """Return the plot of scores on development data by passes, if there are enough of them.

    They are those of --early-stopping, or those of `DevScore` and the last one.
    """
    from partwise.report import draw_curve
    from partwise.report.parts import titled

    scores: list[tuple[float, float]] = []
    for each in callbacks:
        if getattr(each, "scores_", None):
            scores = list(each.scores_)  # type: ignore[attr-defined]
        elif seen := getattr(each, "seen", None):
            scores = [*(point for point in seen if point[0] < passes), (passes, score)]
    if len(scores) < CURVE:
        return []
    return [draw_curve(scores, f"{titled(name)} on development data by passes", "passes")]


def percent(value: object) -> object:
    """Return a share as the terminal shows it; other values as they are."""
    return f"{value:.2%}" if isinstance(value, float) and math.isfinite(value) else value


def _numbers(labels: Sequence[str]) -> list[float] | None:
    """Return labels as numbers, if all of them are."""
    try:
        return [float(label) for label in labels]
    except ValueError:
        return None


def _ordered(confusion: tuple[list[str], list[list[int]]] | None) -> tuple[list[str], list[list[int]]] | None:
    """Return a confusion matrix whose labels, if they are numbers, are in order."""
    numbers = _numbers(confusion[0]) if confusion is not None else None
    if confusion is None or numbers is None:
        return confusion
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    return [confusion[0][k] for k in order], [[confusion[1][i][j] for j in order] for i in order]


def file_name(path: str) -> str:
    """Return a file's name without its folders; other texts as they are."""
    return "standard input" if path == "-" else PurePath(path).name or path


def _calibration(task: Task, model: Estimator, scored: Data) -> Any:
    from partwise.models import NotAvailable

    try:
        return task.calibration(model, scored)
    except NotAvailable:
        return None
