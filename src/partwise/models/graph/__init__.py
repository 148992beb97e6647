"""Labels of the nodes of graphs."""

from partwise.models.graph.model import GraphModel

__all__ = ["GraphModel"]
