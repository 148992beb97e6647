"""General methods: the algorithms of the papers for functions of your own, each ending with a certificate.

`eg` minimises any convex function over a product of simplices (`SimplexFunction`, or a `quadratic`), `eg_qp` quadratic
programs with the theorem about them, `ExcessiveGapMethod` any f(w) + g*(Aw). `explicit_dual` writes a problem's dual as
such a program if its labellings can be listed. `eg_passes`, `excessive_gap_steps` and `dcd_additions` give the bounds
that theorems prove for the solvers. All are for reading, and for checking the solvers: the library does not call them.
"""

from partwise.methods.eg import EGResult, QPResult, eg, eg_qp
from partwise.methods.excessive_gap import (
    EntropyProx,
    ExcessiveGapMethod,
    ExcessiveGapResult,
    Iterate,
    LinearTerm,
    SquaredNorm,
)
from partwise.methods.explicit import ExplicitDual, explicit_dual
from partwise.methods.iteration_bounds import Constants, constants, dcd_additions, eg_passes, excessive_gap_steps
from partwise.methods.simplices import Quadratic, SimplexFunction, quadratic

__all__ = [
    "Constants",
    "EGResult",
    "EntropyProx",
    "ExcessiveGapMethod",
    "ExcessiveGapResult",
    "ExplicitDual",
    "Iterate",
    "LinearTerm",
    "QPResult",
    "Quadratic",
    "SimplexFunction",
    "SquaredNorm",
    "constants",
    "dcd_additions",
    "eg",
    "eg_passes",
    "eg_qp",
    "excessive_gap_steps",
    "explicit_dual",
    "quadratic",
]
