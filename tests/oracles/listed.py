"""A structure written in Python that lists the labellings of another structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise import Structure

from .enumerate import enumeration_of


class Listed(Structure):
    def __init__(self, other: Any) -> None:
        super().__init__(other.num_examples)
        self.other = other
        self.examples = [enumeration_of(other, i) for i in range(other.num_examples)]

    def num_slots(self, i):
        return self.examples[i].counts.shape[1]

    def maximize(self, i, scores):
        value, best = self.examples[i].maximum(scores)
        slots = np.flatnonzero(self.examples[i].counts[best])
        return value, slots, self.examples[i].counts[best][slots]

    def log_partition(self, i, scores, temperature=1.0):
        return self.examples[i].smax(scores, temperature)

    def cost(self, i, slots, counts):
        return self.other.cost(i, slots, counts)
