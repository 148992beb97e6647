"""Documents of section 5.2 of Huang et al. 2010: binary logistic regression, every row divided by its length.

The paper's data (astro-physic, yahoo-japan, rcv1) are not available here. Instead: articles of 20 newsgroups, the first
ten groups against the others; a9a and w8a, whose 0/1 features become real numbers when rows have length 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from partwise import datasets
from partwise.features import logistic_map
from partwise.problem import Problem
from partwise.structures import Multiclass
from partwise.support.arrays import Floats, Ints


@dataclass(frozen=True)
class Rows:
    """Rows with labels 0 and 1, for training and testing."""

    X: Any
    y: Ints
    X_test: Any
    y_test: Ints

    def problem(self, l2: float) -> Problem:
        """Make the problem l2/2 |w|^2 + sum of log losses, with one weight per column."""
        structure = Multiclass(len(self.y), 2)
        return Problem(logistic_map(structure, self.X), structure, structure.encode(self.y), "log", l2)

    def accuracy(self, weights: Floats) -> float:
        return float(np.mean((self.X_test @ weights > 0) == self.y_test))

    def statistics(self) -> dict[str, int]:
        """Return l, n and #nz of Table 4, and the number of test rows."""
        return {"l": self.X.shape[0], "n": self.X.shape[1], "nz": int(self.X.nnz), "l_test": self.X_test.shape[0]}


@lru_cache(maxsize=2)
def rows(name: str, data: str | None, limit: int | None, bias: bool) -> Rows:
    """Read 20news, a9a or w8a without empty columns; limit: training rows, evenly spaced. bias: add a column of 1."""
    X, y, X_test, y_test = {"20news": datasets.news20, "a9a": datasets.a9a, "w8a": datasets.w8a}[name](data)
    border = 10 if name == "20news" else 0
    some = slice(None, None, 1 if limit is None else -(-len(y) // limit))  # some files are sorted by label
    seen = np.unique(X[some].indices)
    tables = []
    for table in (X[some], X_test):
        table = normalize(sp.csr_array(table)[:, seen])
        tables.append(sp.csr_array(sp.hstack([table, np.ones((table.shape[0], 1))])) if bias else table)
    y, y_test = (np.asarray(labels >= border if border else labels > 0, dtype=np.int64) for labels in (y[some], y_test))
    return Rows(tables[0], y, tables[1], y_test)
