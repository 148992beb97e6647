"""Classifiers from blocks of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from partwise.arrays import Floats
from partwise.checks import check_sample_weight
from partwise.models.class_weight import label_factors
from partwise.models.encoded import EncodedRows
from partwise.models.errors import NotAvailable
from partwise.models.partitioner import ChangedData, Partitioner
from partwise.models.rows import Density

if TYPE_CHECKING:
    from partwise.models.classes import ClassesModel


class ClassesPartitioner(Partitioner):
    """Learns a `ClassesModel`. Sparse blocks may have fewer columns than others: the missing ones are 0."""

    _factors: Floats

    def __init__(self, model: ClassesModel) -> None:
        self.model = model
        self._seen: NDArray[Any] | None = None  # labels, and the sums of their rows' weights
        self._sums = np.empty(0)
        self._n_features = 0
        self._density = Density()

    def look(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> None:
        if isinstance(X, list):
            raise NotAvailable(
                "partitions of dicts or lists of strings: not available for MaxentClassifier; make matrices of them by "
                "DictVectorizer or FeatureHasher"
            )
        weight = check_sample_weight(sample_weight, X.shape[0], "sample")
        seen, labels = np.unique(y, return_inverse=True)
        sums = np.bincount(labels, weights=weight, minlength=len(seen)).astype(np.float64)
        if self._seen is not None:
            if (seen.dtype.kind in "UO") != (self._seen.dtype.kind in "UO"):
                raise ValueError("labels must be of one kind in all blocks, strings or numbers")
            seen, places = np.unique(np.concatenate([self._seen, seen]), return_inverse=True)
            sums = np.bincount(places, weights=np.concatenate([self._sums, sums]), minlength=len(seen)).astype(
                np.float64
            )
        if self._n_features not in (0, X.shape[1]) and not sparse.issparse(X):
            raise ValueError(f"X has {X.shape[1]} columns, a block before had {self._n_features}")
        self._n_features = max(self._n_features, int(X.shape[1]))
        self._density.add(self.model.plain_rows(X))
        self._seen, self._sums = seen, sums

    def settle(self) -> None:
        assert self._seen is not None
        self._factors = label_factors(self.model.class_weight, self._seen, self._sums)
        self._kept = self._seen[self._factors * self._sums > 0]
        self.model.use_labels(self._kept)
        self.model.use_columns(self._n_features)

    def encode(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> EncodedRows | None:
        assert self._seen is not None
        weight = check_sample_weight(sample_weight, X.shape[0], "sample")
        labels = np.searchsorted(self._seen, y)
        if X.shape[1] > self._n_features or (self._seen[np.minimum(labels, len(self._seen) - 1)] != y).any():
            raise ChangedData
        if self.model.class_weight is not None:
            weight = (np.ones(len(labels)) if weight is None else weight) * self._factors[labels]
        if weight is not None and not weight.all():
            keep = np.flatnonzero(weight)
            X, y, weight = X[keep], y[keep], weight[keep]
        if not X.shape[0]:
            return None
        rows = self._density.compact(self.model.plain_rows(X, self._n_features))
        return EncodedRows(rows, np.searchsorted(self._kept, y).astype(np.int64), weight)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(self.model.structure(encoded.size.n_examples).slot_offsets()[-1])

    def finish(self) -> None:
        """All pairs of columns and labels have weights: there is nothing to choose."""
