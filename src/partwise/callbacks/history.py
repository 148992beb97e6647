"""The history of a run: with a point for every pass, and as a file."""

import errno
import json
import math
import os
import time
import warnings

import numpy as np

from partwise.callbacks.base import Session, TrainingCallback
from partwise.io.files import atomic_write
from partwise.problem.result import HISTORY, Result
from partwise.solvers.engine.base import Progress

#: Columns of the file.
COLUMNS = (*HISTORY, "dev")
#: Errors of a full disk.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class EachPass(TrainingCallback):
    """Issue a certificate after every pass, so that `Result.history` has points enough for a plot.

    Most solvers issue a certificate every five passes and when the gap may be near the tolerance, because it costs
    about half a pass. The certificates for this callback are for the history alone: they change neither weights nor
    stopping nor `seconds`, but the run takes longer. every: the least number of passes between two points.
    """

    def __init__(self, every: float = 1.0) -> None:
        if not isinstance(every, int | float | np.number) or not every > 0:
            raise ValueError(f"every must be a number of passes above 0, got {every!r}")
        self.every = every
        self._last = 0.0

    def begin(self, session: Session) -> None:
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.passes < self._last:  # another run
            self._last = 0.0
        # A pass may be a little short of one, where examples of the next one come first.
        if progress.fresh or progress.passes - self._last >= 0.99 * self.every:
            progress.record()
            self._last = progress.passes


class HistoryWriter(TrainingCallback):
    """Write passes, seconds, primal, dual, gap and the dev score (if another callback has one) to a file.

    There is a row for every certificate and for every score. The file is replaced as a whole, at most once in
    `every_seconds` and at the end: a reader never sees half of it. An unknown or infinite number is empty in CSV and
    null in JSON. If the disk is full, a warning says so and the run continues; an invalid path is an error.

    path: ends in .csv or .json. JSON: {"solver", "status", "message", "history": [{column: number}, ...]}; status is
    "running" until the end, "failed" after an error.
    """

    def __init__(self, path: str | os.PathLike[str], every_seconds: float = 1.0) -> None:
        if os.path.splitext(os.fspath(path))[1] not in (".csv", ".json"):
            raise ValueError(f"the history's file must end in .csv or .json, got {os.fspath(path)!r}")
        self.path = path
        self.every_seconds = every_seconds

    def begin(self, session: Session) -> None:
        self._rows: list[dict[str, float | None]] = []
        self._solver = ""
        self._warned = False
        self._write("running", "", first=True)

    def __call__(self, progress: Progress) -> None:
        self._solver = progress.solver
        c = progress.certificate if progress.fresh else None
        score = progress.scores.get("dev")
        if c is None and score is None:
            return
        certified = (None, None, None) if c is None else (c.primal, c.dual, c.gap)
        self._rows.append(_row(progress.passes, progress.seconds, *certified, score))
        if time.monotonic() - self._written >= self.every_seconds:
            self._write("running", "")

    def end(self, session: Session, result: Result | None) -> Result | None:
        if result is None:
            self._write("failed", "")
            return None
        # The run's own history also has the certificates before the first and after the last step.
        rows = {row["passes"]: row for row in self._rows if row["dev"] is not None}
        for values in zip(*(result.history[name].tolist() for name in HISTORY), strict=True):
            rows[values[0]] = _row(*values, rows[values[0]]["dev"] if values[0] in rows else None)
        self._rows = sorted(rows.values(), key=lambda row: row["passes"] or 0.0)
        self._solver = result.solver
        self._write(result.status, result.message)
        return result

    def _write(self, status: str, message: str, first: bool = False) -> None:
        """Write all rows. Warn once if that fails; raise the error of the first time, unless the disk is full."""
        self._written = time.monotonic()
        try:
            self._write_rows(status, message)
        except OSError as error:
            if first and error.errno not in NO_ROOM:
                raise
            if not self._warned:
                reason = (error.strerror or str(error)).lower()
                text = f"{os.fspath(self.path)}: the history cannot be written ({reason}); the run goes on"
                warnings.warn(text, RuntimeWarning, stacklevel=4)
            self._warned = True

    def _write_rows(self, status: str, message: str) -> None:
        with atomic_write(self.path, "w") as file:
            if os.fspath(self.path).endswith(".csv"):
                file.write(",".join(COLUMNS) + "\n")
                for row in self._rows:
                    file.write(",".join("" if value is None else repr(value) for value in row.values()) + "\n")
            else:
                record = {"solver": self._solver, "status": status, "message": message, "history": self._rows}
                json.dump(record, file, indent=1, allow_nan=False)
                file.write("\n")


def _row(*values: float | None) -> dict[str, float | None]:
    finite = (float(value) if value is not None and math.isfinite(value) else None for value in values)
    return dict(zip(COLUMNS, finite, strict=True))
