"""The interface of python-crfsuite: `Trainer`, `Tagger`, `ItemSequence`.

Model files are CRFsuite's. Algorithms: "lbfgs" is the solver that `partwise` chooses ("auto"), to a certified gap, with
c1 as an elastic net; "l2sgd" is `sgd`, "ap" `perceptron`, "pa" `mira`; "arow" has no counterpart.
"""

# Absolute imports: a program may have this package under the name pycrfsuite (see `partwise.compat.install`).
from partwise.compat.pycrfsuite.items import ItemSequence
from partwise.compat.pycrfsuite.tagger import Tagger
from partwise.compat.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

#: The version of CRFsuite whose files and parameters these are.
CRFSUITE_VERSION = "0.12.2"

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]
