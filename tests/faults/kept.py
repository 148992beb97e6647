"""Results of trials in a file of JSON lines, each with the digest of the code that was tested."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import digest
from .rows import Row


class Kept:
    """The known results of each trial for the present code, and the number of results for other code.

    Attributes
    ----------
    outcomes : row -> trial -> outcome
    stale : row -> number of results for other versions of the code
    dates : the days of the first and of the last counted result
    """

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self.rows = rows
        self.outcomes: dict[str, dict[int, str]] = {name: {} for name in rows}
        self.stale: Counter[str] = Counter()
        self.dates = ("", "")
        self._seconds: dict[str, tuple[int, float]] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        name, seconds = record["row"], record.get("seconds")
        if name not in self.rows:
            return
        if seconds is not None:
            n, total = self._seconds.get(name, (0, 0.0))
            self._seconds[name] = (n + 1, total + seconds)
        if record.get("digest") != digest.of_row(self.rows[name]):
            self.stale[name] += 1
            return
        self.outcomes[name][record["trial"]] = record["outcome"]
        first, last, day = *self.dates, record["date"]
        self.dates = (min(first or day, day), max(last, day))

    def cost(self) -> dict[str, float]:
        """Return the seconds per trial of each row, from all results in the file."""
        return {name: total / n for name, (n, total) in self._seconds.items()}

    @property
    def trials(self) -> int:
        return sum(len(each) for each in self.outcomes.values())


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of results; ignore a line that was cut off."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "row" in record:
                yield record


def mend(path: Path) -> None:
    """End a last line that was cut off, so that the next result begins on a new line."""
    if path.exists() and path.stat().st_size:
        with path.open("r+b") as file:
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
