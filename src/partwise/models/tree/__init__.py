"""Heads of words: dependency trees."""

from partwise.models.tree.model import TreeModel

__all__ = ["TreeModel"]
