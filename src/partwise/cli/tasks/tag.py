"""``partwise train tag``: labels for every token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Any, ClassVar

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import File
from partwise.cli.output import json_line, rank_text
from partwise.cli.tasks import Data, Evaluation, Request, Rules, Task
from partwise.cli.tasks.labelcounts import check_pairs, max_labels_flag
from partwise.cli.tasks.labels import (
    are_chunks,
    class_weight_flag,
    class_weight_of,
    evaluate_sequences,
    most_frequent,
)
from partwise.cli.tasks.morphology import evaluate_feats, evaluate_lemmas, lemma_accuracy
from partwise.cli.tasks.tagfeatures import choose_features, described
from partwise.cli.tasks.tagfiles import FORMATS, SEPARATORS, conllu_data, read_tagged, tagged_blocks
from partwise.conllu import ConlluPipeline
from partwise.conllu.columns import LEMMA_RULE
from partwise.features.presets import PRESETS
from partwise.io import CodedSequences
from partwise.metrics import calibration, chunk_f1

#: What stands before the first tag in a file of weights (model="maxent").
BEGIN = "^"


#: So many attributes, all unknown, are those of another kind of input.
MANY_UNKNOWN = 20


class TagTask(Task):
    """DATA has one token per line and a blank line after each sentence; its last column is the label.

    Of a CoNLL-U file --inputs names the columns that are read (form, lemma, upos, xpos, feats, deprel, misc, feats.KEY,
    misc.KEY), and --target what is learnt and written by `predict`: UPOS, XPOS, FEATS (whole lists of features),
    LEMMA-rule (what to do with a form to get its lemma), FEATS.KEY or MISC.KEY.

    Without --template or --features the features are chosen from the data: "ner" for labels such as B-PER, with the
    columns of tags that there are; "chunk" for two columns or more before the label, if the second one tells most of
    the labels (B-NP by parts of speech) or the labels are of another kind; "pos" otherwise. For CoNLL-U: "morph", with
    all inputs, unless parts of speech are learnt from words alone.
    """

    name: ClassVar[str] = "tag"
    parameters: ClassVar[tuple[str, ...]] = (
        "model",
        "order",
        "min_count",
        "transitions",
        "ends",
        "history",
        "beam_width",
    )
    partitioned: ClassVar[tuple[str, ...]] = parameters
    formats: ClassVar[tuple[str, ...]] = FORMATS
    label_costs: ClassVar[bool] = True

    @property
    def estimator(self) -> type[Any]:
        from partwise.estimators import SequenceTagger

        return SequenceTagger

    def flags(self) -> list[click.Parameter]:
        return [
            click.Option(["--format"], type=click.Choice(self.formats), default="auto", show_default=True),
            click.Option(["--template"], type=File(), metavar="FILE", help="Features by a CRF++ template."),
            click.Option(["--features"], type=click.Choice(PRESETS), help="Features by name."),
            click.Option(
                ["--states"],
                type=click.Choice(["observed", "all"]),
                default="observed",
                show_default=True,
                help="Weights for the pairs of an attribute and a label that occur, or for all.",
            ),
            class_weight_flag(
                "A sentence weighs the mean of its labels' weights (1 if not named); balanced: by rarity."
            ),
            click.Option(
                ["--legal"],
                type=click.Choice(["auto", "yes", "no"]),
                default="auto",
                show_default=True,
                help="Answer with chunk labels that keep to IOB2 or IOBES; auto: if the training data do.",
            ),
            click.Option(
                ["--clusters"],
                type=File(),
                metavar="FILE",
                help="ner, and templates with %cluster: Brown clusters, lines of bits, tab, word.",
            ),
            click.Option(
                ["--gazetteer", "gazetteers"],
                type=File(),
                metavar="FILE",
                multiple=True,
                help="ner, and templates with %gazetteer: a list of names, one per line.",
            ),
            click.Option(
                ["--columns"],
                metavar="LIST",
                help="The columns that are read, as in 1,2,4; the last is the label [default: all].",
            ),
            click.Option(
                ["--inputs"],
                metavar="LIST",
                help="CoNLL-U: the columns that are read, as in form,upos,feats.Case [default: form].",
            ),
            click.Option(
                ["--target"],
                metavar="NAME",
                help="CoNLL-U: what is learnt: UPOS, XPOS, FEATS, LEMMA-rule, FEATS.KEY, MISC.KEY [default: UPOS].",
            ),
            click.Option(
                ["--separator"],
                type=click.Choice(list(SEPARATORS)),
                default="any",
                show_default=True,
                help="What separates columns; any: runs of tabs and spaces.",
            ),
            max_labels_flag(),
        ]

    # files

    def read(self, path: str, settings: Mapping[str, Any], labelled: bool) -> Data:
        return read_tagged(path, settings, labelled)

    def blocks(self, path: str, settings: Mapping[str, Any], size: int, labelled: bool = False) -> Iterator[Data]:
        return tagged_blocks(path, settings, size, labelled)

    def words_only(self, model: Any) -> bool:
        template = model.template_
        return template is not None and template.columns == [0] and not self.recall(model).get("columns")

    def why_not_text(self, model: Any, name: str) -> str | None:
        if self.recall(model).get("format") != "conllu":
            return None
        return ConlluPipeline([(name, model)]).why_not_text()

    def of_conllu(self, model: Any, given: Sequence[Any], gold: Sequence[Any], path: str) -> Data:
        return conllu_data(given, gold, self.recall(model), path)

    def rules(self, model: Any, path: str) -> Rules:
        from partwise.cli.tasks.constraints import read_constraints

        return read_constraints(path, model.classes_.tolist())

    def remember(self, settings: Mapping[str, Any], data: Data) -> dict[str, Any]:
        kept = {name: settings.get(name) for name in ("columns", "separator")}
        if data.source.table is not None:
            kept["n_columns"] = data.X.n_columns
        if data.source.columns is not None:
            kept |= data.source.columns.settings()
        kept |= choose_features(settings, data).remembered()
        return {"format": data.source.format, **{name: value for name, value in kept.items() if value}}

    def features_of(self, remembered: Mapping[str, Any]) -> dict[str, Any]:
        return described(remembered)

    def recall(self, model: Any) -> dict[str, Any]:
        if hasattr(model, "input_settings_"):
            return dict(model.input_settings_)
        if model.template_ is None:
            if model.attributes_ is None:
                raise UserError("this model was trained on arrays of numbers: use it from Python")
            return {"format": "items"}
        return {"n_columns": model.template_.n_columns}

    # training

    def make(self, settings: Mapping[str, Any], data: Data, training: dict[str, Any]) -> Any:
        check_pairs(settings, data, int(training.get("order", 1)))
        template = choose_features(settings, data).template
        legal = {"auto": "auto", "yes": True, "no": False}[settings.get("legal", "auto")]
        return self.estimator(
            template=template,
            features=settings.get("states", "observed"),
            class_weight=class_weight_of(settings.get("class_weights") or ()),
            **{"legal": legal, **training},
        )

    def unstructured(
        self, settings: Mapping[str, Any], train: Data, data: Data, training: dict[str, Any]
    ) -> tuple[str, float]:
        """Score of the same features without transitions."""
        model = self.make(settings, train, {**training, "model": "maxent", "solver": "auto", "solver_options": None})
        model.fit(train.X, train.y)
        return "maxent, one tag after another", self.main_score(self._score(model, data))[1]

    # scores

    def _score(self, model: Any, data: Data, guess: Any = None) -> Evaluation:
        if guess is None:
            guess = model.predict(data.X)
            self._check_known(model, data)
        if data.source.target == "feats":
            return evaluate_feats(data.y, guess, model.classes_.tolist())
        if data.source.target == LEMMA_RULE:
            return evaluate_lemmas(data.source.conllu, data.source.values(guess))
        chunks = are_chunks(model.classes_.tolist()) and are_chunks(data.y.distinct())
        return evaluate_sequences(data.y, guess, chunks)

    def evaluate(self, model: Any, data: Data, guess: Any = None) -> Evaluation:
        found = self._score(model, data, guess)
        rate = getattr(model, "unknown_rate_", None)
        details: dict[str, Any] = {**found.details, **({} if rate is None else {"unknown_rate": float(rate)})}
        unseen = sorted(set(data.y.distinct()) - set(model.classes_.tolist()))
        if unseen:
            details["unseen_labels"] = unseen
        return Evaluation(found.scores, found.table, found.by_label, found.confusion, details)

    def unknown(self, model: Any, data: Data) -> tuple[int, int]:
        counts: tuple[int, int] = model.unknown_counts_
        return counts

    def calibration(self, model: Any, data: Data) -> Any:
        if not hasattr(model, "predict_marginals"):
            return None
        return calibration(data.y, model.predict_marginals(data.X, output="array"), model.classes_)

    def main_score(self, evaluation: Evaluation) -> tuple[str, float]:
        name = "f1" if "f1" in evaluation.scores else "accuracy"
        return name, evaluation.scores[name]

    def metric(self, data: Data) -> Any:
        if data.source.target == LEMMA_RULE:
            return lambda gold, guess: lemma_accuracy(data.source.conllu, data.source.values(guess))
        return "f1" if are_chunks(data.y.distinct()) else None

    def baseline(self, train: Data, data: Data, score: str) -> tuple[str, float]:
        words, labels, others = train.source.first_column(), train.y, data.source.first_column()
        known, best, _ = most_frequent(words.codes, labels.codes)
        common = int(most_frequent(np.zeros_like(labels.codes), labels.codes)[1][0])
        usual = dict(zip([words.names[k] for k in known.tolist()], best.tolist(), strict=True))
        guess = np.array([usual.get(word, common) for word in others.names], dtype=np.int32)[others.codes]
        usual_labels = CodedSequences(labels.names, guess, others.lengths)
        if score == "f1":
            value = chunk_f1(data.y, usual_labels)
        elif data.source.target == LEMMA_RULE:
            value = lemma_accuracy(data.source.conllu, data.source.values(usual_labels))
        else:
            value = int(np.count_nonzero(data.y.numbers_in(labels.names) == guess)) / data.n_tokens
        return "each word's most frequent label", value

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        X = data.X.take(np.asarray(indices)) if hasattr(data.X, "take") else [data.X[i] for i in indices]
        y = data.y.take(np.asarray(indices))
        return Data(X, y, len(indices), len(y.codes), data.source.take(indices))

    # predictions

    def predict(self, model: Any, data: Data, request: Request) -> Iterable[str]:
        if data.source.conllu is not None and data.first == 0:
            ConlluPipeline([("the model", model)]).check_filled(data.source.conllu)
        options: dict[str, Any] = {}
        if request.rules is not None:
            follow = request.rules.follow
            options["allowed"] = request.rules.allowed(data.source.first_column(), data.first)
            options["allowed_transitions"] = None if follow.all() else follow
        if request.k_best:
            if request.marginals:
                raise UserError("--k-best cannot be combined with --marginals")
            likely = hasattr(model, "predict_marginals")
            found = model.predict_k_best(data.X, request.k_best, probabilities=likely, **options)
            self._check_known(model, data)
            return self._k_best_lines(found, "probability" if likely else "score", data, request)
        best = model.predict(data.X, **options)
        self._check_known(model, data)
        rows = None
        if request.marginals:
            if not hasattr(model, "predict_marginals"):
                raise UserError(
                    f"--marginals: the loss {model.loss!r} gives no probabilities (log and softmax-margin do)"
                )
            rows = model.predict_marginals(data.X, output="array", **options)
        return self._lines(model, best, rows, data, request)

    def _check_known(self, model: Any, data: Data) -> None:
        """UserError for items without an attribute that the model knows, such as columns read as items."""
        if data.source.format != "items" or data.first:
            return
        unknown, n = model.unknown_counts_
        if n == 0 or (unknown == n >= MANY_UNKNOWN):
            what = "no token has an attribute" if n == 0 else f"the model knows none of the {n} attributes"
            raise UserError(
                f"{what}: this model reads CRFsuite's items, lines `label TAB attribute TAB attribute ...`; "
                "is the input in columns? Make the items of the model's training from them"
            )

    def _lines(
        self, model: Any, best: list[list[Any]], marginals: list[Any] | None, data: Data, request: Request
    ) -> Iterable[str]:
        names = [str(label) for label in model.classes_.tolist()]
        for i, labels in enumerate(best):
            rows = None if marginals is None else marginals[i].tolist()
            if request.as_json:
                found: dict[str, Any] = {"labels": data.source.answer(i, labels)}
                if rows is not None:
                    found["marginals"] = [dict(zip(names, row, strict=True)) for row in rows]
                yield json_line(found)
                continue
            ends = [str(label) for label in labels]
            if rows is not None:
                texts = ("\t".join(f"{a}/{p:.6f}" for a, p in zip(names, row, strict=True)) for row in rows)
                ends = [f"{label}\t{text}" for label, text in zip(ends, texts, strict=True)]
            yield from data.source.lines(i, ends)

    def _k_best_lines(
        self, found: list[list[tuple[list[Any], float]]], what: str, data: Data, request: Request
    ) -> Iterable[str]:
        for i, answers in enumerate(found):
            if request.as_json:
                ranked = [{"labels": data.source.answer(i, labels), what: value} for labels, value in answers]
                yield json_line({"best": ranked})
                continue
            for rank, (labels, value) in enumerate(answers):
                ends = [str(label) for label in labels]
                first, last = rank == 0, rank == len(answers) - 1
                yield from data.source.version(i, ends, rank_text(rank, what, value), first, last)

    def strongest(self, model: Any, n: int, data: Data | None = None) -> dict[str, list[tuple[str, float]]]:
        found: dict[str, list[tuple[str, float]]] = {}
        if model.kernel is None:
            attributes, labels, weights = model.state_weights_
            names = model.attributes_
            for k, label in enumerate(model.classes_.tolist()):
                own = np.flatnonzero(labels == k)
                best = own[np.argsort(-weights[own], kind="stable")[:n]]
                called = [str(a if names is None else names[a]) for a in attributes[best].tolist()]
                found[str(label)] = list(zip(called, weights[best].tolist(), strict=True))
        pairs = ((" ".join(map(str, names)), weight) for names, weight in _transitions(model).items())
        found["one label after another"] = nlargest(n, pairs, key=lambda item: abs(item[1]))
        return found

    def weights(self, model: Any) -> Iterable[tuple[str, ...]]:
        if model.kernel is not None:
            raise UserError("--dump: with a kernel there are no weights of attributes")
        for (attribute, label), weight in model.state_features_.items():
            yield "state", str(attribute), str(label), repr(weight)
        for names, weight in _transitions(model).items():
            yield "transition", *(BEGIN if name is None else str(name) for name in names), repr(weight)
        for (end, label), weight in model.boundary_features_.items():
            yield end, "", str(label), repr(weight)

    def size(self, model: Any) -> int:
        states = 0 if model.kernel is not None else len(model.state_weights_[2])
        return states + len(_transitions(model)) + len(model.boundary_features_)

    def examples(self, model: Any, data: Data, n: int) -> list[Any]:
        from partwise.report import draw_tags

        some = self.take(data, drawable(data))
        guess = model.predict(some.X)
        # Half of the examples have a mistake, if there are enough: they are more informative.
        wrong = [i for i, labels in enumerate(some.y) if guess[i] != labels]
        right = [i for i, labels in enumerate(some.y) if guess[i] == labels]
        few = min(len(wrong), max(n // 2, n - len(right)))
        chosen = sorted([*spread(wrong, few), *spread(right, n - few)])
        probabilities: dict[int, Any] = {}
        if hasattr(model, "predict_marginals"):
            rows = model.predict_marginals(self.take(some, chosen).X, output="array")
            probabilities = {i: row.max(axis=1).tolist() for i, row in zip(chosen, rows, strict=True)}
        words = some.source.first_column()
        return [draw_tags(words[i], guess[i], gold=some.y[i], probabilities=probabilities.get(i)) for i in chosen]


def _transitions(model: Any) -> dict[tuple[Any, ...], float]:
    """Weights of transitions by name: none where a kernel compares them."""
    return getattr(model, "transition_features_", {})


def drawable(data: Data, most: int = 500) -> list[int]:
    """Sentences of a length that can be drawn, spread over the data."""
    lengths = data.y.lengths
    fitting = np.flatnonzero((lengths >= 4) & (lengths <= 25)).tolist() or list(range(len(lengths)))
    return spread(fitting, most)


def spread(items: list[int], n: int) -> list[int]:
    """n of these, evenly chosen."""
    return [items[k * len(items) // n] for k in range(n)] if n < len(items) else items
