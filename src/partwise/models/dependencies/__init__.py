"""Heads of words: dependency trees."""

from partwise.models.dependencies.model import TreeModel

__all__ = ["TreeModel"]
