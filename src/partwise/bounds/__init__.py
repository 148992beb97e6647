"""Bounds of the loss on examples yet to come: `margin_bound` from the training sample, `held_out_bound` from others.

See docs/bounds.md for what they say and when they say anything.
"""

from partwise.bounds.gibbs import GibbsClassifier
from partwise.bounds.held_out import held_out_bound
from partwise.bounds.kl import kl, kl_inverse
from partwise.bounds.losses import held_out_losses
from partwise.bounds.margins import Margins, NotCovered
from partwise.bounds.pac_bayes import MarginBound, margin_bound

__all__ = [
    "GibbsClassifier",
    "MarginBound",
    "Margins",
    "NotCovered",
    "held_out_bound",
    "held_out_losses",
    "kl",
    "kl_inverse",
    "margin_bound",
]
