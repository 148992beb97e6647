"""CoNLL-U as linguists use it: columns by name, several models one after another, predicted tags for training."""

from partwise.conllu.jackknife import jackknife
from partwise.conllu.pipeline import ConlluPipeline
from partwise.conllu.tagging import ConlluColumns
from partwise.conllu.targets import Target, get_target

__all__ = ["ConlluColumns", "ConlluPipeline", "Target", "get_target", "jackknife"]
