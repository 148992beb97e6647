"""Coordinate descent with exact steps.

Problem. That of `scaling`; features may be negative.

Update. One weight after the other, each to the minimum of A_t(z) = P(w + z e_t) - P(w): Newton steps with `cd`'s line
search, until |A_t'| <= newton_tol (at least one step, at most max_newton).

Stopping rule. That of `scaling`.

Source. Huang et al. 2010, Algorithm 1 with (8), (29)-(31). Departures: those of `scaling` and, but for the order, `cd`.
"""

from dataclasses import dataclass
from typing import ClassVar

from partwise._core import ScalingReport
from partwise.problem import Problem
from partwise.solvers.columns.base import ORDERS, Order, ScalingState, check_positive
from partwise.solvers.columns.cd import CD
from partwise.solvers.engine.base import option
from partwise.solvers.engine.registry import register


@register(place=16)
@dataclass(frozen=True)
class CDExact(CD):
    """Coordinate descent with exact steps (see the module's docstring)."""

    name: ClassVar[str] = "cd-exact"

    order: Order = option("cyclic", ORDERS)
    newton_tol: float = option(1e-5, "weights are moved until the derivative is at most this")
    max_newton: int = option(100, "Newton steps on one weight")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("newton_tol", self.newton_tol)
        if self.max_newton < 1:
            raise ValueError(f"max_newton must be at least 1, got {self.max_newton}")

    def epoch(self, problem: Problem, state: ScalingState) -> ScalingReport:
        return self.descend(problem, state, self.newton_tol, self.max_newton)
