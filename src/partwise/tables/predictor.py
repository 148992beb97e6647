"""Predictions for the rows of Arrow tables and pandas frames, as more columns."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError:
    raise ImportError("tables need pyarrow: pip install 'partwise[arrow]'") from None

from partwise.model_files import load
from partwise.support.arrays import Ints
from partwise.support.checks import check_choice, check_count
from partwise.tables import TableError
from partwise.tables.answers import Answers, Estimator, Head, Values, answers_of
from partwise.tables.arrow_columns import first_null, list_array, to_numpy
from partwise.tables.inputs import input_of, missing_column

#: Rows that are labelled at a time: examples, or words.
ROWS, WORD_ROWS = 20_000, 100_000
#: Arrow's types of columns of answers.
_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64(), Head: pa.int32()}
#: A pandas DataFrame.
Frame = Any


class TablePredictor:
    """Adds a model's predictions to tables; TableError if a model gives no probabilities, or cannot read tables.

    A tagger with a template reads a column of lists of strings per column of the template, or, if it looks at words
    alone, a column of strings, which are split at white space; one without reads lists of lists of strings, of maps or
    of structs, or lists of lists of numbers. A classifier reads a column of numbers per feature, or one column of lists
    of numbers or of maps from indices to numbers. A dependency parser reads columns `form`, `lemma`, `upos`, `xpos`,
    `feats` of lists of strings, or lists of words or of structs; a parser of phrases lists of words or strings.

    Parameters
    ----------
    model : path or fitted estimator
    columns : what the model reads, in its order; by default the columns that fit, where types and names leave no choice
    into : the name of the column of answers; those of a second one (relations, probabilities) begin with it
    probabilities : also give the probability of each label that was chosen (of each head), given the row
    nulls : what to do with a row that is null in one of the columns: refuse it ("error"), or answer null ("keep")
    n_jobs : threads; by default as the estimator has it
    k_best : also give so many best answers with their probabilities (where the loss gives none: scores), best first, as
        lists of structs
    by : list of str, optional
        A table has a word per row, and these columns say which sentence it belongs to: words of a sentence are rows
        that follow one another and have the same values there. Columns then hold strings (numbers, ...) and answers,
        too, are one per row. For taggers and dependency parsers.

    Attributes
    ----------
    unknown : the numbers of unknown features and of all features in the rows labelled so far, if the model counts them
    """

    def __init__(
        self,
        model: Estimator,
        columns: Sequence[str] | None = None,
        *,
        into: str = "prediction",
        probabilities: bool = False,
        nulls: str = "error",
        n_jobs: int | None = None,
        k_best: int | None = None,
        by: Sequence[str] | None = None,
    ) -> None:
        check_choice("nulls", nulls, ("error", "keep"))
        for what, given in (("columns", columns), ("by", by)):
            if isinstance(given, str):
                raise ValueError(f"{what} must be a list of names, got {given!r}")
        self.model = load(model) if isinstance(model, (str, os.PathLike)) else model
        if n_jobs is not None:
            self.model.n_jobs = n_jobs
        self._answers = answers_of(self.model)
        self._input = input_of(self.model, columns)
        self._k_best = None if k_best is None else check_count("k_best", k_best)
        self._probabilities, self._keep_nulls, self.by = probabilities, nulls == "keep", list(by or ())
        self._fields = self._answer_fields(into)
        self.unknown = np.zeros(2, dtype=np.int64)

    def _answer_fields(self, into: str) -> list[pa.Field]:
        """Return names and types of the columns of answers; TableError for what the model cannot tell."""
        answers = self._answers
        found = [pa.field(into + column.ending, _column_type(answers, column.kind)) for column in answers.columns]
        own = [(column.field, field.type) for column, field in zip(answers.columns, found, strict=True)]
        if self._probabilities:
            answers.check_probabilities()
            found.append(pa.field(f"{into}_probability", _column_type(answers, float)))
        if self._k_best is not None:
            self._ranked = pa.struct([*own, ("probability" if answers.has_probabilities else "score", pa.float64())])
            found.append(pa.field(f"{into}_k_best", pa.list_(self._ranked)))
        if not self.by:
            return found
        if self._k_best is not None or self._keep_nulls:
            raise TableError("k_best and nulls='keep' are for tables with a sentence per row, without `by`")
        if not answers.by_word:
            raise TableError(f"by: {type(self.model).__name__} does not answer word by word")
        return [pa.field(field.name, field.type.value_type) for field in found]

    @property
    def rows(self) -> int:
        """How many rows of a large table to label at a time."""
        return WORD_ROWS if self.by else ROWS

    def columns(self, schema: pa.Schema) -> list[str]:
        """Return the columns of a table that are read; TableError if one is missing or of an unsupported type."""
        names = [*self._choose(schema), *self.by]
        self._check_free(schema.names)
        return names

    def _check_free(self, names: Sequence[str]) -> None:
        for field in self._fields:
            if field.name in names:
                raise TableError("is there already: choose another name for the predictions", field.name)

    def schema(self, schema: pa.Schema, keep: Sequence[str] | None = None) -> pa.Schema:
        """Return the schema of a table with its answers; keep: the columns of its own that it keeps."""
        own = schema if keep is None else pa.schema([schema.field(name) for name in keep])
        return pa.schema([*own, *self._fields], metadata=own.metadata)

    def _choose(self, schema: pa.Schema) -> list[str]:
        if not self.by:
            return self._input.choose(schema)
        for name in self.by:
            if name not in schema.names:
                raise TableError(missing_column(schema.names), name)
        words = [(field.name, pa.list_(field.type)) for field in schema if field.name not in self.by]
        return self._input.choose(pa.schema(words))

    def answers(self, batch: pa.RecordBatch, first: int = 0) -> list[pa.Array]:
        """Return the columns of answers for a table or record batch; `first` rows come before it, for messages."""
        names = self._choose(batch.schema)
        columns = [_whole(batch.column(name)) for name in names]
        present = np.ones(batch.num_rows, dtype=bool)
        for name, column in zip(names, columns, strict=True):
            if column.null_count and not self._keep_nulls:
                raise TableError("is null", name, first + first_null(column))
            present &= to_numpy(column.is_valid())
        if not present.any():
            return [pa.nulls(batch.num_rows, field.type) for field in self._fields]
        rows = np.flatnonzero(present)
        if len(rows) < len(present):
            columns = [column.take(pa.array(rows)) for column in columns]
        if self.by:
            rows = self.starts(batch, first)  # from here on a row is a sentence
            lengths = np.diff(np.append(rows, batch.num_rows))
            columns = [list_array(column, lengths) for column in columns]
        try:
            found = self._predict(self._input.read(names, columns))
        except TableError as error:  # its row counts the rows that are not null
            row = None if error.row is None else int(rows[error.row])
            raise TableError(error.message, error.column, row).placed(first) from None
        except (ValueError, pa.ArrowException) as error:
            last = first + batch.num_rows - 1
            raise TableError(f"in rows {first} to {last}, which are counted from 0 here: {error}") from error
        counts = getattr(self.model, "unknown_counts_", None)
        if counts is not None:
            self.unknown += counts
        if self.by:
            return [column.flatten() for column in found]
        if len(rows) == len(present):
            return found
        place = np.cumsum(present) - 1
        return [column.take(pa.array(place, mask=~present)) for column in found]

    def _predict(self, X: Any) -> list[pa.Array]:
        answers, numbers = self._answers, self._answers.predict_numbers(X, self._probabilities)
        if numbers is None:
            found = _arrays(answers, answers.predict(X, self._probabilities))
        else:
            kind = _TYPES[answers.columns[0].kind]
            found = [pa.array(answers.written_labels, type=kind).take(pa.array(numbers[0]))]
            if self._probabilities:
                found.append(pa.array(numbers[1]))
            if answers.by_word:
                found = [list_array(column, X.lengths) for column in found]
        if self._k_best is not None:
            ranked = answers.predict_k_best(X, self._k_best)
            columns = _arrays(answers, answers.values([answer for row in ranked for answer, _ in row]))
            values = pa.array([value for row in ranked for _, value in row], type=pa.float64())
            flat = pa.StructArray.from_arrays([*columns, values], fields=list(self._ranked))
            found.append(list_array(flat, np.array([len(row) for row in ranked], dtype=np.int64)))
        return found

    def starts(self, batch: pa.RecordBatch, first: int = 0) -> Ints:
        """Return the first row of each sentence, by the columns `by`."""
        new = np.zeros(batch.num_rows, dtype=bool)
        new[:1] = True
        for name in self.by:
            column = _whole(batch.column(name))
            if column.null_count:
                raise TableError("is null", name, first + first_null(column))
            new[1:] |= to_numpy(pc.not_equal(column[1:], column[:-1]))
        return np.flatnonzero(new)

    def batch(self, batch: pa.RecordBatch, keep: Sequence[str] | None = None, first: int = 0) -> pa.RecordBatch:
        """Return a record batch with its answers."""
        self.columns(batch.schema)
        own = batch.columns if keep is None else [batch.column(name) for name in keep]
        return pa.RecordBatch.from_arrays([*own, *self.answers(batch, first)], schema=self.schema(batch.schema, keep))

    def frame(self, frame: Frame) -> Frame:
        """Return a pandas DataFrame with its answers, computed ROWS rows at a time. Nulls are None or NaN in it."""
        import pandas as pd

        if self.by:
            raise TableError("by: partwise.tables.predict labels frames with a word per row")
        names = self._input.given
        if names is None:
            try:
                schema = pa.Schema.from_pandas(frame, preserve_index=False)
            except pa.ArrowException as error:
                raise TableError(f"name the columns that the model reads: not all can be read ({error})") from None
            names = self.columns(schema) if len(frame) else []  # types of an empty one are not known
        if missing := [name for name in names if name not in frame.columns]:
            raise TableError(missing_column(list(frame.columns)), missing[0])
        self._check_free(frame.columns)
        out = frame.copy(deep=False)
        parts = [self.answers(part, first) for first, part in _parts(frame, names)]
        for k, field in enumerate(self._fields):
            column = pa.chunked_array([part[k] for part in parts], type=field.type)
            if not pa.types.is_list(field.type):
                series = column.to_pandas()
                values, dtype = series.to_numpy(), series.dtype
            elif pa.types.is_struct(field.type.value_type):
                values, dtype = column.to_pylist(), object
            else:  # ten times as fast as `to_pylist`
                values, dtype = [None if v is None else v.tolist() for v in column.to_pandas()], object
            out[field.name] = pd.Series(values, index=frame.index, dtype=dtype)
        return out


def _column_type(answers: Answers, kind: type) -> pa.DataType:
    return pa.list_(_TYPES[kind]) if answers.by_word else _TYPES[kind]


def _arrays(answers: Answers, columns: Sequence[Values]) -> list[pa.Array]:
    """Return columns of answers, perhaps with one of probabilities after them, as Arrow arrays."""
    kinds = [*(column.kind for column in answers.columns), float]
    return [pa.array(own, type=_column_type(answers, kind)) for own, kind in zip(columns, kinds, strict=False)]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return one array of a column that may be in pieces."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _parts(frame: Frame, names: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield record batches of some columns of a frame, with the number of their first row."""
    for first in range(0, len(frame), ROWS):
        some, columns = frame.iloc[first : first + ROWS], []
        for name in names:
            try:
                columns.append(_whole(pa.Array.from_pandas(some[name])))
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise TableError(f"in rows {first} to {first + len(some) - 1}: {error}", name) from None
        yield first, pa.RecordBatch.from_arrays(columns, names=names)
