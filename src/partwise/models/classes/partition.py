"""Classifiers from blocks of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from partwise.models.classes.features import Items, Matrix, item_rows, items_of, n_rows, take_rows
from partwise.models.encoded import EncodedRows
from partwise.models.features import Density
from partwise.models.labels import LabelArray, label_factors, warn_of_gone
from partwise.models.partition import AttributeCounts, ChangedData, Partitioner
from partwise.models.readers import NameReader
from partwise.support.arrays import Floats
from partwise.support.checks import check_sample_weight

if TYPE_CHECKING:
    from partwise.models.classes.model import ClassesModel


class ClassesPartitioner(Partitioner):
    """Learns a `ClassesModel`. Sparse blocks may have fewer columns than others: the missing ones are 0."""

    _factors: Floats

    def __init__(self, model: ClassesModel) -> None:
        self.model = model
        self._seen: LabelArray | None = None  # labels, and the sums of their rows' weights
        self._sums = np.empty(0)
        self._n_features = 0
        self._density = Density()
        self._items: bool | None = None  # whether rows are dicts or lists of strings
        self._names = AttributeCounts()

    def scan(self, X: Matrix, y: Any, sample_weight: object, n_jobs: int = 1) -> None:
        weight = check_sample_weight(sample_weight, n_rows(X), "sample")
        seen, labels = np.unique(y, return_inverse=True)
        sums = np.bincount(labels, weights=weight, minlength=len(seen)).astype(np.float64)
        if self._seen is not None:
            if (seen.dtype.kind in "UO") != (self._seen.dtype.kind in "UO"):
                raise ValueError("labels must be of one kind in all blocks, strings or numbers")
            seen, labels = np.unique(np.concatenate([self._seen, seen]), return_inverse=True)
            sums = np.bincount(labels, weights=np.concatenate([self._sums, sums])).astype(np.float64)
        self._seen, self._sums = seen, sums
        if self._items not in (None, isinstance(X, list)):
            raise ValueError("blocks must be of one form: dicts or lists of strings, or numbers, in all of them")
        self._items = isinstance(X, list)
        if isinstance(X, list):
            self._names.add(NameReader(), items_of(self._weighed(X, y, weight)), n_jobs)
            return
        if self._n_features not in (0, X.shape[1]) and not sparse.issparse(X):
            raise ValueError(f"X has {X.shape[1]} columns, a block before had {self._n_features}")
        self._n_features = max(self._n_features, int(X.shape[1]))
        self.model.use_columns(self._n_features)
        self._density.add(self.model.plain_rows(X))

    def _weighed(self, items: Items, y: LabelArray, weight: Floats | None) -> Items:
        """Return the items of positive weight: nothing is learnt from the others."""
        given = self.model.class_weight
        factors = {label: value for label, value in given.items() if not value} if isinstance(given, Mapping) else {}
        return [
            item
            for k, (item, label) in enumerate(zip(items, y.tolist(), strict=True))
            if (weight is None or weight[k] > 0) and label not in factors
        ]

    def choose_vocabulary(self) -> None:
        assert self._seen is not None
        self._factors = label_factors(self.model.class_weight, self._seen, self._sums)
        self._kept = self._seen[self._factors * self._sums > 0]
        if self.model.class_weight is not None:
            warn_of_gone(self._seen, self._kept)
        self.model.use_labels(self._kept)
        if self._items:
            reader = self._names.reader_of(self.model.min_count)
            assert isinstance(reader, NameReader)
            self._n_features = reader.n_attributes
            self.model.use_reader(reader)
        self.model.check_size()

    def encode(self, X: Matrix, y: Any, sample_weight: object, n_jobs: int = 1) -> EncodedRows | None:
        assert self._seen is not None
        weight = check_sample_weight(sample_weight, n_rows(X), "sample")
        labels = np.searchsorted(self._seen, y)
        if isinstance(X, list) != bool(self._items):
            raise ChangedData
        if (not self._items and X.shape[1] > self._n_features) or (
            self._seen[np.minimum(labels, len(self._seen) - 1)] != y
        ).any():
            raise ChangedData
        if self.model.class_weight is not None:
            weight = (np.ones(len(labels)) if weight is None else weight) * self._factors[labels]
        if weight is not None and not weight.all():
            keep = np.flatnonzero(weight)
            X, y, weight = take_rows(X, keep), y[keep], weight[keep]
        if not n_rows(X):
            return None
        if self._items:
            assert self.model.reader is not None
            X, (unknown, _) = item_rows(self.model.reader, X)
            if unknown and self.model.min_count == 1:
                raise ChangedData
        rows = self._density.compact(self.model.plain_rows(X, self._n_features))
        return EncodedRows(rows, np.searchsorted(self._kept, y).astype(np.int64), weight)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(self.model.structure(encoded.size.n_examples).slot_offsets()[-1])

    def choose_features(self) -> None:
        """Do nothing: all pairs of columns and labels have weights."""
