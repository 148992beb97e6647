"""Readers and types of edges from model files."""

from __future__ import annotations

from typing import Any

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import decode
from partwise.models.readers import ColumnReader, NameReader, Reader


def read_reader(parts: ModelParts) -> Reader:
    """What reads rows of nodes or edges."""
    for kind in (ColumnReader, NameReader):
        if parts.kind == kind.kind:
            return kind.from_parts(parts)
    raise ModelFormatError(f"reads its input in an unknown way ({parts.kind[:40]!r})")


def read_types(found: Any) -> list[Any]:
    """Types of edges, all different."""
    if not isinstance(found, list) or not found:
        raise ModelFormatError("has types of edges that cannot be read")
    types = [decode(each) for each in found]
    try:
        distinct = len(set(types)) == len(types) and all(each is not None and each == each for each in types)
    except TypeError:
        distinct = False
    if not distinct:
        raise ModelFormatError("has types of edges that are missing or occur twice")
    return types
