"""A history with a point for every pass."""

from __future__ import annotations

import numpy as np

from partwise.callbacks.base import Session, TrainingCallback
from partwise.solvers.engine.base import Progress


class EachPass(TrainingCallback):
    """Issue a certificate after every pass, so that `Result.history` has points enough for a plot.

    Most solvers certify themselves every five passes and where the gap may be near the tolerance, as a certificate
    costs about half a pass. Those that this callback asks for are for the history alone: weights, stopping and
    `seconds` stay what they are without it, and the run takes that much longer.

    Parameters
    ----------
    every : float
        Passes between two points, at least.
    """

    def __init__(self, every: float = 1.0) -> None:
        if not isinstance(every, int | float | np.number) or not every > 0:
            raise ValueError(f"every must be a number of passes above 0, got {every!r}")
        self.every = every
        self._last = 0.0

    def begin(self, session: Session) -> None:
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.passes < self._last:  # another run
            self._last = 0.0
        # A pass may be a little short of one, where examples of the next one come first.
        if progress.fresh or progress.passes - self._last >= 0.99 * self.every:
            progress.record()
            self._last = progress.passes
