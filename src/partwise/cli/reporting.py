"""The report of ``train --report`` and ``evaluate --report``."""

from __future__ import annotations

from typing import Any

from partwise.cli.tasks import Data, Evaluation, Task

#: Sentences that are drawn, and features of each label that are listed.
EXAMPLES, TOP = 6, 10
#: Labels in the table of scores.
LABELS = 50


def write(
    path: str,
    task: Task,
    model: Any,
    scored: Data,
    evaluation: Evaluation,
    baseline: tuple[str, float] | None,
    data: str,
    where: str | None = None,
) -> None:
    """Everything there is to say about a model, on one page; `where`: what was scored, if not the data."""
    from partwise.report import write_report

    scores: dict[str, Any] = dict(evaluation.scores)
    if baseline is not None:
        scores[f"{task.main_score(evaluation)[0]}, {baseline[0]}"] = baseline[1]
    if evaluation.by_label:
        rows = evaluation.by_label
        if len(rows) > LABELS:
            rows = sorted(rows, key=lambda row: -row["gold"])[:LABELS]  # all are in what `evaluate --json` says
        called = "by label" if rows is evaluation.by_label else f"the {LABELS} most frequent labels"
        scores[called] = {row["label"]: {key: row[key] for key in row if key != "label"} for row in rows}
    settings = {name: value for name, value in model.get_params(deep=False).items() if value is not None}
    settings |= task.features(model)
    write_report(
        path,
        result=model.result_,
        title=f"partwise {task.name}: {data}",
        subtitle=f"Scored on {where or f'{scored.n_examples} {task.unit}'}",
        scores=scores,
        confusion=evaluation.confusion,
        top_features=task.strongest(model, TOP, scored),
        examples=task.examples(model, scored, EXAMPLES),
        settings=settings,
    )
