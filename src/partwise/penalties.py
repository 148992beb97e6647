"""Penalties on the weights. What a penalty means for the objective and its dual is written in `problem`."""

from dataclasses import dataclass
from math import isfinite

from .capabilities import Capability


@dataclass(frozen=True)
class L2:
    """strength / 2 * |w|^2. Estimators' C is 1 / strength. With strength 0 there is no certificate."""

    strength: float

    def __post_init__(self) -> None:
        if not (isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"strength of the L2 penalty must be a number >= 0, got {self.strength}")

    @property
    def l1(self) -> float:
        return 0.0

    def capabilities(self) -> frozenset[Capability]:
        """What a solver may ask of a penalty."""
        smooth = {Capability.SMOOTH_PENALTY, Capability.SMOOTH_TERM}
        return frozenset(smooth | ({Capability.L2, Capability.PENALTY} if self.strength > 0 else set()))


@dataclass(frozen=True)
class ElasticNet:
    """l1 |w|_1 + strength / 2 |w|^2 with l1 > 0, which makes weights zero; strength 0 is the lasso."""

    l1: float
    strength: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.l1) and self.l1 > 0):
            raise ValueError(f"l1 of the elastic net must be a number > 0 (else take L2), got {self.l1}")
        if not (isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"strength of the elastic net must be a number >= 0, got {self.strength}")

    def capabilities(self) -> frozenset[Capability]:
        """What a solver may ask of a penalty."""
        return frozenset({Capability.L1, Capability.PENALTY} | ({Capability.L2} if self.strength > 0 else set()))


Penalty = L2 | ElasticNet
