"""Chains of labels whose positions are weighed by their attributes."""

from .model import ChainModel
from .second_order import SecondOrderModel

__all__ = ["ChainModel", "SecondOrderModel"]
