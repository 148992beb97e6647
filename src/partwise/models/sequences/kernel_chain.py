"""Chains whose positions are compared by a kernel.

Each training position has n_labels coefficients (padded to `width`). With transitions conditioned on observations, each
training edge has coefficients for pairs of labels; its kernel is that of the edges' right ends plus 1 (for the pair).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse

from partwise.features import Attributes
from partwise.features.kernels import MEMORY_LIMIT, KernelFeatures, KernelLike, Part, Precomputed, get_kernel
from partwise.features.rows import as_rows
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import decode, encode
from partwise.models.base import Ability, Learnt, NotAvailable, Training
from partwise.models.features import Rows
from partwise.models.files import padded, unpadded
from partwise.models.inspection import choose_kept
from partwise.models.sequences.chain import ChainBase
from partwise.models.sequences.features import FeatureChoice, has_left_neighbour, transition_counts
from partwise.problem import Batch
from partwise.structures import Chain
from partwise.support.arrays import Floats, InputRows, Ints
from partwise.support.checks import check_choice

#: What `kernel_options` may hold besides the kernel's own parameters.
_OTHERS = ("memory_limit", "recompute", "by_position")
#: Why models with a kernel lack abilities.
LACKS: Mapping[Ability, str] = {
    Ability.PARTIAL_FIT: "partial_fit: not available with a kernel",
    Ability.PARTITIONS: "partitions: not available for KernelChainModel, which has a kernel",
    Ability.TOP_FEATURES: "with a kernel there are no weights of attributes",
    Ability.EXPLANATIONS: "with a kernel there are no weights of attributes to explain an answer by",
}


@dataclass(eq=False, repr=False, kw_only=True)
class KernelChainModel(ChainBase):
    """Coefficients of training positions; `training` has all their rows, `support` those with coefficients."""

    kind: ClassVar[str] = "kernel chain"
    lacks = LACKS
    dense: ClassVar[bool] = True  # kernels compare whole rows, which is faster on dense ones

    kernel: str | KernelLike
    gamma: float | None
    kernel_options: dict[str, Any] | None

    training: KernelFeatures = field(init=False)
    support: KernelFeatures = field(init=False)

    def check(self) -> None:
        super().check()
        given: object = self.kernel_options
        if given is not None and not isinstance(given, dict):
            raise ValueError(f"kernel_options must be a dict, got {given!r}")

    @property
    def run_lengths(self) -> tuple[int, int]:
        table, edges = self.n_labels * self.width, self.support.edges
        return self.support.nodes.n_support * self.width, table if edges is None else edges.n_support * table

    def structure(self, lengths: Ints) -> Chain:
        return Chain(lengths, self.n_labels, tied=self.tied, ends=self.ends)

    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        options = dict(self.kernel_options or {})
        others = {name: options.pop(name) for name in _OTHERS if name in options}
        check_choice("by_position", by_position := others.pop("by_position", False), (True, False))
        kernel = get_kernel(self.kernel, gamma=self.gamma, **options)
        chosen = self.transition_features
        if chosen is not None and not (isinstance(chosen, str) and chosen == "all"):
            raise ValueError(f"transition_features must be None or 'all' with a kernel, got {chosen!r}")
        others = {"memory_limit": MEMORY_LIMIT, **others, "lengths": rows.lengths if by_position else None}
        if chosen is not None:
            others["edge_rows"] = _right_ends(rows.table, rows.lengths)
            others["edge_kernel"] = _plus_one(kernel.fitted(as_rows(rows.table)))
        else:
            choice = FeatureChoice(0, self.n_labels, False, self.observed_transitions, self.min_count)
            self.transition_mask = choice.cells(transition_counts(rows.lengths, labels, self.n_labels))
        features = KernelFeatures.of(rows.table, kernel, **others)
        self.training = self.support = features
        structure = self.structure(rows.lengths)
        batch = Batch(structure, features.map(structure, transition_mask=self.transition_mask))
        return Learnt(self._examples(batch, labels, weight), (self.n_labels, self.tied, self.ends, rows.lengths))

    def batch(self, rows: Rows) -> Batch:
        structure, table = self.structure(rows.lengths), _like(rows, self.support.nodes.rows)
        ends, mask = None if self.tied else _right_ends(table, rows.lengths), self.transition_mask
        return Batch(structure, self.support.map(structure, table, edge_rows=ends, transition_mask=mask))

    def with_weights(self, weights: Floats) -> KernelChainModel:
        """Return the model without the training rows whose coefficients are all zero."""
        other = copy.copy(self)
        other.support, other._weights = self.training.compress(self.structure(np.ones(1, dtype=np.int64)), weights)
        return other

    def node_features(self) -> tuple[Ints, Ints, Floats]:
        raise NotAvailable(self.lacks[Ability.TOP_FEATURES])

    def edge_features(self) -> tuple[Ints, Ints, Floats]:
        if self.transition_mask is None:
            raise NotAvailable("with a kernel on edges there are no weights of transitions")
        cells = self.tied_cells
        return np.zeros(len(cells), dtype=np.int64), cells, self.split(self.weights)[1][cells]

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[KernelChainModel, tuple[int, int, float]]:
        if threshold is None or keep is not None:
            what = "training positions below it in all labels are dropped"
            raise ValueError(f"with a kernel, prune takes a threshold: {what}")
        choose_kept(self.weights, threshold, None)  # checks the threshold
        other, structure = copy.copy(self), self.structure(np.ones(1, dtype=np.int64))
        other.support, other._weights = self.support.compress(structure, self.weights, float(threshold))
        other.training = other.support
        before, after = len(self.weights), len(other.weights)
        return other, (before, after, float(threshold) if after < before else 0.0)

    def without_zeros(self) -> KernelChainModel:
        return self  # `with_weights` has left them out

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "training": self.support}  # predictions need the support alone

    def _to_parts(self) -> ModelParts:
        nodes, edges, _ = self.split(self.weights)
        support, n = self.support, self.n_labels
        limit = encode(float(support.memory_limit), "memory_limit")
        parts = ModelParts(self.kind, {"ends": self.ends, "memory_limit": limit, "recompute": support.recompute})
        parts.add("nodes", _kernel_parts(support.nodes, unpadded(nodes, support.nodes.n_support, n)))
        if support.edges is not None:
            parts.add("edges", _kernel_parts(support.edges, unpadded(edges, support.edges.n_support, n, n)))
        self._tail_to_parts(parts)
        return parts

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        self._read_mask(parts)
        nodes, table = _read_kernel(parts.part("nodes"), n_attributes, self.n_labels)
        runs, edges = [padded(table)], None
        if not self.tied:
            edges, table = _read_kernel(parts.part("edges"), n_attributes, self.n_labels, self.n_labels)
            runs.append(padded(table))
        limit = parts.number("memory_limit")
        if not limit >= 0:
            raise ModelFormatError(f"has a memory limit of {limit} bytes")
        self.training = self.support = KernelFeatures(nodes, edges, limit, parts.flag("recompute"))
        self._weights = np.concatenate([*runs, *self._read_tail(parts)])


def _plus_one(kernel: KernelLike) -> KernelLike:
    if isinstance(kernel, Precomputed):
        raise ValueError("transition_features are not available for a precomputed kernel, which knows no rows of edges")
    return replace(kernel, bias=kernel.bias + 1.0)


def _right_ends(table: Attributes | InputRows, lengths: Ints) -> Attributes | InputRows:
    """Return the rows of all positions but each sequence's first."""
    inner = np.flatnonzero(has_left_neighbour(lengths))
    return table.take(inner) if isinstance(table, Attributes) else np.ascontiguousarray(table[inner])


def _like(rows: Rows, support: Attributes | Floats) -> Attributes | InputRows:
    """Return the rows, sparse or dense as the training rows are."""
    if isinstance(support, Attributes):
        return rows.attributes()
    if not isinstance(rows.table, Attributes):
        return rows.table
    found = rows.table
    values = np.ones(len(found.attributes)) if found.values is None else found.values
    table = sparse.csr_array((values, found.attributes, found.row_ptr), (rows.n_rows, rows.n_attributes))
    return cast(Floats, table.toarray())


def _kernel_parts(part: Part, weights: Floats) -> ModelParts:
    parts = ModelParts("rows", {"kernel": encode(part.kernel, "kernel")}, {"weights": weights})
    if part.places is not None:
        parts.arrays["places"] = part.places
    if isinstance(part.kernel, Precomputed):
        columns = np.arange(part.n_support, dtype=np.int64) if part.columns is None else part.columns
        parts.settings["n_columns"] = int(part.rows.shape[1])
        parts.arrays["columns"] = columns
    elif isinstance(part.rows, Attributes):
        parts.arrays |= {"offsets": part.rows.row_ptr, "attributes": part.rows.attributes}
        if part.rows.values is not None:
            parts.arrays["values"] = part.rows.values
    else:
        parts.arrays["rows"] = part.rows
    return parts


def _read_kernel(parts: ModelParts, n_attributes: int, *shape: int) -> tuple[Part, Floats]:
    kernel = decode(parts.settings.get("kernel"))
    weights = parts.floats("weights", None, *shape)
    n_rows = len(weights)
    places = np.array(parts.ints("places", n_rows, low=0, high=1 << 62)) if "places" in parts.arrays else None
    if isinstance(kernel, Precomputed):
        if parts.integer("n_columns", 1) != n_attributes:
            raise ModelFormatError("has a precomputed kernel of another width than its input")
        columns = parts.ints("columns", n_rows, low=0, high=n_attributes)
        return Part(kernel, np.empty((0, n_attributes)), np.array(columns), places), weights
    if "rows" in parts.arrays:
        return Part(_checked(kernel), np.array(parts.floats("rows", n_rows, n_attributes)), places=places), weights
    attributes = parts.ints("attributes", None, low=-1, high=n_attributes)
    offsets = parts.pointers("offsets", n_rows, len(attributes))
    values = np.array(parts.floats("values", len(attributes))) if "values" in parts.arrays else None
    found = Attributes(np.array(offsets), np.array(attributes), n_attributes, values)
    return Part(_checked(kernel), found, places=places), weights


def _checked(kernel: Any) -> KernelLike:
    if not hasattr(kernel, "core") or any(getattr(kernel, item.name) is None for item in fields(kernel)):
        raise ModelFormatError("has a kernel without all its parameters")
    return cast(KernelLike, kernel)
