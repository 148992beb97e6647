"""What the features of a chain add to the difference of two labellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partwise.models.chain.layout import edge_attributes
from partwise.models.inspection import Contribution
from partwise.models.layout import look_up
from partwise.models.rows import Rows
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.chain.model import ChainModel
    from partwise.models.sequences.model import SequenceModel


def explain_positions(model: SequenceModel, rows: Rows, one: Ints, two: Ints) -> list[Contribution]:
    """Attributes of the positions where the labels differ."""
    classes, table = model.classes.tolist(), rows.attributes()
    owner = np.repeat(np.arange(len(one)), np.diff(table.row_ptr))
    differ = np.flatnonzero((one != two)[owner] & (table.attributes >= 0))
    ids, place = table.attributes[differ], owner[differ]
    values = 1.0 if table.values is None else table.values[differ]
    features = model.node_features()
    amounts = values * (look_up(features, ids, one[place]) - look_up(features, ids, two[place]))
    return [
        Contribution("attribute", model.reader.name(i), t, classes[one[t]], classes[two[t]], amount)
        for i, t, amount in zip(ids.tolist(), place.tolist(), amounts.tolist(), strict=True)
    ]


def explain_edges(model: ChainModel, rows: Rows, one: Ints, two: Ints) -> list[Contribution]:
    """Transitions that differ: their own weights are edge attribute 0."""
    classes, n_edges = model.classes.tolist(), len(one) - 1
    if model.edge_ids is None:
        ids, owner, values = np.zeros(n_edges, dtype=np.int64), np.arange(n_edges), np.ones(n_edges)
    else:
        table = edge_attributes(rows, model.edge_ids)
        ids, owner = table.attributes, np.repeat(np.arange(n_edges), np.diff(table.row_ptr))
        values = np.ones(len(ids)) if table.values is None else table.values
    attributes = model.on_edges()
    first, second = (labels[:-1] * model.width + labels[1:] for labels in (one, two))
    features = model.edge_features()
    amounts = values * (look_up(features, ids, first[owner]) - look_up(features, ids, second[owner]))
    found = []
    for k in np.flatnonzero(first[owner] != second[owner]).tolist():
        t, name = int(owner[k]) + 1, int(attributes[ids[k]])
        best, other = ((classes[labels[t - 1]], classes[labels[t]]) for labels in (one, two))
        called = None if name < 0 else model.reader.name(name)
        found.append(Contribution("transition", called, t, best, other, float(amounts[k])))
    return found


def explain_ends(model: ChainModel, one: Ints, two: Ints) -> list[Contribution]:
    """Begin and end weights."""
    classes = model.classes.tolist()
    begin, end = model.split(model.weights)[2].reshape(2, model.width)
    return [
        Contribution(kind, None, t, classes[one[t]], classes[two[t]], float(row[one[t]] - row[two[t]]))
        for kind, row, t in (("begin", begin, 0), ("end", end, len(one) - 1))
    ]
