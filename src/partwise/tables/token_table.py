"""Data frames of tokens as sentences, and answers for sentences as columns of the frames."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from partwise.io.conllu import find_cycle
from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.lazy import cached_property
from partwise.tables import TableError
from partwise.tables.answers import Head

if TYPE_CHECKING:
    from narwhals.typing import IntoDType

#: A data frame: of any library if a user gives it, of narwhals inside this module.
Frame = Any
#: Values of a column, or of the sentences: whatever the frame holds.
Value = Any
Answers = Sequence[Sequence[Value]]
T = TypeVar("T")


class TokenTable:
    """A data frame with a token per row, as the sentences that estimators take.

        table = TokenTable(frame, by="sentence", columns=["word", "pos"], label="chunk")
        tagger.fit(table.X, table.y)
        tagged = table.with_columns(prediction=tagger.predict(table.X))

    Parameters
    ----------
    frame : a frame of pandas, polars, pyarrow or another library that narwhals knows; not a lazy one
    by : the columns that say which sentence a row belongs to; rows of a sentence are in the order of its words
    columns : str, list of str, or mapping
        What `X` is made of. A list: tokens are tuples of strings (of one column: strings), as feature templates read
        them. A mapping {field: column}: tokens are dicts, as taggers without a template (text, numbers, bools and lists
        of strings; a missing value is no attribute) and parsers (form, lemma, upos, xpos, feats) read them.
    label : the column of labels, `y` of taggers
    head, relation : columns of heads (words count from 1 in their sentence, 0 is the root) and names of arcs, `y` of
        parsers
    interleaved : whether rows of a sentence may have others between them. By default a key that comes again after
        another one is an error: often it is another sentence, whose number began again with its document

    Attributes
    ----------
    keys : the key of each sentence (a tuple where `by` names several columns), in order of first appearance
    lengths : the number of words of each sentence
    """

    def __init__(
        self,
        frame: Frame,
        *,
        by: str | Sequence[str],
        columns: str | Sequence[str] | Mapping[str, str],
        label: str | None = None,
        head: str | None = None,
        relation: str | None = None,
        interleaved: bool = False,
    ) -> None:
        self._frame, self._by, self._fields = _as_eager(frame), names_of(by), fields_of(columns)
        if not self._by:
            raise ValueError("by: name the columns that tell sentences apart")
        if label is not None and head is not None:
            raise ValueError("label is for taggers and head for parsers: give one of them")
        if relation is not None and head is None:
            raise ValueError("relation needs head")
        self._label, self._head, self._relation = label, head, relation
        self._names = list(self._fields.values()) if isinstance(self._fields, dict) else self._fields
        targets = [name for name in (label, head, relation) if name is not None]
        for names in (self._by, self._names, targets):
            self._check_names(names)
        for name in targets:
            if name in (*self._names, *self._by):
                use = "what X is made of" if name in self._names else "what tells sentences apart"
                raise TableError(f"is {use} as well as what is to be predicted", name)
        self._group(interleaved)

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        return f"<TokenTable: {len(self)} sentences, {len(self._frame)} tokens>"

    def _group(self, interleaved: bool) -> None:
        parts = [self._read(name, _is_hashable, "a key") for name in self._by]
        numbers: dict[Value, int] = {}
        rows = parts[0] if len(parts) == 1 else zip(*parts, strict=True)
        codes = np.fromiter((numbers.setdefault(key, len(numbers)) for key in rows), np.int64, len(self._frame))
        self.keys: list[Value] = list(numbers)
        back = np.diff(codes) < 0
        if back.any() and not interleaved:
            row = int(back.argmax()) + 1
            again = f"{self.keys[codes[row]]!r} again, as in row {(codes == codes[row]).argmax()}"
            hint = "name all columns of the key in `by`, such as the document's, or say interleaved=True if the rows"
            message = f"{again}, after rows of other sentences: {hint} are of one sentence"
            raise TableError(message, ", ".join(map(str, self._by)), row)
        #: Rows in the order of sentences.
        self._order: list[int] = np.argsort(codes, kind="stable").tolist()
        self.lengths: Ints = np.bincount(codes, minlength=len(self.keys))

    def sentences(self, values: Sequence[T]) -> list[list[T]]:
        """Return values of rows as a list per sentence."""
        ordered = iter([values[row] for row in self._order])
        return [list(islice(ordered, length)) for length in self.lengths.tolist()]

    def rows(self, sentences: Sequence[Sequence[T]], name: str = "") -> list[T]:
        """Return a value per word of each sentence as a value per row: the inverse of `sentences`."""
        if len(sentences) != len(self):
            raise ValueError(f"{name}: values for {len(sentences)} sentences, the table has {len(self)}")
        for key, length, own in zip(self.keys, self.lengths.tolist(), sentences, strict=True):
            if isinstance(own, str):
                raise ValueError(f"{name}: expected a list of values for sentence {key!r}, got {own!r:.40}")
            if len(own) != length:
                raise ValueError(f"{name}: {len(own)} values for sentence {key!r}, which has {length} words")
        pairs = dict(zip(self._order, chain.from_iterable(sentences), strict=True))
        return [pairs[row] for row in range(len(pairs))]

    def row(self, sentence: int, word: int) -> int:
        """Return the row of a word, all counted from 0."""
        return self._order[int(pointers(self.lengths)[sentence]) + word]

    @cached_property
    def X(self) -> list[list[Value]]:  # noqa: N802
        """The sentences: lists of tokens, which are strings, tuples of strings, or dicts (see `columns`)."""
        if isinstance(self._fields, list):
            found = [self._texts(name) for name in self._fields]
            return self.sentences(found[0] if len(found) == 1 else list(zip(*found, strict=True)))
        fields = {field: self._attributes(name) for field, name in self._fields.items()}
        rows = zip(*fields.values(), strict=True)
        return self.sentences([{f: v for f, v in zip(fields, row, strict=True) if v is not None} for row in rows])

    @property
    def words(self) -> list[list[Value]]:
        """`X` with text alone: words of parsers, which are dicts."""
        for name in self._names:
            self._texts(name)
        return self.X

    @property
    def arrays(self) -> list[Floats]:
        """`X` as an array per sentence, with a column of numbers per column of the frame."""
        columns = [self._read(name, _is_finite, "a finite number") for name in self._names]
        rows = np.column_stack(columns).astype(np.float64)[self._order]
        return np.split(rows, pointers(self.lengths)[1:-1]) if len(self) else []

    @cached_property
    def y(self) -> list[list[Value]] | None:
        """The gold answers: lists of labels, of heads, or of (head, relation) pairs; None where no column has them."""
        if self._label is not None:
            wanted = "a label (text, a whole number or a bool)"
            return self.sentences(self._read(self._label, lambda v: isinstance(v, (str, bool, Integral)), wanted, True))
        if self._head is None:
            return None
        heads: list[Value] = self._heads(self._head)
        if self._relation is not None:
            heads = list(zip(heads, self._texts(self._relation), strict=True))
        return self.sentences(heads)

    def optional(self, name: str) -> list[list[Value]]:
        """Return another column by sentences, None where a row has no value."""
        self._check_names([name])
        return self.sentences(self._values(name))

    def with_columns(self, answers: Mapping[str, Answers] | None = None, /, **more: Answers) -> Frame:
        """Return the frame with more columns: by name a list per sentence, such as predictions.

        Rows keep their order, and pandas frames their index. TableError for a name that is taken.
        """
        given = {**(answers or {}), **more}
        self.check_free(given)
        return self.with_rows({name: self.rows(found, name) for name, found in given.items()}, {})

    def check_free(self, names: Iterable[str]) -> None:
        """Raise TableError for the name of a column that the frame has."""
        for name in names:
            if name in self._frame.columns:
                raise TableError("is there already: choose another name for the predictions", name)

    def with_rows(self, columns: Mapping[str, list[Value]], kinds: Mapping[str, type]) -> Frame:
        """Return the frame with more columns: by name a value per row, and perhaps the type of the values."""
        import narwhals.stable.v2 as nw

        types: dict[type | None, IntoDType] = {
            str: nw.String, bool: nw.Boolean, int: nw.Int64, float: nw.Float64, Head: nw.Int64
        }  # fmt: skip
        made = [
            nw.new_series(name, own, types.get(kinds.get(name)), backend=self._frame.implementation)
            for name, own in columns.items()
        ]
        return self._frame.with_columns(*made).to_native()

    def _check_names(self, names: Iterable[str]) -> None:
        """Raise TableError for a column that is missing or named twice, and for names that are not strings."""
        taken: set[str] = set()
        for name in names:
            check_string(name)
            if name in taken:
                raise TableError("is named twice", name)
            taken.add(name)
            if name not in self._frame.columns:
                there = ", ".join(map(repr, self._frame.columns[:20])) or "none"
                levels = getattr(getattr(self._frame.to_native(), "index", None), "names", ())
                hint = "it is in the index: call reset_index() first" if name in levels else f"there are {there}"
                raise TableError(f"there is no such column; {hint}", name)

    def _values(self, name: str) -> list[Value]:
        """Return a column as a list, None where it is null or NaN."""
        column = self._frame[name]
        nulls = column.is_null()
        found: list[Value] = column.to_list()
        if nulls.any():
            found = [None if null else value for value, null in zip(found, nulls.to_list(), strict=True)]
        if column.dtype.is_float() or not column.dtype.is_numeric():  # polars has NaN and null; objects may be either
            found = [None if isinstance(value, float) and math.isnan(value) else value for value in found]
        return found

    def _read(
        self, name: str, good: Callable[[Value], bool], wanted: str, whole: bool = False, hint: str = ""
    ) -> list[Value]:
        """Return a column whose values are all good; TableError with the first row that is not.

        whole: whether numbers such as 1.0 become whole numbers.
        """
        found = self._values(name)
        if whole:
            found = [int(v) if isinstance(v, float) and v.is_integer() else v for v in found]
        for row, value in enumerate(found):
            if value is None:
                raise TableError("is missing" + hint, name, row)
            if not good(value):
                raise TableError(f"is {_shown(value)}, expected {wanted}", name, row)
        return found

    def _texts(self, name: str) -> list[str]:
        hint = " (pandas.read_csv takes words such as 'NA' and 'null' for missing: keep_default_na=False)"
        return self._read(name, lambda value: isinstance(value, str), "text", hint=hint)

    def _attributes(self, name: str) -> list[Value]:
        """Return a column of strings, finite numbers, bools or lists of strings; None where a value is missing."""
        found = [each.tolist() if hasattr(each, "tolist") else each for each in self._values(name)]
        for row, value in enumerate(found):
            fits = value is None or isinstance(value, str) or _is_finite(value)
            if isinstance(value, Sequence) and not fits:
                fits = all(isinstance(each, str) for each in value)
            if not fits:
                raise TableError(f"is {_shown(value)}, expected text, a finite number or a list of strings", name, row)
        return found

    def _heads(self, name: str) -> list[int]:
        """Return a column of heads, which are trees."""
        whole = "a whole number: the head's place in its sentence, counted from 1, or 0 for the root"
        found = self._read(name, lambda v: isinstance(v, Integral) and not isinstance(v, bool), whole, True)
        places = self.rows([[(place, n) for place in range(1, n + 1)] for n in self.lengths.tolist()])
        for row, (head, (place, length)) in enumerate(zip(found, places, strict=True)):
            if not 0 <= head <= length:
                raise TableError(f"head {head} in a sentence of {length} words", name, row)
            if head == place:
                raise TableError(f"word {place} is its own head", name, row)
        for i, own in enumerate(self.sentences(found)):
            if word := find_cycle(own):
                raise TableError(f"the heads of word {word} and those above it go round", name, self.row(i, word - 1))
        return found


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"


def _as_eager(frame: Frame) -> Frame:
    """Return a frame of narwhals.

    TypeError for anything but a data frame, TableError for lazy frames and for names of columns that repeat.
    """
    try:
        import narwhals.stable.v2 as nw
        from narwhals.stable.v2.dependencies import is_into_dataframe
    except ImportError:
        raise ImportError("data frames need narwhals: pip install 'partwise[frames]'") from None
    names = getattr(frame, "columns", ()) if is_into_dataframe(frame) else ()
    names = getattr(frame, "column_names", names)  # pyarrow's `columns` are the values
    seen: set[object] = set()
    for name in names:
        if isinstance(name, str) and name in seen:
            raise TableError("two columns of this name", name)
        seen.add(name)
    found = nw.from_native(frame, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        raise TableError(f"the frame is lazy ({type(frame).__module__.partition('.')[0]}): call its collect() first")
    if not isinstance(found, nw.DataFrame):
        if hasattr(frame, "compute"):
            raise TableError("the frame is lazy (dask): call its compute() first")
        raise TypeError(f"expected a data frame (pandas, polars, pyarrow, ...), got {type(frame).__name__}")
    return found


def check_string(name: object) -> None:
    """Raise TableError for a name that is not a string, as pandas has them."""
    if not isinstance(name, str):
        raise TableError(f"names of columns must be strings, got {name!r}: rename them first")


def names_of(given: str | Iterable[str]) -> list[str]:
    """Return one name or several as a list; TableError for anything else."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        check_string(given)
        return [given]
    return list(given)


def fields_of(columns: object) -> dict[str, str] | list[str]:
    """Return names of columns as a list or as {field: column}; ValueError for anything else."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, Integral):
        check_string(columns)
    if not isinstance(columns, (Mapping, Sequence)):
        raise ValueError(f"columns must be names of columns or a mapping to them, got {columns!r}")
    if not columns:
        raise ValueError("columns: name at least one")
    return dict(columns) if isinstance(columns, Mapping) else list(columns)
