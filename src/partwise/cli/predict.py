"""``partwise predict``: labels for data, by a model."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import click

from partwise.cli.chain import annotate_file
from partwise.cli.errors import UserError
from partwise.cli.flags import File
from partwise.cli.loading import length_flag, load_models, refuse_model
from partwise.cli.output import check_outputs, json_flag, threads_flag, unpack_flag, warn_blank
from partwise.cli.summary import unknown_text
from partwise.cli.tasks import NoExamples, Request

#: More answers per sentence would fill the memory.
MOST = 10_000
#: Bytes of the input that are read, labelled and written at a time: about 3000 sentences of three columns.
BLOCK = 1 << 20


@click.command("predict")
@click.argument("models", type=File(), nargs=-1, required=True, metavar="MODEL...")
@click.argument("data", type=File(), metavar="INPUT")
@click.option(
    "-o", "--output", default="-", type=File(), metavar="OUT", help="Where predictions go [default: standard output]."
)
@click.option("--marginals", is_flag=True, help="Also give probabilities (losses log and softmax-margin).")
@click.option("--k-best", type=click.IntRange(1, MOST), metavar="K", help="The K best answers with their scores.")
@click.option(
    "--constraints", type=File(), metavar="FILE", help="What answers may be; docs/file_formats.md describes the file."
)
@click.option(
    "--format",
    type=click.Choice(["auto", "text", "arrow"]),
    default="auto",
    show_default=True,
    help="text: one sentence per line, tokens separated by white space (taggers that look at words alone, "
    "parsers of phrases); arrow: standard input and output are Arrow streams; auto: as the training data, or text if "
    "it can be nothing else.",
)
@click.option(
    "--column",
    "columns",
    metavar="NAME",
    multiple=True,
    help="Tables: a column that the model reads; several in its order [default: those that fit].",
)
@click.option("--keep", metavar="NAME", multiple=True, help="Tables: a column of the input to write [default: all].")
@click.option(
    "--into", default="prediction", show_default=True, metavar="NAME", help="Tables: the column of predictions."
)
@click.option(
    "--nulls",
    type=click.Choice(["error", "keep"]),
    default="error",
    show_default=True,
    help="Tables: rows without input are refused, or have no prediction either.",
)
@click.option(
    "--by",
    metavar="NAME",
    multiple=True,
    help="Tables: a row is a word, and rows that have the same in this column (in all that are named) are a sentence.",
)
@length_flag
@threads_flag
@unpack_flag
@json_flag
def command(
    models: tuple[str, ...],
    data: str,
    output: str,
    marginals: bool,
    k_best: int | None,
    constraints: str | None,
    format: str,
    columns: tuple[str, ...],
    keep: tuple[str, ...],
    into: str,
    nulls: str,
    by: tuple[str, ...],
    max_length: int | None,
    threads: int,
    as_json: bool,
) -> None:
    """Label the INPUT ("-": standard input) with a MODEL that `train` wrote, or with several in their order.

    The input is in the format of the training data; a column of labels may be there or not. A tagger that looks at
    words alone and a parser of phrases take plain text too, one sentence per line. The output of columns is the input
    with the labels as one more column, with tabs between columns; of CoNLL-U the input with the predictions in their
    columns; of trees one tree per line; of rows and CRFsuite's items one label per line. With --json it is one object
    per sentence or row, each on a line of its own.

    Several models (taggers that were trained on CoNLL-U, a parser) read CoNLL-U or plain text, one sentence per line,
    and write CoNLL-U: each fills its columns, which the next ones read.

    Parquet and Arrow files (.parquet, .arrow, .feather; extra "arrow") are read and written some rows at a time: the
    output is such a file, too, with predictions as one more column (docs/scoring.md). The input may be a folder of them
    or a pattern in quotes ("parts/*.parquet"), the output one file for all or a folder.
    """
    import numpy as np

    from partwise.cli.tasks.constraints import counting_from_one
    from partwise.io import atomic_write
    from partwise.tables import is_table

    tables = format == "arrow" or any(is_table(path) or os.path.isdir(path) for path in (data, output))
    if tables and os.path.isdir(output):
        check_outputs(os.path.join(output, os.path.basename(data)), inputs=(*models, data, constraints))
    else:
        check_outputs(output, inputs=(*models, data, constraints))
    refuse_model(data)
    loaded = load_models(models, threads, max_length)
    if not tables and (columns or keep or into != "prediction" or nulls != "error" or by):
        raise UserError("--column, --keep, --into, --nulls and --by are for Parquet and Arrow files")
    if len(loaded) > 1:
        if marginals or k_best or constraints or as_json or tables:
            raise UserError(
                "--marginals, --k-best, --constraints, --json and tables are not available for several models"
            )
        annotate_file(loaded, data, output, True if format == "text" else None, BLOCK)
        return
    model, fitted, task = loaded[0]
    if tables:
        if constraints or as_json or format == "text":
            raise UserError("--constraints, --json and --format text are not available for tables")
        if format == "auto" and "-" in (data, output):
            told = "give its name, for example -o out.parquet, or say --format arrow for a stream"
            raise UserError(f"{data}: predictions for a table are a table: {told}")
        options = {"columns": columns or None, "into": into, "nulls": nulls, "by": by or None}
        _label_table(fitted, data, output, keep, {**options, "probabilities": marginals, "k_best": k_best})
        return
    words_only = task.words_only(fitted)
    why_not = task.why_not_text(fitted, model)
    if format == "text" and not words_only:
        reason = why_not or "this model looks at more than words, or at ready-made attributes"
        raise UserError(f"--format text: {reason}")
    text = {"text": True if format == "text" else None, "why_not_text": why_not} if words_only or why_not else {}
    blocks = task.blocks(data, {**task.recall(fitted), **text}, BLOCK)
    request, n = Request(marginals, k_best, None, as_json), 0
    unknown, blank = np.zeros(2, dtype=np.int64), set[str]()
    with atomic_write(output, "w") as out:
        try:
            for block in blocks:
                if constraints and request.rules is None:
                    request = replace(request, rules=task.rules(fitted, constraints))
                with counting_from_one(constraints, task.part, block.first) if constraints else nullcontext():
                    lines = task.predict(fitted, block, request)
                out.writelines(lines)
                if not output.endswith(".gz"):  # whose bytes depend on it
                    out.flush()
                n = block.first + block.n_examples
                unknown += task.unknown(fitted, block)
                blank = task.blank(fitted) if block.first == 0 else blank & task.blank(fitted)
        except NoExamples as empty:  # a filter gives nothing for nothing
            click.echo(f"warning: {empty}", err=True)
        else:
            if request.rules is not None:
                request.rules.check(n)
    warn_blank(blank, data)
    _tell_unknown(fitted, unknown)


def _label_table(fitted: Any, data: str, output: str, keep: tuple[str, ...], options: dict[str, Any]) -> None:
    from partwise.tables import predict_file

    try:
        done = predict_file(fitted, data, output, keep=keep or None, **options)
    except ImportError as error:
        raise UserError(str(error)) from None
    _tell_unknown(fitted, done.unknown)


def _tell_unknown(fitted: Any, counts: Any) -> None:
    if counts[0]:
        click.echo(f"{unknown_text(fitted)}: {counts[0] / counts[1]:.2%} of those in the data", err=True)
