"""Answers of a model for the rows of a table, as more columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from partwise.tables.files.errors import ScoringError

#: Rows that are labelled at a time: sentences, or words.
ROWS, WORD_ROWS = 20_000, 100_000


def need_pyarrow() -> None:
    """ImportError, with what to install, where pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError("tables need pyarrow: pip install 'partwise[arrow]'") from None


class Scorer:
    """Labels tables with a model.

    A tagger with a template reads a column of lists of strings per column of the template, or, if it looks at words
    alone, a column of strings, which are split at white space; one without reads lists of lists of strings, of maps or
    of structs, or lists of lists of numbers. A classifier reads a column of numbers per feature, or one column of lists
    of numbers or of maps from indices to numbers. A dependency parser reads columns `form`, `lemma`, `upos`, `xpos`,
    `feats` of lists of strings, or lists of words or of structs; a parser of phrases lists of words or strings.

    Parameters
    ----------
    model : path or fitted estimator
    columns : list of str, optional
        What the model reads, in its order. By default the columns that fit, where types and names leave no choice.
    into : str
        The name of the column of answers; those of a second one (relations, probabilities) begin with it.
    probabilities : bool
        Also give the probability of each label that was chosen (of each head), given the row.
    nulls : {"error", "keep"}
        What to do with a row that is null in one of the columns: refuse it, or answer null.
    n_jobs : int, optional
        Threads; by default as the estimator has it.
    k_best : int, optional
        Also give the k best answers with their probabilities (where the loss gives none: scores), best first: lists of
        structs.
    by : list of str, optional
        A table has a word per row, and these columns say which sentence it belongs to: words of a sentence are rows
        that follow one another and have the same values there. Columns then hold strings (numbers, ...) and answers,
        too, are one per row. For taggers and dependency parsers.

    Raises
    ------
    ScoringError
        If a model gives no probabilities, or cannot read tables.
    """

    def __init__(
        self,
        model: Any,
        columns: Sequence[str] | None = None,
        *,
        into: str = "prediction",
        probabilities: bool = False,
        nulls: str = "error",
        n_jobs: int | None = None,
        k_best: int | None = None,
        by: Sequence[str] | None = None,
    ) -> None:
        need_pyarrow()
        from partwise.model_files import load
        from partwise.support.checks import check_choice, check_count
        from partwise.tables.files.forms import form_of

        check_choice("nulls", nulls, ("error", "keep"))
        for what, given in (("columns", columns), ("by", by)):
            if isinstance(given, str):
                raise ValueError(f"{what} must be a list of names, got {given!r}")
        self.model = load(model) if isinstance(model, (str, os.PathLike)) else model
        if n_jobs is not None:
            self.model.n_jobs = n_jobs
        self._form = form_of(self.model, columns)
        self._k_best = None if k_best is None else check_count("k_best", k_best)
        self._fields = [(into + suffix, kind) for suffix, kind in self._form.fields(probabilities, self._k_best)]
        self._probabilities, self._keep_nulls = probabilities, nulls == "keep"
        self.by = list(by or ())
        if self.by:
            self._fields = _per_word(self.model, self._fields, self._k_best, self._keep_nulls)
        #: (unknown features, all features) of what was labelled so far, where the model counts them.
        self.unknown = np.zeros(2, dtype=np.int64)

    @property
    def rows(self) -> int:
        """How many rows of a large table to label at a time."""
        return WORD_ROWS if self.by else ROWS

    def columns(self, schema: Any) -> list[str]:
        """The columns of a table that are read. ScoringError if one is missing or of another type."""
        names = [*self._choose(schema), *self.by]
        for name, _ in self._fields:
            if name in schema.names:
                raise ScoringError("is there already: choose another name for the predictions", name)
        return names

    def schema(self, schema: Any, keep: Sequence[str] | None = None) -> Any:
        """The schema of a table with its answers; keep: these of its own columns alone."""
        import pyarrow as pa

        own = list(schema) if keep is None else [schema.field(name) for name in keep]
        metadata = schema.metadata if keep is None else None
        return pa.schema([*own, *(pa.field(name, kind) for name, kind in self._fields)], metadata=metadata)

    def _choose(self, schema: Any) -> list[str]:
        """The columns that the model reads."""
        if not self.by:
            return self._form.choose(schema)
        import pyarrow as pa

        for name in self.by:
            if name not in schema.names:
                raise ScoringError(
                    f"there is no such column; there are {', '.join(map(repr, schema.names[:20]))}", name
                )
        words = [field for field in schema if field.name not in self.by]
        return self._form.choose(pa.schema([(field.name, pa.list_(field.type)) for field in words]))

    def answers(self, batch: Any, first: int = 0) -> list[Any]:
        """The columns of answers for a table or record batch; `first` rows come before it, for messages."""
        import pyarrow as pa

        from partwise.tables.files.arrays import list_array

        names = self._choose(batch.schema)
        columns = [_whole(batch.column(name)) for name in names]
        present = np.ones(batch.num_rows, dtype=bool)
        for name, column in zip(names, columns, strict=True):
            there = column.is_valid().to_numpy(zero_copy_only=False)
            if not there.all() and not self._keep_nulls:
                raise ScoringError("is null", name, first + int(np.flatnonzero(~there)[0]))
            present &= there
        if not present.any():
            return [pa.nulls(batch.num_rows, kind) for _, kind in self._fields]
        rows = np.flatnonzero(present)
        if len(rows) < len(present):
            columns = [column.take(pa.array(rows)) for column in columns]
        if self.by:
            rows = self.starts(batch, first)  # from here on a row is a sentence
            lengths = np.diff(np.append(rows, batch.num_rows))
            columns = [list_array(column, lengths) for column in columns]
        try:
            found = self._form.answers(self._form.read(names, columns), self._probabilities, self._k_best)
        except ScoringError as error:  # whose row is one of those that are present
            row = None if error.row is None else int(rows[error.row])
            raise ScoringError(error.message, error.column, row).placed(first) from None
        except (ValueError, pa.ArrowException) as error:
            last = first + batch.num_rows - 1
            raise ScoringError(f"in rows {first} to {last}, which are counted from 0 here: {error}") from error
        self._count()
        if self.by:
            return [column.flatten() for column in found]
        if len(rows) == len(present):
            return found
        place = np.cumsum(present) - 1
        return [column.take(pa.array(place, mask=~present)) for column in found]

    def starts(self, batch: Any, first: int = 0) -> Any:
        """The first row of each sentence, by the columns `by`."""
        import pyarrow.compute as pc

        new = np.zeros(batch.num_rows, dtype=bool)
        new[:1] = True
        for name in self.by:
            column = _whole(batch.column(name))
            if column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise ScoringError("is null", name, first + row)
            new[1:] |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        return np.flatnonzero(new)

    def _count(self) -> None:
        counts = getattr(self.model, "unknown_counts_", None)
        if counts is not None:
            self.unknown += counts

    def batch(self, batch: Any, keep: Sequence[str] | None = None, first: int = 0) -> Any:
        """A record batch with its answers."""
        import pyarrow as pa

        self.columns(batch.schema)
        schema = self.schema(batch.schema, keep)
        own = [batch.column(name) for name in (batch.schema.names if keep is None else keep)]
        return pa.RecordBatch.from_arrays([*own, *self.answers(batch, first)], schema=schema)

    def frame(self, frame: Any) -> Any:
        """A pandas DataFrame with its answers, ROWS rows at a time. Nulls are None or NaN in it."""
        import pandas as pd
        import pyarrow as pa

        if self.by:
            raise ScoringError("by: partwise.tables.tokens labels frames with a word per row")
        names = self._form.given
        if names is None:
            try:
                schema = pa.Schema.from_pandas(frame, preserve_index=False)
            except pa.ArrowException as error:
                raise ScoringError(f"name the columns that the model reads: not all can be read ({error})") from None
            names = self.columns(schema) if len(frame) else []  # types of an empty one are not known
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise ScoringError(f"there is no such column; there are {list(frame.columns)[:20]}", missing[0])
        taken = [name for name, _ in self._fields if name in frame.columns]
        if taken:
            raise ScoringError("is there already: choose another name for the predictions", taken[0])
        out = frame.copy(deep=False)
        parts = [self.answers(part, first) for first, part in _parts(frame, names)]
        for k, (name, kind) in enumerate(self._fields):
            column = pa.chunked_array([part[k] for part in parts], type=kind)
            if not pa.types.is_list(kind):
                values = column.to_pandas()
                out[name] = pd.Series(values.to_numpy(), index=frame.index, dtype=values.dtype)
                continue
            if pa.types.is_struct(kind.value_type):
                lists = column.to_pylist()
            else:  # which takes a tenth of the time
                lists = [None if v is None else v.tolist() for v in column.to_pandas()]
            out[name] = pd.Series(lists, index=frame.index, dtype=object)
        return out


def _per_word(model: Any, fields: list[Any], k_best: int | None, keep_nulls: bool) -> list[Any]:
    """Fields of answers for tables with a word per row."""
    import pyarrow as pa

    if k_best is not None or keep_nulls:
        raise ScoringError("k_best and nulls='keep' are for tables with a sentence per row, without `by`")
    if not all(pa.types.is_list(kind) for _, kind in fields):
        raise ScoringError(f"by: {type(model).__name__} does not answer word by word")
    return [(name, kind.value_type) for name, kind in fields]


def _whole(column: Any) -> Any:
    """One array of a column that may be in pieces."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _parts(frame: Any, names: list[str]) -> Iterator[tuple[int, Any]]:
    """Record batches of some columns of a frame, with the number of their first row."""
    import pyarrow as pa

    for first in range(0, len(frame), ROWS):
        some, columns = frame.iloc[first : first + ROWS], []
        for name in names:
            try:
                columns.append(_whole(pa.Array.from_pandas(some[name])))
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise ScoringError(f"in rows {first} to {first + len(some) - 1}: {error}", name) from None
        yield first, pa.RecordBatch.from_arrays(columns, names=names)
