"""Estimators on tables of tokens: which columns they read, and which columns their answers are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partwise.model_files import kind_of
from partwise.models.errors import ConstraintError
from partwise.models.sequences import get_template
from partwise.tables.tokens.columns import check_string, fields_of, names_of
from partwise.tables.tokens.errors import FrameError
from partwise.tables.tokens.table import TokenTable

#: A parser's fields.
WORD_FIELDS = ("form", "lemma", "upos", "xpos", "feats")


class Form(ABC):
    """How a kind of estimator reads and answers tables of tokens.

    Parameters
    ----------
    model : an estimator
    fitted : whether to go by what it has learnt, or by its parameters
    """

    #: Endings of the names of columns of answers, without probabilities.
    endings: tuple[str, ...] = ("",)

    def __init__(self, model: Any, fitted: bool) -> None:
        self.model, self.fitted = model, fitted

    @abstractmethod
    def fields(self, columns: Any) -> Any:
        """`columns` as `TokenTable` takes them for this estimator."""

    @abstractmethod
    def read(self, table: TokenTable) -> Any:
        """X."""

    @abstractmethod
    def check_target(self, label: str | None, head: str | None) -> None:
        """ValueError unless the right answers are in the columns that this estimator learns from."""

    @abstractmethod
    def allowed(self, table: TokenTable, known: str) -> list[Any]:
        """The constraint `allowed` from a column of known answers, missing where they are not known."""

    @abstractmethod
    def answers(self, X: Any, probabilities: bool, **constraints: Any) -> list[tuple[Any, Any]]:
        """For each column of answers a list per sentence, and its type."""


class LabelForm(Form):
    """Taggers: labels of words."""

    def __init__(self, model: Any, fitted: bool) -> None:
        super().__init__(model, fitted)
        given = None if model.template is None else get_template(model.template)
        self.template = model.template_ if fitted else given
        by_array = getattr(model, "kernel", None) is not None or (fitted and model.attributes_ is None)
        self.by_array = self.template is None and by_array

    def fields(self, columns: Any) -> Any:
        found = fields_of(columns)
        if self.template is None:
            return found if isinstance(found, dict) else dict(zip(found, found, strict=True))
        names = list(found.values()) if isinstance(found, dict) else found
        n = self.template.n_columns
        if len(names) < n:
            raise ValueError(f"columns: the template reads {n} columns, got {len(names)}: {', '.join(map(str, names))}")
        return names

    def read(self, table: TokenTable) -> Any:
        if not self.by_array:
            return table.X
        found, width = table.arrays, getattr(self.model, "n_features_in_", None)
        if self.fitted and found and found[0].shape[1] != width:
            raise ValueError(f"columns: the model has {width} features, got {found[0].shape[1]} columns")
        return found

    def check_target(self, label: str | None, head: str | None) -> None:
        if label is None or head is not None:
            raise ValueError(f"{type(self.model).__name__} learns from a column of labels: give label=")

    def allowed(self, table: TokenTable, known: str) -> list[Any]:
        labels = set(self.model.classes_.tolist())
        found: list[Any] = []
        for i, sentence in enumerate(table.optional(known)):
            for k, label in enumerate(sentence):
                if label is not None and label not in labels:
                    raise FrameError(f"the model has no label {label!r}", known, table.row(i, k))
            found.append([None if label is None else [label] for label in sentence])
        return found

    def answers(self, X: Any, probabilities: bool, **constraints: Any) -> list[tuple[Any, Any]]:
        import narwhals.stable.v2 as nw

        labels = self.model.classes_.tolist()
        kinds: dict[Any, Any] = {str: nw.String, bool: nw.Boolean, int: nw.Int64, float: nw.Float64}
        kind = kinds.get(type(labels[0])) if len({type(each) for each in labels}) == 1 else None
        best = self.model.predict(X, **constraints)
        shown = best if kind else [[str(label) for label in sentence] for sentence in best]
        found = [(shown, kind or nw.String)]
        if probabilities:
            if getattr(self.model, "scheme", "iob2") != "iob2":
                raise ValueError("probabilities are those of labels in IOB2: set scheme='iob2'")
            place = {label: k for k, label in enumerate(labels)}
            rows = self.model.predict_marginals(X, output="array", **constraints)
            likely = [
                row[np.arange(len(row)), [place[label] for label in own]].tolist()
                for row, own in zip(rows, best, strict=True)
            ]
            found.append((likely, nw.Float64))
        return found


class TreeForm(Form):
    """Dependency parsers: heads of words, and names of arcs."""

    def __init__(self, model: Any, fitted: bool) -> None:
        super().__init__(model, fitted)
        self.named = fitted and hasattr(model, "classes_")
        self.endings = ("", "_relation") if self.named else ("",)

    def fields(self, columns: Any) -> Any:
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

    def read(self, table: TokenTable) -> Any:
        return table.words

    def check_target(self, label: str | None, head: str | None) -> None:
        if head is None or label is not None:
            raise ValueError(f"{type(self.model).__name__} learns from a column of heads: give head= (and relation=)")

    def allowed(self, table: TokenTable, known: str) -> list[Any]:
        found: list[Any] = []
        for i, sentence in enumerate(table.optional(known)):
            heads: dict[int, int] = {}
            for k, head in enumerate(sentence):
                if head is None:
                    continue
                if isinstance(head, (str, bool)) or head != int(head) or not 0 <= head <= len(sentence):
                    raise FrameError(
                        f"{head!r} is no head in a sentence of {len(sentence)} words", known, table.row(i, k)
                    )
                heads[k + 1] = int(head)
            found.append(heads)
        return found

    def answers(self, X: Any, probabilities: bool, **constraints: Any) -> list[tuple[Any, Any]]:
        import narwhals.stable.v2 as nw

        trees = self.model.predict(X, **constraints)
        heads = [[arc[0] for arc in tree] for tree in trees] if self.named else [list(tree) for tree in trees]
        found: list[tuple[Any, Any]] = [(heads, nw.Int64)]
        if self.named:
            found.append(([[arc[1] for arc in tree] for tree in trees], nw.String))
        if probabilities:
            rows = self.model.predict_marginals(X, **constraints)
            likely = [row[np.arange(len(row)), own].tolist() for row, own in zip(rows, heads, strict=True)]
            found.append((likely, nw.Float64))
        return found


#: Forms by the kind of model file.
FORMS: dict[str, type[Form]] = {"dep": TreeForm, "segment": LabelForm, "tagger": LabelForm}


def form_of(model: Any, fitted: bool) -> Form:
    """The form of an estimator. TypeError if its answers are not about tokens."""
    try:
        kind = kind_of(model)
    except ValueError:
        kind = ""
    if kind not in FORMS:
        raise TypeError(
            f"tables of tokens are for taggers and dependency parsers, got {type(model).__name__}; "
            "TokenTable gives X and y"
        )
    return FORMS[kind](model, fitted)


def fit(
    model: Any,
    frame: Any,
    *,
    by: str | Sequence[str],
    columns: str | Sequence[str] | Mapping[str, str],
    label: str | None = None,
    head: str | None = None,
    relation: str | None = None,
    interleaved: bool = False,
    **options: Any,
) -> Any:
    """Train a tagger or a dependency parser on a table of tokens: ``model.fit(X, y)``. Gives the model.

    Parameters
    ----------
    model : SequenceTagger, SegmentTagger or DependencyParser
        A tagger with a `template` reads its columns in the order of `columns`; one without takes each as an attribute
        named by it ("word=the"), numbers as values. A parser's are "form", "lemma", "upos", "xpos", "feats", or a
        mapping from these to columns.
    frame, by, columns, label, head, relation, interleaved
        As for `TokenTable`; `label` for taggers, `head` and perhaps `relation` for parsers.
    options
        As `fit` of the model takes them (`checkpoint`).
    """
    form, table = _labelled(form_of(model, False), frame, by, columns, label, head, relation, interleaved)
    return model.fit(form.read(table), table.y, **options)


def partial_fit(
    model: Any,
    frame: Any,
    *,
    by: str | Sequence[str],
    columns: str | Sequence[str] | Mapping[str, str],
    label: str | None = None,
    head: str | None = None,
    relation: str | None = None,
    interleaved: bool = False,
    **options: Any,
) -> Any:
    """`fit` by the model's `partial_fit`, whose `options` (`classes`, ...) it takes. Gives the model.

    FrameError for a label that a fitted tagger does not have, unless the model is to grow (``grow=True``).
    """
    fitted = hasattr(model, "result_")
    form, table = _labelled(form_of(model, fitted), frame, by, columns, label, head, relation, interleaved)
    if label is not None and fitted and not options.get("grow"):
        form.allowed(table, label)
    return model.partial_fit(form.read(table), table.y, **options)


def _labelled(
    form: Form, frame: Any, by: Any, columns: Any, label: Any, head: Any, relation: Any, interleaved: bool
) -> tuple[Form, TokenTable]:
    form.check_target(label, head)
    names = form.fields(columns)
    table = TokenTable(frame, by=by, columns=names, label=label, head=head, relation=relation, interleaved=interleaved)
    if not len(table):
        raise FrameError("the frame has no rows to learn from")
    return form, table


def predict(
    model: Any,
    frame: Any,
    *,
    by: str | Sequence[str],
    columns: str | Sequence[str] | Mapping[str, str],
    into: str | Sequence[str] = "prediction",
    probabilities: bool = False,
    known: str | None = None,
    interleaved: bool = False,
) -> Any:
    """The frame with the predictions of a fitted tagger or dependency parser as more columns.

    A tagger's is `into`; a parser's are `into` for heads, `into` + "_relation" where arcs have names. Rows keep their
    order, and pandas frames their index.

    Parameters
    ----------
    model, frame, by, columns, interleaved
        As for `fit`.
    into : str or list of str
        The name of the column of predictions, or the names of all.
    probabilities : bool
        One more column, `into` + "_probability": of each row the probability of the label, or head, that was chosen.
    known : str, optional
        A column of labels, or heads, that are known, missing where they are not: predictions agree with them.

    Raises
    ------
    FrameError
        For a column that is missing, a value that is missing or of the wrong type, a known label that the model does
        not have: with row and column.
    """
    from sklearn.utils.validation import check_is_fitted

    form_of(model, False)
    check_is_fitted(model)
    form = form_of(model, True)
    if probabilities and not hasattr(model, "predict_marginals"):
        raise ValueError(f"probabilities: the loss {model.loss!r} gives none (log and softmax-margin do)")
    endings = [*form.endings, *(["_probability"] if probabilities else [])]
    names = [into + ending for ending in endings] if isinstance(into, str) else names_of(into)
    for name in names:
        check_string(name)
    if not into or not all(names):
        raise ValueError("into: the name of a column must not be empty")
    if len(names) != len(endings) or len(set(names)) != len(names):
        raise ValueError(f"into: {len(endings)} different names of columns, or one, got {into!r}")
    table = TokenTable(frame, by=by, columns=form.fields(columns), interleaved=interleaved)
    table.check_free(names)
    constraints = {} if known is None else {"allowed": form.allowed(table, known)}
    try:
        found = form.answers(form.read(table), probabilities, **constraints)
    except ConstraintError as error:
        raise FrameError(str(error), known, table.row(error.sequence, error.position or 0)) from None
    rows = {name: (table.rows(each, name), kind) for name, (each, kind) in zip(names, found, strict=True)}
    return table.with_rows(rows)
