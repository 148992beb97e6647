"""Carrying a tagger's weights over to another set of features: the start of a fit with `warm_start`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.estimators.chains import ChainModel, expand_pairs
from partwise.estimators.inputs import ColumnReader, Floats, Ints
from partwise.estimators.slots import Reader


@dataclass(frozen=True)
class Fitted:
    """What weights are about: how attributes are read, which features there are, which labels."""

    reader: Reader
    model: ChainModel
    classes: NDArray[Any]


def carry_weights(weights: Floats, old: Fitted, new: Fitted) -> Floats | None:
    """Weights for `new`: the old ones where attribute and labels agree, 0 elsewhere. None if nothing can agree."""
    attributes = _map_attributes(old.reader, new.reader)
    if attributes is None:
        return None
    index = {label: i for i, label in enumerate(old.classes.tolist())}
    labels = np.array([index.get(label, -1) for label in new.classes.tolist()], dtype=np.int64)
    width, old_width = new.model.width, old.model.width

    core = new.model.nodes.core
    found, columns = expand_pairs(*core.pairs())
    values = look_up(old.model.node_features(weights), attributes[found], labels[columns])
    parts = [core.pack(values)]

    # transitions: tied ones are an attribute that is on every edge, as attribute 0 of untied ones is
    edge_attributes = _map_edge_attributes(old.model, new.model, attributes)
    attribute, column = expand_pairs(*new.model.edge_pairs())
    first, second = column // width, column % width
    real = second < len(labels)
    a, b = labels[first], np.where(real, labels[np.where(real, second, 0)], -1)
    cell = np.where((a >= 0) & (b >= 0), a * old_width + b, -1)
    values = look_up(old.model.edge_features(weights), edge_attributes[attribute], cell)
    if new.model.edges is None:
        run = np.zeros(len(labels) * width)
        run[column] = values
        parts.append(run)
    else:
        parts.append(new.model.edges.core.pack(values))

    if new.model.ends:
        rows = np.zeros((2, width))
        ends = old.model.split(weights)[2]
        if len(ends):
            rows[:, : len(labels)] = np.where(labels >= 0, ends.reshape(2, old_width)[:, labels], 0.0)
        parts.append(rows.ravel())
    return np.concatenate(parts)


def edge_names(reader: Reader, model: ChainModel) -> list[tuple[Any, ...]]:
    """Name of each edge attribute: () for the one that is always there, else (attribute,)."""
    if model.edge_ids is None:
        return [()]
    names: Any = range(len(model.edge_ids)) if isinstance(reader, ColumnReader) else reader.names()
    return [(), *((names[j],) for j in np.flatnonzero(model.edge_ids > 0))]


def _map_attributes(old: Any, new: Any) -> Ints | None:
    """Old number of each new attribute, -1 for those there were not; None if the forms of input differ."""
    if isinstance(old, ColumnReader) or isinstance(new, ColumnReader):
        same = type(old) is type(new) and old.n_features == new.n_features
        return np.arange(new.n_features, dtype=np.int64) if same else None
    found: Ints = old.vocabulary.packed_ids(new.vocabulary.bytes, new.vocabulary.offsets)
    return found


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


def look_up(table: tuple[Ints, Ints, Floats], attributes: Ints, columns: Ints) -> Floats:
    """Values of (attribute, column) pairs in a table sorted by attribute, then column; 0 for what is not there."""
    rows, table_columns, values = table
    if not len(rows):
        return np.zeros(len(attributes))
    stride = int(max(table_columns.max(), columns.max(initial=0))) + 1
    keys = rows * stride + table_columns
    wanted = np.where((attributes >= 0) & (columns >= 0), attributes * stride + columns, -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    out: Floats = np.where(keys[place] == wanted, values[place], 0.0)
    return out
