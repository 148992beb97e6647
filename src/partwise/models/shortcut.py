"""A shorter way from examples to answers, for models and inputs that have one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Shortcut(ABC):
    """Examples of a usual form, read for answers alone: no `Reading`, no constraints, the same answers to the bit.

    One example's way through batches and arrays takes longer than the work on it; who asks for one at a time pays it
    each time.
    """

    #: (unknown features, all features) of the examples.
    unknown: tuple[int, int]

    @abstractmethod
    def best(self, n_jobs: int = 1) -> Any:
        """What `Model.decode` gives for the best labellings."""

    @abstractmethod
    def marginals(self, temperature: float, n_jobs: int = 1, *args: Any, **options: Any) -> Any:
        """What `Model.marginals` gives for the expected counts at this temperature."""
