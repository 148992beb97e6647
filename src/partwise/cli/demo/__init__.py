"""``partwise demo``: every kind of model there is, on data that comes with the library, and a report.

A run is a function that gives a `Row`; a new estimator joins with one of its own and a line in `RUNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from partwise.cli.demo.digits import best_of_path, digit_by_digit, digit_crf, digit_kernel, digit_margin
from partwise.cli.demo.graphs import label_graphs
from partwise.cli.demo.runs import Options, Row
from partwise.cli.demo.sentences import find_phrases, parse_constituents, parse_dependencies, tag_crf, tag_maxent
from partwise.cli.flags import File
from partwise.cli.output import check_outputs, json_flag, print_json, table, threads_flag
from partwise.cli.summary import result_fields

#: The kind of model, which is a section of the report, and what is run, in this order.
RUNS: list[tuple[str, Callable[[Options], Row]]] = [
    ("Classifiers", digit_by_digit),
    ("Classifiers", best_of_path),
    ("Chains", digit_crf),
    ("Chains", digit_margin),
    ("Kernel chains", digit_kernel),
    ("Taggers", tag_maxent),
    ("Taggers", tag_crf),
    ("Segments", find_phrases),
    ("Dependency trees", parse_dependencies),
    ("Constituent trees", parse_constituents),
    ("Graphs", label_graphs),
]


@click.command("demo")
@click.option("--strings", default=300, show_default=True, help="Training strings.", type=click.IntRange(min=10))
@click.option("--sentences", default=600, show_default=True, help="Training sentences.", type=click.IntRange(min=10))
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the data and of the solvers."
)
@click.option("--tol", default=1e-3, show_default=True, help="Stop at a duality gap of this share of the objective.")
@threads_flag
@click.option(
    "--report", default="partwise-demo.html", show_default=True, type=File(), metavar="FILE.html", help="The report."
)
@json_flag
def command(strings: int, sentences: int, seed: int, tol: float, threads: int, report: str, as_json: bool) -> None:
    """Train every kind of model on built-in data, show their certificates and write a report.

    The strings are scikit-learn's handwritten digits, blurred with noise, in an order that a chain can learn and a
    digit-by-digit classifier cannot; the sentences are those of a small grammar. Test data are others than training
    data.
    """
    check_outputs(report)
    options = Options(strings, sentences, tol, threads, seed)
    rows = run(options, None if as_json else lambda name: click.echo(f"training: {name} ...", err=True))
    _report(report, rows, options)
    if as_json:
        found = [
            {
                "kind": row.kind,
                "name": row.name,
                "data": row.data,
                "tokens_right": row.tokens,
                "wholes_right": row.wholes,
                **result_fields(row.result),
            }
            for row in rows
        ]
        print_json({"runs": found, "report": report})
        return
    click.echo(_table(rows))
    click.echo("\nright: single digits or words, and whole strings or sentences, of the test data.")
    click.echo("A certificate bounds how far training is from its optimum, which lies between dual and primal.")
    click.echo(f"The report is in {report}.")


def run(options: Options, say: Callable[[str], Any] | None = None) -> list[Row]:
    """All runs."""
    rows = []
    for kind, each in RUNS:
        if say is not None:
            say((each.__doc__ or "").rstrip("."))
        rows.append(replace(each(options), kind=kind))
    return rows


def _table(rows: Sequence[Row]) -> str:
    cells = [["model", "data", "right", "whole", "primal", "dual", "gap/primal", "passes", "s"]]
    for row in rows:
        result = row.result
        certificate = [f"{result.primal:.2f}", f"{result.dual:.2f}", f"{result.relative_gap:.0e}"]
        ends = [f"{result.passes:.0f}", f"{row.seconds:.2f}"]
        cells.append([row.name, row.data, f"{row.tokens:.1%}", f"{row.wholes:.1%}", *certificate, *ends])
    return table(cells, left=2)


def _report(path: str, rows: Sequence[Row], options: Options) -> None:
    from partwise.report import write_report

    shown = [row for row in rows if row.confusion is not None][-1]
    kinds = dict.fromkeys(row.kind for row in rows)
    write_report(
        path,
        shown.result,
        title="partwise demo",
        subtitle=f"Certificate, curves, confusion and weights are those of one run: {shown.name}, {shown.data}.",
        confusion=shown.confusion,
        top_features=shown.top,
        sections=[(kind, *_section([row for row in rows if row.kind == kind])) for kind in kinds],
        settings={"strings": options.strings, "sentences": options.sentences, "tol": options.tol, "seed": options.seed},
    )


def _section(rows: Sequence[Row]) -> tuple[dict[str, Any], list[Any]]:
    """What the report says of the runs of one kind: their scores with certificates, and drawings."""
    scores = {
        f"{row.name}, {row.data}": {
            "right": f"{row.tokens:.1%}",
            "whole": f"{row.wholes:.1%}",
            "primal": row.result.primal,
            "dual": row.result.dual,
            "relative gap": f"{row.result.relative_gap:.0e}",
            "passes": f"{row.result.passes:.4g}",
        }
        for row in rows
    }
    return scores, [drawing for row in rows for drawing in row.examples]
