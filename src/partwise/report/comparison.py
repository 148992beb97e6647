"""Several runs on one problem, side by side: as a table of text and as a figure."""

from __future__ import annotations

import io
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, product
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from partwise.problem.result import Result, relative
from partwise.support.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Relative gaps whose times the table has.
LEVELS = (1e-1, 1e-2, 1e-3)
#: Colours that most people can tell apart (Okabe and Ito's, black last), and lines for more runs than colours.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
_LINES = ("-", "--", ":", "-.")
_MARKERS = "osD^vPX*"


def compare(results: Mapping[str, object] | Iterable[object]) -> Comparison:
    """Compare runs on the same problem.

    Parameters
    ----------
    results : dict of name -> run, or a list of runs
        A run is a `Result`, or a fitted estimator, whose `result_` is taken. In a list, runs are named by their
        solvers.

    Returns
    -------
    Comparison
        `print` shows a table; `plot()` gives a matplotlib figure of relative gaps and of primal values above the best
        bound, against passes and seconds; notebooks show the figure.

    A curve has a point for each certificate of its run. Most solvers issue few, as each costs about half a pass;
    `callbacks.EachPass()` asks for one after every pass, which changes nothing else. Raises ValueError if there is no
    run, or one run's lower bound is above another one's value: those are of different problems.
    """
    return Comparison(_named(results))


class Comparison:
    """Runs by name, with the smallest value and the largest lower bound that any of them found."""

    def __init__(self, runs: dict[str, Result]) -> None:
        if not runs:
            raise ValueError("compare needs at least one run")
        self.runs = runs
        self._best = min(runs, key=lambda name: runs[name].primal)
        self._lowest = max(runs, key=lambda name: runs[name].dual)
        above, below = runs[self._lowest], runs[self._best]
        self.primal, self.dual = below.primal, above.dual
        if above.dual - above.rounding > below.primal + below.rounding:
            raise ValueError(
                f"the lower bound of {self._lowest!r}, {above.dual:.6g}, is above the value of {self._best!r}, "
                f"{below.primal:.6g}: they are not runs on the same problem"
            )

    def above_best(self, name: str) -> Floats:
        """Return how far the values of a run are above the largest lower bound, over the smallest value."""
        bound = self.dual if math.isfinite(self.dual) else self.primal
        return (self.runs[name].history["primal"] - bound) / (abs(self.primal) or 1.0)

    def relative_gaps(self, name: str) -> Floats:
        """Return the relative gaps of a run's history."""
        history = self.runs[name].history
        return np.array([relative(gap, primal) for gap, primal in zip(history["gap"], history["primal"], strict=True)])

    def first(self, name: str, level: float) -> tuple[float, float] | None:
        """Return (passes, seconds) of a run's first certificate with a relative gap of at most `level`, or None."""
        reached, history = np.flatnonzero(self.relative_gaps(name) <= level), self.runs[name].history
        if not reached.size:
            return None
        return float(history["passes"][reached[0]]), float(history["seconds"][reached[0]])

    def __str__(self) -> str:
        heads = ["run", "status", "passes", "seconds", "primal", "gap", "rel. gap"]
        rows = [[*heads, *(f"s to {level:g}" for level in LEVELS)]]
        for name, run in sorted(self.runs.items(), key=lambda item: (item[1].relative_gap, item[1].seconds)):
            numbers = f"{run.passes:.4g} {run.seconds:.3g} {run.primal:.8g} {run.gap:.2g} {run.relative_gap:.1e}"
            reached = [self.first(name, level) for level in LEVELS]
            times = ["-" if each is None else f"{each[1]:.3g}" for each in reached]
            rows.append([name, run.status, *numbers.split(), *times])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        cells = ([*map(str.ljust, row[:2], widths), *map(str.rjust, row[2:], widths[2:])] for row in rows)
        known = f"the optimum is between {self.dual:.8g} ({self._lowest}) and {self.primal:.8g} ({self._best})"
        if not math.isfinite(self.dual):
            known = f"the smallest value is {self.primal:.8g} ({self._best}); no run has a lower bound"
        return "\n".join([*("  ".join(row).rstrip() for row in cells), known])

    __repr__ = __str__

    def plot(self, axes: Axes | None = None) -> Figure:
        """Draw gaps, and primal values above the best bound, against passes and seconds (extra "plot").

        Axes are logarithmic. A ring at the end of a curve: the run did not reach its tolerance. The grey area is below
        what the best bound and the best value leave open.

        Returns the figure. `axes`: four matplotlib axes, by default those of a new figure.
        """
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("compare(...).plot needs matplotlib: pip install 'partwise[plot]'") from None
        own = axes is None
        if own:
            _, axes = pyplot.subplots(2, 2, figsize=(10, 7), sharey="row", sharex="col", layout="constrained")
        panels = np.asarray(axes, dtype=object).ravel()
        if len(panels) != 4:
            raise ValueError(f"axes: 4 are needed, got {len(panels)}")
        shown = (("gap / primal", self.relative_gaps), ("(primal - best dual) / best primal", self.above_best))
        for k, ((title, values), axis) in enumerate(product(shown, ("passes", "seconds"))):
            panel = panels[k]
            for number, name in enumerate(self.runs):
                self._draw(panel, number, name, axis, values(name))
            if any(np.any(line.get_ydata()) for line in panel.get_lines()):
                panel.set(xscale="log", yscale="log")
            else:
                panel.text(0.5, 0.5, "no certificates", transform=panel.transAxes, ha="center", color="#808080")
            panel.grid(which="major", alpha=0.25, linewidth=0.8)
            panel.spines[["top", "right"]].set_visible(False)
            if axis == "passes":
                panel.set_ylabel(title)
            if k >= 2 or not own:
                panel.set_xlabel(axis)
        open_below = relative(self.primal - self.dual, self.primal)
        if 0 < open_below < math.inf:
            for panel in panels[2:]:
                panel.set_ylim(bottom=open_below / 3)
                panel.axhspan(open_below / 3, open_below, color="#808080", alpha=0.15, linewidth=0)
        figure: Figure = panels[0].figure
        if own and len(self.runs) > 1:
            handles, names = panels[0].get_legend_handles_labels()
            figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5), frameon=False)
        elif not own:
            panels[0].legend()
        return figure

    def _draw(self, panel: Axes, number: int, name: str, axis: str, values: Floats) -> None:
        x = self.runs[name].history[axis]
        # Logarithmic axes have no place for what is not positive, such as the start before the first pass.
        shown = np.isfinite(values) & (values > 0) & (x > 0)
        colour = _COLOURS[number % len(_COLOURS)]
        line = _LINES[number // len(_COLOURS) % len(_LINES)]
        marker = "" if np.count_nonzero(shown) > 25 else _MARKERS[number % len(_MARKERS)]
        panel.plot(x[shown], values[shown], line, marker=marker, markersize=4, linewidth=1.6, color=colour, label=name)
        if shown.any():
            face = colour if self.runs[name].converged else "white"
            panel.plot(x[shown][-1], values[shown][-1], "o", markersize=7, color=colour, markerfacecolor=face, zorder=3)

    def savefig(self, path: str | os.PathLike[str] | BinaryIO, **options: Any) -> None:
        """Write the figure to a file; options are those of matplotlib's `savefig`."""
        from matplotlib import pyplot

        figure = self.plot()
        figure.savefig(path, **options)
        pyplot.close(figure)

    def _repr_png_(self) -> bytes | None:
        """Return what notebooks show; None without matplotlib, where they show the table."""
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            return None
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=110)
        return file.getvalue()


def _named(results: Mapping[str, object] | Iterable[object]) -> dict[str, Result]:
    if isinstance(results, Mapping):
        return {str(name): _result(run, repr(str(name))) for name, run in results.items()}
    if isinstance(results, Result) or hasattr(results, "result_"):
        results = [results]
    runs = [_result(run, f"number {k}") for k, run in enumerate(results)]
    often = Counter(run.solver for run in runs)
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
    return {run.solver if often[run.solver] == 1 else f"{run.solver} {next(numbers[run.solver])}": run for run in runs}


def _result(run: object, where: str) -> Result:
    found = getattr(run, "result_", run)
    if not isinstance(found, Result):
        raise TypeError(f"compare: run {where} is no Result and has none, it is of type {type(run).__name__}")
    return found
