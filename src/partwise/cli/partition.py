"""``partwise partition``, training data in files, and ``partwise train TASK DIR``, training on them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, Flags, argument, checked_settings, estimator_options, flag, was_given
from partwise.cli.output import check_outputs, print_json, resources, warn_blank
from partwise.cli.summary import Fields, aligned, certificate_lines, features_text, model_text, trained_text
from partwise.cli.tasks import TASKS, Task, TaskGroup

if TYPE_CHECKING:
    from partwise.out_of_core.partitions import Partitions

#: Bytes of the input that are read at a time.
BLOCK = 1 << 20
#: Flags of `train` that need the data themselves.
NEED_DATA = ("early_stopping", "folds", "baseline", "report", "start")


def partition_flags(task: Task) -> list[click.Parameter]:
    """Return the arguments and flags of `partition`."""
    return [
        argument("data"),
        flag("-o --output=DIR", "Write the partition to this folder, which is made.", FILE, required=True),
        flag("--batch-size=BYTES", "Make batches that take about so much memory; 8M, 1G.", default="32M"),
        flag("--overwrite", "Replace a partition that is there.", bool),
        # labels are counted block by block: their limit is that of the estimator
        *(each for each in task.flags() if each.name != "max_labels"),
        *estimator_options(task.estimator, task.partitioned),
    ]


def partition(task: Task, flags: Flags) -> None:
    """Write training data as batches in files: partwise partition TASK DATA -o DIR; then partwise train TASK DIR.

    DATA is read twice, a block at a time. What decides about features is said here and not when the model is trained.
    """
    from partwise.out_of_core import partitions

    begin = time.perf_counter()
    data = flags["data"]
    if data == "-":
        raise UserError("the data are read twice: standard input (-) can be read once")

    def blocks() -> Iterator[tuple[Any, Any]]:
        return ((block.X, block.y) for block in task.blocks(data, flags, BLOCK, labelled=True))

    first = next(iter(task.blocks(data, flags, BLOCK, labelled=True)))
    chosen = {name: flags[name] for name in task.partitioned}
    # the first block does not tell whether labels and columns are in proportion; `blocks` checks columns at the end
    unlimited = {**flags, "max_columns": 1 << 60, "max_labels": 1 << 60}
    model = task.make(unlimited, first, {**chosen, "n_jobs": flags["threads"]})
    remembered = {"task": task.name, **task.remember(flags, first)}
    options = {name: flags[name] for name in ("batch_size", "overwrite")}
    found = partitions.write(flags["output"], model, blocks, input_settings=remembered, **options)
    fields = {
        "task": task.name,
        "partition": flags["output"],
        "n_examples": found.n_examples,
        "n_tokens": found.n_rows,
        "n_batches": found.n_batches,
        "n_weights": found.n_weights,
        **task.features_of(remembered),
        **resources(begin),
    }
    sizes = f"{found.n_examples} {task.unit}, batches: {found.n_batches}, {found.n_weights} weights"
    if flags["as_json"]:
        print_json(fields)
    else:
        click.echo(f"{flags['output']}: {'; '.join(filter(None, [sizes, features_text(fields)]))}")


def train_on_partition(task: Task, flags: Flags) -> None:
    """Open a partition, fit, save the model, score it on --dev."""
    from partwise.cli.train import fit_quietly, model_fields, read_dev, save_models, writers

    begin = time.perf_counter()
    data, output, dev = flags["data"], flags["output"], flags["dev"]
    _refuse_flags(task, data)
    settings = checked_settings(task, flags)
    check_outputs(output, flags["history_file"], inputs=(data, dev))
    with _opened(flags) as found:
        if found.kind != TASKS[task.name].kind:
            raise UserError(f"{data}: is a partition for another task than {task.name!r}")
        model = found.estimator(**{name: value for name, value in settings.items() if name not in task.partitioned})
        remembered = found.input_settings
        held = read_dev(task, {**flags, **remembered})
        fit_quietly(model, writers(flags), flags, found)
    save_models(task, [model], [output], remembered, flags["dtype"])
    fields: Fields = {
        "task": task.name,
        "model": output,
        "partition": data,
        "n_examples": found.n_examples,
        "n_tokens": found.n_rows,
        "n_batches": found.n_batches,
        "n_labels": len(getattr(model, "classes_", ())),
        **model_fields(task, model),
    }
    sizes = [f"{found.n_examples} {task.unit}", f"batches: {found.n_batches}"]
    lines = [("trained", trained_text(task.name, sizes, fields)), *certificate_lines(fields)]
    if held is not None:
        evaluation = task.evaluate(model, held)
        warn_blank(task.blank(model), dev)
        name, value = task.main_score(evaluation)
        lines.append(("score", f"{name} {value:.2%} on {dev}"))
        fields |= {"scored_on": dev, **evaluation.scores, **evaluation.details}
    if flags["as_json"]:
        print_json(fields | resources(begin))
    elif not flags["quiet"]:
        click.echo(aligned([*lines, ("model", model_text(output))]), err=output == "-")


@contextmanager
def _opened(flags: Flags) -> Iterator[Partitions]:
    """Yield the partition, in this process or (--scheduler) on a cluster, which exists until the end of the block."""
    data, memory, scheduler = flags["data"], flags["memory"], flags["scheduler"]
    if scheduler is None:
        from partwise.out_of_core import partitions

        yield partitions.open(data, memory)
        return
    try:
        dask = importlib.import_module("dask.distributed")
    except ImportError:
        raise UserError("--scheduler needs Dask: pip install 'partwise[dask]'") from None
    from partwise.out_of_core import cluster as distributed
    from partwise.support.checks import count_jobs

    with ExitStack() as cluster:
        address: object = scheduler
        if scheduler == "local":
            workers = count_jobs(flags["threads"])
            options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 40}
            try:
                address = cluster.enter_context(dask.LocalCluster(n_workers=workers, **options))
            except (RuntimeError, OSError, TimeoutError) as error:
                raise UserError(f"--scheduler local: workers could not be started ({error})") from None
        try:
            client = cluster.enter_context(dask.Client(address, timeout=10))
        except (OSError, TimeoutError, ValueError) as error:
            raise UserError(f"--scheduler {scheduler}: there is no Dask scheduler ({error})") from None
        try:
            yield distributed.open(data, client, memory)
        except distributed.ClusterError as error:
            raise UserError(f"--scheduler {scheduler}: {error}") from None


def _refuse_flags(task: Task, data: str) -> None:
    """Raise UserError for a flag that a partition has decided, or that needs the data themselves."""
    decided = {each.name for each in task.flags()} | set(task.partitioned)
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        if name in decided and was_given(name):
            raise UserError(f"{parameter.opts[0]}: {data} is a partition: features are chosen when it is written")
        if name in NEED_DATA and was_given(name):
            raise UserError(f"{parameter.opts[0]}: not available with a partition ({data})")


command = TaskGroup("partition", partition_flags, partition)
