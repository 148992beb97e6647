"""Carrying a chain's weights over to another set of features: the start of a fit with `warm_start`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from partwise.models.errors import NotAvailable
from partwise.models.layout import PairLayout, expand_pairs, layout_of, look_up
from partwise.models.sequences.reader import VocabularyReader
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.chain.model import ChainModel

Model = TypeVar("Model", bound="ChainModel")


def carry_weights(old: ChainModel, new: ChainModel) -> Floats | None:
    """Weights for `new`: the old ones where attribute and labels agree, 0 elsewhere. None if nothing can agree."""
    attributes = new.reader.numbers_in(old.reader)
    if attributes is None:
        return None
    index = {label: i for i, label in enumerate(old.classes.tolist())}
    labels = np.array([index.get(label, -1) for label in new.classes.tolist()], dtype=np.int64)
    width, old_width = new.width, old.width

    core = new.nodes.core
    found, columns = expand_pairs(*core.pairs())
    parts = [core.pack(look_up(old.node_features(), attributes[found], labels[columns]))]

    # transitions: tied ones are an attribute that is on every edge, as attribute 0 of untied ones is
    edge_attributes = _map_edge_attributes(old, new, attributes)
    attribute, column = expand_pairs(*new.edge_pairs())
    first, second = column // width, column % width
    real = second < len(labels)
    a, b = labels[first], np.where(real, labels[np.where(real, second, 0)], -1)
    cell = np.where((a >= 0) & (b >= 0), a * old_width + b, -1)
    values = look_up(old.edge_features(), edge_attributes[attribute], cell)
    if new.edges is None:
        run = np.zeros(len(labels) * width)
        run[column] = values
        parts.append(run)
    else:
        parts.append(new.edges.core.pack(values))

    if new.ends:
        rows = np.zeros((2, width))
        ends = old.split(old.weights)[2]
        if len(ends):
            rows[:, : len(labels)] = np.where(labels >= 0, ends.reshape(2, old_width)[:, labels], 0.0)
        parts.append(rows.ravel())
    return np.concatenate(parts)


def join_features(new: Model, old: ChainModel) -> Model:
    """`new` with the attributes and the pairs of `old`, whose labels it has; old attributes keep their numbers."""
    numbers = new.reader.numbers_in(old.reader)
    readers = (new.reader, old.reader)
    if numbers is None or not isinstance(readers[0], VocabularyReader) or not isinstance(readers[1], VocabularyReader):
        raise NotAvailable("partial_fit with grow=True: attributes need names, columns of numbers have none")
    if new.edges is not None or old.edges is not None:
        raise NotAvailable("partial_fit with grow=True: not available with transitions conditioned on attributes")
    n_old, fresh = old.n_attributes, np.flatnonzero(numbers < 0)
    own = numbers.copy()
    own[fresh] = n_old + np.arange(len(fresh))
    place = {label: k for k, label in enumerate(new.classes.tolist())}
    labels = np.array([place[label] for label in old.classes.tolist()], dtype=np.int64)

    joined = copy.copy(new)
    joined.reader = readers[1].with_names_of(readers[0], fresh)
    n, width = n_old + len(fresh), new.width
    if new.nodes.all_pairs:
        joined.nodes = PairLayout.every(n, new.n_labels, width)
    else:
        ids, columns = expand_pairs(*new.nodes.core.pairs())
        old_ids, old_columns = expand_pairs(*old.nodes.core.pairs())
        cells = np.concatenate([own[ids] * width + columns, old_ids * width + labels[old_columns]])
        cells = np.unique(cells)
        joined.nodes = layout_of(n, new.n_labels, width, cells // width, cells % width)
    assert new.transition_mask is not None
    joined.transition_mask = new.transition_mask.copy()
    before = old.edge_pairs()[1]
    joined.transition_mask[labels[before // old.width] * width + labels[before % old.width]] = 1
    return joined


def _map_edge_attributes(old: ChainModel, new: ChainModel, attributes: Ints) -> Ints:
    """Old edge attribute of each new one, -1 for none."""
    if new.edge_ids is None:
        return np.zeros(1, dtype=np.int64)
    picked = attributes[new.edge_ids > 0]
    if old.edge_ids is None:
        later = np.full(len(picked), -1, dtype=np.int64)
    else:
        later = np.where(picked >= 0, old.edge_ids[picked], -1)
    return np.concatenate([np.zeros(1, dtype=np.int64), later])
