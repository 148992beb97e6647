"""Coordinate descent with exact steps.

Problem. That of `base`; features may be negative.

Update. One weight after the other, each to the minimum of A_t(z) = P(w + z e_t) - P(w): Newton steps with `cd`'s line
search, until |A_t'| <= newton_tol (at least one step, at most max_newton).

Stopping rule. That of `base`.

Source. Huang et al. 2010, Algorithm 1 with (8), (29)-(31).

Departures. Those of `base` and, but for the order, `cd`.
"""

from dataclasses import dataclass

from partwise._core import ScalingReport
from partwise.problem import Problem
from partwise.solvers.columns.base import Order, ScalingState, order_option
from partwise.solvers.columns.cd import CD
from partwise.solvers.engine.options import POSITIVE, at_least, option
from partwise.solvers.engine.registry import register


@register(place=16)
@dataclass(frozen=True)
class CDExact(CD):
    """Coordinate descent with exact steps (see the module's docstring)."""

    name = "cd-exact"

    order: Order = order_option("cyclic")
    newton_tol: float = option(1e-5, "weights are moved until the derivative is at most this", POSITIVE)
    max_newton: int = option(100, "Newton steps on one weight", at_least(1))

    def epoch(self, problem: Problem, state: ScalingState) -> ScalingReport:
        return self.descend(problem, state, self.newton_tol, self.max_newton)
