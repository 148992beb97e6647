"""Predictions by the workers of a Dask cluster, of any of Dask's schedulers, or of Spark."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier

from partwise import model_files
from partwise.tables import TableError
from partwise.tables.answers import Estimator

_READING = Lock()
#: A Dask bag, dataframe or array, or a pandas DataFrame: a partition of such a dataframe.
Data = Any


def load_cached(path: str | os.PathLike[str]) -> Estimator:
    """Return a model from its file; the last one is kept, and read again only if the file has changed.

    It is for functions in workers, such as Spark's, which may call it for each batch of rows. Do not change the
    estimator: the next call returns the same object.
    """
    name = os.path.abspath(os.fspath(path))
    status = os.stat(name)
    with _READING:  # threads that begin at the same time read the file once
        return _load_last(name, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1)
def _load_last(path: str, changed: int, size: int) -> Estimator:
    """Return the model of a file that was changed at this time and has this size."""
    return model_files.load(path)


def predict_dask(
    model: Estimator,
    data: Data,
    *,
    columns: Sequence[str] | None = None,
    into: str = "prediction",
    probabilities: bool = False,
    nulls: str = "error",
    k_best: int | None = None,
) -> Data:
    """Return answers for a Dask bag, dataframe or array, in its order; each partition is computed when asked for.

    A bag gives one answer per example, a dataframe columns of answers, an array labels of shape (rows,). TableError
    when it is computed, for input that the model cannot read; the message begins with the partition's number.

    Parameters
    ----------
    model : path or fitted estimator
        Workers read a file, under the same (absolute) name, once per process; an estimator is sent to each once.
    data : dask.bag.Bag, dask.dataframe.DataFrame or dask.array.Array
        A bag of examples, each as `model.predict` takes it; a dataframe, for which `columns`, `into`, `probabilities`,
        `nulls` and `k_best` are as for `TablePredictor`; or, for classifiers, an array of shape (rows, features).
    """
    from dask import bag
    from dask.delayed import delayed

    if isinstance(model, (str, os.PathLike)):
        shared: Any = os.path.abspath(os.fspath(model))
        fitted = load_cached(shared)  # so that an invalid file is refused before the workers begin
    else:
        fitted, shared = model, delayed(model, pure=False, traverse=False)
    is_bag = _is(data, "dask.bag", "Bag")
    if is_bag or _is(data, "dask.array", "Array"):
        if (columns, into, probabilities, nulls, k_best) != (None, "prediction", False, "error", None):
            raise ValueError("columns, into, probabilities, nulls and k_best are for dataframes")
        if not is_bag:
            return _label_array(data, fitted, shared)
        numbers = cast(Any, bag).from_sequence(range(data.npartitions), npartitions=data.npartitions)
        return data.map_partitions(_label_examples, numbers, shared)
    if not hasattr(data, "map_partitions") or not hasattr(data, "_meta") or not hasattr(data, "columns"):
        raise TypeError(f"predict takes a Dask bag, dataframe or array, got {type(data).__name__}")
    options = {"columns": columns, "into": into, "probabilities": probabilities, "nulls": nulls, "k_best": k_best}
    meta = _label_frame(data._meta, fitted, options)
    return data.map_partitions(_label_frame, shared, options, meta=meta)


def _label_array(data: Data, fitted: Estimator, model: Estimator) -> Data:
    labels = getattr(fitted, "classes_", None)
    width = getattr(fitted, "n_features_in_", None)
    if labels is None or width is None or not is_classifier(fitted):
        raise TypeError(f"arrays are for classifiers, not for {type(fitted).__name__}")
    if data.ndim != 2 or data.shape[1] != width:
        raise ValueError(f"the model has {width} features, got an array of shape {data.shape}")
    whole = data.rechunk({1: -1})  # rows are in one piece
    return whole.map_blocks(_label_rows, model, drop_axis=1, dtype=labels.dtype, meta=labels[:0])


def _is(data: object, module: str, name: str) -> bool:
    return any(cls.__module__.startswith(module) and cls.__name__ == name for cls in type(data).__mro__)


# The functions below run in a worker.


def _opened(model: Estimator) -> Estimator:
    return load_cached(model) if isinstance(model, str) else model


def _label_examples(examples: Iterable[object], numbers: Iterable[int], model: Estimator) -> list[object]:
    some = list(examples)
    if not some:
        return []
    try:
        answers = _opened(model).predict(some)
    except (TypeError, ValueError) as error:
        raise _placed(error, next(iter(numbers))) from error
    return list(answers.tolist() if hasattr(answers, "tolist") else answers)


def _label_rows(rows: Data, model: Estimator, block_info: Any = None) -> Data:
    fitted = _opened(model)
    if not len(rows):
        return fitted.classes_[:0]
    try:
        return np.asarray(fitted.predict(rows))
    except (TypeError, ValueError) as error:
        raise _placed(error, block_info[0]["chunk-location"][0] if block_info else 0) from error


def _label_frame(frame: Data, model: Estimator, options: dict[str, Any], partition_info: Any = None) -> Data:
    from partwise.tables.predictor import TablePredictor

    try:
        _refuse_written_lists(frame, options["columns"])
        return TablePredictor(_opened(model), **options).frame(frame)
    except TableError as error:
        if partition_info is None:  # the empty frame from which Dask learns the types
            raise
        raise _placed(error, partition_info["number"]) from error


def _placed(error: Exception, partition: int) -> TableError:
    """Return the same error with the partition's number; rows are counted in the partition."""
    return TableError(f"partition {partition}: {error}")


def _refuse_written_lists(frame: Data, columns: Sequence[str] | None) -> None:
    """Refuse lists that Dask has made texts of (['the', 'cat']), which would be words with brackets and quotes."""
    for name in frame.columns if columns is None else columns:
        if name in frame.columns and frame[name].dtype != object and len(frame):
            first = frame[name].iloc[0]
            if isinstance(first, str) and re.fullmatch(r"\[(['\"].*['\"])?\]", first, re.DOTALL):
                hint = "set Dask's option dataframe.convert-string to False"
                raise TableError(f"holds lists that were made texts of: {hint}", name)
