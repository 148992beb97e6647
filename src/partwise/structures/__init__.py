"""Structures: which labellings an example has, and sums and maxima over them.

`Structure` is the interface; a Python class can implement it too (num_slots, maximize, log_partition, cost).
"""

from partwise._core import (
    Chain,
    Grammar,
    Graph,
    HistoryChain,
    Multiclass,
    ProjectiveTree,
    SecondOrderChain,
    SegmentChain,
    SpanningTree,
    Structure,
    Tree,
    padded_width,
)
from partwise.structures.graphs import graph

__all__ = [
    "Chain",
    "Grammar",
    "Graph",
    "HistoryChain",
    "Multiclass",
    "ProjectiveTree",
    "SecondOrderChain",
    "SegmentChain",
    "SpanningTree",
    "Structure",
    "Tree",
    "graph",
    "padded_width",
]
