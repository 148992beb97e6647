"""Parquet and Arrow files, labelled some rows at a time."""

import copy
import glob
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import BinaryIO

from partwise.io.files import atomic_write, standard_input
from partwise.support.checks import count_jobs
from partwise.tables import ARROW, PARQUET, TableError, is_table
from partwise.tables.answers import Estimator
from partwise.tables.predictor import TablePredictor

# isort: split
import pyarrow as pa  # after `predictor`, which says what to install where it is missing
import pyarrow.parquet as pq

#: Rows, and bytes, of a row group or record batch that is written.
GROUP_ROWS, GROUP_BYTES = 1 << 17, 1 << 25
#: Bytes of the rows that are labelled at a time, at most.
BYTES = 1 << 22
#: Bytes of a column of a Parquet file that are read at a time.
_BUFFER = 1 << 20
_ENDINGS = f"expected a name that ends in {', '.join((*PARQUET, *ARROW))}"

Path = str | os.PathLike[str]
Batches = Iterator[pa.RecordBatch]


def predict_file(
    model: Estimator,
    source: Path | Sequence[Path],
    target: Path,
    *,
    keep: Sequence[str] | None = None,
    n_jobs: int | None = None,
    **options: object,
) -> TablePredictor:
    """Label Parquet or Arrow (Feather) files: write files with the answers as more columns.

    Return a `TablePredictor` with the number of features that the model does not know. TableError, with the file, the
    row (counted from 0) and the column, if the model cannot read them.

    Parameters
    ----------
    model : path or fitted estimator
    source : path, or list of paths
        A file, a folder (its tables, in the order of their names), or a pattern such as ``parts/*.parquet``. Names tell
        the formats: .parquet, .pq; .arrow, .feather, .ipc. "-" is an Arrow stream on standard input.
    target : path
        A file that has all rows in their order, or a folder (it exists, or its name ends in a separator), where each
        input has a file of its own name. Files are written in full or not at all. "-" is an Arrow stream on stdout.
    keep : the columns of the source that the target has, too; by default all
    n_jobs : threads, each with some rows of its own; by default as the estimator has it
    **options : `columns`, `into`, `probabilities`, `nulls`, `k_best` and `by` of `TablePredictor`
    """
    for k, name in enumerate(keep or ()):
        if keep is not None and name in keep[:k]:
            raise TableError("is to be kept twice", name)
    out = os.fspath(target)
    paths = sources(source)
    predictor = TablePredictor(model, **options)  # type: ignore[arg-type]
    jobs = count_jobs(predictor.model.n_jobs if n_jobs is None else n_jobs)
    team = [predictor]
    if jobs > 1:  # each thread has an estimator, which remembers what its last input was like; weights are shared
        alone = copy.copy(predictor.model)
        alone.n_jobs = 1
        team = [TablePredictor(copy.copy(alone), **options) for _ in range(jobs)]  # type: ignore[arg-type]
    if os.path.isdir(out) or out.endswith((os.sep, "/")):
        os.makedirs(out, exist_ok=True)
        targets = [os.path.join(out, os.path.basename(path)) for path in paths]
        for k, (path, each) in enumerate(zip(paths, targets, strict=True)):
            if path == "-" or each in targets[:k]:
                raise TableError("needs an output file of its own: two inputs have the same name", path=path)
            if os.path.realpath(each) in map(os.path.realpath, paths):
                raise TableError("is an input, too: choose another folder for the output", path=each)
        for path, each in zip(paths, targets, strict=True):
            _label(team, [path], each, keep)
    elif out != "-" and not is_table(out):
        raise TableError(_ENDINGS, path=out)
    else:
        _label(team, paths, out, keep)
    predictor.unknown = sum((each.unknown for each in team[1:]), team[0].unknown)
    return predictor


def sources(source: Path | Sequence[Path]) -> list[str]:
    """Return the files that a name, a folder, a pattern, or a list of these stands for."""
    if not isinstance(source, (str, os.PathLike)):
        found = [path for each in source for path in sources(each)]
        if not found:
            raise TableError("there is no input: the list of files is empty")
        return found
    path = os.fspath(source)
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if is_table(name) and not name.startswith((".", "_")))
        if not names:
            raise TableError("the folder has no Parquet or Arrow files", path=path)
        return [os.path.join(path, name) for name in names]
    if path != "-" and not is_table(path):
        raise TableError(_ENDINGS, path=path)
    if glob.has_magic(path) and not os.path.exists(path):
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise FileNotFoundError(2, "no file has a name like this", path)
        return matches
    return [path]


def _label(team: list[TablePredictor], paths: list[str], out: str, keep: Sequence[str] | None) -> None:
    """Label files, one after the other, and write all rows to one file."""
    predictor, kept, first = team[0], None if keep is None else list(keep), None
    with ExitStack() as outer:
        for path in paths:
            with _naming(path), _opened(path) as (schema, read):
                needed = {*predictor.columns(schema), *(schema.names if kept is None else kept)}
                if missing := needed.difference(schema.names):
                    raise TableError("there is no such column to keep", missing.pop())
                own = predictor.schema(schema, kept)
                if first is None:
                    first, file = own, outer.enter_context(atomic_write(out))
                    writer = outer.enter_context(TableWriter(file, own, out))
                _compare(own, first, paths[0])
                batches = read([name for name in schema.names if name in needed], predictor.rows)
                if predictor.by:
                    batches = _whole_sentences(batches, predictor)
                for batch in _answered(team, batches, kept):
                    writer.add(batch.cast(first) if batch.schema != first else batch)


def _compare(schema: pa.Schema, first: pa.Schema, path: str) -> None:
    """Raise TableError unless a file has the columns of the first one."""
    if schema.names != first.names:
        both = (*schema.names, *first.names)
        odd = next((name for name in both if (name in schema.names) != (name in first.names)), None)
        if odd is None:
            raise TableError(f"columns are in another order than in {path}")
        raise TableError(f"column {odd!r} is not in both this file and {path}")
    for field, other in zip(schema, first, strict=True):
        if field.type != other.type:
            raise TableError(f"is of type {field.type}, in {path} of type {other.type}", field.name)


def _answered(team: list[TablePredictor], batches: Batches, kept: list[str] | None) -> Batches:
    """Yield record batches with their answers, in their order; a few at a time are in work."""
    idle, waiting, first = list(team), deque[Future[pa.RecordBatch]](), 0

    def label(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        predictor = idle.pop()  # there is one for each thread
        try:
            return predictor.batch(batch, kept, first)
        finally:
            idle.append(predictor)

    with ThreadPoolExecutor(len(team)) as pool:
        try:
            for batch in batches:
                if len(team) == 1:
                    yield label(batch, first)
                else:
                    waiting.append(pool.submit(label, batch, first))
                first += batch.num_rows
                if len(waiting) > len(team):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


@contextmanager
def _naming(path: str) -> Iterator[None]:
    name = "standard input" if path == "-" else path
    try:
        yield
    except TableError as error:
        raise error.placed(path=name) from error.__cause__
    except pa.ArrowException as error:
        raise TableError(f"cannot be read: {error}", path=name) from None


@contextmanager
def _opened(path: str) -> Iterator[tuple[pa.Schema, Callable[[list[str], int], Batches]]]:
    """Yield a table's schema, and a function that yields record batches of columns, of so many rows at most.

    "-" is an Arrow stream on standard input.
    """
    if path == "-":
        reader = pa.ipc.open_stream(standard_input())
        # Batches are not joined: the sender may wait for the answers to a batch.
        yield reader.schema, partial(_arrow_batches, reader)
        return
    with open(path, "rb") as plain:  # raises the usual errors
        magic = plain.read(6)
    if _is_parquet(path):
        with pa.OSFile(path, "rb") as file:
            # Without `buffer_size` a column of a whole row group would be in memory.
            table = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
            yield table.schema_arrow, partial(_parquet_batches, table)
        return
    with pa.memory_map(path, "rb") as file:
        if magic == b"ARROW1":
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            batches = reader = pa.ipc.open_stream(file)
        yield reader.schema, lambda names, most: _arrow_batches(_joined_to(batches, most), names, most)


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(PARQUET)


def _parquet_batches(file: pq.ParquetFile, names: list[str], most: int) -> Batches:
    # The bytes per row are estimated by the first row groups.
    size, rows = 0, 0
    for k in range(min(file.metadata.num_row_groups, 20)):
        group = file.metadata.row_group(k)
        columns = (group.column(j) for j in range(group.num_columns))
        size += sum(c.total_uncompressed_size for c in columns if c.path_in_schema.startswith(tuple(names)))
        rows += group.num_rows
    at_a_time = max(1, min(most, BYTES // max(1, size // max(rows, 1))))
    for batch in file.iter_batches(batch_size=at_a_time, columns=names, use_threads=False):
        yield from _pieces(batch, most)


def _arrow_batches(batches: Batches, names: list[str], most: int) -> Batches:
    for batch in batches:
        yield from _pieces(batch.select(names), most)


def _joined_to(batches: Batches, most: int) -> Batches:
    """Join small record batches, up to so many rows: labelling has a cost per batch."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if held and (sum(b.num_rows for b in [*held, batch]) > most or sum(b.nbytes for b in held) > BYTES):
            yield _joined(held)
            held = []
        held.append(batch)
    if held:
        yield _joined(held)


def _pieces(batch: pa.RecordBatch, most: int) -> Batches:
    """Cut a record batch into parts that are labelled at a time, with few rows and few bytes."""
    mean = max(1, batch.nbytes // max(batch.num_rows, 1))
    rows = max(1, min(most, BYTES // mean))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def _whole_sentences(batches: Batches, predictor: TablePredictor) -> Batches:
    """Yield the same rows in record batches that end where sentences end, for tables with a word per row."""
    held: list[pa.RecordBatch] = []  # the beginning of a sentence of which there may be more
    seen = 0
    for batch in batches:
        begun = held[-1].num_rows if held else 0
        both = pa.Table.from_batches([held[-1], batch]).combine_chunks() if held else batch
        last = int(predictor.starts(both, seen - begun)[-1])
        seen += batch.num_rows
        if last == 0:  # all of one sentence
            held.append(batch)
            continue
        done = [*held, batch.slice(0, last - begun)]
        held = [batch.slice(last - begun)]
        yield _joined(done)
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    some = [batch for batch in batches if batch.num_rows] or batches[:1]
    return some[0] if len(some) == 1 else pa.concat_batches(some)


class TableWriter(AbstractContextManager["TableWriter"]):
    """A file that is written: record batches are collected and written as row groups of a reasonable size."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, path: str) -> None:
        self._schema = self._written = schema
        self._live = path == "-"  # another program may wait for each batch
        if _is_parquet(path):
            self._writer = pq.ParquetWriter(file, schema)
        elif self._live:
            self._writer = pa.ipc.new_stream(file, schema)
        else:  # such a file has one dictionary per column, and the next rows may have another
            for j, field in enumerate(schema):
                if pa.types.is_dictionary(field.type):
                    self._written = self._written.set(j, field.with_type(field.type.value_type))
            self._writer = pa.ipc.new_file(file, self._written)
        self._held: list[pa.RecordBatch] = []

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write()
            self._writer.close()
        else:  # the file is removed
            with suppress(Exception):
                self._writer.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Write more rows, now or later."""
        self._held.append(batch)
        rows, size = sum(b.num_rows for b in self._held), sum(b.nbytes for b in self._held)
        if self._live or rows >= GROUP_ROWS or size >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held, schema=self._schema)
            self._writer.write_table(table if self._written is self._schema else table.cast(self._written))
            self._held = []
