"""``partwise inspect``: what a model file holds."""

from __future__ import annotations

from typing import Any

import click

from partwise.cli.output import json_flag, print_json
from partwise.cli.summary import certificate_lines, result_fields, size_text
from partwise.cli.tasks import task_of


@click.command("inspect")
@click.argument("model")
@click.option("--top", type=click.IntRange(0), default=5, show_default=True, help="How many features of each label.")
@json_flag
def command(model: str, top: int, as_json: bool) -> None:
    """Show what a MODEL file holds: parameters, certificate, labels, strongest features."""
    from partwise import load

    fitted = load(model)
    task = task_of(fitted)
    fields: dict[str, Any] = {
        "task": task.name,
        "model": model,
        "estimator": type(fitted).__name__,
        "parameters": {name: value for name, value in fitted.get_params(deep=False).items() if value is not None},
        "input": task.recall(fitted),
        "n_features": task.size(fitted),
        "labels": fitted.classes_.tolist() if hasattr(fitted, "classes_") else [],
        **result_fields(fitted.result_),
    }
    strongest = task.strongest(fitted, top) if top else {}
    if as_json:
        print_json({**fields, "top": strongest})
        return
    labels = ", ".join(map(str, fields["labels"][:30])) + (", ..." if len(fields["labels"]) > 30 else "")
    lines = [
        ("model", f"{model}{size_text(model)}, a {fields['estimator']} (task {task.name})"),
        ("loss", f"{_name(fields['parameters'].get('loss'))}, l2 = {fields['l2']:g}"),
        *certificate_lines(fields),
        ("features", str(fields["n_features"])),
        ("labels", f"{len(fields['labels'])}: {labels}" if fields["labels"] else "-"),
    ]
    click.echo("\n".join(f"{head:10}{text}" for head, text in lines))
    for heading, rows in strongest.items():
        click.echo(f"\n{heading}")
        for name, weight in rows:
            click.echo(f"  {weight:+9.4f}  {name}")


def _name(loss: Any) -> str:
    return str(getattr(loss, "name", loss))
