"""Predictions by the workers of a Dask cluster, or by any of Dask's schedulers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier

from partwise.tables.files.cache import load_cached


def predict(
    model: Any,
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    into: str = "prediction",
    probabilities: bool = False,
    nulls: str = "error",
    k_best: int | None = None,
) -> Any:
    """Answers for a Dask bag, dataframe or array, in its order, partition by partition; computed when asked for.

    Parameters
    ----------
    model : path or fitted estimator
        A file is read by the workers, under the same (absolute) name, once per process; an estimator is sent to each
        worker once.
    data : dask.bag.Bag, dask.dataframe.DataFrame or dask.array.Array
        A bag of examples, each as `model.predict` takes it; a dataframe with columns as `partwise.tables.files.Scorer`
        takes them; or, for classifiers, an array of shape (rows, features).
    columns, into, probabilities, nulls, k_best
        Dataframes: as for `partwise.tables.files.Scorer`.

    Returns
    -------
    dask.bag.Bag, dask.dataframe.DataFrame or dask.array.Array
        One answer per example; the dataframe with columns of answers; or labels, of shape (rows,).

    Raises
    ------
    ScoringError
        When it is computed, for input that the model cannot read; the message begins with the partition's number.
    """
    from dask.delayed import delayed

    if isinstance(model, (str, os.PathLike)):
        shared: Any = os.path.abspath(os.fspath(model))
        fitted = _opened(shared)  # refused here, and not by every worker
    else:
        fitted, shared = model, delayed(model, pure=False, traverse=False)
    options = {"columns": columns, "into": into, "probabilities": probabilities, "nulls": nulls, "k_best": k_best}
    if _is(data, "dask.bag", "Bag") or _is(data, "dask.array", "Array"):
        if options != _DEFAULTS:
            raise ValueError("columns, into, probabilities, nulls and k_best are for dataframes")
        return _label_bag(data, shared) if _is(data, "dask.bag", "Bag") else _label_array(data, fitted, shared)
    if not hasattr(data, "map_partitions") or not hasattr(data, "_meta") or not hasattr(data, "columns"):
        raise TypeError(f"predict takes a Dask bag, dataframe or array, got {type(data).__name__}")
    meta = _label_frame(data._meta, fitted, options)
    return data.map_partitions(_label_frame, shared, options, meta=meta)


_DEFAULTS = {"columns": None, "into": "prediction", "probabilities": False, "nulls": "error", "k_best": None}


def _label_bag(data: Any, model: Any) -> Any:
    from dask import bag

    numbers = cast(Any, bag).from_sequence(range(data.npartitions), npartitions=data.npartitions)
    return data.map_partitions(_label_examples, numbers, model)


def _label_array(data: Any, fitted: Any, model: Any) -> Any:
    labels = getattr(fitted, "classes_", None)
    width = getattr(fitted, "n_features_in_", None)
    if labels is None or width is None or not is_classifier(fitted):
        raise TypeError(f"arrays are for classifiers, not for {type(fitted).__name__}")
    if data.ndim != 2 or data.shape[1] != width:
        raise ValueError(f"the model has {width} features, got an array of shape {data.shape}")
    whole = data.rechunk({1: -1})  # rows are in one piece
    return whole.map_blocks(_label_rows, model, drop_axis=1, dtype=labels.dtype, meta=labels[:0])


def _is(data: Any, module: str, name: str) -> bool:
    return any(cls.__module__.startswith(module) and cls.__name__ == name for cls in type(data).__mro__)


def _opened(model: Any) -> Any:
    """A model from its file, or itself."""
    return load_cached(model) if isinstance(model, str) else model


# In a worker:


def _label_examples(examples: Iterable[Any], numbers: Iterable[int], model: Any) -> list[Any]:
    some = list(examples)
    if not some:
        return []
    try:
        answers = _opened(model).predict(some)
    except (TypeError, ValueError) as error:
        raise _placed(error, next(iter(numbers))) from error
    return list(answers.tolist() if hasattr(answers, "tolist") else answers)


def _label_rows(rows: Any, model: Any, block_info: Any = None) -> Any:
    fitted = _opened(model)
    if not len(rows):
        return fitted.classes_[:0]
    try:
        return np.asarray(fitted.predict(rows))
    except (TypeError, ValueError) as error:
        place = block_info[0]["chunk-location"][0] if block_info else 0
        raise _placed(error, place) from error


def _label_frame(frame: Any, model: Any, options: dict[str, Any], partition_info: Any = None) -> Any:
    from partwise.tables.files import Scorer, ScoringError

    try:
        _refuse_written_lists(frame, options["columns"])
        return Scorer(_opened(model), **options).frame(frame)
    except ScoringError as error:
        if partition_info is None:  # the frame without rows that tells the types
            raise
        raise _placed(error, partition_info["number"]) from error


def _placed(error: Exception, partition: int) -> Exception:
    """The same error with the partition's number; rows are counted in the partition."""
    from partwise.tables.files import ScoringError

    return ScoringError(f"partition {partition}: {error}")


def _refuse_written_lists(frame: Any, columns: Sequence[str] | None) -> None:
    """Lists that Dask has made texts of (['the', 'cat']) would be labelled as words with brackets and quotes."""
    from partwise.tables.files import ScoringError

    for name in frame.columns if columns is None else columns:
        if name in frame.columns and frame[name].dtype != object and len(frame):
            first = frame[name].iloc[0]
            if isinstance(first, str) and re.fullmatch(r"\[(['\"].*['\"])?\]", first, re.DOTALL):
                raise ScoringError(
                    "holds lists that were made texts of: set Dask's option dataframe.convert-string to False", name
                )
