"""Chains whose positions are weighed by their attributes."""

from partwise.models.chain.model import ChainModel

__all__ = ["ChainModel"]
