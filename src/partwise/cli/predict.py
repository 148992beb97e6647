"""``partwise predict``: labels for data, by a model."""

from __future__ import annotations

from contextlib import nullcontext

import click

from partwise.cli.flags import File
from partwise.cli.loading import length_flag, load_model
from partwise.cli.output import check_outputs, json_flag, threads_flag
from partwise.cli.tasks import NoExamples, Request

#: More answers a sentence than anybody reads would fill the memory.
MOST = 10_000


@click.command("predict")
@click.argument("model", type=File())
@click.argument("data", type=File(), metavar="INPUT")
@click.option(
    "-o", "--output", default="-", type=File(), metavar="OUT", help="Where predictions go [default: standard output]."
)
@click.option("--marginals", is_flag=True, help="Probabilities besides (losses log and softmax-margin).")
@click.option("--k-best", type=click.IntRange(1, MOST), metavar="K", help="The K best answers with their scores.")
@click.option(
    "--constraints", type=File(), metavar="FILE", help="What answers may be; docs/file_formats.md describes the file."
)
@length_flag
@threads_flag
@json_flag
def command(
    model: str,
    data: str,
    output: str,
    marginals: bool,
    k_best: int | None,
    constraints: str | None,
    max_length: int | None,
    threads: int,
    as_json: bool,
) -> None:
    """Label the INPUT ("-": standard input) with a MODEL that `train` wrote.

    The input is in the format of the training data; a column of labels may be there or not. The output of columns is
    the input with the labels as one more column, with tabs between columns; of CoNLL-U the input with the predictions
    in their columns; of rows and CRFsuite's items a label a line. With --json it is one object a sentence or row,
    each on a line of its own.
    """
    from partwise.cli.tasks.constraints import counting_from_one
    from partwise.io import atomic_write

    check_outputs(output, inputs=(model, data, constraints))
    fitted, task = load_model(model, threads, max_length)
    try:
        read = task.read(data, task.recall(fitted), labelled=False)
    except NoExamples as empty:  # a filter gives nothing for nothing
        click.echo(f"warning: {empty}", err=True)
        with atomic_write(output, "w"):
            return
    with counting_from_one(constraints, task.part) if constraints else nullcontext():
        lines = task.predict(fitted, read, Request(marginals, k_best, constraints, as_json))
    with atomic_write(output, "w") as out:
        out.writelines(lines)
