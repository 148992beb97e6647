"""One-slack cutting planes for structural SVMs, the algorithm of SVM-struct and SVM-hmm.

Problem. min l2/2 |w|^2 + xi over w and one slack xi >= 0 under a constraint for every joint choice of labellings
y_1, ..., y_n: xi >= sum_i omega_i (cost(y_i) - <w, psi_i(y_i)>). That is min P(w) at temperature 0. With the squared
link and with slack rescaling a constraint is the plane of the joint choice under that loss.

Update. That of `base`: the most violated constraint at w is the plane of the oracle's answers, xi is the highest plane.
The first plane is 0, of the gold labellings (xi >= 0).

Stopping rule. gap = P(w) - D <= tol |P| at the best weights and the best mixture so far, after every step.

Source. Joachims et al. 2009, Algorithm 3 (its dual: their (11)), with C / n = 1 / l2 for weights of 1; constraints that
were inactive for 50 rounds are dropped, as in SVM-struct.

Departures. The stopping rule (theirs, that the newest constraint is violated by at most epsilon, is the column
`violation` of the history, times n); the best weights seen are returned, not the last; `mix`, as in OCAS (Franc and
Sonnenburg 2009), without its line search, as each trial of it would cost a pass and a plane is worth more.
"""

from dataclasses import dataclass

import numpy as np

from partwise.problem import Problem
from partwise.problem.capabilities import Capability
from partwise.solvers.engine.registry import register
from partwise.solvers.planes.base import NEEDS, BundleMethod
from partwise.solvers.planes.bundle import Bundle


@register(place=25)
@dataclass(frozen=True)
class OneSlack(BundleMethod):
    """One-slack cutting planes (see the module's docstring)."""

    name = "one-slack"
    requires = NEEDS | {Capability.MAXIMA}
    rate = "sublinear"
    proof = "Joachims et al. 2009: O(1/eps)"

    def first_planes(self, problem: Problem) -> Bundle:
        planes = super().first_planes(problem)
        planes.add(problem, np.zeros(problem.n_weights), 0.0, 0.0)
        return planes
