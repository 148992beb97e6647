"""Feature maps of training rows under a kernel."""

from __future__ import annotations

from typing import Any

from partwise import structures
from partwise.features import LinearMap, kernels


def kernel_map(
    structure: structures.Multiclass | structures.Chain,
    rows: object,
    kernel: str | kernels.KernelLike,
    *,
    transition_mask: Any = None,
    by_position: bool = False,
    **options: Any,
) -> LinearMap:
    """Return the feature map of training rows, as models make it."""
    lengths = kernels.row_lengths(structure) if by_position else None
    features = kernels.KernelFeatures.of(rows, kernel, lengths=lengths, **options)
    return features.map(structure, transition_mask=transition_mask)
