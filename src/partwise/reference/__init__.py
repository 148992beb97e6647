"""Reference methods: general algorithms on small, explicit problems, to check the solvers against and to learn from.

No program of the library calls them. `eg_qp` is exponentiated gradient for quadratic programs over products of
simplices, `explicit_dual` writes a problem's dual as such a program where its labellings can be listed, and
`ExcessiveGapMethod` minimises any f(w) + g*(Aw) with the functions it is given.
"""

from .excessive_gap import EntropyProx, ExcessiveGapMethod, Iterate, LinearTerm, SquaredNorm
from .explicit import ExplicitDual, explicit_dual
from .qp import QPResult, eg_qp

__all__ = [
    "EntropyProx",
    "ExcessiveGapMethod",
    "ExplicitDual",
    "Iterate",
    "LinearTerm",
    "QPResult",
    "SquaredNorm",
    "eg_qp",
    "explicit_dual",
]
