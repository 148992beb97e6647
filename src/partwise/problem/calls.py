"""Answers of chains over named attributes in one call each, with the bits that `inference` gives for batches."""

from partwise._core import ItemRows, NamedChain, PackedItems

__all__ = ["ItemRows", "NamedChain", "PackedItems"]
