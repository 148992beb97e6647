"""Feature maps: the linear maps A_i from weights to slot scores.

`multiclass_map`, `chain_map`, `second_order_map` and `segment_map` build the usual ones from rows of input, `slot_map`
one for any structure from a row of input per slot; `LinearMap` stacks any segments. `maxent_map` and the other
functions of `maxent` build maps with column access; `ArcTable` (see `arcs`) those of dependency arcs.
"""

from partwise._core import (
    ArcIndex,
    ArcMap,
    ArcTokens,
    AttributeSegment,
    DenseSegment,
    FeatureMap,
    LinearMap,
    MaxentMap,
    NameCounts,
    RowLayout,
    Segment,
    SharedSegment,
    SlotSegment,
    SparseVector,
    Vocabulary,
)
from partwise.features.arcs import ARC_TEMPLATES, LABEL_TEMPLATES, ArcTable, arc_tokens, parse_templates
from partwise.features.maps import (
    SlotRows,
    TableRows,
    attribute_map,
    chain_map,
    history_chain_map,
    label_features,
    multiclass_map,
    second_order_map,
    segment_map,
    slot_map,
)
from partwise.features.maxent import Contexts, logistic_map, maxent_map, maxent_matrix_map, merge_contexts
from partwise.features.rows import Attributes
from partwise.features.template import Template

__all__ = [
    "ARC_TEMPLATES",
    "LABEL_TEMPLATES",
    "ArcIndex",
    "ArcMap",
    "ArcTable",
    "ArcTokens",
    "AttributeSegment",
    "Attributes",
    "Contexts",
    "DenseSegment",
    "FeatureMap",
    "LinearMap",
    "MaxentMap",
    "NameCounts",
    "RowLayout",
    "Segment",
    "SharedSegment",
    "SlotRows",
    "SlotSegment",
    "SparseVector",
    "TableRows",
    "Template",
    "Vocabulary",
    "arc_tokens",
    "attribute_map",
    "chain_map",
    "history_chain_map",
    "label_features",
    "logistic_map",
    "maxent_map",
    "maxent_matrix_map",
    "merge_contexts",
    "multiclass_map",
    "parse_templates",
    "second_order_map",
    "segment_map",
    "slot_map",
]
