from __future__ import annotations

from .rows import Row

ROWS: list[Row] = []
