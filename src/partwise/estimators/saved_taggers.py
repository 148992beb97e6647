"""The three kinds of tagger models to model files and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from partwise._core import padded_width
from partwise.estimators.chains import ChainModel
from partwise.estimators.inputs import Floats
from partwise.estimators.kernel_chain import KernelChainModel
from partwise.estimators.local import LocalModel
from partwise.estimators.saving import (
    edge_layout_parts,
    layout_parts,
    padded,
    read_edge_layout,
    read_layout,
    unpadded,
)
from partwise.features import Attributes
from partwise.kernels import KernelFeatures, Precomputed
from partwise.kernels.features import Part
from partwise.models.errors import ModelFormatError
from partwise.models.parts import ModelParts
from partwise.models.values import decode, encode

TaggerModel = ChainModel | KernelChainModel | LocalModel


def model_parts(model: TaggerModel, weights: Floats) -> ModelParts:
    """A model with its weights, for a file."""
    if isinstance(model, LocalModel):
        parts = ModelParts("local", {"history": model.history})
        parts.add("nodes", layout_parts(model.nodes, weights))
        return parts
    nodes, edges, ends = model.split(weights)
    n_labels = model.n_labels
    parts = ModelParts("chain" if isinstance(model, ChainModel) else "kernel chain", {"ends": model.ends})
    if isinstance(model, ChainModel):
        parts.add("nodes", layout_parts(model.nodes, nodes))
        if model.edges is not None and model.edge_ids is not None:
            parts.add("edges", edge_layout_parts(model.edges, edges, n_labels))
            parts.arrays["on_edges"] = (model.edge_ids > 0).astype(np.uint8)
    else:
        support = model.support
        limit = encode(float(support.memory_limit), "memory_limit")
        parts.settings |= {"memory_limit": limit, "recompute": support.recompute}
        parts.add("nodes", _kernel_parts(support.nodes, unpadded(nodes, support.nodes.n_support, n_labels)))
        if support.edges is not None:
            shape = (support.edges.n_support, n_labels, n_labels)
            parts.add("edges", _kernel_parts(support.edges, unpadded(edges, *shape)))
    if not parts.has("edges"):
        assert model.transition_mask is not None
        mask = unpadded(model.transition_mask, n_labels, n_labels)
        parts.arrays |= {"transitions": mask, "transition_weights": unpadded(edges, n_labels, n_labels)}
    if model.ends:
        parts.arrays["end_weights"] = unpadded(ends, 2, n_labels)
    return parts


def read_model(parts: ModelParts, n_labels: int, n_attributes: int) -> tuple[TaggerModel, Floats]:
    """The model and its weights; `n_attributes` are those that the reader knows."""
    if parts.kind == "local":
        return _read_local(parts, n_labels, n_attributes)
    if parts.kind not in ("chain", "kernel chain"):
        raise ModelFormatError(f"holds a tagger of unknown kind {parts.kind[:40]!r}")
    ends = parts.flag("ends")
    runs: list[Floats] = []
    mask = None
    if not parts.has("edges"):
        mask = padded(parts.mask("transitions", n_labels, n_labels).astype(np.uint8))
    model: TaggerModel
    if parts.kind == "chain":
        # Room for the other weights after those of the nodes, nearly all of a large model: they are not copied again.
        width = padded_width(n_labels)
        room = 0 if mask is None else n_labels * width + (2 * width if ends else 0)
        nodes, run = read_layout(parts.part("nodes"), n_labels, room)
        if nodes.core.num_attributes != n_attributes:
            raise ModelFormatError(f"has weights for {nodes.core.num_attributes} attributes and knows {n_attributes}")
        runs.append(run)
        edges = edge_ids = None
        if mask is None:
            edges, run = read_edge_layout(parts.part("edges"), n_labels)
            runs.append(run)
            chosen = parts.mask("on_edges", n_attributes)
            if int(chosen.sum()) + 1 != edges.core.num_attributes:
                raise ModelFormatError("has weights of transitions for other attributes than it says")
            edge_ids = np.where(chosen, np.cumsum(chosen), -1).astype(np.int64)
        model = ChainModel(n_labels, ends, nodes, edges, edge_ids, mask)
    else:
        node_part, table = _read_kernel(parts.part("nodes"), n_attributes, n_labels)
        runs.append(padded(table))
        edge_part = None
        if mask is None:
            edge_part, table = _read_kernel(parts.part("edges"), n_attributes, n_labels, n_labels)
            runs.append(padded(table))
        limit = parts.number("memory_limit")
        if not limit >= 0:
            raise ModelFormatError(f"has a memory limit of {limit} bytes")
        features = KernelFeatures(node_part, edge_part, limit, parts.flag("recompute"))
        model = KernelChainModel(n_labels, ends, features, features, mask)
    tail = []
    if mask is not None:
        tail.append(padded(parts.floats("transition_weights", n_labels, n_labels)))
    if ends:
        tail.append(padded(parts.floats("end_weights", 2, n_labels)))
    if parts.kind == "chain" and mask is not None:
        weights = runs[0]
        weights[len(weights) - sum(map(len, tail)) :] = np.concatenate(tail)
        return model, weights
    return model, np.concatenate([*runs, *tail])


def _read_local(parts: ModelParts, n_labels: int, n_attributes: int) -> tuple[LocalModel, Floats]:
    history = parts.integer("history", 1, 2)
    nodes, weights = read_layout(parts.part("nodes"), n_labels)
    tags = n_labels + 1
    if nodes.core.num_attributes != n_attributes + tags + (tags * tags if history == 2 else 0):
        raise ModelFormatError(f"has weights for other attributes than the {n_attributes} it knows")
    return LocalModel(n_labels, n_attributes, history, nodes), weights


def _kernel_parts(part: Part, weights: Floats) -> ModelParts:
    parts = ModelParts("rows", {"kernel": encode(part.kernel, "kernel")}, {"weights": weights})
    if isinstance(part.kernel, Precomputed):
        columns = np.arange(part.n_support, dtype=np.int64) if part.columns is None else part.columns
        parts.settings["n_columns"] = int(part.rows.shape[1])  # type: ignore[union-attr]
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
    if isinstance(kernel, Precomputed):
        if parts.integer("n_columns", 1) != n_attributes:
            raise ModelFormatError("has a precomputed kernel of another width than its input")
        columns = parts.ints("columns", n_rows, low=0, high=n_attributes)
        return Part(kernel, np.empty((0, n_attributes)), np.array(columns)), weights
    if "rows" in parts.arrays:
        return Part(_checked(kernel), np.array(parts.floats("rows", n_rows, n_attributes))), weights
    attributes = parts.ints("attributes", None, low=-1, high=n_attributes)
    offsets = parts.pointers("offsets", n_rows, len(attributes))
    values = np.array(parts.floats("values", len(attributes))) if "values" in parts.arrays else None
    return Part(_checked(kernel), Attributes(np.array(offsets), np.array(attributes), n_attributes, values)), weights


def _checked(kernel: Any) -> Any:
    if not hasattr(kernel, "core") or any(getattr(kernel, item.name) is None for item in fields(kernel)):
        raise ModelFormatError("has a kernel without all its parameters")
    return kernel
