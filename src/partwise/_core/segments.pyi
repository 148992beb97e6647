"""Segment chains (semi-Markov)."""

from typing import Final

from .structures import _Labels
from .support import Bytes, Floats, Ints

class SegmentChain(_Labels):
    """Sequences cut into segments of at most `max_length` positions, with a label each.

    Slots, in rows of `width`: T rows (position, label of the segment it lies in), T rows (first position, label), T
    rows (last position, label), max_length rows (length - 1, label), n_labels rows (a, b): a segment with label b
    follows one with label a, and a row of labels for each listed segment. Memory does not grow with max_length beyond
    one window of rows.

    max_lengths: the maximum of each label, at most max_length. listed: segments with slots of their own, (indptr,
    begins, ends) in the order of (end, begin) within a sequence. Cost: the number of positions with a wrong label;
    segment_cost: and 1/2 for each segment with a wrong (begin, label) and 1/2 for each with a wrong (end, label).
    """

    def __init__(
        self,
        lengths: Ints,
        n_labels: int,
        max_length: int,
        max_lengths: Ints | None = None,
        listed: tuple[Ints, Ints, Ints] | None = None,
        segment_cost: bool = False,
    ) -> None: ...
    max_length: Final[int]  #: The largest length of a segment.
    max_lengths: Final[Ints]  #: The largest length of a segment of each label.
    segment_cost: Final[bool]  #: Whether wrong ends of segments cost something.
    lengths: Final[Ints]  #: The length of each example.
    listed: Final[tuple[Ints, Ints, Ints]]  #: The segments with slots of their own: (indptr, begins, ends).
    def encode(self, labels: Ints, begins: Bytes) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) from the label of every position and whether a segment begins
        there, all sequences concatenated; raise ValueError naming a sequence and a segment that is too long."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> tuple[Ints, Bytes]:
        """Return labels and begins of all sequences, concatenated: the inverse of `encode`."""
    def set_continuation(self, i: int, allowed: Bytes | None) -> None:
        """Set which (position, label) may continue a segment (T * width bytes; None: all): a segment with this label
        that holds another position must begin there. The rule adds to the mask. Raise ValueError if no labelling is
        left."""
    def segment_probabilities(
        self, i: int, scores: Floats, begins: Ints, ends: Ints, labels: Ints, temperature: float = 1.0
    ) -> Floats:
        """Return the probability of each segment [begin, end) with this label, given in the order of ends."""
