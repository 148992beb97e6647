"""Two labellings of a sequence to tell apart: the two best, or the best ones with different labels at one position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.models.base import Labellings, Reading
from partwise.models.errors import ConstraintError
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.sequences.model import SequenceModel

Found = tuple[float, Ints, Floats]


def contrasted(
    model: SequenceModel, reading: Reading, position: Any = None, label: Any = None, against: Any = None
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


def labels_of(model: SequenceModel, reading: Reading, found: list[Found]) -> Any:
    """The labels of these labellings, one row per labelling."""
    both = Labellings.of([(slots, counts) for _, slots, counts in found])
    return model.labels_of(reading, np.zeros(len(found), dtype=np.int64), both).reshape(len(found), -1)
