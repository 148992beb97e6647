"""``python -m tests.faults``: run the table of faults within a time limit; a later call resumes."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from partwise.support.threads import available_processors

from . import digest, page, runner
from .kept import Kept, mend, read
from .rows import TESTS, Row, all_rows

#: Seconds between two lines of progress, and between two updates of the page.
OFTEN, SELDOM = 10.0, 120.0


@click.command()
@click.option("--row", "names", multiple=True, help="Only these rows [default: all].")
@click.option("--trials", type=click.IntRange(1), help="At most this many trials of each row [default: full size].")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    help="Stop after this long: short rows end, the others have equal parts; call again to go on.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=available_processors, show_default="processors", help="Processes."
)
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
    names: tuple[str, ...],
    trials: int | None,
    seconds: float | None,
    jobs: int,
    resume: str,
    target: str,
    only_list: bool,
) -> None:
    """Run the table of faults and write docs/reliability.md."""
    begin = time.monotonic()
    rows, path = all_rows(), Path(resume)
    unknown = set(names) - set(rows)
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(rows)}", param_hint="--row")
    kept = Kept(rows)
    for record in read(path):
        kept.add(record)
    if only_list:
        _list(rows, kept)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mend(path)
    chosen = [name for name in rows if not names or name in names]
    for name in chosen:
        if runner.cannot(rows[name]):
            click.echo(f"{name} is left out: {runner.cannot(rows[name])}", err=True)
    orders = {
        name: [k for k in range(min(rows[name].trials, trials or rows[name].trials)) if k not in kept.outcomes[name]]
        for name in chosen
    }
    deadline = float("inf") if seconds is None else begin + seconds
    digests = {name: digest.of_row(rows[name]) for name in chosen}
    wrong, shown, saved = 0, begin, begin
    try:
        with path.open("a") as file:
            for record in runner.run(rows, orders, jobs, deadline, cost=kept.cost()):
                name, now = record["row"], time.monotonic()
                record |= {"digest": digests[name], "date": datetime.now(UTC).date().isoformat()}
                file.write(json.dumps(record) + "\n")
                file.flush()
                kept.add(record)
                good = rows[name].good
                if good is not None and record["outcome"] not in good:
                    wrong += 1
                    click.echo(f"\n{name} {record['trial']}: {record['outcome']}: {record['detail']}", err=True)
                if now - shown > OFTEN:
                    shown = now
                    _progress(rows, chosen, kept, name, now - begin, wrong)
                if now - saved > SELDOM:
                    saved = now
                    Path(target).write_text(page.written(rows, kept))
    finally:
        Path(target).write_text(page.written(rows, kept))
    sys.exit(1 if any(page.wrong(rows[name], kept.outcomes[name].values()) for name in chosen) else 0)


def _progress(rows: dict[str, Row], chosen: list[str], kept: Kept, name: str, seconds: float, wrong: int) -> None:
    whole = sum(len(kept.outcomes[each]) >= rows[each].trials for each in chosen)
    click.echo(
        f"{seconds / 60:6.1f} min: {whole} of {len(chosen)} rows whole, {kept.trials:,} trials, {wrong:,} not as "
        f"required; now {name}, {len(kept.outcomes[name]):,} of {rows[name].trials:,}",
        err=True,
    )


def _list(rows: dict[str, Row], kept: Kept) -> None:
    cost = kept.cost()
    click.echo(f"sources {digest.of_code()}")
    for name, row in rows.items():
        stale = f"; {kept.stale[name]:,} of other sources, not counted" if kept.stale[name] else ""
        each = f"{cost[name]:.3f} s each" if name in cost else ""
        note = runner.cannot(row) or row.fault
        click.echo(f"{name:24} {len(kept.outcomes[name]):6,} of {row.trials:6,} {each:14} {note}{stale}")


if __name__ == "__main__":
    main()
