"""CoNLL-U as linguists use it: columns by name, several models one after another, predicted tags for training."""

from partwise.conllu.tagging import ConlluColumns
from partwise.conllu.targets import Target, get_target

__all__ = ["ConlluColumns", "Target", "get_target"]
