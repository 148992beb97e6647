"""Penalties on the weights. What a penalty means for the objective and its dual is written in `problem`."""

from dataclasses import dataclass
from math import isfinite


@dataclass(frozen=True)
class L2:
    """strength / 2 * |w|^2. Estimators' C is 1 / strength. With strength 0 there is no certificate."""

    strength: float

    def __post_init__(self) -> None:
        if not (isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"strength of the L2 penalty must be a number >= 0, got {self.strength}")

    def capabilities(self) -> frozenset[str]:
        """What a solver may ask of a penalty."""
        return frozenset({"l2 > 0"}) if self.strength > 0 else frozenset()
