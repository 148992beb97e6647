"""Parquet and Arrow files, labelled some rows at a time."""

from __future__ import annotations

import copy
import glob
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from partwise.io.files import atomic_write
from partwise.support.checks import count_jobs
from partwise.tables.files.errors import ScoringError
from partwise.tables.files.scorer import Scorer, need_pyarrow
from partwise.tables.files.tables import ARROW, PARQUET, Groups, is_table, opened, whole_sentences

Path = str | os.PathLike[str]


def predict_file(
    model: Any,
    source: Path | Sequence[Path],
    target: Path,
    *,
    keep: Sequence[str] | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Scorer:
    """Label Parquet or Arrow (Feather) files; the answers are more columns of another one.

    Parameters
    ----------
    model : path or fitted estimator
    source : path, or list of paths
        A file, a folder (its tables, in the order of their names), or a pattern such as ``parts/*.parquet``. Names tell
        the formats: .parquet, .pq; .arrow, .feather, .ipc. "-" is an Arrow stream on standard input.
    target : path
        A file that has all rows in their order, or a folder (it exists, or its name ends in a separator), where each
        input has a file of its own name. Files are written in full or not at all. "-" is an Arrow stream on standard
        output.
    keep : list of str, optional
        The columns of the source that the target has, too; by default all.
    n_jobs : int, optional
        Threads, each with some rows of its own; by default as the estimator has it.
    **options
        `columns`, `into`, `probabilities`, `nulls`, `k_best` and `by` of `Scorer`.

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
    if keep is not None:
        for k, name in enumerate(keep):
            if name in keep[:k]:
                raise ScoringError("is to be kept twice", name)
    out = os.fspath(target)
    paths = sources(source)
    scorer = Scorer(model, **options)
    jobs = count_jobs(scorer.model.n_jobs if n_jobs is None else n_jobs)
    # Each thread has an estimator of its own, which remembers what its last input was like; the weights are shared.
    team = [Scorer(_alone(scorer.model), **options) for _ in range(jobs)] if jobs > 1 else [scorer]
    if not _is_folder(out):
        if out != "-" and not is_table(out):
            raise ScoringError(_ENDINGS, path=out)
        _label(team, paths, out, keep)
        return _counted(scorer, team)
    os.makedirs(out, exist_ok=True)
    targets = [os.path.join(out, os.path.basename(path)) for path in paths]
    for k, (path, each) in enumerate(zip(paths, targets, strict=True)):
        if path == "-" or each in targets[:k]:
            raise ScoringError("needs an output file of its own: two inputs have the same name", path=path)
        if os.path.realpath(each) in map(os.path.realpath, paths):
            raise ScoringError("is an input, too: choose another folder for the output", path=each)
    for path, each in zip(paths, targets, strict=True):
        _label(team, [path], each, keep)
    return _counted(scorer, team)


_ENDINGS = f"expected a name that ends in {', '.join((*PARQUET, *ARROW))}"


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) or path.endswith((os.sep, "/"))


def sources(source: Path | Sequence[Path]) -> list[str]:
    """The files that a name, a folder, a pattern, or a list of these stands for."""
    if not isinstance(source, (str, os.PathLike)):
        found = [path for each in source for path in sources(each)]
        if not found:
            raise ScoringError("there is no input: the list of files is empty")
        return found
    path = os.fspath(source)
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if is_table(name) and not name.startswith((".", "_")))
        if not names:
            raise ScoringError("the folder has no Parquet or Arrow files", path=path)
        return [os.path.join(path, name) for name in names]
    if path != "-" and not is_table(path):
        raise ScoringError(_ENDINGS, path=path)
    if glob.has_magic(path) and not os.path.exists(path):
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise FileNotFoundError(2, "no file has a name like this", path)
        return matches
    return [path]


def _alone(model: Any) -> Any:
    """The same model, on one thread."""
    other = copy.copy(model)
    other.n_jobs = 1
    return other


def _counted(scorer: Scorer, team: list[Scorer]) -> Scorer:
    """The scorer with what all have counted."""
    scorer.unknown = sum((each.unknown for each in team[1:]), team[0].unknown)
    return scorer


def _label(team: list[Scorer], paths: list[str], out: str, keep: Sequence[str] | None) -> None:
    """Files end to end, to one file."""
    scorer, kept, schema = team[0], None if keep is None else list(keep), None
    with ExitStack() as outer:
        for path in paths:
            with _naming(path), opened(path) as table:
                read = _columns(scorer, table.schema, kept)
                own = scorer.schema(table.schema, kept)
                if schema is None:
                    schema, groups = own, outer.enter_context(_groups(out, own))
                _compare(own, schema, paths[0])
                batches = table.batches(read, scorer.rows)
                if scorer.by:
                    batches = whole_sentences(batches, scorer)
                for batch in _answered(team, batches, kept):
                    groups.add(batch.cast(schema) if batch.schema != schema else batch)


@contextmanager
def _groups(out: str, schema: Any) -> Iterator[Groups]:
    with atomic_write(out) as file, Groups(file, schema, out) as groups:
        yield groups


def _columns(scorer: Scorer, schema: Any, kept: list[str] | None) -> list[str]:
    """The columns that are read of a file."""
    needed = {*scorer.columns(schema), *(schema.names if kept is None else kept)}
    for name in needed:
        if name not in schema.names:
            raise ScoringError("there is no such column to keep", name)
    return [name for name in schema.names if name in needed]


def _compare(schema: Any, first: Any, path: str) -> None:
    """ScoringError unless a file has the columns of the first one."""
    if schema.names != first.names:
        odd = next(
            (name for name in (*schema.names, *first.names) if (name in schema.names) != (name in first.names)), None
        )
        what = "columns are in another order than" if odd is None else f"column {odd!r} is not in both this file and"
        raise ScoringError(f"{what} in {path}" if odd is None else f"{what} {path}")
    for field, other in zip(schema, first, strict=True):
        if field.type != other.type:
            raise ScoringError(f"is of type {field.type}, in {path} of type {other.type}", field.name)


def _answered(team: list[Scorer], batches: Iterator[Any], kept: list[str] | None) -> Iterator[Any]:
    """Record batches with their answers, in their order; a few at a time are in work."""
    first = 0
    if len(team) == 1:
        for batch in batches:
            yield team[0].batch(batch, kept, first)
            first += batch.num_rows
        return
    idle, waiting = list(team), deque[Future[Any]]()

    def label(batch: Any, first: int) -> Any:
        scorer = idle.pop()  # there are as many as threads
        try:
            return scorer.batch(batch, kept, first)
        finally:
            idle.append(scorer)

    with ThreadPoolExecutor(len(team)) as pool:
        try:
            for batch in batches:
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
    """Name the file in errors about it."""
    import pyarrow as pa

    try:
        yield
    except ScoringError as error:
        raise error.placed(path="standard input" if path == "-" else path) from error.__cause__
    except FileNotFoundError:
        raise
    except pa.ArrowException as error:
        raise ScoringError(f"cannot be read: {error}", path="standard input" if path == "-" else path) from None
