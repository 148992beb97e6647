"""Constituent trees under a treebank's grammar."""

from partwise.models.constituents.model import ConstituencyModel

__all__ = ["ConstituencyModel"]
