"""Labels of training data: which are chunks, which have weights, and how many of them a small file may have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from partwise.cli.errors import UserError
from partwise.cli.flags import COUNT, Flags, flag
from partwise.cli.tasks import Data
from partwise.models.labels import node_labels
from partwise.support.arrays import Ints

_CHUNK = re.compile(r"O|[BIES]-.+")
#: Lifts the limit on labels.
MAX_LABELS = flag(
    "--max-labels=N",
    "Accept this many labels although the data are few; tables of labels take memory.",
    COUNT,
)

#: About how many bytes training takes per pair of a tagger's labels, per label and tree, and per classifier's weight.
PAIR_BYTES, TREE_BYTES, WEIGHT_BYTES = 256, 128, 288
#: Bytes that training may take for any data, and for each token; a token of CoNLL-U is a line of ten columns.
FREE_BYTES, TOKEN_BYTES, LINE_BYTES = 64 << 20, 900, 7200


def are_chunks(labels: Iterable[object]) -> bool:
    """Return whether these labels are those of chunks: O, B-NP, I-NP, ..."""
    names = set(map(str, labels))
    return len(names - {"O"}) > 0 and all(_CHUNK.fullmatch(name) for name in names)


def most_frequent(keys: NDArray[np.int32], labels: NDArray[np.int32]) -> tuple[Ints, Ints, Ints]:
    """Return (keys, most frequent label of each, how often) of a key and a label per token; of ties the first seen."""
    width = int(labels.max()) + 1
    pairs, first, counts = np.unique(keys.astype(np.int64) * width + labels, return_index=True, return_counts=True)
    best = np.lexsort((first, -counts, pairs // width))
    best = best[np.flatnonzero(np.diff(pairs[best] // width, prepend=-1))]
    return pairs[best] // width, pairs[best] % width, counts[best]


def class_weight_of(
    given: Sequence[str], label_of: Callable[[str], Hashable] = str, what: str = "a number"
) -> str | dict[Hashable, float] | None:
    """Return the estimator's class_weight from flags; `label_of` makes a label of its text, `what` describes values."""
    if "balanced" in given:
        if len(given) > 1:
            raise UserError("--class-weight: balanced cannot be combined with other weights")
        return "balanced"
    found: dict[Hashable, float] = {}
    for text in given:
        name, _, weight = text.rpartition("=")
        try:
            label, value = label_of(name), float(weight)
        except ValueError:
            raise UserError(f"--class-weight: expected LABEL=WEIGHT with {what}, or balanced, got {text!r}") from None
        if label in found:
            raise UserError(f"--class-weight: label {label} has two weights")
        found[label] = value
    return found or None


def check_weighted_labels(model: object, data: Data) -> None:
    """Raise UserError for a class weight of a label that all training data lack; a fold of them may lack it."""
    weights = getattr(model, "class_weight", None)
    if not isinstance(weights, Mapping) or data.y is None:
        return
    known = set(data.y.distinct() if hasattr(data.y, "distinct") else np.unique(data.y).tolist())
    for label in weights:
        if label not in known:
            raise UserError(f"--class-weight: label {label}, which is not in y: the data have no such label")


def check_pairs(settings: Flags, data: Data, order: int = 1) -> None:
    """Raise UserError if a tagger's data have too many labels for their size."""
    if data.y is not None:
        n_labels, conllu = len(data.y.distinct()), getattr(data.source, "conllu", None) is not None
        _check(settings, data, n_labels, PAIR_BYTES * n_labels ** (order + 1), LINE_BYTES if conllu else TOKEN_BYTES)


def check_tree_labels(settings: Flags, data: Data) -> None:
    """Raise UserError if a treebank has too many labels: each tree has a number for each of its rules."""
    if data.y is not None:
        n_labels = len(set(node_labels(data.y)))
        _check(settings, data, n_labels, TREE_BYTES * n_labels * data.n_examples)


def check_rare_labels(settings: Flags, data: Data) -> None:
    """Raise UserError if most labels of a classifier's rows occur once and each would have weights of many columns."""
    counts = Counter(data.y.tolist())
    if 2 * sum(count == 1 for count in counts.values()) > len(counts):
        n_columns = len(set(chain.from_iterable(data.X))) if isinstance(data.X, list) else data.X.shape[1]
        _check(settings, data, len(counts), WEIGHT_BYTES * len(counts) * n_columns)


def _check(settings: Flags, data: Data, n_labels: int, needed: int, per_token: int = TOKEN_BYTES) -> None:
    """Raise UserError for labels that need more bytes than the data justify, or for more than --max-labels."""
    most = settings.get("max_labels")
    if n_labels > most if most else needed > FREE_BYTES + per_token * data.n_tokens:
        raise UserError(
            f"the data have {n_labels:,} labels and {data.n_tokens:,} tokens, out of proportion: a model has tables of "
            f"labels; --max-labels {n_labels} accepts them"
        )
