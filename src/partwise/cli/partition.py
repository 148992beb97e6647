"""``partwise partition``: training data in files, for training within a limit of memory."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from typing import Any

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import File, estimator_options
from partwise.cli.output import json_flag, peak_memory, print_json, threads_flag, unpack_flag
from partwise.cli.taskgroup import TaskGroup
from partwise.cli.tasks import TASKS, Task

#: Bytes of the input that are read at a time.
BLOCK = 1 << 20


@click.command("partition", cls=TaskGroup, make=lambda task: make_command(task))
def command() -> None:
    """Write training data as batches in files: partwise partition TASK DATA -o DIR; then partwise train TASK DIR.

    DATA is read twice, a block at a time. What decides about features is said here and not when the model is trained.
    """


def make_command(task: Task) -> click.Command:
    """The command of one task."""

    def run(**flags: Any) -> None:
        partition(task, **flags)

    parameters: list[click.Parameter] = [
        click.Argument(["data"], type=File()),
        click.Option(["-o", "--output"], type=File(), metavar="DIR", required=True, help="The folder, which is made."),
        click.Option(
            ["--batch-size"],
            default="32M",
            show_default=True,
            metavar="BYTES",
            help="What a batch takes in memory, about; 8M, 1G.",
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace a partition that is there."),
        # labels are counted block by block: their bound is that of the estimator
        *(flag for flag in task.flags() if flag.name != "max_labels"),
        *estimator_options(task.estimator, task.partitioned),
    ]
    summary = f"{TASKS[task.name].summary}\n\n{inspect.cleandoc(task.__doc__ or '')}"
    made = click.Command(task.name, params=parameters, callback=run, help=summary, short_help=TASKS[task.name].summary)
    return json_flag(threads_flag(unpack_flag(made)))


def partition(
    task: Task, *, data: str, output: str, batch_size: str, overwrite: bool, as_json: bool, **flags: Any
) -> None:
    """Two passes over the data; the first block tells what there is a choice of."""
    from partwise.cli.summary import features_text
    from partwise.out_of_core import partitions

    begin = time.perf_counter()
    if data == "-":
        raise UserError("the data are read twice: standard input (-) can be read once")

    def blocks() -> Iterator[tuple[Any, Any]]:
        return ((block.X, block.y) for block in task.blocks(data, flags, BLOCK, labelled=True))

    first = next(iter(task.blocks(data, flags, BLOCK, labelled=True)))
    chosen = {name: flags[name] for name in task.partitioned}
    # how many columns there may be is looked at when all of them were seen, by `blocks`; the first block alone would
    # not tell whether labels are out of proportion
    model = task.make(
        {**flags, "max_columns": 1 << 60, "max_labels": 1 << 60}, first, {**chosen, "n_jobs": flags["threads"]}
    )
    remembered = {"task": task.name, **task.remember(flags, first)}
    options: dict[str, Any] = {"batch_size": batch_size, "input_settings": remembered, "overwrite": overwrite}
    found = partitions.write(output, model, blocks, **options)
    fields = {
        "task": task.name,
        "partition": output,
        "n_examples": found.n_examples,
        "n_tokens": found.n_rows,
        "n_batches": found.n_batches,
        "n_weights": found.n_weights,
        **task.features_of(remembered),
        "total_seconds": time.perf_counter() - begin,
        "peak_memory": peak_memory(),
    }
    if as_json:
        print_json(fields)
        return
    looks = f"; {features_text(fields)}" if "features" in fields else ""
    click.echo(
        f"{output}: {fields['n_examples']} {task.unit}, batches: {fields['n_batches']}, "
        f"{fields['n_weights']} weights{looks}"
    )
