"""What the features of a row add to the difference of two labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from partwise.models.inspection import Contribution, Explanation, explanation

if TYPE_CHECKING:
    from partwise.models.classes import ClassesModel


def explain_row(model: ClassesModel, row: Any, label: Any = None, against: Any = None) -> Explanation:
    """Why the best label of a row (or `label`), and not the best other one (or `against`)."""
    values = row.toarray().ravel() if sparse.issparse(row) else row.ravel()
    weights, intercepts = model.label_weights()
    scores = weights @ values + intercepts
    ranked, place = np.argsort(-scores, kind="stable").tolist(), {k: i for i, k in enumerate(model.classes.tolist())}
    for name, given in (("label", label), ("against", against)):
        if given is not None and given not in place:
            raise ValueError(f"explain: {name}: the label {given!r} was not in the training data")
    one = ranked[0] if label is None else place[label]
    two = next(k for k in ranked if k != one) if against is None else place[against]
    if one == two:
        raise ValueError(f"explain: the label {against!r} cannot be compared with itself")
    best, second = model.classes[one], model.classes[two]
    amounts = values * (weights[one] - weights[two])
    found = [
        Contribution("attribute", model.column_name(j), None, best, second, float(amounts[j]))
        for j in np.flatnonzero(amounts).tolist()
    ]
    bias = float(intercepts[one] - intercepts[two])
    found.append(Contribution("intercept", None, None, best, second, bias))
    return explanation(best, second, (float(scores[one]), float(scores[two])), found)
