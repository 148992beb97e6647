"""Rows of sequences whose segments have features of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partwise.io.coded import CodedSequences
from partwise.models.features import Rows


@dataclass(frozen=True, eq=False)
class WordRows(Rows):
    """Rows with the words of the positions, if they are known, and the sequences' numbers, for messages."""

    words: CodedSequences | None = None
    numbers: Any = ()
