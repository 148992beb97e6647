"""``python -m tests.faults``: the table of faults, time-boxed and resumable."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from . import page, runner
from .rows import TESTS, all_rows


@click.command()
@click.option("--row", "names", multiple=True, help="Only these rows [default: all].")
@click.option("--trials", type=click.IntRange(1), help="At most this many trials of each row [default: full size].")
@click.option("--seconds", type=float, help="Stop after this long, in equal parts for the rows; call again to go on.")
@click.option(
    "--resume",
    type=click.Path(dir_okay=False),
    default=str(TESTS.parent / "build" / "faults.jsonl"),
    show_default=True,
    help="Where results are kept, and read from to go on.",
)
@click.option("--page", "target", default=str(TESTS.parent / "docs" / "reliability.md"), show_default=True)
@click.option("--list", "only_list", is_flag=True, help="Show the rows and what has been run of them.")
def main(
    names: tuple[str, ...], trials: int | None, seconds: float | None, resume: str, target: str, only_list: bool
) -> None:
    """Run the table of faults and write docs/reliability.md."""
    rows, path = all_rows(), Path(resume)
    unknown = set(names) - set(rows)
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(rows)}", param_hint="--row")
    results = runner.read(path)
    done = {(record["row"], record["trial"]) for record in results}
    if only_list:
        for name, row in rows.items():
            click.echo(f"{name:20} {sum(r == name for r, _ in done):6} of {row.trials:6}  {row.fault}")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = [name for name in rows if not names or name in names]
    begin, wrong = time.monotonic(), 0
    with path.open("a") as file:
        for position, name in enumerate(chosen, 1):
            row = rows[name]
            share = float("inf") if seconds is None else begin + seconds * position / len(chosen)
            numbers = [k for k in range(min(row.trials, trials or row.trials)) if (name, k) not in done]
            for record in runner.run(rows, [(name, numbers)], deadline=share):
                file.write(json.dumps(record) + "\n")
                file.flush()
                results.append(record)
                if row.good is not None and record["outcome"] not in row.good:
                    wrong += 1
                    click.echo(f"{name} {record['trial']}: {record['outcome']}: {record['detail']}", err=True)
            Path(target).write_text(page.written(rows, results))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
