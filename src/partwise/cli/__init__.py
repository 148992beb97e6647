"""The ``partwise`` command.

A subcommand is a module of this package with a click command called `command`, listed in `COMMANDS`; it is imported
when it is called, so that ``partwise --help`` stays quick.
"""

from __future__ import annotations

import importlib

import click

COMMANDS = {"demo": "partwise.cli.demo"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command


@click.command(cls=_Commands)
@click.version_option(package_name="partwise")
def main() -> None:
    """Train linear structured predictors, each run with a certificate."""
