"""Weights of segment models: to model files and back, and over to other sets of features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models.features import expand_pairs, look_up
from partwise.models.files import layout_parts, padded, read_layout, unpadded
from partwise.models.segments.spans import Types
from partwise.models.segments.whole import WholeFeatures
from partwise.support.arrays import Floats

if TYPE_CHECKING:
    from partwise.models.segments.model import SegmentModel

#: The largest max_length: each sequence has a row of slots per length.
MOST_POSITIONS = 1 << 20
#: Tables of attributes, in the order of weights; lengths and transitions come between "last" and "whole".
TABLES = ("inside", "first", "last", "whole")


def carry_segments(model: SegmentModel, old: SegmentModel) -> Floats | None:
    """Weights for `model`: the old ones where attributes and types agree, 0 elsewhere. None if nothing can agree."""
    numbers = model.reader.numbers_in(old.reader)
    if numbers is None:
        return None
    index = {name: k for k, name in enumerate(old.types.names)}
    types = np.array([index.get(name, -1) for name in model.types.names], dtype=np.int64)
    known = {name: k for k, name in enumerate(old.whole.names)}
    of_whole = np.array([known.get(name, -1) for name in model.whole.names], dtype=np.int64)
    runs = {}
    for name in TABLES:
        attributes, columns = expand_pairs(*model.layouts[name].core.pairs())
        there = (of_whole if name == "whole" else numbers)[attributes]
        runs[name] = model.layouts[name].core.pack(look_up(old.table(name), there, types[columns]))
    tied = {"lengths": (model.max_length, old.max_length), "transitions": (model.n_types, old.n_types)}
    for name, (rows, old_rows) in tied.items():
        before = unpadded(old.split(old.weights)[name], old_rows, old.n_types)
        place = np.arange(rows) if name == "lengths" else types
        has = (place >= 0) & (place < old_rows)
        values = np.where(has[:, None], before[np.where(has, place, 0)], 0.0)
        runs[name] = padded(np.where(types >= 0, values[:, types], 0.0))
    return np.concatenate([runs[name] for name in model.split(np.empty(0))])


def segment_parts(model: SegmentModel) -> ModelParts:
    """Types, features and weights."""
    runs, n = model.split(model.weights), model.n_types
    parts = ModelParts(model.kind, {"types": model.types.names, "max_length": model.max_length})
    for name in TABLES:
        parts.add(name, layout_parts(model.layouts[name], runs[name]))
    parts.add("features", model.whole.to_parts())
    parts.arrays["length_weights"] = unpadded(runs["lengths"], model.max_length, n)
    parts.arrays["transition_weights"] = unpadded(runs["transitions"], n, n)
    parts.arrays["transitions"] = unpadded(model.transition_mask, n, n)
    return parts


def read_segment_parts(model: SegmentModel, parts: ModelParts, n_attributes: int) -> None:
    """The inverse; `n_attributes` are those that the reader knows."""
    names = parts.settings.get("types")
    if not isinstance(names, list) or not names or not all(name is None or type(name) is str for name in names):
        raise ModelFormatError("has no list of its types of segments")
    if len(set(names)) < len(names):
        raise ModelFormatError("has a type of segments twice")
    model.types, model.max_length = Types(names), parts.integer("max_length", 1, MOST_POSITIONS)
    if model.types.classes(model.max_length).tolist() != model.classes.tolist():
        raise ModelFormatError("has other labels than its types of segments")
    n = model.n_types
    lengths = padded(parts.floats("length_weights", model.max_length, n))
    model.whole = WholeFeatures.from_parts(parts.part("features"))
    model.layouts, runs = {}, {}
    for name in TABLES:
        model.layouts[name], runs[name] = read_layout(parts.part(name), n)
        known, wanted = (
            model.layouts[name].core.num_attributes,
            len(model.whole.names) if name == "whole" else n_attributes,
        )
        if known != wanted and (known or name == "inside"):
            raise ModelFormatError(f"has weights of {name!r} for {known} attributes and knows {wanted}")
    model.transition_mask = padded(parts.mask("transitions", n, n).astype(np.uint8))
    runs |= {"lengths": lengths, "transitions": padded(parts.floats("transition_weights", n, n))}
    model._weights = np.empty(0)
    model._weights = np.concatenate([runs[name] for name in model.split(np.empty(0))])
