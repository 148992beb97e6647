"""Parquet and Arrow files, labelled some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from partwise.io.files import atomic_write

from .errors import ScoringError
from .scorer import ROWS, Scorer, need_pyarrow

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
#: Rows, and bytes, of a row group or record batch that is written.
GROUP_ROWS, GROUP_BYTES = 1 << 17, 1 << 25
#: Bytes of a column of a Parquet file that are read at a time.
_BUFFER = 1 << 20


def is_table(path: str) -> bool:
    """Whether a file's name is that of a Parquet or Arrow (Feather) file."""
    return path.lower().endswith((*PARQUET, *ARROW))


def predict_file(
    model: Any,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    into: str = "prediction",
    keep: Sequence[str] | None = None,
    probabilities: bool = False,
    nulls: str = "error",
    n_jobs: int | None = None,
) -> Scorer:
    """Label a Parquet or Arrow (Feather) file; the answers are more columns of another one.

    Parameters
    ----------
    model, columns, into, probabilities, nulls, n_jobs
        As for `Scorer`.
    source, target : path
        Their names tell the formats: .parquet, .pq; .arrow, .feather, .ipc. The target is written in full or not at
        all.
    keep : list of str, optional
        The columns of the source that the target has, too; by default all.

    Returns
    -------
    Scorer
        With the number of features that the model does not know.

    Raises
    ------
    ScoringError
        With the file, the row (counted from 0) and the column, if the model cannot read them.
    """
    need_pyarrow()
    path, out = os.fspath(source), os.fspath(target)
    for name in (path, out):
        if not is_table(name):
            raise ScoringError(f"expected a name that ends in {', '.join((*PARQUET, *ARROW))}", path=name)
    scorer = Scorer(model, columns, into=into, probabilities=probabilities, nulls=nulls, n_jobs=n_jobs)
    with _naming(path), ExitStack() as opened:
        table = opened.enter_context(_opened(path))
        needed = scorer.columns(table.schema)
        kept = list(table.schema.names if keep is None else keep)
        for name in kept:
            if name not in table.schema.names:
                raise ScoringError("there is no such column to keep", name)
        read = [name for name in table.schema.names if name in {*needed, *kept}]
        schema, first = scorer.schema(table.schema, None if keep is None else kept), 0
        with atomic_write(out) as file, _Groups(file, schema, out.lower().endswith(PARQUET)) as groups:
            for batch in table.batches(read):
                groups.add(scorer.batch(batch, None if keep is None else kept, first))
                first += batch.num_rows
    return scorer


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in errors about it."""
    import pyarrow as pa

    try:
        yield
    except ScoringError as error:
        raise error.placed(path=path) from error.__cause__
    except FileNotFoundError:
        raise
    except pa.ArrowException as error:
        raise ScoringError(f"cannot be read: {error}", path=path) from None


class _Parquet:
    def __init__(self, file: Any) -> None:
        import pyarrow.parquet as pq

        # Without a buffer a column of a whole row group would be held.
        self._file = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        self.schema = self._file.schema_arrow

    def batches(self, names: list[str]) -> Iterator[Any]:
        yield from self._file.iter_batches(batch_size=ROWS, columns=names, use_threads=False)


class _Arrow:
    def __init__(self, file: Any) -> None:
        from pyarrow import ipc

        magic = bytes(file.read(6))
        file.seek(0)
        self._batches: Any
        if magic == b"ARROW1":
            reader = ipc.open_file(file)
            self._batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            reader = self._batches = ipc.open_stream(file)
        self.schema = reader.schema

    def batches(self, names: list[str]) -> Iterator[Any]:
        for batch in self._batches:
            some = batch.select(names)
            for first in range(0, some.num_rows, ROWS):
                yield some.slice(first, ROWS)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    import pyarrow as pa

    with open(path, "rb"):  # errors as for any file
        pass
    with pa.OSFile(path, "rb") if path.lower().endswith(PARQUET) else pa.memory_map(path, "rb") as file:
        yield (_Parquet if path.lower().endswith(PARQUET) else _Arrow)(file)


class _Groups:
    """Collects record batches and writes them as row groups of a reasonable size."""

    def __init__(self, file: Any, schema: Any, parquet: bool) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = schema
        self._writer = pq.ParquetWriter(file, schema) if parquet else pa.ipc.new_file(file, schema)
        self._held: list[Any] = []

    def __enter__(self) -> _Groups:
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
        if sum(b.num_rows for b in self._held) >= GROUP_ROWS or sum(b.nbytes for b in self._held) >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held, schema=self._schema))
            self._held = []
