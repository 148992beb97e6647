"""Where data sets lie, and what their readers give back."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import IO, Generic, NamedTuple, TypeVar, cast

VARIABLE = "PARTWISE_DATA"

Inputs = TypeVar("Inputs")
Targets = TypeVar("Targets")


class Dataset(NamedTuple, Generic[Inputs, Targets]):
    """Training and test data: ``X_train, y_train, X_test, y_test = conll2000()``."""

    X_train: Inputs
    y_train: Targets
    X_test: Inputs
    y_test: Targets


def cache_folder() -> Path:
    """Where downloads go when no folder is named."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "partwise"


def data_file(dataset: str, name: str, data: str | os.PathLike[str] | None = None) -> Path:
    """Path of a data set's file, plain or with ``.gz`` added.

    Parameters
    ----------
    dataset : name of the data set's folder
    name : name of the file, without ``.gz``
    data : folder of data sets; None: the environment variable ``PARTWISE_DATA``, or else what `fetch` has downloaded

    Raises
    ------
    FileNotFoundError
        If no folder is given or the file is not in it; the message says where it was looked for.
    """
    root = data if data is not None else os.environ.get(VARIABLE)
    if not root:
        root = cache_folder()
        if not (root / dataset).is_dir():
            raise FileNotFoundError(
                f"no data folder: pass data=... or set {VARIABLE} to the folder that holds {dataset}/ "
                f"(`partwise data fetch {dataset}` downloads it, where that can be done)"
            )
    folder = Path(root) / dataset
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{dataset}: neither {name} nor {name}.gz is in {folder}")


def open_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading, unpacked if its first bytes are gzip's, whatever its name."""
    raw = open(path, "rb")  # noqa: SIM115 (handed to the caller)
    magic = raw.read(2)
    raw.seek(0)
    if magic != b"\x1f\x8b":
        return raw
    raw.close()
    return cast(IO[bytes], gzip.open(path, "rb"))
