"""``partwise data``: data sets that are made on the spot, and real ones with pinned digests."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click

from partwise.cli.errors import Commands, UserError
from partwise.cli.flags import JSON, Name
from partwise.cli.output import print_json, table
from partwise.cli.summary import Fields


def data_set_names() -> list[str]:
    """Return the names of all data sets, built-in ones first."""
    from partwise.datasets import DATA_SETS
    from partwise.datasets.builtin import BUILT_IN

    return [*BUILT_IN, *DATA_SETS]


_folder = click.option("--data", type=click.Path(file_okay=False), help="Use this folder [default: $PARTWISE_DATA].")
_NAME = Name("data set", data_set_names)
json_flag = click.option("--json", "as_json", is_flag=True, help=JSON.help)


@click.group("data", cls=Commands)
def command() -> None:
    """List, fetch and check data sets.

    Each data set is a folder of the data folder (--data, or the environment variable PARTWISE_DATA). Built-in ones
    are made by `fetch` without a network; real ones are downloaded where they have an address, and have to be put
    there by hand where they have none. Either way their SHA-256 is pinned.
    """


@command.command("list")
@_folder
@json_flag
def list_sets(data: str | None, as_json: bool) -> None:
    """Show the data sets there are, and which of them are in the folder."""
    from partwise.datasets import DATA_SETS
    from partwise.datasets.builtin import BUILT_IN

    rows: list[Fields] = [
        {"name": name, "source": "built-in", "here": _all_there(name, files, data), "terms": "free", "summary": text}
        for name, (text, files, _) in BUILT_IN.items()
    ]
    for item in DATA_SETS.values():
        here = _all_there(item.name, [file.name for file in item.files], data)
        source = "download" if item.downloadable else "local only"
        rows.append({"name": item.name, "source": source, "here": here, "terms": item.terms, "summary": item.summary})
    if as_json:
        print_json({"data": rows})
        return
    cells = [["name", "source", "here", "what"]]
    cells += [[row["name"], row["source"], "yes" if row["here"] else "-", row["summary"]] for row in rows]
    click.echo(table(cells, left=4))
    click.echo("\nlocal only: there is no address to download it from; put its files into the data folder by hand.")


@command.command("fetch")
@click.argument("name", type=_NAME)
@_folder
@click.option("--sentences", default=2000, show_default=True, type=click.IntRange(10), help="Make sets of this size.")
@click.option("--seed", default=0, show_default=True, help="Seed built-in sets.")
@json_flag
def fetch_set(name: str, data: str | None, sentences: int, seed: int, as_json: bool) -> None:
    """Make a built-in data set, or get a real one (from the folder if it is already there) and check its digests."""
    from partwise.datasets import fetch
    from partwise.datasets.builtin import BUILT_IN, write_built_in

    if name in BUILT_IN:
        folder = data or os.environ.get("PARTWISE_DATA")
        if not folder:
            raise UserError("where to? pass --data FOLDER or set PARTWISE_DATA")
        paths = write_built_in(name, Path(folder), sentences, seed)
    else:
        paths = fetch(name, data)
    if as_json:
        print_json({"name": name, "files": [str(path) for path in paths]})
    else:
        click.echo("\n".join(map(str, paths)))


@command.command("check")
@click.argument("names", nargs=-1, type=_NAME)
@_folder
@json_flag
def check_sets(names: tuple[str, ...], data: str | None, as_json: bool) -> None:
    """Compare files with their pinned digests; exit status 1 if a file was changed or one that was named is missing."""
    from partwise.datasets import DATA_SETS, check

    if data and not Path(data).is_dir():
        raise UserError(f"{data}: no such folder")
    found: Fields = {name: check(name, data) for name in names or DATA_SETS if name in DATA_SETS}
    rows = [[name, file, state] for name, files in found.items() for file, state in files.items()]
    if as_json:
        print_json({"data": found})
    elif rows:
        click.echo(table(rows, left=3))
    states = {state for *_, state in rows}
    if "changed" in states or (names and "missing" in states):
        raise click.exceptions.Exit(1)


def _all_there(dataset: str, names: list[str], data: str | None) -> bool:
    from partwise.datasets import data_file

    with suppress(FileNotFoundError):
        return all(data_file(dataset, name, data) for name in names)
    return False
