"""``partwise train dep``: dependency trees."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import File
from partwise.cli.output import json_line, rank_text
from partwise.cli.summary import certificate_lines, result_fields
from partwise.cli.tasks import Data, Evaluation, NoExamples, Request, Rules, Task
from partwise.cli.tasks.conllublocks import looks_like_conllx, sentence_blocks
from partwise.cli.tasks.depscores import by_relation, confused
from partwise.cli.tasks.predictedtags import INPUTS, tagger_paths, tags_note, with_predicted_tags
from partwise.conllu import ConlluPipeline
from partwise.features.arcs import ArcTemplate
from partwise.io import ConlluReader, ConlluSentence, FormatError, read_text
from partwise.io.conllu import MISC
from partwise.metrics import AttachmentScores, attachment_scores, calibration

#: Sentences whose features are named in a report.
NAMED = 100
#: The share of gold trees with crossing arcs above which another structure is suggested.
MANY_CROSSING = 0.05


class DepTask(Task):
    """DATA is a CoNLL-U or CoNLL-X file with heads, and mostly with relations, which are learnt by a second classifier.

    Columns form, lemma, upos, xpos and feats are what the parser looks at.
    """

    name: ClassVar[str] = "dep"
    part: ClassVar[str] = "word"
    parameters: ClassVar[tuple[str, ...]] = (
        "structure", "single_root", "non_projective", "label_C", "inputs", "features", "hash_bits", "min_count",
        "max_length", "memory_limit",
    )  # fmt: skip
    partitioned: ClassVar[tuple[str, ...]] = tuple(name for name in parameters if name != "label_C")
    formats: ClassVar[tuple[str, ...]] = ("auto", "conllu", "conllx")
    report_notes: ClassVar[Mapping[str, str]] = {
        "confusion": "Of words whose head is right.",
        "weights": "A feature is what is seen at the head | at the modifier | between them; "
        "upos+1 is of the word after it, upos-1 of the word before it.",
    }

    @property
    def estimator(self) -> type[Any]:
        from partwise.estimators import DependencyParser

        return DependencyParser

    def flags(self) -> list[click.Parameter]:
        return [
            click.Option(["--format"], type=click.Choice(self.formats), default="auto", show_default=True),
            click.Option(["--lenient"], is_flag=True, help="Leave out sentences that are not well formed."),
            click.Option(["--unlabelled"], is_flag=True, help="Learn heads only."),
            click.Option(
                ["--templates"], type=File(), metavar="FILE", help="Features of arcs by a table of templates."
            ),
            click.Option(
                ["--predicted-tags"],
                type=click.IntRange(2),
                metavar="K",
                help="Train on tags (--inputs) predicted by taggers of K - 1 of K folds; taggers are saved beside.",
            ),
            click.Option(
                ["--label-templates"],
                type=File(),
                metavar="FILE",
                help="Features of arcs' names (relations) by a table of templates.",
            ),
        ]

    # files

    def read(self, path: str, settings: Mapping[str, Any], labelled: bool) -> Data:
        dialect = settings.get("format") or "auto"
        reader = ConlluReader(
            path, strict=not settings.get("lenient"), dialect="conllu" if dialect == "auto" else dialect
        )
        from partwise.models.dependencies.inputs import check_lengths

        sentences = reader.read()
        if not sentences:
            raise NoExamples(
                "there are no sentences" + (f", {reader.skipped} bad ones aside" * bool(reader.skipped)), path
            )
        if dialect == "auto":
            dialect = "conllx" if looks_like_conllx(sentences[0]) else "conllu"
            for sentence in sentences:
                sentence.dialect = dialect
        if settings.get("max_length"):
            # Here, so that a sentence of --dev is not found too long after hours of training.
            check_lengths(sentences, range(len(sentences)), int(settings["max_length"]))
        if labelled:
            _check_trees(sentences, path)
        y = [list(zip(s.heads, s.deprels, strict=True)) for s in sentences] if labelled else None
        if reader.skipped:
            click.echo(f"{path}: {reader.skipped} sentences left out, the first: {reader.errors[0]}", err=True)
        return Data(sentences, y, len(sentences), sum(map(len, sentences)), dialect)

    def blocks(self, path: str, settings: Mapping[str, Any], size: int, labelled: bool = False) -> Iterator[Data]:
        if labelled:
            yield from self._labelled_blocks(path, settings, size)
            return
        text = {name: settings.get(name) for name in ("text", "why_not_text") if name in settings}
        first = 0
        for sentences in sentence_blocks(path, size, dialect=settings.get("format") or "auto", **text):
            yield Data(sentences, None, len(sentences), sum(map(len, sentences)), sentences[0].dialect, first)
            first += len(sentences)

    def _labelled_blocks(self, path: str, settings: Mapping[str, Any], size: int) -> Iterator[Data]:
        from partwise.models.dependencies.inputs import check_lengths

        for name in ("lenient", "predicted_tags"):
            if settings.get(name):
                raise UserError(f"--{name.replace('_', '-')}: not available with partitions")
        first = 0
        for sentences in sentence_blocks(path, size, dialect=settings.get("format") or "auto"):
            _check_trees(sentences, path)
            check_lengths(sentences, range(first, first + len(sentences)), int(settings["max_length"]))
            y = [list(zip(s.heads, s.deprels, strict=True)) for s in sentences]
            yield Data(sentences, y, len(sentences), sum(map(len, sentences)), sentences[0].dialect, first)
            first += len(sentences)

    def words_only(self, model: Any) -> bool:
        return set(model.columns_) <= {"form"}

    def why_not_text(self, model: Any, name: str) -> str | None:
        return ConlluPipeline([(name, model)]).why_not_text()

    def of_conllu(self, model: Any, given: Sequence[Any], gold: Sequence[Any], path: str) -> Data:
        _check_trees(gold, path)
        y = [list(zip(s.heads, s.deprels, strict=True)) for s in gold]
        return Data(list(given), y, len(given), sum(map(len, given)), "conllu")

    def rules(self, model: Any, path: str) -> Rules:
        from partwise.cli.tasks.constraints import read_arc_rules

        return read_arc_rules(path)

    def remember(self, settings: Mapping[str, Any], data: Data) -> dict[str, Any]:
        folds = settings.get("predicted_tags")
        return {"format": data.source, **({"predicted_tags": folds} if folds else {})}

    def features_of(self, remembered: Mapping[str, Any]) -> dict[str, Any]:
        return {"predicted_tags": remembered.get("predicted_tags") or None}

    # training

    def beside(self, settings: Mapping[str, Any], output: str) -> list[str]:
        return tagger_paths(settings, output) if settings.get("predicted_tags") else []

    def prepared(
        self, settings: Mapping[str, Any], training: Data, held: Data | None
    ) -> tuple[Data, Data | None, list[Any]]:
        if not settings.get("predicted_tags"):
            return training, held, []
        return with_predicted_tags(settings, training, held)

    def make(self, settings: Mapping[str, Any], data: Data, training: dict[str, Any]) -> Any:
        if settings.get("baseline") == "maxent":
            raise UserError("--baseline maxent is not available for trees")
        labels: Any = False if settings.get("unlabelled") else "auto"
        tables = {name: read_table(settings.get(name)) for name in ("templates", "label_templates")}
        if tables["label_templates"] and not labels:
            raise UserError("--label-templates cannot be combined with --unlabelled")
        if settings.get("predicted_tags") and not training.get("inputs"):
            training = {**training, "inputs": INPUTS}
        return self.estimator(**tables, labels=labels, **training)

    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        chains: dict[str, Callable[[int], list[int]]] = {
            "every word on the one before it": lambda n: list(range(n)),
            "every word on the one after it": lambda n: [*range(2, n + 1), 0],
        }
        best = max(chains, key=lambda name: _chain_score(train.X, chains[name]))
        if score == "uas":
            return best, _chain_score(data.X, chains[best])
        names = _usual_relations(train)
        trees = [
            list(zip(chains[best](len(sentence)), map(names.__getitem__, sentence.column("upos")), strict=True))
            for sentence in data.X
        ]
        return f"{best}, named by its part of speech", _main_score(data.X, trees)

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        X = [data.X[i] for i in indices]
        y = [data.y[i] for i in indices]
        return Data(X, y, len(X), sum(map(len, X)), data.source, chosen=data.chosen)

    # scores

    def evaluate(self, model: Any, data: Data, guess: Any = None) -> Evaluation:
        guess = model.predict(data.X) if guess is None else guess
        found = attachment_scores(data.X, guess)
        scores: dict[str, float] = {}
        scores |= _shares(found, "")
        if found.without_punctuation is not None:
            scores |= _shares(found.without_punctuation, "_without_punctuation")
        details = {"unknown_rate": float(model.unknown_rate_), **_training_details(model)}
        if model.blank_columns_:
            details["blank_columns"] = model.blank_columns_
        if data.chosen is not None:
            details["tag_accuracy"] = data.chosen.accuracy
        rows = by_relation(data.y, guess)
        unseen = sorted({row["label"] for row in rows} - set(getattr(model, "classes_", ())))
        if unseen and found.las is not None:
            details["unseen_labels"] = unseen
        return Evaluation(scores, str(found), rows, confused(data.y, guess), details)

    def unknown(self, model: Any, data: Data) -> tuple[int, int]:
        counts: tuple[int, int] = model.unknown_counts_
        return counts

    def blank(self, model: Any) -> set[str]:
        return set(model.blank_columns_)

    def results(self, model: Any) -> Any:
        relations = {} if model.label_result_ is None else {"relations": model.label_result_}
        return {"heads": model.result_, **relations}

    def notes(self, model: Any, training: Data, evaluation: Evaluation) -> list[tuple[str, str]]:
        """The certificate of relations, trees with crossing arcs, the score that is not the main one."""
        found = []
        if "labels_certificate" in evaluation.details:
            run, certificate = certificate_lines(evaluation.details["labels_certificate"])
            found += [("relations", run[1]), (certificate[0], certificate[1])]
        crossing = model.n_non_projective_
        if crossing:
            done = "left out" if model.n_skipped_ else "lifted"
            share = crossing / training.n_examples
            hint = "; --structure spanning learns from them as they are" if share > MANY_CROSSING else ""
            found.append(("crossing", f"{crossing} gold trees ({share:.1%}) have arcs that cross: {done}{hint}"))
        note = tags_note(training.chosen, model.columns_)
        if note is not None:
            found.append(("tags", note))
        if "las" in evaluation.scores:
            found.append(("heads", f"uas {evaluation.scores['uas']:.2%}"))
        return found

    def calibration(self, model: Any, data: Data) -> Any:
        if not hasattr(model, "predict_marginals"):
            return None
        rows = model.predict_marginals(data.X)
        width = max(row.shape[1] for row in rows)  # heads from 0 to the longest sentence's last word
        padded = [np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]
        return calibration([sentence.heads for sentence in data.X], padded, range(width))

    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        name = "las" if "las" in evaluation.scores else "uas"
        return name, evaluation.scores[name]

    def metric(self, data: Data) -> Any:
        return _main_score

    # predictions

    def predict(self, model: Any, data: Data, request: Request) -> Iterable[str]:
        from partwise.models.dependencies.inputs import check_lengths

        check_lengths(data.X, range(data.first, data.first + len(data.X)), model.max_length)
        allowed = None
        if request.rules is not None:
            allowed = request.rules.allowed([len(sentence) for sentence in data.X], data.first)
        if request.k_best:
            if request.marginals:
                raise UserError("--k-best cannot be combined with --marginals")
            likely = hasattr(model, "predict_marginals")
            found = model.predict_k_best(data.X, request.k_best, probabilities=likely, allowed=allowed)
            return self._k_best_lines(found, "probability" if likely else "score", data, request)
        best = model.predict(data.X, allowed=allowed)
        rows = None
        if request.marginals:
            if not hasattr(model, "predict_marginals"):
                raise UserError(
                    f"--marginals: the loss {model.loss!r} gives no probabilities (log and softmax-margin do)"
                )
            if data.source == "conllx" and not request.as_json:
                raise UserError("--marginals: a CoNLL-X file has no place for probabilities; use --json")
            rows = model.predict_marginals(data.X, allowed=allowed)
        return self._lines(best, rows, data, request)

    def _lines(self, best: list[Any], marginals: list[Any] | None, data: Data, request: Request) -> Iterable[str]:
        for i, tree in enumerate(best):
            if request.as_json:
                found = _json_tree(tree)
                if marginals is not None:
                    found["marginals"] = marginals[i].tolist()
                yield json_line(found)
                continue
            sentence = _with_tree(data.X[i], tree)
            if marginals is not None:
                chosen = [marginals[i][m, head] for m, head in enumerate(sentence.heads)]
                sentence = _with_misc(sentence, [f"HeadProbability={p:.6f}" for p in chosen])
            yield from sentence.lines

    def _k_best_lines(self, found: list[Any], what: str, data: Data, request: Request) -> Iterable[str]:
        for i, answers in enumerate(found):
            if request.as_json:
                yield json_line({"best": [{**_json_tree(tree), what: value} for tree, value in answers]})
                continue
            for rank, (tree, value) in enumerate(answers):
                version = _with_tree(data.X[i], tree)
                text = rank_text(rank, what, value)
                yield from version.lines_under(text, first=rank == 0, last=rank == len(answers) - 1)

    def strongest(self, model: Any, n: int, data: Data | None = None) -> dict[str, list[tuple[str, float]]]:
        if data is None:
            return {}
        some = data.X[:NAMED]
        best, worst = model.top_features(some, n)
        return {f"for an arc (in {len(some)} sentences)": best, "against an arc": worst}

    def examples(self, model: Any, data: Data, n: int) -> list[Any]:
        from partwise.report import draw_arcs

        some = [s for s in data.X if 4 <= len(s) <= 16][:500] or list(data.X[:n])
        guess = [_split(tree) for tree in model.predict(some)]
        # Half of the examples have a mistake, if there are enough: they are more informative.
        wrong = [i for i, sentence in enumerate(some) if guess[i][0] != sentence.heads]
        right = [i for i, sentence in enumerate(some) if guess[i][0] == sentence.heads]
        few = min(len(wrong), max(n // 2, n - len(right)))
        chosen = sorted([*wrong[:few], *right[: n - few]])
        return [draw_arcs(some[i].forms, *guess[i], gold_heads=some[i].heads) for i in chosen]


def read_table(path: str | None) -> str | None:
    """A table of templates; FormatError with the line of one that is none."""
    if path is None:
        return None
    text = read_text(path)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                ArcTemplate.from_line(line)
            except ValueError as error:
                raise FormatError(str(error), path, number) from None
    return text


def _training_details(model: Any) -> dict[str, Any]:
    """What the JSON output says of the training: crossing arcs, the second certificate. Nothing while it goes on."""
    if not hasattr(model, "n_skipped_"):
        return {}
    details: dict[str, Any] = {"n_non_projective": model.n_non_projective_, "n_skipped": model.n_skipped_}
    if model.label_result_ is not None:
        details["labels_certificate"] = result_fields(model.label_result_)
    return details


def _main_score(gold: Any, guess: Any) -> float:
    """LAS where arcs have names, else UAS."""
    found = attachment_scores(gold, guess)
    return found.uas if found.las is None else found.las


def _shares(found: AttachmentScores, suffix: str) -> dict[str, float]:
    shares = {"uas": found.uas, "las": found.las, "clas": found.clas}
    return {name + suffix: value for name, value in shares.items() if value is not None}


def _chain_score(sentences: Sequence[ConlluSentence], chain: Callable[[int], list[int]]) -> float:
    return attachment_scores(sentences, [chain(len(sentence)) for sentence in sentences]).uas


def _usual_relations(train: Data) -> defaultdict[str, str]:
    """The most frequent relation of each part of speech; of an unknown one, that of all words."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence, tree in zip(train.X, train.y, strict=True):
        for tag, (_, name) in zip(sentence.column("upos"), tree, strict=True):
            seen[tag][name] += 1
    usual = sum(seen.values(), Counter()).most_common(1)[0][0]
    return defaultdict(lambda: usual, {tag: names.most_common(1)[0][0] for tag, names in seen.items()})


def _check_trees(sentences: Sequence[ConlluSentence], path: str) -> None:
    bare = next((sentence for sentence in sentences if not sentence.heads), None)
    if bare is not None:
        raise FormatError("a sentence without heads", path, bare.line)


def _split(tree: Sequence[Any]) -> tuple[list[int], list[str] | None]:
    if tree and isinstance(tree[0], tuple):
        return [head for head, _ in tree], [name for _, name in tree]
    return list(tree), None


def _with_tree(sentence: ConlluSentence, tree: Sequence[Any]) -> ConlluSentence:
    return sentence.with_tree(*_split(tree))


def _with_misc(sentence: ConlluSentence, values: Sequence[str]) -> ConlluSentence:
    old = sentence.column(MISC)
    return sentence.with_misc(
        [value if was in ("_", "") else f"{was}|{value}" for was, value in zip(old, values, strict=True)]
    )


def _json_tree(tree: Sequence[Any]) -> dict[str, Any]:
    heads, names = _split(tree)
    return {"heads": heads} if names is None else {"heads": heads, "relations": names}
