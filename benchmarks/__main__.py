"""``python -m benchmarks QUESTION``."""

from __future__ import annotations

import click

from benchmarks.questions import QUESTIONS, command


class _Questions(click.Group):
    """Import a question's module only when it is asked, so that rivals of other questions need not be installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(QUESTIONS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return command(name) if name in QUESTIONS else None


@click.command(cls=_Questions)
def main() -> None:
    """Compare partwise with other systems on the same objective and the same data."""


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
