"""Scores of predicted labels."""

from partwise.metrics.chunks import ChunkScores, TypeScores, chunk_f1, chunk_scores, chunk_spans
from partwise.metrics.conllu import AttachmentScores, FeatsScores, FeatureCounts, attachment_scores, feats_scores
from partwise.metrics.labels import Calibration, ConfusionMatrix, calibration, confusion_matrix, token_accuracy
from partwise.metrics.parseval import ParsevalScores, parseval
from partwise.metrics.scorers import (
    chunk_precision,
    chunk_recall,
    get_measure,
    get_scorer,
    register_scorers,
    sequence_accuracy,
)

__all__ = [
    "AttachmentScores",
    "Calibration",
    "ChunkScores",
    "ConfusionMatrix",
    "FeatsScores",
    "FeatureCounts",
    "ParsevalScores",
    "TypeScores",
    "attachment_scores",
    "calibration",
    "chunk_f1",
    "chunk_precision",
    "chunk_recall",
    "chunk_scores",
    "chunk_spans",
    "confusion_matrix",
    "feats_scores",
    "get_measure",
    "get_scorer",
    "parseval",
    "register_scorers",
    "sequence_accuracy",
    "token_accuracy",
]
