"""The maxent tagger: a classifier for each position that sees the tags before it.

    log p(y | x) = sum_t log p(y_t | x_t, y_{t-1}, y_{t-2}),   p(. | x_t, a, b) ~ exp(scores of x_t + of a + of (b, a))

(003, section 5.1, after Ratnaparkhi 1996.) In training the tags before a position are the gold ones, so that positions
are examples of a multinomial problem; features are those of the position, one for the tag before it and one for the two
tags before it. Sequences begin after two tags "none". Whole sequences are labelled by the structure `HistoryChain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise._core import HistoryChain, LinearMap, Multiclass, RowLayout, all_scores, padded_width
from partwise.estimators.chains import PairLayout, expand_pairs
from partwise.estimators.common import check_choice
from partwise.estimators.inputs import Floats, Ints, Rows, pointers
from partwise.features import Attributes, history_chain_map
from partwise.losses import get_loss


@dataclass(frozen=True)
class HistoryScores:
    """Scores of labels after histories: those of the last tag, and those of pairs of tags that have any.

    There are as many histories as pairs of tags, and few of them have weights of their own: there is no room for all.
    """

    first: Floats  # (tags, n_labels)
    pairs: Ints  # older tag * tags + last tag, ascending
    second: Floats  # (pairs, n_labels)

    def of_last(self, last: Ints) -> Floats:
        """Scores of all labels after these last tags."""
        found: Floats = self.first[last]
        return found

    def of_pairs(self, states: Ints) -> Floats:
        """Scores that these pairs of tags have of their own."""
        found = np.zeros((len(states), self.first.shape[1]))
        if len(self.pairs):
            place = np.minimum(np.searchsorted(self.pairs, states), len(self.pairs) - 1)
            own = self.pairs[place] == states
            found[own] = self.second[place[own]]
        return found


@dataclass(frozen=True)
class LocalModel:
    """Which features the classifier has. Tag n_labels stands for "before the sequence"."""

    n_labels: int
    n_attributes: int
    history: int  # how many tags back it sees: 1 or 2
    nodes: PairLayout

    @property
    def width(self) -> int:
        """Padded number of labels."""
        return padded_width(self.n_labels)

    @property
    def n_states(self) -> int:
        """Number of different histories."""
        return int((self.n_labels + 1) ** self.history)

    def structure(self, lengths: Ints) -> Multiclass:
        """The labels of all positions, each for itself."""
        return Multiclass(int(lengths.sum()), self.n_labels)

    def contexts(self, rows: Rows, labels: Ints) -> Attributes:
        """The attributes of positions with these tags before them."""
        return with_history(rows, labels, self.n_labels, self.history)

    def history_scores(self, weights: Floats) -> HistoryScores:
        """Weights of labels after each tag, and after each two that have any."""
        tags = self.n_labels + 1
        attributes, labels = expand_pairs(*self.nodes.core.pairs())
        kept = (attributes >= self.n_attributes) & (labels < self.n_labels)
        place, labels, values = (
            attributes[kept] - self.n_attributes,
            labels[kept],
            self.nodes.core.unpack(weights)[kept],
        )
        one = place < tags
        first = np.zeros((tags, self.n_labels))
        first[place[one], labels[one]] = values[one]
        pairs, row = np.unique(place[~one] - tags, return_inverse=True)
        second = np.zeros((len(pairs), self.n_labels))
        second[row, labels[~one]] = values[~one]
        return HistoryScores(first, pairs, second)

    def node_features(self, weights: Floats) -> tuple[Ints, Ints, Floats]:
        """(attributes, labels, weights) of the features of positions."""
        attributes, labels = expand_pairs(*self.nodes.core.pairs())
        kept = (attributes < self.n_attributes) & (labels < self.n_labels)
        return attributes[kept], labels[kept], self.nodes.core.unpack(weights)[kept]

    def named_history(self, weights: Floats, classes: list[Any]) -> dict[tuple[Any, ...], float]:
        """Weights of (tag before, label) and of (tag two before, tag before, label)."""
        tags = [*classes, None]
        attributes, labels = expand_pairs(*self.nodes.core.pairs())
        parts = zip(attributes.tolist(), labels.tolist(), self.nodes.core.unpack(weights).tolist(), strict=True)
        found: dict[tuple[Any, ...], float] = {}
        for attribute, label, weight in parts:
            place = attribute - self.n_attributes
            if place < 0 or label >= self.n_labels:
                continue
            pair, one = divmod(place - len(tags), len(tags))
            before = (tags[place],) if place < len(tags) else (tags[pair], tags[one])
            found[*before, classes[label]] = weight
        return found

    def sequences(self, lengths: Ints, weights: Floats, beam_width: int | None) -> HistoryChain:
        """The labellings of sequences of these lengths (none of them 0)."""
        after = self.history_scores(weights)
        width = 0 if beam_width is None else min(int(beam_width), self.n_states)
        return HistoryChain(
            lengths, self.n_labels, self.history, after.first.ravel(), after.pairs, after.second.ravel(), width
        )

    def features(self, rows: Rows, structure: HistoryChain) -> LinearMap:
        """The feature map of these rows, for one look at each."""
        found, layout = rows.attributes(), self.nodes.core
        table = Attributes(found.row_ptr, found.attributes, layout.num_attributes, found.values)
        return history_chain_map(structure, table, layout=layout)

    def position_scores(self, rows: Rows, weights: Floats) -> Floats:
        """Scores of labels from the positions' own features: (positions, n_labels)."""
        structure = self.sequences(rows.lengths, weights, 1)
        scores = all_scores(structure, self.features(rows, structure), weights)
        return scores.reshape(rows.n_rows, self.width)[:, : self.n_labels]


def check_options(estimator: Any) -> None:
    """ValueError for options of a tagger that the maxent model knows nothing of."""
    if get_loss(estimator.loss).name != "log":
        raise ValueError(f"model='maxent' has loss='log' only, got {estimator.loss!r}")
    for name, value in (("transitions", "auto"), ("transition_features", None), ("ends", False)):
        if getattr(estimator, name) != value:
            raise ValueError(f"{name} is not there for model='maxent', got {getattr(estimator, name)!r}")
    check_choice("history", estimator.history, (1, 2))
    check_beam_width(estimator.beam_width)


def check_beam_width(width: Any) -> None:
    """None or a number of histories."""
    if width is not None and (isinstance(width, bool) or not isinstance(width, (int, np.integer)) or width < 1):
        raise ValueError(f"beam_width must be None or an integer >= 1, got {width!r}")


def make_local_model(
    rows: Rows, labels: Ints, n_labels: int, *, observed: bool, history: int, min_count: int
) -> LocalModel:
    """Choose the features from the training data, as `chains.make_model` does."""
    width = padded_width(n_labels)
    found = with_history(rows, labels, n_labels, history)
    if observed:
        core = RowLayout.observed(
            found.num_attributes, n_labels, width, found.row_ptr, found.attributes, labels, min_count
        )
        layout = PairLayout(core, all_pairs=False)
    else:
        layout = PairLayout.every(found.num_attributes, n_labels, width)
    return LocalModel(n_labels, rows.n_attributes, history, layout)


def tags_before(lengths: Ints, labels: Ints, none: int) -> tuple[Ints, Ints]:
    """Tags one and two positions back; `none` before the sequence's beginning."""
    place = np.arange(len(labels)) - np.repeat(pointers(lengths)[:-1], lengths)
    one = np.full(len(labels), none, dtype=np.int64)
    two = one.copy()
    one[1:] = np.where(place[1:] >= 1, labels[:-1], none)
    two[2:] = np.where(place[2:] >= 2, labels[:-2], none)
    return one, two


def with_history(rows: Rows, labels: Ints, n_labels: int, history: int) -> Attributes:
    """Rows with one more attribute for the tag before, and with history = 2 one for the two tags before."""
    found = rows.attributes()
    tags = n_labels + 1
    one, two = tags_before(rows.lengths, labels, n_labels)
    more = [rows.n_attributes + one]
    if history == 2:
        more.append(rows.n_attributes + tags + two * tags + one)
    sizes = np.diff(found.row_ptr)
    row_ptr = pointers(sizes + history)
    is_new = np.zeros(int(row_ptr[-1]), dtype=bool)
    attributes = np.empty(len(is_new), dtype=np.int64)
    for k, ids in enumerate(more):
        places = row_ptr[1:] - history + k
        attributes[places] = ids
        is_new[places] = True
    attributes[~is_new] = found.attributes
    values = None
    if found.values is not None:
        values = np.ones(len(is_new))
        values[~is_new] = found.values
    size = rows.n_attributes + tags + (tags * tags if history == 2 else 0)
    return Attributes(row_ptr, attributes, size, values)
