"""Predicted tags for training data: every sentence tagged by a model that has not seen it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partwise.conllu.tagging import ConlluColumns
from partwise.io import ConlluSentence


def jackknife(
    columns: ConlluColumns, make: Callable[[], Any], sentences: Sequence[ConlluSentence], folds: int, seed: int = 0
) -> list[ConlluSentence]:
    """The sentences with the target's column filled by taggers that were trained on the other folds.

    What reads these tags later, such as a parser, then learns from tags as good as those that it will see. With the
    same seed the folds are the same.

    Parameters
    ----------
    columns : what the taggers read and fill
    make : gives a tagger that is not fitted
    sentences : with the target's column
    folds : from 2 to the number of sentences
    """
    n = len(sentences)
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or not 2 <= folds <= n:
        raise ValueError(f"folds must be a number from 2 to that of the sentences, {n}; got {folds!r}")
    order = np.random.default_rng(seed).permutation(n)
    found: list[Any] = [None] * n
    for part in np.array_split(order, folds):
        rest = np.setdiff1d(order, part).tolist()
        tagger = columns.fit(make(), [sentences[i] for i in rest])
        chosen = np.sort(part).tolist()
        for i, sentence in zip(chosen, columns.annotate(tagger, [sentences[i] for i in chosen]), strict=True):
            found[i] = sentence
    return found
