"""Why a word has the head that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.models.base import Labellings, Reading
from partwise.models.errors import ConstraintError
from partwise.models.inspection import Contribution, Explanation, explanation

if TYPE_CHECKING:
    from partwise.models.dependencies.model import TreeModel


def explain_head(
    model: TreeModel, reading: Reading, word: int, head: int | None = None, against: int | None = None
) -> Explanation:
    """The best tree, or the best with this head of the word, and the best one with another head, or with that one.

    Trees are heads of words 1, 2, ...; contributions are features of the arcs in which they differ.
    """
    n = int(reading.source.lengths[0])
    if isinstance(word, bool) or not 1 <= word <= n:
        raise ValueError(f"there is no word {word} in a sentence of {n} words")
    for given in (head, against):
        if given is not None and (isinstance(given, bool) or not 0 <= given <= n or given == word):
            raise ValueError(f"there is no arc from {given} to {word} in a sentence of {n} words")
    structure: Any = reading.batch.structure
    scores = reading.batch.features.scores(0, model.weights)

    def best(heads: list[int] | None) -> tuple[float, list[int]]:
        if heads is not None:
            try:
                model.constrain(reading, allowed=[{word: heads}])
            except ConstraintError:
                raise ConstraintError(f"no tree has another head for word {word}", 0) from None
        slots, counts = structure.maximize(0, scores)[1:]
        found = model.heads_of(reading, np.zeros(1, dtype=np.int64), Labellings.of([(slots, counts)])).tolist()
        return float(scores[slots] @ counts), found

    score, one = best(None if head is None else [head])
    own = one[word - 1]
    if against == own:
        raise ValueError(f"word {word} has the head {own} itself: give another one")
    other, two = best([k for k in range(n + 1) if k not in (own, word)] if against is None else [against])
    found = []
    for m, (mine, theirs) in enumerate(zip(one, two, strict=True), 1):
        for of, sign in ((mine, 1.0), (theirs, -1.0)) if mine != theirs else ():
            rows = model.arcs.explain(reading.source.words, m, of, model.weights)
            found += [Contribution("arc", name, m, mine, theirs, sign * weight) for name, weight in rows]
    return explanation(one, two, (score, other), found, word)
