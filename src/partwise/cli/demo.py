"""``partwise demo``: every estimator there is, on data that comes with the library, and a report.

A run is a function listed in `RUNS`, which gives a `Row`; a new estimator joins with one of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

from partwise.cli.flags import File
from partwise.cli.output import check_outputs, json_flag, print_json, table, threads_flag
from partwise.cli.summary import result_fields
from partwise.cli.tasks.labels import evaluate_sequences
from partwise.cli.tasks.tag import TagTask
from partwise.datasets import Treebank, digit_strings, make_treebank
from partwise.result import Result


@dataclass(frozen=True)
class Options:
    """What the demo was asked for, and the data made from it."""

    strings: int
    sentences: int
    tol: float
    jobs: int
    seed: int

    def common(self, **more: Any) -> dict[str, Any]:
        """Parameters of every estimator."""
        return {"tol": self.tol, "n_jobs": self.jobs, "random_state": self.seed, **more}

    def digits(self) -> Any:
        return digit_strings(self.strings, self.seed)

    def treebank(self) -> tuple[Treebank, Treebank]:
        """Training and test sentences."""
        bank = make_treebank(self.sentences + self.sentences // 2, self.seed)
        return bank[: self.sentences], bank[self.sentences :]


@dataclass(frozen=True)
class Row:
    """One line of the demo's table: tokens and whole answers that are right, as fractions of 1."""

    name: str
    data: str
    tokens: float
    wholes: float
    seconds: float
    result: Result
    model: Any = field(repr=False)
    examples: Sequence[Any] = field(default=(), repr=False)
    confusion: Any = field(default=None, repr=False)
    top: Any = field(default=None, repr=False)


def _compare(predicted: Sequence[Any], gold: Sequence[Any]) -> tuple[float, float]:
    right = [np.asarray(a) == np.asarray(b) for a, b in zip(predicted, gold, strict=True)]
    return float(np.concatenate(right).mean()), float(np.mean([all(row) for row in right]))


def _timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    model = fit()
    return model, time.perf_counter() - begin


def digit_by_digit(options: Options) -> Row:
    """A classifier that reads each digit by itself."""
    from partwise.estimators import MaxentClassifier

    data = options.digits()
    X, y = np.concatenate(data.X_train), np.concatenate(data.y_train)
    model, seconds = _timed(lambda: MaxentClassifier(**options.common(C=0.1)).fit(X, y))
    scores = _compare([model.predict(x) for x in data.X_test], data.y_test)
    return Row("maxent classifier", "digit strings", *scores, seconds, model.result_, model)


def best_of_path(options: Options) -> Row:
    """The same with C chosen by cross-validation."""
    from partwise.estimators import MaxentClassifier, RegularizationPathCV

    data = options.digits()
    X, y = np.concatenate(data.X_train), np.concatenate(data.y_train)
    search = RegularizationPathCV(MaxentClassifier(**options.common()), Cs=[0.01, 0.1, 1.0], cv=3)
    model, seconds = _timed(lambda: search.fit(X, y))
    scores = _compare([model.predict(x) for x in data.X_test], data.y_test)
    result = model.best_estimator_.result_
    return Row(f"same, C = {model.C_:g} chosen", "digit strings", *scores, seconds, result, model)


def _digit_chain(name: str, options: Options, **parameters: Any) -> Row:
    from partwise.estimators import SequenceTagger

    data = options.digits()
    tagger = SequenceTagger(**options.common(**parameters))
    model, seconds = _timed(lambda: tagger.fit(data.X_train, data.y_train))
    scores = _compare(model.predict(data.X_test), data.y_test)
    return Row(name, "digit strings", *scores, seconds, model.result_, model)


def digit_crf(options: Options) -> Row:
    """A conditional random field."""
    return _digit_chain("CRF chain", options, loss="log", C=0.1)


def digit_margin(options: Options) -> Row:
    """A max-margin chain."""
    return _digit_chain("max-margin chain", options, loss="hinge", C=0.1)


def digit_kernel(options: Options) -> Row:
    """A chain that compares pictures by a kernel."""
    few = Options(min(options.strings, 100), options.sentences, options.tol, options.jobs, options.seed)
    return _digit_chain(f"RBF kernel CRF, {few.strings} strings", few, loss="log", C=1.0, kernel="rbf", gamma=0.03)


def _tagger(name: str, options: Options, **parameters: Any) -> Row:
    from partwise.estimators import SequenceTagger

    train, test = options.treebank()
    tagger = SequenceTagger(template="pos", **options.common(**parameters))
    model, seconds = _timed(lambda: tagger.fit(train.words, train.tags))
    predicted = model.predict(test.words)
    scores = _compare(predicted, test.tags)
    seen = evaluate_sequences(test.tags, predicted, chunks=False)
    return Row(
        name,
        "treebank, tags",
        *scores,
        seconds,
        model.result_,
        model,
        examples=_drawn(test, predicted),
        confusion=seen.confusion,
        top=TagTask().strongest(model, 8),
    )


def _drawn(test: Treebank, predicted: list[list[str]]) -> list[Any]:
    from partwise.report import draw_tags

    order = _telling(predicted, test.tags)
    return [draw_tags(test.words[i], predicted[i], gold=test.tags[i]) for i in order[:3]]


def tag_crf(options: Options) -> Row:
    """Parts of speech by a conditional random field."""
    return _tagger("CRF tagger", options, loss="log")


def tag_maxent(options: Options) -> Row:
    """Parts of speech, one after another."""
    return _tagger("maxent tagger", options, loss="log", model="maxent")


def find_phrases(options: Options) -> Row:
    """Phrases as segments."""
    from partwise.estimators import SegmentTagger
    from partwise.metrics import chunk_spans
    from partwise.report import draw_spans

    train, test = options.treebank()
    tagger = SegmentTagger(template="pos", **options.common())
    model, seconds = _timed(lambda: tagger.fit(train.words, train.chunks))
    predicted = model.predict(test.words)
    order = _telling(predicted, test.chunks)[:3]
    spans = model.predict_spans([test.words[i] for i in order])
    examples = [
        draw_spans(test.words[i], own, gold=chunk_spans(test.chunks[i])) for i, own in zip(order, spans, strict=True)
    ]
    scores = _compare(predicted, test.chunks)
    return Row("segment tagger", "treebank, chunks", *scores, seconds, model.result_, model, examples)


def parse_dependencies(options: Options) -> Row:
    """Dependency trees."""
    from partwise.estimators import DependencyParser
    from partwise.report import draw_arcs

    train, test = options.treebank()
    words = [
        [list(zip(*rows, strict=True)) for rows in zip(part.words, part.tags, strict=True)] for part in (train, test)
    ]
    trees = [list(zip(*rows, strict=True)) for rows in zip(train.heads, train.labels, strict=True)]
    parser = DependencyParser(**options.common())
    model, seconds = _timed(lambda: parser.fit(words[0], trees))
    found = [list(zip(*tree, strict=True)) for tree in model.predict(words[1])]
    heads = [list(tree[0]) for tree in found]
    order = _telling(heads, test.heads)
    examples = [
        draw_arcs(test.words[i], heads[i], labels=list(found[i][1]), gold_heads=test.heads[i]) for i in order[:3]
    ]
    scores = _compare(heads, test.heads)
    return Row("dependency parser", "treebank, heads", *scores, seconds, model.result_, model, examples)


def _telling(predicted: Sequence[Any], gold: Sequence[Any]) -> list[int]:
    """Sentences in the order of what they tell: those with a mistake and of a length that can be drawn first."""
    return sorted(range(len(gold)), key=lambda i: (list(predicted[i]) == list(gold[i]), abs(len(gold[i]) - 9), i))


#: What is run, in this order.
RUNS: list[Callable[[Options], Row]] = [
    digit_by_digit,
    best_of_path,
    digit_crf,
    digit_margin,
    digit_kernel,
    find_phrases,
    parse_dependencies,
    tag_maxent,
    tag_crf,
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
    """Train every estimator on built-in data, show their certificates and write a report.

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
    for each in RUNS:
        if say is not None:
            say((each.__doc__ or "").rstrip("."))
        rows.append(each(options))
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

    last = rows[-1]
    table_of_runs = {
        f"{row.name}, {row.data}": {
            "right": row.tokens,
            "whole": row.wholes,
            "primal": row.result.primal,
            "dual": row.result.dual,
            "passes": row.result.passes,
        }
        for row in rows
    }
    write_report(
        path,
        last.result,
        title="partwise demo",
        subtitle=f"Certificate and curves are those of the last run: {last.name}, {last.data}.",
        scores={"every run": table_of_runs},
        confusion=last.confusion,
        top_features=last.top,
        examples=[drawing for row in rows for drawing in row.examples],
        settings={"strings": options.strings, "sentences": options.sentences, "tol": options.tol, "seed": options.seed},
    )
