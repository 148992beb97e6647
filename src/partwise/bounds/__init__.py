"""Bounds of the loss on new examples: `margin_bound` from the training sample, `held_out_bound` from other examples.

See docs/bounds.md for what they say and when they say anything.
"""

from partwise.bounds.held_out import held_out_bound, held_out_losses, kl, kl_inverse
from partwise.bounds.margins import Margins, NotCovered
from partwise.bounds.pac_bayes import GibbsClassifier, MarginBound, margin_bound

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
