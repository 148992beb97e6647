"""``partwise train dep``: dependency trees."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, Flags, Parameters, flag
from partwise.cli.summary import Fields, certificate_lines, result_fields
from partwise.cli.tasks import Data, Evaluation, NoExamples, Request, Rules, Strongest, estimator_named
from partwise.cli.tasks.inputs import looks_like_conllx, sentence_blocks
from partwise.cli.tasks.scores import relation_scores
from partwise.cli.tasks.structured import StructuredTask, choose_examples, unseen_labels
from partwise.features.arcs import ArcTemplate
from partwise.io.conllu import ConlluReader, ConlluSentence, parse_columns_list
from partwise.io.errors import FormatError
from partwise.io.files import read_text
from partwise.metrics import Calibration, attachment_scores, calibration
from partwise.tables.conllu import LEMMA_RULE, ConlluColumns, ConlluPipeline, jackknife

if TYPE_CHECKING:
    from partwise.estimators import DependencyParser, SequenceTagger

#: Sentences whose features are named in a report.
NAMED = 100
#: The share of gold trees with crossing arcs above which another structure is suggested.
MANY_CROSSING = 0.05

#: The columns that a parser reads if --inputs does not name any: those that one tagger fills.
INPUTS = "form,upos"
#: Relative gap of the taggers.
TOL = 1e-2

#: A head for each word, or a head with its relation.
Tree = Sequence[int] | Sequence[tuple[int, str]]
Conllu = Sequence[ConlluSentence]


@dataclass
class ParserData(Data):
    """Sentences for parsers; of predicted tags the number of folds, and the share of right values by column."""

    X: list[ConlluSentence]
    y: list[list[tuple[int, str]]]
    source: str
    folds: int = 0
    accuracy: dict[str, float] = field(default_factory=dict)


class DepTask(StructuredTask):
    """DATA is a CoNLL-U or CoNLL-X file with heads, and mostly with relations, which are learnt by a second classifier.

    Columns form, lemma, upos, xpos and feats are what the parser looks at.
    """

    name: ClassVar[str] = "dep"
    estimator = estimator_named("DependencyParser")
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

    def flags(self) -> list[click.Parameter]:
        return [
            flag("--format", "Read DATA in this format; auto: as the first sentence looks.", self.formats, "auto"),
            flag("--lenient", "Leave out sentences that are not well formed.", bool),
            flag("--unlabelled", "Learn heads only.", bool),
            flag("--templates", "Make features of arcs by the table of templates in this file.", FILE),
            flag(
                "--predicted-tags=K",
                "Train on tags (--inputs) predicted by taggers of K - 1 of K folds; taggers are saved beside.",
                click.IntRange(2),
            ),
            flag("--label-templates", "Make features of relations by the table of templates in this file.", FILE),
        ]

    def read(self, path: str, settings: Flags, labelled: bool) -> ParserData:
        dialect = settings.get("format") or "auto"
        known = "conllu" if dialect == "auto" else dialect
        reader = ConlluReader(path, strict=not settings.get("lenient"), dialect=known)
        sentences = reader.read()
        if not sentences:
            aside = f", {reader.skipped} bad ones aside" * bool(reader.skipped)
            raise NoExamples(f"there are no sentences{aside}", path)
        if dialect == "auto":
            dialect = "conllx" if looks_like_conllx(sentences[0]) else "conllu"
            for sentence in sentences:
                sentence.dialect = dialect
        found = _data(sentences, path if labelled else None, settings.get("max_length"))
        if reader.skipped:
            click.echo(f"{path}: {reader.skipped} sentences left out, the first: {reader.errors[0]}", err=True)
        return found

    def blocks(self, path: str, settings: Flags, size: int, labelled: bool = False) -> Iterator[Data]:
        for name in ("lenient", "predicted_tags"):
            if labelled and settings.get(name):
                raise UserError(f"--{name.replace('_', '-')}: not available with partitions")
        first, text = 0, {} if labelled else settings
        for sentences in sentence_blocks(path, size, text, settings.get("format")):
            yield _data(sentences, path if labelled else None, settings["max_length"] if labelled else None, first)
            first += len(sentences)

    def words_only(self, model: DependencyParser) -> bool:
        return set(model.columns_) <= {"form"}

    def why_not_text(self, model: DependencyParser, name: str) -> str | None:
        return ConlluPipeline([(name, model)]).why_not_text()

    def of_conllu(self, model: DependencyParser, given: Conllu, gold: Conllu, path: str) -> ParserData:
        return ParserData(list(given), _gold_trees(gold, path), len(given), sum(map(len, given)), "conllu")

    def rules(self, model: DependencyParser, path: str) -> Rules:
        from partwise.cli.tasks.rules import read_arc_rules

        return read_arc_rules(path)

    def remember(self, settings: Flags, data: Data) -> Fields:
        folds = settings.get("predicted_tags")
        return {"format": data.source, **({"predicted_tags": folds} if folds else {})}

    def beside(self, settings: Flags, output: str) -> list[str]:
        """Return the files of the taggers, one per column: PARSER.upos.pw beside PARSER.pw."""
        if not settings.get("predicted_tags"):
            return []
        if output == "-":
            raise UserError("--predicted-tags saves taggers beside the parser: say with -o where that goes")
        path = PurePath(output)
        stem = path.stem if path.suffix == ".pw" else path.name
        return [str(path.with_name(f"{stem}.{name}.pw")) for name in _tag_columns(settings)]

    def prepared(
        self, settings: Flags, training: Any, held: Any
    ) -> tuple[ParserData, ParserData | None, list[SequenceTagger]]:
        """Return both data with predicted tags in place of their own, and the taggers trained on all training data."""
        folds = settings.get("predicted_tags")
        if not folds:
            return training, held, []
        if folds > training.n_examples:
            raise UserError(f"--predicted-tags: {training.n_examples} sentences make no {folds} folds")
        X, others, taggers = training.X, None if held is None else held.X, []
        for name in _tag_columns(settings):
            columns = ConlluColumns("form", LEMMA_RULE if name == "lemma" else name)
            make = partial(_tagger, name, settings)
            X = jackknife(columns, make, X, folds, settings.get("seed", 0))
            tagger = columns.fit(make(), training.X)
            tagger.input_settings_ = {"task": "tag", **tagger.input_settings_}
            taggers.append(tagger)
            others = None if others is None else columns.annotate(tagger, others)
        found = _with_tags(training, X, folds, settings)
        return found, None if others is None else _with_tags(held, others, folds, settings), taggers

    def make(self, settings: Flags, data: Data, training: Parameters) -> Any:
        if settings.get("baseline") == "maxent":
            raise UserError("--baseline maxent is not available for trees")
        labels = False if settings.get("unlabelled") else "auto"
        tables = {name: read_table(settings.get(name)) for name in ("templates", "label_templates")}
        if tables["label_templates"] and not labels:
            raise UserError("--label-templates cannot be combined with --unlabelled")
        if settings.get("predicted_tags") and not training.get("inputs"):
            training = {**training, "inputs": INPUTS}
        return self.estimator(**tables, labels=labels, **training)

    def evaluate(self, model: DependencyParser, data: ParserData, guess: Any = None) -> Evaluation:  # type: ignore[override]
        guess = model.predict(data.X) if guess is None else guess
        found = attachment_scores(data.X, guess)
        scores = {
            name + suffix: getattr(each, name)
            for each, suffix in ((found, ""), (found.without_punctuation, "_without_punctuation"))
            for name in ("uas", "las", "clas")
            if each is not None and getattr(each, name) is not None
        }
        details: Fields = {"unknown_rate": float(model.unknown_rate_)}
        if hasattr(model, "n_skipped_"):  # not while it is trained
            details |= {"n_non_projective": model.n_non_projective_, "n_skipped": model.n_skipped_}
            if model.label_result_ is not None:
                details["labels_certificate"] = result_fields(model.label_result_)
        if model.blank_columns_:
            details["blank_columns"] = model.blank_columns_
        if data.folds:
            details["tag_accuracy"] = data.accuracy
        rows, confusion = relation_scores(data.y, guess)
        if found.las is not None:
            details |= unseen_labels((row["label"] for row in rows), getattr(model, "classes_", ()))
        return Evaluation(scores, str(found), rows, confusion, details)

    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        name = "las" if "las" in evaluation.scores else "uas"
        return name, evaluation.scores[name]

    def metric(self, data: Data) -> Callable[[Any, Any], float]:
        return _main_score

    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        chains: dict[str, Callable[[int], list[int]]] = {
            "every word on the one before it": lambda n: list(range(n)),
            "every word on the one after it": lambda n: [*range(2, n + 1), 0],
        }
        best = max(chains, key=lambda name: _chain_score(train.X, chains[name]))
        if score == "uas":
            return best, _chain_score(data.X, chains[best])
        names = _usual_relations(train)
        relations = [[names[tag] for tag in sentence.column("upos")] for sentence in data.X]
        trees = [list(zip(chains[best](len(own)), own, strict=True)) for own in relations]
        return f"{best}, named by its part of speech", _main_score(data.X, trees)

    def calibration(self, model: DependencyParser, data: Data) -> Calibration | None:
        if not hasattr(model, "predict_marginals"):
            return None
        rows = model.predict_marginals(data.X)
        width = max(row.shape[1] for row in rows)  # heads from 0 to the longest sentence's last word
        padded = [np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]
        return calibration([sentence.heads for sentence in data.X], padded, range(width))

    def unknown(self, model: DependencyParser, data: Data) -> tuple[int, int]:
        return model.unknown_counts_

    def blank(self, model: DependencyParser) -> set[str]:
        return set(model.blank_columns_)

    def constraints(self, model: DependencyParser, data: Data, request: Request) -> Parameters:
        from partwise.models.dependencies.inputs import check_lengths

        check_lengths(data.X, range(data.first, data.first + len(data.X)), model.max_length)
        if request.marginals and data.source == "conllx" and not request.as_json:
            raise UserError("--marginals: a CoNLL-X file has no place for probabilities; use --json")
        rules = request.rules
        return {"allowed": None if rules is None else rules.allowed([len(each) for each in data.X], data.first)}

    def answer_fields(self, data: Data, i: int, answer: Tree) -> Fields:
        heads, names = _split(answer)
        return {"heads": heads, **({} if names is None else {"relations": names})}

    def marginal_fields(self, model: DependencyParser, row: Any) -> object:
        return row.tolist()

    def answer_lines(self, model: DependencyParser, data: Data, i: int, answer: Tree, row: Any) -> Iterable[str]:
        sentence: ConlluSentence = data.X[i].with_tree(*_split(answer))
        if row is not None:
            entries = [[f"HeadProbability={row[m, head]:.6f}"] for m, head in enumerate(sentence.heads)]
            sentence = sentence.with_entries(entries)
        return sentence.lines

    def ranked_lines(self, data: Data, i: int, answer: Tree, comment: str, first: bool, last: bool) -> Iterable[str]:
        yield from data.X[i].with_tree(*_split(answer)).lines_under(comment, first, last)

    def features_of(self, remembered: Flags) -> Fields:
        return {"predicted_tags": remembered.get("predicted_tags") or None}

    def results(self, model: DependencyParser) -> Fields:
        return {"heads": model.result_, **({} if model.label_result_ is None else {"relations": model.label_result_})}

    def notes(self, model: DependencyParser, training: Any, evaluation: Evaluation) -> list[tuple[str, str]]:
        """Return the certificate of relations, the number of trees with crossing arcs, and the score besides LAS."""
        found = []
        if "labels_certificate" in evaluation.details:
            run, certificate = certificate_lines(evaluation.details["labels_certificate"])
            found += [("relations", run[1]), certificate]
        crossing = model.n_non_projective_
        if crossing:
            done = "left out" if model.n_skipped_ else "lifted"
            share = crossing / training.n_examples
            hint = "; --structure spanning learns from them as they are" if share > MANY_CROSSING else ""
            found.append(("crossing", f"{crossing} gold trees ({share:.1%}) have arcs that cross: {done}{hint}"))
        if note := _tags_note(training, model.columns_):
            found.append(("tags", note))
        if "las" in evaluation.scores:
            found.append(("heads", f"uas {evaluation.scores['uas']:.2%}"))
        return found

    def strongest(self, model: DependencyParser, n: int, data: Data | None = None) -> Strongest:
        if data is None:
            return {}
        some = data.X[:NAMED]
        best, worst = model.top_features(some, n)
        return {f"for an arc (in {len(some)} sentences)": best, "against an arc": worst}

    def examples(self, model: DependencyParser, data: Data, n: int) -> list[str]:
        from partwise.report import draw_arcs

        some = [s for s in data.X if 4 <= len(s) <= 16][:500] or list(data.X[:n])
        guess = [_split(tree) for tree in model.predict(some)]
        wrong = [i for i, sentence in enumerate(some) if guess[i][0] != sentence.heads]
        right = [i for i, sentence in enumerate(some) if guess[i][0] == sentence.heads]
        chosen = choose_examples(wrong, right, n, even=False)
        return [draw_arcs(some[i].forms, *guess[i], gold_heads=some[i].heads) for i in chosen]


def read_table(path: str | None) -> str | None:
    """Read a table of templates; raise FormatError with the line of an invalid one."""
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


def _data(sentences: list[ConlluSentence], path: str | None, longest: int | None, first: int = 0) -> ParserData:
    """Return sentences with gold trees, if their file's `path` is given; refuse those longer than `longest`."""
    from partwise.models.dependencies.inputs import check_lengths

    if longest:
        # Here, so that a sentence of --dev is not found too long after hours of training.
        check_lengths(sentences, range(first, first + len(sentences)), int(longest))
    y: Any = None if path is None else _gold_trees(sentences, path)
    return ParserData(sentences, y, len(sentences), sum(map(len, sentences)), sentences[0].dialect, first)


def _gold_trees(sentences: Sequence[ConlluSentence], path: str) -> list[list[tuple[int, str]]]:
    for sentence in sentences:
        if not sentence.heads:
            raise FormatError("a sentence without heads", path, sentence.line)
    return [list(zip(s.heads, s.deprels, strict=True)) for s in sentences]


def _main_score(gold: Any, guess: Any) -> float:
    """Return LAS where arcs have names, else UAS."""
    found = attachment_scores(gold, guess)
    return found.uas if found.las is None else found.las


def _chain_score(sentences: Sequence[ConlluSentence], chain: Callable[[int], list[int]]) -> float:
    return attachment_scores(sentences, [chain(len(sentence)) for sentence in sentences]).uas


def _usual_relations(train: Data) -> defaultdict[str, str]:
    """Return the most frequent relation of each part of speech; of an unknown one, that of all words."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence, tree in zip(train.X, train.y, strict=True):
        for tag, (_, name) in zip(sentence.column("upos"), tree, strict=True):
            seen[tag][name] += 1
    usual = sum(seen.values(), Counter()).most_common(1)[0][0]
    return defaultdict(lambda: usual, {tag: names.most_common(1)[0][0] for tag, names in seen.items()})


def _split(tree: Any) -> tuple[list[int], list[str] | None]:
    """Return heads and relations of a tree, None for a tree without relations."""
    if tree and isinstance(tree[0], tuple):
        return [head for head, _ in tree], [name for _, name in tree]
    return list(tree), None


# --predicted-tags K: taggers of K - 1 of K folds of the training data tag the K-th, since a parser that learns from
# gold tags would expect better tags than any tagger gives. Taggers that are trained on all of the data tag the
# development data, and are saved beside the parser for ``partwise predict PARSER.upos.pw PARSER.pw raw.txt``.


def _tag_columns(settings: Flags) -> list[str]:
    """Return the columns to predict: all inputs of the parser but the words."""
    names = [column.name for column in parse_columns_list(settings.get("inputs") or INPUTS)]
    tags = [name for name in names if name != "form"]
    if not tags:
        raise UserError("--predicted-tags: the parser looks at words alone; name columns of tags in --inputs")
    return tags


def _tagger(column: str, settings: Flags) -> SequenceTagger:
    """Return a tagger for a column, not yet fitted; chains would be slow for hundreds of labels, such as FEATS has."""
    from partwise.estimators import SequenceTagger

    pos: Parameters = {"template": "pos"}
    chosen: Parameters = pos if column in ("upos", "xpos") else {"template": "morph", "model": "maxent"}
    return SequenceTagger(tol=TOL, n_jobs=settings.get("threads"), random_state=settings.get("seed", 0), **chosen)


def _with_tags(data: ParserData, X: Sequence[ConlluSentence], folds: int, settings: Flags) -> ParserData:
    accuracy = {}
    for name in _tag_columns(settings):
        gold, found = (chain.from_iterable(sentence.column(name) for sentence in part) for part in (data.X, X))
        accuracy[name] = float(np.mean([a == b for a, b in zip(gold, found, strict=True)]))
    return replace(data, X=list(X), folds=folds, accuracy=accuracy)


def _tags_note(training: ParserData, columns: Sequence[str]) -> str | None:
    """Return a line of the summary: whether a parser that reads these columns was trained on gold tags."""
    if training.folds:
        shares = ", ".join(f"{name} {share:.2%} right" for name, share in training.accuracy.items())
        return f"predicted by taggers of {training.folds - 1} of {training.folds} folds: {shares}"
    names = ", ".join(name for name in columns if name != "form")
    hint = "(gold tags): expect less on predicted ones; --predicted-tags K trains on such"
    return f"{names} as in the training data {hint}" if names else None
