"""A command with one subcommand per task, which is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from partwise.cli.errors import Commands
from partwise.cli.tasks import TASKS, Task, get_task


class TaskGroup(Commands):
    """``partwise train`` and ``partwise path``; `make` makes a task's command."""

    def __init__(self, *args: Any, make: Callable[[Task], click.Command], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.make = make

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TASKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.make(get_task(cmd_name)) if cmd_name in TASKS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of tasks, from the table alone."""
        with formatter.section("Tasks"):
            formatter.write_dl([(name, entry.summary) for name, entry in TASKS.items()])
