"""The report of ``train --report``, ``evaluate --report`` and ``path --report``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
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


def write(
    path: str,
    task: Task,
    model: Estimator,
    scored: Data,
    evaluation: Evaluation,
    data: str,
    where: str | None = None,
    *,
    held_out: bool = True,
    baseline: tuple[str, float] | None = None,
    plots: Sequence[Any] = (),
    tables: Fields | None = None,
) -> None:
    """Write a page about a model: its scores, certificate, weights, examples and settings.

    data, where : the training file and the scored data; without `where` the file that was scored
    held_out : whether the model was not trained on the scored data, so that they can test its probabilities
    baseline : the name and score of what the main score is compared with
    plots, tables : further scores
    """
    from partwise.models import NotAvailable
    from partwise.report import write_report

    name = task.main_score(evaluation)[0]
    # The main score is the first one, and what it is compared with is next to it.
    scores: Fields = {name: percent(evaluation.scores[name])} if name in evaluation.scores else {}
    if baseline is not None:
        scores[f"baseline: {baseline[0]}"] = percent(baseline[1])
    scores |= {key: percent(value) for key, value in evaluation.scores.items()}
    scores |= {**task.cards(evaluation), **(tables or {}), **_label_table(evaluation.by_label)}
    settings = {key: value for key, value in model.get_params(deep=False).items() if key not in LEFT_OUT}
    calibration = None
    with suppress(NotAvailable):
        calibration = task.calibration(model, scored) if held_out else None
    first = file_name(data)
    write_report(
        path,
        result=task.results(model),
        title=TITLES.get(task.name, task.name),
        subtitle=f"Trained on {first}, scored on {file_name(where)}" if where else f"Scored on {first}",
        scores=scores,
        plots=plots,
        calibration=calibration,
        confusion=_ordered(evaluation.confusion),
        top_features=task.strongest(model, TOP, scored),
        examples=task.examples(model, scored, EXAMPLES),
        settings={key: value for key, value in (settings | task.features(model)).items() if value is not None},
        notes=task.report_notes,
    )


def _label_table(rows: Sequence[Fields]) -> Fields:
    """Return a table of the scores of labels, of the most frequent ones if there are many; numbers are in order."""
    if not rows:
        return {}
    called = "by label" if len(rows) <= LABELS else f"the {LABELS} most frequent labels"
    if len(rows) > LABELS:
        rows = sorted(rows, key=lambda row: -row["gold"])[:LABELS]  # `evaluate --json` has all of them
    rows = [rows[k] for k in _order([row["label"] for row in rows])]
    return {called: {row["label"]: {key: percent(row[key]) for key in row if key != "label"} for row in rows}}


def dev_curve(name: str, score: float, callbacks: Sequence[object], passes: float) -> list[str]:
    """Return the plot of scores on development data (of --early-stopping or `DevScore`) if there are enough of them."""
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


def _order(labels: Sequence[str]) -> list[int]:
    """Return the indices of labels, of numbers in their order."""
    try:
        return sorted(range(len(labels)), key=list(map(float, labels)).__getitem__)
    except ValueError:
        return list(range(len(labels)))


def _ordered(confusion: tuple[list[str], list[list[int]]] | None) -> tuple[list[str], list[list[int]]] | None:
    """Return a confusion matrix whose labels, if they are numbers, are in order."""
    if confusion is None:
        return None
    labels, matrix = confusion
    order = _order(labels)
    return [labels[k] for k in order], [[matrix[i][j] for j in order] for i in order]


def file_name(path: str) -> str:
    """Return a file's name without its folders; other texts as they are."""
    return "standard input" if path == "-" else PurePath(path).name or path
