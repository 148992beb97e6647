"""Problem. That of `base`; features may be negative.

Update. `cd`: one weight after the other, by default in the adaptive order. With A_t(z) = P(w + z e_t) - P(w),
d = -A_t'(0) / A_t''(0) and z = d, beta d, beta^2 d, ... the first z with

    A_t(z) <= gamma z A_t'(0)

(there is one for any beta, Theorem 4), where upper bounds of A_t are tried first: they cost nothing, while A_t(z) is a
sum over the column. `bound`:

    "paper"        the function of `is-bound`, where f_t >= 0: step 2' with (38) and (39)
    "third-order"  before that another one: the third derivative of a log partition function is at most R times the
                   second, R the range of f_t; with E and V the sums of means and variances of f_t at w,

                       A_t(z) <= l2 (w_t z + z^2/2) - z e_t + z E + V (exp(R|z|) - 1 - R|z|) / R^2
    "none"         A_t itself always (the paper's CDD)

The bounds change no step. The paper's runs are order="index", bound="paper". `cd-exact`: Newton steps with the same
line search, until |A_t'| <= newton_tol (at least one step, at most max_newton).

Stopping rule. That of `base`.

Source. Huang et al. 2010: Algorithm 3 with step 2' of section 3.2.1, (34), (35), (38), (39); for `cd-exact` Algorithm 1
with (8), (29)-(31).

Departures. Those of `base`; the order of `cd`; the third-order bound, which only changes the gains that the adaptive
order sees; gamma by whether features are 0/1, as in the paper's experiments; P(y|x) <= 1 - 1e-10 in A_t.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from partwise.problem import Capability, Problem
from partwise.solvers.columns.base import NEEDS, Order, ScalingSolver, order_option
from partwise.solvers.engine.options import POSITIVE, PROPER_SHARE, Values, at_least, option
from partwise.support.checks import check_choice

SearchBound = Literal["third-order", "paper", "none"]


@dataclass(frozen=True)
class CD(ScalingSolver):
    """Coordinate descent with one Newton step per weight."""

    name = "cd"
    function = "cd"
    requires = NEEDS

    order: Order = order_option("adaptive")
    bound: SearchBound = option(
        "third-order",
        "what the line search tries before the objective itself: paper (the function of is-bound), third-order (before "
        "that a bound from the third derivative) or none",
    )
    beta: float = option(0.5, "factor on a step that is too long", PROPER_SHARE)
    gamma: float | None = option(
        None,
        "share of the linear decrease to ask for; by default 0.001 for 0/1 features, else 0.01",
        Values("above 0 and below 1/2", lambda gamma: 0 < gamma < 0.5),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("bound", self.bound, get_args(SearchBound))

    def minimiser(self, problem: Problem) -> dict[str, Any]:
        gamma = 0.001 if Capability.BINARY_FEATURES in problem.capabilities() else 0.01
        gamma = gamma if self.gamma is None else self.gamma
        return {"search_bound": self.bound, "beta": self.beta, "gamma": gamma, "newton_tol": 0.0, "max_newton": 1}


@dataclass(frozen=True)
class CDExact(CD):
    """Coordinate descent with exact steps."""

    name = "cd-exact"

    order: Order = order_option("cyclic")
    newton_tol: float = option(1e-5, "weights are moved until the derivative is at most this", POSITIVE)
    max_newton: int = option(100, "Newton steps on one weight", at_least(1))

    def minimiser(self, problem: Problem) -> dict[str, Any]:
        return {**super().minimiser(problem), "newton_tol": self.newton_tol, "max_newton": self.max_newton}
