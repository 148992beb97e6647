"""What the models of sequences share: readers of input, labels, constraints."""

from partwise.models.sequences.model import SequenceModel
from partwise.models.sequences.template_reader import get_template

__all__ = ["SequenceModel", "get_template"]
