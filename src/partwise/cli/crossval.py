"""``partwise train --folds K``: scores of models on the data that they have not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.tasks import Data, Task


def cross_validate(
    task: Task, flags: dict[str, Any], data: Data, settings: dict[str, Any], folds: int
) -> dict[str, Any]:
    """Train on all folds but one, score on that one, for each.

    Returns
    -------
    dict with `folds`, `score_name`, `scores` (one a fold), their `mean` and `deviation`, and whether all runs
    `converged`
    """
    if not 2 <= folds <= data.n_examples:
        raise UserError(f"--folds: {data.n_examples} {task.unit} make no {folds} folds")
    order = np.random.default_rng(flags["seed"]).permutation(data.n_examples)
    scores, name, converged = [], "", True
    for part in np.array_split(order, folds):
        rest = np.setdiff1d(order, part)
        model = task.make(flags, data, settings)
        train = task.take(data, rest.tolist())
        model.fit(train.X, train.y)
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


def as_text(found: dict[str, Any]) -> str:
    """A line of the summary."""
    low, high = min(found["scores"]), max(found["scores"])
    return (
        f"{found['score_name']} {found['mean']:.2%} on data not trained on, the mean of {found['folds']} folds "
        f"({low:.2%} to {high:.2%}, standard deviation {found['deviation']:.2%})"
    )
