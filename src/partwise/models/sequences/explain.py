"""Two labellings of a sequence to tell apart, and what each feature adds to the difference of their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.models.base import Labellings
from partwise.models.errors import ConstraintError
from partwise.models.features import Rows, look_up
from partwise.models.inspection import Contribution
from partwise.models.sequences.features import edge_attributes
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.sequences.chain import ChainModel
    from partwise.models.sequences.model import SequenceModel, SequenceReading


Found = tuple[float, Ints, Floats]


def contrasted(
    model: SequenceModel, reading: SequenceReading, position: Any = None, label: Any = None, against: Any = None
) -> tuple[Found, Found]:
    """(score, slots, counts) of two labellings of a reading's only sequence.

    Without a position the two best. Else the best that has the label there (None: the best of all), and the best that
    has the other one there (None: any other label).
    """
    length = int(reading.source.lengths[0])
    if not length:
        raise ValueError("a sequence without positions has nothing to explain")
    structure: Any = reading.batch.structure
    scores = reading.batch.features.scores(0, model.weights)
    if position is None:
        if label is not None or against is not None:
            raise ValueError("explain: label and against are for one position, which is missing")
        both = structure.k_best(0, scores, 2)
        if len(both) < 2:
            raise ValueError("the sequence has one labelling: there is nothing to compare it with")
        return both[0], both[1]
    if isinstance(position, bool) or not isinstance(position, (int, np.integer)) or not 0 <= position < length:
        raise ValueError(f"explain: position must be between 0 and {length - 1}, got {position!r}")
    classes = model.classes.tolist()
    for name, given in (("label", label), ("against", against)):
        if given is not None and given not in classes:
            raise ValueError(f"explain: {name}: the label {given!r} was not in the training data")

    def best(labels: list[Any]) -> Found:
        allowed: list[Any] = [None] * length
        allowed[int(position)] = labels
        try:
            model.constrain(reading, allowed=[allowed])
        except ConstraintError:
            what = repr(labels[0]) if len(labels) == 1 else "another label"
            raise ConstraintError(
                f"explain: no labelling that is allowed has {what} at position {position}", 0
            ) from None
        found: Found = structure.k_best(0, scores, 1)[0]
        return found

    one: Found = structure.k_best(0, scores, 1)[0] if label is None else best([label])
    chosen = labels_of(model, reading, [one])[0][position]
    if against is not None and classes[chosen] == against:
        raise ValueError(f"explain: position {position} has the label {against!r} itself; give another one, or a label")
    return one, best([each for each in classes if each != classes[chosen]] if against is None else [against])


def labels_of(model: SequenceModel, reading: SequenceReading, found: list[Found]) -> Any:
    """The labels of these labellings, one row per labelling."""
    both = Labellings.of([(slots, counts) for _, slots, counts in found])
    return model.labels_of(reading, np.zeros(len(found), dtype=np.int64), both).reshape(len(found), -1)


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
