"""Several models in one command: each fills its columns of CoNLL-U, which the next ones read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.loading import Loaded
from partwise.cli.output import peak_memory, print_json, warn_blank
from partwise.cli.summary import unknown_text
from partwise.cli.tasks import NoExamples
from partwise.cli.tasks.conllublocks import sentence_blocks
from partwise.conllu import ConlluPipeline
from partwise.io import ConlluSentence, atomic_write, read_conllu


def pipeline_of(loaded: Sequence[Loaded]) -> ConlluPipeline:
    """The models as a pipeline. UserError if they do not fit."""
    try:
        return ConlluPipeline([(each.path, each.model) for each in loaded])
    except ValueError as error:
        raise UserError(str(error)) from None


def annotate_file(loaded: Sequence[Loaded], data: str, output: str, text: bool | None, size: int) -> None:
    """Write the sentences of a file, CoNLL-U or plain text, with all columns that the models fill."""
    pipeline = pipeline_of(loaded)
    unknown = np.zeros((len(loaded), 2), dtype=np.int64)
    blank: list[set[str]] = []
    with atomic_write(output, "w") as out:
        try:
            for sentences in sentence_blocks(data, size, text=text, why_not_text=pipeline.why_not_text()):
                if not blank:
                    pipeline.check_filled(sentences)
                for sentence in pipeline.run(sentences):
                    out.writelines(sentence.lines)
                if not output.endswith(".gz"):  # whose bytes depend on it
                    out.flush()
                unknown += [each.model.unknown_counts_ for each in loaded]
                now = [each.task.blank(each.model) for each in loaded]
                blank = [old & new for old, new in zip(blank or now, now, strict=True)]
        except NoExamples as empty:  # a filter gives nothing for nothing
            click.echo(f"warning: {empty}", err=True)
    for columns in blank:
        warn_blank(columns, data)
    for each, counts in zip(loaded, unknown, strict=True):
        if counts[0]:
            share = counts[0] / counts[1]
            click.echo(f"{each.path}: {unknown_text(each.model)}: {share:.2%} of those in the data", err=True)


def evaluate_chain(loaded: Sequence[Loaded], gold: str, as_json: bool) -> None:
    """Score every model on what the models before it fill; columns that none fills are the file's own."""
    begin = time.perf_counter()
    pipeline = pipeline_of(loaded)
    sentences: list[ConlluSentence] = list(read_conllu(gold))
    if not sentences:
        raise NoExamples("there are no sentences", gold)
    pipeline.check_filled(sentences)
    rows: list[dict[str, Any]] = []
    now = sentences
    for each, step in zip(loaded, pipeline.steps, strict=True):
        data = each.task.of_conllu(each.model, now, sentences, gold)
        found = each.task.evaluate(each.model, data)
        fills = ", ".join(column.name for column in step.fills)
        rows.append({"model": each.path, "task": each.task.name, "fills": fills, **found.scores, **found.details})
        if not as_json:
            score, value = each.task.main_score(found)
            heading = f"{each.path}: {fills}; {score} {value:.2%}"
            click.echo(f"{heading}\n{'-' * len(heading)}\n{found.table}\n")
        now = step.annotate(now)
    if as_json:
        fields = {"n_examples": len(sentences), "n_tokens": sum(map(len, sentences))}
        print_json({**fields, "seconds": time.perf_counter() - begin, "peak_memory": peak_memory(), "models": rows})
