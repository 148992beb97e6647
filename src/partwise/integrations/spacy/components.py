"""Models in a pipeline of spaCy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.attrs import DEP, HEAD
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from spacy.util import minibatch, raise_error

from partwise import load
from partwise.integrations import model_from_bytes, model_to_bytes
from partwise.integrations.spacy.docs import BLANK, COLUMNS, WORD, columns_of, reader_of, sentences
from partwise.io import atomic_write
from partwise.metrics.chunks import chunk_spans
from partwise.support.arrays import Ints
from partwise.tables.conllu import ConlluColumns
from partwise.tables.lemma_rules import apply_lemma_rule

#: The universal parts of speech: a tagger whose labels are among them sets token.pos_.
UPOS = frozenset(
    {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ"}
    | {"SYM", "VERB", "X"}
)
#: The relation of spaces to the word beside them, and that of arcs without a name, which spaCy would take for missing.
ANY_RELATION = "dep"
#: The token attributes that taggers of CoNLL-U set, by the names of their targets.
TARGETS = {"upos": "pos", "xpos": "tag", "lemma-rule": "lemma", "feats": "morph"}

#: A fitted estimator of partwise: which methods it must have is up to the component.
Estimator = Any
Columns = Sequence[str] | None
#: Makes attributes of the tokens of a sentence.
Features = Callable[[list[Token]], object] | None
Scores = dict[str, object]


class _Component(Pipe):
    """A model in a pipeline.

    A missing model file is an error only when the component is first used: a saved pipeline has its own copy of the
    file.
    """

    #: The models that the component takes, in words, and a method that only those have.
    kinds: str = ""
    needs: str = ""
    #: The component's options, which are saved with the model.
    options: tuple[str, ...] = ()

    def __init__(self, nlp: Language, name: str, model: object = None) -> None:
        self.vocab, self.name = nlp.vocab, name
        self._path: Path | None = None
        self._model: Estimator | None = None
        if isinstance(model, str | Path):
            self._path = Path(model)
            model = load(self._path) if self._path.exists() else None
        if model is not None:
            self.use(model)

    @property
    def estimator(self) -> Estimator:
        if self._model is None:
            if self._path is None:
                raise ValueError(f"{self.name}: no model was given: config={{'model': 'FILE.pw'}}")
            raise ValueError(f"{self.name}: there is no file {str(self._path)!r}")
        return self._model

    def use(self, model: Estimator) -> None:
        """Take another fitted model."""
        if not hasattr(model, self.needs) or not hasattr(model, "result_"):
            raise ValueError(f"{self.name} takes {self.kinds}, not {type(model).__name__}")
        self._model = model
        self._check()

    def _check(self) -> None:
        """Raise ValueError if model and options do not fit."""

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Write the model's answers into some Docs, by one prediction for all of them."""
        raise NotImplementedError

    def __call__(self, doc: Doc) -> Doc:
        list(self._one_by_one([doc]))
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        for docs in minibatch(stream, size=batch_size):
            try:
                self.annotate(docs)
            except Exception:
                if self.get_error_handler() is raise_error:
                    raise
                yield from self._one_by_one(docs)
            else:
                yield from docs

    def _one_by_one(self, docs: Sequence[Doc]) -> Iterator[Doc]:
        """Annotate each Doc alone; those that fail go to the error handler."""
        for doc in docs:
            try:
                self.annotate([doc])
            except Exception as error:
                self.get_error_handler()(self.name, self, [doc], error)
            else:
                yield doc

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        return bytes(srsly.msgpack_dumps({"settings": self._settings(), "model": model_to_bytes(self.estimator)}))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> _Component:
        """Take what was saved; nothing in it is executed."""
        found = srsly.msgpack_loads(data)
        packed = found.get("model") if isinstance(found, dict) else None
        if not isinstance(packed, bytes):
            raise ValueError(f"{self.name}: there is no model file in these bytes")
        return self._restore(found.get("settings"), model_from_bytes(packed))

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write a folder with `model.pw` and `settings.json`."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        self.estimator.save(folder / "model.pw")
        with atomic_write(folder / "settings.json", "w") as file:
            file.write(srsly.json_dumps(self._settings()))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> _Component:
        """Take what was saved; nothing in it is executed."""
        folder = Path(path)
        return self._restore(srsly.read_json(folder / "settings.json"), load(folder / "model.pw"))

    def _settings(self) -> dict[str, object]:
        return {option: getattr(self, option) for option in self.options}

    def _restore(self, settings: object, model: Estimator) -> _Component:
        found = settings if isinstance(settings, dict) else {}
        if missing := [name for name in self.options if name not in found]:
            raise ValueError(f"{self.name}: the settings lack {', '.join(missing)}")
        for option in self.options:
            setattr(self, option, found[option])
        self.use(model)
        return self


class _Labels(_Component):
    """Components whose model labels every word."""

    kinds = "a SequenceTagger or SegmentTagger"
    needs = "predict_single"
    options: tuple[str, ...] = ("columns",)

    def __init__(
        self, nlp: Language, name: str, model: object = None, columns: Columns = None, features: Features = None
    ) -> None:
        self.columns = None if columns is None else list(columns)
        self.features = features
        super().__init__(nlp, name, model)

    @property
    def conllu(self) -> ConlluColumns | None:
        """What the model reads and fills, if it was trained on CoNLL-U."""
        try:
            return ConlluColumns.of(self.estimator)
        except ValueError:
            return None

    @property
    def names(self) -> list[str] | None:
        """The columns that are given, or those that the model was trained on; None if nobody says."""
        if self.columns is not None or self.conllu is None:
            return self.columns
        return self.conllu.names

    def _check(self) -> None:
        names = self.names if self.features is None else self.columns
        for column in names or ():
            try:
                reader_of(column)
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from None
        if self.features is not None:
            return
        template = self.estimator.template_
        if template is None:
            raise ValueError(
                f"{self.name}: the model reads attributes, which no template makes; give `features`, a function from a "
                "list of tokens to the attributes of each"
            )
        needed = max(template.columns, default=0) + 1
        if needed > (1 if names is None else len(names)):
            hint = f"name them, as in columns=['form', 'tag'] (there are {', '.join(COLUMNS)})"
            got = f"; {hint}" if names is None else f", got {', '.join(names)}"
            raise ValueError(f"{self.name}: the model reads {needed} columns{got}")

    def read(self, words: list[list[Token]]) -> object:
        if self.features is not None:
            return [self.features(sentence) for sentence in words]
        return columns_of(words, self.names or ("form",))


class PartwiseTagger(_Labels):
    """Sets `token.tag_` or `token.pos_` by a `SequenceTagger` (`partwise_tagger`).

    One that was trained on CoNLL-U sets what its target says: also `token.lemma_` or `token.morph`.
    """

    options = ("columns", "attribute")

    def __init__(
        self,
        nlp: Language,
        name: str,
        model: object = None,
        columns: Columns = None,
        attribute: str = "auto",
        features: Features = None,
    ) -> None:
        if attribute not in ("auto", "tag", "pos"):
            raise ValueError(f"{name}: attribute must be 'auto', 'tag' or 'pos', got {attribute!r}")
        self.attribute = attribute
        super().__init__(nlp, name, model, columns, features)

    @property
    def target(self) -> str:
        """Which of "tag", "pos", "lemma" and "morph" it sets."""
        own = None if self.conllu is None else TARGETS.get(self.conllu.target.name)
        if own in ("lemma", "morph") or (own == "tag" and self.attribute == "auto"):
            return own
        if self.attribute != "auto":
            return self.attribute
        return "pos" if UPOS.issuperset(self.estimator.classes_.tolist()) else "tag"

    def _check(self) -> None:
        super()._check()
        filled = "upos" if self.conllu is None else self.conllu.target.name
        if filled not in TARGETS:
            what = "tokens take UPOS, XPOS, FEATS and LEMMA-rule alone"
            raise ValueError(f"{self.name}: the model fills {filled}, {what}")
        if self.attribute not in ("auto", self.target):
            raise ValueError(f"{self.name}: the model fills {filled}, which is no token.{self.attribute}_")
        strange = sorted(set(map(str, self.estimator.classes_.tolist())) - UPOS) if self.target == "pos" else []
        if strange:
            raise ValueError(f"{self.name}: {strange[0]!r} is no universal part of speech; use attribute='tag'")

    def annotate(self, docs: Sequence[Doc]) -> None:
        words = sentences(docs)
        if not words:
            return
        target = self.target
        for sentence, labels in zip(words, self.estimator.predict(self.read(words)), strict=True):
            for token, label in zip(sentence, labels, strict=True):
                if target == "morph":
                    token.set_morph("" if label == BLANK else str(label))
                else:
                    value = apply_lemma_rule(label, token.text) if target == "lemma" else str(label)
                    setattr(token, f"{target}_", value)

    def score(self, examples: Iterable[Example], **options: object) -> Scores:
        """Return the accuracy, for `nlp.evaluate`."""
        # Features are compared as numbers.
        getter = (lambda token, _: token.morph.key) if self.target == "morph" else getattr
        return dict(Scorer.score_token_attr(examples, self.target, getter=getter))


class PartwiseNER(_Labels):
    """Sets `doc.ents` by a tagger of chunk labels (B-PER, ...) or a `SegmentTagger` (`partwise_ner`)."""

    def _check(self) -> None:
        super()._check()
        if not hasattr(self.estimator, "predict_spans"):
            labels = list(map(str, self.estimator.classes_.tolist()))
            if not any(label[:2] in ("B-", "I-", "S-", "E-", "U-", "L-") for label in labels):
                raise ValueError(f"{self.name}: the model's labels are no chunk labels (B-PER, I-PER, O): {labels[:5]}")

    def annotate(self, docs: Sequence[Doc]) -> None:
        words = sentences(docs)
        if not words:
            return
        X = self.read(words)
        if hasattr(self.estimator, "predict_spans"):
            spans = [[(span.label, span.begin, span.end) for span in own] for own in self.estimator.predict_spans(X)]
        else:
            spans = list(map(chunk_spans, self.estimator.predict(X)))
        found: dict[int, list[Span]] = {id(doc): [] for doc in docs}
        for sentence, own in zip(words, spans, strict=True):
            doc = sentence[0].doc
            found[id(doc)] += [Span(doc, sentence[a].i, sentence[b - 1].i + 1, str(kind)) for kind, a, b in own]
        for doc in docs:
            doc.set_ents(found[id(doc)])

    def score(self, examples: Iterable[Example], **options: object) -> Scores:
        """Return precision, recall and F1 of entities, for `nlp.evaluate`."""
        return dict(get_ner_prf(examples))


class PartwiseParser(_Component):
    """Sets `token.head`, `token.dep_` and sentence boundaries by a `DependencyParser` (`partwise_parser`).

    Sentences are those that the Doc has; put a sentencizer before it where texts have several.
    """

    kinds = "a DependencyParser"
    needs = "parse"

    def annotate(self, docs: Sequence[Doc]) -> None:
        words = sentences(docs)
        answers = self.estimator.predict(columns_of(words, WORD)) if words else []
        blank = self.estimator.blank_columns_ if words else []
        if blank:
            warnings.warn(
                f"{self.name}: the Docs have no {', '.join(blank)}, which the parser was trained with: put a component "
                "that sets them before it, or expect wrong trees",
                stacklevel=2,
            )
        arcs = {id(doc): (np.zeros(len(doc), dtype=np.int64), [""] * len(doc)) for doc in docs}
        for sentence, tree in zip(words, answers, strict=True):
            heads, relations = arcs[id(sentence[0].doc)]
            for token, arc in zip(sentence, tree, strict=True):
                head, relation = arc if isinstance(arc, tuple) else (arc, ANY_RELATION)
                heads[token.i] = sentence[head - 1].i - token.i if head else 0
                relations[token.i] = relation if head else "ROOT"
        for doc in docs:
            _set_arcs(doc, *arcs[id(doc)])

    def score(self, examples: Iterable[Example], **options: object) -> Scores:
        """Return attachment scores, for `nlp.evaluate`."""
        return dict(Scorer.score_deps(examples, "dep", ignore_labels=("p", "punct")))


def _set_arcs(doc: Doc, heads: Ints, relations: list[str]) -> None:
    """Set heads (distances to them) and relations; spaces hang on the word before them, or on the first word."""
    before = next((token.i for token in doc if not token.is_space), 0)
    for token in doc:
        if token.is_space:
            heads[token.i] = before - token.i
            relations[token.i] = ANY_RELATION if before != token.i else "ROOT"
        else:
            before = token.i
    strings = doc.vocab.strings
    values = np.empty((len(doc), 2), dtype=np.uint64)
    values[:, 0] = heads.astype(np.uint64)  # in two's complement
    values[:, 1] = [strings.add(relation or ANY_RELATION) for relation in relations]
    doc.from_array([HEAD, DEP], values)
