"""CoNLL-U as linguists use it: columns by name, several models one after another, predicted tags for training."""

from partwise.tables.conllu.columns import ConlluColumns, jackknife
from partwise.tables.conllu.pipeline import ConlluPipeline

__all__ = ["ConlluColumns", "ConlluPipeline", "jackknife"]
