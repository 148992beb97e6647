"""Small files with very many labels, whose models would take memory out of proportion to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

import click

from partwise.cli.errors import UserError
from partwise.cli.tasks import Data
from partwise.models.labels import node_labels

#: Memory that training takes for a pair of labels of taggers, and for a label in each tree of a treebank, about.
PAIR_BYTES, TREE_BYTES = 256, 128
#: The same for a weight of a classifier: some vectors of them.
WEIGHT_BYTES = 288
#: What training may take whatever the data, and for each token; a token of CoNLL-U is a line of ten columns.
FREE_BYTES, TOKEN_BYTES, LINE_BYTES = 64 << 20, 900, 7200


def max_labels_flag() -> click.Option:
    """The option that lifts the bound."""
    return click.Option(
        ["--max-labels"],
        type=click.IntRange(1),
        metavar="N",
        help="Accept this many labels although the data are few; tables of labels take memory.",
    )


def check_pairs(settings: Mapping[str, Any], data: Data, order: int = 1) -> None:
    """UserError for data of a tagger that have too many labels for their size."""
    if data.y is not None:
        n_labels, conllu = len(data.y.distinct()), getattr(data.source, "conllu", None) is not None
        room = FREE_BYTES + (LINE_BYTES if conllu else TOKEN_BYTES) * data.n_tokens
        _check(settings, data, n_labels, PAIR_BYTES * n_labels ** (order + 1) <= room)


def check_tree_labels(settings: Mapping[str, Any], data: Data) -> None:
    """The same for a treebank: each tree has a number for each of its rules."""
    if data.y is not None:
        n_labels = len(set(node_labels(data.y)))
        room = FREE_BYTES + TOKEN_BYTES * data.n_tokens
        _check(settings, data, n_labels, TREE_BYTES * n_labels * data.n_examples <= room)


def check_rare_labels(settings: Mapping[str, Any], data: Data) -> None:
    """The same for a classifier's rows, where most labels occur once: weights of all columns for each of them."""
    counts = Counter(data.y.tolist())
    if 2 * sum(count == 1 for count in counts.values()) > len(counts):
        n_columns = len(set(chain.from_iterable(data.X))) if isinstance(data.X, list) else data.X.shape[1]
        room = FREE_BYTES + TOKEN_BYTES * data.n_tokens
        _check(settings, data, len(counts), WEIGHT_BYTES * len(counts) * n_columns <= room)


def _check(settings: Mapping[str, Any], data: Data, n_labels: int, in_proportion: bool) -> None:
    most = settings.get("max_labels")
    if n_labels > most if most else not in_proportion:
        raise UserError(
            f"the data have {n_labels:,} labels and {data.n_tokens:,} tokens, out of proportion: a model has tables of "
            f"labels; --max-labels {n_labels} accepts them"
        )
