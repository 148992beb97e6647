"""Models that commands read."""

from __future__ import annotations

from typing import Any

import click

from partwise.cli.errors import UserError
from partwise.cli.tasks import Task, task_of

length_flag = click.option(
    "--max-length",
    type=click.IntRange(1, 1 << 15),
    metavar="N",
    help="Parsers: longer sentences are refused [default: as in training].",
)


def load_model(path: str, threads: int, max_length: int | None) -> tuple[Any, Task]:
    """A model, ready to predict, and its task."""
    from partwise import load

    fitted = load(path)
    task = task_of(fitted)
    fitted.n_jobs = threads
    if max_length is not None:
        if "max_length" not in fitted.get_params():
            raise UserError(f"--max-length: sentences of any length are taken by a model of task {task.name!r}")
        fitted.max_length = max_length
    return fitted, task
