"""``partwise train tag``: labels for every token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import TYPE_CHECKING, Any, ClassVar

import click
import numpy as np

from partwise.cli.errors import UserError
from partwise.cli.flags import FILE, Flags, Parameters, flag
from partwise.cli.summary import Fields
from partwise.cli.tasks import Data, Evaluation, Request, Rules, Strongest, estimator_named
from partwise.cli.tasks.labels import MAX_LABELS, are_chunks, check_pairs, class_weight_of, most_frequent
from partwise.cli.tasks.scores import evaluate_feats, evaluate_lemmas, evaluate_sequences, lemma_accuracy
from partwise.cli.tasks.structured import StructuredTask, choose_examples, spread, unseen_labels
from partwise.cli.tasks.tag_features import choose_features
from partwise.cli.tasks.tagged_files import FORMATS, SEPARATORS, TaggedData, conllu_data, read_tagged, tagged_blocks
from partwise.features.presets import PRESETS
from partwise.io.coded import CodedSequences
from partwise.io.conllu import ConlluSentence
from partwise.metrics import Calibration, calibration, chunk_f1
from partwise.tables.conllu import LEMMA_RULE, ConlluPipeline

if TYPE_CHECKING:
    from partwise.estimators import SequenceTagger

Conllu = Sequence[ConlluSentence]
#: What stands before the first tag in a file of weights (model="maxent").
BEGIN = "^"
#: If an input has this many attributes and the model knows none of them, the input is of another kind.
MANY_UNKNOWN = 20


class TagTask(StructuredTask):
    """DATA has one token per line and a blank line after each sentence; its last column is the label.

    Of a CoNLL-U file --inputs names the columns that are read (form, lemma, upos, xpos, feats, deprel, misc, feats.KEY,
    misc.KEY), and --target what is learnt and written by `predict`: UPOS, XPOS, FEATS (whole lists of features),
    LEMMA-rule (what to do with a form to get its lemma), FEATS.KEY or MISC.KEY.

    Without --template or --features the features are chosen from the data: "ner" for labels such as B-PER, with the
    columns of tags in the data; "chunk" for two columns or more before the label, if the second one tells most of
    the labels (B-NP by parts of speech) or the labels are of another kind; "pos" otherwise. For CoNLL-U: "morph", with
    all inputs, unless parts of speech are learnt from words alone.
    """

    name: ClassVar[str] = "tag"
    estimator = estimator_named("SequenceTagger")
    parameters: ClassVar[tuple[str, ...]] = (
        "model", "order", "min_count", "transitions", "ends", "history", "beam_width",
    )  # fmt: skip
    partitioned: ClassVar[tuple[str, ...]] = parameters
    formats: ClassVar[tuple[str, ...]] = FORMATS
    label_costs: ClassVar[bool] = True
    marginal_options: ClassVar[Parameters] = {"output": "array"}

    def flags(self) -> list[click.Parameter]:
        targets = "UPOS, XPOS, FEATS, LEMMA-rule, FEATS.KEY, MISC.KEY"
        return [
            flag("--format", "Read DATA in this format; auto: as its name says.", self.formats, "auto"),
            flag("--template", "Make features by the CRF++ template in this file.", FILE),
            flag("--features", "Make these features.", PRESETS),
            flag(
                "--states",
                "Give weights to the pairs of an attribute and a label that occur, or to all.",
                ("observed", "all"),
                "observed",
            ),
            flag(
                "--class-weight class_weights=LABEL=WEIGHT",
                "Weigh sentences by the mean of their labels' weights, 1 if not named; balanced: by rarity.",
                multiple=True,
            ),
            flag(
                "--legal",
                "Answer with chunk labels that keep to IOB2 or IOBES; auto: if the training data do.",
                ("auto", "yes", "no"),
                "auto",
            ),
            flag("--clusters", "Read Brown clusters (bits, tab, word) for ner and templates with %cluster.", FILE),
            flag(
                "--gazetteer gazetteers",
                "Read a list of names, one per line, for ner and templates with %gazetteer.",
                FILE,
                multiple=True,
            ),
            flag("--columns=LIST", "Read these columns, as in 1,2,4; the last is the label [default: all]."),
            flag("--inputs=LIST", "CoNLL-U: read these columns, as in form,upos,feats.Case [default: form]."),
            flag("--target=NAME", f"CoNLL-U: learn this column: {targets} [default: UPOS]."),
            flag("--separator", "Split columns at this; any: runs of tabs and spaces.", SEPARATORS, "any"),
            MAX_LABELS,
        ]

    def read(self, path: str, settings: Flags, labelled: bool) -> TaggedData:
        return read_tagged(path, settings, labelled)

    def blocks(self, path: str, settings: Flags, size: int, labelled: bool = False) -> Iterator[Data]:
        return tagged_blocks(path, settings, size, labelled)

    def words_only(self, model: SequenceTagger) -> bool:
        template = model.template_
        return template is not None and template.columns == [0] and not self.recall(model).get("columns")

    def why_not_text(self, model: SequenceTagger, name: str) -> str | None:
        if self.recall(model).get("format") != "conllu":
            return None
        return ConlluPipeline([(name, model)]).why_not_text()

    def of_conllu(self, model: SequenceTagger, given: Conllu, gold: Conllu, path: str) -> TaggedData:
        return conllu_data(given, gold, self.recall(model), path)

    def rules(self, model: SequenceTagger, path: str) -> Rules:
        from partwise.cli.tasks.rules import read_constraints

        return read_constraints(path, model.classes_.tolist())

    def remember(self, settings: Flags, data: TaggedData) -> Fields:
        kept = {name: settings.get(name) for name in ("columns", "separator")}
        if data.source.table is not None:
            kept["n_columns"] = data.X.n_columns
        if data.source.columns is not None:
            kept |= data.source.columns.settings()
        chosen = choose_features(settings, data)
        kept |= {"features": chosen.name, "feature_columns": ",".join(map(str, chosen.columns))}
        return {"format": data.source.format, **{name: value for name, value in kept.items() if value}}

    def recall(self, model: SequenceTagger) -> Fields:
        if hasattr(model, "input_settings_"):
            return dict(model.input_settings_)
        if model.template_ is None:
            if model.attributes_ is None:
                raise UserError("this model was trained on arrays of numbers: use it from Python")
            return {"format": "items"}
        return {"n_columns": model.template_.n_columns}

    def take(self, data: Data, indices: Sequence[int]) -> Data:
        X = data.X.take(np.asarray(indices)) if hasattr(data.X, "take") else [data.X[i] for i in indices]
        y = data.y.take(np.asarray(indices))
        return TaggedData(X, y, len(indices), len(y.codes), data.source.take(indices))

    def make(self, settings: Flags, data: TaggedData, training: Parameters) -> Any:
        check_pairs(settings, data, int(training.get("order", 1)))
        return self.estimator(
            template=choose_features(settings, data).template,
            features=settings.get("states", "observed"),
            class_weight=class_weight_of(settings.get("class_weights") or ()),
            **{"legal": {"yes": True, "no": False}.get(settings.get("legal", "auto"), "auto"), **training},
        )

    def evaluate(self, model: SequenceTagger, data: Data, guess: Any = None) -> Evaluation:
        found, rate = self._score(model, data, guess), getattr(model, "unknown_rate_", None)
        details = {} if rate is None else {"unknown_rate": float(rate)}
        details |= unseen_labels(data.y.distinct(), model.classes_.tolist())
        return replace(found, details=found.details | details)

    def _score(self, model: SequenceTagger, data: Data, guess: Any = None) -> Evaluation:
        if guess is None:
            guess = model.predict(data.X)
            self.check_answers(model, data, guess)
        if data.source.target == "feats":
            return evaluate_feats(data.y, guess, model.classes_.tolist())
        if data.source.target == LEMMA_RULE:
            return evaluate_lemmas(data.source.conllu, data.source.values(guess))
        chunks = are_chunks(model.classes_.tolist()) and are_chunks(data.y.distinct())
        return evaluate_sequences(data.y, guess, chunks)

    def metric(self, data: Data) -> str | Callable[[Any, Any], float] | None:
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

    def unstructured(self, settings: Flags, train: TaggedData, data: Data, training: Parameters) -> tuple[str, float]:
        """Return the score of the same features without transitions."""
        model = self.make(settings, train, {**training, "model": "maxent", "solver": "auto", "solver_options": None})
        model.fit(train.X, train.y)
        return "maxent, one tag after another", self.main_score(self._score(model, data))[1]

    def calibration(self, model: SequenceTagger, data: Data) -> Calibration | None:
        if not hasattr(model, "predict_marginals"):
            return None
        return calibration(data.y, model.predict_marginals(data.X, output="array"), model.classes_)

    def unknown(self, model: SequenceTagger, data: Data) -> tuple[int, int]:
        return model.unknown_counts_

    def constraints(self, model: SequenceTagger, data: Data, request: Request) -> Parameters:
        if data.source.conllu is not None and data.first == 0:
            ConlluPipeline([("the model", model)]).check_filled(data.source.conllu)
        if request.rules is None:
            return {}
        follow = request.rules.follow
        allowed = request.rules.allowed(data.source.first_column(), data.first)
        return {"allowed": allowed, "allowed_transitions": None if follow.all() else follow}

    def check_answers(self, model: SequenceTagger, data: Data, best: Sequence[Any]) -> None:
        """Raise UserError for items without an attribute that the model knows, such as columns read as items."""
        if data.source.format != "items" or data.first:
            return
        unknown, n = model.unknown_counts_
        if n == 0 or (unknown == n >= MANY_UNKNOWN):
            what = "no token has an attribute" if n == 0 else f"the model knows none of the {n} attributes"
            raise UserError(
                f"{what}: this model reads CRFsuite's items, lines `label TAB attribute TAB attribute ...`; "
                "is the input in columns? Make the items of the model's training from them"
            )

    def answer_fields(self, data: Data, i: int, answer: Sequence[Any]) -> Fields:
        return {"labels": data.source.answer(i, answer)}

    def marginal_fields(self, model: SequenceTagger, row: Any) -> object:
        names = [str(label) for label in model.classes_.tolist()]
        return [dict(zip(names, each, strict=True)) for each in row.tolist()]

    def answer_lines(self, model: SequenceTagger, data: Data, i: int, answer: Sequence[Any], row: Any) -> Iterable[str]:
        ends = list(map(str, answer))
        if row is not None:
            names = [str(label) for label in model.classes_.tolist()]
            texts = ("\t".join(f"{a}/{p:.6f}" for a, p in zip(names, each, strict=True)) for each in row.tolist())
            ends = [f"{label}\t{text}" for label, text in zip(ends, texts, strict=True)]
        yield from data.source.lines(i, ends)

    def ranked_lines(
        self, data: Data, i: int, answer: Sequence[Any], comment: str, first: bool, last: bool
    ) -> Iterable[str]:
        yield from data.source.version(i, list(map(str, answer)), comment, first, last)

    def features_of(self, remembered: Flags) -> Fields:
        if not isinstance(remembered.get("features"), str):
            return {}
        columns = str(remembered.get("feature_columns") or "")
        numbers = [int(k) for k in columns.split(",") if k.isdecimal()]
        learnt = {name: str(remembered[name]) for name in ("inputs", "target") if remembered.get(name)}
        return {"features": remembered["features"], "feature_columns": numbers, **learnt}

    def strongest(self, model: Any, n: int, data: Data | None = None) -> Strongest:
        found: Strongest = {}
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

    def examples(self, model: Any, data: Data, n: int) -> list[str]:
        from partwise.report import draw_tags

        some = self.take(data, drawable(data))
        guess = model.predict(some.X)
        wrong = [i for i, labels in enumerate(some.y) if guess[i] != labels]
        right = [i for i, labels in enumerate(some.y) if guess[i] == labels]
        chosen = choose_examples(wrong, right, n)
        probabilities: dict[int, list[float]] = {}
        if hasattr(model, "predict_marginals"):
            rows = model.predict_marginals(self.take(some, chosen).X, output="array")
            probabilities = {i: row.max(axis=1).tolist() for i, row in zip(chosen, rows, strict=True)}
        words = some.source.first_column()
        return [draw_tags(words[i], guess[i], gold=some.y[i], probabilities=probabilities.get(i)) for i in chosen]


def _transitions(model: SequenceTagger) -> dict[tuple[Any, ...], float]:
    """Return the weights of transitions by name: none where a kernel compares them."""
    return getattr(model, "transition_features_", {})


def drawable(data: Data, most: int = 500) -> Sequence[int]:
    """Return sentences of a length that can be drawn, spread over the data."""
    lengths = data.y.lengths
    fitting = np.flatnonzero((lengths >= 4) & (lengths <= 25)).tolist() or list(range(len(lengths)))
    return spread(fitting, most)
