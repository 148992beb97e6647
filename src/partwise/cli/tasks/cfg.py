"""``partwise train cfg``: constituent trees."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from partwise.cli.errors import UserError
from partwise.cli.output import json_line
from partwise.cli.tasks import Data, Evaluation, NoExamples, Request, Rules, Task
from partwise.cli.tasks.labelcounts import check_tree_labels, max_labels_flag
from partwise.io import format_tree, read_trees
from partwise.metrics import ParsevalScores, parseval
from partwise.models.constituents.treebank import (
    RelativeFrequencyParser,
    TreeTransform,
    clean_tree,
    common_root,
    is_parsed,
    words_of,
)
from partwise.models.constituents.treebank.trees import postorder

#: Words of sentences whose trees are drawn in a report.
SHORTEST, LONGEST = 4, 12


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:  # generic in newer versions of click only
    _ParamType = click.ParamType


class Order(_ParamType):
    """A whole number, or "inf"."""

    name = "integer|inf"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "INTEGER|inf"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        return math.inf if str(value).lower() == "inf" else click.INT.convert(value, param, ctx)


class CfgTask(Task):
    """DATA is a file of bracketed trees, as the Penn treebank has them: (S (NP (PRP I)) (VP (VBD slept))).

    The grammar is that of the trees. Empty elements and function tags are taken off first, unless they are to be kept.
    """

    name: ClassVar[str] = "cfg"
    part: ClassVar[str] = "word"
    parameters: ClassVar[tuple[str, ...]] = (
        "vertical", "binarise", "rare", "min_count", "tuple_bits", "cost", "no_parse", "max_length",
    )  # fmt: skip
    partitioned: ClassVar[tuple[str, ...]] = ("vertical", "binarise", "rare", "min_count", "tuple_bits", "max_length")

    @property
    def estimator(self) -> type[Any]:
        from partwise.estimators import ConstituencyParser

        return ConstituencyParser

    def flags(self) -> list[click.Parameter]:
        return [
            click.Option(
                ["--horizontal"],
                type=Order(),
                default=inspect.signature(self.estimator).parameters["horizontal"].default,
                show_default=True,
                help="How many of the children before it a symbol of binarisation remembers.",
            ),
            click.Option(["--keep-traces"], is_flag=True, help="Learn empty elements (-NONE-) as words."),
            click.Option(["--keep-functions"], is_flag=True, help="Learn function tags (NP-SBJ) as part of labels."),
            max_labels_flag(),
        ]

    # files

    def read(self, path: str, settings: Mapping[str, Any], labelled: bool) -> Data:
        trees = [_cleaned(tree, settings, path, i) for i, tree in enumerate(read_trees(path), 1)]
        if not trees:
            raise NoExamples("there are no trees", path)
        return _data([words_of(tree) for tree in trees], trees, settings, path)

    def blocks(self, path: str, settings: Mapping[str, Any], size: int, labelled: bool = False) -> Iterator[Data]:
        from partwise.cli.tasks.treefiles import input_blocks

        first = 0
        for items in input_blocks(path, False if labelled else settings.get("text"), size):
            if labelled:
                trees = [_cleaned(item, settings, path, i) for i, item in enumerate(items, first + 1)]
                if trees:
                    yield _data([words_of(tree) for tree in trees], trees, settings, path, first)
                    first += len(trees)
                continue
            sentences = [
                words_of(_cleaned(item, settings, path, i)) if isinstance(item, tuple) else item
                for i, item in enumerate(items, first + 1)
            ]
            if sentences:
                yield _data(sentences, None, settings, path, first)
                first += len(sentences)
        if not first:
            raise NoExamples("there are no trees" if labelled else "there are no sentences", path)

    def words_only(self, model: Any) -> bool:
        return True

    def recall(self, model: Any) -> dict[str, Any]:
        kept = {"keep_traces": not model.traces, "keep_functions": not model.functions, "max_length": model.max_length}
        return {**super().recall(model), **kept}

    def rules(self, model: Any, path: str) -> Rules:
        from partwise.cli.tasks.treefiles import read_span_rules

        return read_span_rules(path, self.labels(model))

    # training

    def make(self, settings: Mapping[str, Any], data: Data, training: dict[str, Any]) -> Any:
        if settings.get("baseline") == "maxent":
            raise UserError("--baseline maxent is not available for trees")
        check_tree_labels(settings, data)
        kept = {"traces": not settings["keep_traces"], "functions": not settings["keep_functions"]}
        return self.estimator(horizontal=settings["horizontal"], **kept, **training)

    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        shape = dict(train.source)
        rare = int(shape.pop("rare"))
        transform = TreeTransform(**shape, traces=False, functions=False, root=common_root(train.y))
        # Without classes a word that training does not have would be an error.
        parser = RelativeFrequencyParser.of(train.y, transform, rare=max(rare, 1))
        return "relative frequencies of the same grammar", parseval(data.y, parser.predict(data.X)).f1

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        X, y = [data.X[i] for i in indices], [data.y[i] for i in indices]
        return Data(X, y, len(X), sum(map(len, X)), data.source)

    # scores

    def evaluate(self, model: Any, data: Data, guess: Any = None) -> Evaluation:
        found = parseval(data.y, model.predict(data.X) if guess is None else guess)
        scores = {
            "f1": found.f1,
            "precision": found.precision,
            "recall": found.recall,
            "exact_match": found.exact,
            "tag_accuracy": found.tag_accuracy,
        }
        details: dict[str, Any] = {"n_without_parse": found.n_failed, "crossing_brackets": found.crossing}
        if found.short is not None and found.short.n_sentences:
            details["up_to_40_words"] = {"n_examples": found.short.n_sentences, "f1": found.short.f1}
        unseen = sorted({node[0] for tree in data.y for node in postorder(tree)}.difference(self.labels(model)))
        if unseen:
            details["unseen_labels"] = unseen
        return Evaluation(scores, str(found), _by_label(found), None, details)

    def notes(self, model: Any, training: Data, evaluation: Evaluation) -> list[tuple[str, str]]:
        grammar = model.grammar_
        found = [
            (
                "grammar",
                f"{len(grammar.symbols)} symbols, {len(grammar.rules)} rules, {len(grammar.words)} words and "
                f"{len(grammar.classes)} classes of others",
            )
        ]
        failed = evaluation.details["n_without_parse"]
        if failed:
            whose = "its" if failed == 1 else "their"
            found.append(("no parse", f"{_sentences(failed)}; {whose} brackets count as missed"))
        return found

    def cards(self, evaluation: Evaluation) -> dict[str, str]:
        failed = evaluation.details["n_without_parse"]
        return {"without a parse": _sentences(failed)} if failed else {}

    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        return "f1", evaluation.scores["f1"]

    def features(self, model: Any) -> dict[str, Any]:
        return {"n_symbols": len(model.grammar_.symbols), "n_rules": len(model.grammar_.rules)}

    # predictions

    def predict(self, model: Any, data: Data, request: Request) -> Iterable[str]:
        options = {} if request.rules is None else request.rules.spans([len(words) for words in data.X], data.first)
        likely = hasattr(model, "predict_marginals")
        if request.marginals:
            if request.k_best:
                raise UserError("--k-best cannot be combined with --marginals")
            if not likely:
                raise UserError(
                    f"--marginals: the loss {model.loss!r} gives no probabilities (log and softmax-margin do)"
                )
            if not request.as_json:
                raise UserError("--marginals: a file of trees has no place for probabilities; use --json")
        if request.k_best:
            found = model.predict_k_best(data.X, request.k_best, probabilities=likely, **options)
            failed = [i for i, answers in enumerate(found) if not answers]
            flat = dict(zip(failed, model.predict([data.X[i] for i in failed]), strict=True)) if failed else {}
            _warn([i + data.first for i in failed])
            return _k_best_lines(found, flat, "probability" if likely else "score", request.as_json)
        best = model.predict(data.X, **options)
        _warn([i for i, tree in enumerate(best, data.first) if not is_parsed(tree)])
        if not request.as_json:
            return (format_tree(tree) + "\n" for tree in best)
        rows = model.predict_marginals(data.X, **options) if request.marginals else [None] * len(best)
        return (json_line(_fields(tree, spans)) for tree, spans in zip(best, rows, strict=True))

    def strongest(self, model: Any, n: int, data: Data | None = None) -> dict[str, list[tuple[str, float]]]:
        found: dict[str, list[tuple[str, float]]] = model.top_features(n).groups()
        return found

    def weights(self, model: Any) -> Iterable[tuple[str, ...]]:
        rules, *others = model.top_features(self.size(model)).labels.items()
        for name, weight in rules[1]:
            yield "rule", str(name), repr(weight)
        for symbol, rows in others:
            for name, weight in rows:
                table, _, attribute = str(name).partition(" ")
                yield table, attribute, str(symbol), repr(weight)

    def labels(self, model: Any) -> list[Any]:
        return [*model.labels_, *model.tags_]

    def examples(self, model: Any, data: Data, n: int) -> list[Any]:
        from partwise.report import draw_tree

        some = [i for i, words in enumerate(data.X) if SHORTEST <= len(words) <= LONGEST][:500] or list(
            range(min(n, len(data.X)))
        )
        guess = model.predict([data.X[i] for i in some])
        # Half of the examples have a mistake, if there are enough: they are more informative, above all wrong phrases.
        wrong = [k for k, i in enumerate(some) if guess[k] != data.y[i]]
        wrong.sort(key=lambda k: parseval([data.y[some[k]]], [guess[k]]).f1 == 1.0)
        right = [k for k, i in enumerate(some) if guess[k] == data.y[i]]
        few = min(len(wrong), max(n // 2, n - len(right)))
        return [draw_tree(guess[k], data.y[some[k]]) for k in sorted([*wrong[:few], *right[: n - few]])]


def _cleaned(tree: Any, settings: Mapping[str, Any], path: str, number: int) -> Any:
    """A tree of a file as the model sees it."""
    traces, functions = not settings.get("keep_traces"), not settings.get("keep_functions")
    return clean_tree(tree, traces=traces, functions=functions, what=f"{path}: tree {number}")


def _data(sentences: list[list[str]], trees: Any, settings: Mapping[str, Any], path: str, first: int = 0) -> Data:
    most = settings.get("max_length")
    for i, words in enumerate(sentences, first + 1):
        # Here, so that a sentence of --dev is not found too long after hours of training.
        if most and len(words) > most:
            raise UserError(f"{path}: sentence {i} has {len(words)} words, more than --max-length {most}")
    shape = {name: settings[name] for name in ("horizontal", "vertical", "binarise", "rare") if name in settings}
    return Data(sentences, trees, len(sentences), sum(map(len, sentences)), shape, first)


def _sentences(n: int) -> str:
    return f"{n} sentence{'s' * (n != 1)}"


def _by_label(found: ParsevalScores) -> list[dict[str, Any]]:
    """Precision, recall and F1 of brackets by their labels, the most frequent first."""
    return [
        {
            "label": label,
            "precision": right / predicted if predicted else 0.0,
            "recall": right / gold if gold else 0.0,
            "f1": 2 * right / (gold + predicted),
            "gold": gold,
            "found": predicted,
        }
        for label, (gold, predicted, right) in sorted(found.labels.items(), key=lambda row: (-row[1][0], row[0]))
    ]


def _warn(failed: Sequence[int]) -> None:
    if failed:
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        click.echo(f"warning: no parse for sentence {failed[0] + 1}{more}: flat trees instead", err=True)


def _fields(tree: Any, spans: Any = None) -> dict[str, Any]:
    found = {"tree": format_tree(tree), "parsed": is_parsed(tree)}
    if spans is None:
        return found
    names = ("label", "first", "last", "probability")
    rows = [(label, begin + 1, end, p) for (label, begin, end), p in spans.items()]
    return {**found, "marginals": [dict(zip(names, row, strict=True)) for row in rows]}


def _k_best_lines(
    found: Sequence[Sequence[tuple[Any, float]]], flat: Mapping[int, Any], what: str, as_json: bool
) -> Iterator[str]:
    """Trees with their ranks and values; a sentence without a parse has its flat tree, without a value."""
    for i, answers in enumerate(found):
        if as_json:
            rows = [{"tree": format_tree(each), what: value} for each, value in answers]
            yield json_line({"best": rows, "parsed": i not in flat})
            continue
        if i in flat:
            yield f"0\tno parse\t{format_tree(flat[i])}\n"
        for rank, (each, value) in enumerate(answers):
            yield f"{rank}\t{value:.6f}\t{format_tree(each)}\n"
        yield "\n"
