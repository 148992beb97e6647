"""A line on the terminal that follows a run."""

import math
import time
from typing import TYPE_CHECKING, Self

from partwise.callbacks.base import Session, TrainingCallback
from partwise.problem.result import Result
from partwise.solvers.engine.base import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

#: The number of certificates that the time left is estimated from.
_RECENT = 8


class ProgressLine(TrainingCallback):
    """One line on standard error: passes, primal, dual, gap, dev score (if another callback has one), time left.

    An older score is shown with its pass. On a terminal the line is drawn over itself; elsewhere (a notebook, a pipe, a
    file) new lines are written: for the first step, at most every ten seconds, and for the last step. For `solve` use
    it as a context: ``with ProgressLine() as line: solve(problem, callback=line)``.

    console: where to write. every_seconds: how often at most (default: 0.1 on a terminal, else 10).
    """

    def __init__(self, console: "Console | None" = None, every_seconds: float | None = None) -> None:
        self.console = console
        self.every_seconds = every_seconds
        self._live: Live | None = None
        self._late = ""  # the last line, if it came too soon to be written
        self._drawn = -math.inf

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def begin(self, session: Session) -> None:
        self._start()

    def __call__(self, progress: Progress) -> None:
        if progress.fresh and progress.certificate is not None:
            self._seen.append((progress.seconds, progress.certificate.relative_gap))
        text, now = self.line(progress), time.monotonic()
        if now - self._drawn < self._every:
            self._late = text
            return
        self._drawn, self._late = now, ""
        if self._live is None:
            self._print(text)
            return
        from rich.text import Text

        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def end(self, session: Session, result: Result | None) -> Result | None:
        self._stop()
        return result

    def line(self, progress: Progress) -> str:
        """Return the text of the line; the least important parts come last, where a narrow terminal cuts them off."""
        parts = [progress.solver, f"pass {progress.passes:.4g}"]
        c = progress.certificate
        certified = c is not None and math.isfinite(c.gap)
        if c is not None and certified:
            parts.append(f"gap {c.relative_gap:.1e}")
        known = progress.last_scores | {name: (score, progress.passes) for name, score in progress.scores.items()}
        for name, (score, passes) in known.items():
            when = "" if passes == progress.passes else f" (pass {passes:.4g})"
            parts.append(f"{name} {score:.4f}{when}")
        parts.append(_clock(progress.seconds))
        left = time_left(progress, self._seen[-_RECENT:])
        if left is not None:
            parts.append(f"about {_clock(left)} left")
        if c is not None:
            parts.append(f"primal {c.primal:.6g}")
            if certified:
                parts.append(f"dual {c.dual:.6g}")
        return "  ".join(parts)

    def _start(self) -> None:
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            raise ImportError("ProgressLine needs rich: pip install rich") from None

        self._stop()
        self._seen: list[tuple[float, float]] = []
        self._console = self.console if self.console is not None else Console(stderr=True)
        terminal = self._console.is_terminal
        self._every = self.every_seconds if self.every_seconds is not None else (0.1 if terminal else 10.0)
        self._drawn = -math.inf
        if terminal:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        elif self._late:
            self._print(self._late)
        self._late = ""

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "console": None, "_live": None, "_console": None}

    def __sklearn_clone__(self) -> "ProgressLine":
        return ProgressLine(self.console, self.every_seconds)


def time_left(progress: Progress, seen: list[tuple[float, float]]) -> float | None:
    """Return the seconds until the first of the run's limits, or None if they cannot be estimated.

    seen: the last certificates as (seconds, relative gap). The gap is assumed to fall on by the same factor per second.
    """
    guesses = []
    if progress.max_seconds is not None:
        guesses.append(progress.max_seconds - progress.seconds)
    usable = [(seconds, math.log(gap)) for seconds, gap in seen if gap > 0 and math.isfinite(gap)]
    if progress.tol > 0 and len(usable) >= 2:
        (first, high), (last, low) = usable[0], usable[-1]
        if low < high and last > first:
            rate = (high - low) / (last - first)
            guesses.append((low - math.log(progress.tol)) / rate - (progress.seconds - last))
    # The limit on passes is far off: it must not be shown as the time left before the gap's rate of fall is known.
    if math.isfinite(progress.max_passes) and progress.passes > 0 and (guesses or progress.tol == 0):
        guesses.append((progress.max_passes / progress.passes - 1.0) * progress.seconds)
    return max(min(guesses), 0.0) if guesses else None


def _clock(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
