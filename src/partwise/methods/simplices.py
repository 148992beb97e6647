"""Products of simplices: points as logarithms, their divergences, and checks of what a caller gives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.lazy import cached_property

#: Logarithms are kept above this: exp of it is still a positive number, and a component can come back from there.
LEAST_LOG = -700.0


@dataclass(frozen=True, eq=False)
class Simplices:
    """alpha = (alpha_1, ..., alpha_n) end to end, alpha_i a distribution on sizes[i] corners."""

    sizes: Ints

    @classmethod
    def of(cls, blocks: ArrayLike) -> "Simplices":
        """From the simplices' sizes; ValueError if they are none."""
        sizes = np.array(blocks)
        if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise ValueError(f"blocks must be sizes >= 1, one per simplex, got {blocks!r}")
        return cls(sizes.astype(np.int64))

    @cached_property
    def ends(self) -> Ints:
        """Components of block i are ends[i]:ends[i + 1]."""
        return pointers(self.sizes)

    @cached_property
    def firsts(self) -> Ints:
        return self.ends[:-1]

    @cached_property
    def owners(self) -> Ints:
        """Which block each component is of."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def n_blocks(self) -> int:
        return len(self.sizes)

    @property
    def n_components(self) -> int:
        return int(self.ends[-1])

    def block(self, i: int) -> slice:
        """Where block i is."""
        return slice(int(self.ends[i]), int(self.ends[i + 1]))

    def per_component(self, values: Floats) -> Floats:
        """From one value per block to one per component."""
        out: Floats = values[self.owners]
        return out

    def sums(self, values: Floats) -> Floats:
        """From one value per component to their sum in each block."""
        out: Floats = np.add.reduceat(values, self.firsts)
        return out

    def uniform(self) -> Floats:
        """Logarithms of the uniform distributions."""
        return -np.log(self.per_component(self.sizes.astype(np.float64)))

    def normalised(self, logs: Floats) -> Floats:
        """Logarithms of the distributions proportional to exp(logs), LEAST_LOG and up."""
        logs = logs - self.per_component(np.maximum.reduceat(logs, self.firsts))
        logs -= self.per_component(np.log(self.sums(np.exp(logs))))
        return np.maximum(logs, LEAST_LOG)

    def divergences(self, logs: Floats, other: Floats) -> Floats:
        """D[p_i || q_i] of each block, from logarithms of p and q."""
        return self.sums(np.exp(logs) * (logs - other))

    def check_point(self, point: ArrayLike) -> Floats:
        """A point of the product, normalised; ValueError if it is none."""
        alpha: Floats = np.array(point, dtype=np.float64)
        if alpha.shape != (self.n_components,) or not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ValueError(f"a point has {self.n_components} components >= 0")
        sums = self.sums(alpha)
        if not np.allclose(sums, 1.0, atol=1e-6):
            raise ValueError("every block of a point must sum to 1")
        return alpha / self.per_component(sums)

    def check_start(self, start: ArrayLike | None) -> Floats:
        """Logarithms of the point to start from (None: uniform); ValueError if it is not in the interior."""
        if start is None:
            return self.uniform()
        point = self.check_point(start)
        if not (point > 0).all():
            raise ValueError("start must be in the interior: every component above 0")
        return np.log(point)

    def per_block(self, name: str, values: ArrayLike) -> Floats:
        """A number >= 0 for each block, from one or from one per block."""
        out = np.array(values, dtype=np.float64)
        right_shape = out.ndim == 0 or out.shape == self.sizes.shape
        if not right_shape or not (np.isfinite(out) & (out >= 0)).all():
            raise ValueError(f"{name} must be a number >= 0, or one for each block")
        return np.broadcast_to(out, self.sizes.shape).copy()


def log_of(alpha: Floats) -> Floats:
    """log, with 0 log 0 = 0 in mind."""
    logs: Floats = np.log(np.where(alpha > 0, alpha, 1.0))
    return logs
