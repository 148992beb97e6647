"""The maxent tagger: a classifier for each position that sees the tags before it, and beam search for whole sequences.

    log p(y | x) = sum_t log p(y_t | x_t, y_{t-1}, y_{t-2}),   p(. | x_t, a, b) ~ exp(scores of x_t + of a + of (b, a))

(003, section 5.1, after Ratnaparkhi 1996.) In training the tags before a position are the gold ones, so that positions
are examples of a multinomial problem; features are those of the position, one for the tag before it and one for the two
tags before it. Sequences begin after two tags "none".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from partwise._core import LinearMap, Multiclass, RowLayout, all_scores, padded_width
from partwise.estimators.chains import PairLayout, expand_pairs
from partwise.estimators.common import check_choice
from partwise.estimators.inputs import Floats, Ints, Rows, pointers
from partwise.features import Attributes, multiclass_map
from partwise.losses import get_loss


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

    def features(self, rows: Rows, structure: Multiclass, labels: Ints) -> LinearMap:
        """The feature map of positions with these tags before them."""
        return multiclass_map(
            structure, with_history(rows, labels, self.n_labels, self.history), layout=self.nodes.core
        )

    def table(self, weights: Floats) -> Floats:
        """All weights as (attributes, then tags before, then pairs of tags before) x labels, 0 where there is none."""
        attributes, labels = expand_pairs(*self.nodes.core.pairs())
        dense = np.zeros((self.nodes.core.num_attributes, self.n_labels))
        kept = labels < self.n_labels
        dense[attributes[kept], labels[kept]] = self.nodes.core.unpack(weights)[kept]
        return dense

    def history_scores(self, weights: Floats) -> Floats:
        """Scores of labels after each history: (n_states, n_labels); history (b, a) is b * (n_labels + 1) + a."""
        tags = self.n_labels + 1
        after = self.table(weights)[self.n_attributes :]
        if self.history == 1:
            return after
        return np.tile(after[:tags], (tags, 1)) + after[tags:]

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

    def position_scores(self, rows: Rows, weights: Floats) -> Floats:
        """Scores of labels from the positions' own features: (positions, n_labels)."""
        found = rows.attributes()
        if not rows.n_rows:
            return np.zeros((0, self.n_labels))
        layout, structure = self.nodes.core, self.structure(rows.lengths)
        table = Attributes(found.row_ptr, found.attributes, layout.num_attributes, found.values)
        scores = all_scores(structure, multiclass_map(structure, table, layout=layout), weights)
        return scores.reshape(rows.n_rows, self.width)[:, : self.n_labels]

    def decode(self, rows: Rows, weights: Floats, beam_width: int | None) -> Ints:
        """Tags of all positions; beam_width None: every history is kept."""
        scores, after = self.position_scores(rows, weights), self.history_scores(weights)
        width = self.n_states if beam_width is None else int(beam_width)
        return beam_search(scores, after, rows.lengths, self.history, width)


def check_options(estimator: Any) -> None:
    """ValueError for options of a tagger that the maxent model knows nothing of."""
    if get_loss(estimator.loss).name != "log":
        raise ValueError(f"model='maxent' has loss='log' only, got {estimator.loss!r}")
    for name, value in (("transitions", "auto"), ("transition_features", None), ("ends", False)):
        if getattr(estimator, name) != value:
            raise ValueError(f"{name} is not there for model='maxent', got {getattr(estimator, name)!r}")
    check_choice("history", estimator.history, (1, 2))
    width = estimator.beam_width
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


def with_history(rows: Rows, labels: Ints, n_labels: int, history: int) -> Attributes:
    """Rows with one more attribute for the tag before, and with history = 2 one for the two tags before."""
    found = rows.attributes()
    tags = n_labels + 1
    one, two = _tags_before(rows.lengths, labels, n_labels)
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


def _tags_before(lengths: Ints, labels: Ints, none: int) -> tuple[Ints, Ints]:
    """Tags one and two positions back; `none` before the sequence's beginning."""
    place = np.arange(len(labels)) - np.repeat(pointers(lengths)[:-1], lengths)
    one = np.full(len(labels), none, dtype=np.int64)
    two = one.copy()
    one[1:] = np.where(place[1:] >= 1, labels[:-1], none)
    two[2:] = np.where(place[2:] >= 2, labels[:-2], none)
    return one, two


def beam_search(scores: Floats, after: Floats, lengths: Ints, history: int, beam_width: int) -> Ints:
    """The best tags found for sequences that lie end to end.

    Parameters
    ----------
    scores : (positions, n_labels)
    after : (n_states, n_labels), scores of labels after each history
    beam_width : how many histories are kept at each position. Of partial sequences with the same history only the best
        is kept, which loses nothing: with beam_width >= n_states this is Viterbi's algorithm.
    """
    n_labels = scores.shape[1]
    tags = n_labels + 1
    starts = pointers(lengths)[:-1]
    best = np.zeros(len(scores), dtype=np.int64)
    # Sequences of like length side by side: position t of all of them is one step.
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    if not len(order):
        return best
    begins, sizes = starts[order], lengths[order]
    states = np.full((len(order), 1), len(after) - 1, dtype=np.int64)  # "none" for every tag
    values = np.zeros((len(order), 1))
    links: list[tuple[Ints, Ints]] = []  # of each position: (beam entry before, tag) of every beam entry
    ends: list[tuple[Floats, int]] = [(np.empty((0, 0)), 0)] * len(order)
    for t in range(int(sizes[0])):
        going = int(np.searchsorted(-sizes, -t, side="left"))  # sequences longer than t
        for i in range(going, len(values)):
            ends[i] = (values[i], t)
        states, values = states[:going], values[:going]
        logs = log_softmax(scores[begins[:going] + t][:, None, :] + after[states], axis=2)
        grown = values[:, :, None] + logs  # sequence x beam entry x label
        nexts = np.broadcast_to(np.arange(n_labels), grown.shape)
        if history == 2:
            nexts = (states % tags)[:, :, None] * tags + nexts
        before, tag, states, values = _best_of(grown, nexts, beam_width)
        links.append((before, tag))
    for i in range(len(values)):
        ends[i] = (values[i], int(sizes[i]))
    for i in range(len(order)):
        final, length = ends[i]
        entry = int(np.argmax(final))
        for t in range(length - 1, -1, -1):
            before, tag = links[t]
            best[begins[i] + t] = tag[i, entry]
            entry = int(before[i, entry])
    return best


def _best_of(grown: Floats, nexts: Ints, beam_width: int) -> tuple[Ints, Ints, Ints, Floats]:
    """(entry before, tag, history, value) of the best `beam_width` histories, best first; -inf where fewer."""
    n, entries, n_labels = grown.shape
    flat, targets = grown.reshape(n, -1), nexts.reshape(n, -1)
    # A history is reached from at most `entries` entries: the best beam_width of them lie among this many candidates.
    most = min(flat.shape[1], beam_width * entries)
    columns: Ints = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
    if most < flat.shape[1]:
        columns = np.argpartition(-flat, most - 1, axis=1)[:, :most]
    values = np.take_along_axis(flat, columns, axis=1)
    found = np.take_along_axis(targets, columns, axis=1)
    # By value, the best first; ties go to the lowest label, as everywhere.
    rank = np.lexsort((columns, -values), axis=1)
    columns, values, found = _reordered(rank, columns, values, found)
    # The first of each history stays: sort by history, keeping the order by value within it.
    by_state = np.argsort(found, axis=1, kind="stable")
    ordered = np.take_along_axis(found, by_state, axis=1)
    first = np.ones_like(ordered, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    keep = np.empty_like(first)
    np.put_along_axis(keep, by_state, first, axis=1)
    values = np.where(keep, values, -np.inf)
    chosen = np.argsort(~keep, axis=1, kind="stable")[:, :beam_width]
    columns, values, found = _reordered(chosen, columns, values, found)
    return columns // n_labels, columns % n_labels, found, values


def _reordered(order: Ints, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    return [np.take_along_axis(array, order, axis=1) for array in arrays]
