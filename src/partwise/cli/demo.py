"""``partwise demo``: every kind of model, on data that comes with the library, and a report.

A run is a function that returns a `Row`; a new estimator joins with a function and a line in `RUNS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click
import numpy as np
from numpy.typing import NDArray

from partwise import estimators
from partwise.cli.flags import FILE, JSON, THREADS, Flags, Parameters, flag, make_command
from partwise.cli.output import check_outputs, print_json, table
from partwise.cli.summary import Fields, result_fields
from partwise.cli.tasks import Estimator
from partwise.datasets import Dataset, Treebank, digit_strings, make_treebank
from partwise.metrics import chunk_spans, parseval
from partwise.report import draw_arcs, draw_spans, draw_tags, draw_tree, write_report
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.problem.result import Result

Fitted: TypeAlias = "Estimator | estimators.RegularizationPathCV"


@dataclass(frozen=True)
class Options:
    """Options of the demo, and the data made from them."""

    strings: int
    sentences: int
    tol: float
    jobs: int
    seed: int

    def common(self, **more: object) -> Parameters:
        return {"tol": self.tol, "n_jobs": self.jobs, "random_state": self.seed, **more}

    def digits(self, most: int = 1 << 60) -> Dataset[list[Floats], list[NDArray[np.int64]]]:
        return digit_strings(min(self.strings, most), self.seed)

    def treebank(self) -> tuple[Treebank, Treebank]:
        bank = make_treebank(self.sentences + self.sentences // 2, self.seed)
        return bank[: self.sentences], bank[self.sentences :]


@dataclass(frozen=True)
class Row:
    """One line of the demo's table; `tokens` and `wholes` (answers) that are right are fractions of 1.

    For the report: drawings (`examples`), a confusion matrix, the strongest features (`top`), a section (`kind`).
    """

    name: str
    data: str
    tokens: float
    wholes: float
    seconds: float
    model: Fitted = field(repr=False)
    examples: Sequence[Any] = field(default=(), repr=False)
    confusion: Any = field(default=None, repr=False)
    top: Any = field(default=None, repr=False)
    kind: str = ""

    @property
    def result(self) -> Result:
        best: Any = getattr(self.model, "best_estimator_", self.model)
        return cast("Result", best.result_)


def compare(predicted: Sequence[Any], gold: Sequence[Any]) -> tuple[float, float]:
    """Return the shares of tokens and of whole answers that are right."""
    right = [np.asarray(a) == np.asarray(b) for a, b in zip(predicted, gold, strict=True)]
    return float(np.concatenate(right).mean()), float(np.mean([all(row) for row in right]))


def _fit(model: Fitted, X: object, y: object) -> float:
    """Fit an estimator, and return how many seconds that took."""
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def _informative(predicted: Sequence[Any], gold: Sequence[Any]) -> list[int]:
    """Return the numbers of all sentences; those with a mistake and of a length that is easy to draw come first."""
    return sorted(range(len(gold)), key=lambda i: (list(predicted[i]) == list(gold[i]), abs(len(gold[i]) - 9), i))


def _single_digits(name: str, options: Options, model: Fitted) -> Row:
    data = options.digits()
    seconds = _fit(model, np.concatenate(data.X_train), np.concatenate(data.y_train))
    scores = compare([model.predict(x) for x in data.X_test], data.y_test)
    return Row(name, "digit strings", *scores, seconds, model)


def _digit_by_digit(options: Options) -> Row:
    return _single_digits("maxent classifier", options, estimators.MaxentClassifier(**options.common(C=0.1)))


def _best_of_path(options: Options) -> Row:
    one = estimators.MaxentClassifier(**options.common())
    model = estimators.RegularizationPathCV(one, Cs=[0.01, 0.1, 1.0], cv=3)
    return replace(_single_digits("", options, model), name=f"same, C = {model.C_:g} chosen")


def _strings(
    name: str, options: Options, model: Fitted, read: Callable[[Floats], Any] = np.asarray, most: int = 1 << 60
) -> Row:
    """Fit a model to at most `most` whole strings; `read` turns the pictures of a string into the model's input."""
    data = options.digits(most)
    X, X_test = ([read(x) for x in part] for part in (data.X_train, data.X_test))
    seconds = _fit(model, X, data.y_train)
    return Row(name, "digit strings", *compare(model.predict(X_test), data.y_test), seconds, model)


def _digit_chain(name: str, loss: str, options: Options) -> Row:
    return _strings(name, options, estimators.SequenceTagger(**options.common(loss=loss, C=0.1)))


def _digit_kernel(options: Options) -> Row:
    model = estimators.SequenceTagger(**options.common(loss="log", C=1.0, kernel="rbf", gamma=0.03))
    return _strings(f"RBF kernel CRF, {min(options.strings, 100)} strings", options, model, most=100)


def _label_graphs(options: Options) -> Row:
    def graph(x: Floats) -> tuple[Floats, Ints, None, list[str]]:
        """Return (pictures, edges, no features of edges, types of edges)."""
        edges = [(t, t + step) for step in (1, 2) for t in range(len(x) - step)]
        return x, np.array(edges, dtype=np.int64).reshape(-1, 2), None, [f"{b - a} apart" for a, b in edges]

    return _strings("graph CRF, two neighbours", options, estimators.GraphLabeler(**options.common(C=0.1)), graph)


def _tag_words(name: str, options: Options, **parameters: object) -> Row:
    from partwise.cli.tasks.scores import evaluate_sequences
    from partwise.cli.tasks.tag import TagTask

    train, test = options.treebank()
    model = estimators.SequenceTagger(template="pos", loss="log", **options.common(**parameters))
    seconds = _fit(model, train.words, train.tags)
    predicted = model.predict(test.words)
    order = _informative(predicted, test.tags)[:3]
    examples = [draw_tags(test.words[i], predicted[i], gold=test.tags[i]) for i in order]
    confusion = evaluate_sequences(test.tags, predicted, chunks=False).confusion
    scores = compare(predicted, test.tags)
    return Row(name, "treebank, tags", *scores, seconds, model, examples, confusion, TagTask().strongest(model, 8))


def _find_phrases(options: Options) -> Row:
    train, test = options.treebank()
    model = estimators.SegmentTagger(template="pos", **options.common())
    seconds = _fit(model, train.words, train.chunks)
    predicted = model.predict(test.words)
    order = _informative(predicted, test.chunks)[:3]
    spans = zip(order, model.predict_spans([test.words[i] for i in order]), strict=True)
    examples = [draw_spans(test.words[i], own, gold=chunk_spans(test.chunks[i])) for i, own in spans]
    return Row("segment tagger", "treebank, chunks", *compare(predicted, test.chunks), seconds, model, examples)


def _parse_dependencies(options: Options) -> Row:
    def pairs(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
        return [list(zip(*rows, strict=True)) for rows in zip(one, other, strict=True)]

    train, test = options.treebank()
    model = estimators.DependencyParser(**options.common())
    seconds = _fit(model, pairs(train.words, train.tags), pairs(train.heads, train.labels))
    found = [list(zip(*tree, strict=True)) for tree in model.predict(pairs(test.words, test.tags))]
    heads = [list(tree[0]) for tree in found]
    order = _informative(heads, test.heads)[:3]
    examples = [draw_arcs(test.words[i], heads[i], labels=list(found[i][1]), gold_heads=test.heads[i]) for i in order]
    return Row("dependency parser", "treebank, heads", *compare(heads, test.heads), seconds, model, examples)


def _parse_constituents(options: Options) -> Row:
    train, test = options.treebank()
    model = estimators.ConstituencyParser(**options.common())
    seconds = _fit(model, train.words, train.trees)
    found = model.predict(test.words)
    scores, order = parseval(test.trees, found), _informative(found, test.trees)
    short = [i for i in order if len(test.words[i]) <= 10] or order
    examples = [draw_tree(found[i], test.trees[i]) for i in short[:2]]
    return Row("constituency parser", "treebank, phrases (F1)", scores.f1, scores.exact, seconds, model, examples)


#: The runs in their order: the kind of model, which is a section of the report, what is trained, and the function.
RUNS: list[tuple[str, str, Callable[[Options], Row]]] = [
    ("Classifiers", "a classifier that reads each digit by itself", _digit_by_digit),
    ("Classifiers", "the same classifier with C chosen by cross-validation", _best_of_path),
    ("Chains", "a conditional random field", partial(_digit_chain, "CRF chain", "log")),
    ("Chains", "a max-margin chain", partial(_digit_chain, "max-margin chain", "hinge")),
    ("Kernel chains", "a chain that compares pictures by a kernel", _digit_kernel),
    ("Taggers", "a tagger of parts of speech, one after another", partial(_tag_words, "maxent tagger", model="maxent")),
    ("Taggers", "a tagger of parts of speech by a conditional random field", partial(_tag_words, "CRF tagger")),
    ("Segments", "a model of phrases as segments", _find_phrases),
    ("Dependency trees", "a parser of dependency trees", _parse_dependencies),
    ("Constituent trees", "a parser of constituent trees", _parse_constituents),
    ("Graphs", "a model of digits that are joined with the next two", _label_graphs),
]


def demo(flags: Flags) -> None:
    """Train every kind of model on built-in data, show their certificates and write a report.

    The strings are scikit-learn's handwritten digits, blurred with noise, in an order that a chain can learn and a
    digit-by-digit classifier cannot; the sentences are those of a small grammar. Test data differ from training data.
    """
    report, as_json = flags["report"], flags["as_json"]
    check_outputs(report)
    options = Options(*(flags[name] for name in ("strings", "sentences", "tol", "threads", "seed")))
    rows = run(options, None if as_json else lambda name: click.echo(f"training: {name} ...", err=True))
    _report(report, rows, options)
    if as_json:
        names = {"kind": "kind", "name": "name", "data": "data", "tokens_right": "tokens", "wholes_right": "wholes"}
        found = [{k: getattr(row, name) for k, name in names.items()} | result_fields(row.result) for row in rows]
        print_json({"runs": found, "report": report})
        return
    click.echo(_table(rows))
    click.echo("\nright: single digits or words, and whole strings or sentences, of the test data.")
    click.echo("A certificate bounds how far training is from its optimum, which lies between dual and primal.")
    click.echo(f"The report is in {report}.")


def run(options: Options, say: Callable[[str], object] | None = None) -> list[Row]:
    """Return the rows of all runs; `say` is told what is trained."""
    rows = []
    for kind, what, train in RUNS:
        if say is not None:
            say(what)
        rows.append(replace(train(options), kind=kind))
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
    """Write the report: sections by kind, and the certificate, curves and weights of one run."""
    shown = [row for row in rows if row.confusion is not None][-1]
    sections: dict[str, tuple[Fields, list[Any]]] = {}
    for row in rows:
        scores, drawings = sections.setdefault(row.kind, ({}, []))
        scores[f"{row.name}, {row.data}"] = {
            "right": f"{row.tokens:.1%}",
            "whole": f"{row.wholes:.1%}",
            "primal": row.result.primal,
            "dual": row.result.dual,
            "relative gap": f"{row.result.relative_gap:.0e}",
            "passes": f"{row.result.passes:.4g}",
        }
        drawings.extend(row.examples)
    write_report(
        path,
        shown.result,
        title="partwise demo",
        subtitle=f"Certificate, curves, confusion and weights are those of one run: {shown.name}, {shown.data}.",
        confusion=shown.confusion,
        top_features=shown.top,
        sections=[(kind, *section) for kind, section in sections.items()],
        settings={"strings": options.strings, "sentences": options.sentences, "tol": options.tol, "seed": options.seed},
    )


command = make_command(
    "demo",
    demo,
    flag("--strings", "Train on N strings.", click.IntRange(10), 300),
    flag("--sentences", "Train on N sentences.", click.IntRange(10), 600),
    flag("--seed", "Seed the data and the solvers.", click.IntRange(0), 0),
    flag("--tol", "Stop at a duality gap of this share of the objective.", float, 1e-3),
    THREADS,
    flag("--report=FILE.html", "Write the report to this file.", FILE, "partwise-demo.html"),
    JSON,
)
