"""Models that commands load: single ones, and several that fill columns of CoNLL-U one after another."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.output import peak_memory, print_json, warn_blank
from partwise.cli.summary import Fields, unknown_text
from partwise.cli.tasks import Estimator, NoExamples, Task, task_of
from partwise.io.files import atomic_write
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.io.conllu import ConlluSentence
    from partwise.tables.conllu import ConlluPipeline


class Loaded(NamedTuple):
    """A model, ready to predict, its task, and its file."""

    path: str
    model: Estimator
    task: Task


def refuse_model(path: str) -> None:
    """Raise UserError if a file that is to be read as data is a model: then the data's name was forgotten."""
    if not os.path.isfile(path):  # standard input and pipes can be read only once; a missing file is reported later
        return
    with open(path, "rb") as file:
        start = file.read(10)
    # the length of a header in JSON; a text would give a length larger than any file
    if start[8:] == b'{"' and int.from_bytes(start[:8], "little") < os.path.getsize(path):
        raise UserError(f"{path}: is a model; the input is missing")


def load_models(paths: Sequence[str], threads: int, max_length: int | None) -> list[Loaded]:
    """Load models in their order, those of a pipeline one by one; of several, `max_length` is for parsers."""
    from partwise import load
    from partwise.tables.conllu import ConlluPipeline

    found: list[tuple[str, Estimator]] = []
    for path in paths:
        model = load(path)
        several = isinstance(model, ConlluPipeline)
        found += [(f"{path} ({step.name})", step.model) for step in model.steps] if several else [(path, model)]
    limits = [max_length if len(found) == 1 or task_of(model).name == "dep" else None for _, model in found]
    return [Loaded(path, *_ready(model, threads, most)) for (path, model), most in zip(found, limits, strict=True)]


def load_model(path: str, threads: int, max_length: int | None) -> tuple[Estimator, Task]:
    """Load a model, ready to predict, and its task."""
    return _ready(load_one(path, path), threads, max_length)


def load_one(path: str, what: str) -> Estimator:
    """Load a model that is not a pipeline; `what` begins the UserError for a pipeline."""
    from partwise import load
    from partwise.tables.conllu import ConlluPipeline

    found: Estimator | ConlluPipeline = load(path)
    if isinstance(found, ConlluPipeline):
        raise UserError(f"{what}: is a pipeline, which this command does not take; give one of its models")
    return found


def _ready(fitted: Estimator, threads: int, max_length: int | None) -> tuple[Estimator, Task]:
    task = task_of(fitted)
    fitted.n_jobs = threads
    if max_length is not None:
        if "max_length" not in fitted.get_params():
            raise UserError(f"--max-length: sentences of any length are taken by a model of task {task.name!r}")
        fitted.set_params(max_length=max_length)
    return fitted, task


def _pipeline_of(loaded: Sequence[Loaded]) -> ConlluPipeline:
    """Return the models as a pipeline; raise UserError if they do not fit."""
    from partwise.tables.conllu import ConlluPipeline

    try:
        return ConlluPipeline([(each.path, each.model) for each in loaded])
    except ValueError as error:
        raise UserError(str(error)) from None


def write_predictions(
    loaded: Sequence[Loaded], data: str, output: str, blocks: Iterable[tuple[Any, Iterable[str]]]
) -> None:
    """Write the lines of a file's blocks; then warn of columns blank in all of them, and of unknown features."""
    unknown = np.zeros((len(loaded), 2), dtype=np.int64)
    blank: list[set[str]] = []
    with atomic_write(output, "w") as out:
        try:
            for block, lines in blocks:
                out.writelines(lines)
                if not output.endswith(".gz"):  # a flush changes the bytes of gzip
                    out.flush()
                unknown += [each.task.unknown(each.model, block) for each in loaded]
                now = [each.task.blank(each.model) for each in loaded]
                blank = [old & new for old, new in zip(blank or now, now, strict=True)]
        except NoExamples as empty:  # a filter gives nothing for nothing
            click.echo(f"warning: {empty}", err=True)
    for columns in blank:
        warn_blank(columns, data)
    for each, counts in zip(loaded, unknown, strict=True):
        warn_unknown(each.model, counts, f"{each.path}: " if len(loaded) > 1 else "")


def annotated(
    loaded: Sequence[Loaded], data: str, text: bool | None, size: int
) -> Iterator[tuple[list[ConlluSentence], Iterable[str]]]:
    """Yield the sentences of a file, CoNLL-U or plain text, with their lines, whose columns the models fill."""
    from partwise.cli.tasks.inputs import sentence_blocks

    pipeline = _pipeline_of(loaded)
    settings = {"text": text, "why_not_text": pipeline.why_not_text()}
    for number, sentences in enumerate(sentence_blocks(data, size, settings)):
        if number == 0:
            pipeline.check_filled(sentences)
        yield sentences, chain.from_iterable(sentence.lines for sentence in pipeline.run(sentences))


def warn_unknown(model: Estimator, counts: Sequence[int] | Ints, where: str = "") -> None:
    """Say on standard error how many of the features in the data a model does not know, if there are any."""
    if counts[0]:
        click.echo(f"{where}{unknown_text(model)}: {counts[0] / counts[1]:.2%} of those in the data", err=True)


def evaluate_pipeline(loaded: Sequence[Loaded], gold: str, as_json: bool) -> None:
    """Score every model on the columns that the models before it fill; other columns are the file's own."""
    from partwise.io.conllu import read_conllu

    begin = time.perf_counter()
    pipeline = _pipeline_of(loaded)
    sentences: list[ConlluSentence] = list(read_conllu(gold))
    if not sentences:
        raise NoExamples("there are no sentences", gold)
    pipeline.check_filled(sentences)
    rows: list[Fields] = []
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
