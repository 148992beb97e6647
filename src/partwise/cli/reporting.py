"""The report of ``train --report``, ``evaluate --report`` and ``path --report``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from partwise.cli.tasks import Data, Evaluation, Task

#: Sentences that are drawn, and features of each label that are listed.
EXAMPLES, TOP = 6, 10
#: Labels in the table of scores.
LABELS = 50
#: Scores on development data that make a curve.
ENOUGH = 3
#: Parameters that say nothing of the model.
UNSAID = ("callbacks", "verbose", "warm_start")
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
    model: Any,
    scored: Data,
    evaluation: Evaluation,
    data: str,
    where: str | None = None,
    *,
    baseline: tuple[str, float] | None = None,
    held_out: bool = True,
    plots: Sequence[Any] = (),
    tables: dict[str, Any] | None = None,
) -> None:
    """Everything there is to say about a model, on one page.

    Parameters
    ----------
    data : the file that the model was trained on, or that was scored if nothing else was
    where : what was scored, if not the data
    baseline : what the main score is compared with
    held_out : whether the scores are of data that the model was not trained on, so that its probabilities are put to
        the test
    plots, tables : more of the scores
    """
    from partwise.report import write_report

    name = task.main_score(evaluation)[0]
    # The main score is the first one, and what it is compared with is next to it.
    scores: dict[str, Any] = {name: percent(evaluation.scores[name])} if name in evaluation.scores else {}
    if baseline is not None:
        scores[f"baseline: {baseline[0]}"] = percent(baseline[1])
    scores |= {key: percent(value) for key, value in evaluation.scores.items()}
    scores |= task.cards(evaluation)
    scores |= tables or {}
    if evaluation.by_label:
        rows = evaluation.by_label
        called = "by label" if len(rows) <= LABELS else f"the {LABELS} most frequent labels"
        if len(rows) > LABELS:
            rows = sorted(rows, key=lambda row: -row["gold"])[:LABELS]  # all are in what `evaluate --json` says
        numbers = _numbers([row["label"] for row in rows])
        if numbers:
            rows = [row for _, row in sorted(zip(numbers, rows, strict=True), key=lambda pair: pair[0])]
        scores[called] = {row["label"]: {key: percent(row[key]) for key in row if key != "label"} for row in rows}
    settings = model.get_params(deep=False)
    settings = {key: value for key, value in settings.items() if key not in UNSAID} | task.features(model)
    settings = {key: value for key, value in settings.items() if value is not None}
    first = file_name(data)
    write_report(
        path,
        result=task.results(model),
        title=TITLES[task.name],
        subtitle=f"Trained on {first}, scored on {file_name(where)}" if where else f"Scored on {first}",
        scores=scores,
        plots=plots,
        calibration=_calibration(task, model, scored) if held_out else None,
        confusion=_ordered(evaluation.confusion),
        top_features=task.strongest(model, TOP, scored),
        examples=task.examples(model, scored, EXAMPLES),
        settings=settings,
        notes=task.report_notes,
    )


def dev_curve(name: str, score: float, callbacks: Sequence[Any], passes: float) -> list[Any]:
    """The plot of scores on development data by passes, if there are enough of them.

    They are those of --early-stopping, or those seen on the way (`DevScore`) and the last one.
    """
    from partwise.report import draw_curve
    from partwise.report.parts import titled

    scores: list[tuple[float, float]] = []
    for each in callbacks:
        if getattr(each, "scores_", None):
            scores = list(each.scores_)
        elif getattr(each, "seen", None):
            scores = [*(point for point in each.seen if point[0] < passes), (passes, score)]
    if len(scores) < ENOUGH:
        return []
    return [draw_curve(scores, f"{titled(name)} on development data by passes", "passes")]


def percent(value: Any) -> Any:
    """A share as the terminal shows it; other values as they are."""
    return f"{value:.2%}" if isinstance(value, float) and math.isfinite(value) else value


def _numbers(labels: Sequence[str]) -> list[float] | None:
    """Labels as numbers, if all of them are."""
    try:
        return [float(label) for label in labels]
    except ValueError:
        return None


def _ordered(confusion: tuple[list[str], list[list[int]]] | None) -> tuple[list[str], list[list[int]]] | None:
    """Labels that are numbers, by their size."""
    numbers = _numbers(confusion[0]) if confusion is not None else None
    if confusion is None or numbers is None:
        return confusion
    order = sorted(range(len(numbers)), key=lambda k: numbers[k])
    return [confusion[0][k] for k in order], [[confusion[1][i][j] for j in order] for i in order]


def file_name(path: str) -> str:
    """A file's name without its folders; other texts as they are."""
    return "standard input" if path == "-" else PurePath(path).name or path


def _calibration(task: Task, model: Any, scored: Data) -> Any:
    from partwise.models import NotAvailable

    try:
        return task.calibration(model, scored)
    except NotAvailable:
        return None
