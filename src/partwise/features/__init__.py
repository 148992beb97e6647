"""Feature maps: the linear maps A_i from weights to slot scores.

`multiclass_map` and `chain_map` build the usual ones from rows of input; `LinearMap` stacks any segments. `maxent_map`
and its kin (see `maxent`) build maps with column access.
"""

from .._core import (
    AttributeSegment,
    DenseSegment,
    FeatureMap,
    LinearMap,
    MaxentMap,
    RowLayout,
    Segment,
    SharedSegment,
    SparseVector,
)
from .maps import Attributes, attribute_map, chain_map, multiclass_map
from .maxent import Contexts, logistic_map, maxent_map, maxent_matrix_map, merge_contexts

__all__ = [
    "AttributeSegment",
    "Attributes",
    "Contexts",
    "DenseSegment",
    "FeatureMap",
    "LinearMap",
    "MaxentMap",
    "RowLayout",
    "Segment",
    "SharedSegment",
    "SparseVector",
    "attribute_map",
    "chain_map",
    "logistic_map",
    "maxent_map",
    "maxent_matrix_map",
    "merge_contexts",
    "multiclass_map",
]
