"""What is wrong with a table of tokens."""

from __future__ import annotations

from partwise.tables.files.errors import ScoringError


class FrameError(ScoringError):
    """A table of tokens that cannot be read: `row` (counted from 0 by position) and `column` say where."""
