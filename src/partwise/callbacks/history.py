"""The history of a run as a file."""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any

from ..io.files import atomic_write
from ..result import HISTORY, Result
from ..solvers.base import Progress
from .base import Session, TrainingCallback

#: Columns of the file.
COLUMNS = (*HISTORY, "dev")


class HistoryWriter(TrainingCallback):
    """Write passes, seconds, primal, dual, gap and the dev score (if another callback has one) to a file.

    The file is replaced as a whole, at most once in `every_seconds` and at the end: a reader never sees half of it. An
    unknown or infinite number is empty in CSV and null in JSON.

    Parameters
    ----------
    path : path ending in .csv or .json
        JSON: {"solver", "status", "message", "history": [{column: number}, ...]}; status is "running" until the end,
        "failed" after an error.
    every_seconds : float
    """

    def __init__(self, path: str | os.PathLike[str], every_seconds: float = 1.0) -> None:
        if os.path.splitext(os.fspath(path))[1] not in (".csv", ".json"):
            raise ValueError(f"the history's file must end in .csv or .json, got {os.fspath(path)!r}")
        self.path = path
        self.every_seconds = every_seconds

    def begin(self, session: Session) -> None:
        self._rows: list[dict[str, float | None]] = []
        self._solver = ""
        self._write("running", "")

    def __call__(self, progress: Progress) -> None:
        self._solver = progress.solver
        if not progress.fresh or progress.certificate is None:
            return
        c = progress.certificate
        values = (progress.passes, progress.seconds, c.primal, c.dual, c.gap, progress.scores.get("dev"))
        self._rows.append(dict(zip(COLUMNS, map(_finite, values), strict=True)))
        if time.monotonic() - self._written >= self.every_seconds:
            self._write("running", "")

    def end(self, session: Session, result: Result | None) -> Result | None:
        if result is None:
            self._write("failed", "")
            return None
        # The run's own history has the certificates before the first and after the last step too.
        scores = {row["passes"]: row["dev"] for row in self._rows}
        columns = [result.history[name].tolist() for name in HISTORY]
        self._rows = [
            dict(zip(COLUMNS, map(_finite, (*values, scores.get(values[0]))), strict=True))
            for values in zip(*columns, strict=True)
        ]
        self._solver = result.solver
        self._write(result.status, result.message)
        return result

    def _write(self, status: str, message: str) -> None:
        with atomic_write(self.path, "w") as file:
            if os.fspath(self.path).endswith(".csv"):
                file.write(",".join(COLUMNS) + "\n")
                for row in self._rows:
                    file.write(",".join("" if value is None else repr(value) for value in row.values()) + "\n")
            else:
                record = {"solver": self._solver, "status": status, "message": message, "history": self._rows}
                json.dump(record, file, indent=1, allow_nan=False)
                file.write("\n")
        self._written = time.monotonic()


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
