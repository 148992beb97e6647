"""Predictions by the workers of a Dask cluster, or by any of Dask's schedulers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

#: The model that this process read last, with what tells its file from another: a worker serves many partitions.
_READ: dict[tuple[str, int, int], Any] = {}


def predict(
    model: Any,
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    into: str = "prediction",
    probabilities: bool = False,
    nulls: str = "error",
) -> Any:
    """Answers for a Dask bag or dataframe, in its order, partition by partition; computed when asked for.

    Parameters
    ----------
    model : path or fitted estimator
        A file is read by the workers, under the same (absolute) name, once per process; an estimator is sent to each
        worker once.
    data : dask.bag.Bag or dask.dataframe.DataFrame
        A bag of examples, each as `model.predict` takes it, or a dataframe with columns as `partwise.scoring.Scorer`
        takes them.
    columns, into, probabilities, nulls
        Dataframes: as for `partwise.scoring.Scorer`.

    Returns
    -------
    dask.bag.Bag or dask.dataframe.DataFrame
        One answer per example; or the dataframe with columns of answers.
    """
    from dask.delayed import delayed

    if isinstance(model, (str, os.PathLike)):
        shared: Any = os.path.abspath(os.fspath(model))
        fitted = _opened(shared)  # refused here, and not by every worker
    else:
        fitted, shared = model, delayed(model, pure=False, traverse=False)
    if _is(data, "dask.bag", "Bag"):
        if columns is not None or into != "prediction" or probabilities or nulls != "error":
            raise ValueError("columns, into, probabilities and nulls are for dataframes")
        return data.map_partitions(_label_examples, shared)
    if not hasattr(data, "map_partitions") or not hasattr(data, "_meta") or not hasattr(data, "columns"):
        raise TypeError(f"predict takes a Dask bag or dataframe, got {type(data).__name__}")
    options = {"columns": columns, "into": into, "probabilities": probabilities, "nulls": nulls}
    meta = _label_frame(data._meta, fitted, options)
    return data.map_partitions(_label_frame, shared, options, meta=meta)


def _is(data: Any, module: str, name: str) -> bool:
    return any(cls.__module__.startswith(module) and cls.__name__ == name for cls in type(data).__mro__)


def _opened(model: Any) -> Any:
    """A model from its file, or itself."""
    if not isinstance(model, str):
        return model
    status = os.stat(model)
    key = model, status.st_mtime_ns, status.st_size
    found = _READ.get(key)
    if found is None:
        from partwise.model_files import load

        found = load(model)
        _READ.clear()
        _READ[key] = found
    return found


def _label_examples(examples: Iterable[Any], model: Any) -> list[Any]:
    """In a worker."""
    some = list(examples)
    if not some:
        return []
    answers = _opened(model).predict(some)
    return list(answers.tolist() if hasattr(answers, "tolist") else answers)


def _label_frame(frame: Any, model: Any, options: dict[str, Any]) -> Any:
    """In a worker."""
    from partwise.scoring import Scorer

    _refuse_written_lists(frame, options["columns"])
    return Scorer(_opened(model), **options).frame(frame)


def _refuse_written_lists(frame: Any, columns: Sequence[str] | None) -> None:
    """Lists that Dask has made texts of (['the', 'cat']) would be labelled as words with brackets and quotes."""
    from partwise.scoring import ScoringError

    for name in frame.columns if columns is None else columns:
        if name in frame.columns and frame[name].dtype != object and len(frame):
            first = frame[name].iloc[0]
            if isinstance(first, str) and re.fullmatch(r"\[(['\"].*['\"])?\]", first, re.DOTALL):
                raise ScoringError(
                    "holds lists that were made texts of: set Dask's option dataframe.convert-string to False", name
                )
