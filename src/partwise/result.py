"""What a run gives back, and the ways it can fail."""

import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .dual import DualPoint

Floats = NDArray[np.float64]
Status = Literal["converged", "max_passes", "max_seconds", "stopped", "stalled", "no certificate"]

#: Columns of `Result.history`: one entry each time a certificate was issued.
HISTORY = ("passes", "seconds", "primal", "dual", "gap")


class ConvergenceWarning(UserWarning):
    """A run ended before its gap reached the tolerance."""


class FeatureWarning(UserWarning):
    """A feature or a label that the training data says nothing, or too much, about."""


class CertificateError(ArithmeticError):
    """A dual value above a primal value by more than rounding: a defect in the library or in a Python structure."""


class DivergenceError(ArithmeticError):
    """A solver's iterates ran away (a constant step that is too large, or numbers that are no longer finite)."""


@dataclass(frozen=True)
class Certificate:
    """P(w), D(alpha) and the gap between them, which bounds P(w) - min P.

    `gap` is never negative; `raw_gap` is the difference as it came out, rounding included. `gradient_norm` is
    |grad P(w)| where the solver has it to go by, and NaN elsewhere.
    """

    primal: float
    dual: float
    gap: float
    raw_gap: float
    gradient_norm: float = float("nan")

    @property
    def relative_gap(self) -> float:
        """The gap over |primal|, which is compared with `tol`."""
        return self.gap / abs(self.primal) if self.primal else (0.0 if self.gap == 0 else float("inf"))


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a run.

    status
        "converged": gap <= tol * |primal|, or a relative gap below 1e-10 and no further progress in double precision;
        "max_passes", "max_seconds", "stopped" (by the callback): a limit came first;
        "stalled": no further progress possible, but the gap is above that;
        "no certificate": l2 = 0, where the gradient norm is what was brought down.
    l2
        Strength of the penalty; |w - w*|^2 <= 2 gap / l2.
    history
        Arrays `passes`, `seconds`, `primal`, `dual`, `gap`: one entry each time a certificate was issued.
    """

    weights: Floats = field(repr=False)
    primal: float
    dual: float
    gap: float
    passes: float
    seconds: float
    status: Status
    solver: str
    l2: float
    history: dict[str, Floats] = field(repr=False)
    dual_point: DualPoint | None = field(default=None, repr=False)
    message: str = ""

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def relative_gap(self) -> float:
        """The gap over |primal|."""
        return Certificate(self.primal, self.dual, self.gap, self.gap).relative_gap

    def report(self, path: str | os.PathLike[str], **parts: Any) -> None:
        """Write a report to one HTML file: certificate, convergence, and what `parts` add (`report.write_report`)."""
        from .report import write_report

        write_report(path, self, **parts)

    def plot(self, axes: Any = None) -> Any:
        """Draw primal, dual and gap against passes and seconds with matplotlib (extra "plot").

        Parameters
        ----------
        axes : four matplotlib axes, optional
            Default: those of a new figure.

        Returns
        -------
        The figure.
        """
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("Result.plot needs matplotlib: pip install 'partwise[plot]'") from None
        if axes is None:
            _, axes = pyplot.subplots(2, 2, figsize=(10, 6.5), layout="constrained")
        panels = np.asarray(axes, dtype=object).ravel()
        if len(panels) != 4:
            raise ValueError(f"axes: 4 are needed, got {len(panels)}")
        for k, (names, axis) in enumerate(
            [
                (("primal", "dual"), "passes"),
                (("primal", "dual"), "seconds"),
                (("gap",), "passes"),
                (("gap",), "seconds"),
            ]
        ):
            panel = panels[k]
            # A logarithmic axis has no place for values that are not positive, such as early duals.
            for name in names:
                x, y = self.history[axis], self.history[name]
                shown = np.isfinite(y) & (y > 0) & (x > 0)
                panel.plot(x[shown], y[shown], marker=".", label=name)
            panel.set(xlabel=axis, ylabel=" and ".join(names), xscale="log", yscale="log")
            panel.grid(alpha=0.3)
            if len(names) > 1:
                panel.legend()
        return panels[0].figure

    def _repr_html_(self) -> str:
        from .report.page import notebook_view

        return notebook_view(self)

    def noted(self, remark: str) -> "Result":
        """The same result with a remark before its message."""
        return replace(self, message=f"{remark}; {self.message}") if remark else self
