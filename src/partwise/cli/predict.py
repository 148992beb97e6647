"""``partwise predict``: labels for data, by a model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, JSON, LENGTH, THREADS, UNPACK, Flags, argument, flag, make_command
from partwise.cli.models import Loaded, annotated, load_models, refuse_model, warn_unknown, write_predictions
from partwise.cli.output import check_outputs
from partwise.cli.tasks import Data, Request

#: More answers per sentence would fill the memory.
MOST = 10_000
#: Bytes of the input that are read, labelled and written at a time: about 3000 sentences of three columns.
BLOCK = 1 << 20


def predict(flags: Flags) -> None:
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
    from partwise.tables import is_table

    models, data, output, format = flags["models"], flags["data"], flags["output"], flags["format"]
    marginals, k_best, constraints = flags["marginals"], flags["k_best"], flags["constraints"]
    tables = format == "arrow" or any(is_table(path) or os.path.isdir(path) for path in (data, output))
    target = os.path.join(output, os.path.basename(data)) if tables and os.path.isdir(output) else output
    check_outputs(target, inputs=(*models, data, constraints))
    refuse_model(data)
    loaded = load_models(models, flags["threads"], flags["max_length"])
    options = {name: flags[name] or None for name in ("columns", "keep", "into", "nulls", "by")}
    if not tables and options != {"columns": None, "keep": None, "into": "prediction", "nulls": "error", "by": None}:
        raise UserError("--column, --keep, --into, --nulls and --by are for Parquet and Arrow files")
    if len(loaded) > 1:
        if marginals or k_best or constraints or flags["as_json"] or tables:
            raise UserError(
                "--marginals, --k-best, --constraints, --json and tables are not available for several models"
            )
        blocks = annotated(loaded, data, True if format == "text" else None, BLOCK)
        write_predictions(loaded, data, output, blocks)
    elif tables:
        if constraints or flags["as_json"] or format == "text":
            raise UserError("--constraints, --json and --format text are not available for tables")
        if format == "auto" and "-" in (data, output):
            told = "give its name, for example -o out.parquet, or say --format arrow for a stream"
            raise UserError(f"{data}: predictions for a table are a table: {told}")
        from partwise.tables import predict_file

        try:
            done = predict_file(loaded[0].model, data, output, **options, probabilities=marginals, k_best=k_best)
        except ImportError as error:
            raise UserError(str(error)) from None
        warn_unknown(loaded[0].model, done.unknown)
    else:
        request = Request(marginals, k_best, None, flags["as_json"])
        write_predictions(loaded, data, output, _predictions(loaded[0], data, format == "text", constraints, request))


def _predictions(
    loaded: Loaded, data: str, text: bool, constraints: str | None, request: Request
) -> Iterator[tuple[Data, Iterable[str]]]:
    """Yield the blocks of a file, each with the lines of its predictions."""
    from partwise.cli.tasks.rules import counting_from_one

    name, model, task = loaded
    words_only, why_not = task.words_only(model), task.why_not_text(model, name)
    if text and not words_only:
        reason = why_not or "this model looks at more than words, or at ready-made attributes"
        raise UserError(f"--format text: {reason}")
    settings = task.recall(model)
    if words_only or why_not:
        settings |= {"text": text or None, "why_not_text": why_not}
    n = 0
    for block in task.blocks(data, settings, BLOCK):
        if constraints and request.rules is None:
            request = replace(request, rules=task.rules(model, constraints))
        with counting_from_one(constraints, task.part, block.first) if constraints else nullcontext():
            lines = task.predict(model, block, request)
        yield block, lines
        n = block.first + block.n_examples
    if request.rules is not None:
        request.rules.check(n)


command = make_command(
    "predict",
    predict,
    argument("models", nargs=-1, required=True, metavar="MODEL..."),
    argument("data", metavar="INPUT"),
    flag("-o --output=OUT", "Write predictions to this file; -: standard output.", FILE, "-"),
    flag("--marginals", "Also give probabilities (losses log and softmax-margin).", bool),
    flag("--k-best=K", "Write the K best answers with their scores.", click.IntRange(1, MOST)),
    flag("--constraints", "Keep to the rules in this file (docs/file_formats.md).", FILE),
    flag(
        "--format",
        "Read INPUT as text: one sentence per line, tokens separated by white space (taggers that read words alone, "
        "parsers of phrases); as arrow: standard input and output are Arrow streams; auto: as the training data, or "
        "text if it can be nothing else.",
        ("auto", "text", "arrow"),
        "auto",
    ),
    flag(
        "--column columns=NAME",
        "Tables: read this column; several in the model's order [default: those that fit].",
        multiple=True,
    ),
    flag("--keep=NAME", "Tables: write this input column, too [default: all].", multiple=True),
    flag("--into=NAME", "Tables: write predictions to this column.", default="prediction"),
    flag("--nulls", "Tables: refuse rows without input, or leave their predictions empty.", ("error", "keep"), "error"),
    flag(
        "--by=NAME",
        "Tables: join the rows, one per word, that have the same value in this column (in all that are named).",
        multiple=True,
    ),
    LENGTH,
    THREADS,
    UNPACK,
    JSON,
)
