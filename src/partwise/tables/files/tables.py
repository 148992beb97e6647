"""Tables in files and streams, read and written some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from partwise.io.files import standard_input
from partwise.tables.files.scorer import Scorer

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
#: Rows, and bytes, of a row group or record batch that is written.
GROUP_ROWS, GROUP_BYTES = 1 << 17, 1 << 25
#: Bytes of the rows that are labelled at a time, at most.
BYTES = 1 << 22
#: Bytes of a column of a Parquet file that are read at a time.
_BUFFER = 1 << 20


def is_table(path: str) -> bool:
    """Whether a file's name is that of a Parquet or Arrow (Feather) file."""
    return path.lower().endswith((*PARQUET, *ARROW))


def is_parquet(path: str) -> bool:
    """Whether a file's name is that of a Parquet file."""
    return path.lower().endswith(PARQUET)


class _Parquet:
    def __init__(self, file: Any) -> None:
        import pyarrow.parquet as pq

        # Without a buffer a column of a whole row group would be held.
        self._file = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        self.schema = self._file.schema_arrow

    def batches(self, names: list[str], most: int) -> Iterator[Any]:
        """Record batches of some columns, of at most so many rows."""
        rows = max(1, min(most, BYTES // self._row_bytes(names)))
        for batch in self._file.iter_batches(batch_size=rows, columns=names, use_threads=False):
            yield from _pieces(batch, most)

    def _row_bytes(self, names: list[str]) -> int:
        """Bytes of these columns per row, by the first row groups; words of a dictionary count as numbers."""
        meta, size, rows = self._file.metadata, 0, 0
        for k in range(min(meta.num_row_groups, 20)):
            group = meta.row_group(k)
            columns = (group.column(j) for j in range(group.num_columns))
            size += sum(c.total_uncompressed_size for c in columns if c.path_in_schema.startswith(tuple(names)))
            rows += group.num_rows
        return int(max(1, size // max(rows, 1)))


class _Arrow:
    def __init__(self, file: Any, stream: bool, live: bool = False) -> None:
        from pyarrow import ipc

        self._live = live  # someone may wait for the answers to what was sent so far
        self._batches: Any
        if stream:
            reader = self._batches = ipc.open_stream(file)
        else:
            reader = ipc.open_file(file)
            self._batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        self.schema = reader.schema

    def batches(self, names: list[str], most: int) -> Iterator[Any]:
        """Record batches of some columns, of at most so many rows."""
        for batch in self._batches if self._live else _larger(self._batches, most):
            yield from _pieces(batch.select(names), most)


def _larger(batches: Iterator[Any], most: int) -> Iterator[Any]:
    """Record batches of a few rows, joined: each that is labelled has its cost."""
    held: list[Any] = []
    for batch in batches:
        if held and sum(b.num_rows for b in held) + batch.num_rows > most:
            yield _joined(held)
            held = []
        held.append(batch)
        if sum(b.nbytes for b in held) > BYTES:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _pieces(batch: Any, most: int) -> Iterator[Any]:
    """Parts of a record batch that are labelled at a time: neither many rows nor many bytes."""
    mean = max(1, batch.nbytes // max(batch.num_rows, 1))
    rows = max(1, min(most, BYTES // mean))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def whole_sentences(batches: Iterator[Any], labeller: Scorer) -> Iterator[Any]:
    """The same rows in record batches that end where sentences end, for tables with a word per row."""
    import pyarrow as pa

    held: list[Any] = []  # the beginning of a sentence of which there may be more
    seen = 0
    for batch in batches:
        both = pa.Table.from_batches([*held[-1:], batch]).combine_chunks() if held else batch
        last = int(labeller.starts(both, seen - (held[-1].num_rows if held else 0))[-1])
        seen += batch.num_rows
        begun = held[-1].num_rows if held else 0
        if last == 0:  # all of one sentence
            held.append(batch)
            continue
        done = [*held, batch.slice(0, last - begun)]
        held = [batch.slice(last - begun)]
        yield _joined(done)
    if held:
        yield _joined(held)


def _joined(batches: list[Any]) -> Any:
    import pyarrow as pa

    some = [batch for batch in batches if batch.num_rows] or batches[:1]
    return some[0] if len(some) == 1 else pa.concat_batches(some)


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """A table that is read; "-" is an Arrow stream on standard input."""
    import pyarrow as pa

    if path == "-":
        yield _Arrow(standard_input(), stream=True, live=True)
        return
    with open(path, "rb") as plain:  # errors as for any file
        magic = plain.read(6)
    with pa.OSFile(path, "rb") if is_parquet(path) else pa.memory_map(path, "rb") as file:
        yield _Parquet(file) if is_parquet(path) else _Arrow(file, magic != b"ARROW1")


class Groups:
    """Collects record batches and writes them as row groups of a reasonable size."""

    def __init__(self, file: Any, schema: Any, path: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = self._written = schema
        self._live = path == "-"  # someone may wait for it at the other end
        if is_parquet(path):
            self._writer = pq.ParquetWriter(file, schema)
        elif self._live:
            self._writer = pa.ipc.new_stream(file, schema)
        else:  # such a file has one dictionary per column, and the next rows may have another
            for j, field in enumerate(schema):
                if pa.types.is_dictionary(field.type):
                    self._written = self._written.set(j, field.with_type(field.type.value_type))
            self._writer = pa.ipc.new_file(file, self._written)
        self._held: list[Any] = []

    def __enter__(self) -> Groups:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self._write()
            self._writer.close()
        else:  # the file is taken away
            with suppress(Exception):
                self._writer.close()

    def add(self, batch: Any) -> None:
        """More rows."""
        self._held.append(batch)
        rows, size = sum(b.num_rows for b in self._held), sum(b.nbytes for b in self._held)
        if self._live or rows >= GROUP_ROWS or size >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        if self._held:
            table = pa.Table.from_batches(self._held, schema=self._schema)
            self._writer.write_table(table if self._written is self._schema else table.cast(self._written))
            self._held = []
