"""Models that commands read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from partwise.cli.errors import UserError
from partwise.cli.tasks import Task, task_of

length_flag = click.option(
    "--max-length",
    type=click.IntRange(1, 1 << 15),
    metavar="N",
    help="Parsers: longer sentences are refused [default: as in training].",
)


class Loaded(NamedTuple):
    """A model, ready to predict, its task, and the file that it is from."""

    path: str
    model: Any
    task: Task


def refuse_model(path: str) -> None:
    """UserError if a file that is to be read as data is a model: then the data's name was forgotten."""
    if not os.path.isfile(path):  # standard input and pipes can be read only once; what is missing is told later
        return
    with open(path, "rb") as file:
        start = file.read(10)
    # the length of a header in JSON, which text in its place would make larger than any file
    if start[8:] == b'{"' and int.from_bytes(start[:8], "little") < os.path.getsize(path):
        raise UserError(f"{path}: is a model; the input is missing")


def load_models(paths: Sequence[str], threads: int, max_length: int | None) -> list[Loaded]:
    """Models in their order, those of a pipeline one by one; of several, `max_length` is for parsers."""
    from partwise import load
    from partwise.conllu import ConlluPipeline

    found: list[tuple[str, Any]] = []
    for path in paths:
        model = load(path)
        several = isinstance(model, ConlluPipeline)
        found += [(f"{path} ({step.name})", step.model) for step in model.steps] if several else [(path, model)]
    if len(found) == 1:
        return [Loaded(found[0][0], *_ready(found[0][1], threads, max_length))]
    return [
        Loaded(path, *_ready(model, threads, max_length if task_of(model).name == "dep" else None))
        for path, model in found
    ]


def load_model(path: str, threads: int, max_length: int | None) -> tuple[Any, Task]:
    """A model, ready to predict, and its task."""
    return _ready(load_one(path, path), threads, max_length)


def load_one(path: str, what: str) -> Any:
    """A model; `what` begins the UserError for a pipeline."""
    from partwise import load
    from partwise.conllu import ConlluPipeline

    found = load(path)
    if isinstance(found, ConlluPipeline):
        raise UserError(f"{what}: is a pipeline, which this command does not take; give one of its models")
    return found


def _ready(fitted: Any, threads: int, max_length: int | None) -> tuple[Any, Task]:
    task = task_of(fitted)
    fitted.n_jobs = threads
    if max_length is not None:
        if "max_length" not in fitted.get_params():
            raise UserError(f"--max-length: sentences of any length are taken by a model of task {task.name!r}")
        fitted.max_length = max_length
    return fitted, task
