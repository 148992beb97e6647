"""Segments of sequences: chunks, names, phrases."""

from partwise.models.segments.labels import Span

__all__ = ["Span"]
