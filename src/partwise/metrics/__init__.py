"""Scores of predicted labels."""

from partwise.metrics.chunks import ChunkScores, TypeScores, chunk_f1, chunk_scores, chunk_spans

__all__ = ["ChunkScores", "TypeScores", "chunk_f1", "chunk_scores", "chunk_spans"]
