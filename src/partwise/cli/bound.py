"""``partwise bound``: upper bounds of a model's loss on new examples."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, JSON, LENGTH, THREADS, UNPACK, Flags, argument, flag, make_command
from partwise.cli.models import load_model
from partwise.cli.output import print_json
from partwise.cli.summary import Fields


def bound(flags: Flags) -> None:
    """Bound the loss of a MODEL on new examples like those it was trained on (TRAIN).

    The PAC-Bayesian margin bound is about predictions with weights drawn around the model's, not about the model's own,
    and holds for models that predict the labelling with the largest sum of weights. The bound from --held-out is about
    the model itself, whatever it is, and nearly always the lower one.
    """
    from partwise.bounds import NotCovered, held_out_bound, held_out_losses, margin_bound

    model, delta, loss, threads = (flags[name] for name in ("model", "delta", "loss", "threads"))
    if not 0 < delta < 1:
        raise UserError(f"--delta: must be above 0 and below 1, got {delta:g}")
    fitted, task = load_model(model, threads, flags["max_length"])

    def labelled(path: str) -> Any:
        data = task.read(path, task.recall(fitted), labelled=True)
        try:
            return fitted.labelled(data.X, data.y)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    fields: Fields = {"task": task.name, "model": model}
    try:
        found = margin_bound(labelled(flags["train"]), fitted.weights_, delta=delta, loss=loss, n_jobs=threads)
    except NotCovered as error:
        if not flags["held_out"]:
            raise UserError(f"{model}: {error}") from None
        fields |= {"value": None, "reason": str(error)}
        lines = [f"margin bound: not available: {error}"]
    else:
        fields |= asdict(found)
        lines = [f"margin bound: {found}"]
        if not found.informative:
            lines.append("It says nothing: the sample is too small for its margins.")
    if flags["held_out"]:
        losses = held_out_losses(labelled(flags["held_out"]), fitted.weights_, loss=loss, n_jobs=threads)
        value = held_out_bound(losses, delta)
        fields["held_out"] = {"value": value, "loss": float(losses.mean()), "n_examples": len(losses)}
        lines.append(
            f"held-out bound: risk of the model <= {value:.4f} with probability {1 - delta:g} "
            f"(loss {losses.mean():.4f} on {len(losses)} examples)"
        )
    if flags["as_json"]:
        print_json(fields)
    else:
        click.echo("\n".join(lines))


command = make_command(
    "bound",
    bound,
    argument("model"),
    argument("train"),
    flag("--held-out", "Also bound the loss by examples not trained on.", FILE),
    flag("--delta", "Let a bound fail with this probability.", float, 0.05),
    flag(
        "--loss",
        "Measure an example by its cost over the largest possible one, or by whether anything is wrong.",
        ("cost", "zero-one"),
        "cost",
    ),
    LENGTH,
    THREADS,
    UNPACK,
    JSON,
)
