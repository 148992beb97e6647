"""Chains of labels whose positions are weighed by their attributes."""

from partwise.models.chain.model import ChainModel
from partwise.models.chain.second_order import SecondOrderModel

__all__ = ["ChainModel", "SecondOrderModel"]
