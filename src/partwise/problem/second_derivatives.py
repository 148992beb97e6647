"""Products with the Hessian of the objective, as `Problem.hessian` gives them."""

from dataclasses import dataclass

import numpy as np

from partwise.problem.free_weights import penalised
from partwise.problem.penalties import Penalty
from partwise.problem.sums import Sums
from partwise.support.arrays import Floats


@dataclass(frozen=True, eq=False)
class SecondDerivatives:
    """The Hessian of P at one point: products with it, and its diagonal or something near it."""

    sums: Sums
    penalty: Penalty
    weights: Floats
    every: int
    marginals: Floats | None
    partial: bool
    """Whether it is an estimate from a part of the examples."""

    def __call__(self, direction: Floats) -> Floats:
        product = self.sums.hessian_product(self.marginals, self.weights, self.every, direction)
        product += penalised(self.penalty, self.penalty.strength * direction)
        return product

    def diagonal(self) -> Floats:
        """Exact where an example uses a weight in one slot of one part (see `_core.Hessian.diagonal`)."""
        found = self.sums.hessian_diagonal(self.marginals, self.weights, self.every)
        if self.penalty.free is None:
            return self.penalty.strength + found
        return found + penalised(self.penalty, np.full(len(found), self.penalty.strength))
