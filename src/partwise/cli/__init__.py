"""The ``partwise`` command.

A subcommand is a module of this package with a click command called `command`, listed in `COMMANDS`; it is imported
when it is called, so that ``partwise --help`` stays quick. `partwise.cli.tasks` lists the tasks (``train tag``,
``train maxent``, ...). Errors a user can cause end with one line on standard error and exit status 2;
Ctrl-C ends with 130 (see `partwise.cli.errors`).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import click

from partwise.cli.errors import Commands, SafeMain, UserError

#: The module of each command, and its line in the list of commands.
COMMANDS = {
    "bound": ("partwise.cli.bound", "Bound a model's loss on examples yet to come."),
    "convert": ("partwise.cli.convert", "Convert model files: CRFsuite's both ways, Wapiti's and CRF++'s to ours."),
    "data": ("partwise.cli.data", "List, fetch and check data sets."),
    "demo": ("partwise.cli.demo", "Train every estimator on built-in data and write a report."),
    "evaluate": ("partwise.cli.evaluate", "Score a model on labelled data."),
    "inspect": ("partwise.cli.inspect", "Show what a model file holds: certificate, labels, strongest features."),
    "partition": ("partwise.cli.partition", "Write training data as batches in files, to train in little memory."),
    "path": ("partwise.cli.path", "Train for many C at once and keep the one that does best on held-out data."),
    "predict": ("partwise.cli.predict", "Label data with a model."),
    "solvers": ("partwise.cli.solvers", "Show which solver fits what, or the options of one."),
    "train": ("partwise.cli.train", "Train a model and certify it."),
}


class _Commands(SafeMain, Commands):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from partwise import __version__

        click.echo(f"partwise, version {__version__}")
        ctx.exit()


def _load_plugins(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    """Import files (``*.py``) and modules by their names; raise UserError for what is missing or fails."""
    for name in values:
        path = Path(name)
        is_file = path.suffix == ".py"
        if is_file and not path.is_file():
            raise UserError(f"--plugin {name}: there is no such file")
        try:
            if is_file:
                _load_file(path)
            else:
                importlib.import_module(name)
        except (Exception, SystemExit) as error:  # whatever the user's code does
            import traceback  # here, so that `partwise --help` stays quick

            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
            where = f"line {lines[-1]}: " if lines else ""
            raise UserError(f"--plugin {name}: {where}{type(error).__name__}: {error}") from error


def _load_file(path: Path) -> None:
    # Under another name, since a file may be called like an existing module.
    name = f"partwise_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    expose_value=False,
    callback=_load_plugins,
    metavar="FILE|MODULE",
    help="Run this Python code first, with solvers or models of your own; can be given several times.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def main() -> None:
    """Train linear structured predictors, each run with a certificate."""
