"""``partwise solvers``: which solvers fit which losses and structures, or one solver's options."""

from __future__ import annotations

import sys
from dataclasses import fields
from itertools import product

import click

from partwise.cli.flags import JSON, Flags, Name, flag, loss_names, make_command, solver_names
from partwise.cli.output import print_json, table
from partwise.cli.summary import Fields


def solvers(flags: Flags) -> None:
    """Show which solver fits which loss on which structure; with a NAME that solver's options.

    The table comes from what the solvers ask for and what problems of each kind offer.
    """
    from partwise.problem.losses import LOSSES
    from partwise.solvers.engine.registry import KINDS, SOLVERS, fitting_solvers

    name, loss = flags["name"], flags["loss"]
    losses = {loss: LOSSES[loss]} if loss else LOSSES
    names = [name] if name else list(SOLVERS)
    fits: dict[str, dict[str, list[str]]] = {kind: {} for kind in KINDS}
    for kind, (key, item) in product(KINDS, losses.items()):
        fits[kind][key] = [solver for solver in fitting_solvers(item, kind) if solver in names]
    if flags["as_json"]:
        print_json({"solvers": {solver: _describe(solver) for solver in names}, "fits": fits})
        return
    if name:
        _print_one(name, fits)
        return
    for kind, found in fits.items():
        rows = [[kind, *losses]]
        rows += [[solver, *("yes" if solver in found[key] else "-" for key in losses)] for solver in names]
        click.echo(table([row for row in rows if loss is None or "yes" in row or row is rows[0]], left=len(rows[0])))
        click.echo()
    click.echo("`partwise solvers NAME` shows a solver's options, docs/solvers.md how to choose.")


def _describe(name: str) -> Fields:
    from partwise.solvers.engine.registry import SOLVERS

    cls = SOLVERS[name]
    written = not (cls.__doc__ or "").startswith(f"{cls.__name__}(")  # a dataclass without a docstring is given that
    summary = ((cls.__doc__ if written else sys.modules[cls.__module__].__doc__) or "").strip().partition("\n")[0]
    return {
        "summary": summary,
        "rates": cls.rates(),
        "convergence": cls.describe_rate(),
        "needs": sorted(cls.requires),
        "max_passes": cls.default_max_passes,
        "options": {item.name: {"default": item.default, "help": item.metadata["help"]} for item in fields(cls)},
    }


def _print_one(name: str, fits: dict[str, dict[str, list[str]]]) -> None:
    found = _describe(name)
    click.echo(f"{name}: {found['summary']}\n")
    click.echo(f"needs: {', '.join(found['needs'])}")
    click.echo(f"convergence: {found['convergence']}; gives up after {found['max_passes']} passes by default")
    for kind, by_loss in fits.items():
        there = [loss for loss, names in by_loss.items() if names]
        if there:
            click.echo(f"fits {kind}: {', '.join(there)}")
    if found["options"]:
        click.echo("\noptions (--solver-option NAME=VALUE):")
        rows = [[key.replace("_", "-"), str(item["default"]), item["help"]] for key, item in found["options"].items()]
        click.echo(table(rows, left=3, indent="  "))


command = make_command(
    "solvers",
    solvers,
    click.Argument(["name"], required=False, type=Name("solver", lambda: solver_names()[1:]), metavar="[NAME]"),
    flag("--loss", "Show only solvers of this loss.", Name("loss", loss_names)),
    JSON,
)
