"""Models: kinds of output with their features, between the estimators and the structures.

    classes          one label per row of numbers
    chain            labels of sequences with transitions between neighbours
    kernel_chain     the same, positions compared by a kernel
    maxent_chain     labels of sequences one after another
    tree             heads of words
    constituents     trees of phrases under a treebank's grammar

`Model` is the interface; docs/how_to_add_a_structure.md writes one.
"""

from partwise.models.base import Ability, Labellings, Learnt, Model, Reading, Training
from partwise.models.errors import ConstraintError, NotAvailable

__all__ = ["Ability", "ConstraintError", "Labellings", "Learnt", "Model", "NotAvailable", "Reading", "Training"]
