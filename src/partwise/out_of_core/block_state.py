"""What `block_dual` knows between two rounds."""

import re
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from partwise.out_of_core.block_walks import Past
from partwise.solvers.engine.state import State
from partwise.support.arrays import Floats, Ints

#: The power of the measure of progress that the gap is guessed to go with, until it is seen.
FIRST_POWER = 0.7


@dataclass(kw_only=True)
class BlockDualState(State):
    """weights: (d,), those of certificates. plane: (d,), u. center: (d,), z, or empty without a proximity.

    written: (batches,), the attempt in which a batch's file was written, 0: there is none. digests: of these files.
    attempts: rounds tried. scaling: sigma. overlap: of the last round. power, seen_*: what certificates said
    (`observe`). repeated: rounds made again. seed: of the batches' generators. run: what the folder of the files is
    called by.
    """

    positive: ClassVar[frozenset[str]] = frozenset({"scaling", "groups", "power"})

    weights: Floats
    plane: Floats
    center: Floats
    written: Ints
    digests: NDArray[np.uint8]
    proximity: float
    scaling: float
    groups: int
    seed: int
    run: str
    overlap: float
    power: float = FIRST_POWER
    seen_gap: float = 0.0
    seen_gain: float = 0.0
    attempts: int = 0
    repeated: int = 0
    #: The rounds since files were written, and when that was; the files that a checkpoint refers to, those that may be
    #: overwritten (by their attempts, 0: there is none), and what removes the folder where there is no checkpoint.
    since: list[Past] = field(default_factory=list, init=False, compare=False)
    replaced: float = field(default_factory=time.perf_counter, init=False, compare=False)
    saved: Ints = field(init=False)
    spare: Ints = field(init=False, compare=False)
    cleanup: Any = field(default=None, init=False, compare=False)
    #: Whether the end of the state is the end of what this process keeps of its blocks.
    known: bool = field(default=False, init=False, compare=False)
    #: Where the folder of files is, None: where the problem has it.
    home: str | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        self.saved = self.written.copy()
        self.spare = np.zeros_like(self.written)

    def copied(self) -> "BlockDualState":
        other = super().copied()
        other.since, other.replaced, other.saved = list(self.since), self.replaced, self.saved.copy()
        other.spare = self.spare.copy()
        other.cleanup, other.known, other.home = self.cleanup, self.known, self.home
        return other

    def complaint(self, fresh: Any) -> str:
        if self.proximity != fresh.proximity:
            return "its proximity is not that of this run"
        if not re.fullmatch("[0-9a-f]{16}", self.run) or self.groups > len(self.written):
            return "its files are not those of a run"
        if (self.written > self.attempts).any() or not 1 <= self.scaling <= self.groups:
            return "its rounds or scaling are invalid"
        return super().complaint(fresh)


def groups_of(n_batches: int, groups: int) -> list[list[int]]:
    """Batches by their numbers, neighbours together."""
    return [part.tolist() for part in np.array_split(np.arange(n_batches), groups)]
