"""Feature maps: the linear maps A_i from weights to slot scores.

`multiclass_map` and `chain_map` build the usual ones from rows of input; `LinearMap` stacks any segments.
"""

from .._core import (
    AttributeSegment,
    DenseSegment,
    FeatureMap,
    LinearMap,
    RowLayout,
    Segment,
    SharedSegment,
    SparseVector,
)
from .maps import Attributes, attribute_map, chain_map, multiclass_map

__all__ = [
    "AttributeSegment",
    "Attributes",
    "DenseSegment",
    "FeatureMap",
    "LinearMap",
    "RowLayout",
    "Segment",
    "SharedSegment",
    "SparseVector",
    "attribute_map",
    "chain_map",
    "multiclass_map",
]
