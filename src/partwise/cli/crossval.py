"""``partwise train --folds K``: scores of models on the data that they have not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.cli.errors import UserError, message_of
from partwise.cli.tasks import Data, Task


def check_folds(task: Task, data: Data, folds: int) -> None:
    """UserError for more folds than there are examples."""
    if not 2 <= folds <= data.n_examples:
        raise UserError(f"--folds: {data.n_examples} {task.unit} make no {folds} folds")


def cross_validate(
    task: Task, flags: dict[str, Any], data: Data, settings: dict[str, Any], folds: int
) -> dict[str, Any]:
    """Train on all folds but one, score on that one, for each.

    Returns
    -------
    dict with `folds`, `score_name`, `scores` (one per fold), their `mean` and `deviation`, and whether all runs
    `converged`
    """
    order = np.random.default_rng(flags["seed"]).permutation(data.n_examples)
    scores, name, converged = [], "", True
    for number, part in enumerate(np.array_split(order, folds), 1):
        rest = np.setdiff1d(order, part)
        model = task.make(flags, data, settings)
        train = task.take(data, rest.tolist())
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


def as_text(found: dict[str, Any]) -> str:
    """A line of the summary."""
    low, high = min(found["scores"]), max(found["scores"])
    return (
        f"{found['score_name']} {found['mean']:.2%} on data not trained on, the mean of {found['folds']} folds "
        f"({low:.2%} to {high:.2%}, standard deviation {found['deviation']:.2%})"
    )
