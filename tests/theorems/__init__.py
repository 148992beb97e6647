"""All theorems of this folder, by name."""

from __future__ import annotations

from . import dcd, eg, excessive_gap, scaling
from .checks import Broken, Theorem

__all__ = ["THEOREMS", "Broken"]

THEOREMS: dict[str, Theorem] = {
    name: theorem for module in (eg, excessive_gap, scaling, dcd) for name, theorem in module.theorems()
}
