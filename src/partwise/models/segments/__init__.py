"""Segments of sequences: chunks, names, phrases."""

from .model import SegmentModel
from .spans import Span

__all__ = ["SegmentModel", "Span"]
