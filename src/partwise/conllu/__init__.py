"""CoNLL-U as linguists use it: columns by name, several models one after another, predicted tags for training."""

from partwise.conllu.columns import ConlluColumns, Target, get_target, jackknife
from partwise.conllu.pipeline import ConlluPipeline

__all__ = ["ConlluColumns", "ConlluPipeline", "Target", "get_target", "jackknife"]
