"""Constraints at prediction: which labels nodes may have, and labels that are known."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.models.errors import ConstraintError
from partwise.models.graph.inputs import Graphs, node_names
from partwise.models.sequences.constraints import as_booleans
from partwise.support.arrays import Booleans


def node_masks(allowed: Any, fixed: Any, graphs: Graphs, classes: NDArray[Any]) -> list[Booleans | None]:
    """For each graph a mask of shape (nodes, labels), or None for no constraint."""
    index = {label: k for k, label in enumerate(classes.tolist())}
    n = len(graphs.edges)
    for name, given in (("allowed", allowed), ("fixed", fixed)):
        if given is not None and (isinstance(given, (str, dict)) or not hasattr(given, "__len__") or len(given) != n):
            raise ValueError(f"{name} must hold one entry for each of {n} graphs")
    masks: list[Booleans | None] = []
    for i in range(n):
        mask = None if allowed is None or allowed[i] is None else _allowed(allowed[i], graphs, i, index)
        if fixed is not None and fixed[i] is not None:
            known = _fixed(fixed[i], graphs, i, index)
            mask = known if mask is None else mask & known
        masks.append(mask)
    return masks


def refuse_empty(mask: Booleans, graphs: Graphs, i: int) -> None:
    """ConstraintError for a node that has no label left."""
    if not mask.any(axis=1).all():
        node = int(np.argmin(mask.any(axis=1)))
        name = node_names(graphs, i)[node]
        number = graphs.numbers[i]
        raise ConstraintError(f"allowed: graph {number}, node {name!r} has no label left", number, node)


def _allowed(value: Any, graphs: Graphs, i: int, index: dict[Any, int]) -> Booleans:
    names, number = node_names(graphs, i), graphs.numbers[i]
    if isinstance(value, np.ndarray) and value.dtype != object:
        mask = as_booleans(value, (len(names), len(index)))
        if mask is None:
            raise ValueError(f"allowed: graph {number} needs a boolean array of shape ({len(names)}, {len(index)})")
        return mask
    if not hasattr(value, "__len__"):
        raise ValueError(f"allowed: graph {number} must have None, an array, a list or a dict, got {value!r}")
    if isinstance(value, str) or (not isinstance(value, dict) and len(value) != len(names)):
        raise ValueError(f"allowed: graph {number} has {len(names)} nodes but {len(value)} entries")
    pairs = _by_node(value, names, f"allowed: graph {number}") if isinstance(value, dict) else list(enumerate(value))
    mask = np.ones((len(names), len(index)), dtype=bool)
    for node, labels in pairs:
        if labels is None:
            continue
        where = f"allowed: graph {number}, node {names[node]!r}"
        if isinstance(labels, str) or not hasattr(labels, "__iter__"):
            raise ValueError(f"{where} must have None or a collection of labels, got {labels!r}")
        mask[node] = False
        for label in labels:
            mask[node, _number(label, index, where)] = True
    return mask


def _fixed(value: Any, graphs: Graphs, i: int, index: dict[Any, int]) -> Booleans:
    names, number = node_names(graphs, i), graphs.numbers[i]
    if not isinstance(value, dict):
        raise ValueError(f"fixed: graph {number} must have None or a dict {{node: label}}, got {type(value).__name__}")
    mask = np.ones((len(names), len(index)), dtype=bool)
    for node, label in _by_node(value, names, f"fixed: graph {number}"):
        mask[node] = False
        mask[node, _number(label, index, f"fixed: graph {number}, node {names[node]!r}")] = True
    return mask


def _by_node(value: dict[Any, Any], names: list[Any], where: str) -> list[tuple[int, Any]]:
    place = {name: node for node, name in enumerate(names)}
    for name in value:
        if name not in place:
            raise ValueError(f"{where} has no node {name!r}")
    return [(place[name], each) for name, each in value.items()]


def _number(label: Any, index: dict[Any, int], where: str) -> int:
    if not isinstance(label, Hashable) or label not in index:
        raise ValueError(f"{where}: label {label!r} was not in the training data")
    return index[label]
