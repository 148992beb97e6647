"""Models: kinds of output with their features, between the estimators and the structures.

    classes         one label per row of numbers
    sequences       labels of sequences: chains of first and second order, with kernels, and maxent chains
    segments        sequences cut into segments with types
    dependencies    heads of words
    constituents    trees of phrases under a treebank's grammar
    graph           labels of the nodes of graphs

`Model` is the interface; docs/how_to_add_a_structure.md writes one.
"""

from partwise.models.base import Ability, Labellings, Learnt, Model, NotAvailable, Reading, Training
from partwise.models.constraints import ConstraintError

__all__ = ["Ability", "ConstraintError", "Labellings", "Learnt", "Model", "NotAvailable", "Reading", "Training"]
