"""``partwise train TASK DIR``: training on a partition."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click
from click.core import ParameterSource

from partwise.cli.checkpoints import checkpoint_of
from partwise.cli.errors import UserError
from partwise.cli.output import check_outputs, peak_memory, print_json, warn_blank
from partwise.cli.summary import (
    certificate_lines,
    features_text,
    loss_fields,
    loss_text,
    penalty_text,
    result_fields,
    size_text,
    weights_text,
)
from partwise.cli.tasks import TASKS, Task

#: Flags of `train` that need the data themselves.
NEED_DATA = ("early_stopping", "folds", "baseline", "report")


def train_on_partition(
    task: Task,
    settings: dict[str, Any],
    *,
    data: str,
    output: str,
    dev: str | None,
    memory: str | None,
    scheduler: str | None,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Open, fit, save, score on --dev; settings: the estimator's parameters by flags."""
    from partwise.callbacks import HistoryWriter, ProgressLine

    begin = time.perf_counter()
    _refuse_flags(task, data)
    check_outputs(output, flags["history_file"], inputs=(data, dev))
    with _opened(data, memory, scheduler, flags["threads"]) as found:
        if found.kind != TASKS[task.name].kind:
            raise UserError(f"{data}: is a partition for another task than {task.name!r}")
        model = found.estimator(**{name: value for name, value in settings.items() if name not in task.partitioned})
        remembered = found.input_settings
        held = None if dev is None else task.read(dev, {**flags, **remembered}, labelled=True)
        callbacks: list[Any] = [HistoryWriter(flags["history_file"])] if flags["history_file"] else []
        model.set_params(callbacks=[*callbacks, *([] if quiet or as_json else [ProgressLine()])])
        model.fit(found, checkpoint=checkpoint_of(flags))
        model.set_params(callbacks=None)
    model.input_settings_ = remembered
    model.save(output, dtype=flags["dtype"])
    fields = {
        "task": task.name,
        "model": output,
        "partition": data,
        "n_examples": found.n_examples,
        "n_tokens": found.n_rows,
        "n_batches": found.n_batches,
        "n_labels": len(getattr(model, "classes_", ())),
        "n_features": task.size(model),
        "n_nonzero": task.n_nonzero(model),
        **task.features(model),
        **loss_fields(model.loss),
        "C": model.C,
        **result_fields(model.result_),
    }
    score = None
    if held is not None:
        evaluation = task.evaluate(model, held)
        warn_blank(task.blank(model), dev)
        score = task.main_score(evaluation)
        fields |= {"scored_on": dev, **evaluation.scores, **evaluation.details}
    fields |= {"total_seconds": time.perf_counter() - begin, "peak_memory": peak_memory()}
    if as_json:
        print_json(fields)
    elif not quiet:
        click.echo(_summary(task, fields, score), err=output == "-")


@contextmanager
def _opened(data: str, memory: str | None, scheduler: str | None, threads: int) -> Iterator[Any]:
    """The partition, in this process or (--scheduler) on a cluster, which is there until the end of the block."""
    if scheduler is None:
        from partwise.out_of_core import partitions

        yield partitions.open(data, memory)
        return
    try:
        dask: Any = importlib.import_module("dask.distributed")
    except ImportError:
        raise UserError("--scheduler needs Dask: pip install 'partwise[dask]'") from None
    from partwise.out_of_core import cluster as distributed
    from partwise.support.checks import count_jobs

    with ExitStack() as cluster:
        address: Any = scheduler
        if scheduler == "local":
            workers = count_jobs(threads)
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
    """UserError for a flag that a partition has decided, or that looks at the data themselves."""
    context = click.get_current_context()
    decided = {name for flag in task.flags() if (name := flag.name) is not None} | set(task.partitioned)
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if name in decided:
            raise UserError(f"{parameter.opts[0]}: {data} is a partition: features are chosen when it is written")
        if name in NEED_DATA:
            raise UserError(f"{parameter.opts[0]}: not available with a partition ({data})")


def _summary(task: Task, fields: dict[str, Any], score: tuple[str, float] | None) -> str:
    sizes = f"{fields['n_examples']} {task.unit}, batches: {fields['n_batches']}, {weights_text(fields)}"
    looks = f"; {features_text(fields)}" if "features" in fields else ""
    where = fields["model"] if fields["model"] != "-" else "standard output"
    lines = [
        ("trained", f"{task.name} from {sizes}{looks}; loss {loss_text(fields)}, {penalty_text(fields)}"),
        *certificate_lines(fields),
        *([("score", f"{score[0]} {score[1]:.2%} on {fields['scored_on']}")] if score else []),
        ("model", f"{where}{size_text(where)}"),
    ]
    return "\n".join(f"{head:10}{text}" for head, text in lines)
