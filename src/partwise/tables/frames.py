"""Training and predictions of taggers and dependency parsers on data frames with a token per row."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from partwise.model_files import kind_of
from partwise.models.constraints import ConstraintError
from partwise.models.sequences.template_reader import get_template
from partwise.tables import TableError
from partwise.tables.answers import WORD_FIELDS, Estimator, answers_of
from partwise.tables.token_table import Frame, TokenTable, check_string, fields_of, names_of

#: One name of a column, or several.
Names = str | Sequence[str]
#: The columns of which tokens are made: names of columns, or {field: column}.
Fields = list[str] | dict[str, str]


class TokenModel(ABC):
    """What a kind of estimator reads of a table of tokens; fitted: by what it has learnt, not by its parameters."""

    #: The column that this kind learns from, and what `fit` may be given besides.
    target: str
    also = ""

    def __init__(self, model: Estimator, fitted: bool) -> None:
        self.model, self.fitted = model, fitted

    def table(self, frame: Frame, columns: object, **options: Any) -> TokenTable:
        """Return a table to learn from; ValueError if the gold answers are not in the columns for this estimator."""
        if [name for name in ("label", "head") if options[name] is not None] != [self.target]:
            learns = f"learns from a column of {self.target}s: give {self.target}={self.also}"
            raise ValueError(f"{type(self.model).__name__} {learns}")
        table = TokenTable(frame, columns=self.fields(columns), **options)
        if not len(table):
            raise TableError("the frame has no rows to learn from")
        return table

    @abstractmethod
    def fields(self, columns: object) -> Fields:
        """Return `columns` as `TokenTable` takes them for this estimator."""

    @abstractmethod
    def read(self, table: TokenTable) -> Sequence[object]:
        """Return X."""

    @abstractmethod
    def allowed(self, table: TokenTable, known: str) -> list[object]:
        """Return the constraint `allowed` from a column of known answers, missing where they are not known."""


class TaggerOfTokens(TokenModel):
    """Taggers: labels of words."""

    target = "label"

    def __init__(self, model: Estimator, fitted: bool) -> None:
        super().__init__(model, fitted)
        given = None if model.template is None else get_template(model.template)
        self.template = model.template_ if fitted else given
        by_array = getattr(model, "kernel", None) is not None or (fitted and model.attributes_ is None)
        self.by_array = self.template is None and by_array

    def fields(self, columns: object) -> Fields:
        found = fields_of(columns)
        if self.template is None:
            return found if isinstance(found, dict) else dict(zip(found, found, strict=True))
        names = list(found.values()) if isinstance(found, dict) else found
        n = self.template.n_columns
        if len(names) < n:
            raise ValueError(f"columns: the template reads {n} columns, got {len(names)}: {', '.join(map(str, names))}")
        return names

    def read(self, table: TokenTable) -> Sequence[object]:
        if not self.by_array:
            return table.X
        found, width = table.arrays, getattr(self.model, "n_features_in_", None)
        if self.fitted and found and found[0].shape[1] != width:
            raise ValueError(f"columns: the model has {width} features, got {found[0].shape[1]} columns")
        return found

    def allowed(self, table: TokenTable, known: str) -> list[object]:
        labels, sentences = set(self.model.classes_.tolist()), table.optional(known)
        for i, sentence in enumerate(sentences):
            for k, label in enumerate(sentence):
                if label is not None and label not in labels:
                    raise TableError(f"the model has no label {label!r}", known, table.row(i, k))
        return [[None if label is None else [label] for label in sentence] for sentence in sentences]


class ParserOfTokens(TokenModel):
    """Dependency parsers: heads of words, and names of arcs."""

    target, also = "head", " (and relation=)"

    def fields(self, columns: object) -> Fields:
        found = fields_of(columns)
        if not isinstance(found, dict):
            one = len(found) == 1 and found[0] not in WORD_FIELDS
            found = {"form": found[0]} if one else dict(zip(found, found, strict=True))
        odd = [field for field in found if field not in WORD_FIELDS]
        if odd or "form" not in found:
            what = f"{odd[0]!r} is not one of a parser's fields" if odd else "a parser needs 'form'"
            example = '{"form": "word", "upos": "pos"}'
            raise ValueError(f"columns: {what}; they are {', '.join(WORD_FIELDS)}, to be given as {example}")
        return found

    def read(self, table: TokenTable) -> Sequence[object]:
        return table.words

    def allowed(self, table: TokenTable, known: str) -> list[object]:
        sentences = table.optional(known)
        for i, sentence in enumerate(sentences):
            n = len(sentence)
            for k, head in enumerate(sentence):
                if head is not None and (isinstance(head, (str, bool)) or head != int(head) or not 0 <= head <= n):
                    raise TableError(f"{head!r} is no head in a sentence of {n} words", known, table.row(i, k))
        return [{k: int(head) for k, head in enumerate(each, 1) if head is not None} for each in sentences]


def _token_model(model: Estimator, fitted: bool) -> TokenModel:
    """Return what reads tables for an estimator; TypeError if its answers are not about tokens."""
    try:
        kind = kind_of(model)
    except ValueError:
        kind = ""
    if kind not in ("dep", "segment", "tagger"):
        raise TypeError(
            f"tables of tokens are for taggers and dependency parsers, got {type(model).__name__}; "
            "TokenTable gives X and y"
        )
    return (ParserOfTokens if kind == "dep" else TaggerOfTokens)(model, fitted)


def fit(
    model: Estimator,
    frame: Frame,
    *,
    by: Names,
    columns: Names | Mapping[str, str],
    label: str | None = None,
    head: str | None = None,
    relation: str | None = None,
    interleaved: bool = False,
    **options: object,
) -> Estimator:
    """Train a tagger or a dependency parser on a table of tokens by ``model.fit(X, y, **options)``; return it.

    Parameters
    ----------
    model : SequenceTagger, SegmentTagger or DependencyParser
        With a `template` a tagger reads `columns` in their order; without, it takes each as an attribute named by it
        ("word=the"), numbers as values. A parser's are "form", "lemma", "upos", "xpos", "feats", or {field: column}.
    frame, by, columns, label, head, relation, interleaved : as for `TokenTable`; `label` for taggers, `head` and
        perhaps `relation` for parsers
    """
    form, targets = _token_model(model, False), {"label": label, "head": head, "relation": relation}
    table = form.table(frame, columns, by=by, interleaved=interleaved, **targets)
    return model.fit(form.read(table), table.y, **options)


def partial_fit(
    model: Estimator,
    frame: Frame,
    *,
    by: Names,
    columns: Names | Mapping[str, str],
    label: str | None = None,
    head: str | None = None,
    relation: str | None = None,
    interleaved: bool = False,
    **options: object,
) -> Estimator:
    """Train a tagger or a dependency parser further, by its `partial_fit` with `options` (`classes`, ...); return it.

    TableError for a label that a fitted tagger does not have, unless the model is to grow (``grow=True``).
    """
    fitted = hasattr(model, "result_")
    form, targets = _token_model(model, fitted), {"label": label, "head": head, "relation": relation}
    table = form.table(frame, columns, by=by, interleaved=interleaved, **targets)
    if label is not None and fitted and not options.get("grow"):
        form.allowed(table, label)
    return model.partial_fit(form.read(table), table.y, **options)


def predict(
    model: Estimator,
    frame: Frame,
    *,
    by: Names,
    columns: Names | Mapping[str, str],
    into: Names = "prediction",
    probabilities: bool = False,
    known: str | None = None,
    interleaved: bool = False,
) -> Frame:
    """Return the frame with the predictions of a fitted tagger or dependency parser as more columns.

    A tagger's is `into`; a parser's are `into` for heads, `into` + "_relation" where arcs have names. Rows keep their
    order, and pandas frames their index. TableError, with row and column, for a column that is missing, a value that is
    missing or of the wrong type, and a known label that the model does not have.

    Parameters
    ----------
    model, frame, by, columns, interleaved : as for `fit`
    into : the name of the column of predictions, or the names of all
    probabilities : one more column, `into` + "_probability": the probability of the label, or head, that was chosen
    known : a column of labels, or heads, that are known, missing where they are not: predictions agree with them
    """
    from sklearn.utils.validation import check_is_fitted

    _token_model(model, False)
    check_is_fitted(model)
    form, answers = _token_model(model, True), answers_of(model)
    if probabilities and not answers.has_probabilities:
        raise ValueError(f"probabilities: the loss {model.loss!r} gives none (log and softmax-margin do)")
    # A row has one relation, while a list has several.
    endings = [column.ending.replace("_relations", "_relation") for column in answers.columns]
    endings += ["_probability"] if probabilities else []
    names = [into + ending for ending in endings] if isinstance(into, str) else names_of(into)
    for name in names:
        check_string(name)
    if not into or not all(names):
        raise ValueError("into: the name of a column must not be empty")
    if len(names) != len(endings) or len(set(names)) != len(names):
        raise ValueError(f"into: {len(endings)} different names of columns, or one, got {into!r}")
    table = TokenTable(frame, by=by, columns=form.fields(columns), interleaved=interleaved)
    table.check_free(names)
    if probabilities:
        answers.check_probabilities()
    constraints = {} if known is None else {"allowed": form.allowed(table, known)}
    try:
        found = answers.predict(form.read(table), probabilities, **constraints)
    except ConstraintError as error:
        raise TableError(str(error), known, table.row(error.sequence, error.position or 0)) from None
    kinds = [*(column.kind for column in answers.columns), float]
    rows = {name: table.rows(own, name) for name, own in zip(names, found, strict=True)}
    return table.with_rows(rows, dict(zip(names, kinds, strict=False)))
