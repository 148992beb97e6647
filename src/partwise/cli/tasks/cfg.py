"""``partwise train cfg``: constituent trees."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import Flags, OrWord, Parameters, flag
from partwise.cli.output import json_line
from partwise.cli.summary import Fields
from partwise.cli.tasks import Data, Evaluation, NoExamples, Request, Rules, Strongest, estimator_named
from partwise.cli.tasks.inputs import tree_blocks
from partwise.cli.tasks.labels import MAX_LABELS, check_tree_labels
from partwise.cli.tasks.scores import label_row
from partwise.cli.tasks.structured import Answers, StructuredTask, choose_examples, unseen_labels
from partwise.io.trees import Tree, common_root, format_tree, is_parsed, postorder, read_trees
from partwise.metrics import TypeScores, parseval
from partwise.models.constituents.treebank import RelativeFrequencyParser, TreeTransform, clean_tree, words_of

if TYPE_CHECKING:
    from partwise.estimators import ConstituencyParser

#: The fewest and the most words of sentences whose trees are drawn in a report.
SHORTEST, LONGEST = 4, 12


class CfgTask(StructuredTask):
    """DATA is a file of bracketed trees, as the Penn treebank has them: (S (NP (PRP I)) (VP (VBD slept))).

    The grammar is that of the trees. Empty elements and function tags are removed first, unless flags keep them.
    """

    name: ClassVar[str] = "cfg"
    estimator = estimator_named("ConstituencyParser")
    part: ClassVar[str] = "word"
    parameters: ClassVar[tuple[str, ...]] = (
        "vertical", "binarise", "rare", "min_count", "tuple_bits", "cost", "no_parse", "max_length",
    )  # fmt: skip
    partitioned: ClassVar[tuple[str, ...]] = ("vertical", "binarise", "rare", "min_count", "tuple_bits", "max_length")

    def flags(self) -> list[click.Parameter]:
        return [
            flag(
                "--horizontal",
                "Let a symbol of binarisation remember this many of the children before it.",
                OrWord(int, "inf", math.inf),
                inspect.signature(self.estimator).parameters["horizontal"].default,
            ),
            flag("--keep-traces", "Learn empty elements (-NONE-) as words.", bool),
            flag("--keep-functions", "Learn function tags (NP-SBJ) as part of labels.", bool),
            MAX_LABELS,
        ]

    def read(self, path: str, settings: Flags, labelled: bool) -> Data:
        trees = [_cleaned(tree, settings, path, i) for i, tree in enumerate(read_trees(path), 1)]
        if not trees:
            raise NoExamples("there are no trees", path)
        return _data([words_of(tree) for tree in trees], trees, settings, path)

    def blocks(self, path: str, settings: Flags, size: int, labelled: bool = False) -> Iterator[Data]:
        first = 0
        for items in tree_blocks(path, False if labelled else settings.get("text"), size):
            found = [
                _cleaned(item, settings, path, i) if isinstance(item, tuple) else item
                for i, item in enumerate(items, first + 1)
            ]
            if found:
                sentences = [words_of(item) if isinstance(item, tuple) else item for item in found]
                yield _data(sentences, found if labelled else None, settings, path, first)
                first += len(found)
        if not first:
            raise NoExamples("there are no trees" if labelled else "there are no sentences", path)

    def words_only(self, model: ConstituencyParser) -> bool:
        return True

    def recall(self, model: ConstituencyParser) -> Fields:
        kept = {"keep_traces": not model.traces, "keep_functions": not model.functions, "max_length": model.max_length}
        return {**super().recall(model), **kept}

    def rules(self, model: ConstituencyParser, path: str) -> Rules:
        from partwise.cli.tasks.rules import read_span_rules

        return read_span_rules(path, self.labels(model))

    def make(self, settings: Flags, data: Data, training: Parameters) -> Any:
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

    def evaluate(self, model: ConstituencyParser, data: Data, guess: Any = None) -> Evaluation:
        found = parseval(data.y, model.predict(data.X) if guess is None else guess)
        scores = {"f1": found.f1, "precision": found.precision, "recall": found.recall}
        scores |= {"exact_match": found.exact, "tag_accuracy": found.tag_accuracy}
        details: Fields = {"n_without_parse": found.n_failed, "crossing_brackets": found.crossing}
        if found.short is not None and found.short.n_sentences:
            details["up_to_40_words"] = {"n_examples": found.short.n_sentences, "f1": found.short.f1}
        details |= unseen_labels((node[0] for tree in data.y for node in postorder(tree)), self.labels(model))
        rows = sorted(found.labels.items(), key=lambda row: (-row[1][0], row[0]))
        by_label = [label_row(label, TypeScores(*counts)) for label, counts in rows]
        return Evaluation(scores, str(found), by_label, None, details)

    def constraints(self, model: ConstituencyParser, data: Data, request: Request) -> Parameters:
        if request.marginals and not request.as_json:
            raise UserError("--marginals: a file of trees has no place for probabilities; use --json")
        return {} if request.rules is None else request.rules.spans([len(words) for words in data.X], data.first)

    def check_answers(self, model: ConstituencyParser, data: Data, best: Sequence[Any]) -> None:
        """Warn of sentences without a parse: they have no answers, or a flat tree as the best answer."""
        parsed = (bool(found) and (isinstance(found, list) or is_parsed(found)) for found in best)
        failed = [i for i, there in enumerate(parsed, data.first + 1) if not there]
        if failed:
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            click.echo(f"warning: no parse for sentence {failed[0]}{more}: flat trees instead", err=True)

    def answer_fields(self, data: Data, i: int, answer: Tree) -> Fields:
        return {"tree": format_tree(answer), "parsed": is_parsed(answer)}

    def marginal_fields(self, model: ConstituencyParser, row: Any) -> object:
        return [{"label": name, "first": k + 1, "last": end, "probability": p} for (name, k, end), p in row.items()]

    def answer_lines(self, model: ConstituencyParser, data: Data, i: int, answer: Tree, row: Any) -> Iterable[str]:
        return [format_tree(answer) + "\n"]

    def k_best_lines(
        self, model: ConstituencyParser, data: Data, found: Answers, what: str, as_json: bool
    ) -> Iterator[str]:
        """Yield trees with their ranks and values; a sentence without a parse has its flat tree, without a value."""
        for i, answers in enumerate(found):
            if as_json:
                rows = [{"tree": format_tree(each), what: value} for each, value in answers]
                yield json_line({"best": rows, "parsed": bool(answers)})
                continue
            if not answers:
                yield f"0\tno parse\t{format_tree(model.predict([data.X[i]])[0])}\n"
            for rank, (each, value) in enumerate(answers):
                yield f"{rank}\t{value:.6f}\t{format_tree(each)}\n"
            yield "\n"

    def notes(self, model: ConstituencyParser, training: Data, evaluation: Evaluation) -> list[tuple[str, str]]:
        grammar = model.grammar_
        text = f"{len(grammar.symbols)} symbols, {len(grammar.rules)} rules, {len(grammar.words)} words"
        found = [("grammar", f"{text} and {len(grammar.classes)} classes of others")]
        failed = evaluation.details["n_without_parse"]
        if failed:
            whose = "its" if failed == 1 else "their"
            found.append(("no parse", f"{_sentences(failed)}; {whose} brackets count as missed"))
        return found

    def cards(self, evaluation: Evaluation) -> dict[str, str]:
        failed = evaluation.details["n_without_parse"]
        return {"without a parse": _sentences(failed)} if failed else {}

    def features(self, model: ConstituencyParser) -> Fields:
        return {"n_symbols": len(model.grammar_.symbols), "n_rules": len(model.grammar_.rules)}

    def strongest(self, model: ConstituencyParser, n: int, data: Data | None = None) -> Strongest:
        return model.top_features(n).groups()

    def weights(self, model: ConstituencyParser) -> Iterable[tuple[str, ...]]:
        rules, *others = model.top_features(self.size(model)).labels.items()
        for name, weight in rules[1]:
            yield "rule", str(name), repr(weight)
        for symbol, rows in others:
            for name, weight in rows:
                table, _, attribute = str(name).partition(" ")
                yield table, attribute, str(symbol), repr(weight)

    def labels(self, model: ConstituencyParser) -> list[Any]:
        return [*model.labels_, *model.tags_]

    def examples(self, model: ConstituencyParser, data: Data, n: int) -> list[Any]:
        from partwise.report import draw_tree

        some = [i for i, words in enumerate(data.X) if SHORTEST <= len(words) <= LONGEST][:500]
        some = some or list(range(min(n, len(data.X))))
        guess = model.predict([data.X[i] for i in some])
        # wrong phrases are more informative than wrong tags
        wrong = [k for k, i in enumerate(some) if guess[k] != data.y[i]]
        wrong.sort(key=lambda k: parseval([data.y[some[k]]], [guess[k]]).f1 == 1.0)
        right = [k for k, i in enumerate(some) if guess[k] == data.y[i]]
        return [draw_tree(guess[k], data.y[some[k]]) for k in choose_examples(wrong, right, n, even=False)]


def _cleaned(tree: Tree, settings: Flags, path: str, number: int) -> Tree:
    """Return a tree of a file as the model sees it."""
    traces, functions = not settings.get("keep_traces"), not settings.get("keep_functions")
    return clean_tree(tree, traces=traces, functions=functions, what=f"{path}: tree {number}")


def _data(sentences: list[list[str]], trees: Any, settings: Flags, path: str, first: int = 0) -> Data:
    most = settings.get("max_length")
    for i, words in enumerate(sentences, first + 1):
        # Here, so that a sentence of --dev is not found too long after hours of training.
        if most and len(words) > most:
            raise UserError(f"{path}: sentence {i} has {len(words)} words, more than --max-length {most}")
    shape = {name: settings[name] for name in ("horizontal", "vertical", "binarise", "rare") if name in settings}
    return Data(sentences, trees, len(sentences), sum(map(len, sentences)), shape, first)


def _sentences(n: int) -> str:
    return f"{n} sentence{'s' * (n != 1)}"
