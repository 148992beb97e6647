"""A table of tokens as sentences, and answers for sentences as columns of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partwise.io.conllu import find_cycle
from partwise.support.arrays import Ints, pointers
from partwise.support.lazy import cached_property
from partwise.tables.tokens import columns as column
from partwise.tables.tokens.errors import FrameError


class TokenTable:
    """One token per row, as the sentences that estimators take.

        table = TokenTable(frame, by="sentence", columns=["word", "pos"], label="chunk")
        tagger.fit(table.X, table.y)
        tagged = table.with_columns(prediction=tagger.predict(table.X))

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table or another that narwhals knows
        Lazy frames are refused: collect them.
    by : str or list of str
        The columns that say which sentence a row belongs to. Rows of a sentence are in the order of its words.
    columns : str, list of str, or mapping
        What `X` is made of. A list: tokens are tuples of strings (of one column: strings), as feature templates read
        them. A mapping {field: column}: tokens are dicts, as taggers without a template (text, numbers, bools and lists
        of strings; a missing value is no attribute) and parsers (form, lemma, upos, xpos, feats) read them.
    label : str, optional
        Labels: `y` of taggers.
    head, relation : str, optional
        Heads (words count from 1 in their sentence, 0 is the root) and names of arcs: `y` of parsers.
    interleaved : bool
        Rows of a sentence may have others between them. By default a key that comes again after another one is an
        error: more often than not it is another sentence, whose number began again with its document.

    Attributes
    ----------
    keys : list
        The key of each sentence (a tuple where `by` names several columns), in order of first appearance.
    lengths : array of int
    """

    def __init__(
        self,
        frame: Any,
        *,
        by: str | Sequence[str],
        columns: str | Sequence[str] | Mapping[str, str],
        label: str | None = None,
        head: str | None = None,
        relation: str | None = None,
        interleaved: bool = False,
    ) -> None:
        self._frame = column.eager(frame)
        self._by = column.names_of(by)
        if not self._by:
            raise ValueError("by: name the columns that tell sentences apart")
        self._fields = column.fields_of(columns)
        if label is not None and head is not None:
            raise ValueError("label is for taggers and head for parsers: give one of them")
        if relation is not None and head is None:
            raise ValueError("relation needs head")
        self._label, self._head, self._relation = label, head, relation
        targets = [name for name in (label, head, relation) if name is not None]
        names = list(self._fields.values()) if isinstance(self._fields, dict) else self._fields
        column.check_names(self._frame, self._by)
        column.check_names(self._frame, names)
        column.check_names(self._frame, targets)
        for name in targets:
            if name in names:
                raise FrameError("is what X is made of as well as what is to be predicted", name)
            if name in self._by:
                raise FrameError("is what tells sentences apart as well as what is to be predicted", name)
        self._group(interleaved)

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        return f"<TokenTable: {len(self)} sentences, {len(self._frame)} tokens>"

    # sentences

    def _group(self, interleaved: bool) -> None:
        parts = [column.values(self._frame, name) for name in self._by]
        for name, part in zip(self._by, parts, strict=True):
            column.checked(name, part, _hashable, "a key")
        numbers: dict[Any, int] = {}
        rows = parts[0] if len(parts) == 1 else zip(*parts, strict=True)
        codes = np.fromiter((numbers.setdefault(key, len(numbers)) for key in rows), np.int64, len(self._frame))
        self.keys: list[Any] = list(numbers)
        back = np.flatnonzero(np.diff(codes) < 0)
        if len(back) and not interleaved:
            row = int(back[0]) + 1
            key, first = self.keys[codes[row]], int(np.flatnonzero(codes == codes[row])[0])
            raise FrameError(
                f"{key!r} again, as in row {first}, after rows of other sentences: name all columns of the key in "
                "`by`, such as the document's, or say interleaved=True if the rows are of one sentence",
                ", ".join(map(str, self._by)),
                row,
            )
        self._order: Ints | None = np.argsort(codes, kind="stable") if len(back) else None
        self.lengths: Ints = np.bincount(codes, minlength=len(self.keys))

    def sentences(self, values: Sequence[Any]) -> list[list[Any]]:
        """Values of rows as a list per sentence."""
        if self._order is not None:
            values = [values[row] for row in self._order.tolist()]
        ends = pointers(self.lengths).tolist()
        return [list(values[a:b]) for a, b in zip(ends, ends[1:], strict=False)]

    def rows(self, sentences: Any, name: str = "") -> list[Any]:
        """The inverse: a value per word of each sentence as a value per row."""
        if len(sentences) != len(self):
            raise ValueError(f"{name}: values for {len(sentences)} sentences, the table has {len(self)}")
        for key, length, own in zip(self.keys, self.lengths.tolist(), sentences, strict=True):
            if isinstance(own, str):
                raise ValueError(f"{name}: expected a list of values for sentence {key!r}, got {own!r:.40}")
            if len(own) != length:
                raise ValueError(f"{name}: {len(own)} values for sentence {key!r}, which has {length} words")
        flat = [value for sentence in sentences for value in sentence]
        if self._order is None:
            return flat
        found: list[Any] = [None] * len(flat)
        for row, value in zip(self._order.tolist(), flat, strict=True):
            found[row] = value
        return found

    # X and y

    @cached_property
    def X(self) -> list[list[Any]]:  # noqa: N802
        """The sentences: lists of tokens, which are strings, tuples of strings, or dicts (see `columns`)."""
        if isinstance(self._fields, list):
            found = [column.texts(self._frame, name) for name in self._fields]
            return self.sentences(found[0] if len(found) == 1 else list(zip(*found, strict=True)))
        fields = [column.attribute_values(self._frame, name) for name in self._fields.values()]
        names = list(self._fields)
        rows = zip(*fields, strict=True)
        return self.sentences([{n: v for n, v in zip(names, row, strict=True) if v is not None} for row in rows])

    @property
    def words(self) -> list[list[Any]]:
        """`X` with text alone: words of parsers, which are dicts."""
        assert isinstance(self._fields, dict)
        for name in self._fields.values():
            column.texts(self._frame, name)
        return self.X

    @property
    def arrays(self) -> list[Any]:
        """`X` as an array per sentence, a column of numbers per column."""
        names = list(self._fields.values()) if isinstance(self._fields, dict) else self._fields
        rows = np.column_stack([column.finite_numbers(self._frame, name) for name in names]).astype(np.float64)
        if self._order is not None:
            rows = rows[self._order]
        return np.split(rows, pointers(self.lengths)[1:-1]) if len(self) else []

    @cached_property
    def y(self) -> list[list[Any]] | None:
        """The right answers: lists of labels, of heads, or of (head, relation) pairs; None where no column has them."""
        if self._label is not None:
            return self.sentences(column.labels(self._frame, self._label))
        if self._head is None:
            return None
        places = self.rows([range(1, n + 1) for n in self.lengths.tolist()])
        lengths = self.rows([[n] * n for n in self.lengths.tolist()])
        heads = column.heads(self._frame, self._head, places, lengths)
        for i, own in enumerate(self.sentences(heads)):
            word = find_cycle(own)
            if word:
                raise FrameError(
                    f"the heads of word {word} and those above it go round", self._head, self.row(i, word - 1)
                )
        if self._relation is None:
            return self.sentences(heads)
        return self.sentences(list(zip(heads, column.texts(self._frame, self._relation), strict=True)))

    def optional(self, name: str) -> list[list[Any]]:
        """Another column by sentences, None where a row has no value."""
        column.check_names(self._frame, [name])
        return self.sentences(column.values(self._frame, name))

    def row(self, sentence: int, word: int) -> int:
        """The row of a word, all counted from 0."""
        place = int(pointers(self.lengths)[sentence]) + word
        return place if self._order is None else int(self._order[place])

    # answers

    def with_columns(self, answers: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """The frame with more columns: by name a list per sentence, such as predictions.

        Rows keep their order, and pandas frames their index. FrameError for a name that is taken.
        """
        given = {**(answers or {}), **more}
        self.check_free(given)
        return self.with_rows({name: (self.rows(found, name), None) for name, found in given.items()})

    def check_free(self, names: Any) -> None:
        """FrameError for a name of a column that is there."""
        for name in names:
            if name in self._frame.columns:
                raise FrameError("is there already: choose another name for the predictions", name)

    def with_rows(self, columns: Mapping[str, tuple[list[Any], Any]]) -> Any:
        """The same from (a value per row, a type of narwhals or None) by name."""
        import narwhals.stable.v2 as nw

        backend = self._frame.implementation
        made = [nw.new_series(name, found, kind, backend=backend) for name, (found, kind) in columns.items()]
        return self._frame.with_columns(*made).to_native()


def _hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
