"""A tagger whose positions are compared by a kernel.

Weights are n_labels coefficients (padded to `width`) a training position, then transitions and ends as without a
kernel; or, for transitions conditioned on observations, coefficients for pairs of labels a training edge, with the
kernel of the edges' right ends plus 1 (the pair alone).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise._core import Chain, LinearMap, padded_width
from partwise.estimators.chains import has_left_neighbour, transition_mask
from partwise.estimators.inputs import Floats, Ints, Rows
from partwise.features import Attributes
from partwise.kernels import MEMORY_LIMIT, KernelFeatures, KernelLike, Precomputed, get_kernel

Bytes = NDArray[np.uint8]

#: What `kernel_options` may hold besides the kernel's own parameters.
_STORAGE = ("memory_limit", "recompute")


@dataclass(frozen=True)
class KernelChainModel:
    """Which kernels a tagger has. `training` has all training rows, `support` those with coefficients."""

    n_labels: int
    ends: bool
    training: KernelFeatures
    support: KernelFeatures
    transition_mask: Bytes | None = field(repr=False)  # tied: (n_labels * width,)

    @property
    def width(self) -> int:
        """Padded number of labels."""
        return padded_width(self.n_labels)

    @property
    def tied(self) -> bool:
        """Whether all edges share their transitions."""
        return self.support.edges is None

    def structure(self, lengths: Ints) -> Chain:
        """The labellings of sequences of these lengths (none of them 0)."""
        return Chain(lengths, self.n_labels, tied=self.tied, ends=self.ends)

    def training_features(self, structure: Chain) -> LinearMap:
        """The feature map of the training rows."""
        return self.training.training_map(structure, transition_mask=self.transition_mask)

    def features(self, rows: Rows, structure: Chain, *, once: bool = False) -> LinearMap:
        """The feature map of other rows, for the weights that `with_weights` gave; it is the same for a single look."""
        table = _like(rows, self.support.nodes.rows)
        return self.support.map(
            structure,
            table,
            edge_rows=None if self.tied else _right_ends(table, rows.lengths),
            transition_mask=self.transition_mask,
        )

    def with_weights(self, weights: Floats) -> tuple[KernelChainModel, Floats]:
        """The model and the weights without the training rows whose coefficients are all zero."""
        structure = self.structure(np.ones(1, dtype=np.int64))
        support, kept = self.training.compress(structure, weights)
        return replace(self, support=support), kept

    def split(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """The runs of node, transition and end weights."""
        table = self.n_labels * self.width
        n_nodes = self.support.nodes.n_support * self.width
        n_edges = table if self.support.edges is None else self.support.edges.n_support * table
        nodes, edges, ends = np.split(weights, [n_nodes, n_nodes + n_edges])
        return nodes, edges, ends

    def edge_features(self, weights: Floats) -> tuple[Ints, Ints, Floats]:
        """(zeros, label * width + next label, weights) of tied transitions."""
        if not self.tied or self.transition_mask is None:
            raise AttributeError("with a kernel on edges there are no weights of transitions")
        columns = np.flatnonzero(self.transition_mask).astype(np.int64)
        return np.zeros(len(columns), dtype=np.int64), columns, self.split(weights)[1][columns]

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle predicts and needs the support alone.
        parts = (self.n_labels, self.ends, self.support, self.support, self.transition_mask)
        return KernelChainModel, parts


def make_kernel_model(
    rows: Rows, labels: Ints, n_labels: int, tagger: Any, observed: bool, min_count: int
) -> KernelChainModel:
    """The kernels that a tagger asks for, on its training rows; `observed`: only transitions that occur there."""
    options = dict(tagger.kernel_options or {})
    storage = {name: options.pop(name) for name in _STORAGE if name in options}
    kernel = get_kernel(tagger.kernel, gamma=tagger.gamma, **options)
    chosen = tagger.transition_features
    if chosen is not None and not (isinstance(chosen, str) and chosen == "all"):
        raise ValueError(f"transition_features must be None or 'all' with a kernel, got {chosen!r}")
    edges: dict[str, Any] = {}
    if chosen is not None:
        edges = {
            "edge_rows": _right_ends(rows.table, rows.lengths),
            "edge_kernel": _plus_one(kernel.fitted(rows.table)),
        }
    features = KernelFeatures.of(rows.table, kernel, **edges, **{"memory_limit": MEMORY_LIMIT, **storage})
    mask = None if edges else transition_mask(rows.lengths, labels, n_labels, observed, min_count)
    return KernelChainModel(n_labels, bool(tagger.ends), features, features, mask)


def check_kernel_options(tagger: Any) -> None:
    """ValueError for options that a kernel does not go with, or that only a kernel has."""
    if tagger.kernel is None:
        for name in ("gamma", "kernel_options"):
            if getattr(tagger, name) is not None:
                raise ValueError(f"{name} is for kernels: give kernel='rbf' or another")
        return
    if tagger.model != "crf":
        raise ValueError("a kernel is there for model='crf' alone")
    if tagger.kernel_options is not None and not isinstance(tagger.kernel_options, dict):
        raise ValueError(f"kernel_options must be a dict, got {tagger.kernel_options!r}")


def _plus_one(kernel: KernelLike) -> KernelLike:
    if isinstance(kernel, Precomputed):
        raise ValueError("transition_features are not there for a precomputed kernel, which knows no rows of edges")
    return replace(kernel, bias=kernel.bias + 1.0)


def _right_ends(table: Attributes | Floats, lengths: Ints) -> Attributes | Floats:
    """The rows of all positions but each sequence's first."""
    inner = has_left_neighbour(lengths)
    if not isinstance(table, Attributes):
        return np.ascontiguousarray(table[inner])
    sizes = np.diff(table.row_ptr)
    entries = np.repeat(inner, sizes)
    values = None if table.values is None else table.values[entries]
    row_ptr = np.concatenate([[0], np.cumsum(sizes[inner])]).astype(np.int64)
    return Attributes(row_ptr, table.attributes[entries], table.num_attributes, values)


def _like(rows: Rows, support: Attributes | Floats) -> Attributes | Floats:
    """The rows, sparse or dense as the training rows are."""
    if isinstance(support, Attributes):
        return rows.attributes()
    if not isinstance(rows.table, Attributes):
        return rows.table
    found = rows.table
    dense = np.zeros((rows.n_rows, rows.n_attributes))
    owner = np.repeat(np.arange(rows.n_rows), np.diff(found.row_ptr))
    np.add.at(dense, (owner, found.attributes), 1.0 if found.values is None else found.values)
    return dense
