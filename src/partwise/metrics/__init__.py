"""Scores of predicted labels."""

from partwise.metrics.attachment import AttachmentScores, attachment_scores
from partwise.metrics.chunks import ChunkScores, TypeScores, chunk_f1, chunk_scores, chunk_spans

__all__ = [
    "AttachmentScores",
    "ChunkScores",
    "TypeScores",
    "attachment_scores",
    "chunk_f1",
    "chunk_scores",
    "chunk_spans",
]
