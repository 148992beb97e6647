"""Segments of sequences: chunks, names, phrases."""

from partwise.models.segments.model import SegmentModel
from partwise.models.segments.spans import Span

__all__ = ["SegmentModel", "Span"]
