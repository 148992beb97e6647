"""Constraints at prediction: which labels nodes may have, and labels that are known."""

from __future__ import annotations

from partwise.models.constraints import check_choices, check_entries, label_mask
from partwise.models.graph.inputs import Graphs
from partwise.support.arrays import Booleans


def node_masks(allowed: object, fixed: object, graphs: Graphs, classes: list[object]) -> list[Booleans | None]:
    """Return a mask of shape (nodes, labels) for each graph, or None for no constraint."""
    index = {label: k for k, label in enumerate(classes)}
    masks: list[Booleans | None] = [None] * len(graphs.edges)
    for name, given in (("allowed", allowed), ("fixed", fixed)):
        for i, value in enumerate(() if given is None else check_entries(given, len(masks), "graphs", name)):
            if value is None:
                continue
            where, names = f"{name}: graph {graphs.numbers[i]}", graphs.node_names(i)
            if name == "fixed" and not isinstance(value, dict):
                raise ValueError(f"{where} must have None or a dict {{node: label}}, got {type(value).__name__}")
            if isinstance(value, dict):
                by_node = dict(graphs.by_node(value, i, where))
                value = [by_node.get(node) for node in range(len(names))]
                if name == "fixed":
                    value = [[by_node[node]] if node in by_node else None for node in range(len(names))]
            mask = label_mask(value, index, where, "node", names, "an array, a list or a dict")
            before = masks[i]
            masks[i] = mask if before is None else before & mask
    return masks


def check_nodes(mask: Booleans, graphs: Graphs, i: int) -> None:
    """ConstraintError for a node that has no label left."""
    number = graphs.numbers[i]
    check_choices(mask, number, f"allowed: graph {number}", "node", graphs.node_names(i))
