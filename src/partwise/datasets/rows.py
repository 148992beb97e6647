"""Rows of sparse features with one label each, in svmlight's format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.datasets.folder import Dataset, data_file

Rows = Dataset[Any, NDArray[np.int64]]


def a9a(data: str | os.PathLike[str] | None = None) -> Rows:
    """Read a9a from ``libsvm/a9a`` and ``libsvm/a9a.t``: 123 columns, labels -1 and 1."""
    return Dataset(*_read("libsvm", ("a9a", "a9a.t"), data, 123))


def w8a(data: str | os.PathLike[str] | None = None, *, seed: int = 0) -> Rows:
    """Read w8a from ``libsvm/w8a``: 300 columns, labels -1 and 1; a fifth, drawn by `seed`, is for testing."""
    X, y = _read("libsvm", ("w8a",), data, 300)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = len(y) - len(y) // 5
    return Dataset(X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]])


def news20(data: str | os.PathLike[str] | None = None) -> Rows:
    """Read word counts of newsgroup articles from ``20news/``: the columns of all words, labels 0 to 19."""
    names = tuple(f"20news_bydate_counts.{part}.libsvm" for part in ("train", "test"))
    return Dataset(*_read("20news", names, data, None))


def _read(folder: str, names: tuple[str, ...], data: str | os.PathLike[str] | None, n_features: int | None) -> Any:
    from sklearn.datasets import load_svmlight_files

    paths = [str(data_file(folder, name, data)) for name in names]
    loaded = load_svmlight_files(paths, n_features=n_features)
    return [part.astype(np.int64) if k % 2 else part for k, part in enumerate(loaded)]
