"""``partwise inspect``: what a model file holds."""

from __future__ import annotations

import math
import os

import click

from partwise.cli import summary
from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, JSON, Flags, argument, flag, make_command
from partwise.cli.output import check_outputs, print_json
from partwise.cli.summary import Fields
from partwise.cli.tasks import task_of
from partwise.tables.conllu import ConlluPipeline


def inspect(flags: Flags) -> None:
    """Show what a MODEL file holds: parameters, certificate, labels, strongest features.

    Of a partition's folder: what is in it, after every file was read and checked.
    """
    from partwise import load
    from partwise.io import atomic_write

    model, dump, as_json = flags["model"], flags["dump"], flags["as_json"]
    if os.path.isdir(model):
        if dump:
            raise UserError(f"--dump is not available for a folder ({model})")
        _show_partition(model, as_json)
        return
    check_outputs(dump, inputs=(model,))
    fitted = load(model)
    if isinstance(fitted, ConlluPipeline):
        if dump:
            raise UserError("--dump is not available for several models")
        _show_pipeline(fitted, model, as_json)
        return
    task = task_of(fitted)
    if dump:
        if as_json:
            raise UserError("--dump writes lines of text and cannot be combined with --json")
        with atomic_write(dump, "w") as out:
            out.writelines("\t".join(map(escape, row)) + "\n" for row in task.weights(fitted))
        return
    fields: Fields = {
        "task": task.name,
        "model": model,
        "estimator": type(fitted).__name__,
        "parameters": {name: value for name, value in fitted.get_params(deep=False).items() if value is not None},
        "input": task.recall(fitted),
        "n_features": task.size(fitted),
        "n_nonzero": task.n_nonzero(fitted),
        **task.features(fitted),
        **summary.loss_fields(fitted.loss),
        "labels": task.labels(fitted),
        **summary.result_fields(fitted.result_),
    }
    strongest = task.strongest(fitted, flags["top"]) if flags["top"] else {}
    if as_json:
        print_json({**fields, "top": strongest})
        return
    labels = ", ".join(map(str, fields["labels"][:30])) + (", ..." if len(fields["labels"]) > 30 else "")
    looks = f" ({summary.features_text(fields)})" if "features" in fields else ""
    penalty = f", l1 = {fields['l1']:g}" if fields["l1"] else ""
    penalty = "" if math.isnan(fields["l2"]) else f"{penalty}, l2 = {fields['l2']:g}"
    lines = [
        ("model", f"{model}{summary.size_text(model)}, a {fields['estimator']} (task {task.name})"),
        ("loss", f"{summary.loss_text(fields)}{penalty}"),
        *summary.certificate_lines(fields),
        ("features", f"{fields['n_features']}{looks}, {fields['n_nonzero']} weights not zero"),
        ("labels", f"{len(fields['labels'])}: {labels}" if fields["labels"] else "-"),
    ]
    click.echo(summary.aligned(lines))
    for heading, rows in strongest.items():
        click.echo(f"\n{heading}")
        for name, weight in rows:
            click.echo(f"  {weight:+9.4f}  {name}")


def _show_pipeline(pipeline: ConlluPipeline, path: str, as_json: bool) -> None:
    rows = [
        {
            "name": step.name,
            "estimator": type(step.model).__name__,
            "reads": [column.name for column in step.reads],
            "fills": [column.name for column in step.fills],
            **summary.result_fields(step.model.result_),
        }
        for step in pipeline.steps
    ]
    if as_json:
        print_json({"model": path, "models": rows})
        return
    click.echo(f"{'model':10}{path}{summary.size_text(path)}, {len(rows)} models, one after another")
    for row in rows:
        click.echo(f"\n{row['name']}: a {row['estimator']}, {', '.join(row['reads'])} -> {', '.join(row['fills'])}")
        click.echo(summary.aligned(summary.certificate_lines(row)))


def _show_partition(folder: str, as_json: bool) -> None:
    from partwise.out_of_core import partitions

    found = partitions.open(folder)
    found.check()
    estimator = found.estimator()
    fields = {
        "partition": folder,
        "estimator": type(estimator).__name__,
        "parameters": found.model.feature_parameters(),
        "input": found.input_settings,
        **{name: getattr(found, name) for name in ("n_examples", "n_rows", "n_batches", "n_weights")},
    }
    sizes = f"{found.n_examples} examples in {found.n_batches} batches, {found.n_weights} weights"
    if as_json:
        print_json(fields)
    else:
        click.echo(f"{folder}: a partition for {fields['estimator']}: {sizes}; all files are as they were written")


def escape(text: str) -> str:
    """Return a text without tabs and line ends, which separate fields and lines."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


command = make_command(
    "inspect",
    inspect,
    argument("model"),
    flag("--top", "Show N features of each label.", click.IntRange(0), 5),
    flag(
        "--dump",
        "Write all weights instead (-: to standard output), one per line: kind, names, weight, separated by tabs.",
        FILE,
    ),
    JSON,
)
