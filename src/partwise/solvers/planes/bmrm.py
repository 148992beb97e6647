"""Bundle method for regularised risk minimisation (BMRM).

Problem. min P(w) for any loss; l2 > 0.

Update. That of `base` from w = 0: at temperature 0 the planes are those of maxima, above it they are tangents of the
smooth losses.

Stopping rule. gap = P(w) - D <= tol |P| at the best weights and the best mixture so far, after every step; that is the
BMRM gap, but for mixtures whose planes were dropped since.

Source. Teo et al. 2010, Algorithm 2 (the rival in Table 1 of Zhang et al. 2011).

Departures. Sample weights; idle planes are dropped; `mix`.
"""

from dataclasses import dataclass

from partwise.solvers.engine.registry import register
from partwise.solvers.planes.base import NEEDS, BundleMethod


@register(place=26)
@dataclass(frozen=True)
class BMRM(BundleMethod):
    """BMRM (see the module's docstring)."""

    name = "bmrm"
    requires = NEEDS
    rate = "linear"
    proof = "Teo et al. 2010: O(log 1/eps); O(1/eps) at temperature 0"
