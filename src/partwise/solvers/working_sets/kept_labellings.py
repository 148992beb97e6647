"""Labellings kept for each example, batch by batch."""

from collections.abc import Sequence

import numpy as np

from partwise._core import WorkingSets
from partwise.problem import DualPoint
from partwise.problem.dual_points import ActiveSet
from partwise.support.arrays import Array, pointers


def arrays_of(active: ActiveSet) -> dict[str, Array]:
    """Return the labellings of a dual point, as `WorkingSets.to_arrays` gives them."""
    return {**vars(active), "stamps": np.zeros(len(active.coefficients), dtype=np.int64)}


def split(arrays: dict[str, Array], sizes: Sequence[int]) -> list[dict[str, Array]]:
    """Split arrays of labellings into those of batches of these sizes; ValueError if they are not labellings."""
    if len(sizes) == 1:
        return [arrays]
    WorkingSets.from_arrays(**arrays)  # checks what the slices below rely on
    parts, ends = [], np.cumsum(sizes).tolist()
    for start, stop in zip([0, *ends], ends, strict=False):
        examples = arrays["example_ptr"][start : stop + 1]
        labellings = arrays["labelling_ptr"][examples[0] : examples[-1] + 1]
        atoms, used = slice(examples[0], examples[-1]), slice(labellings[0], labellings[-1])
        part = {name: arrays[name][used] for name in ("slots", "counts")}
        part |= {name: arrays[name][atoms] for name in ("coefficients", "stamps")}
        parts.append({"example_ptr": examples - examples[0], "labelling_ptr": labellings - labellings[0], **part})
    return parts


class KeptLabellings:
    """The labellings kept for the examples of each batch, in the order of the batches."""

    def __init__(self, parts: Sequence[WorkingSets]) -> None:
        self.parts = tuple(parts)

    @classmethod
    def of(cls, active: ActiveSet, sizes: Sequence[int]) -> "KeptLabellings":
        return cls.from_arrays(sizes, **arrays_of(active))

    @classmethod
    def from_arrays(cls, sizes: Sequence[int], **arrays: Array) -> "KeptLabellings":
        """Return what `to_arrays` gave, for batches of these sizes; ValueError if it is not a set of labellings."""
        return cls([WorkingSets.from_arrays(**batch) for batch in split(arrays, sizes)])

    def to_arrays(self) -> dict[str, Array]:
        """Return all labellings, as `WorkingSets.to_arrays` gives those of one batch."""
        found = [part.to_arrays() for part in self.parts]
        if len(found) == 1:
            return found[0]
        joined = {name: np.concatenate([arrays[name] for arrays in found]) for name in found[0]}
        for name in ("example_ptr", "labelling_ptr"):
            joined[name] = pointers(np.concatenate([np.diff(arrays[name]) for arrays in found]))
        return joined

    def point(self) -> DualPoint:
        arrays = self.to_arrays()
        del arrays["stamps"]
        return DualPoint.of_active_set(ActiveSet(**arrays))

    def __deepcopy__(self, memo: dict[int, object]) -> "KeptLabellings":
        return self.from_arrays(self.sizes, **self.to_arrays())

    @property
    def sizes(self) -> list[int]:
        return [part.num_examples for part in self.parts]

    @property
    def num_atoms(self) -> int:
        return sum(part.num_atoms for part in self.parts)

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    def limited(self, memory_mb: float) -> list[tuple[WorkingSets, int]]:
        """Return the sets of each batch with its share, in bytes, of a limit in MB."""
        limit, n = int(memory_mb * 2**20), max(sum(self.sizes), 1)
        return [(part, limit * part.num_examples // n) for part in self.parts]

    def remark(self, sweeps: int, merged: int, memory_mb: float, name: str = "labellings") -> str:
        kept = f"{sweeps} sweeps without the oracle, {self.num_atoms} {name} kept in {self.bytes / 2**20:.3g} MB"
        return kept + (f", {merged} times merged to stay within memory_mb={memory_mb:g}" if merged else "")
