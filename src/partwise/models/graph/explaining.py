"""Which features of nodes and edges make one labelling of a graph better than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partwise.models.inspection import Contribution
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.graph.features import GraphRows
    from partwise.models.graph.model import GraphModel


def explain_nodes(model: GraphModel, rows: GraphRows, one: Ints, two: Ints) -> list[Contribution]:
    """Attributes of nodes whose labels differ."""
    weights, classes = model.tables()[0], model.classes.tolist()
    table = rows.nodes.attributes()
    found = []
    for node in np.flatnonzero(one != two).tolist():
        a, b = int(one[node]), int(two[node])
        for k in range(table.row_ptr[node], table.row_ptr[node + 1]):
            attribute = int(table.attributes[k])
            if attribute < 0:
                continue
            value = 1.0 if table.values is None else float(table.values[k])
            amount = value * float(weights[attribute, a] - weights[attribute, b])
            kind = "intercept" if attribute == model.reader.n_attributes else "attribute"
            found.append(Contribution(kind, model.node_name(attribute), node, classes[a], classes[b], amount))
    return found


def explain_edges(model: GraphModel, rows: GraphRows, one: Ints, two: Ints) -> list[Contribution]:
    """Attributes of edges whose pairs of labels differ."""
    size = model.n_edge_attributes
    weights = model.tables()[1].reshape(-1, model.n_labels, model.n_labels)
    table, pairs, classes = rows.edge_attributes(model.n_types), rows.cliques(), model.classes.tolist()
    found = []
    for k, (u, v) in enumerate(pairs.tolist()):
        first, second = (int(one[u]), int(one[v])), (int(two[u]), int(two[v]))
        if first == second:
            continue
        names = [(classes[a], classes[b]) for a, b in (first, second)]
        for place in range(table.row_ptr[k], table.row_ptr[k + 1]):
            attribute = int(table.attributes[place])
            if attribute < 0:
                continue
            value = 1.0 if table.values is None else float(table.values[place])
            amount = value * float(weights[attribute][first] - weights[attribute][second])
            name = model.edge_name(*divmod(attribute, size))
            found.append(Contribution("edge", name, k // rows.directions, names[0], names[1], amount))
    return found
