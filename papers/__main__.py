"""``python -m papers NAME``: run the papers' experiments."""

from __future__ import annotations

from pathlib import Path

import click

from partwise.cli.errors import SafeMain, UserError
from partwise.cli.output import print_json, table


def _list(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from papers.catalogue import EXPERIMENTS, get

        found = [get(name) for name in EXPERIMENTS]
        rows = [[each.name, each.paper, each.source, each.title] for each in found]
        click.echo(table([["name", "paper", "where", "what"], *rows], left=4))
        ctx.exit()


@click.command(cls=SafeMain)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--quick", is_flag=True, help="A small part of the data and fewer passes.")
@click.option(
    "-o", "--output", "out", default="reproduced", show_default=True, type=click.Path(file_okay=False), metavar="OUT",
    help="Folder for records, tables, charts and the page.",
)  # fmt: skip
@click.option(
    "--claims", "claims_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write the claims as Markdown tables there; tables of other experiments in it stay.",
)  # fmt: skip
@click.option("--again", is_flag=True, help="Run what was run before, too, instead of taking it from OUT.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Run this many cells at a time, each in a process of its own with one thread.",
)
@click.option(
    "--records-only", is_flag=True,
    help="Make the records alone: tables, charts and the page can be made from them later.",
)  # fmt: skip
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the experiments.")
@click.option("--json", "as_json", is_flag=True, help="Write machine-readable output to standard output.")
def command(
    names: tuple[str, ...],
    data: str | None,
    quick: bool,
    out: str,
    claims_file: Path | None,
    again: bool,
    jobs: int,
    records_only: bool,
    as_json: bool,
) -> None:
    """Run experiments of the papers: NAME of one, of a paper, or "all" (--list shows them).

    Tables are written as CSV, charts as PNG, and all of it to one page, OUT/index.html, with the paper's numbers beside
    ours and a line for each claim. A run that was stopped resumes where it was. Needs matplotlib (extra "plot").
    """
    from importlib.util import find_spec

    from papers import find, run
    from papers.claims import write_claims
    from papers.page import PAGE

    if not records_only and find_spec("matplotlib") is None:
        raise UserError("papers needs matplotlib: pip install 'partwise[plot]'")
    try:
        experiments = find(names)
    except ValueError as error:
        raise UserError(str(error)) from None
    shown = run(experiments, Path(out), data, quick, again, lambda line: click.echo(line, err=True), jobs, records_only)
    if records_only:
        return
    if claims_file is not None:
        write_claims(claims_file, experiments, shown)
    if as_json:
        print_json(
            {
                name: [
                    {"claim": c.text, "holds": c.holds, "numbers": c.numbers, "needed": c.needed, "why": c.why}
                    for c in each.claims
                ]
                for name, each in shown.items()
            }
        )
        return
    click.echo(f"The page is {Path(out) / PAGE}.")


if __name__ == "__main__":
    command(prog_name="python -m papers")
