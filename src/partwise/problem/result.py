"""Results of runs, their certificates, and the errors and warnings of runs."""

import math
import os
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from partwise.problem.dual_points import DualPoint
from partwise.support.arrays import Floats

Status = Literal["converged", "max_passes", "max_seconds", "stopped", "stalled", "no certificate"]

#: Columns of every `Result.history`, with one entry per certificate. A solver may add others.
HISTORY = ("passes", "seconds", "primal", "dual", "gap")


class ConvergenceWarning(UserWarning):
    """A run ended before its gap reached the tolerance."""


class FeatureWarning(UserWarning):
    """A feature or a label about which the training data tell nothing, or too much."""


class CertificateError(ArithmeticError):
    """A dual value above a primal value by more than rounding, or a certificate that the problem does not confirm.

    The cause is a defect in the library, in a Python structure or in a user-defined solver.
    """


class DivergenceError(ArithmeticError):
    """A solver's iterates diverged (a constant step that is too large, or numbers that are no longer finite)."""


def relative(gap: float, primal: float) -> float:
    """Return the gap over |primal|, or inf if that is undefined."""
    return gap / abs(primal) if primal and math.isfinite(gap) else (0.0 if gap == 0 else math.inf)


@dataclass(frozen=True)
class Certificate:
    """P(w), D(alpha) and the gap between them, which bounds primal - min P.

    raw_gap: P - D as computed. rounding: how far P and D may be off together (docs/math.md, "Rounding"). gap: raw_gap +
    rounding, which is never negative. resolution: how far raw_gap may be off, which is less than rounding where it is
    not the difference of two numbers; P(w) - min P <= raw_gap + resolution. gradient_norm: |grad P(w)| if the solver
    uses it, else NaN.
    """

    primal: float
    dual: float
    gap: float
    raw_gap: float
    rounding: float
    resolution: float
    gradient_norm: float = float("nan")

    @classmethod
    def of(
        cls, primal: float, dual: float, rounding: float, raw: float | None = None, resolution: float | None = None
    ) -> "Certificate":
        """Return the certificate of these values; raise CertificateError if D exceeds P by more than rounding.

        raw, resolution: P - D, and how far it may be off, where it is not the difference of the two numbers.
        """
        raw = primal - dual if raw is None else raw
        if raw < -rounding:
            raise CertificateError(
                f"dual {dual!r} exceeds primal {primal!r} by {-raw:.3g}, of which rounding explains {rounding:.3g}: "
                "the dual point does not belong to this problem, or a structure's oracle is wrong"
            )
        return cls(primal, dual, raw + rounding, raw, rounding, rounding if resolution is None else resolution)

    @classmethod
    def none(cls, primal: float) -> "Certificate":
        """Return the certificate of P(w) alone, without a lower bound."""
        return cls(primal, -math.inf, math.inf, math.inf, 0.0, 0.0)

    def hidden(self, tol: float) -> bool:
        """Return whether rounding hides more work: it is all but a tenth of the gap, or all that keeps it above tol."""
        goal = tol * abs(self.primal)
        within = self.raw_gap + self.resolution <= goal < self.rounding
        return within or self.raw_gap <= 0.1 * self.resolution < math.inf

    @property
    def relative_gap(self) -> float:
        """The gap over |primal|, which is compared with `tol`."""
        return relative(self.gap, self.primal)

    def text(self, l2: float, certified: bool = True) -> str:
        """Return the certificate as text; certified: whether the solver has certificates. There is none if `l2` = 0."""
        if math.isinf(self.gap):
            reason = "beyond double precision" if l2 > 0 else "l2 = 0"
            reason = reason if certified else "the solver has none"
            return f"primal {self.primal:.8g}, no certificate ({reason})"
        return f"primal {self.primal:.8g}, gap {self.gap:.3g} (relative {self.relative_gap:.3g})"


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a run.

    primal, dual, gap, rounding: P(w), the best lower bound found, how far primal may be above the optimum, and the part
    of it that is rounding: dual - rounding <= min P <= primal + rounding, primal - min P <= gap. l2, l1: strengths of
    the penalty; |w - w*|^2 <= 2 gap / l2. history: arrays `passes`, `seconds`, `primal`, `dual`, `gap` with one entry
    per certificate, and the solver's own (`Solver.traced`), such as `bmrm_gap` and `violation` of cutting planes.

    status: "converged": gap <= tol * |primal|, or no further progress in double precision at a relative gap of at most
    1e-10. "max_passes", "max_seconds", "stopped" (by the callback): a limit came first. "stalled": no further progress
    in double precision, or by the solver's own criterion (its message says so), at a larger gap. "no certificate": l2 =
    0, where the gradient norm was lowered; or the solver has none (perceptron, MIRA), and made its passes.
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
    rounding: float = 0.0
    l1: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.status} ({self.solver}, {self.passes:.4g} passes): primal {self.primal:.8g}, dual {self.dual:.8g}, "
            f"gap {self.gap:.3g} (relative {self.relative_gap:.1e})"
        )

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def relative_gap(self) -> float:
        """The gap over |primal|."""
        return relative(self.gap, self.primal)

    @property
    def n_nonzero(self) -> int:
        """The number of weights that are not zero."""
        return int(np.count_nonzero(self.weights))

    def report(self, path: str | os.PathLike[str], **parts: Any) -> None:
        """Write a report to one HTML file: certificate, convergence, and what `parts` add (`report.write_report`)."""
        from partwise.report import write_report

        write_report(path, self, **parts)

    def plot(self, axes: Any = None) -> Any:
        """Draw primal, dual and gap against passes and seconds with matplotlib (extra "plot"); return the figure.

        axes: four matplotlib axes (default: those of a new figure).
        """
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("Result.plot needs matplotlib: pip install 'partwise[plot]'") from None
        if axes is None:
            axes = pyplot.subplots(2, 2, figsize=(10, 6.5), layout="constrained")[1]
        panels = np.asarray(axes, dtype=object).ravel()
        if len(panels) != 4:
            raise ValueError(f"axes: 4 are needed, got {len(panels)}")
        shown_values = product((("primal", "dual"), ("gap",)), ("passes", "seconds"))
        for panel, (names, axis) in zip(panels, shown_values, strict=True):
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
        from partwise.report.page import notebook_view

        return notebook_view(self)

    def noted(self, remark: str) -> "Result":
        """Return the result with a remark before its message."""
        return replace(self, message=f"{remark}; {self.message}") if remark else self
