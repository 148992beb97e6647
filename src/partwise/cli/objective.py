"""The flags that say what is minimised: the loss with its costs, and how strong the penalty is.

The penalty is said either in scikit-learn's terms (--penalty, --l1-ratio, --C) or by the strengths of the two penalties
(--l1, --l2), not both.
"""

from __future__ import annotations

import math
from typing import Any

import click
from click.core import ParameterSource

from partwise.cli.errors import UserError
from partwise.cli.flags import File
from partwise.cli.tasks import Task


def loss_flags(task: Task) -> list[click.Parameter]:
    """--temperature, --cost-scale and, where there are costs of labels, --cost."""
    flags: list[click.Parameter] = [
        click.Option(["--temperature"], type=float, help="Another temperature of the loss than its own."),
        click.Option(["--cost-scale"], type=float, help="How much a wrong part adds to a labelling's score."),
    ]
    if task.label_costs:
        flags.append(
            click.Option(
                ["--cost"],
                type=File(),
                metavar="FILE",
                help="What wrong labels cost: lines `gold label cost`; pairs that are not there cost 1.",
            )
        )
    return flags


def loss_settings(task: Task, flags: dict[str, Any]) -> dict[str, Any]:
    """The estimator's loss and cost."""
    from partwise.io import read_costs
    from partwise.problem.losses import get_loss

    found: dict[str, Any] = {"loss": flags["loss"]}
    changes = {name: flags[name] for name in ("temperature", "cost_scale") if flags[name] is not None}
    for name, value in changes.items():
        _check(f"--{name.replace('_', '-')}", value, zero=True)
    if changes:
        found["loss"] = get_loss(flags["loss"], **changes)
    if task.label_costs:
        path = flags["cost"]
        found["cost"] = None if path is None else read_costs(path, task.cost_label)
    return found


def penalty_flags(default_C: float) -> list[click.Parameter]:
    """--C, --l2 and --l1."""
    return [
        click.Option(["--C", "C"], type=float, help=f"Inverse of the penalty's strength [default: {default_C:g}]."),
        click.Option(["--l2"], type=float, help="Strength of the penalty l2 / 2 |w|^2; l2 = 1 / C."),
        click.Option(["--l1"], type=float, help="Strength of a penalty l1 |w|_1 beside it, which makes weights zero."),
    ]


def penalty_settings(settings: dict[str, Any], default_C: float, flags: dict[str, Any]) -> dict[str, Any]:
    """The estimator's C, penalty and l1_ratio, as far as --C, --l2 and --l1 say them."""
    C, l2, l1 = flags["C"], flags["l2"], flags["l1"]
    if C is not None and l2 is not None:
        raise UserError("--C and --l2 say the same (l2 = 1 / C): give one of them")
    if C is not None and l1 is not None:
        raise UserError("--C cannot be combined with --l1: --l2 is the strength of the other penalty (l2 = 1 / C)")
    if settings["penalty"] != "l2" and (l1 is not None or l2 is not None):
        raise UserError(f"--penalty {settings['penalty']} goes with --C; --l1 and --l2 go without --penalty")
    _check("--C", C)
    _check("--l1", l1, zero=True)
    _check("--l2", l2, zero=bool(l1))
    if l1:
        from partwise.estimators.parameters import penalty_parameters

        l2 = 1.0 / default_C if l2 is None else l2
        return penalty_parameters(l1, l2)
    if l2 is not None:
        return {"C": 1.0 / l2}
    return {} if C is None else {"C": C}


def check_sparse(settings: dict[str, Any], flags: dict[str, Any]) -> None:
    """UserError for --l1-ratio without its penalty, and for an l1 term that the loss cannot have.

    What the estimators say of it has the names of their parameters.
    """
    from partwise.problem.losses import LOSSES, get_loss

    penalty, source = settings["penalty"], click.get_current_context().get_parameter_source("l1_ratio")
    if penalty != "elasticnet" and source is ParameterSource.COMMANDLINE:
        raise UserError("--l1-ratio goes with --penalty elasticnet")
    given = [f"--{name.replace('_', '-')}" for name in ("l1", "l1_min") if flags.get(name)]
    flag = f"--penalty {penalty}" if penalty != "l2" else next(iter(given), None)
    loss = get_loss(settings["loss"])
    if flag is not None and not loss.takes_l1:
        fitting = ", ".join(name for name, each in LOSSES.items() if each.takes_l1)
        raise UserError(f"{flag} is not available with --loss {loss.name}; losses that fit: {fitting}")


def _check(flag: str, value: float | None, zero: bool = False) -> None:
    if value is not None and not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise UserError(f"{flag} must be a number {'of at least 0' if zero else 'above 0'}, got {value:g}")
